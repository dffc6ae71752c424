#include "api/serve_steps.h"

#include <map>

#include "serving/cache.h"
#include "serving/weights.h"

namespace vram {
namespace {

/// The account of one rank as numbers that print themselves.
struct Account {
  Traced weights, reserve, memory, per_token, request;
  bool windows = false, states = false, blocks = false, latent = false;
};

// "attention + mlp + embedding = ...": a table of hundreds of tensors, by part. A single line keeps its own formula.
Traced sum_by(const Ledger& ledger, bool weights) {
  std::map<std::string, size_t> index;
  std::vector<std::pair<std::string, Bytes>> parts;
  for (const Line& line : ledger.lines) {
    if (line.category == Category::kv_cache || line.category == Category::recurrent_state) continue;
    if ((line.category == Category::parameters) != weights) continue;
    const std::string name = weights ? line.owner : line.name;
    const auto [found, fresh] = index.emplace(name, parts.size());
    if (fresh) parts.emplace_back(name, 0);
    parts[found->second].second += line.bytes;
  }
  Traced sum(0);
  for (const auto& [name, bytes] : parts) sum = sum + Traced::symbol(name, bytes);
  return sum;
}

Account account_of(const ServePlan& plan, const RankClass& rank) {
  Account out;
  const Ledger idle = make_ledger(rank_program<Traced>(plan, rank, 0), Tier::device);
  out.weights = plan.weights_by_table ? sum_by(idle, true)
                                      : ceil_div(weights_by_size<Traced>(plan),
                                                 Traced::symbol("cards", plan.parallel.replica() / plan.pooled()));
  out.reserve = sum_by(idle, false);
  out.memory = Traced::symbol("usable", plan.rules.usable_bytes.value) * Traced(plan.pooled());
  for (const CacheKind& kind : cache_kinds(*plan.model, rank.layers)) {
    for (const auto& part : cache_parts<Traced>(plan, kind)) {
      const Traced entries = cache_entries<Traced>(plan, part, plan.context.value);
      if (!part.compressed && !kind.cross) out.per_token = out.per_token + part.per_token;
      out.request = out.request + part.per_token * entries;
      out.windows |= part.cap > 0 || part.every > 1;
      out.blocks |= entries.value() != plan.context.value;
    }
    const Traced state = state_bytes<Traced>(plan, kind);
    out.states |= state.value() > 0;
    out.request = out.request + state;
    out.latent |= kind.attention->kind == AttentionKind::mla;
  }
  return out;
}

// In textbook mode all cards of a replica are one memory; a card's share of it stands beside the card's own value.
Traced per_card(const Traced& pooled, const ServePlan& plan) {
  return ceil_div(pooled, Traced::symbol("cards", plan.pooled()));
}

ServeStep step(std::string_view id, std::string_view unit, const Traced& value, const Traced& textbook,
               std::string_view why) {
  ServeStep s{.id = id, .unit = unit, .formula = value.formula(), .value = value.value()};
  s.textbook = textbook.value();
  s.textbook_formula = textbook.formula();
  if (s.value != *s.textbook) s.why = why;
  return s;
}

// The pooled account of textbook mode is its own comparison.
void alone(std::vector<ServeStep>& steps) {
  for (ServeStep& s : steps) {
    s.textbook.reset();
    s.textbook_formula.clear();
    s.why = {};
  }
}

Traced concurrency(const Account& a, int64_t replicas) {
  const Bytes room = a.memory.value() - a.weights.value() - a.reserve.value();
  if (room < 0 || a.request.value() == 0) return Traced(0);
  return floor_div(Traced::symbol("room", room), Traced::symbol("request", a.request.value())) *
         Traced::symbol("replicas", replicas);
}

}  // namespace

void fill_steps(ServeAnswer& answer, const Model& model, const Machine& machine, const Job& job,
                const ServingRules& rules) {
  const ServePlan& plan = answer.plan;
  Job textbook_job = job;
  textbook_job.textbook = true;
  textbook_job.data_parallel = plan.parallel.data;
  if (textbook_job.weights_dtype && !job.weights && !plan.weights_by_table &&
      *textbook_job.weights_dtype == "checkpoint") {
    textbook_job.weights_dtype.reset();
  }
  ServePlan book = resolve(model, machine, textbook_job, rules);
  // Beside a modelled reserve the rule of thumb says something; in textbook mode nothing is reserved unasked.
  if (book.reserve == Reserve::nothing && !plan.textbook) book.reserve = Reserve::rule_of_thumb;
  const Account ours = account_of(plan, answer.worst().rank);
  const Account theirs = account_of(book, book.ranks().front());

  auto& steps = answer.steps;
  const Traced parameters = Traced::symbol("P", plan.parameters);
  if (plan.parameters > 0) steps.push_back(step("parameters", "parameters", parameters, parameters, ""));
  steps.push_back(step("weights", "bytes", ours.weights, per_card(theirs.weights, book),
                       plan.parallel.replica() > 1 ? "serving.why.weights_cut" : "serving.why.weights"));
  steps.push_back(step("reserve", "bytes", ours.reserve, per_card(theirs.reserve, book), "serving.why.reserve"));
  const auto left = [](const Account& a) {
    return Traced::symbol("usable", a.memory.value()) - Traced::symbol("weights", a.weights.value()) -
           Traced::symbol("reserve", a.reserve.value());
  };
  const Traced room = left(ours), book_room = left(theirs);
  steps.push_back(
      step("room", "bytes", room, book_room.value() < 0 ? book_room : per_card(book_room, book), "serving.why.room"));
  if (!plan.kv_known) {
    if (plan.textbook) alone(steps);
    return;
  }
  std::string_view why = "serving.why.cut";
  if (ours.latent) why = "serving.why.latent";
  if (ours.states) why = "serving.why.states";
  steps.push_back(step("per_token", "bytes", ours.per_token, per_card(theirs.per_token, book), why));
  if (ours.blocks) why = "serving.why.blocks";
  if (ours.windows) why = "serving.why.windows";
  if (ours.states) why = "serving.why.states";
  steps.push_back(step("request", "bytes", ours.request, per_card(theirs.request, book), why));
  const Traced k = concurrency(ours, plan.parallel.data), book_k = concurrency(theirs, book.parallel.data);
  if (!answer.concurrency_unlimited)
    steps.push_back(step("concurrency", "requests", k, book_k, "serving.why.concurrency"));
  answer.textbook_concurrency = book_k.value();
  if (plan.textbook) alone(steps);
}

}  // namespace vram
