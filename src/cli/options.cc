// The only file that sees CLI11. It takes words apart; names, values and help come from the tables.
#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

namespace vram::cli {
namespace {

constexpr std::array<Option, 13> kCommon = {{{"--job", "FILE", "cli.opt.job"},
                                             {"--save", "FILE", "cli.opt.save"},
                                             {"--rows", "FILE", "cli.opt.rows"},
                                             {"--json", "", "cli.opt.json"},
                                             {"--explain", "", "cli.opt.explain"},
                                             {"--steps", "", "cli.opt.steps"},
                                             {"--all", "", "cli.opt.all"},
                                             {"--lang", "en|zh", "cli.opt.lang"},
                                             {"--color", "auto|always|never", "cli.opt.color"},
                                             {"--ascii", "", "cli.opt.ascii"},
                                             {"--width", "N", "cli.opt.width"},
                                             {"--version", "", "cli.opt.version"},
                                             {"--help", "", "cli.opt.help"}}};

std::string underscored(std::string name) {
  std::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string before_equals(const std::string& word) { return word.substr(0, word.find('=')); }

// Whether an option is followed by its value as a word of its own.
bool takes_value(const std::string& word) {
  if (word.find('=') != std::string::npos) return false;
  for (const Option& o : common_options()) {
    if (o.name == dashed(word)) return !o.value.empty();
  }
  for (const VerbEntry& v : verbs()) {
    for (const Option& o : v.options) {
      if (o.name == dashed(word)) return !o.value.empty();
    }
  }
  const Field* field = find_field(std::string_view(word).substr(2));
  return field != nullptr && !field->is_flag();
}

// "--a,--b": every spelling of one option.
std::string spellings(const std::string& name) {
  const std::string other = underscored(name);
  return other == name ? name : name + "," + other;
}

std::string spellings(const Field& field) {
  std::string out = spellings(option_name(field.name));
  for (std::string_view a : field.aliases) out += "," + spellings(option_name(a));
  if (field.is_flag()) {
    const std::string no = "--no-" + option_name(field.name).substr(2);
    out += ",!" + no;
    if (underscored(no) != no) out += ",!" + underscored(no);
  }
  return out;
}

[[noreturn]] void unknown_option(const std::string& word, const VerbEntry& verb) {
  const std::string name = before_equals(word);
  const std::string hint = "vram help " + std::string(verb.name) + " lists all";
  if (name.size() > 2) {
    if (const Field* field = find_field(std::string_view(name).substr(2))) {
      std::string where;
      for (const VerbEntry& v : verbs()) {
        if (!field->of(v.verb)) continue;
        where += (where.empty() ? "vram " : ", vram ") + std::string(v.name);
      }
      throw InputError({.field = name,
                        .problem = "is not an option of vram " + std::string(verb.name) +
                                   (where.empty() ? "" : "; it belongs to " + where),
                        .hint = hint});
    }
  }
  std::vector<std::string> names;
  for (const Field& f : fields()) {
    if (!f.of(verb.verb)) continue;
    names.push_back(option_name(f.name));
    for (std::string_view a : f.aliases) names.push_back(option_name(a));
  }
  for (const Option& o : verb.options) names.emplace_back(o.name);
  for (const Option& o : common_options()) names.emplace_back(o.name);
  throw InputError({.field = "unknown option",
                    .value = name,
                    .near_miss = near_miss(name, std::vector<std::string_view>(names.begin(), names.end())),
                    .hint = hint});
}

[[noreturn]] void lacks_value(const std::string& name, const VerbEntry& verb) {
  std::string accepted;
  for (std::span<const Option> options : {common_options(), std::span<const Option>(verb.options)}) {
    for (const Option& o : options) {
      if (o.name == dashed(name)) accepted = o.value;
    }
  }
  const Field* field = name.size() > 2 ? find_field(std::string_view(name).substr(2)) : nullptr;
  if (accepted.empty() && field) accepted = field->accepted();
  throw InputError({.field = name, .problem = "lacks a value", .accepted = accepted});
}

[[noreturn]] void unknown_verb(const std::string& word) {
  std::vector<std::string_view> names = {"help"};
  for (const VerbEntry& v : verbs()) names.push_back(v.name);
  throw InputError(
      {.field = "unknown verb", .value = word, .near_miss = near_miss(word, names), .hint = "vram help lists all"});
}

Color color_of(const std::string& word) {
  if (word == "auto") return Color::automatic;
  if (word == "always") return Color::always;
  if (word == "never") return Color::never;
  throw InputError(
      {.field = "--color", .value = word, .problem = "is not known here", .accepted = "auto, always or never"});
}

Lang lang_of(const std::string& word) {
  if (word == "en") return Lang::en;
  if (word == "zh") return Lang::zh;
  throw InputError({.field = "--lang", .value = word, .problem = "is not known here", .accepted = "en or zh"});
}

int64_t width_of(const std::string& word) {
  const int64_t n = parse_integer(word, Unit::none, "--width");
  if (n < 40 || n > 1000) {
    throw InputError(
        {.field = "--width", .value = word, .problem = "is out of range", .accepted = "40 to 1000 columns"});
  }
  return n;
}

std::string file_of(const std::string& option, const std::string& word) {
  if (word.empty()) throw InputError({.field = option, .problem = "is empty", .accepted = "a file name"});
  return word;
}

// "--master-weights false" means "--master-weights=false": a truth value behind a flag belongs to it.
void join_truth_values(std::vector<std::string>& words) {
  static constexpr std::array<std::string_view, 6> kTruths = {"true", "false", "yes", "no", "on", "off"};
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return;
    if (word.size() < 3 || word.compare(0, 2, "--") != 0) continue;
    const Field* field = find_field(std::string_view(word).substr(2));
    if (!field || !field->is_flag() || std::find(kTruths.begin(), kTruths.end(), words[i + 1]) == kTruths.end())
      continue;
    words[i] += "=" + words[i + 1];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

// The place of the verb: the first word that is neither an option nor the value of one.
std::optional<size_t> verb_place(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.size() < 2 || word[0] != '-') return i;
    if (word.size() > 2 && takes_value(word)) ++i;
  }
  return std::nullopt;
}

// Takes out the words of a verb whose words are jobs: "--zero 1 --tp 8" is one of them, not an option.
std::vector<std::string> take_jobs(std::vector<std::string>& words) {
  std::vector<std::string> jobs, rest;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool option = word.size() > 1 && word[0] == '-' && word.find_first_of(" \t\n") == std::string::npos;
    if (!option) {
      jobs.push_back(word);
      continue;
    }
    rest.push_back(word);
    if (word.size() > 2 && takes_value(word) && i + 1 < words.size()) rest.push_back(words[++i]);
  }
  words = std::move(rest);
  return jobs;
}

struct Parser {
  CLI::App app;
  std::vector<std::pair<const Option*, CLI::Option*>> options;
  std::vector<std::pair<const Field*, CLI::Option*>> fields;

