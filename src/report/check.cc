#include "report/check.h"

#include <fmt/format.h>

#include <algorithm>

namespace vram {
namespace {

Tone tone_of(Verdict v) { return v == Verdict::is_true ? Tone::good : v == Verdict::is_false ? Tone::bad : Tone::warn; }

std::string verdict_text(Verdict v, Lang lang) {
  return std::string(text(lang, "check.verdict." + std::string(verdict_name(v))));
}

std::string colon(Lang lang) { return lang == Lang::zh ? "：" : ": "; }

std::string reading_text(const CheckReading& r, Lang lang) {
  const std::string precision = r.precision == "checkpoint" ? std::string(text(lang, "check.published")) : r.precision;
  return say(lang, "check.reading." + r.id, fmt::arg("precision", precision));
}

std::string row_name(const CheckReading& r, Lang lang) {
  const std::string precision =
      r.precision == "checkpoint" ? std::string(text(lang, "check.row_published")) : r.precision;
  return say(lang, "check.row." + r.id, fmt::arg("precision", precision));
}

std::string how_text(const CheckReading& r, const Style& style) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : std::string(separator(style))) + part; };
  if (r.row.possible && !r.row.fits) {
    add(r.row.cards_needed ? say(style.lang, "fit.needs", fmt::arg("cards", with_commas(*r.row.cards_needed)))
                           : std::string(text(style.lang, "fit.needs_more")));
  }
  for (const Note& n : r.row.how) add(say(style.lang, n));
  return out;
}

std::string capacity_line(const CheckAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  const CheckReading* claimed = a.claimed();
  if (!claimed) {
    const char* id = a.verdict == Verdict::doubtful                       ? "check.open"
                     : (a.verdict == Verdict::is_true) != a.claim.negated ? "check.open_true"
                                                                          : "check.open_false";
    return std::string(text(lang, id));
  }
  const std::string reading = reading_text(*claimed, lang);
  if (!claimed->row.possible) return say(lang, "check.impossible", fmt::arg("reading", reading));
  if (a.claim.users && claimed->row.concurrency > 0) {
    return say(lang, "check.carries", fmt::arg("reading", reading),
               fmt::arg("k", with_commas(claimed->row.concurrency)), fmt::arg("context", with_commas(a.context)),
               fmt::arg("users", with_commas(*a.claim.users)));
  }
  return say(lang, claimed->row.fits ? "check.takes" : "check.needs", fmt::arg("reading", reading),
             fmt::arg("needed", format_gib(claimed->row.needed, 1)), fmt::arg("available", format_gib(a.usable, 1)));
}

std::string capacity(const CheckAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  std::string out;
  Table table({{std::string(text(lang, "check.column.reading"))},
               {std::string(text(lang, "fit.column.fits"))},
               {""},
               {std::string(text(lang, "fit.column.needed")), Align::right},
               {std::string(text(lang, "fit.column.room")), Align::right},
               {std::string(text(lang, "fit.column.how"))}});
  std::vector<std::string> held;
  for (const CheckReading& r : a.readings) {
    if (r.holds == Verdict::is_true) held.push_back(reading_text(r, lang));
    const Cell title((r.claimed ? "> " : "  ") + row_name(r, lang), r.claimed ? Tone::strong : Tone::plain);
    const std::string_view fits = r.holds == Verdict::doubtful  ? "check.verdict.doubtful"
                                  : r.holds == Verdict::is_true ? "word.yes"
                                                                : "word.no";
    if (!r.row.possible) {
      table.row({title, Cell(text(lang, "word.no"), Tone::dim), "", "", "", Cell(how_text(r, style), Tone::dim)});
      continue;
    }
    table.row({title, Cell(text(lang, fits), tone_of(r.holds)),
               bar(style, static_cast<double>(r.row.needed), static_cast<double>(a.usable), 9),
               format_gib(r.row.needed, 1), format_gib(r.row.room, 1), how_text(r, style)});
    if (style.explain) table.note(r.row.command);
  }
  out += table.render(style);
  if (a.states > 0) {
    const int64_t cards = a.machine->cards();
    out += "\n" + paragraph(style, cards > 1 ? say(lang, "check.states",
                                                   fmt::arg("states", format_gb(static_cast<double>(a.states))),
                                                   fmt::arg("each", format_gb(static_cast<double>(a.states_per_card))),
                                                   fmt::arg("cards", with_commas(cards)))
                                             : say(lang, "check.states_one",
                                                   fmt::arg("states", format_gb(static_cast<double>(a.states)))));
  }
  if (held.empty()) held.push_back(std::string(text(lang, "check.none")));
  out += "\n" + item_line(style, text(lang, "check.also"), held);
  return out;
}

std::string amount_text(const CheckAmount& x, Lang lang) { return say(lang, Note{"check.amount." + x.id, x.args}); }

