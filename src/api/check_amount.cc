#include "api/check_amount.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "api/serve.h"
#include "api/train.h"
#include "base/checked.h"
#include "base/text.h"

namespace vram {
namespace {

constexpr double kSlack = 0.015;      // of figures that people round
constexpr double kNearEnough = 0.10;  // of a stand-in's size
constexpr int64_t kGroupedHeads = 8;  // KV heads of nearly every grouped model
constexpr const char* kAmple = "64x80GiB";

std::string shell(const std::string& word) {
  return word.find_first_of(" '\"$&;|<>()*") == std::string::npos ? word : "'" + word + "'";
}

struct AmountAsked {
  const Claim& claim;
  const ClaimModel& model;
  const Knowledge& knowledge;
  CheckAnswer& answer;

  void add(std::string id, Bytes bytes, std::string command,
           std::vector<std::pair<std::string, std::string>> args = {}) {
    CheckAmount a{std::move(id), std::move(args), bytes, false, false, std::move(command)};
    a.matches = amount_matches(claim.amount_text, bytes, a.binary);
    answer.amounts.push_back(std::move(a));
  }
  const Model& sized() const { return model.bare ? *model.bare : model.model; }

  Job training() const {
    Job job;
    job.model = claim.model;
    job.textbook = true;
    if (claim.bits == "fp32" || claim.bits == "fp8") job.precision = claim.bits;
    return job;
  }
  TrainAnswer train(const Job& job) const { return answer_train(sized(), std::nullopt, job, knowledge); }
};

void refuse(const Claim& c, std::string problem, std::string accepted = {}) {
  throw InputError({.field = "claim", .value = c.text, .problem = std::move(problem), .accepted = std::move(accepted)});
}

// KV bytes of one request, or of one token, of `model`.
void add_kv(AmountAsked& q, const Model& model, const Job& described, const std::string& id, int64_t kv_heads) {
  const Claim& c = q.claim;
  Job job = described;
  job.on = kAmple;
  job.context = c.context.value_or(model.max_positions > 0 ? std::min<int64_t>(8192, model.max_positions) : 8192);
  if (c.bits == "fp8" || c.bits == "int8" || c.bits == "int4" || c.bits == "fp32") job.kv_dtype = c.bits;
  const ServeAnswer a = serve(model, resolve_machine(job, q.knowledge), job, q.knowledge.constants());
  if (!a.concurrency_known) refuse(c, "speaks of a cache whose layers are not known");
  const bool token = c.quantity == "kv_token";
  const Bytes bytes = token ? a.kv_bytes_per_token : checked_mul(a.kv_bytes_per_request, c.users.value_or(1));
  q.add(id, bytes, command_of("serve", job),
        {{"tokens", with_commas(*job.context)},
         {"requests", with_commas(c.users.value_or(1))},
         {"heads", with_commas(kv_heads)}});
}

int64_t kv_heads_of(const Model& model) {
  int64_t heads = 0;
  for (const LayerKind& kind : model.kinds) heads = std::max(heads, kind.attention.kv_heads);
  return heads;
}

Verdict kv_verdict(AmountAsked& q) {
  const Claim& c = q.claim;
  if (c.quantity == "kv" && !c.context) refuse(c, "names no context", "such as \"at 32k\"");
  const char* id = c.quantity == "kv_token" ? "kv_token" : c.users ? "kv_requests" : "kv";
  if (!q.model.bare) {
    Job job;
    job.model = c.model;
    add_kv(q, q.model.model, job, id, kv_heads_of(q.model.model));
    if (c.context && q.model.model.max_positions > 0 && *c.context > q.model.model.max_positions) {
      q.answer.reasons.push_back({"check.why.positions", {{"positions", with_commas(q.model.model.max_positions)}}});
    }
    return q.answer.amounts[0].matches ? Verdict::is_true : Verdict::is_false;
  }
  // A size alone leaves the KV heads open: both usual choices, in the stand-in's layers.
  const Model& shape = q.model.model;
  const Attention& attention = shape.layer(shape.layers() - 1).attention;
  const int64_t heads = attention.heads;
  std::vector<int64_t> choices = {heads};
  if (heads > kGroupedHeads && heads % kGroupedHeads == 0) choices.push_back(kGroupedHeads);
  for (const int64_t kv : choices) {
    Job job;
    job.layers = shape.layers();
    job.hidden = shape.hidden;
    job.heads = heads;
    job.head_dim = attention.head_dim;
    job.kv_heads = kv;
    add_kv(q, resolve_model(job, q.knowledge.environment()), job,
           kv == heads ? std::string(id) + "_mha" : std::string(id) + "_gqa", kv);
  }
  q.answer.reasons.push_back({"check.why.kv_heads", {}});
  const auto matching =
      std::count_if(q.answer.amounts.begin(), q.answer.amounts.end(), [](const CheckAmount& a) { return a.matches; });
  if (matching == 0) return Verdict::is_false;
  return matching == static_cast<std::ptrdiff_t>(choices.size()) ? Verdict::is_true : Verdict::doubtful;
}

Verdict weights_verdict(AmountAsked& q) {
  const Claim& c = q.claim;
  if (c.bits == "fp32") {
    const Job job = q.training();
    q.add("weights", q.train(job).states_all.weights, command_of("train", job), {{"dtype", "fp32"}});
    return q.answer.amounts[0].matches ? Verdict::is_true : Verdict::is_false;
  }
  if (c.bits == "any") refuse(c, "does not say in how many bits", "such as \"in 4-bit\" or \"in int8\"");
  Job job;
  job.model = c.model;
  job.on = kAmple;
  job.weights_dtype = !c.bits.empty() ? c.bits : q.sized().quantization ? "checkpoint" : "bf16";
  const auto bytes = [&](const Job& j) {
    return serve(q.sized(), resolve_machine(j, q.knowledge), j, q.knowledge.constants()).weights_bytes;
  };
  q.add("weights", bytes(job), command_of("serve", job), {{"dtype", *job.weights_dtype}});
  if (q.answer.amounts[0].matches) return Verdict::is_true;
  // The rule of thumb of so many bits a parameter: true of the bare weights, not of the file.
  job.textbook = true;
  const Bytes bare = bytes(job);
  if (bare == q.answer.amounts[0].bytes) return Verdict::is_false;
  q.add("weights_textbook", bare, command_of("serve", job), {{"dtype", *job.weights_dtype}});
  if (!q.answer.amounts.back().matches) return Verdict::is_false;
  q.answer.reasons.push_back({"check.why.scales", {}});
  return Verdict::doubtful;
}

Verdict states_verdict(AmountAsked& q) {
  const Claim& c = q.claim;
  const Job job = q.training();
  const StateBytes all = q.train(job).states_all;
  const std::string command = command_of("train", job);
  const auto first = [&] { return q.answer.amounts[0].matches ? Verdict::is_true : Verdict::is_false; };
  if (c.quantity == "gradients") {
    q.add("gradients", all.gradients, command);
    return first();
  }
  Job bare = job;
  bare.master_weights = false;
  if (c.quantity == "moments") {
    q.add("moments", q.train(bare).states_all.optimizer, command_of("train", bare));
    return first();
  }
  if (c.quantity == "optimizer") {
    q.add("optimizer", all.optimizer, command);
    if (c.bits != "fp32") q.add("moments", q.train(bare).states_all.optimizer, command_of("train", bare));
    q.add("weights", all.weights, command, {{"dtype", c.bits.empty() ? "bf16" : c.bits}});
    q.add("states", all.total(), command);
    q.answer.times = static_cast<double>(all.optimizer) / static_cast<double>(all.weights);
    for (size_t i = 1; i < q.answer.amounts.size(); ++i) {
      CheckAmount& a = q.answer.amounts[i];
      if (a.id != "moments") a.matches = false;  // shown beside, not what the claim counts
      if (a.id == "moments" && a.matches) q.answer.reasons.push_back({"check.why.master", {}});
    }
    if (c.times && std::abs(*q.answer.times - *c.times) > 0.25) return Verdict::is_false;
    return first();
  }
  q.add("states", all.total(), command);
  if (q.answer.amounts[0].matches || !c.bits.empty()) return first();
  for (const char* gradients : {"fp32", "both"}) {
    Job other = job;
    other.gradient_dtype = gradients;
    q.add(std::string("states_") + gradients, q.train(other).states_all.total(), command_of("train", other));
    if (q.answer.amounts.back().matches) {
      q.answer.reasons.push_back({"check.why.gradients", {}});
      return Verdict::doubtful;
    }
  }
  return Verdict::is_false;
}

}  // namespace

void ClaimModel::describe(Job& job) const {
  job.model = name;
  if (by_hand) job.block = "llama";
}

ClaimModel model_of_claim(const Claim& c, const Knowledge& knowledge) {
  ClaimModel out;
  Job job;
  job.model = c.model;
  out.name = c.model;
  if (!c.size_only) {
    out.model = resolve_model(job, knowledge.environment());
    return out;
  }
  const int64_t size = parse_integer(c.model, Unit::count, "claim");
  out.bare = model_of_size(size);
  const auto& stand_ins = ClaimBook::builtin().stand_ins;
  const auto distance = [&](const ClaimBook::StandIn& s) { return std::abs(static_cast<double>(s.size - size)); };
  const auto nearest = std::min_element(stand_ins.begin(), stand_ins.end(),
                                        [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  if (nearest != stand_ins.end() && distance(*nearest) <= kNearEnough * static_cast<double>(size)) {
    Job standing;
    standing.model = nearest->model;
    Model model = resolve_model(standing, knowledge.environment());
    if (!(model.learned_positions && c.context && *c.context > model.max_positions)) {
      out.stand_in = out.name = nearest->model;
      out.model = std::move(model);
      return out;
    }
  }
  job.block = "llama";
  out.by_hand = true;
  out.model = resolve_model(job, knowledge.environment());
  return out;
}

bool amount_matches(const std::string& amount, Bytes bytes, bool& binary) {
  const size_t space = amount.find(' ');
  const std::string digits = amount.substr(0, space), unit = amount.substr(space + 1);
  const double claimed = decimal_to_double(digits);
  const size_t point = digits.find('.');
  const double half =
      0.5 * std::pow(10.0, point == std::string::npos ? 0 : -static_cast<double>(digits.size() - point - 1));
  const double slack = std::max(half, kSlack * claimed);
  const size_t power =
      unit == "B" ? 0 : std::string("kMGT").find(static_cast<char>(unit[0] == 'K' ? 'k' : unit[0])) + 1;
  const auto near = [&](double base) {
    // Of a single digit, half of it would be a wide range: "2 GB" is no 1.6 GB.
    return std::abs(static_cast<double>(bytes) / std::pow(base, power) - claimed) <= std::min(slack, 0.1 * claimed);
  };
  const bool says_binary = unit.size() == 3;
  const bool decimal = !says_binary && near(1000);
  binary = !decimal && !says_binary && near(1024);
  return decimal || binary || (says_binary && near(1024));
}

std::string command_of(const std::string& verb, const Job& job) {
  std::string out = "vram " + verb + (job.model.empty() ? "" : " " + shell(job.model));
  const Document document = write_job(job);
  for (const Field& f : fields()) {
    if (f.name == "model" || !f.is_set(job)) continue;
    const Document* value = document.find(f.name);
    if (!value) continue;
    if (value->is_bool() && f.is_flag()) {
      out += " " + option_name(f.name) + (value->boolean() ? "" : " false");
    } else if (value->is_array()) {
      std::string list;
      for (const Document& d : value->array()) list += (list.empty() ? "" : ",") + d.string();
      out += " " + option_name(f.name) + " " + shell(list);
    } else {
      out += " " + option_name(f.name) + " " + shell(value->is_string() ? value->string() : value->to_text());
    }
  }
  return out;
}

void answer_amount(CheckAnswer& a, const ClaimModel& model, const Knowledge& knowledge) {
  AmountAsked q{a.claim, model, knowledge, a};
  const std::string& quantity = a.claim.quantity;
  const bool kv = quantity == "kv" || quantity == "kv_token";
  if (!kv && (a.claim.context || a.claim.users))
    refuse(a.claim, "names a context, on which this amount does not depend");
  if (!kv) a.stand_in.clear();  // only the size counts
  a.verdict = kv ? kv_verdict(q) : quantity == "weights" ? weights_verdict(q) : states_verdict(q);
  const auto written =
      std::find_if(a.amounts.begin(), a.amounts.end(), [](const CheckAmount& x) { return x.matches && x.binary; });
  if (written != a.amounts.end())
    a.reasons.push_back(
        {"check.why.binary",
         {{"bytes", format_gib(written->bytes)}, {"decimal", format_gb(static_cast<double>(written->bytes))}}});
}

}  // namespace vram
