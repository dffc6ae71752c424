#include "report/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace vram {
namespace {

constexpr size_t kLongName = 60;

class DiffReport {
 public:
  DiffReport(const DiffAnswer& answer, Lang lang, bool all) : a_(answer), lang_(lang), all_(all) {}

  Page page() {
    page_.title = say("diff.title", fmt::arg("a", printable(a_.name_a, kLongName)),
                      fmt::arg("b", printable(a_.name_b, kLongName)));
    verdict();
    page_.facts({"A  " + printable(a_.name_a, 200)});
    page_.facts({"B  " + printable(a_.name_b, 200)});
    changes();
    for (std::string_view group :
         {"memory", "states", "host", "cache", "capacity", "speed", "compute", "time", "traffic"}) {
      quantities(group);
    }
    return std::move(page_);
  }

 private:
  template <class... Args>
  std::string say(std::string_view id, Args&&... args) const {
    return vram::say(lang_, id, args...);
  }
  std::string word(std::string_view id) const { return std::string(text(lang_, id)); }

  void verdict() {
    const Tone tone = !a_.fits_b() ? Tone::bad : Tone::good;
    if (a_.said.empty() && a_.resolved.empty()) {
      page_.verdicts.push_back({Tone::strong, word("diff.same")});
      return;
    }
    std::string line;
    if (a_.of == DiffOf::train) {
      const Bytes a = a_.train_a->device.bytes, b = a_.train_b->device.bytes;
      line = say(a == b ? "diff.peak_same" : "diff.peak", fmt::arg("a", format_gib(a)), fmt::arg("b", format_gib(b)),
                 fmt::arg("delta", signed_gib(b - a)));
    } else if (const DiffLine* k = a_.find("capacity", "largest_concurrency"); k && k->a && k->b) {
      line = say(*k->a == *k->b ? "diff.k_same" : "diff.k", fmt::arg("a", format_number(*k->a, 0)),
                 fmt::arg("b", format_number(*k->b, 0)));
    } else {
      line = say("diff.weights", fmt::arg("a", format_gib(a_.serve_a->weights_bytes)),
                 fmt::arg("b", format_gib(a_.serve_b->weights_bytes)));
    }
    line += word(a_.fits_a() ? (a_.fits_b() ? "diff.both_fit" : "diff.a_fits")
                             : (a_.fits_b() ? "diff.b_fits" : "diff.none_fits"));
    page_.verdicts.push_back({tone, line});
  }

  static std::string signed_gib(Bytes bytes) {
    return (bytes > 0 ? "+" : bytes < 0 ? "-" : "") + format_gib(std::abs(bytes));
  }

  std::string alone(const SaidChange& s) const {
    if (!s.alone) return word("diff.not_alone");
    if (*s.alone == 0) return word("diff.nothing");
    if (a_.of == DiffOf::train) return signed_gib(*s.alone);
    return fmt::format("K {}{}", *s.alone > 0 ? "+" : "-", with_commas(std::abs(*s.alone)));
  }

  void changes() {
    if (!a_.said.empty()) {
      page_.heading(word("diff.said"));
      PageBlock& table = page_.table(
          {{""}, {"A"}, {"B"}, {word(a_.of == DiffOf::train ? "diff.alone_peak" : "diff.alone_k"), Align::right}});
      for (const SaidChange& s : a_.said) {
        table.rows.push_back({.cells = {option_name(s.field), shown(s.a), shown(s.b), alone(s)}});
      }
    }
    if (!a_.resolved.empty()) {
      page_.heading(word("diff.resolved"));
      PageBlock& table = page_.table({{""}, {"A"}, {"B"}});
      for (const ResolvedChange& r : a_.resolved) table.rows.push_back({.cells = {r.key, r.a, r.b}});
    }
  }

  PageCell shown(const std::string& value) const {
    return value.empty() ? PageCell(word("diff.open"), Tone::dim) : PageCell(printable(value, kLongName));
  }

  std::string value_text(const DiffLine& l, const std::optional<double>& v, bool sign) const {
    if (!v) return "-";
    const double magnitude = sign ? std::abs(*v) : *v;
    std::string out;
    if (l.unit == "bytes") {
      // What a device holds is binary, what is sent is decimal; small figures are exact.
      if (l.group == "traffic") {
        out = format_gb(magnitude);
      } else if (std::abs(magnitude) < static_cast<double>(kMiB)) {
        out = with_commas(static_cast<int64_t>(magnitude)) + " B";
      } else {
        out = format_gib(static_cast<Bytes>(magnitude));
      }
    } else if (l.unit == "flops") {
      out = fmt::format("{:.3g}", magnitude);
    } else if (l.unit == "seconds") {
      out = format_seconds(magnitude);
    } else {
      out = format_number(magnitude, magnitude < 100 && l.unit == "tokens_per_second" ? 1 : 0);
    }
    return sign ? (*v < 0 ? "-" : "+") + out : out;
  }

  std::string label(const DiffLine& l) const {
    if (l.group == "memory" && a_.of == DiffOf::train && l.id != "peak_bytes" && l.id != "room_bytes") {
      return word("category." + l.id.substr(0, l.id.size() - std::string_view("_bytes").size()));
    }
    if (l.group == "states" && l.id != "total_bytes") {
      const std::string name = l.id.substr(0, l.id.size() - std::string_view("_bytes").size());
      return word("diff.line.states." + name);
    }
    return word("diff.line." + l.group + "." + l.id);
  }

  void quantities(std::string_view group) {
    std::vector<const DiffLine*> shown;
    for (const DiffLine& l : a_.lines) {
      if (l.group == group && (all_ || l.differs() || l.id == "peak_bytes")) shown.push_back(&l);
    }
    if (shown.empty() || (!all_ && a_.said.empty() && a_.resolved.empty())) return;
    page_.heading(word("diff.group." + std::string(group)));
    PageBlock& table = page_.table(
        {{""}, {"A", Align::right}, {"B", Align::right}, {word("diff.change"), Align::right}, {"B / A", Align::right}});
    for (const DiffLine* l : shown) {
      PageRow row;
      row.sum = l->id == "peak_bytes" || l->id == "total_bytes";
      row.cells = {PageCell(label(*l), row.sum ? Tone::strong : Tone::plain), value_text(*l, l->a, false),
                   value_text(*l, l->b, false)};
      if (l->a && l->b) {
        row.cells.emplace_back(l->differs() ? value_text(*l, *l->b - *l->a, true) : "=");
        row.cells.emplace_back(*l->a > 0 && *l->b >= 0 ? fmt::format("{:.2f}", *l->b / *l->a) : "");
      }
      table.rows.push_back(std::move(row));
    }
  }

  const DiffAnswer& a_;
  Lang lang_;
  bool all_;
  Page page_;
};

}  // namespace

Page diff_page(const DiffAnswer& answer, Lang lang, bool all) { return DiffReport(answer, lang, all).page(); }

}  // namespace vram