std::string amount_line(const CheckAnswer& a, const Style& style) {
  const CheckAmount& first = a.amounts.front();
  const std::string amount = format_gib(first.bytes) + " = " + format_gb(static_cast<double>(first.bytes), 2);
  if (a.verdict == Verdict::doubtful) {
    std::vector<std::string> each;
    for (const CheckAmount& x : a.amounts)
      each.push_back(format_gib(x.bytes) + " (" + amount_text(x, style.lang) + ")");
    std::string list;
    for (const std::string& x : each) list += (list.empty() ? "" : style.lang == Lang::zh ? "；" : "; ") + x;
    return list;
  }
  return say(style.lang, a.verdict == Verdict::is_false ? "check.is" : "check.is_so", fmt::arg("amount", amount),
             fmt::arg("claimed", a.claim.amount_text));
}

std::string amounts(const CheckAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  Table table({{std::string(text(lang, "check.column.what"))}, {"GiB", Align::right}, {"GB", Align::right}, {""}});
  for (const CheckAmount& x : a.amounts) {
    table.row({amount_text(x, lang), format_gib(x.bytes), format_gb(static_cast<double>(x.bytes), 2),
               x.matches ? Cell(text(lang, "check.claimed"), Tone::strong) : Cell()});
    if (style.explain) table.note(x.command);
  }
  std::string out = table.render(style);
  if (a.times && a.claim.times)
    out += paragraph(style, say(lang, "check.why.times", fmt::arg("times", format_number(*a.times, 0))));
  return out;
}

std::vector<std::string> next_commands(const CheckAnswer& a) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& command) {
    if (!command.empty() && out.size() < 2 && std::find(out.begin(), out.end(), command) == out.end())
      out.push_back(command);
  };
  if (a.claim.kind == Claim::Kind::capacity) {
    if (const CheckReading* c = a.claimed()) {
      if (c->row.possible) add(c->row.command + " --explain");
    }
    for (const CheckReading& r : a.readings) {
      if (r.holds == Verdict::is_true) add(r.row.command);
    }
  }
  for (const CheckAmount& x : a.amounts) add(x.command);
  for (const std::string& command : a.commands) add(command);
  return out;
}

}  // namespace

std::string render(const CheckAnswer& a, const Style& style) {
  const Lang lang = style.lang;
  const Claim& c = a.claim;
  const std::string verdict = verdict_text(a.verdict, lang) + colon(lang);
  std::string out;
  if (c.kind == Claim::Kind::concept_row) {
    const ConceptClaim& row = ClaimBook::builtin().concepts[c.row];
    out = answer_line(style, tone_of(a.verdict),
                      verdict + (c.right            ? c.text
                                 : lang == Lang::zh ? row.claim_zh
                                                    : row.claim_en));
    out += "\n" + paragraph(style, lang == Lang::zh ? a.truth_zh : a.truth_en);
    out += "\n" + item_line(style, text(lang, "check.source"), {row.source});
    return out + next_line(style, next_commands(a));
  }
  const bool capacity_claim = c.kind == Claim::Kind::capacity;
  out = answer_line(style, tone_of(a.verdict),
                    verdict + (capacity_claim ? capacity_line(a, style) : amount_line(a, style)));
  for (const Note& n : a.reasons) out += paragraph(style, say(lang, n));
  const std::string model = c.size_only ? c.model : a.model->name;
  std::string subject = model;
  if (capacity_claim)
    subject = say(lang, "check.of_model", fmt::arg("model", model), fmt::arg("machine", a.machine->text));
  out += "\n" + paragraph(style, subject) + "\n";
  out += capacity_claim ? capacity(a, style) : amounts(a, style);
  if (const auto assumed = a.assumed(lang); !assumed.empty())
    out += "\n" + item_line(style, text(lang, "train.assumed"), assumed);
  return out + next_line(style, next_commands(a));
}

std::string render(const ClaimBook& book, const Style& style) {
  const Lang lang = style.lang;
  std::string out = answer_line(
      style, Tone::strong,
      say(lang, "check.list.count", fmt::arg("forms", book.forms.size()), fmt::arg("claims", book.concepts.size())));
  out += heading(style, text(lang, "check.list.forms"));
  for (const ClaimForm& f : book.forms) {
    out += paragraph(style, lang == Lang::zh ? f.shows_zh : f.shows_en);
    out += paragraph(style, "vram check \"" + (lang == Lang::zh ? f.example_zh : f.example_en) + "\"", 4, 6);
  }
  out += heading(style, text(lang, "check.list.truths"));
  Table table({{""}, {""}, {""}});
  for (const ConceptClaim& c : book.concepts) {
    const Verdict v = c.verdict == "false" ? Verdict::is_false : Verdict::doubtful;
    table.row({c.id, Cell(verdict_text(v, lang), tone_of(v)), lang == Lang::zh ? c.claim_zh : c.claim_en});
  }
  return out + table.render(style);
}

}  // namespace vram
