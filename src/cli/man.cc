#include "cli/man.h"

#include <algorithm>
#include <array>

#include "cli/help.h"
#include "cli/options.h"

namespace vram::cli {
namespace {

// Text as roff takes it literally: a backslash, a dash that stays one in copied commands, no request by accident.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  if (!out.empty() && (out.front() == '.' || out.front() == '\'')) out.insert(0, "\\&");
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }

std::string section(Lang lang, std::string_view id) { return ".SH " + std::string(text(lang, id)) + "\n"; }

std::string row(const std::string& term, std::string_view about) {
  return ".TP\n" + term + "\n" + escaped(about) + "\n";
}

// "--on MACHINE": the option's names in bold, the value as it is.
std::string option_term(std::string_view text) {
  const size_t space =
      text.find(" ", text.find_last_of(',') == std::string_view::npos ? 0 : text.find_last_of(',') + 2);
  if (space == std::string_view::npos) return bold(text);
  return bold(text.substr(0, space)) + " \\fI" + escaped(text.substr(space + 1)) + "\\fR";
}

std::string verb_names(const Field& f) {
  std::string out;
  for (const VerbEntry& v : verbs()) {
    if (f.of(v.verb)) out += (out.empty() ? "" : ", ") + std::string(v.name);
  }
  return out;
}

struct Variable {
  std::string_view name, about;
};
constexpr std::array<Variable, 11> kVariables = {{{"LC_ALL, LC_MESSAGES, LANG", "man.env.lang"},
                                                  {"NO_COLOR", "man.env.no_color"},
                                                  {"HF_ENDPOINT", "man.env.endpoint"},
                                                  {"HF_TOKEN, HF_TOKEN_PATH", "man.env.token"},
                                                  {"HF_HOME, HF_HUB_CACHE", "man.env.cache"},
                                                  {"HF_HUB_OFFLINE", "man.env.offline"},
                                                  {"HF_HUB_DOWNLOAD_TIMEOUT", "man.env.timeout"},
                                                  {"https_proxy, no_proxy", "man.env.proxy"},
                                                  {"SSL_CERT_FILE", "man.env.certificates"},
                                                  {"XDG_CACHE_HOME", "man.env.xdg"},
                                                  {"VRAM_CURL_LIBRARY, VRAM_NVML_LIBRARY", "man.env.libraries"}}};
constexpr std::array<std::string_view, 4> kStatuses = {"man.exit.0", "man.exit.1", "man.exit.2", "man.exit.3"};

}  // namespace

std::string manual(const Style& style) {
  const Lang lang = style.lang;
  std::string out = ".TH VRAM 1 \"\" \"vram " + std::string(kVersion) + "\" \"VRAM Ledger\"\n";
  out += section(lang, "man.name") + "vram \\- " + escaped(text(lang, "cli.tagline")) + "\n";
  out += section(lang, "man.synopsis");
  for (const VerbEntry& v : verbs()) {
    out += bold("vram " + std::string(v.name)) + " " + escaped(v.usage) + "\n.br\n";
  }
  out += section(lang, "man.description") + escaped(text(lang, "man.about")) + "\n";
  for (const VerbEntry& v : verbs()) {
    out += ".SS vram " + std::string(v.name) + "\n" + escaped(text(lang, v.summary)) + "\n";
    for (const Example& e : v.examples) out += row(bold(e.command), text(lang, e.about));
    for (const Option& o : v.options) {
      out += row(option_term(std::string(o.name) + (o.value.empty() ? "" : " " + std::string(o.value))),
                 text(lang, o.help));
    }
  }
  out += section(lang, "man.options");
  for (std::string_view group : field_groups()) {
    out += ".SS " + std::string(text(lang, "cli.group." + std::string(group))) + "\n";
    for (const Field& f : fields()) {
      if (f.group != group) continue;
      out += row(option_term(option_text(f)), help_text(style, f) + (lang == Lang::zh ? "（" : " (") + verb_names(f) +
                                                  (lang == Lang::zh ? "）" : ")"));
    }
  }
  out += ".SS " + std::string(text(lang, "cli.group.common")) + "\n";
  for (const Option& o : common_options()) {
    out +=
        row(option_term(std::string(o.name) + (o.value.empty() ? "" : " " + std::string(o.value))), text(lang, o.help));
  }
  out += ".PP\n" + escaped(text(lang, "cli.names_hint")) + "\n";
  out += section(lang, "man.exit");
  for (size_t i = 0; i < kStatuses.size(); ++i) out += row(bold(std::to_string(i)), text(lang, kStatuses[i]));
  out += section(lang, "man.environment");
  for (const Variable& v : kVariables) out += row(bold(v.name), text(lang, v.about));
  out += section(lang, "man.files");
  out += row(bold("~/.cache/vram-ledger"), text(lang, "man.files.own"));
  out += row(bold("~/.cache/huggingface"), text(lang, "man.files.hf"));
  return out;
}

}  // namespace vram::cli
