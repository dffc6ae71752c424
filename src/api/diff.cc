#include "api/diff.h"

#include <algorithm>

#include "api/command.h"
#include "base/error.h"
#include "stacks/stacks.h"

namespace vram {
namespace {

// Fields of one verb and not of the other tell which is meant.
bool says(const Job& job, Verb of, Verb not_of) {
  const auto all = fields();
  return std::any_of(all.begin(), all.end(),
                     [&](const Field& f) { return f.of(of) && !f.of(not_of) && f.is_set(job); });
}

DiffOf kind_of(const DiffRequest& q) {
  if (q.of) return *q.of;
  const bool trains = says(q.a, Verb::train, Verb::serve) || says(q.b, Verb::train, Verb::serve);
  const bool serves = says(q.a, Verb::serve, Verb::train) || says(q.b, Verb::serve, Verb::train);
  if (trains && serves) {
    throw InputError({.field = "diff",
                      .problem = "has fields of training and of serving",
                      .accepted = "vram diff train A B or vram diff serve A B"});
  }
  return serves ? DiffOf::serve : DiffOf::train;
}

// The same refusal, saying whose.
template <class F>
auto in_name_of(const std::string& name, F&& ask) {
  try {
    return ask();
  } catch (const InputError& e) {
    Fault fault = e.fault();
    fault.field = name + ": " + fault.field;
    throw InputError(fault);
  }
}

// Scalars of a JSON object, those of objects inside it under "outer.inner".
void flatten(const Document& object, const std::string& prefix, std::vector<std::pair<std::string, std::string>>& out) {
  for (const Document::Member& m : object.object()) {
    if (m.second.is_object()) {
      flatten(m.second, prefix + m.first + ".", out);
    } else {
      out.emplace_back(prefix + m.first, m.second.is_null() ? "" : m.second.to_text());
    }
  }
}

std::string last_part(const std::string& key) { return key.substr(key.find_last_of('.') + 1); }

void compare_resolved(DiffAnswer& answer, const Document& a, const Document& b) {
  std::vector<std::pair<std::string, std::string>> left, right;
  flatten(a, {}, left);
  flatten(b, {}, right);
  for (const auto& [key, value] : left) {
    const auto other = std::find_if(right.begin(), right.end(), [&k = key](const auto& r) { return r.first == k; });
    if (other == right.end() || other->second == value) continue;
    const Field* field = find_field(last_part(key));
    const bool known = field && std::any_of(answer.said.begin(), answer.said.end(),
                                            [&](const SaidChange& s) { return s.field == field->name; });
    if (!known) answer.resolved.push_back({key, value, other->second});
  }
}

class Lines {
 public:
  explicit Lines(DiffAnswer& answer) : answer_(answer) {}

  template <class T>
  void add(std::string_view group, std::string_view id, std::string_view unit, T a, T b) {
    add_optional(group, id, unit, std::optional<double>(static_cast<double>(a)),
                 std::optional<double>(static_cast<double>(b)));
  }
  void add_optional(std::string_view group, std::string_view id, std::string_view unit, std::optional<double> a,
                    std::optional<double> b) {
    if (a.value_or(0) == 0 && b.value_or(0) == 0) return;
    answer_.lines.push_back({std::string(group), std::string(id), std::string(unit), a, b});
  }

