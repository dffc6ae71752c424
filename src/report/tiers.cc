#include "report/tiers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace vram {
namespace {

std::string rate_text(double rate) {
  if (rate >= 1e12) return fmt::format("{:.3g} TB/s", rate / 1e12);
  if (rate >= 1e9) return fmt::format("{:.3g} GB/s", rate / 1e9);
  return fmt::format("{:.3g} MB/s", rate / 1e6);
}

std::string span_text(const Span& s) {
  if (s.low == s.high) return rate_text(s.value);
  // The unit of the value, once.
  const double unit = s.value >= 1e12 ? 1e12 : s.value >= 1e9 ? 1e9 : 1e6;
  return fmt::format("{} ({:.3g}-{:.3g})", rate_text(s.value), s.low / unit, s.high / unit);
}

std::string times(double ratio) { return fmt::format("×{:.{}f}", ratio, ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string share_text(double share) { return share < 1e-4 ? "< 0.01 %" : fmt::format("{:.2f} %", 100 * share); }
std::string tokens_up(double tokens) { return with_commas(static_cast<int64_t>(std::ceil(tokens))); }

class TiersReport {
 public:
  TiersReport(const TiersAnswer& answer, Lang lang, bool all)
      : a_(answer), c_(answer.checkpoint), lang_(lang), all_(all) {}

  Page page() {
    page_.title = a_.machine ? say("tiers.title", fmt::arg("machine", a_.machine->text)) : word("tiers.title_alone");
    subject();
    levels();
    offload();
    checkpoint();
    dataset();
    assumed();
    if (page_.verdicts.empty()) page_.verdicts.push_back({Tone::strong, word("tiers.stores_known")});
    return std::move(page_);
  }

 private:
  template <class... Args>
  std::string say(std::string_view id, Args&&... args) const {
    return vram::say(lang_, id, args...);
  }
  std::string word(std::string_view id) const { return std::string(text(lang_, id)); }

  void subject() {
    if (a_.training) {
      const Model& m = a_.training->model;
      std::vector<std::string> items = {
          m.name.empty() ? format_count(static_cast<double>(m.counts.parameters)) : m.name,
          say("models.parameters", fmt::arg("count", format_count(static_cast<double>(m.counts.parameters))))};
      page_.facts(std::move(items));
    }
    if (a_.machine) {
      page_.facts({say("fit.machine", fmt::arg("cards", with_commas(a_.machine->cards())),
                       fmt::arg("device", a_.machine->device.name),
                       fmt::arg("usable", format_gib(a_.machine->device.usable_bytes())))});
    }
  }

  void levels() {
    if (a_.levels.empty()) return;
    page_.heading(word("tiers.pyramid"));
    PageBlock& table = page_.table({{""},
                                    {word("tiers.size"), Align::right},
                                    {word("tiers.catalogue"), Align::right},
                                    {word("tiers.measured"), Align::right},
                                    {word("tiers.step"), Align::right},
                                    {""}});
    double low = 0, high = 0;
    for (const Level& l : a_.levels) {
      std::string size =
          l.bytes ? *l.bytes >= 1'000'000'000'000 ? format_gb(static_cast<double>(*l.bytes)) : format_gib(*l.bytes, 1)
                  : std::string();
      if (l.bytes && l.scope == "node") size += word("tiers.a_node");
      const bool assumed = l.measured && l.measured_basis == Basis::assumed;
      PageRow row;
      row.cells = {
          word("tiers.level." + l.id),      size,
          l.rate ? rate_text(*l.rate) : "", l.measured ? (assumed ? "~" : "") + rate_text(l.measured->value) : "",
          l.step ? times(*l.step) : "",     PageCell(l.detail, Tone::dim)};
      if (all_ && l.measured && l.measured->low < l.measured->high) {
        row.notes.push_back(say("tiers.range", fmt::arg("range", span_text(*l.measured))) +
                            (l.what.empty() ? "" : word("tiers.comma") + l.what));
      }
      if (all_ && !l.source.empty()) row.notes.push_back(l.source);
      table.rows.push_back(std::move(row));
      if (l.step) {
        low = low == 0 ? *l.step : std::min(low, *l.step);
        high = std::max(high, *l.step);
      }
    }
    page_.paragraph(word("tiers.pyramid_note"));
    const auto last =
        std::find_if(a_.levels.rbegin(), a_.levels.rend(), [](const Level& l) { return l.counted().has_value(); });
    const auto first =
        std::find_if(a_.levels.begin(), a_.levels.end(), [](const Level& l) { return l.counted().has_value(); });
    if (high > 0 && first->id != last->id) {
      page_.verdicts.push_back(
          {Tone::strong,
           say("tiers.verdict_levels", fmt::arg("machine", a_.machine->text),
               fmt::arg("fast", rate_text(*first->counted())), fmt::arg("first", word("tiers.level." + first->id)),
               fmt::arg("slow", rate_text(*last->counted())), fmt::arg("last", word("tiers.level." + last->id)),
               fmt::arg("low", times(low)), fmt::arg("high", times(high)))});
    }
  }

  std::string hides(const OffloadCase& c) const {
    if (!c.bound.compute_seconds) return word("tiers.unknown_speed");
    if (!c.device_fits) return word("tiers.device_full");
    if (c.host_fits && !*c.host_fits) return word("tiers.host_full");
    if (c.bound.all_hides) return word("tiers.hides");
    return word(c.bound.link_hides ? "tiers.link_only" : "tiers.stalls");
  }

  void offload() {
    if (a_.offload.empty()) return;
    page_.heading(word("tiers.offload"));
    PageBlock& table = page_.table({{""},
                                    {word("tiers.moved"), Align::right},
                                    {word("tiers.link"), Align::right},
                                    {word("tiers.host_pass"), Align::right},
                                    {word("tiers.tokens_link"), Align::right},
                                    {word("tiers.tokens_all"), Align::right},
                                    {""}});
    for (const OffloadCase& c : a_.offload) {
      PageRow row;
      const auto tokens = [&](const std::optional<double>& t) { return t ? tokens_up(*t) : std::string("-"); };
      const bool good = c.bound.all_hides && c.device_fits && c.host_fits.value_or(true);
      row.cells = {word("tiers.offload." + c.id),
                   format_gb(c.load.down_bytes + c.load.up_bytes),
                   format_seconds(c.bound.link_seconds),
                   format_seconds(c.bound.host_seconds + c.bound.disk_seconds),
                   tokens(c.bound.tokens_for_link),
                   tokens(c.bound.tokens_for_all),
                   PageCell(hides(c), good ? Tone::good : Tone::bad)};
      std::string note;
      if (c.measured && c.measured->tokens_for_link) {
        note = say("tiers.measured_link", fmt::arg("seconds", format_seconds(c.measured->link_seconds)),
                   fmt::arg("tokens", tokens_up(*c.measured->tokens_for_link)));
      }
      if (c.host_bytes_per_card > 0) {
        note += (note.empty() ? "" : word("tiers.comma")) +
                say("tiers.host_bytes", fmt::arg("bytes", format_gb(static_cast<double>(c.host_bytes_per_card))));
      }
      if (!note.empty()) row.notes.push_back(note);
      table.rows.push_back(std::move(row));
    }
    const TrainAnswer& t = *a_.training;
    page_.paragraph(say("tiers.offload_note",
                        fmt::arg("tokens", tokens_up(t.tokens_per_step / static_cast<double>(t.plan.cards())))));
    const OffloadCase& first = a_.offload.front();
    if (first.id == "optimizer" && first.bound.tokens_for_link) {
      page_.verdicts.push_back(
          {first.bound.all_hides ? Tone::good : Tone::strong,
           say("tiers.verdict_offload", fmt::arg("bytes", format_gb(first.load.down_bytes + first.load.up_bytes)),
               fmt::arg("seconds", format_seconds(first.bound.link_seconds)),
               fmt::arg("tokens", tokens_up(*first.bound.tokens_for_link)))});
    }
  }

  void interval(const SaveInterval& i) {
    page_.paragraph(say("tiers.interval", fmt::arg("best", format_seconds(i.exact)),
                        fmt::arg("share", percent(i.efficiency)), fmt::arg("young", format_seconds(i.young)),
                        fmt::arg("daly", format_seconds(i.daly)), fmt::arg("mtbf", format_seconds(i.mtbf)),
                        fmt::arg("cost", format_seconds(i.cost)), fmt::arg("restore", format_seconds(i.restore))));
  }

  void checkpoint() {
    if (!c_.bytes && !all_ && (a_.machine || a_.dataset)) return;
    page_.heading(word("tiers.checkpoint"));
    if (!c_.kinds.empty()) {
      PageBlock& table =
          page_.table({{""}, {word("tiers.per_parameter"), Align::right}, {word("tiers.bytes"), Align::right}, {""}});
      for (const CheckpointKind& k : c_.kinds) {
        table.rows.push_back(
            {.cells = {word("tiers.kind." + k.id), fmt::format("{:.4g}", k.bytes_per_parameter),
                       format_gb(static_cast<double>(k.bytes)), PageCell(word("tiers.kind_note." + k.id), Tone::dim)}});
      }
    }
    if (c_.bytes) {
      const std::string size = format_gb(static_cast<double>(*c_.bytes));
      if (c_.chosen && c_.chosen->write_seconds) {
        const SaveTo& to = *c_.chosen;
        page_.verdicts.push_back({Tone::strong, say("tiers.verdict_checkpoint", fmt::arg("size", size),
                                                    fmt::arg("seconds", format_seconds(*to.write_seconds)),
                                                    fmt::arg("rate", rate_text(to.write.value)))});
        page_.paragraph(say("tiers.save", fmt::arg("size", size), fmt::arg("rate", rate_text(to.write.value)),
                            fmt::arg("seconds", format_seconds(*to.write_seconds)),
                            fmt::arg("read", to.read_seconds ? format_seconds(*to.read_seconds) : "-")));
        if (to.interval) interval(*to.interval);
      }
      if (c_.bytes_per_node && a_.machine->nodes > 0) {
        page_.paragraph(say("tiers.staged", fmt::arg("bytes", format_gb(static_cast<double>(*c_.bytes_per_node)))) +
                        (c_.snapshot_seconds
                             ? say("tiers.snapshot", fmt::arg("seconds", format_seconds(*c_.snapshot_seconds)))
                             : ""));
      }
    }
    if (!c_.chosen || all_ || !c_.bytes) stores();
  }

  void stores() {
    PageBlock& table = page_.table({{word("tiers.store")},
                                    {word("tiers.writes"), Align::right},
                                    {word("tiers.reads"), Align::right},
                                    {word("tiers.one_save"), Align::right},
                                    {word("tiers.best_interval"), Align::right},
                                    {word("tiers.useful"), Align::right}});
    for (const SaveTo& s : c_.stores) {
      PageRow row;
      row.cells = {s.link_bound ? s.name + " " + word("tiers.by_links") : s.name,
                   (s.basis == Basis::assumed ? "~" : "") + rate_text(s.write.value),
                   rate_text(s.read.value),
                   s.write_seconds ? format_seconds(*s.write_seconds) : "",
                   s.interval ? format_seconds(s.interval->exact) : "",
                   s.interval ? percent(s.interval->efficiency) : ""};
      if (all_) row.notes.push_back(s.id + " · " + s.source);
      table.rows.push_back(std::move(row));
    }
    page_.paragraph(word("tiers.stores_note"));
  }

  void dataset() {
    if (!a_.dataset) return;
    const DatasetAnswer& d = *a_.dataset;
    page_.heading(word("tiers.data"));
    PageBlock& table =
        page_.table({{""}, {word("tiers.bytes"), Align::right}, {word("tiers.read_rate"), Align::right}, {""}});
    const auto row = [&](int bytes_per_token, double bytes) {
      std::string share;
      if (d.tokens_per_second && d.store_bytes_per_second) {
        share = say("tiers.share_of_store",
                    fmt::arg("share", share_text(bytes_per_token * *d.tokens_per_second / *d.store_bytes_per_second)));
      }
      table.rows.push_back(
          {.cells = {say("tiers.bytes_a_token", fmt::arg("n", bytes_per_token)), format_gb(bytes),
                     d.tokens_per_second ? rate_text(bytes_per_token * *d.tokens_per_second) : "-", share}});
    };
    row(2, d.bytes_2);
    row(4, d.bytes_4);
    if (d.tokens_per_second) {
      page_.paragraph(say("tiers.tokens_per_second", fmt::arg("tokens", format_count(d.tokens)),
                          fmt::arg("rate", format_count(*d.tokens_per_second))));
    }
    page_.verdicts.push_back(
        {Tone::strong, say(d.tokens_per_second ? "tiers.verdict_data_rate" : "tiers.verdict_data",
                           fmt::arg("tokens", format_count(d.tokens)), fmt::arg("two", format_gb(d.bytes_2)),
                           fmt::arg("four", format_gb(d.bytes_4)),
                           fmt::arg("rate", d.tokens_per_second ? rate_text(2 * *d.tokens_per_second) : ""))});
  }

  void assumed() {
    std::vector<std::string> items;
    if (!a_.layout.empty()) {
      std::string options;
      for (const std::string& o : a_.layout) options += (options.empty() ? "" : " ") + o;
      items.push_back(say("sheet.assume.layout", fmt::arg("options", options)));
    }
    const bool intervals = c_.bytes && c_.mtbf;
    if (intervals && c_.mtbf_assumed)
      items.push_back(say("tiers.assume.mtbf", fmt::arg("mtbf", format_seconds(*c_.mtbf))));
    if (intervals && c_.restart_assumed)
      items.push_back(say("tiers.assume.restart", fmt::arg("seconds", format_seconds(c_.restart))));
    for (const Level& l : a_.levels) {
      if (l.id == "disk") items.push_back(say("tiers.assume.disk", fmt::arg("disk", l.detail)));
      if (l.id == "host" && l.measured && !a_.offload.empty()) {
        items.push_back(say("tiers.assume.host", fmt::arg("rate", span_text(*l.measured))));
      }
    }
    if (a_.training) {
      for (const Note& n : a_.training->assumptions) items.push_back(vram::say(lang_, n));
    }
    if (a_.machine) {
      for (const std::string& t : a_.machine->assumed(lang_)) items.push_back(t);
    }
    page_.list(word("train.assumed"), std::move(items));
  }

  const TiersAnswer& a_;
  const CheckpointAnswer& c_;
  Lang lang_;
  bool all_;
  Page page_;
};

}  // namespace

Page tiers_page(const TiersAnswer& answer, Lang lang, bool all) { return TiersReport(answer, lang, all).page(); }

}  // namespace vram
