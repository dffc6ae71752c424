#include "report/sheet.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/train.h"

namespace vram {
namespace {

constexpr size_t kLinesShown = 3;     // of one category, unless all are asked for
constexpr double kSmallShare = 0.01;  // of the peak: lines below are summed

std::string scientific(double value) { return fmt::format("{:.3g}", value); }
std::string gb(Bytes bytes) { return format_gb(static_cast<double>(bytes)); }

class SheetReport {
 public:
  SheetReport(const SheetAnswer& answer, Lang lang, bool all)
      : a_(answer), t_(answer.training), s_(answer.serving), lang_(lang), all_(all) {}

  Page page() {
    const std::string name =
        t_.model.name.empty() ? format_count(static_cast<double>(t_.model.counts.parameters)) : t_.model.name;
    page_.title = say("sheet.title", fmt::arg("model", name), fmt::arg("machine", s_.machine.text));
    verdicts();
    subject(name);
    memory();
    compute();
    capacity();
    assumptions();
    page_.footer = say("sheet.redo", fmt::arg("train", a_.train_command), fmt::arg("serve", a_.serve_command));
    return std::move(page_);
  }

 private:
  template <class... Args>
  std::string say(std::string_view id, Args&&... args) const {
    return vram::say(lang_, id, args...);
  }
  std::string word(std::string_view id) const { return std::string(text(lang_, id)); }

  std::string concurrency() const {
    if (!s_.concurrency_known) return "?";
    return s_.concurrency_unlimited ? "∞" : with_commas(s_.largest_concurrency);
  }

  void verdicts() {
    const Bytes usable = *t_.usable;
    const Bytes room = usable - t_.device.bytes;
    const char* id = room < 0 ? "train.does_not_fit" : !t_.host_fits() ? "train.host_too_small" : "train.fits";
    std::string rank;
    if (t_.plan.pp > 1) rank = say("train.on_rank", fmt::arg("rank", t_.worst), fmt::arg("ranks", t_.plan.pp));
    std::string line = say(id, fmt::arg("peak", gib_with_range(t_.device.bytes, t_.device.low, t_.device.high)),
                           fmt::arg("usable", format_gib(usable)), fmt::arg("room", format_gib(std::abs(room))),
                           fmt::arg("rank", rank));
    if (t_.doubtful()) line += word("train.doubtful");
    page_.verdicts.push_back({t_.fits() ? Tone::good : Tone::bad, say("sheet.training", fmt::arg("what", line))});
    if (t_.time) {
      page_.verdicts.push_back({Tone::strong, say("sheet.time", fmt::arg("time", format_seconds(t_.time->seconds)),
                                                  fmt::arg("hours", format_number(t_.time->card_hours, 0)),
                                                  fmt::arg("tokens", format_count(*t_.tokens))) +
                                                  money()});
    }
    std::string serving = s_.fits ? say("sheet.serves", fmt::arg("k", concurrency()), fmt::arg("tokens", tokens()))
                                  : say("sheet.serves_not", fmt::arg("missing", format_gib(std::abs(s_.room_bytes))));
    if (s_.fits && !s_.concurrency_known)
      serving = say("serving.fits_weights", fmt::arg("room", format_gib(s_.room_bytes)));
    page_.verdicts.push_back({s_.fits ? Tone::good : Tone::bad, say("sheet.serving", fmt::arg("what", serving))});
  }

  std::string tokens() const { return with_commas(s_.plan.context.value); }

  std::string money() const {
    if (!a_.cost) return {};
    const std::string low = format_number(a_.cost->low, 0);
    const std::string amount = a_.cost->low == a_.cost->high ? low : low + "-" + format_number(a_.cost->high, 0);
    return say("sheet.money", fmt::arg("usd", amount));
  }

