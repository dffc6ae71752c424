#include "cli/sides.h"

#include <algorithm>

#include "api/command.h"
#include "cli/options.h"
#include "formats/formats.h"

namespace vram::cli {
namespace {

constexpr size_t kJobFileLimit = size_t{4} << 20;

bool ends_in(const std::string& text, std::string_view ending) {
  return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

Document read_document(const std::string& file, const Environment& environment) {
  const Limits limits{.bytes = kJobFileLimit, .depth = 16, .values = 10'000};
  return parse_by_name(environment.read_file(file, kJobFileLimit), file, limits);
}

// A model's configuration may stand where a job file may.
bool is_config(const Document& document) {
  return document.find("model_type") != nullptr || document.find("architectures") != nullptr;
}

bool is_job_file(const std::string& word, const Environment& environment) {
  if (ends_in(word, ".yaml") || ends_in(word, ".yml") || ends_in(word, ".toml")) return true;
  return ends_in(word, ".json") && environment.is_file(word) && !is_config(read_document(word, environment));
}

[[noreturn]] void not_of_a_job(const std::string& name, const std::string& option) {
  throw InputError({.field = name + ": " + option,
                    .problem = "is no part of a job",
                    .accepted = "a model, and options of train or serve"});
}

void refuse_common(const CommandLine& line, const std::string& name) {
  if (line.request.json) not_of_a_job(name, "--json");
  if (line.request.style.explain) not_of_a_job(name, "--explain");
  if (line.request.style.steps) not_of_a_job(name, "--steps");
  if (line.request.style.all) not_of_a_job(name, "--all");
  if (line.help || line.version || line.lang || line.width || line.ascii || line.color != Color::automatic) {
    not_of_a_job(name, "an option of the report");
  }
  if (!line.save_file.empty()) not_of_a_job(name, "--save");
  if (!line.rows_files.empty()) not_of_a_job(name, "--rows");
}

}  // namespace

std::vector<std::string> shell_words(const std::string& text, const std::string& name) {
  std::vector<std::string> out;
  std::string word;
  bool open = false;  // a word has begun, be it empty
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else if (c == '\\' && quote == '"' && i + 1 < text.size()) {
        word += text[++i];
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      open = true;
    } else if (c == '\\' && i + 1 < text.size()) {
      word += text[++i];
      open = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (open) out.push_back(std::move(word));
      word.clear();
      open = false;
    } else {
      word += c;
      open = true;
    }
  }
  if (quote != 0) throw InputError({.field = name, .value = text, .problem = "has an open quote"});
  if (open) out.push_back(std::move(word));
  return out;
}

Side read_side(const std::string& word, const std::string& name, const Job& common, const Environment& environment) {
  Side side;
  // A name of a file may hold spaces.
  std::vector<std::string> words = environment.is_file(word) ? std::vector<std::string>{word} : shell_words(word, name);
  if (!words.empty() && words.front() == "vram") words.erase(words.begin());
  std::string verb = "train";
  if (!words.empty() && (words.front() == "train" || words.front() == "serve")) {
    verb = words.front();
    side.of = verb == "train" ? DiffOf::train : DiffOf::serve;
    words.erase(words.begin());
  }
  if (words.empty()) {
    throw InputError({.field = name,
                      .value = word,
                      .problem = "is no job",
                      .accepted = "a job file, or a model and options in quotes: 'MODEL --on 8xH100 --zero 3'"});
  }
  // Which of the two verbs is meant may only show when both sides are known: the fields of both are taken.
  words.insert(words.begin(), "diff");
  CommandLine line;
  try {
    line = parse_command_line(words);
  } catch (const InputError& e) {
    Fault fault = e.fault();
    fault.field = name + ": " + fault.field;
    throw InputError(fault);
  }
  refuse_common(line, name);
  std::string file = line.job_file;
  std::string model;
  for (const std::string& w : line.request.words) {
    const bool first = &w == &line.request.words.front();
    if (!first) {
      throw InputError(
          {.field = name + ": unexpected word", .value = w, .accepted = "one model or job file, then options"});
    }
    if (file.empty() && is_job_file(w, environment)) {
      file = w;
    } else {
      model = w;
    }
  }
  if (!file.empty()) read_job(side.job, read_document(file, environment), file);
  for (const Field& f : fields()) {
    if (f.is_set(common)) copy_field(f, common, side.job);
  }
  for (const CommandLine::Setting& s : line.settings) {
    set_field(side.job, *s.field, s.value, name + ": " + option_name(s.field->name));
  }
  if (!model.empty()) set_field(side.job, *find_field("model"), model, name + ": model");
  try {
    check_job(side.job);
  } catch (const InputError& e) {
    Fault fault = e.fault();
    fault.field = name + ": " + fault.field;
    throw InputError(fault);
  }
  return side;
}

}  // namespace vram::cli
