#include "report/serve.h"

#include <fmt/format.h>

#include <algorithm>

#include "serving/cache.h"

namespace vram {
namespace {

std::string tokens_per_second(double rate) { return format_number(rate, rate < 100 ? 1 : 0); }

std::string per_second(double bytes) { return format_gb(bytes, bytes >= 1e12 ? 2 : 0) + "/s"; }

std::string flops_text(double flops) {
  if (flops >= 1e15) return format_number(flops / 1e15, 2) + " PFLOP";
  if (flops >= 1e12) return format_number(flops / 1e12, 1) + " TFLOP";
  return format_number(flops / 1e9, 1) + " GFLOP";
}

std::string flops_rate(double flops) { return format_number(flops / 1e12, 0) + " TFLOPS"; }

class Report {
 public:
  Report(const ServeAnswer& answer, const Style& style) : a_(answer), s_(style), pooled_(answer.plan.pooled()) {}

  std::string text() const {
    std::string out = verdict() + "\n" + subject() + account() + speed() + levers();
    if (s_.steps) out += steps();
    if (s_.all && a_.ranks.size() > 1) out += ranks();
    out += s_.all || s_.explain ? assumed() : assumed_briefly();
    return out + "\n" + moves_most_line(s_, movers()) + next_line(s_, next());
  }

 private:
  template <class... Args>
  std::string say(std::string_view id, Args&&... args) const {
    return vram::say(s_.lang, id, args...);
  }
  std::string word(std::string_view id) const { return std::string(vram::text(s_.lang, id)); }
  std::string tokens() const { return with_commas(a_.plan.context.value); }

  std::string concurrency() const {
    if (!a_.concurrency_known) return "?";
    return a_.concurrency_unlimited ? "\u221e" : with_commas(a_.largest_concurrency);
  }

  std::string verdict() const {
    const Tone tone = a_.fits ? Tone::good : Tone::bad;
    const std::string room = format_gib(std::abs(a_.room_bytes));
    if (!a_.fits && (a_.worst().cache_room_bytes < 0 || !a_.concurrency_known)) {
      return answer_line(s_, tone, say("serving.fails_weights", fmt::arg("missing", format_gib(-worst_room()))));
    }
    if (!a_.fits) {
      return answer_line(s_, tone,
                         say("serving.fails", fmt::arg("missing", room), fmt::arg("asked", with_commas(a_.asked)),
                             fmt::arg("tokens", tokens()), fmt::arg("k", concurrency())));
    }
    if (!a_.concurrency_known) return answer_line(s_, tone, say("serving.fits_weights", fmt::arg("room", room)));
    if (a_.concurrency_unlimited) return answer_line(s_, tone, word("serving.fits_unlimited"));
    if (a_.plan.asked) {
      return answer_line(s_, tone,
                         say("serving.fits_asked", fmt::arg("asked", with_commas(a_.asked)),
                             fmt::arg("tokens", tokens()), fmt::arg("room", room), fmt::arg("k", concurrency())));
    }
    return answer_line(
        s_, tone,
        say("serving.fits", fmt::arg("k", concurrency()), fmt::arg("tokens", tokens()),
            fmt::arg("longest", a_.context_unlimited ? word("serving.any_length") : with_commas(a_.longest_context))));
  }

  Bytes worst_room() const {
    Bytes least = a_.worst().cache_room_bytes;
    for (const ServeRank& r : a_.ranks) least = std::min(least, r.cache_room_bytes);
    return least;
  }