  void subject(const std::string& name) {
    std::vector<std::string> model = {
        name, vram::say(lang_, "models.parameters", fmt::arg("count", with_commas(t_.model.counts.parameters)))};
    if (t_.model.counts.active > 0 && t_.model.counts.active != t_.model.counts.parameters) {
      model.push_back(say("sheet.active", fmt::arg("count", with_commas(t_.model.counts.active))));
    }
    if (t_.model.layers() > 0) model.push_back(say("models.layers", fmt::arg("count", t_.model.layers())));
    if (t_.model.hypothetical) model.push_back(word("train.hypothetical"));
    page_.facts(std::move(model));
    const Machine& m = s_.machine;
    std::vector<std::string> machine = {say("fit.machine", fmt::arg("cards", with_commas(m.cards())),
                                            fmt::arg("device", m.device.name),
                                            fmt::arg("usable", format_gib(*t_.usable)))};
    if (const auto flops = m.device.flops(Dtype::bf16)) {
      machine.push_back(say("sheet.peak_rate", fmt::arg("tflops", fmt::format("{:g}", *flops / 1e12))));
    }
    if (m.device.bandwidth) machine.push_back(format_gb(*m.device.bandwidth, 2) + "/s");
    page_.facts(std::move(machine));
    const Plan& p = t_.plan;
    std::vector<std::string> job = {
        fmt::format("{} {} {}", task_name(p.task), precision_name(p.precision), optimizer_name(p.optimizer)),
        say("sheet.sequence", fmt::arg("tokens", with_commas(p.sequence)), fmt::arg("n", p.micro_batch)),
        fmt::format("tp {} cp {} pp {} ep {} dp {}", p.tp, p.cp, p.pp, p.ep, p.dp), fmt::format("zero {}", p.zero),
        fmt::format("recompute {}", recompute_name(p.recompute))};
    if (p.textbook) job.push_back(word("train.textbook"));
    page_.facts(std::move(job));
  }

  // The largest lines of a category with their formulas; what is left out is summed.
  std::vector<std::string> formulas(Category category) const {
    std::vector<const Line*> lines;
    for (const Line& l : t_.device.lines) {
      if (l.category == category) lines.push_back(&l);
    }
    std::stable_sort(lines.begin(), lines.end(), [](const Line* x, const Line* y) { return x->bytes > y->bytes; });
    std::vector<std::string> out;
    Bytes rest = 0;
    size_t left = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      const Line& l = *lines[i];
      const bool small = i > 0 && static_cast<double>(l.bytes) < kSmallShare * static_cast<double>(t_.device.bytes);
      if (!all_ && (i >= kLinesShown || small)) {
        rest += l.bytes;
        ++left;
        continue;
      }
      // A data row's formula begins with its name.
      const std::string formula = l.count > 1 ? fmt::format("{} × ({})", with_commas(l.count), l.formula) : l.formula;
      out.push_back((formula.rfind(l.name, 0) == 0 ? formula : l.name + ": " + formula) + " B");
    }
    if (left > 0) out.push_back(say("sheet.smaller", fmt::arg("n", left), fmt::arg("bytes", gb(rest))));
    return out;
  }

  void memory() {
    page_.heading(word("sheet.memory"));
    PageBlock& table = page_.table(
        {{""}, {""}, {""}, {"GiB", Align::right}, {"GB", Align::right}, {word("sheet.range"), Align::right}});
    int n = 0;
    const auto gib = [](Bytes b) { return format_number(static_cast<double>(b) / static_cast<double>(kGiB), 2); };
    const auto decimal = [](Bytes b) { return format_number(static_cast<double>(b) / 1e9, 2); };
    for (int c = 0; c < kCategories; ++c) {
      const auto category = static_cast<Category>(c);
      const Bytes bytes = t_.device.of(category);
      if (bytes == 0) continue;
      Bytes low = 0, high = 0;
      for (const Line& l : t_.device.lines) {
        if (l.category != category) continue;
        low += l.low;
        high += l.high;
      }
      PageRow row;
      row.cells = {
          std::to_string(++n),
          word("category." + std::string(category_name(category))),
          PageCell::bar(static_cast<double>(bytes) / static_cast<double>(std::max(*t_.usable, t_.device.bytes))),
          gib(bytes),
          decimal(bytes),
          low == high ? "" : gib(low) + "-" + gib(high)};
      row.notes = formulas(category);
      table.rows.push_back(std::move(row));
    }
    PageRow sum;
    sum.sum = true;
    sum.cells = {"",
                 PageCell(word("train.total"), Tone::strong),
                 PageCell::bar(static_cast<double>(t_.device.bytes) / static_cast<double>(*t_.usable)),
                 PageCell(gib(t_.device.bytes), t_.fits() ? Tone::strong : Tone::bad),
                 decimal(t_.device.bytes),
                 t_.device.low == t_.device.high ? "" : gib(t_.device.low) + "-" + gib(t_.device.high)};
    table.rows.push_back(std::move(sum));
    table.rows.push_back({.cells = {"", word("sheet.usable"), "", gib(*t_.usable), decimal(*t_.usable)}});
    const StateBytes& all = t_.states_all;
    page_.paragraph(
        say("train.states_all",
            fmt::arg("words", say("train.states_words", fmt::arg("weights", gb(all.weights + all.adapters)),
                                  fmt::arg("gradients", gb(all.gradients)), fmt::arg("optimizer", gb(all.optimizer)),
                                  fmt::arg("total", gb(all.total()))))) +
        (t_.cards_for_states && *t_.cards_for_states > 1
             ? word("sheet.stop") + say("train.cards_for_states", fmt::arg("cards", with_commas(*t_.cards_for_states)),
                                        fmt::arg("size", format_gib(*t_.usable)))
             : ""));
    for (const WorkedStep& step : t_.steps) {
      if (!step.textbook || *step.textbook == 0) continue;
      const double off = 100.0 * (static_cast<double>(step.bytes) / static_cast<double>(*step.textbook) - 1);
      page_.paragraph(say("sheet.beside", fmt::arg("what", vram::say(lang_, step.title)),
                          fmt::arg("here", gb(step.bytes)), fmt::arg("textbook", gb(*step.textbook)),
                          fmt::arg("difference", fmt::format("{:+.1f} %", off))));
    }
    if (t_.host.bytes > 0) {
      page_.paragraph(
          say("train.host", fmt::arg("card", gb(t_.host.bytes)),
              fmt::arg("all", format_gb(static_cast<double>(t_.host.bytes) * static_cast<double>(t_.plan.cards())))));
    }
  }