  void add(const Option& o) {
    const std::string names = o.name == "--help"      ? "-h,--help"
                              : o.name == "--version" ? "-V,--version"
                                                      : spellings(std::string(o.name));
    CLI::Option* made = o.value.empty() ? app.add_flag(names) : app.add_option(names);
    options.emplace_back(&o, made->take_all());
  }

  void add(const Field& f) {
    CLI::Option* made = f.is_flag() ? app.add_flag(spellings(f)) : app.add_option(spellings(f))->expected(1);
    fields.emplace_back(&f, made->take_all());
  }
};

void take_common(CommandLine& line, std::string_view name, const std::string& value) {
  if (name == "--job") line.job_file = file_of("--job", value);
  if (name == "--save") line.save_file = file_of("--save", value);
  if (name == "--json") line.request.json = true;
  if (name == "--explain") line.request.style.explain = true;
  if (name == "--steps") line.request.style.steps = true;
  if (name == "--all") line.request.style.all = true;
  if (name == "--lang") line.lang = lang_of(value);
  if (name == "--color") line.color = color_of(value);
  if (name == "--ascii") line.ascii = true;
  if (name == "--width") line.width = width_of(value);
  if (name == "--version") line.version = true;
  if (name == "--help") line.help = true;
}

}  // namespace

