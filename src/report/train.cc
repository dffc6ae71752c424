#include "report/train.h"

#include <fmt/format.h>

#include <algorithm>

namespace vram {
namespace {

// Three digits at least: 1.12 TB, 350.0 GB.
std::string bytes_pair(double bytes) { return format_gb(bytes, bytes >= 1e12 ? 2 : 1); }

// Storages and data rows by the names a reader knows.
std::string storage_text(Lang lang, const std::string& name) {
  constexpr std::string_view kGradient = "gradient of ";
  if (name.compare(0, kGradient.size(), kGradient) == 0) {
    return say(lang, "train.gradient_of", fmt::arg("name", storage_text(lang, name.substr(kGradient.size()))));
  }
  const std::string row(text_or(lang, "row." + name.substr(0, name.find('.')), {}));
  return row.empty() ? std::string(text_or(lang, "storage." + name, name)) : row;
}

std::string headline(const TrainAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  const std::string peak = gib_with_range(a.device.bytes, a.device.low, a.device.high);
  const std::string when = a.device.when.empty() ? "" : "   (" + when_text(a.device.when, lang) + ")";
  std::string rank;
  if (a.plan.pp > 1) rank = say(lang, "train.on_rank", fmt::arg("rank", a.worst), fmt::arg("ranks", a.plan.pp));
  if (!a.usable) {
    return answer_line(style, Tone::strong,
                       say(lang, "train.peak_only", fmt::arg("peak", peak), fmt::arg("rank", rank)) + when);
  }
  const std::string usable = format_gib(*a.usable);
  const Bytes room = *a.usable - a.device.bytes;
  const char* id = a.device.bytes > *a.usable ? "train.does_not_fit"
                   : !a.host_fits()           ? "train.host_too_small"
                                              : "train.fits";
  std::string line = say(lang, id, fmt::arg("peak", peak), fmt::arg("usable", usable),
                         fmt::arg("room", format_gib(std::abs(room))), fmt::arg("rank", rank));
  if (a.doubtful()) line += say(lang, "train.doubtful");
  return answer_line(style, a.fits() ? Tone::good : Tone::bad, line + when);
}

std::string identity(const TrainAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  std::vector<std::string> parts{
      a.model.name,
      say(lang, "models.parameters", fmt::arg("count", format_count(static_cast<double>(a.model.counts.parameters))))};
  if (a.model.hypothetical) parts.push_back(say(lang, "train.hypothetical"));
  parts.push_back(a.machine ? a.machine->text : say(lang, "train.no_machine", fmt::arg("cards", a.plan.cards())));
  const Plan& p = a.plan;
  parts.push_back(fmt::format("{} {} {}", task_name(p.task), precision_name(p.precision), optimizer_name(p.optimizer)));
  std::string groups;
  const auto group = [&](const char* name, int64_t n) {
    if (n > 1) groups += fmt::format("{}{} {}", groups.empty() ? "" : " ", name, n);
  };
  group("tp", p.tp);
  group("cp", p.cp);
  group("pp", p.pp);
  group("vpp", p.vpp);
  group("ep", p.ep);
  group("dp", p.dp);
  if (p.zero > 0) groups += fmt::format("{}zero {}", groups.empty() ? "" : " ", p.zero);
  if (!groups.empty()) parts.push_back(groups);
  if (p.textbook) parts.push_back(say(lang, "train.textbook"));
  std::string line;
  for (const std::string& part : parts)
    line += std::string(line.empty() ? std::string_view() : separator(style)) + part;
  return paragraph(style, line);
}

std::string note_of(const TrainAnswer& a, Category category) {
  const Plan& p = a.plan;
  const auto shards = [&](int64_t stage) {
    return p.zero >= stage && p.shard_group > 1 ? fmt::format(" 1/{}", with_commas(p.shard_group)) : std::string();
  };
  switch (category) {
    case Category::parameters:
      return (p.task == Task::qlora ? "4-bit" : fmt::format("{} B", p.weight_bytes)) + shards(3);
    case Category::gradients:
      return p.frozen() ? "" : fmt::format("{} B", p.gradient_bytes + p.gradient_copy_bytes) + shards(2);
    case Category::optimizer:
      return std::string(optimizer_name(p.optimizer)) + (p.master_bytes > 0 && !p.frozen() ? " + fp32 master" : "") +
             shards(1);
    case Category::activations:
      return p.textbook ? ""
                        : fmt::format("recompute {}", recompute_name(p.recompute)) + (p.flash ? ", flash" : ", eager");
    default:
      return {};
  }
}

std::string account(const TrainAnswer& a, const Style& style) {
  std::vector<TreeLine> lines;
  double longest = 0;
  for (int c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    const Bytes bytes = a.device.of(category);
    if (bytes == 0) continue;
    Bytes low = 0, high = 0;
    TreeLine line;
    for (const Line& l : a.device.lines) {
      if (l.category != category) continue;
      low += l.low;
      high += l.high;
      const std::string count = l.count > 1 ? fmt::format("{} x ", with_commas(l.count)) : "";
      line.explanation.push_back(
          fmt::format("{}{} ({}): {} B", count, storage_text(style.lang, l.name), l.owner, l.formula));
    }
    line.label = say(style.lang, "category." + std::string(category_name(category)));
    line.value = static_cast<double>(bytes);
    longest = std::max(longest, line.value);
    line.amount = format_gib(bytes);
    line.note = note_of(a, category);
    if (high != low)
      line.note += (line.note.empty() ? "" : "; ") + fmt::format("{} - {}", format_gib(low), format_gib(high));
    lines.push_back(std::move(line));
  }
  TreeLine sum;
  sum.label = say(style.lang, "train.total");
  sum.value = -1;
  sum.amount = format_gib(a.device.bytes);
  sum.rule_above = true;
  sum.note = bytes_pair(static_cast<double>(a.device.bytes));
  lines.push_back(std::move(sum));
  return tree(style, lines, longest);
}

// Every pipeline rank with its categories; without --all only where there are few.
std::string rank_table(const TrainAnswer& a, const Style& style) {
  constexpr size_t kFew = 8;
  if (a.peaks.size() < 2 || (a.peaks.size() > kFew && !style.all)) return {};
  const Lang lang = style.lang;
  std::vector<Category> shown;
  for (int c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    if (category != Category::workspace && category != Category::context &&
        std::any_of(a.rank_ledgers.begin(), a.rank_ledgers.end(),
                    [&](const Ledger& l) { return l.of(category) > 0; })) {
      shown.push_back(category);
    }
  }
  std::vector<Column> columns{{std::string(text(lang, "train.rank")), Align::right},
                              {std::string(text(lang, "train.peak")), Align::right}};
  for (Category c : shown) columns.push_back({say(lang, "category." + std::string(category_name(c))), Align::right});
  Table table(std::move(columns));
  for (size_t r = 0; r < a.peaks.size(); ++r) {
    std::vector<Cell> cells{std::to_string(r), format_number(static_cast<double>(a.peaks[r]) / kGiB, 2)};
    for (Category c : shown) cells.push_back(format_number(static_cast<double>(a.rank_ledgers[r].of(c)) / kGiB, 2));
    table.row(std::move(cells));
  }
  return "\n" + table.render(style);
}

void module_rows(const Node& node, int depth, std::vector<TreeLine>& lines, double& longest) {
  for (const Node& child : node.children) {
    if (child.count > 0) continue;  // a storage
    TreeLine line;
    line.label = child.name;
    line.value = static_cast<double>(child.bytes);
    line.amount = format_gib(child.bytes);
    line.depth = depth;
    longest = std::max(longest, line.value);
    lines.push_back(std::move(line));
    module_rows(child, depth + 1, lines, longest);
  }
}

// The same bytes by owner, with --all.
std::string module_view(const TrainAnswer& a, const Style& style) {
  if (!style.all) return {};
  std::vector<TreeLine> lines;
  double longest = 0;
  module_rows(view(a.device, View::module), 0, lines, longest);
  return heading(style, text(style.lang, "train.by_module")) + tree(style, lines, longest);
}

std::string states_line(const TrainAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  const auto words = [&](const StateBytes& s) {
    return say(lang, "train.states_words", fmt::arg("weights", bytes_pair(static_cast<double>(s.weights + s.adapters))),
               fmt::arg("gradients", bytes_pair(static_cast<double>(s.gradients))),
               fmt::arg("optimizer", bytes_pair(static_cast<double>(s.optimizer))),
               fmt::arg("total", bytes_pair(static_cast<double>(s.total()))));
  };
  std::string out = paragraph(style, say(lang, "train.states_all", fmt::arg("words", words(a.states_all))));
  if (a.states.total() != a.states_all.total())
    out += paragraph(style, say(lang, "train.states_card", fmt::arg("words", words(a.states))));
  if (a.cards_for_states && a.usable && a.states_all.total() > *a.usable) {
    out += paragraph(style, say(lang, "train.cards_for_states", fmt::arg("cards", with_commas(*a.cards_for_states)),
                                fmt::arg("size", format_gib(*a.usable))));
  }
  if (a.host.bytes > 0) {
    out += paragraph(style, say(lang, "train.host", fmt::arg("card", bytes_pair(static_cast<double>(a.host.bytes))),
                                fmt::arg("all", bytes_pair(static_cast<double>(a.host_all)))));
  }
  return out;
}

std::string time_lines(const TrainAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  std::string out;
  out += paragraph(style, say(lang, "train.flops", fmt::arg("token", fmt::format("{:.3g}", a.flops.per_token())),
                              fmt::arg("textbook", fmt::format("{:.3g}", a.flops.textbook_per_token)),
                              fmt::arg("attention", fmt::format("{:.1f} %", 100 * a.flops.attention_per_token /
                                                                                std::max(1.0, a.flops.per_token())))));
  if (a.time) {
    out += paragraph(style, say(lang, "train.time", fmt::arg("tokens", format_count(*a.tokens)),
                                fmt::arg("flops", fmt::format("{:.3g}", a.time->flops)),
                                fmt::arg("time", format_seconds(a.time->seconds)),
                                fmt::arg("mfu", fmt::format("{:.3g} %", 100 * a.time->mfu)),
                                fmt::arg("hours", format_number(a.time->card_hours, 0)),
                                fmt::arg("rate", format_count(a.time->tokens_per_second))));
    out += paragraph(style, say(lang, "train.dataset", fmt::arg("two", format_gb(2 * *a.tokens)),
                                fmt::arg("four", format_gb(4 * *a.tokens)),
                                fmt::arg("rate2", format_gb(2 * a.time->tokens_per_second, 2)),
                                fmt::arg("rate4", format_gb(4 * a.time->tokens_per_second, 2))));
    if (a.time->price)
      out += paragraph(style, say(lang, "train.price", fmt::arg("usd", format_number(*a.time->price, 0))));
  } else if (a.tokens) {
    out += paragraph(style, say(lang, "train.no_time"));
  }
  std::vector<std::string> traffic;
  const auto add = [&](const char* id, double bytes) {
    if (bytes > 0) traffic.push_back(std::string(text(lang, id)) + " " + format_gb(bytes));
  };
  add("train.traffic.dp", a.traffic.data_parallel);
  add("train.traffic.tp", a.traffic.tensor_parallel);
  add("train.traffic.cp", a.traffic.context_parallel);
  add("train.traffic.pp", a.traffic.pipeline_parallel);
  add("train.traffic.ep", a.traffic.expert_parallel);
  add("train.traffic.host", a.traffic.host);
  if (!traffic.empty()) out += item_line(style, text(lang, "train.traffic"), traffic);
  if (a.offload) {
    std::string hide;
    if (a.offload->tokens_to_hide) {
      hide = say(lang, "train.offload_hide",
                 fmt::arg("tokens", with_commas(static_cast<int64_t>(*a.offload->tokens_to_hide + 0.999))));
    }
    out += paragraph(style, say(lang, "train.offload", fmt::arg("bytes", format_gb(a.offload->bytes_per_step)),
                                fmt::arg("one", format_number(a.offload->seconds_one_way, 4)),
                                fmt::arg("duplex", format_number(a.offload->seconds_duplex, 3))) +
                                hide);
  }
  return out;
}

std::string step_line(const WorkedStep& s, int n, Lang lang) {
  const bool one_line = s.title.id == "train.step.line";
  const std::string title = one_line
                                ? say(lang, s.title.id, fmt::arg("name", storage_text(lang, s.title.args[0].second)),
                                      fmt::arg("owner", s.title.args[1].second))
                                : say(lang, s.title);
  const std::string bytes = with_commas(s.bytes) + " B = " + format_gb(static_cast<double>(s.bytes), 2);
  if (s.expression.empty()) return fmt::format("{:>2}. {}: {}", n, title, bytes);
  // The formula of one instance ends in its value already.
  if (s.count == 1)
    return fmt::format("{:>2}. {}: {} B = {}", n, title, s.expression, format_gb(static_cast<double>(s.bytes), 2));
  return fmt::format("{:>2}. {}: {} x ({}) = {}", n, title, with_commas(s.count), s.expression, bytes);
}

std::string worked(const TrainAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  std::string out = heading(style, text(lang, "train.steps"));
  int n = 0;
  for (const WorkedStep& s : a.steps) {
    const std::string line = step_line(s, ++n, lang);
    out += wrap(style.unicode ? line : to_ascii(line), style.width, 2, 6);
    if (!s.textbook) continue;
    std::string difference;
    if (*s.textbook > 0) {
      difference =
          fmt::format(" ({:+.1f} %)", 100.0 * (static_cast<double>(s.bytes) / static_cast<double>(*s.textbook) - 1));
    }
    out += wrap(say(lang, "train.textbook_value", fmt::arg("value", format_gb(static_cast<double>(*s.textbook), 2))) +
                    difference,
                style.width, 6, 6);
    if (s.why) out += wrap(say(lang, *s.why), style.width, 6, 6);
  }
  return out;
}

}  // namespace

std::string when_text(const std::vector<Instant>& when, Lang lang) {
  std::string out;
  for (const Instant& i : when) {
    std::string part = say(lang, "when." + i.name);
    if (i.rounds > 1) part += " " + say(lang, "when.round", fmt::arg("round", i.round), fmt::arg("rounds", i.rounds));
    out += (out.empty() ? "" : ", ") + part;
  }
  return out;
}

std::string render(const TrainAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  std::string out = headline(a, style);
  out += identity(a, style);
  out += "\n" + account(a, style);
  if (a.timeline.size() > 8) {
    const double high = *std::max_element(a.timeline.begin(), a.timeline.end());
    out +=
        "\n  " + std::string(text(lang, "train.over_step")) + "   " + sparkline(style, a.timeline, 0, high, 56) + "\n";
  }
  if (a.plan.pp > 1) {
    std::vector<double> peaks(a.peaks.begin(), a.peaks.end());
    const double high = *std::max_element(peaks.begin(), peaks.end());
    const auto lowest = std::min_element(a.peaks.begin(), a.peaks.end());
    out += "  " + std::string(text(lang, "train.over_ranks")) + "   " +
           sparkline(style, peaks, 0, high, static_cast<int>(std::min<size_t>(peaks.size(), 56))) + "   " +
           say(lang, "train.rank_range", fmt::arg("low", format_gib(*lowest)),
               fmt::arg("high", format_gib(a.peaks[static_cast<size_t>(a.worst)]))) +
           "\n";
  }
  out += rank_table(a, style) + module_view(a, style);
  out += "\n" + states_line(a, style);
  out += time_lines(a, style);
  if (style.steps) out += worked(a, style);
  std::vector<std::string> assumptions;
  for (const Note& n : a.assumptions) assumptions.push_back(say(lang, n));
  for (const std::string& t : a.model.assumed(lang)) assumptions.push_back(t);
  if (a.machine) {
    for (const std::string& t : a.machine->assumed(lang)) assumptions.push_back(t);
  }
  if (!assumptions.empty()) out += "\n" + item_line(style, text(lang, "train.assumed"), assumptions);
  std::vector<std::string> movers;
  for (const Effect& e : a.movers) {
    if (movers.size() < 3) movers.push_back(effect_text(lang, e));
  }
  out += moves_most_line(style, movers);
  if (!style.explain || !style.steps) {
    std::vector<std::string> next;
    if (!style.explain) next.push_back("--explain");
    if (!style.steps) next.push_back("--steps");
    if (!a.fits()) {
      if (a.plan.recompute != Recompute::full && a.model.shape_known) next.push_back("--recompute full");
      if (a.plan.zero < 3 && a.plan.shard_group > 1) next.push_back("--zero 3");
      if (!a.plan.offload_optimizer) next.push_back("--offload optimizer");
    }
    out += next_line(style, next);
  }
  return out;
}

}  // namespace vram
