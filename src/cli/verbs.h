#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/resolve.h"
#include "base/error.h"
#include "base/messages.h"
#include "job/job.h"
#include "report/console.h"

namespace vram::cli {

/// An option that is no field of a job.
struct Option {
  std::string_view name;   ///< "--compare"
  std::string_view value;  ///< "A,B"; empty for a flag
  std::string_view help;   ///< message id
};

struct Example {
  std::string_view command;
  std::string_view about;  ///< message id
};

/// What one command line asks.
struct Request {
  Job job;
  std::vector<std::string> words;                           ///< words behind the verb (without the model)
  std::map<std::string, std::string, std::less<>> options;  ///< of the verb itself; "true" for a flag
  bool json = false;
  Style style;

  bool has(std::string_view option) const { return options.find(option) != options.end(); }
};

/// What goes to standard output, and the exit status.
struct Reply {
  std::string text;
  Exit status = Exit::yes;
};

/// One verb: an adapter from a request to an api function and its report. A new verb is one row in verbs.cc.
struct VerbEntry {
  Verb verb;
  std::string_view name;
  std::string_view summary;  ///< message id
  std::string_view usage;    ///< "MODEL --on MACHINE [options]"
  bool takes_model = false;  ///< the first word is the model
  bool setup = false;        ///< answers no question about memory: a sentence names it, not the list
  bool takes_jobs = false;   ///< words are jobs: one that holds a space is a word even where it begins with a dash
  std::vector<Example> examples;
  std::vector<Option> options;
  /// May complete the request's job from its words: --save writes what was answered.
  Reply (*run)(Request& request, const Knowledge& knowledge);
};

std::span<const VerbEntry> verbs();
const VerbEntry* find_verb(std::string_view name);

}  // namespace vram::cli
