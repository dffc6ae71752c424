#include "report/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace vram {
namespace {

std::string rate_text(double bytes_per_second) {
  if (bytes_per_second >= 1e12) return fmt::format("{:.2f} TB/s", bytes_per_second / 1e12);
  return fmt::format("{:.4g} GB/s", bytes_per_second / 1e9);
}

std::string rate_text(const std::optional<double>& rate) { return rate ? rate_text(*rate) : std::string(); }

std::string tflops(const std::optional<double>& flops) {
  return flops ? fmt::format("{:g}", *flops / 1e12) : std::string();
}

std::string dollars(double value) { return fmt::format("{:.2f}", value); }

std::string dtype_text(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return "fp32";
    case Dtype::f16:
      return "fp16";
    case Dtype::f8_e4m3:
      return "fp8";
    case Dtype::f4:
      return "fp4";
    case Dtype::i8:
      return "int8";
    default:
      return std::string(dtype_name(dtype));
  }
}

std::string times(const Style& style, double ratio) {
  return fmt::format("{}{:.{}f}", style.unicode ? "×" : "x", ratio, ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2);
}

std::string finished(const Style& style, std::string text) { return style.unicode ? text : to_ascii(text); }

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += between;
    out += part;
  }
  return out;
}

std::string local_lines(const GpusAnswer& answer, const Style& style) {
  const std::string title(text(style.lang, "gpus.here"));
  if (answer.local.empty()) {
    const std::string why = say(style.lang, "gpus.none_here", fmt::arg("why", answer.local_absent_because));
    return item_line(style, title, {why});
  }
  std::string out;
  for (const LocalFacts& facts : answer.local) {
    std::vector<std::string> items = {printable(facts.gpu.name)};
    items.push_back(say(style.lang, "gpus.total", fmt::arg("gib", format_gib(facts.gpu.total_bytes))));
    items.push_back(say(style.lang, "gpus.free", fmt::arg("gib", format_gib(facts.gpu.free_bytes))));
    items.push_back(say(style.lang, "gpus.driver", fmt::arg("version", facts.gpu.driver)));
    items.push_back(facts.device_id.empty() ? std::string(text(style.lang, "gpus.not_in_catalogue")) : facts.device_id);
    out += item_line(style, title, items);
  }
  return out;
}

// All names by vendor and architecture: eighty rows of figures would scroll away.
std::string names_by_architecture(const GpusAnswer& answer, const Style& style) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const GpuFacts& facts : answer.devices) {
    std::string group = facts.device.vendor + " " + facts.device.arch;
    if (facts.device.arch.compare(0, facts.device.vendor.size(), facts.device.vendor) == 0) group = facts.device.arch;
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == group; });
    auto& names = known == groups.end() ? groups.emplace_back(group, std::vector<std::string>{}).second : known->second;
    names.push_back(facts.device.name);
  }
  std::string out;
  for (const auto& group : groups) out += item_line(style, group.first + ":", group.second);
  return out;
}

std::string rent_text(const Device& d) {
  return d.rent_low ? dollars(*d.rent_low) + "-" + dollars(*d.rent_high) : std::string();
}

std::string table_of(const GpusAnswer& answer, const Style& style) {
  const auto title = [&](std::string_view id) { return std::string(text(style.lang, id)); };
  Table table({{title("gpus.device")},
               {title("gpus.sold"), Align::right},
               {title("gpus.usable"), Align::right},
               {title("gpus.bandwidth"), Align::right},
               {"bf16", Align::right},
               {"fp8", Align::right},
               {title("gpus.rent"), Align::right},
               {title("gpus.link"), Align::right}});
  for (const GpuFacts& facts : answer.devices) {
    const Device& d = facts.device;
    table.row({d.name, d.marketing_text, format_gib(d.usable_bytes()), rate_text(d.bandwidth), tflops(d.flops_bf16),
               tflops(d.flops_fp8), rent_text(d), d.scale_up ? rate_text(d.scale_up->bytes_per_second) : ""});
  }
  return table.render(style);
}

std::string render_list(const GpusAnswer& answer, const Style& style) {
  std::string out;
  const auto count = answer.devices.size();
  if (!answer.words.empty()) {
    out += answer_line(style, Tone::strong,
                       say(style.lang, "gpus.matching", fmt::arg("count", count), fmt::arg("known", answer.known),
                           fmt::arg("words", printable(joined(answer.words, " ")))));
    out += "\n" + table_of(answer, style);
  } else if (style.all) {
    out += answer_line(style, Tone::strong, say(style.lang, "gpus.all", fmt::arg("count", count)));
    out += "\n" + table_of(answer, style);
  } else {
    out += answer_line(style, Tone::strong, say(style.lang, "gpus.known", fmt::arg("count", count)));
    out += "\n" + names_by_architecture(answer, style);
  }
  if (answer.asked_local) out += "\n" + local_lines(answer, style);
  out += "\n" + next_line(style, {"vram gpus H100", "vram gpus --compare A100,H100", "vram gpus --all"});
  return out;
}