 private:
  DiffAnswer& answer_;
};

template <class T, class F>
std::optional<double> part(const std::optional<T>& value, F&& member) {
  return value ? std::optional<double>(member(*value)) : std::nullopt;
}

void fill_train(DiffAnswer& answer) {
  const TrainAnswer &a = *answer.train_a, &b = *answer.train_b;
  Lines lines(answer);
  for (int c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    lines.add("memory", std::string(category_name(category)) + "_bytes", "bytes", a.device.of(category),
              b.device.of(category));
  }
  lines.add("memory", "peak_bytes", "bytes", a.device.bytes, b.device.bytes);
  if (a.usable && b.usable) {
    lines.add("memory", "room_bytes", "bytes", *a.usable - a.device.bytes, *b.usable - b.device.bytes);
  }
  lines.add("states", "weights_bytes", "bytes", a.states.weights, b.states.weights);
  lines.add("states", "gradients_bytes", "bytes", a.states.gradients, b.states.gradients);
  lines.add("states", "optimizer_bytes", "bytes", a.states.optimizer, b.states.optimizer);
  lines.add("states", "adapters_bytes", "bytes", a.states.adapters, b.states.adapters);
  lines.add("states", "total_bytes", "bytes", a.states.total(), b.states.total());
  lines.add("host", "bytes_per_card", "bytes", a.host.bytes, b.host.bytes);
  lines.add("compute", "flops_per_token", "flops", a.flops.per_token(), b.flops.per_token());
  lines.add("compute", "recompute_flops_per_token", "flops", a.flops.recompute_per_token, b.flops.recompute_per_token);
  lines.add("compute", "tokens_per_step", "tokens", a.tokens_per_step, b.tokens_per_step);
  lines.add("compute", "flops_per_step", "flops", a.flops.per_token() * a.tokens_per_step,
            b.flops.per_token() * b.tokens_per_step);
  lines.add_optional("time", "seconds", "seconds", part(a.time, [](const auto& t) { return t.seconds; }),
                     part(b.time, [](const auto& t) { return t.seconds; }));
  lines.add_optional("time", "card_hours", "hours", part(a.time, [](const auto& t) { return t.card_hours; }),
                     part(b.time, [](const auto& t) { return t.card_hours; }));
  lines.add("traffic", "data_parallel_bytes", "bytes", a.traffic.data_parallel, b.traffic.data_parallel);
  lines.add("traffic", "tensor_parallel_bytes", "bytes", a.traffic.tensor_parallel, b.traffic.tensor_parallel);
  lines.add("traffic", "context_parallel_bytes", "bytes", a.traffic.context_parallel, b.traffic.context_parallel);
  lines.add("traffic", "pipeline_parallel_bytes", "bytes", a.traffic.pipeline_parallel, b.traffic.pipeline_parallel);
  lines.add("traffic", "expert_parallel_bytes", "bytes", a.traffic.expert_parallel, b.traffic.expert_parallel);
  lines.add("traffic", "host_bytes", "bytes", a.traffic.host, b.traffic.host);
}

void fill_serve(DiffAnswer& answer) {
  const ServeAnswer &a = *answer.serve_a, &b = *answer.serve_b;
  Lines lines(answer);
  const auto per_card = [](const ServeAnswer& s, Bytes bytes) { return ceil_div(bytes, s.plan.pooled()); };
  lines.add("memory", "weights_bytes", "bytes", per_card(a, a.worst().weights_bytes),
            per_card(b, b.worst().weights_bytes));
  lines.add("memory", "reserve_bytes", "bytes", per_card(a, a.worst().reserve_bytes),
            per_card(b, b.worst().reserve_bytes));
  lines.add("memory", "cache_room_bytes", "bytes", a.worst().cache_room_bytes / a.plan.pooled(),
            b.worst().cache_room_bytes / b.plan.pooled());
  lines.add("cache", "kv_bytes_per_token", "bytes", a.kv_bytes_per_token, b.kv_bytes_per_token);
  lines.add("cache", "kv_bytes_per_request", "bytes", a.kv_bytes_per_request, b.kv_bytes_per_request);
  const auto k = [](const ServeAnswer& s) {
    return s.concurrency_known && !s.concurrency_unlimited
               ? std::optional<double>(static_cast<double>(s.largest_concurrency))
               : std::nullopt;
  };
  lines.add_optional("capacity", "largest_concurrency", "requests", k(a), k(b));
  const auto longest = [](const ServeAnswer& s) {
    return s.concurrency_known && !s.context_unlimited ? std::optional<double>(static_cast<double>(s.longest_context))
                                                       : std::nullopt;
  };
  lines.add_optional("capacity", "longest_context_tokens", "tokens", longest(a), longest(b));
  lines.add_optional("speed", "decode_one_request_bound", "tokens_per_second",
                     part(a.speed, [](const auto& s) { return s.one.tokens_per_second; }),
                     part(b.speed, [](const auto& s) { return s.one.tokens_per_second; }));
  lines.add_optional("speed", "decode_bound", "tokens_per_second",
                     part(a.speed, [](const auto& s) { return s.full.tokens_per_second; }),
                     part(b.speed, [](const auto& s) { return s.full.tokens_per_second; }));
  lines.add_optional("speed", "prefill_seconds_bound", "seconds",
                     part(a.speed, [](const auto& s) { return s.prefill.seconds; }),
                     part(b.speed, [](const auto& s) { return s.prefill.seconds; }));
}

// A with one field of B.
std::optional<int64_t> effect_alone(const DiffAnswer& answer, const Job& a, const Job& b, const Field& field,
                                    const Knowledge& knowledge) {
  Job job = a;
  copy_field(field, b, job);
  try {
    check_job(job);
    if (answer.of == DiffOf::train) {
      const Model model = resolve_model(job, knowledge.environment());
      std::optional<Machine> machine;
      if (!job.on.empty()) machine = resolve_machine(job, knowledge);
      const Rules rules = stack_rules(job.stack.value_or("generic"), knowledge.constants());
      const TrainPeak peak = train_peak(model, machine ? &*machine : nullptr, job, rules, knowledge.constants());
      return peak.device - answer.train_a->device.bytes;
    }
    const ServeAnswer changed = answer_serve(job, knowledge);
    if (!changed.concurrency_known || changed.concurrency_unlimited) return std::nullopt;
    if (!answer.serve_a->concurrency_known || answer.serve_a->concurrency_unlimited) return std::nullopt;
    return changed.largest_concurrency - answer.serve_a->largest_concurrency;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

Document choices_json(const ServeAnswer& answer) {
  const Document whole = to_json(answer);
  Document out{Document::Object{}};
  for (const char* key : {"parallel", "cards", "weights_dtype", "kv_dtype", "context_tokens", "kv_block_tokens",
                          "reserve_rule", "usable_bytes_per_card", "binding"}) {
    if (const Document* value = whole.find(key)) out.set(key, *value);
  }
  return out;
}

}  // namespace

const DiffLine* DiffAnswer::find(std::string_view group, std::string_view id) const {
  const auto found =
      std::find_if(lines.begin(), lines.end(), [&](const DiffLine& l) { return l.group == group && l.id == id; });
  return found == lines.end() ? nullptr : &*found;
}

DiffAnswer answer_diff(const DiffRequest& q, const Knowledge& knowledge) {
  DiffAnswer answer;
  answer.of = kind_of(q);
  answer.name_a = q.name_a;
  answer.name_b = q.name_b;
  const Verb verb = answer.of == DiffOf::train ? Verb::train : Verb::serve;
  if (answer.of == DiffOf::train) {
    answer.train_a = in_name_of("A", [&] { return answer_train(q.a, knowledge); });
    answer.train_b = in_name_of("B", [&] { return answer_train(q.b, knowledge); });
  } else {
    answer.serve_a = in_name_of("A", [&] { return answer_serve(q.a, knowledge); });
    answer.serve_b = in_name_of("B", [&] { return answer_serve(q.b, knowledge); });
  }
  for (const Field& f : fields()) {
    if (!f.of(verb)) continue;
    SaidChange change{.field = std::string(f.name), .a = field_text(f, q.a), .b = field_text(f, q.b)};
    if (change.a == change.b) continue;
    change.alone = effect_alone(answer, q.a, q.b, f, knowledge);
    answer.said.push_back(std::move(change));
  }
  if (answer.of == DiffOf::train) {
    fill_train(answer);
    compare_resolved(answer, *to_json(*answer.train_a).find("plan"), *to_json(*answer.train_b).find("plan"));
  } else {
    fill_serve(answer);
    compare_resolved(answer, choices_json(*answer.serve_a), choices_json(*answer.serve_b));
  }
  return answer;
}

Document to_json(const DiffAnswer& a) {
  Document::Array said, resolved;
  for (const SaidChange& s : a.said) {
    Document row{Document::Object{{"field", s.field},
                                  {"a", s.a.empty() ? Document() : Document(s.a)},
                                  {"b", s.b.empty() ? Document() : Document(s.b)}}};
    const char* key = a.of == DiffOf::train ? "peak_delta_bytes_alone" : "largest_concurrency_delta_alone";
    row.set(key, s.alone ? Document(*s.alone) : Document());
    said.push_back(std::move(row));
  }
  for (const ResolvedChange& r : a.resolved) {
    resolved.emplace_back(Document::Object{{"key", r.key}, {"a", r.a}, {"b", r.b}});
  }
  Document groups{Document::Object{}};
  for (const DiffLine& l : a.lines) {
    Document row{Document::Object{{"unit", l.unit},
                                  {"a", l.a ? Document(*l.a) : Document()},
                                  {"b", l.b ? Document(*l.b) : Document()},
                                  {"delta", l.a && l.b ? Document(*l.b - *l.a) : Document()}}};
    Document group = groups.find(l.group) ? *groups.find(l.group) : Document(Document::Object{});
    group.set(l.id, std::move(row));
    groups.set(l.group, std::move(group));
  }
  return Document::Object{{"of", a.of == DiffOf::train ? "train" : "serve"},
                          {"a", a.name_a},
                          {"b", a.name_b},
                          {"a_fits", a.fits_a()},
                          {"b_fits", a.fits_b()},
                          {"same", a.said.empty() && a.resolved.empty()},
                          {"said", std::move(said)},
                          {"resolved", std::move(resolved)},
                          {"quantities", std::move(groups)}};
}

}  // namespace vram