  std::string subject() const {
    const ServePlan& plan = a_.plan;
    const Model& m = *plan.model;
    std::vector<std::string> model, machine;
    model.push_back(say("serving.model", fmt::arg("name", m.name.empty() ? word("serving.model_unnamed") : m.name),
                        fmt::arg("parameters", format_count(static_cast<double>(plan.parameters)))));
    if (m.hypothetical) model.push_back(word("train.hypothetical"));
    if (m.layers() > 0) model.push_back(say("serving.model_layers", fmt::arg("layers", m.layers())));
    std::string dtype = plan.weights_dtype;
    if (dtype == "checkpoint") dtype = m.quantization ? m.quantization->method : std::string(dtype_name(m.dtype));
    if (plan.given_weights) dtype = "--weights";
    model.push_back(
        say("serving.model_weights", fmt::arg("dtype", dtype), fmt::arg("bytes", format_gib(a_.weights_bytes))));
    if (a_.concurrency_known) {
      model.push_back(say("serving.model_kv", fmt::arg("dtype", plan.kv.name),
                          fmt::arg("bytes", with_commas(a_.kv_bytes_per_token))));
    }
    const Parallel& p = plan.parallel;
    machine.push_back(say("serving.machine", fmt::arg("machine", a_.machine.text),
                          fmt::arg("usable", format_gib(plan.rules.usable_bytes.value))));
    machine.push_back(plan.textbook ? say("serving.pooled", fmt::arg("cards", pooled_))
                                    : say("serving.parallel", fmt::arg("tp", p.tensor), fmt::arg("pp", p.pipeline),
                                          fmt::arg("dp", p.data)));
    if (p.expert > 1) machine.push_back(say("serving.parallel_expert", fmt::arg("ep", p.expert)));
    return fact_line(s_, model) + fact_line(s_, machine);
  }

  /// Lines of the ledger under one heading, one row an owner.
  struct Group {
    std::string owner;
    Category category;
    Bytes bytes = 0, low = 0, high = 0;
    std::vector<std::string> formulas;
  };
  std::vector<Group> groups(const std::vector<Category>& categories) const {
    std::vector<Group> out;
    for (const Line& line : a_.worst().ledger.lines) {
      if (std::find(categories.begin(), categories.end(), line.category) == categories.end()) continue;
      auto found = std::find_if(out.begin(), out.end(),
                                [&](const Group& g) { return g.owner == line.owner && g.category == line.category; });
      if (found == out.end()) {
        out.push_back({line.owner, line.category});
        found = out.end() - 1;
      }
      found->bytes += line.bytes;
      found->low += line.low;
      found->high += line.high;
      const std::string count = line.count == 1 ? "" : with_commas(line.count) + " x ";
      found->formulas.push_back(line.name + ": " + count + line.formula + " B");
    }
    return out;
  }

  std::string label(const Group& g) const {
    if (g.category == Category::kv_cache || g.category == Category::recurrent_state) {
      return word("serving.kind." + g.owner);
    }
    return word("serving.part." + g.owner);
  }

  void add(std::vector<TreeLine>& lines, std::string_view heading, std::string note,
           const std::vector<Category>& categories) const {
    const std::vector<Group> list = groups(categories);
    if (list.empty()) return;
    Bytes sum = 0, low = 0, high = 0;
    for (const Group& g : list) {
      sum += g.bytes;
      low += g.low;
      high += g.high;
    }
    lines.push_back({.label = word(heading),
                     .value = static_cast<double>(sum),
                     .amount = gib_with_range(sum, low, high),
                     .note = std::move(note),
                     .tone = Tone::strong});
    for (const Group& g : list) {
      lines.push_back({.label = label(g),
                       .value = -1,
                       .amount = gib_with_range(g.bytes, g.low, g.high),
                       .depth = 1,
                       .explanation = g.formulas});
    }
  }

  std::string account() const {
    const ServeRank& r = a_.worst();
    const Bytes memory = a_.plan.rules.usable_bytes.value * pooled_;
    std::string stage;
    if (r.rank.stages > 1) {
      stage = say("serving.account_stage", fmt::arg("stage", r.rank.stage + 1), fmt::arg("stages", r.rank.stages));
    }
    std::vector<TreeLine> lines;
    add(lines, "serving.line.weights", "", {Category::parameters});
    const std::string each = say("serving.line.each", fmt::arg("requests", with_commas(r.requests)),
                                 fmt::arg("bytes", format_gib(r.request_bytes)));
    add(lines, "serving.line.caches", each, {Category::kv_cache, Category::recurrent_state});
    add(lines, "serving.line.reserve", "",
        {Category::context, Category::communication, Category::workspace, Category::reserve});
    const Bytes left = memory - r.ledger.bytes;
    lines.push_back({.label = word("serving.line.total"),
                     .value = static_cast<double>(r.ledger.bytes),
                     .amount = gib_with_range(r.ledger.bytes, r.ledger.low, r.ledger.high),
                     .note = say("serving.line.of", fmt::arg("usable", format_gib(memory))),
                     .tone = left < 0 ? Tone::bad : Tone::plain,
                     .rule_above = true});
    lines.push_back({.label = word(left < 0 ? "serving.line.missing" : "serving.line.room"),
                     .value = -1,
                     .amount = format_gib(std::abs(left))});
    const std::string title =
        a_.plan.textbook ? word("serving.account_pooled") : say("serving.account", fmt::arg("stage", stage));
    return heading(s_, title) + tree(s_, lines, static_cast<double>(memory));
  }

