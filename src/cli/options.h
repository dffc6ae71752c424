#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace vram::cli {

enum class Color : uint8_t { automatic, always, never };

/// A command line, taken apart.
struct CommandLine {
  const VerbEntry* verb = nullptr;  ///< null: the overview
  bool help = false;
  bool version = false;
  std::optional<Lang> lang;
  Color color = Color::automatic;
  bool ascii = false;
  std::optional<int64_t> width;
  std::string job_file, save_file;
  std::vector<std::string> rows_files;
  /// Fields in the order of the table, as given: they are laid over the job file.
  struct Setting {
    const Field* field;
    std::string value;
  };
  std::vector<Setting> settings;
  std::string model;  ///< the model as a word
  Request request;    ///< words, options of the verb, json and the flags of style
};

/// Options that every verb has.
std::span<const Option> common_options();

/// InputError on unknown verbs and options (with near misses), missing values and words that nothing expects.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

/// --json anywhere on the line, also where the rest can't be parsed.
bool asks_for_json(const std::vector<std::string>& arguments);

}  // namespace vram::cli