std::span<const Option> common_options() { return kCommon; }

bool asks_for_json(const std::vector<std::string>& arguments) {
  return std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
}

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  static const VerbEntry overview{.verb = Verb{}, .name = "", .summary = {}, .usage = {}, .run = nullptr};
  CommandLine line;
  std::vector<std::string> rest = arguments;
  join_truth_values(rest);
  bool help_word = false;
  auto place = verb_place(rest);
  if (place && rest[*place] == "help") {
    help_word = true;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(*place));
    place = verb_place(rest);
  }
  if (place) {
    line.verb = find_verb(rest[*place]);
    if (!line.verb) unknown_verb(rest[*place]);
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(*place));
  }
  const VerbEntry& verb = line.verb ? *line.verb : overview;
  std::vector<std::string> jobs;
  if (verb.takes_jobs) jobs = take_jobs(rest);

  Parser parser;
  parser.app.set_help_flag();
  parser.app.allow_extras();
  for (const Option& o : kCommon) parser.add(o);
  for (const Option& o : verb.options) parser.add(o);
  if (line.verb) {
    for (const Field& f : fields()) {
      if (f.of(verb.verb)) parser.add(f);
    }
  }
  try {
    std::vector<std::string> reversed(rest.rbegin(), rest.rend());
    parser.app.parse(reversed);
  } catch (const CLI::ArgumentMismatch&) {
    lacks_value(rest.empty() ? std::string() : rest.back(), verb);
  } catch (const CLI::ParseError& e) {
    throw InputError({.field = "command line:", .problem = printable(e.what(), 200)});
  }

  for (const auto& [option, parsed] : parser.options) {
    if (parsed->count() == 0) continue;
    const std::string value = parsed->results().back();
    if (option->name == "--rows") {
      for (const std::string& file : parsed->results()) line.rows_files.push_back(file_of("--rows", file));
    }
    const bool is_common = std::find_if(kCommon.begin(), kCommon.end(),
                                        [o = option](const Option& c) { return &c == o; }) != kCommon.end();
    if (is_common) {
      take_common(line, option->name, value);
    } else {
      line.request.options.emplace(option->name, value);
    }
  }
  for (const auto& [field, parsed] : parser.fields) {
    if (parsed->count() == 0) continue;
    // The last of several values counts, so that a script can append; lists gather all of them.
    std::string value = parsed->results().back();
    if (field->is_list()) {
      value.clear();
      for (const std::string& part : parsed->results()) value += (value.empty() ? "" : ",") + part;
    }
    line.settings.push_back({field, std::move(value)});
  }
  if (help_word) line.help = true;
  std::vector<std::string> words = std::move(jobs);
  for (const std::string& word : parser.app.remaining()) {
    if (word == "--") continue;
    if (word.size() > 1 && word[0] == '-' && line.verb) unknown_option(word, verb);
    if (word.size() > 1 && word[0] == '-') {
      throw InputError({.field = "unknown option", .value = before_equals(word), .hint = "vram help lists the verbs"});
    }
    words.push_back(word);
  }
  if (line.help) return line;
  if (verb.takes_model && !words.empty()) {
    line.model = words.front();
    words.erase(words.begin());
    if (!words.empty()) {
      throw InputError({.field = "unexpected word",
                        .value = words.front(),
                        .accepted = "vram " + std::string(verb.name) + " " + std::string(verb.usage)});
    }
  }
  line.request.words = std::move(words);
  return line;
}

}  // namespace vram::cli