  std::string reason(const Work& w, const Roofline& parts) const {
    const Rates& rates = a_.speed->rates;
    switch (parts.bound) {
      case Bound::bandwidth:
        return say("serving.speed.bytes", fmt::arg("bytes", format_gb(w.bytes)),
                   fmt::arg("rate", per_second(rates.bytes)));
      case Bound::compute:
        return say("serving.speed.flops", fmt::arg("flops", flops_text(w.flops)),
                   fmt::arg("rate", flops_rate(rates.flops)));
      case Bound::link:
        return say("serving.speed.sent", fmt::arg("bytes", format_gb(w.sent)),
                   fmt::arg("rate", per_second(rates.sent)));
    }
    return {};
  }

  bool decodes() const { return !a_.plan.kv_known || has_decoder(*a_.plan.model); }

  std::string speed() const {
    if (!a_.speed) return "\n" + paragraph(s_, word(decodes() ? "serving.no_speed" : "serving.no_decoder"));
    const ServeSpeed& sp = *a_.speed;
    Table table({{""}, {"", Align::right}, {"", Align::right}, {""}});
    table.row({word("serving.speed.one"),
               say("serving.speed.rate", fmt::arg("rate", tokens_per_second(sp.one.tokens_per_second))), "",
               reason(sp.one.work, sp.one.parts)});
    if (sp.full.requests > 1) {
      const double each = sp.full.tokens_per_second / static_cast<double>(sp.full.requests);
      table.row({say("serving.speed.full", fmt::arg("k", with_commas(sp.full.requests))),
                 say("serving.speed.rate", fmt::arg("rate", tokens_per_second(sp.full.tokens_per_second))),
                 say("serving.speed.each", fmt::arg("rate", tokens_per_second(each))),
                 reason(sp.full.work, sp.full.parts)});
    }
    table.row({say("serving.speed.prefill", fmt::arg("tokens", with_commas(sp.prefill.tokens))),
               format_seconds(sp.prefill.seconds), "", reason(sp.prefill.work, sp.prefill.parts)});
    std::string out = heading(s_, word("serving.speed")) + table.render(s_);
    if (sp.ridge_requests) {
      out += paragraph(s_, say("serving.ridge", fmt::arg("requests", with_commas(*sp.ridge_requests))));
    }
    if (sp.ridge_requests && a_.concurrency_known) {
      out += paragraph(
          s_, sp.ridge_requests_at_context
                  ? say("serving.ridge_context", fmt::arg("requests", with_commas(*sp.ridge_requests_at_context)))
                  : word("serving.ridge_never"));
    }
    out += paragraph(s_, word("serving.binding." + std::string(a_.binding)));
    std::vector<std::string> gains;
    for (const ServeWhatIf& w : sp.what_if) {
      gains.push_back(say("serving.what_if." + std::string(w.id), fmt::arg("gain", format_number(w.gain, 2)),
                          fmt::arg("k", with_commas(w.requests))));
    }
    std::string title = word("serving.what_if");
    return out + item_line(s_, title, gains);
  }

  std::string levers() const {
    if (a_.levers.empty()) return {};
    Table table({{word("serving.col.change")},
                 {word("serving.col.k"), Align::right},
                 {word("serving.col.room"), Align::right}});
    for (const ServeLever& l : a_.levers) {
      table.row({say("serving.lever." + std::string(l.id), fmt::arg("value", l.value)),
                 a_.concurrency_known ? with_commas(l.largest_concurrency) : "?",
                 format_gib(l.cache_room_bytes_per_card / pooled_)});
    }
    return heading(s_, word("serving.levers")) + table.render(s_);
  }

  std::string amount(const ServeStep& step, int64_t value) const {
    if (step.unit != "bytes" || step.id == "per_token") {
      return with_commas(value) + (step.unit == "bytes" ? " B" : "");
    }
    return format_gib(value, 3);
  }

