#include "cli/run.h"

#include <algorithm>
#include <exception>
#include <new>

#include "base/checked.h"
#include "cli/help.h"
#include "cli/options.h"
#include "formats/formats.h"

namespace vram::cli {
namespace {

constexpr size_t kJobFileLimit = size_t{4} << 20;
constexpr int kInternalError = 70;  // EX_SOFTWARE: none of the four statuses of an answer

std::string locale_of(const Environment& environment, const char* category) {
  for (const char* name : {"LC_ALL", category, "LANG"}) {
    const auto value = environment.variable(name);
    if (value && !value->empty()) return *value;
  }
  return {};
}

// Terminals without a locale (containers) speak UTF-8 today; only a locale that names another charset does not.
bool speaks_utf8(const Environment& environment) {
  std::string locale = locale_of(environment, "LC_CTYPE");
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const size_t dot = locale.find('.');
  if (dot == std::string::npos) return true;
  return locale.find("utf-8", dot) != std::string::npos || locale.find("utf8", dot) != std::string::npos;
}

Style style_of(const CommandLine& line, const Environment& environment, const Terminal& terminal) {
  Style style = line.request.style;
  style.lang = line.lang ? *line.lang : lang_from_locale(locale_of(environment, "LC_MESSAGES").c_str());
  const auto no_color = environment.variable("NO_COLOR");
  const auto term = environment.variable("TERM");
  const bool suits = terminal.output_is_terminal && (!no_color || no_color->empty()) && !(term && *term == "dumb");
  style.color = line.color == Color::always || (line.color == Color::automatic && suits);
  style.unicode = !line.ascii && speaks_utf8(environment);
  if (line.width) {
    style.width = static_cast<int>(*line.width);
  } else if (terminal.output_is_terminal && terminal.columns > 0) {
    style.width = std::clamp(terminal.columns, 60, 100);
  }
  return style;
}

Job job_of(const CommandLine& line, const Environment& environment) {
  Job job;
  if (!line.job_file.empty()) {
    const std::string text = environment.read_file(line.job_file, kJobFileLimit);
    const Limits limits{.bytes = kJobFileLimit, .depth = 16, .values = 10'000};
    read_job(job, parse_by_name(text, line.job_file, limits), line.job_file);
  }
  for (const CommandLine::Setting& s : line.settings) set_field(job, *s.field, s.value, option_name(s.field->name));
  if (!line.model.empty()) {
    for (const CommandLine::Setting& s : line.settings) {
      if (s.field->name != "model") continue;
      throw InputError({.field = "--model",
                        .value = s.value,
                        .problem = "is a second model beside '" + printable(line.model) + "'"});
    }
    set_field(job, *find_field("model"), line.model, "model");
  }
  check_job(job);
  return job;
}

void save_job(const CommandLine& line, const Job& job, const Environment& environment) {
  const Document document = write_job(job);
  const std::string& path = line.save_file;
  const auto ends_in = [&](std::string_view ending) {
    return path.size() >= ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
  };
  if (ends_in(".toml")) {
    throw InputError(
        {.field = "--save", .value = path, .problem = "can't be written as TOML", .accepted = "a .yaml or .json file"});
  }
  environment.write_file(path, ends_in(".json") ? write_json(document) : write_yaml(document));
}

// A size left 64 bits. Which of the job's numbers is to blame can't be told from the product; the largest mostly is.
[[noreturn]] void refuse_overflow(const Job& job) {
  const Document said = write_job(job);
  const Field* largest = nullptr;
  double most = 0;
  for (const Field& f : fields()) {
    const Document* value = f.is_number() ? said.find(f.name) : nullptr;
    if (!value || f.unit == Unit::ratio || f.unit == Unit::money || value->number() <= most) continue;
    largest = &f;
    most = value->number();
  }
  throw InputError({.field = largest ? option_name(largest->name) : "model",
                    .value = largest ? said.find(largest->name)->to_text() : job.model,
                    .problem = "makes a size of more than 2^63 bytes",
                    .accepted = "sizes of a real job"});
}

Outcome answer(const std::vector<std::string>& arguments, const Environment& environment, const Terminal& terminal) {
  CommandLine line = parse_command_line(arguments);
  line.request.style = style_of(line, environment, terminal);
  const Style& style = line.request.style;
  Outcome out;
  if (line.version) {
    out.output = std::string("vram ") + kVersion + "\n";
  } else if (!line.verb || line.help) {
    out.output = line.verb ? help(style, *line.verb) : overview(style);
  } else {
    line.request.job = job_of(line, environment);
    Knowledge knowledge(environment);
    for (const std::string& file : line.rows_files) knowledge.add_rows(file);
    const Reply reply = [&] {
      try {
        return line.verb->run(line.request, knowledge);
      } catch (const OverflowError&) {
        refuse_overflow(line.request.job);
      }
    }();
    if (!line.save_file.empty()) save_job(line, line.request.job, environment);
    out.output = reply.text;
    out.status = static_cast<int>(reply.status);
    if (line.request.json) return out;
  }
  if (!style.unicode) out.output = to_ascii(out.output);
  return out;
}

Document error_document(const std::string& message, const Fault& fault, int status) {
  Document error{Document::Object{{"message", message}}};
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) error.set(key, printable(value, 200));
  };
  add("file", fault.file);
  if (fault.line > 0) error.set("line", int64_t{fault.line});
  add("field", fault.field);
  add("value", fault.value);
  add("accepted", fault.accepted);
  add("near_miss", fault.near_miss);
  error.set("status", int64_t{status});
  return Document::Object{{"error", std::move(error)}};
}

Outcome failure(const std::vector<std::string>& arguments, const std::string& message, const Fault& fault, int status) {
  Outcome out;
  out.error = "vram: " + message + "\n";
  out.status = status;
  if (asks_for_json(arguments)) out.output = write_json(error_document(message, fault, status));
  return out;
}

}  // namespace

Outcome run(const std::vector<std::string>& arguments, const Environment& environment, const Terminal& terminal) {
  try {
    return answer(arguments, environment, terminal);
  } catch (const InputError& e) {
    return failure(arguments, e.what(), e.fault(), static_cast<int>(Exit::bad_input));
  } catch (const UnavailableError& e) {
    return failure(arguments, e.what(), {}, static_cast<int>(Exit::unavailable));
  } catch (const OverflowError& e) {
    return failure(arguments, e.what(), {}, static_cast<int>(Exit::bad_input));
  } catch (const std::bad_alloc&) {
    return failure(arguments, "this needs more host memory than there is", {}, static_cast<int>(Exit::unavailable));
  } catch (const std::exception& e) {
    return failure(arguments, std::string("internal error: ") + e.what(), {}, kInternalError);
  }
}

}  // namespace vram::cli
