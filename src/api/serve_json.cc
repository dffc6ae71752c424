#include "api/serve.h"
#include "ledger/program.h"

namespace vram {
namespace {

Document constant_json(const Constant& c) {
  return Document::Object{{"id", c.id},        {"value", c.value}, {"low", c.low},
                          {"high", c.high},    {"unit", c.unit},   {"basis", std::string(basis_name(c.basis))},
                          {"source", c.source}};
}

Document ledger_json(const Ledger& ledger) {
  Document::Array lines;
  for (const Line& l : ledger.lines) {
    Document row{Document::Object{{"name", l.name},
                                  {"owner", l.owner},
                                  {"category", std::string(category_name(l.category))},
                                  {"count", l.count},
                                  {"each_bytes", l.each},
                                  {"bytes", l.bytes},
                                  {"low_bytes", l.low},
                                  {"high_bytes", l.high},
                                  {"formula", l.formula}}};
    if (!l.constants.empty()) row.set("constants", l.constants);
    lines.emplace_back(std::move(row));
  }
  return Document::Object{
      {"bytes", ledger.bytes}, {"low_bytes", ledger.low}, {"high_bytes", ledger.high}, {"lines", std::move(lines)}};
}

Document rank_json(const ServeRank& r) {
  return Document::Object{{"pipeline_stage", r.rank.stage},
                          {"first_layer", r.rank.layers.first},
                          {"layers", r.rank.layers.end - r.rank.layers.first},
                          {"cards", r.rank.ranks},
                          {"weights_bytes", r.weights_bytes},
                          {"reserve_bytes", r.reserve_bytes},
                          {"cache_room_bytes", r.cache_room_bytes},
                          {"kv_bytes_per_request", r.request_bytes},
                          {"requests_per_replica", r.requests},
                          {"ledger", ledger_json(r.ledger)}};
}

Document decode_json(const DecodeBound& b) {
  return Document::Object{{"requests", b.requests},
                          {"tokens_per_second_bound", b.tokens_per_second},
                          {"step_seconds_bound", b.step_seconds},
                          {"bytes_per_step_per_card", b.work.bytes},
                          {"flops_per_step_per_card", b.work.flops},
                          {"sent_bytes_per_step_per_card", b.work.sent},
                          {"bound_by", std::string(bound_name(b.parts.bound))}};
}

Document optional(const std::optional<int64_t>& n) { return n ? Document(*n) : Document(); }

Document speed_json(const ServeSpeed& s) {
  Document::Array what_if;
  for (const ServeWhatIf& w : s.what_if) {
    what_if.emplace_back(Document::Object{{"twice_the", std::string(w.id)},
                                          {"requests", w.requests},
                                          {"tokens_per_second_bound", w.tokens_per_second},
                                          {"gain", w.gain}});
  }
  return Document::Object{{"compute_dtype", s.compute_dtype},
                          {"peak_flops_per_card", s.rates.flops},
                          {"bandwidth_bytes_per_second_per_card", s.rates.bytes},
                          {"link_bytes_per_second_per_card", s.rates.sent},
                          {"ridge_flops_per_byte", ridge_point(s.rates)},
                          {"ridge_requests", optional(s.ridge_requests)},
                          {"ridge_requests_at_context", optional(s.ridge_requests_at_context)},
                          {"decode_one_request", decode_json(s.one)},
                          {"decode_largest_concurrency", decode_json(s.full)},
                          {"prefill", Document::Object{{"tokens", s.prefill.tokens},
                                                       {"seconds_bound", s.prefill.seconds},
                                                       {"flops_per_card", s.prefill.work.flops},
                                                       {"bound_by", std::string(bound_name(s.prefill.parts.bound))}}},
                          {"what_if", std::move(what_if)}};
}

Document::Array texts(const std::vector<std::string>& items) {
  Document::Array out;
  for (const std::string& i : items) out.emplace_back(i);
  return out;
}

}  // namespace

Document to_json(const ServeAnswer& a) {
  const ServePlan& plan = a.plan;
  const Model& m = *plan.model;
  const ServeRank& worst = a.worst();
  Document out{Document::Object{{"fits", a.fits},
                                {"model", m.name},
                                {"parameters", plan.parameters},
                                {"machine", a.machine.text},
                                {"cards", plan.cards},
                                {"parallel", Document::Object{{"tensor", plan.parallel.tensor},
                                                              {"pipeline", plan.parallel.pipeline},
                                                              {"data", plan.parallel.data},
                                                              {"expert", plan.parallel.expert}}},
                                {"textbook", plan.textbook},
                                {"weights_dtype", plan.weights_dtype},
                                {"kv_dtype", plan.kv.name},
                                {"context_tokens", plan.context.value},
                                {"kv_block_tokens", plan.block.value},
                                {"reserve_rule", std::string(reserve_name(plan.reserve))}}};
  out.set("concurrency_asked", a.asked);
  const bool has_k = a.concurrency_known && !a.concurrency_unlimited;
  out.set("largest_concurrency", has_k ? Document(a.largest_concurrency) : Document());
  out.set("concurrency_unlimited", a.concurrency_unlimited);
  out.set("textbook_concurrency", has_k ? Document(a.textbook_concurrency) : Document());
  const bool has_longest = a.concurrency_known && !a.context_unlimited;
  out.set("longest_context_tokens", has_longest ? Document(a.longest_context) : Document());
  out.set("longest_context_tokens_at_concurrency_asked", has_longest ? Document(a.longest_context_asked) : Document());
  out.set("longest_context_unlimited", a.context_unlimited);
  out.set("longest_context_limited_by_model", a.context_limited_by_model);
  // In textbook mode the cards of a replica are one memory; shares of a card are rounded up.
  const int64_t pooled = plan.pooled();
  out.set("usable_bytes_per_card", plan.rules.usable_bytes.value);
  out.set("weights_bytes", a.weights_bytes);
  out.set("weights_bytes_per_card", ceil_div(worst.weights_bytes, pooled));
  out.set("reserve_bytes_per_card", ceil_div(worst.reserve_bytes, pooled));
  out.set("cache_room_bytes_per_card", worst.cache_room_bytes / pooled);
  out.set("room_bytes_per_card", a.room_bytes / pooled);
  out.set("kv_bytes_per_token", a.kv_bytes_per_token);
  out.set("kv_bytes_per_request", a.kv_bytes_per_request);
  out.set("kv_bytes_per_request_per_card", ceil_div(worst.request_bytes, pooled));
  out.set("kv_formula", a.kv_formula);
  out.set("binding", std::string(a.binding));
  if (a.speed) {
    out.set("decode_tokens_per_second_bound", a.speed->full.tokens_per_second);
    out.set("decode_tokens_per_second_bound_one_request", a.speed->one.tokens_per_second);
    out.set("prefill_seconds_bound", a.speed->prefill.seconds);
    out.set("speed", speed_json(*a.speed));
  } else {
    out.set("speed", Document());
  }
  Document::Array levers;
  for (const ServeLever& l : a.levers) {
    levers.emplace_back(Document::Object{{"change", std::string(l.id)},
                                         {"value", l.value},
                                         {"largest_concurrency", l.largest_concurrency},
                                         {"cache_room_bytes_per_card", l.cache_room_bytes_per_card / pooled}});
  }
  out.set("levers", std::move(levers));
  Document::Array movers;
  for (const ServeMover& mover : a.movers) {
    movers.emplace_back(Document::Object{{"constant", constant_json(mover.row)},
                                         {"largest_concurrency_at_low", mover.concurrency_low},
                                         {"largest_concurrency_at_high", mover.concurrency_high},
                                         {"room_bytes_per_card_at_low", mover.room_low / pooled},
                                         {"room_bytes_per_card_at_high", mover.room_high / pooled}});
  }
  out.set("moves_most", std::move(movers));
  Document::Array assumptions;
  for (const Remark& r : plan.remarks) assumptions.emplace_back(remark_text(Lang::en, r));
  for (const auto& list : {m.assumed(Lang::en), a.machine.assumed(Lang::en)}) {
    for (Document& text : texts(list)) assumptions.push_back(std::move(text));
  }
  out.set("assumptions", std::move(assumptions));
  Document::Array steps;
  for (const ServeStep& s : a.steps) {
    Document row{Document::Object{
        {"step", std::string(s.id)}, {"unit", std::string(s.unit)}, {"value", s.value}, {"formula", s.formula}}};
    if (s.textbook) {
      row.set("textbook_value", *s.textbook);
      row.set("textbook_formula", s.textbook_formula);
    }
    if (!s.why.empty()) row.set("why", std::string(text(Lang::en, s.why)));
    steps.emplace_back(std::move(row));
  }
  out.set("steps", std::move(steps));
  Document::Array ranks;
  for (const ServeRank& r : a.ranks) ranks.emplace_back(rank_json(r));
  out.set("ranks", std::move(ranks));
  return out;
}

}  // namespace vram