  std::string steps() const {
    const bool pooled = a_.plan.textbook;
    std::string out = heading(s_, word(pooled ? "serving.steps_pooled" : "serving.steps"));
    Table table({{""},
                 {word("serving.col.step")},
                 {word("serving.col.ours"), Align::right},
                 {pooled ? "" : word("serving.col.textbook"), Align::right}});
    int n = 0;
    for (const ServeStep& step : a_.steps) {
      table.row({std::to_string(++n), word((pooled ? "serving.pooled." : "serving.step.") + std::string(step.id)),
                 amount(step, step.value), step.textbook ? amount(step, *step.textbook) : ""});
      const std::string unit = step.unit == "bytes" ? " B" : "";
      table.note(step.formula + unit);
      if (step.textbook && step.textbook_formula != step.formula) {
        table.note(word("serving.col.textbook") + ": " + step.textbook_formula + unit);
      }
      if (!step.why.empty()) table.note(word(step.why));
    }
    return out + table.render(s_);
  }

  std::string ranks() const {
    Table table({{word("serving.col.stage"), Align::right},
                 {word("serving.col.cards"), Align::right},
                 {word("serving.col.weights"), Align::right},
                 {word("serving.col.reserve"), Align::right},
                 {word("serving.col.room"), Align::right},
                 {word("serving.col.request"), Align::right}});
    for (const ServeRank& r : a_.ranks) {
      table.row({std::to_string(r.rank.stage + 1), with_commas(r.rank.ranks), format_gib(r.weights_bytes),
                 format_gib(r.reserve_bytes), format_gib(r.cache_room_bytes), format_gib(r.request_bytes)});
    }
    return heading(s_, word("serving.ranks")) + table.render(s_);
  }

  std::string assumed() const {
    std::string out = heading(s_, word("serving.assumed"));
    const auto item = [&](const std::string& text) { out += paragraph(s_, "- " + text, 2, 4); };
    for (const Remark& r : a_.plan.remarks) item(remark_text(s_.lang, r));
    for (const std::string& text : a_.plan.model->assumed(s_.lang)) item(text);
    for (const std::string& text : a_.machine.assumed(s_.lang)) item(text);
    return out;
  }

  // What the reader of the first lines must know; the rest comes with --explain.
  std::string assumed_briefly() const {
    std::vector<std::string> items = a_.plan.model->assumed(s_.lang);
    for (const std::string& text : a_.machine.assumed(s_.lang)) items.push_back(text);
    for (const Remark& r : a_.plan.remarks) {
      if (r.id == "serving.remark.context" || r.id == "serving.remark.beyond") items.push_back(remark_text(s_.lang, r));
    }
    return items.empty() ? std::string() : "\n" + item_line(s_, word("train.assumed"), items);
  }

  std::string value_of(const Constant& c, int64_t v) const {
    if (c.unit == "bytes" && v >= 100 * kMiB) return format_gib(v);
    if (c.unit == "bytes") return with_commas(v) + " B";
    if (c.unit == "permille") return format_number(static_cast<double>(v) / 1000, 2);
    return with_commas(v);
  }

  std::vector<std::string> movers() const {
    std::vector<std::string> out;
    for (const ServeMover& m : a_.movers) {
      const std::string name = word("serving.row." + m.row.id.substr(0, m.row.id.find('.')));
      const bool counts = m.concurrency_low != m.concurrency_high && a_.concurrency_known && !a_.concurrency_unlimited;
      out.push_back(say(counts ? "serving.mover" : "serving.mover_room", fmt::arg("name", name),
                        fmt::arg("value", value_of(m.row, m.row.value)), fmt::arg("low", value_of(m.row, m.row.low)),
                        fmt::arg("high", value_of(m.row, m.row.high)),
                        fmt::arg("k_low", with_commas(m.concurrency_low)),
                        fmt::arg("k_high", with_commas(m.concurrency_high))));
    }
    return out;
  }

  std::vector<std::string> next() const {
    std::vector<std::string> out;
    if (a_.plan.model->origin != "catalogue") return out;  // a name that can be typed again
    const std::string ask = "vram serve " + a_.plan.model->name + " --on " + a_.machine.text;
    if (!s_.explain) out.push_back(ask + " --explain");
    if (!s_.steps) out.push_back(ask + " --steps");
    return out;
  }

  const ServeAnswer& a_;
  const Style& s_;
  int64_t pooled_;
};

}  // namespace

std::string render(const ServeAnswer& answer, const Style& style) { return Report(answer, style).text(); }

}  // namespace vram
