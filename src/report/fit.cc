#include "report/fit.h"

#include <fmt/format.h>

#include <algorithm>

namespace vram {
namespace {

std::string join(const std::vector<std::string>& items, std::string_view between) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : std::string(between)) + item;
  return out;
}

std::string model_line(const Model& m, const Style& style) {
  const Lang lang = style.lang;
  std::vector<std::string> parts{
      say(lang, "models.parameters", fmt::arg("count", format_count(static_cast<double>(m.counts.parameters))))};
  if (m.shape_known && m.layers() > 0) {
    parts.push_back(say(lang, "models.layers", fmt::arg("count", m.layers())));
    const Attention& a = m.layer(m.layers() - 1).attention;
    if (a.kind == AttentionKind::mla)
      parts.push_back(say(lang, "fit.latent_heads", fmt::arg("heads", a.heads)));
    else if (a.heads > 0)
      parts.push_back(say(lang, "fit.heads", fmt::arg("heads", a.heads), fmt::arg("kv", a.kv_heads)));
  }
  if (m.hypothetical) parts.push_back(say(lang, "train.hypothetical"));
  parts.push_back(m.origin == "catalogue" ? std::string(text(lang, "models.from_catalogue"))
                  : m.origin == "by hand" ? std::string(text(lang, "models.by_hand"))
                  : m.origin == "by size" ? std::string(text(lang, "fit.by_size"))
                                          : m.origin);
  if (!m.name.empty()) parts.front() = m.name + "   " + parts.front();
  return fact_line(style, parts);
}

std::string how_text(const FitRow& row, bool offload_fits, const Style& style) {
  std::vector<std::string> parts;
  if (row.possible && !row.fits) {
    if (row.host_lacks) parts.push_back(std::string(text(style.lang, "fit.host_lacks")));
    parts.push_back(row.cards_needed ? say(style.lang, "fit.needs", fmt::arg("cards", with_commas(*row.cards_needed)))
                                     : say(style.lang, "fit.needs_more"));
    if (row.id == "full" && offload_fits) parts.push_back(say(style.lang, "fit.or_offload"));
  }
  for (const Note& n : row.how) parts.push_back(say(style.lang, n));
  return join(parts, separator(style));
}

}  // namespace

std::string render(const FitAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  const auto yes = std::count_if(a.rows.begin(), a.rows.end(), [](const FitRow& r) { return r.fits; });
  std::string out = answer_line(style, yes > 0 ? Tone::good : Tone::bad,
                                say(lang, "fit.answer", fmt::arg("yes", yes), fmt::arg("all", a.rows.size()),
                                    fmt::arg("machine", a.machine.text)));
  out += "\n" + model_line(a.model, style);
  const auto link = [](const Link& l) { return l.kind + " " + format_gb(l.bytes_per_second, 0) + "/s"; };
  std::vector<std::string> machine{say(lang, "fit.machine", fmt::arg("cards", with_commas(a.machine.cards())),
                                       fmt::arg("device", a.machine.device.name),
                                       fmt::arg("usable", format_gib(a.usable)))};
  if (a.machine.cards_per_node > 1 && !a.machine.device.memory_only) machine.push_back(link(a.machine.intra_node));
  if (a.machine.nodes > 1 && a.machine.inter_node) machine.push_back(link(*a.machine.inter_node));
  out += fact_line(style, machine);
  out += fact_line(style, {say(lang, "fit.settings", fmt::arg("sequence", with_commas(a.sequence)),
                               fmt::arg("micro_batch", a.micro_batch))});
  out += "\n";
  Table table({{std::string(text(lang, "fit.column.job"))},
               {std::string(text(lang, "fit.column.fits"))},
               {""},
               {std::string(text(lang, "fit.column.needed")), Align::right},
               {std::string(text(lang, "fit.column.room")), Align::right},
               {std::string(text(lang, "fit.column.how"))}});
  const bool offload_fits =
      std::any_of(a.rows.begin(), a.rows.end(), [](const FitRow& r) { return r.id == "full_offload" && r.fits; });
  for (const FitRow& r : a.rows) {
    const std::string name(text(lang, "fit.row." + r.id));
    if (!r.possible) {
      table.row({name, Cell("?", Tone::dim), "", "", "", Cell(how_text(r, offload_fits, style), Tone::dim)});
      continue;
    }
    table.row({name, Cell(text(lang, r.fits ? "word.yes" : "word.no"), r.fits ? Tone::good : Tone::bad),
               bar(style, static_cast<double>(r.needed), static_cast<double>(a.usable), 9), format_gib(r.needed, 1),
               format_gib(r.room, 1), how_text(r, offload_fits, style)});
    if (style.explain) table.note(r.command);
  }
  out += table.render(style);
  std::vector<std::string> movers;
  for (const Effect& e : a.movers) {
    if (movers.size() < 3) movers.push_back(effect_text(lang, e));
  }
  if (const auto assumed = a.assumed(lang); !assumed.empty())
    out += "\n" + item_line(style, text(lang, "train.assumed"), assumed);
  out += "\n" + moves_most_line(style, movers);
  const auto first = std::find_if(a.rows.begin(), a.rows.end(), [](const FitRow& r) { return r.id == "full"; });
  std::vector<std::string> next;
  if (first != a.rows.end() && first->possible) next.push_back(first->command + " --explain");
  next.push_back(a.rows.front().command);
  out += next_line(style, next);
  return out;
}

std::string render(const LargestAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  std::string out = answer_line(style, Tone::strong,
                                say(lang, "fit.largest", fmt::arg("tried", a.tried),
                                    fmt::arg("machine", a.machine.text), fmt::arg("usable", format_gib(a.usable))));
  out += "\n";
  Table table({{std::string(text(lang, "fit.column.job"))}, {std::string(text(lang, "fit.column.models"))}});
  for (const LargestRow& r : a.rows) {
    std::vector<std::string> models;
    for (const auto& e : r.models)
      models.push_back(fmt::format("{} ({}, {})", e.model, format_count(static_cast<double>(e.parameters)),
                                   format_gib(e.needed, 1)));
    table.row({std::string(text(lang, "fit.row." + r.id)),
               models.empty() ? std::string(text(lang, "fit.none")) : join(models, separator(style))});
  }
  out += table.render(style);
  out += next_line(style, {"vram fit MODEL --on " + a.machine.text});
  return out;
}

}  // namespace vram
