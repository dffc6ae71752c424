#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>

#include "base/error.h"

#include "training/cost.h"
#include "training/step.h"

namespace vram {
namespace {

// A Llama- or Mixtral-shaped model made by hand.
Model decoder(int64_t layers, int64_t h, int64_t a, int64_t k, int64_t f, int64_t vocab, int64_t experts = 0) {
  Model m;
  m.name = "test";
  m.hidden = h;
  m.vocab = vocab;
  LayerKind kind;
  const int64_t d = h / a;
  kind.attention.heads = a;
  kind.attention.kv_heads = k;
  kind.attention.head_dim = kind.attention.value_head_dim = d;
  kind.mlp.ffn = f;
  kind.mlp.activation = "silu";
  TensorGroup once, layer;
  const auto tensor = [](std::string name, std::vector<int64_t> shape, Role role, Shard shard, bool linear,
                         int64_t copies = 1) {
    Tensor t;
    t.name = std::move(name);
    t.shape = std::move(shape);
    t.role = role;
    t.shard = shard;
    t.linear = linear;
    t.experts = copies;
    t.stored_bytes = 2 * t.elements();
    return t;
  };
  once.tensors = {tensor("embed", {vocab, h}, Role::embedding, Shard::vocab, false),
                  tensor("norm", {h}, Role::norm, Shard::replicated, false),
                  tensor("head", {vocab, h}, Role::head, Shard::vocab, true)};
  layer.tensors = {tensor("q", {a * d, h}, Role::attention_q, Shard::column, true),
                   tensor("k", {k * d, h}, Role::attention_k, Shard::kv_column, true),
                   tensor("v", {k * d, h}, Role::attention_v, Shard::kv_column, true),
                   tensor("o", {h, a * d}, Role::attention_out, Shard::row, true),
                   tensor("norm1", {h}, Role::norm, Shard::replicated, false),
                   tensor("norm2", {h}, Role::norm, Shard::replicated, false)};
  if (experts > 0) {
    kind.mlp = {
        .kind = MlpKind::moe, .activation = "silu", .experts = experts, .experts_per_token = 2, .expert_ffn = f};
    layer.tensors.push_back(tensor("router", {experts, h}, Role::router, Shard::replicated, false));
    layer.tensors.push_back(tensor("gate", {f, h}, Role::expert_gate, Shard::expert_column, true, experts));
    layer.tensors.push_back(tensor("up", {f, h}, Role::expert_up, Shard::expert_column, true, experts));
    layer.tensors.push_back(tensor("down", {h, f}, Role::expert_down, Shard::expert_row, true, experts));
  } else {
    layer.tensors.push_back(tensor("gate", {f, h}, Role::mlp_gate, Shard::column, true));
    layer.tensors.push_back(tensor("up", {f, h}, Role::mlp_up, Shard::column, true));
    layer.tensors.push_back(tensor("down", {h, f}, Role::mlp_down, Shard::row, true));
  }
  for (int64_t i = 0; i < layers; ++i) layer.layers.push_back(i);
  m.tensors = {once, layer};
  m.kinds = {kind};
  m.layer_kind.assign(static_cast<size_t>(layers), 0);
  for (const TensorGroup& g : m.tensors) {
    for (const Tensor& t : g.tensors) m.counts.parameters += g.times() * t.elements() * t.experts;
  }
  m.counts.active = m.counts.parameters;
  m.counts.embedding = vocab * h;
  return m;
}

Model size_only(int64_t parameters) {
  Model m;
  m.shape_known = false;
  m.counts.parameters = m.counts.active = parameters;
  m.name = "size";
  return m;
}

Machine cards(int64_t n) {
  Machine m;
  m.device.memory_only = true;
  m.device.marketing_bytes = 80 * kGB;
  m.cards_per_node = n;
  m.text = std::to_string(n) + "x80GB";
  return m;
}

struct Sizes {
  Bytes weights = 0, gradients = 0, optimizer = 0, host = 0;
};

Sizes states(const Model& model, const Plan& plan, int64_t rank = 0) {
  Sizes out;
  for (const auto& s : model_states<Fast>(model, plan, rank_counts(model, plan, rank))) {
    const Bytes b = s.storage.bytes.value();
    if (s.storage.tier == Tier::host) {
      out.host += b;
    } else if (s.storage.category == Category::parameters) {
      out.weights += b;
    } else if (s.storage.category == Category::gradients) {
      out.gradients += b;
    } else {
      out.optimizer += b;
    }
  }
  return out;
}

Sizes states_of(int64_t parameters, const Job& job, int64_t devices) {
  const Model model = size_only(parameters);
  const Machine machine = cards(devices);
  return states(model, resolve_plan(model, &machine, job, Rules{}));
}

TEST(States, WorkedExamples) {
  Sizes s = states_of(7'000'000'000, {}, 1);  // mixed Adam: 14 + 14 + 84 GB
  EXPECT_EQ(s.weights, 14 * kGB);
  EXPECT_EQ(s.gradients, 14 * kGB);
  EXPECT_EQ(s.optimizer, 84 * kGB);
  Job zero;
  zero.zero = 3;
  s = states_of(175'000'000'000, zero, 8);
  EXPECT_EQ(s.weights + s.gradients + s.optimizer, 350 * kGB);
  s = states_of(65'000'000'000, zero, 8);
  EXPECT_EQ(s.weights + s.gradients + s.optimizer, 130 * kGB);
  zero.master_weights = false;
  s = states_of(65'000'000'000, zero, 8);
  EXPECT_EQ(s.weights + s.gradients + s.optimizer, int64_t{97'500'000'000});
  // 7.5 B over 64: ZeRO-1, 2, 3 (Rajbhandari et al. 2020, figure 1).
  const double expected[] = {31.4, 16.6, 1.9};
  for (int64_t stage = 1; stage <= 3; ++stage) {
    Job job;
    job.zero = stage;
    s = states_of(7'500'000'000, job, 64);
    EXPECT_NEAR(static_cast<double>(s.weights + s.gradients + s.optimizer) / 1e9, expected[stage - 1], 0.05);
  }
  Job big;
  big.tensor_parallel = 8;
  big.pipeline_parallel = 64;
  big.zero = 1;
  s = states_of(1'000'000'000'000, big, 3072);
  EXPECT_NEAR(static_cast<double>(s.weights + s.gradients) / 1e9, 7.81, 0.005);
  EXPECT_NEAR(static_cast<double>(s.optimizer) / 1e9, 3.91, 0.005);
  Job offload;
  offload.zero = 3;
  offload.offload = {"optimizer"};
  s = states_of(65'000'000'000, offload, 8);
  EXPECT_EQ(s.weights + s.gradients, int64_t{32'500'000'000});
  EXPECT_EQ(8 * s.host, 780 * kGB);
}

TEST(States, BytesAParameter) {
  const auto per_parameter = [](auto change) {
    Job job;
    change(job);
    const Sizes s = states_of(1'000'000, job, 1);
    return static_cast<double>(s.weights + s.gradients + s.optimizer) / 1e6;
  };
  EXPECT_EQ(per_parameter([](Job& j) { j.precision = "fp32"; }), 16);
  EXPECT_EQ(per_parameter([](Job&) {}), 16);
  EXPECT_EQ(per_parameter([](Job& j) { j.gradient_dtype = "fp32"; }), 18);
  EXPECT_EQ(per_parameter([](Job& j) { j.gradient_dtype = "both"; }), 20);
  EXPECT_EQ(per_parameter([](Job& j) { j.master_weights = false; }), 12);
  EXPECT_EQ(per_parameter([](Job& j) { j.precision = "bf16_pure"; }), 8);
  EXPECT_EQ(per_parameter([](Job& j) { j.optimizer = "sgd"; }), 8);
  EXPECT_EQ(per_parameter([](Job& j) { j.optimizer = "sgd_momentum"; }), 12);
  EXPECT_EQ(per_parameter([](Job& j) { j.optimizer = "lion"; }), 12);
  EXPECT_NEAR(per_parameter([](Job& j) { j.optimizer = "adamw8bit"; }), 10.03125, 1e-4);
}

TEST(States, AdafactorKeepsRowsAndColumns) {
  const Model m = decoder(2, 256, 4, 2, 512, 1000);
  Job job;
  job.optimizer = "adafactor";
  const Machine one = cards(1);
  const Sizes s = states(m, resolve_plan(m, &one, job, Rules{}));
  const int64_t d = 64,
                matrices = 2 * (1000 + 256) + 2 * ((256 + 256) + 2 * (2 * d + 256) + (256 + 256) + 3 * (512 + 256));
  const int64_t vectors = 256 + 2 * 2 * 256;
  EXPECT_EQ(s.optimizer, 4 * m.counts.parameters + 4 * (matrices + vectors));
}

TEST(States, RanksHoldEveryParameterOnce) {
  const Model m = decoder(8, 256, 4, 4, 512, 1024, 8);
  Job job;
  job.tensor_parallel = 2;
  job.pipeline_parallel = 2;
  job.expert_parallel = 4;
  const Machine machine = cards(16);
  const Plan plan = resolve_plan(m, &machine, job, Rules{});
  EXPECT_EQ(plan.etp, 1);
  EXPECT_EQ(plan.expert_dp(), 2);
  int64_t dense = 0, expert = 0;
  for (int64_t r = 0; r < 2; ++r) {
    const RankCounts c = rank_counts(m, plan, r);
    dense += c.dense.parameters;
    expert += c.expert.parameters;
  }
  const int64_t replicated = 8 * (2 * 256 + 8 * 256) + 256;
  const int64_t experts = 8 * 8 * 3 * 256 * 512;
  EXPECT_EQ(expert * 4, experts);
  EXPECT_EQ(dense * 2, m.counts.parameters - experts + replicated);
}

TEST(Schedules, InFlightCountsMatchTheClosedForms) {
  for (int64_t p : {1, 2, 4, 8}) {
    for (int64_t m : {1, 3, 8, 16}) {
      for (int64_t r = 0; r < p; ++r) {
        int64_t now = 0, most = 0;
        for (const Pass& pass : pass_order(Schedule::one_f_one_b, p, 1, m, r)) {
          now += pass.forward ? 1 : -1;
          most = std::max(most, now);
        }
        EXPECT_EQ(most, std::min(m, p - r));
        EXPECT_EQ(now, 0);
      }
    }
    for (int64_t v : {2, 4}) {
      if (p < 2) continue;
      const int64_t m = 4 * p;
      for (int64_t r = 0; r < p; ++r) {
        int64_t now = 0, most = 0;
        for (const Pass& pass : pass_order(Schedule::interleaved, p, v, m, r)) {
          now += pass.forward ? 1 : -1;
          most = std::max(most, now);
        }
        EXPECT_EQ(most, std::min(m * v, 2 * (p - r - 1) + (v - 1) * p + 1));
        EXPECT_EQ(now, 0);
      }
    }
  }
}

// schedule_shape looks at the first rounds only; the moments of all rounds must hold no higher one.
TEST(Schedules, ShapesKnowEveryMoment) {
  for (Schedule s : {Schedule::one_f_one_b, Schedule::interleaved, Schedule::gpipe}) {
    for (int64_t p : {2, 4, 8}) {
      const int64_t v = s == Schedule::interleaved ? 3 : 1;
      for (int64_t m : {p, 4 * p, 9 * p}) {
        const ScheduleShape shape = schedule_shape(s, p, v, m);
        for (int64_t r = 0; r < p; ++r) {
          std::vector<int64_t> in_flight(static_cast<size_t>(v), 0);
          std::vector<bool> gradients(static_cast<size_t>(v), false);
          for (const Pass& pass : pass_order(s, p, v, m, r)) {
            const auto c = static_cast<size_t>(pass.chunk);
            const bool first = !pass.forward && !gradients[c];
            bool covered = false;
            for (const Moment& k : shape.ranks[static_cast<size_t>(r)]) {
              bool higher = k.forward == pass.forward && k.chunk == pass.chunk && (first || !k.first_backward);
              for (size_t i = 0; i < in_flight.size(); ++i) {
                higher = higher && k.in_flight[i] >= in_flight[i] && (k.gradients[i] || !gradients[i]);
              }
              covered = covered || higher;
            }
            EXPECT_TRUE(covered) << schedule_name(s) << " p " << p << " m " << m << " rank " << r;
            in_flight[c] += pass.forward ? 1 : -1;
            if (!pass.forward) gradients[c] = true;
          }
        }
      }
    }
  }
}

TEST(Schedules, EveryPassOnceAndForwardFirst) {
  for (Schedule s : {Schedule::one_f_one_b, Schedule::interleaved, Schedule::gpipe}) {
    const int64_t p = 4, v = s == Schedule::interleaved ? 2 : 1, m = 8;
    for (int64_t r = 0; r < p; ++r) {
      std::vector<int> seen(static_cast<size_t>(v * m), 0);
      for (const Pass& pass : pass_order(s, p, v, m, r)) {
        int& state = seen[static_cast<size_t>(pass.chunk * m + pass.micro_batch)];
        EXPECT_EQ(state, pass.forward ? 0 : 1);
        ++state;
      }
      for (int state : seen) EXPECT_EQ(state, 2);
    }
  }
}

// A random job over a random model, its plan always valid.
struct Case {
  Model model;
  Plan plan;
};

Case random_case() {
  const int64_t experts = *rc::gen::element<int64_t>(0, 8);
  const int64_t pp = *rc::gen::element<int64_t>(1, 2, 4);
  const int64_t vpp = pp > 1 ? *rc::gen::element<int64_t>(1, 2) : 1;
  const int64_t layers =
      pp * vpp * *rc::gen::inRange<int64_t>(1, 4) + (vpp == 1 ? *rc::gen::inRange<int64_t>(0, 2) : 0);
  Case c;
  c.model = decoder(layers, 256, 8, *rc::gen::element<int64_t>(1, 2, 8), 384, 1000, experts);
  if (*rc::gen::arbitrary<bool>()) {
    c.model.tied_embeddings = true;
    c.model.tensors[0].tensors.pop_back();
  }
  // A second kind of layer in the middle.
  if (*rc::gen::arbitrary<bool>() && layers > 2) {
    LayerKind other = c.model.kinds[0];
    other.norms = 4;
    c.model.kinds.push_back(other);
    c.model.layer_kind[1] = 1;
  }
  Job job;
  job.tensor_parallel = *rc::gen::element<int64_t>(1, 2, 4);
  job.pipeline_parallel = pp;
  if (vpp > 1) job.virtual_pipeline = vpp;
  job.sequence = 64 * *rc::gen::inRange<int64_t>(1, 5);
  job.micro_batch = *rc::gen::inRange<int64_t>(1, 4);
  job.gradient_accumulation = pp * *rc::gen::inRange<int64_t>(1, 4);
  job.zero = *rc::gen::inRange<int64_t>(0, 4);
  job.recompute = *rc::gen::element<std::string>("none", "selective", "full");
  job.attention = *rc::gen::element<std::string>("flash", "eager");
  job.precision = *rc::gen::element<std::string>("bf16", "fp32", "bf16_pure", "fp8");
  if (vpp == 1 && *rc::gen::arbitrary<bool>()) job.schedule = "gpipe";
  if (*rc::gen::arbitrary<bool>()) job.offload = {"optimizer"};
  job.textbook = *rc::gen::inRange(0, 4) == 0;
  const bool lora = *rc::gen::arbitrary<bool>() && *job.precision != "fp8";
  if (lora) job.task = "lora";
  if (*rc::gen::arbitrary<bool>() && *job.tensor_parallel > 1) job.sequence_parallel = true;
  Rules rules;
  rules.kernels.norm_fused = *rc::gen::arbitrary<bool>();
  rules.kernels.swiglu_fused = *rc::gen::arbitrary<bool>();
  rules.kernels.loss =
      *rc::gen::element(KernelChoice::Loss::upcast, KernelChoice::Loss::vocab_parallel, KernelChoice::Loss::fused,
                        KernelChoice::Loss::plain, KernelChoice::Loss::vocab_parallel_compiled);
  rules.kernels.logits_kept = *rc::gen::arbitrary<bool>();
  rules.gradients_from_start = *rc::gen::arbitrary<bool>();
  rules.reduce_bytes = *rc::gen::element<int64_t>(0, 4);
  rules.step_copy_bytes = *rc::gen::element<int64_t>(0, 4);
  rules.gradients_in_buckets = *rc::gen::arbitrary<bool>();
  rules.placeholder_bytes = *rc::gen::element<int64_t>(0, 2);
  rules.vocabulary_multiple = *rc::gen::element<int64_t>(1, 128);
  rules.kernels.moe_weighted_activation = *rc::gen::arbitrary<bool>();
  const Machine machine = cards(*job.tensor_parallel * pp * *rc::gen::element<int64_t>(1, 2, 8));
  c.plan = resolve_plan(c.model, &machine, job, rules);
  return c;
}

TEST(Step, ClosedFormEqualsProgramEqualsUnrolledEqualsTraced) {
  rc::check([] {
    const Case c = random_case();
    const Constant context{.id = "context", .value = 1000, .low = 500, .high = 2000};
    Overheads over;
    over.context = {context};
    const StepTables tables = step_tables(c.model, c.plan, over);
    const ScheduleShape shape = schedule_shape(c.plan.schedule, c.plan.pp, c.plan.vpp, c.plan.micro_batches);
    std::vector<Bytes> peaks(static_cast<size_t>(c.plan.pp));
    compose(tables, shape, peaks.data());
    for (int64_t r = 0; r < c.plan.pp; ++r) {
      const auto program = step_program<Fast>(c.model, c.plan, over, r);
      const Summary summary = summarize(program, Tier::device);
      RC_ASSERT(check(program).empty());
      Bytes level = 0, highest = 0;
      for_each_event<Fast>(program, [&](const Event& e) {
        const auto& s = program.storages()[e.storage];
        if (s.tier != Tier::device) return;
        level += e.allocate ? s.bytes.value() : -s.bytes.value();
        highest = std::max(highest, level);
      });
      RC_ASSERT(summary.peak == highest);
      RC_ASSERT(peaks[static_cast<size_t>(r)] == highest);
      const Ledger fast = make_ledger(program, Tier::device);
      const Ledger traced = make_ledger(step_program<Traced>(c.model, c.plan, over, r), Tier::device);
      RC_ASSERT(fast.bytes == highest);
      RC_ASSERT(traced.bytes == highest);
      RC_ASSERT(traced.high >= traced.bytes);
      RC_ASSERT(traced.low <= traced.bytes);
      for (View by : {View::category, View::module, View::life}) RC_ASSERT(check_sums(traced, view(traced, by)) == "");
    }
  });
}

// However long a step is, its account costs no more, and is the same from where it repeats itself.
TEST(Step, LongStepsCostNoMore) {
  const Model m = decoder(8, 256, 8, 8, 384, 1000);
  for (const char* schedule : {"1f1b", "interleaved", "gpipe"}) {
    Job job;
    job.pipeline_parallel = 2;
    job.schedule = schedule;
    if (job.schedule == "interleaved") job.virtual_pipeline = 2;
    const Machine two = cards(2);
    std::vector<Bytes> peaks;
    for (int64_t micro_batches : {int64_t{64}, int64_t{1'000'000'000}}) {
      job.gradient_accumulation = micro_batches;
      const Plan plan = resolve_plan(m, &two, job, Rules{});
      for (int64_t rank : {0, 1}) {
        const Ledger ledger = make_ledger(step_program<Fast>(m, plan, {}, rank), Tier::device);
        peaks.push_back(ledger.bytes);
      }
      std::vector<Bytes> closed(2);
      compose(step_tables(m, plan, {}), schedule_shape(plan.schedule, 2, plan.vpp, plan.micro_batches), closed.data());
      EXPECT_EQ(closed[0], peaks[peaks.size() - 2]) << schedule;
      EXPECT_EQ(closed[1], peaks[peaks.size() - 1]) << schedule;
    }
    if (job.schedule != "gpipe") {
      EXPECT_EQ(peaks[0], peaks[2]) << schedule;
      EXPECT_EQ(peaks[1], peaks[3]) << schedule;
    } else {
      EXPECT_GT(peaks[2], peaks[0] * 1'000'000);  // every micro-batch is kept
    }
  }
}

TEST(Plans, PipelinesAreBounded) {
  const Model m = decoder(8192, 256, 8, 8, 384, 1000);
  Job job;
  job.pipeline_parallel = 2048;
  EXPECT_THROW(resolve_plan(m, nullptr, job, Rules{}), InputError);
  job.pipeline_parallel = 64;
  job.virtual_pipeline = 64;
  EXPECT_THROW(resolve_plan(m, nullptr, job, Rules{}), InputError);
  job.pipeline_parallel = 2;
  job.virtual_pipeline = 128;
  EXPECT_THROW(resolve_plan(m, nullptr, job, Rules{}), InputError);
  job.virtual_pipeline = 64;
  job.gradient_accumulation = 4;
  EXPECT_EQ(resolve_plan(m, nullptr, job, Rules{}).vpp, 64);
}

TEST(Step, SizesBeyondInt64AreRefusedInBothForms) {
  const Model m = decoder(4, 4096, 32, 32, 11008, 32000);
  Job job;
  job.sequence = int64_t{1} << 30;
  job.micro_batch = 500'000;
  job.attention = "flash";
  const Machine one = cards(1);
  const Plan plan = resolve_plan(m, &one, job, Rules{});
  Bytes peak = 0;
  EXPECT_THROW(compose(step_tables(m, plan, {}), schedule_shape(plan.schedule, 1, 1, 1), &peak), OverflowError);
  EXPECT_THROW(make_ledger(step_program<Fast>(m, plan, {}, 0), Tier::device), OverflowError);
}

Bytes worst(const Model& model, const Plan& plan) {
  std::vector<Bytes> peaks(static_cast<size_t>(plan.pp));
  compose(step_tables(model, plan, {}), schedule_shape(plan.schedule, plan.pp, plan.vpp, plan.micro_batches),
          peaks.data());
  return *std::max_element(peaks.begin(), peaks.end());
}

TEST(Step, PeaksAreMonotone) {
  rc::check([] {
    Case c = random_case();
    const Bytes before = worst(c.model, c.plan);
    Plan bigger = c.plan;
    bigger.micro_batch *= 2;
    RC_ASSERT(worst(c.model, bigger) >= before);
    bigger = c.plan;
    bigger.sequence *= 2;
    RC_ASSERT(worst(c.model, bigger) >= before);
    Model deeper = c.model;
    for (auto& layer : deeper.tensors[1].layers) (void)layer;
    const int64_t add = c.plan.pp * c.plan.vpp;
    for (int64_t i = 0; i < add; ++i) {
      deeper.tensors[1].layers.push_back(static_cast<int64_t>(deeper.layer_kind.size()));
      deeper.layer_kind.push_back(0);
    }
    RC_ASSERT(worst(deeper, c.plan) >= before);
  });
}

// Gradients that appear in backward are those of every parameter, a tied table's once.
TEST(Step, GradientsOfAStepAreThoseOfTheRank) {
  for (const bool tie : {false, true}) {
    for (int64_t pp : {1, 2}) {
      Model m = decoder(4, 256, 8, 8, 384, 1000);
      if (tie) {
        m.tied_embeddings = true;
        m.tensors[0].tensors.pop_back();
        m.counts.parameters -= 1000 * 256;
      }
      Rules rules;
      rules.gradients_from_start = false;
      Job job;
      job.pipeline_parallel = pp;
      const Machine machine = cards(pp);
      const Plan plan = resolve_plan(m, &machine, job, rules);
      const StepTables t = step_tables(m, plan, {});
      for (int64_t r = 0; r < pp; ++r) {
        const Bytes made =
            (r == 0 ? t.embedding.gradients : 0) + (r == pp - 1 ? t.head.gradients : 0) + 4 / pp * t.kinds[0].gradients;
        EXPECT_EQ(made, states(m, plan, r).gradients) << tie << pp << r;
      }
    }
  }
}

TEST(States, PaddedVocabularyAndPlaceholders) {
  // h 256, 8 heads of 32, 2 KV heads, f 384, tp 2: qkv (128+64) x 256, out 256 x 128, gate-up 384 x 256, down 256 x
  // 192.
  Model m = decoder(4, 256, 8, 2, 384, 1000);
  Rules rules;
  rules.placeholder_bytes = 2;
  rules.vocabulary_multiple = 128;
  Job job;
  job.tensor_parallel = 2;
  Plan plan = resolve_plan(m, nullptr, job, rules);
  EXPECT_EQ(placeholders<Fast>(m, plan, 0).value(), 2 * (192 * 256 + 256 * 128 + 384 * 256 + 256 * 192));
  EXPECT_EQ(embedding_counts(m, plan).parameters, 512 * 256);  // 1000 rows become 1024
  // Experts: one tensor a shape however many there are; tensor parallelism inside them divides it.
  m = decoder(4, 256, 8, 2, 384, 1000, 8);
  job.expert_tensor_parallel = 2;
  plan = resolve_plan(m, nullptr, job, rules);
  EXPECT_EQ(placeholders<Fast>(m, plan, 0).value(), 2 * (192 * 256 + 256 * 128 + 384 * 256 + 256 * 192));
  rules.placeholder_bytes = 0;
  EXPECT_EQ(placeholders<Fast>(m, resolve_plan(m, nullptr, job, rules), 0).value(), 0);
}

TEST(States, BucketsHoldEveryGradientAgain) {
  const Model m = decoder(4, 256, 8, 2, 384, 1000);
  Rules rules;
  rules.gradients_in_buckets = true;
  const auto bytes = [&](const Job& job, int64_t devices) {
    const Machine machine = cards(devices);
    const Plan plan = resolve_plan(m, &machine, job, rules);
    return gradient_buckets<Fast>(plan, rank_counts(m, plan, 0)).value();
  };
  EXPECT_EQ(bytes({}, 4), 2 * m.counts.parameters);
  EXPECT_EQ(bytes({}, 1), 0);
  Job job;
  job.gradient_dtype = "fp32";
  EXPECT_EQ(bytes(job, 2), 4 * m.counts.parameters);
  job.zero = 1;
  EXPECT_EQ(bytes(job, 2), 0);
}

TEST(Step, MoreShardsNeverNeedMoreForStates) {
  const Model m = decoder(4, 256, 8, 8, 384, 1000);
  for (int64_t stage = 1; stage <= 3; ++stage) {
    Bytes last = std::numeric_limits<Bytes>::max();
    for (int64_t dp : {1, 2, 4, 8, 16, 64}) {
      Job job;
      job.zero = stage;
      const Machine machine = cards(dp);
      const Sizes s = states(m, resolve_plan(m, &machine, job, Rules{}));
      EXPECT_LE(s.weights + s.gradients + s.optimizer, last);
      last = s.weights + s.gradients + s.optimizer;
    }
  }
}

TEST(Step, TextbookFormulas) {
  Model gpt = decoder(32, 4096, 32, 32, 16384, 50257);
  gpt.kinds[0].mlp.kind = MlpKind::plain;
  Job job;
  job.textbook = true;
  job.sequence = 2048;
  const Machine one = cards(1);
  const auto activations = [&](const Model& m) {
    return make_ledger(step_program<Fast>(m, resolve_plan(m, &one, job, Rules{}), {}, 0), Tier::device)
        .of(Category::activations);
  };
  EXPECT_NEAR(static_cast<double>(activations(gpt)) / 1e9, 30.6, 0.05);
  EXPECT_NEAR(static_cast<double>(activations(decoder(32, 4096, 32, 32, 11008, 32000))) / 1e9, 31.04, 0.005);
  const Bytes whole = activations(gpt);
  // 1F1B: the first of 4 stages keeps 4 micro-batches of a quarter of the layers.
  job.pipeline_parallel = 4;
  const Machine four = cards(4);
  const Ledger first =
      make_ledger(step_program<Fast>(gpt, resolve_plan(gpt, &four, job, Rules{}), {}, 0), Tier::device);
  EXPECT_EQ(first.of(Category::activations), whole);
}

TEST(Cost, TrainingDays) {
  // 70e9 parameters, 2e12 tokens, 1000 A100 at 45 %.
  Device a100;
  a100.flops_bf16 = 312e12;
  const Model m = size_only(70'000'000'000);
  const TrainingFlops f = training_flops(m, {});
  const auto t = training_time(f.per_token(), 2e12, 1000, a100, Precision::bf16, 0.45, std::nullopt);
  ASSERT_TRUE(t);
  EXPECT_DOUBLE_EQ(t->flops, 8.4e23);
  EXPECT_NEAR(t->seconds / 86400, 69.2, 0.05);
  EXPECT_NEAR(t->card_hours, 1'661'918, 1);
  EXPECT_NEAR(t->tokens_per_second, 334e3, 500);
}

TEST(Cost, OffloadHidesBehindEnoughTokens) {
  const Model m = size_only(7'000'000'000);
  Job job;
  job.offload = {"optimizer"};
  const Machine one = cards(1);
  const Plan plan = resolve_plan(m, &one, job, Rules{});
  const Traffic traffic = step_traffic(m, plan, rank_counts(m, plan, 0));
  const OffloadTime t = offload_time(traffic, 64e9, 6 * 7e9, 989e12, 0.45);
  EXPECT_DOUBLE_EQ(t.bytes_per_step, 28e9);
  EXPECT_DOUBLE_EQ(t.seconds_one_way, 0.4375);
  EXPECT_NEAR(t.seconds_duplex, 0.219, 0.0005);
  EXPECT_NEAR(*t.tokens_to_hide, 4636, 1);
}

TEST(Cost, RingTraffic) {
  const Model m = size_only(1'000'000);
  const Machine eight = cards(8);
  const auto sent = [&](int64_t zero, int64_t accumulation) {
    Job job;
    job.zero = zero;
    job.gradient_accumulation = accumulation;
    const Plan plan = resolve_plan(m, &eight, job, Rules{});
    return step_traffic(m, plan, rank_counts(m, plan, 0)).data_parallel;
  };
  EXPECT_DOUBLE_EQ(sent(0, 1), 4e6 * 7 / 8);
  EXPECT_DOUBLE_EQ(sent(1, 4), 4e6 * 7 / 8);
  EXPECT_DOUBLE_EQ(sent(3, 1), 6e6 * 7 / 8);
  EXPECT_DOUBLE_EQ(sent(3, 4), 4 * 6e6 * 7 / 8);
  // Two shard groups of four: within a group as above, and an all-reduce of the quarter with the other group.
  Job hybrid;
  hybrid.zero = 3;
  hybrid.hybrid_shard = 4;
  const Plan plan = resolve_plan(m, &eight, hybrid, Rules{});
  EXPECT_DOUBLE_EQ(step_traffic(m, plan, rank_counts(m, plan, 0)).data_parallel, 6e6 * 3 / 4 + 2 * 2e6 / 4 / 2);
}

TEST(Cost, ExpertsAndRingsSendWhatARankHolds) {
  // 16 cards: tp 2, cp 2, dp 4; 8 experts over ep 8, so each expert has two replicas.
  Model m = decoder(4, 256, 8, 1, 384, 1000, 8);
  const Machine machine = cards(16);
  Job job;
  job.tensor_parallel = job.context_parallel = 2;
  job.expert_parallel = 8;
  job.expert_tensor_parallel = 1;
  job.sequence_parallel = true;
  job.sequence = 1024;
  job.micro_batch = 1;
  Plan plan = resolve_plan(m, &machine, job, Rules{});
  ASSERT_EQ(plan.expert_dp(), 2);
  const RankCounts counts = rank_counts(m, plan, 0);
  Traffic t = step_traffic(m, plan, counts);
  EXPECT_DOUBLE_EQ(t.data_parallel, 4.0 * static_cast<double>(counts.dense.parameters) * 7 / 8 +
                                        4.0 * static_cast<double>(counts.expert.parameters) / 2);
  // 512 tokens after context parallelism, 256 after sequence parallelism, two copies each, there and back, twice.
  EXPECT_DOUBLE_EQ(t.expert_parallel, 4 * 4 * 7.0 / 8 * 2 * 2 * 256 * 256);
  // The one KV head stands on both tensor-parallel ranks.
  EXPECT_DOUBLE_EQ(t.context_parallel, 4 * 3 * 2.0 * 512 * (2 * 32));
  Attention& a = m.kinds[0].attention;
  a.kind = AttentionKind::mla;
  a.nope_head_dim = a.value_head_dim = 32;
  a.rope_head_dim = 16;
  a.kv_lora_rank = 64;
  EXPECT_DOUBLE_EQ(step_traffic(m, plan, counts).context_parallel, 4 * 3 * 2.0 * 512 * 8 * (32 + 16 + 32) / 2);
}

TEST(Plans, TakeFromTheModelWhatTheJobLeavesOpen) {
  Model m = decoder(4, 256, 8, 8, 384, 1000);
  m.kinds[0].hidden_dropout = m.kinds[0].attention_dropout = 0.1;
  m.counts.mtp = 5'000'000;
  const auto says = [](const Plan& plan, std::string_view id) {
    return std::any_of(plan.assumptions.begin(), plan.assumptions.end(), [&](const Note& n) { return n.id == id; });
  };
  Plan plan = resolve_plan(m, nullptr, {}, Rules{});
  EXPECT_DOUBLE_EQ(plan.hidden_dropout, 0.1);
  EXPECT_DOUBLE_EQ(plan.attention_dropout, 0.1);
  EXPECT_TRUE(says(plan, "train.assume.dropout"));
  EXPECT_TRUE(says(plan, "train.assume.no_mtp"));
  Job job;
  job.dropout = 0;
  job.tensor_parallel = 2;
  Rules rules;
  rules.sequence_parallel = true;
  plan = resolve_plan(m, nullptr, job, rules);
  EXPECT_DOUBLE_EQ(plan.hidden_dropout, 0);
  EXPECT_FALSE(says(plan, "train.assume.dropout"));
  EXPECT_TRUE(plan.sequence_parallel);
}

TEST(Plans, MomentsAndLossAsAsked) {
  const Model m = decoder(4, 256, 8, 8, 384, 1000);
  Job job;
  job.moment_dtype = "bf16";
  job.loss = "fused";
  Rules rules;
  rules.kernels.logits_kept = true;
  const Plan plan = resolve_plan(m, nullptr, job, rules);
  EXPECT_EQ(states(m, plan).optimizer, (4 + 2 + 2) * m.counts.parameters);  // master, two 16-bit moments
  EXPECT_EQ(plan.rules.kernels.loss, KernelChoice::Loss::fused);
  EXPECT_FALSE(plan.rules.kernels.logits_kept);
  job.optimizer = "adamw8bit";
  EXPECT_THROW(resolve_plan(m, nullptr, job, rules), InputError);
}

struct BadJob {
  const char* what;
  std::function<void(Job&)> change;
  const char* expected;
};

TEST(Plans, RefuseWhatCannotBe) {
  const Model m = decoder(8, 256, 8, 2, 384, 1000, 8);
  const Machine machine = cards(16);
  const std::vector<BadJob> table = {
      {"tp", [](Job& j) { j.tensor_parallel = 3; }, "does not divide the 8 query heads of test; accepted: 1, 2, 4, 8"},
      {"heads", [](Job& j) { j.tensor_parallel = 16; },
       "does not divide the 8 query heads of test; accepted: 1, 2, 4, 8"},
      {"dp", [](Job& j) { j.data_parallel = 4; }, "has 16; accepted: 16"},
      {"ep", [](Job& j) { j.expert_parallel = 3; }, "does not divide its group of tp·cp·dp = 16"},
      {"experts", [](Job& j) { j.expert_parallel = 16; }, "does not divide the 8 experts"},
      {"layers", [](Job& j) { j.pipeline_parallel = 16; }, "needs more layers than the 8"},
      {"vpp", [](Job& j) { j.pipeline_parallel = 4, j.virtual_pipeline = 3; }, "needs more layers"},
      {"schedule", [](Job& j) { j.schedule = "interleaved"; }, "needs virtual_pipeline of at least 2"},
      {"batch", [](Job& j) { j.global_batch = 17; }, "is no multiple of data_parallel 16 x micro_batch 1"},
      {"cards", [](Job& j) { j.pipeline_parallel = 3; }, "does not divide the 16 cards"},
      {"cp", [](Job& j) { j.context_parallel = 16, j.sequence = 100; }, "does not divide the sequence of 100"},
      {"zero", [](Job& j) { j.zero = 1, j.sharding = "fsdp"; }, "contradicts --sharding fsdp"},
      {"offload", [](Job& j) { j.offload = {"parameters"}; }, "needs --zero 3"},
      {"lora", [](Job& j) { j.lora_rank = 8; }, "has no meaning without adapters"},
      {"master", [](Job& j) { j.precision = "fp32", j.master_weights = true; }, "has no meaning with precision fp32"},
  };
  for (const BadJob& row : table) {
    Job job;
    row.change(job);
    try {
      resolve_plan(m, &machine, job, Rules{});
      ADD_FAILURE() << row.what << " was accepted";
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(row.expected), std::string::npos) << row.what << ": " << e.what();
    }
  }
}

}  // namespace
}  // namespace vram
