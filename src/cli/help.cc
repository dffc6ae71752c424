#include "cli/help.h"

#include <algorithm>

namespace vram::cli {
namespace {

// How a value is written in help: "fp32|bf16|both", "TOKENS".
std::string placeholder(const Field& f) {
  if (f.is_flag()) return {};
  if (!f.choices.empty()) {
    std::string out;
    for (std::string_view c : f.choices) out += (out.empty() ? "" : "|") + std::string(c);
    return out.size() <= 24 ? out : f.is_list() ? "LIST" : "NAME";
  }
  switch (f.unit) {
    case Unit::count:
      return "COUNT";
    case Unit::tokens:
      return "TOKENS";
    case Unit::bytes:
      return "BYTES";
    case Unit::bandwidth:
      return "RATE";
    case Unit::flops:
      return "RATE";
    case Unit::ratio:
      return "SHARE";
    case Unit::seconds:
      return "TIME";
    case Unit::money:
      return "USD";
    case Unit::none:
      break;
  }
  if (f.is_number()) return "N";
  if (f.name == "set") return "FIELD=VALUE";
  if (f.is_list()) return "LIST";
  return f.name == "on" ? "MACHINE" : "NAME";
}

void add_options(const Style& style, Table& table, std::span<const Option> options) {
  for (const Option& o : options) {
    const std::string name = std::string(o.name) + (o.value.empty() ? "" : " " + std::string(o.value));
    table.row({Cell(name, Tone::accent), text(style.lang, o.help)});
  }
}

}  // namespace

std::string option_text(const Field& f) {
  std::string out = option_name(f.name);
  // The short name that everybody types, if there is one.
  for (std::string_view a : f.aliases) {
    if (a.size() == 2 || a.size() == 3) {
      out += ", " + option_name(a);
      break;
    }
  }
  const std::string value = placeholder(f);
  return value.empty() ? out : out + " " + value;
}

std::string help_text(const Style& style, const Field& f) {
  std::string out(f.help(style.lang));
  const bool listed = placeholder(f).find('|') != std::string::npos;
  if (!f.choices.empty() && !listed) {
    out += style.lang == Lang::zh ? "：" : ": ";
    for (size_t i = 0; i < f.choices.size(); ++i) out += (i > 0 ? ", " : "") + std::string(f.choices[i]);
  }
  if (!f.fallback.empty()) out += " [" + std::string(f.fallback) + "]";
  if (style.all && !f.aliases.empty()) {
    std::string names;
    for (std::string_view a : f.aliases) names += (names.empty() ? "" : ", ") + option_name(a);
    out += "; " + say(style.lang, "cli.also", fmt::arg("names", names));
  }
  return out;
}

std::string overview(const Style& style) {
  const std::string tagline(text(style.lang, "cli.tagline"));
  std::string out = paint(style, Tone::strong, std::string("VRAM Ledger ") + kVersion) + "  " + tagline + "\n\n";
  Table examples(std::vector<Column>(2));
  size_t shown = 0;
  for (const VerbEntry& v : verbs()) {
    if (v.examples.empty() || shown == 3) continue;
    examples.row({Cell(v.examples.front().command, Tone::accent), text(style.lang, v.examples.front().about)});
    ++shown;
  }
  out += examples.render(style);
  out += heading(style, text(style.lang, "cli.verbs"));
  Table table(std::vector<Column>(2));
  for (const VerbEntry& v : verbs()) {
    if (!v.setup) table.row({Cell(v.name, Tone::accent), text(style.lang, v.summary)});
  }
  out += table.render(style);
  out += '\n' + paragraph(style, text(style.lang, "cli.help_hint"));
  return out + paragraph(style, text(style.lang, "cli.setup_hint"));
}

std::string help(const Style& style, const VerbEntry& verb) {
  std::string out = paint(style, Tone::strong, std::string(text(style.lang, "cli.usage")));
  out += (style.lang == Lang::zh ? "" : " ") + std::string("vram ") + std::string(verb.name) + " " +
         std::string(verb.usage) + "\n";
  out += '\n' + paragraph(style, text(style.lang, verb.summary));
  out += heading(style, text(style.lang, "cli.examples"));
  for (const Example& e : verb.examples) {
    out += "  " + paint(style, Tone::accent, e.command) + "\n" + paragraph(style, text(style.lang, e.about), 6, 6);
  }
  if (!verb.options.empty()) {
    out += heading(style, text(style.lang, "cli.group.verb"));
    Table table(std::vector<Column>(2));
    add_options(style, table, verb.options);
    out += table.render(style);
  }
  for (std::string_view group : field_groups()) {
    Table table(std::vector<Column>(2));
    for (const Field& f : fields()) {
      if (f.group != group || !f.of(verb.verb)) continue;
      table.row({Cell(option_text(f), Tone::accent), help_text(style, f)});
    }
    if (table.empty()) continue;
    out += heading(style, text(style.lang, "cli.group." + std::string(group)));
    out += table.render(style);
  }
  out += heading(style, text(style.lang, "cli.group.common"));
  Table common(std::vector<Column>(2));
  add_options(style, common, common_options());
  out += common.render(style);
  out += '\n' + paragraph(style, text(style.lang, "cli.names_hint"));
  out += paragraph(style, say(style.lang, "cli.exit_hint"));
  return out;
}

}  // namespace vram::cli