std::string memory_table(const Device& d, const Style& style) {
  const auto word = [&](std::string_view id) { return std::string(text(style.lang, id)); };
  Table table({{""}, {"", Align::right}, {""}});
  table.row({word("gpus.total.sold"), format_gib(d.marketing_bytes), d.marketing_text});
  table.row({word("gpus.total.driver"), d.driver_bytes ? format_gib(*d.driver_bytes) : word("gpus.unknown"), ""});
  std::string process = word("gpus.unknown");
  if (d.process_bytes_low) {
    process = format_gib(*d.process_bytes_low);
    if (*d.process_bytes_high != *d.process_bytes_low) {
      process = format_number(static_cast<double>(*d.process_bytes_low) / static_cast<double>(kGiB), 2) + "-" +
                format_gib(*d.process_bytes_high);
    }
  }
  table.row({word("gpus.total.process"), process, ""});
  table.row({{word("gpus.total.plan"), Tone::strong}, {format_gib(d.usable_bytes()), Tone::strong}, ""});
  return table.render(style);
}

std::string levels_table(const GpuFacts& facts, const Style& style) {
  const auto word = [&](std::string_view id) { return std::string(text(style.lang, id)); };
  Table table({{word("gpus.level")},
               {word("gpus.size"), Align::right},
               {word("gpus.rate"), Align::right},
               {word("gpus.measured"), Align::right},
               {word("gpus.step"), Align::right},
               {word("gpus.kind")}});
  for (const MemoryLevel& level : facts.levels) {
    std::string measured;
    if (level.measured_low) {
      measured = rate_text(*level.measured_low);
      if (*level.measured_high != *level.measured_low) measured += " - " + rate_text(*level.measured_high);
    }
    const bool specified = level.bytes_per_second && level.basis == Basis::exact;
    table.row({word("gpus.level." + level.name), level.bytes ? format_gib(*level.bytes) : "",
               specified ? rate_text(*level.bytes_per_second) : "", measured,
               level.step ? times(style, *level.step) : "", level.detail});
  }
  return table.render(style);
}

std::string rates_table(const GpuFacts& facts, const Style& style) {
  Table table({{std::string(text(style.lang, "gpus.format"))},
               {"TFLOPS", Align::right},
               {std::string(text(style.lang, "gpus.ridge")), Align::right}});
  for (const DtypeRate& rate : facts.rates) {
    table.row({dtype_text(rate.dtype), tflops(rate.flops_per_second),
               rate.ridge_flops_per_byte ? format_number(*rate.ridge_flops_per_byte, 0) : ""});
  }
  return table.render(style);
}

bool verified(const Device& d, std::string_view field) {
  return std::find(d.verified.begin(), d.verified.end(), field) != d.verified.end();
}

std::string render_one(const GpuFacts& facts, const Style& style) {
  const Device& d = facts.device;
  std::vector<std::string> head = {d.name, d.vendor + " " + d.arch, format_gib(d.usable_bytes())};
  if (d.bandwidth) head.push_back(rate_text(*d.bandwidth));
  if (const auto flops = d.flops(Dtype::f16)) {
    head.push_back(tflops(flops) + " TFLOPS " + (d.has_bf16 ? "bf16" : "fp16"));
  }
  std::string out = answer_line(style, Tone::strong, joined(head, separator(style)));
  if (facts.left_open) out += paragraph(style, text(style.lang, "gpus.left_open"));
  out += heading(style, text(style.lang, "gpus.memory")) + memory_table(d, style);
  out += heading(style, text(style.lang, "gpus.levels")) + levels_table(facts, style);
  if (!facts.rates.empty()) {
    out += heading(style, text(style.lang, "gpus.compute")) + rates_table(facts, style);
  }
  out += "\n";
  std::vector<std::string> facts_line;
  if (d.scale_up_cards > 0) {
    facts_line.push_back(say(style.lang, "gpus.bridge", fmt::arg("cards", d.scale_up_cards)));
  }
  facts_line.push_back(say(style.lang, "gpus.node", fmt::arg("cards", d.cards_per_node)));
  if (d.watts) facts_line.push_back(say(style.lang, "gpus.watts", fmt::arg("watts", fmt::format("{:g}", *d.watts))));
  if (!d.has_bf16) facts_line.push_back(std::string(text(style.lang, "gpus.no_bf16")));
  out += paragraph(style, joined(facts_line, separator(style)));
  if (d.rent_low) {
    out += paragraph(style, say(style.lang, verified(d, "rent_usd") ? "gpus.price" : "gpus.price_unverified",
                                fmt::arg("low", dollars(*d.rent_low)), fmt::arg("high", dollars(*d.rent_high))));
  }
  if (!d.notes.empty()) out += paragraph(style, say(style.lang, "gpus.notes", fmt::arg("notes", d.notes)));
  out += paragraph(style, say(style.lang, "gpus.source", fmt::arg("source", d.source)));
  if (!d.verified.empty()) {
    out += paragraph(style, say(style.lang, "gpus.verified", fmt::arg("fields", joined(d.verified, ", "))));
  }
  return out;
}