  void compute() {
    page_.heading(word("sheet.compute"));
    PageBlock& table = page_.table({{""}, {"", Align::right}, {""}});
    const auto row = [&](std::string_view id, std::string value, std::string account) {
      table.rows.push_back({.cells = {word(id), std::move(value), PageCell(std::move(account), Tone::dim)}});
    };
    const double k = t_.plan.frozen() ? 4 : 6;
    const TrainingFlops& f = t_.flops;
    row("sheet.flops_token", scientific(f.per_token()),
        fmt::format("{:g}·N + {} = {:g}·{} + {}   ({} 6·N = {})", k, word("sheet.attention"), k,
                    format_count(f.matmul_per_token / k), scientific(f.attention_per_token), word("sheet.textbook"),
                    scientific(f.textbook_per_token)));
    row("sheet.tokens", format_count(*t_.tokens), word(a_.tokens_assumed ? "sheet.assumed" : "sheet.given"));
    if (t_.time) {
      const TrainingTime& time = *t_.time;
      row("sheet.flops", scientific(time.flops),
          fmt::format("{}·{}", scientific(f.per_token()), scientific(*t_.tokens)));
      row("sheet.days", format_seconds(time.seconds),
          fmt::format("{} / ({}·{:g} TFLOPS·{:.0f} %)", scientific(time.flops), with_commas(s_.machine.cards()),
                      time.peak_flops_per_card / 1e12, 100 * time.mfu) +
              (t_.mfu_assumed ? "   MFU: " + word("sheet.assumed") : ""));
      row("sheet.card_hours", format_number(time.card_hours, 0),
          fmt::format("{}·{} h", with_commas(s_.machine.cards()), format_number(time.seconds / 3600, 1)));
      if (a_.cost) {
        const Cost& c = *a_.cost;
        const bool one = c.low == c.high;
        row("sheet.usd", one ? format_number(c.low, 0) : format_number(c.low, 0) + "-" + format_number(c.high, 0),
            fmt::format("{}·{}{} USD", format_number(time.card_hours, 0), format_number(c.price_low, 2),
                        one ? "" : "-" + format_number(c.price_high, 2)));
      }
      row("sheet.rate", say("sheet.per_second", fmt::arg("n", format_count(time.tokens_per_second))),
          say("sheet.dataset", fmt::arg("two", format_gb(2 * *t_.tokens)), fmt::arg("four", format_gb(4 * *t_.tokens)),
              fmt::arg("rate", format_gb(4 * time.tokens_per_second, 2))));
    } else {
      page_.paragraph(word("train.no_time"));
    }
    const Traffic& traffic = t_.traffic;
    std::vector<std::string> sent;
    const auto add = [&](std::string_view id, double bytes) {
      if (bytes > 0) sent.push_back(word(id) + " " + format_gb(bytes));
    };
    add("train.traffic.dp", traffic.data_parallel);
    add("train.traffic.tp", traffic.tensor_parallel);
    add("train.traffic.cp", traffic.context_parallel);
    add("train.traffic.pp", traffic.pipeline_parallel);
    add("train.traffic.ep", traffic.expert_parallel);
    add("train.traffic.host", traffic.host);
    if (!sent.empty()) {
      std::string line;
      for (const std::string& s : sent) line += (line.empty() ? " " : " · ") + s;
      page_.paragraph(word("train.traffic") + line);
    }
  }

