#include "api/check.h"
#include "api/train.h"
#include "formats/formats.h"

namespace vram {
namespace {

Document texts(const std::string& en, const std::string& zh) { return Document::Object{{"en", en}, {"zh", zh}}; }

Document reading_json(const CheckAnswer& a, const CheckReading& r) {
  Document out{Document::Object{{"id", r.id}, {"holds", std::string(verdict_name(r.holds))}, {"claimed", r.claimed}}};
  if (!r.precision.empty()) out.set("weights_dtype", r.precision);
  out.set("possible", r.row.possible);
  if (r.row.possible) {
    out.set("needed_bytes_per_card", r.row.needed);
    out.set("available_bytes_per_card", a.usable);
    out.set("room_bytes", r.row.room);
  }
  if (r.row.host_per_node > 0) out.set("host_bytes_per_node", r.row.host_per_node);
  if (r.row.concurrency > 0) out.set("largest_concurrency", r.row.concurrency);
  if (r.row.cards_needed) out.set("cards_needed", *r.row.cards_needed);
  Document::Array how;
  for (const Note& n : r.row.how) how.emplace_back(say(Lang::en, n));
  out.set("how", std::move(how));
  out.set("command", r.row.command);
  return out;
}

}  // namespace

Document to_json(const CheckAnswer& a) {
  const Claim& c = a.claim;
  static constexpr const char* kinds[] = {"capacity", "amount", "concept"};
  Document out{Document::Object{
      {"claim", c.text}, {"verdict", std::string(verdict_name(a.verdict))}, {"kind", kinds[static_cast<int>(c.kind)]}}};
  if (c.kind == Claim::Kind::concept_row) {
    const ConceptClaim& row = ClaimBook::builtin().concepts[c.row];
    out.set("id", row.id);
    out.set("corrects", texts(row.claim_en, row.claim_zh));
    out.set("truth", texts(a.truth_en, a.truth_zh));
    out.set("source", row.source);
    Document::Array commands;
    for (const std::string& command : a.commands) commands.emplace_back(command);
    out.set("commands", std::move(commands));
    return out;
  }
  out.set("model", Document::Object{{"name", c.model},
                                    {"size_only", c.size_only},
                                    {"stand_in", a.stand_in.empty() ? Document() : Document(a.stand_in)}});
  if (c.kind == Claim::Kind::capacity) {
    static constexpr const char* needs[] = {"none", "needs", "needs_only", "needs_at_least"};
    out.set("negated", c.negated);
    out.set("need", needs[static_cast<int>(c.need)]);
    out.set(
        "machine",
        Document::Object{{"text", a.machine->text}, {"device", a.machine->device.name}, {"cards", a.machine->cards()}});
    out.set("reading", a.claimed() ? Document(a.claimed()->id) : Document());
    Document::Array readings, held;
    for (const CheckReading& r : a.readings) {
      readings.push_back(reading_json(a, r));
      if (r.holds == Verdict::is_true) held.emplace_back(r.id);
    }
    out.set("fits_under", std::move(held));
    out.set("readings", std::move(readings));
    out.set("sequence_tokens", a.sequence);
    out.set("context_tokens", a.context);
    if (a.states > 0) {
      out.set("states_bytes", a.states);
      out.set("states_bytes_per_card", a.states_per_card);
    }
  } else {
    out.set("quantity", c.quantity);
    out.set("claimed", c.amount_text);
    Document::Array amounts;
    for (const CheckAmount& x : a.amounts) {
      amounts.emplace_back(
          Document::Object{{"id", x.id}, {"bytes", x.bytes}, {"matches", x.matches}, {"command", x.command}});
    }
    out.set("amounts", std::move(amounts));
    if (a.times) out.set("optimizer_over_weights", *a.times);
  }
  Document::Array reasons, assumptions;
  for (const Note& n : a.reasons) reasons.emplace_back(Document::Object{{"id", n.id}, {"text", say(Lang::en, n)}});
  for (const std::string& t : a.assumed(Lang::en)) assumptions.emplace_back(t);
  out.set("reasons", std::move(reasons));
  out.set("assumptions", std::move(assumptions));
  return out;
}

Document to_json(const ClaimBook& book) {
  Document::Array forms, claims;
  for (const ClaimForm& f : book.forms) {
    forms.emplace_back(Document::Object{
        {"id", f.id}, {"form", texts(f.shows_en, f.shows_zh)}, {"example", texts(f.example_en, f.example_zh)}});
  }
  for (const ConceptClaim& c : book.concepts) {
    claims.emplace_back(Document::Object{
        {"id", c.id}, {"claim", texts(c.claim_en, c.claim_zh)}, {"verdict", c.verdict}, {"source", c.source}});
  }
  return Document::Object{{"forms", std::move(forms)}, {"claims", std::move(claims)}};
}

}  // namespace vram
