#include "api/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "api/check_amount.h"
#include "api/check_truth.h"
#include "api/serve.h"
#include "api/train.h"

namespace vram {
namespace {

constexpr int64_t kUsualSequence = 4096;  // as in `fit`
constexpr int64_t kUsualContext = 8192;
constexpr int64_t kShortSequence = 512;  // below it hardly anything is trained
constexpr int64_t kShortContext = 1024;  // a prompt and an answer of a chat

Verdict of(bool holds) { return holds ? Verdict::is_true : Verdict::is_false; }

Verdict opposite(Verdict v) {
  return v == Verdict::is_true ? Verdict::is_false : v == Verdict::is_false ? Verdict::is_true : v;
}

// Everything that a reading is answered from.
struct Question {
  const Claim& claim;
  const Knowledge& knowledge;
  Model model;
  std::optional<Model> bare;  // of the same size, without layers: no activations, no caches
  Job job;                    // what the claim says, for training and for serving

  const Constants& constants() const { return knowledge.constants(); }
};

Job job_of(const Claim& c) {
  Job job;
  job.optimizer = c.optimizer;
  job.recompute = c.recompute;
  job.zero = c.zero;
  job.micro_batch = c.micro_batch;
  job.concurrency = c.users;
  job.context = c.context;
  if (c.context) job.sequence = c.context;
  if (c.bits == "bf16" || c.bits == "fp32" || c.bits == "fp8") job.precision = c.bits;
  return job;
}

void set_defaults(Job& job, const Model& model) {
  const auto within = [&](int64_t n) { return model.max_positions > 0 ? std::min(n, model.max_positions) : n; };
  if (!job.sequence) job.sequence = model.learned_positions ? within(kUsualSequence) : kUsualSequence;
  if (!job.context) job.context = within(kUsualContext);
}

bool is_training(const std::string& id) { return id == "full" || id == "offload" || id == "lora" || id == "qlora"; }

FitRow better(FitRow a, FitRow b) {
  if (!b.possible) return a;
  if (!a.possible || (b.fits && !a.fits)) return b;
  if (a.fits == b.fits && b.needed < a.needed) return b;
  return a;
}

// The row of `fit` for a reading. `job` carries what the claim says of training.
FitRow training_row(const Question& q, const Model& model, const Machine& machine, const Job& job,
                    const std::string& id) {
  Job base = job;
  base.weights_dtype.reset();
  base.context.reset();
  base.concurrency.reset();
  if (id == "lora" || id == "qlora") {
    base.precision.reset();
    return fit_row(model, machine, base, id, q.constants());
  }
  if (id == "full") {
    FitRow row = fit_row(model, machine, base, "full", q.constants());
    if (q.claim.task == "pretrain")
      row = better(std::move(row), fit_row(model, machine, base, "pretrain", q.constants()));
    return row;
  }
  FitRow row;
  row.possible = false;
  if (q.claim.offload != "everything") row = fit_row(model, machine, base, "full_offload", q.constants());
  if (row.fits || q.claim.offload == "optimizer") return row;
  // Everything on the host, gathered layer by layer (ZeRO-Infinity).
  base.offload = {"optimizer", "gradients", "parameters"};
  base.zero = 3;
  return better(std::move(row), fit_row(model, machine, base, "full_offload", q.constants()));
}

FitRow serving_row(const Question& q, const Model& model, const Machine& machine, const Job& job,
                   const std::string& dtype) {
  Job base = job;
  base.weights_dtype = dtype;
  base.precision.reset();
  return fit_row(model, machine, base, "serve_" + dtype, q.constants());
}

std::string published_dtype(const Model& model) { return model.quantization ? "checkpoint" : "bf16"; }

std::string serving_dtype(const Question& q) {
  return q.claim.bits.empty() || q.claim.bits == "any" ? published_dtype(q.model) : q.claim.bits;
}

FitRow row_of(const Question& q, const Model& model, const Machine& machine, const Job& job, CheckReading& reading) {
  if (is_training(reading.id)) return training_row(q, model, machine, job, reading.id);
  if (reading.id == "serving") {
    reading.precision = serving_dtype(q);
    return serving_row(q, model, machine, job, reading.precision);
  }
  // The mildest quantization that fits.
  FitRow row;
  row.possible = false;
  for (const char* dtype : {"fp8", "int4"}) {
    row = serving_row(q, model, machine, job, dtype);
    reading.precision = dtype;
    if (row.fits) break;
  }
  return row;
}

// What the range of measured and assumed rows leaves open, for the setting of `row`.
bool in_doubt(const Question& q, const Machine& machine, const FitRow& row, const std::string& id) {
  try {
    if (is_training(id)) {
      const TrainAnswer a = answer_train(q.model, machine, row.job, q.knowledge);
      return a.doubtful() && a.host_fits();
    }
    const ServeAnswer a = serve(q.model, machine, row.job, q.constants());
    if (!a.concurrency_known || a.concurrency_unlimited) return false;
    return std::any_of(a.movers.begin(), a.movers.end(), [&](const ServeMover& m) {
      const auto [low, high] = std::minmax(m.concurrency_low, m.concurrency_high);
      return a.fits ? low < a.asked : high >= a.asked;
    });
  } catch (const InputError&) {
    return false;  // a row that no setting makes possible
  }
}

// Whether the reading holds on a machine; `reasons` tells why where that is in doubt.
Verdict holds(const Question& q, const Machine& machine, CheckReading& reading, std::vector<Note>& reasons) {
  reading.row = row_of(q, q.model, machine, q.job, reading);
  if (!reading.row.possible) return Verdict::is_false;
  if (in_doubt(q, machine, reading.row, reading.id)) {
    reasons.push_back({"check.why.range", {}});
    return Verdict::doubtful;
  }
  if (reading.row.fits) return Verdict::is_true;
  CheckReading other = reading;
  if (q.bare && reading.id != "lora" && reading.id != "qlora" && !q.claim.users &&
      row_of(q, *q.bare, machine, q.job, other).fits) {
    reasons.push_back({is_training(reading.id) ? "check.why.activations" : "check.why.cache", {}});
    return Verdict::doubtful;
  }
  if (!q.claim.context) {
    Job shorter = q.job;
    shorter.sequence = std::min(kShortSequence, *shorter.sequence);
    shorter.context = std::min(kShortContext, *shorter.context);
    if (row_of(q, q.model, machine, shorter, other).fits) {
      const bool training = is_training(reading.id);
      reasons.push_back({training ? "check.why.sequence" : "check.why.context",
                         {{"short", with_commas(training ? *shorter.sequence : *shorter.context)},
                          {"usual", with_commas(training ? *q.job.sequence : *q.job.context)}}});
      return Verdict::doubtful;
    }
  }
  return Verdict::is_false;
}

Machine machine_of(const Question& q, int64_t cards) {
  Job job;
  job.on = q.claim.machine();
  if (cards > 0) job.on = fmt::format("{}x{}", cards, q.claim.device);
  return resolve_machine(job, q.knowledge);
}

// Whether fewer cards would do: one less, or half of them where an odd number can't be divided.
bool fewer_do(const Question& q, const std::string& id, int64_t cards) {
  std::vector<int64_t> counts;
  for (int64_t n : {cards - 1, cards / 2}) {
    if (n > 0 && (counts.empty() || counts.front() != n)) counts.push_back(n);
  }
  return std::any_of(counts.begin(), counts.end(), [&](int64_t n) {
    CheckReading reading{id, {}, {}, Verdict::is_false, false};
    return row_of(q, q.model, machine_of(q, n), q.job, reading).fits;
  });
}

// The reading that the claim means; "" where it leaves the task open.
std::string claimed_id(const Claim& c) {
  if (c.task == "lora" || c.task == "qlora") return c.task;
  if (c.task == "serve" || c.task == "run") return c.bits == "any" ? "quantized_serving" : "serving";
  if (c.task.empty()) return c.bits.empty() ? "" : c.bits == "any" ? "quantized_serving" : "serving";
  return c.offload.empty() || c.offload == "no" ? "full" : "offload";
}

// What the claim says of one reading: that these cards do, or that no fewer do.
Verdict said_of(const Question& q, CheckReading& reading, const Machine& machine, std::vector<Note>& reasons) {
  const int64_t cards = machine.cards();
  const Verdict fits = holds(q, machine, reading, reasons);
  reading.holds = fits;
  if (q.claim.need == Need::at_least) {
    const bool fewer = cards > 1 && fewer_do(q, reading.id, cards);
    reasons.clear();
    reasons.push_back({fewer ? "check.why.fewer" : "check.why.no_fewer", {{"cards", with_commas(cards)}}});
    return of(!fewer);
  }
  if (q.claim.need == Need::plain && fits == Verdict::is_true && cards > 1 && fewer_do(q, reading.id, cards)) {
    reasons.push_back({"check.why.fewer", {{"cards", with_commas(cards)}}});
    return Verdict::doubtful;
  }
  return fits;
}

bool any_of(const std::vector<CheckReading>& readings, std::initializer_list<std::string_view> ids) {
  return std::any_of(readings.begin(), readings.end(), [&](const CheckReading& r) {
    return r.holds == Verdict::is_true && std::find(ids.begin(), ids.end(), r.id) != ids.end();
  });
}

// A claim that leaves the task open is true where it holds for training and for inference alike.
Verdict of_open_task(CheckAnswer& a, const std::vector<Verdict>& said) {
  const auto is = [&](Verdict v) {
    return std::count(said.begin(), said.end(), v) == static_cast<std::ptrdiff_t>(said.size());
  };
  if (is(Verdict::is_true)) return Verdict::is_true;
  if (is(Verdict::is_false)) return Verdict::is_false;
  a.reasons.push_back({"check.why.task", {}});
  return Verdict::doubtful;
}

void answer_capacity(CheckAnswer& a, Question& q) {
  const Claim& c = a.claim;
  a.machine = machine_of(q, 0);
  const Machine& machine = *a.machine;
  a.usable = machine.device.usable_bytes();
  const std::string wanted = claimed_id(c);
  std::vector<Verdict> open;  // of training and of serving, where the claim names no task
  for (const char* id : {"full", "offload", "lora", "qlora", "serving", "quantized_serving"}) {
    CheckReading reading{id, {}, {}, Verdict::is_false, wanted == id};
    std::vector<Note> reasons;
    if (reading.claimed) {
      a.verdict = said_of(q, reading, machine, reasons);
      a.reasons = std::move(reasons);
    } else if (wanted.empty() && (reading.id == "full" || reading.id == "serving")) {
      open.push_back(said_of(q, reading, machine, reasons));
    } else if (reading.id == "quantized_serving" && !c.bits.empty() && c.bits != "bf16" && c.bits != "any") {
      continue;  // the claim is about that precision
    } else {
      reading.row = row_of(q, q.model, machine, q.job, reading);
      reading.holds = of(reading.row.possible && reading.row.fits);
    }
    a.readings.push_back(std::move(reading));
  }
  if (wanted.empty()) a.verdict = of_open_task(a, open);
  if (a.verdict == Verdict::is_false && c.need != Need::at_least) {
    // What the claim leaves unsaid decides.
    if (c.task == "tune" && any_of(a.readings, {"lora", "qlora"})) {
      a.verdict = Verdict::doubtful;
      a.reasons.push_back({"check.why.method", {}});
    } else if (wanted == "serving" && c.bits.empty() && any_of(a.readings, {"quantized_serving"})) {
      a.verdict = Verdict::doubtful;
      a.reasons.push_back({"check.why.precision", {}});
    }
  }
  if (c.negated) a.verdict = opposite(a.verdict);

  // What everybody asks next of training: the states alone.
  if (c.task == "full" || c.task == "pretrain" || c.task == "tune" || c.task.empty()) {
    const auto full =
        std::find_if(a.readings.begin(), a.readings.end(), [](const CheckReading& r) { return r.id == "full"; });
    if (full != a.readings.end() && full->row.possible) {
      const Model& sized = q.bare ? *q.bare : q.model;
      Job states;
      states.textbook = true;
      states.task = "full";
      states.optimizer = q.job.optimizer;
      states.precision = q.job.precision;
      a.states = answer_train(sized, std::nullopt, states, q.knowledge).states_all.total();
      a.states_per_card = ceil_div(a.states, machine.cards());
    }
  }
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::is_true:
      return "true";
    case Verdict::is_false:
      return "false";
    case Verdict::doubtful:
      break;
  }
  return "doubtful";
}

const CheckReading* CheckAnswer::claimed() const {
  const auto found = std::find_if(readings.begin(), readings.end(), [](const CheckReading& r) { return r.claimed; });
  return found == readings.end() ? nullptr : &*found;
}

std::vector<std::string> CheckAnswer::assumed(Lang lang) const {
  std::vector<std::string> out;
  if (!stand_in.empty()) out.push_back(say(lang, "check.stand_in", fmt::arg("model", stand_in)));
  if (claim.kind == Claim::Kind::capacity) {
    if (!claim.context && sequence > 0) {
      out.push_back(say(lang, "check.settings", fmt::arg("sequence", with_commas(sequence)),
                        fmt::arg("context", with_commas(context))));
    }
  }
  if (model && stand_in.empty()) {
    for (std::string& text : model->assumed(lang)) out.push_back(std::move(text));
  }
  if (machine) {
    for (const std::string& text : machine->assumed(lang)) out.push_back(text);
  }
  return out;
}

CheckAnswer answer_check(std::string_view text, const Knowledge& knowledge) {
  CheckAnswer a;
  a.claim = parse_claim(text, knowledge.devices());
  const Claim& c = a.claim;
  if (c.kind == Claim::Kind::concept_row) {
    answer_truth(a, knowledge);
    return a;
  }
  const ClaimModel m = model_of_claim(c, knowledge);
  a.stand_in = m.stand_in;
  if (c.kind == Claim::Kind::amount) {
    a.model = m.model;
    answer_amount(a, m, knowledge);
    return a;
  }
  Question q{c, knowledge, m.model, m.bare, job_of(c)};
  m.describe(q.job);
  set_defaults(q.job, q.model);
  if (q.model.learned_positions && *q.job.sequence > q.model.max_positions) {
    throw InputError({.field = "claim",
                      .value = c.text,
                      .problem = fmt::format("asks for more than the {} learned positions of {}",
                                             with_commas(q.model.max_positions), q.model.name)});
  }
  q.job.on = c.machine();
  a.model = q.model;
  a.sequence = *q.job.sequence;
  a.context = *q.job.context;
  answer_capacity(a, q);
  return a;
}

}  // namespace vram