  std::string amount(const ServeStep& step, int64_t value) const {
    if (step.unit != "bytes" || step.id == "per_token") return with_commas(value) + (step.unit == "bytes" ? " B" : "");
    return format_gib(value);
  }

  std::string weights_dtype() const {
    if (s_.plan.given_weights) return "--weights";
    if (s_.plan.weights_dtype != "checkpoint") return s_.plan.weights_dtype;
    const Model& m = *s_.plan.model;
    return m.quantization ? m.quantization->method : std::string(dtype_name(m.dtype));
  }

  void capacity() {
    const bool pooled = s_.plan.textbook;
    page_.heading(word(pooled ? "sheet.capacity_pooled" : "sheet.capacity"));
    const Parallel& p = s_.plan.parallel;
    page_.facts({say("serving.parallel", fmt::arg("tp", p.tensor), fmt::arg("pp", p.pipeline), fmt::arg("dp", p.data)),
                 say("sheet.weights_dtype", fmt::arg("dtype", weights_dtype()),
                     fmt::arg("bytes", format_gib(s_.weights_bytes))),
                 say("sheet.kv_dtype", fmt::arg("dtype", s_.plan.kv.name)),
                 say("sheet.request", fmt::arg("tokens", tokens()))});
    PageBlock& table = page_.table({{""},
                                    {""},
                                    {word("serving.col.ours"), Align::right},
                                    {pooled ? "" : word("serving.col.textbook"), Align::right}});
    int n = 0;
    for (const ServeStep& step : s_.steps) {
      PageRow row;
      row.cells = {std::to_string(++n), word((pooled ? "serving.pooled." : "serving.step.") + std::string(step.id)),
                   amount(step, step.value), step.textbook ? amount(step, *step.textbook) : ""};
      row.notes.push_back(step.formula + (step.unit == "bytes" ? " B" : ""));
      if (all_ && step.textbook && step.textbook_formula != step.formula) {
        row.notes.push_back(word("serving.col.textbook") + ": " + step.textbook_formula);
      }
      table.rows.push_back(std::move(row));
    }
    if (!s_.steps.empty()) table.rows.back().cells[2].tone = s_.fits ? Tone::strong : Tone::bad;
    if (s_.concurrency_known && !s_.context_unlimited) {
      page_.paragraph(say("sheet.longest", fmt::arg("tokens", with_commas(s_.longest_context))));
    }
    if (s_.speed) {
      page_.paragraph(say("sheet.speed", fmt::arg("one", format_number(s_.speed->one.tokens_per_second, 0)),
                          fmt::arg("full", format_number(s_.speed->full.tokens_per_second, 0)),
                          fmt::arg("k", with_commas(s_.speed->full.requests)),
                          fmt::arg("prefill", format_seconds(s_.speed->prefill.seconds)),
                          fmt::arg("tokens", with_commas(s_.speed->prefill.tokens))) +
                      " " + word("serving.binding." + std::string(s_.binding)));
    }
  }

  void assumptions() {
    page_.heading(word("sheet.assumptions"));
    page_.facts(a_.assumed(lang_));
    std::vector<std::string> movers;
    for (const Effect& e : t_.movers) {
      if (movers.size() < 3) movers.push_back(vram::say(lang_, e.what));
    }
    page_.list(word("report.moves_most"), std::move(movers));
  }

  const SheetAnswer& a_;
  const TrainAnswer& t_;
  const ServeAnswer& s_;
  Lang lang_;
  bool all_;
  Page page_;
};

}  // namespace

Page sheet_page(const SheetAnswer& answer, Lang lang, bool all) { return SheetReport(answer, lang, all).page(); }

}  // namespace vram