// "bf16_flops_per_second" -> "bf16"
std::string before(const std::string& what, std::string_view suffix) {
  if (what.size() <= suffix.size() || what.compare(what.size() - suffix.size(), suffix.size(), suffix) != 0) return {};
  return what.substr(0, what.size() - suffix.size());
}

std::string line_label(const std::string& what, const Style& style) {
  if (const std::string dtype = before(what, "_flops_per_second"); !dtype.empty()) return "TFLOPS " + dtype;
  if (const std::string dtype = before(what, "_ridge_flops_per_byte"); !dtype.empty()) {
    return say(style.lang, "gpus.line.ridge", fmt::arg("format", dtype));
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> labels = {
      {{"marketing_bytes", "gpus.line.marketing"},
       {"usable_bytes", "gpus.line.usable"},
       {"bandwidth_bytes_per_second", "gpus.line.bandwidth"},
       {"scale_up_bytes_per_second", "gpus.line.scale_up"},
       {"host_link_bytes_per_second", "gpus.line.host_link"},
       {"watts", "gpus.line.watts"},
       {"rent_low_usd_per_hour", "gpus.line.rent_low"},
       {"rent_high_usd_per_hour", "gpus.line.rent_high"}}};
  for (const auto& label : labels) {
    if (label.first == what) return std::string(text(style.lang, label.second));
  }
  return what;
}

std::string line_value(const std::string& what, double value) {
  if (!before(what, "_flops_per_second").empty()) return fmt::format("{:g}", value / 1e12);
  if (!before(what, "_ridge_flops_per_byte").empty()) return format_number(value, 0);
  if (!before(what, "_bytes_per_second").empty()) return rate_text(value);
  if (!before(what, "_bytes").empty()) return format_gib(static_cast<Bytes>(value));
  if (what == "watts") return fmt::format("{:g} W", value);
  return dollars(value);
}

std::optional<double> ratio_of(const GpusAnswer& answer, std::string_view what, size_t device) {
  for (const ComparisonLine& line : answer.comparison) {
    if (line.what == what) return line.ratios[device];
  }
  return std::nullopt;
}

std::string render_comparison(const GpusAnswer& answer, const Style& style) {
  std::string out;
  const std::string first = answer.devices.front().device.name;
  for (size_t i = 1; i < answer.devices.size(); ++i) {
    std::vector<std::string> ratios;
    const auto add = [&](std::string label, std::string_view what) {
      if (const auto ratio = ratio_of(answer, what, i)) ratios.push_back(label + " " + times(style, *ratio));
    };
    add("FLOPS bf16", "bf16_flops_per_second");
    add(std::string(text(style.lang, "gpus.word.bandwidth")), "bandwidth_bytes_per_second");
    add(std::string(text(style.lang, "gpus.word.memory")), "marketing_bytes");
    out += answer_line(style, Tone::strong,
                       say(style.lang, "gpus.compared", fmt::arg("other", answer.devices[i].device.name),
                           fmt::arg("first", first), fmt::arg("ratios", joined(ratios, separator(style)))));
  }
  std::vector<Column> columns = {{""}};
  for (size_t i = 0; i < answer.devices.size(); ++i) {
    columns.push_back({answer.devices[i].device.name, Align::right});
    if (i > 0) columns.push_back({"", Align::right});
  }
  Table table(columns);
  for (const ComparisonLine& line : answer.comparison) {
    std::vector<Cell> cells = {line_label(line.what, style)};
    for (size_t i = 0; i < line.values.size(); ++i) {
      cells.emplace_back(line.values[i] ? line_value(line.what, *line.values[i]) : "-");
      if (i > 0) cells.emplace_back(line.ratios[i] ? times(style, *line.ratios[i]) : "");
    }
    table.row(std::move(cells));
  }
  return out + "\n" + table.render(style);
}

}  // namespace

std::string render_gpus(const GpusAnswer& answer, const Style& style) {
  switch (answer.kind) {
    case GpusAnswer::Kind::list:
      return finished(style, render_list(answer, style));
    case GpusAnswer::Kind::one:
      return finished(style, render_one(answer.devices.front(), style));
    case GpusAnswer::Kind::comparison:
      return finished(style, render_comparison(answer, style));
  }
  return {};
}

}  // namespace vram
