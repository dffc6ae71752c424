#include "training/step.h"

#include <algorithm>
#include <array>
#include <map>

namespace vram {

Overheads overheads(const Plan& plan, const Device* device, const Constants& constants) {
  Overheads out;
  if (plan.textbook || !device || device->memory_only) return out;
  std::string arch;
  for (char c : device->arch) arch += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  arch = arch.substr(0, arch.find(' '));
  if (device->vendor == "NVIDIA" || device->vendor == "AMD") {
    out.context.push_back(constants.get_or_default("cuda_context_bytes", arch));
    out.workspace.push_back(constants.get_or_default("cublas_workspace_bytes", arch));
  }
  const auto workspaces = [&](const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      const size_t dot = id.find(".*");
      out.workspace.push_back(dot == std::string::npos ? constants.get(id)
                                                       : constants.get_or_default(id.substr(0, dot), arch));
    }
  };
  workspaces(plan.rules.workspace_constants);
  if (plan.experts) workspaces(plan.rules.expert_workspace_constants);
  const auto communicator = [&](int64_t ranks) {
    if (ranks > 1) out.communication.push_back(constants.get(ranks == 2 ? "nccl_bytes.pair" : "nccl_bytes.group"));
  };
  communicator(plan.dp * plan.cp);
  communicator(plan.tp);
  communicator(plan.pp);
  communicator(plan.cp);
  communicator(plan.ep * plan.etp == plan.tp ? 1 : plan.ep * plan.etp);
  if (plan.dp * plan.cp > 1) {
    out.communication.insert(out.communication.end(), plan.rules.buckets.begin(), plan.rules.buckets.end());
  }
  return out;
}

template <Number N>
Dims<N> dims_of(const Plan& plan) {
  Dims<N> d;
  d.sequence = N::symbol("s", plan.sequence);
  d.micro_batch = N::symbol("b", plan.micro_batch);
  d.context_parallel = plan.cp == 1 ? N(1) : N::symbol("c", plan.cp);
  d.tensor_parallel = plan.tp == 1 ? N(1) : N::symbol("t", plan.tp);
  d.expert_tensor_parallel = plan.etp == 1 ? N(1) : N::symbol("et", plan.etp);
  d.sequence_parallel = plan.sequence_parallel;
  d.element_bytes = plan.element_bytes;
  d.tensor_parallel_value = plan.tp;
  return d;
}

LayerOptions layer_options(const Plan& plan) {
  LayerOptions o;
  o.kernels = plan.rules.kernels;
  o.adapters = plan.adapters;
  o.frozen = plan.frozen();
  o.dequantize = plan.task == Task::qlora;
  o.hidden_dropout = plan.hidden_dropout;
  o.attention_dropout = plan.attention_dropout;
  o.vocabulary_multiple = plan.rules.vocabulary_multiple;
  o.placeholder_bytes = plan.frozen() ? 0 : plan.rules.placeholder_bytes;
  return o;
}

namespace {

// A gathered or reduced unit: the embedding, one layer of a kind, the head.
struct Unit {
  int64_t dense = 0, expert = 0;
  int64_t shared = 0;    // of dense, what another unit of the rank makes the gradient of
  Bytes base_bytes = 0;  // as stored, where the base is quantized
  int64_t next = 0;      // parameters of the neighbour that is gathered ahead; 0: one like this
  Bytes next_bytes = 0;
};

std::vector<Unit> kind_units(const Model& model, const Plan& plan) {
  std::vector<Unit> units(model.kinds.size());
  std::vector<bool> known(model.kinds.size(), false);
  for (int64_t layer = 0; layer < model.layers(); ++layer) {
    const auto kind = static_cast<size_t>(model.layer_kind[static_cast<size_t>(layer)]);
    if (known[kind]) continue;
    known[kind] = true;
    const LayerCounts counts = layer_counts(model, plan, layer);
    units[kind].dense = counts.dense;
    units[kind].expert = counts.expert;
    units[kind].base_bytes = counts.base_bytes;
  }
  return units;
}

// The embedding and the head have a layer as their neighbour.
Unit edge_unit(const Model& model, const Plan& plan, const std::vector<Unit>& kinds, bool first) {
  const UnitCounts counts = first ? embedding_counts(model, plan) : head_counts(model, plan);
  Unit unit{.dense = counts.parameters, .base_bytes = counts.base_bytes};
  // Backward meets a tied table first as the head; the embedding adds to that gradient.
  if (first && plan.pp == 1) unit.shared = counts.tied;
  const Unit& layer = kinds[static_cast<size_t>(first ? model.layer_kind.front() : model.layer_kind.back())];
  unit.next = layer.dense + layer.expert;
  unit.next_bytes = layer.base_bytes;
  return unit;
}

// What passes through a unit besides its activations. Alive: during the whole pass.
template <Number N>
struct UnitBuffers {
  std::vector<Storage<N>> forward, backward;
  std::vector<Storage<N>> gradients;  // left behind by the first backward of a step
};

template <Number N>
UnitBuffers<N> unit_buffers(const Plan& plan, const Unit& unit, const std::string& owner) {
  UnitBuffers<N> out;
  const auto add = [](std::vector<Storage<N>>& to, std::string name, std::string where, Category category, Tier tier,
                      N bytes) {
    if (bytes.value() > 0) {
      to.push_back({.name = std::move(name),
                    .owner = std::move(where),
                    .category = category,
                    .tier = tier,
                    .life = category == Category::gradients ? Life::step : Life::operation,
                    .bytes = bytes});
    }
  };
  const N U = N::symbol("U", unit.dense + unit.expert);
  if (plan.zero == 3 && plan.shard_group > 1) {
    // A quantized base is gathered as stored; everything else in the compute dtype.
    const bool stored = plan.task == Task::qlora;
    const N each(plan.precision == Precision::fp32 ? 4 : plan.rules.gather_bytes);
    const N gathered = stored ? N::symbol("quantized U", unit.base_bytes) : each * U;
    const N next = unit.next == 0 ? gathered
                   : stored       ? N::symbol("quantized U_next", unit.next_bytes)
                                  : each * N::symbol("U_next", unit.next);
    for (auto* to : {&out.forward, &out.backward}) {
      add(*to, "gathered weights", owner, Category::gathered, Tier::device, gathered);
      for (int64_t i = 0; i < plan.rules.prefetch; ++i)
        add(*to, "prefetched weights", owner, Category::gathered, Tier::device, next);
    }
  }
  if (plan.frozen()) return out;
  if (plan.zero >= 2 && plan.shard_group > 1) {
    // Computed in the dtype of the gathered weights, whatever the shards keep.
    const int64_t computed = plan.rules.weight_is_master && plan.precision != Precision::fp32 ? 2 : plan.gradient_bytes;
    add(out.backward, "gradients before reduction", owner, Category::gathered, Tier::device, N(computed) * U);
    if (plan.rules.reduce_bytes > 0) {
      add(out.backward, "reduce-scatter input", owner, Category::communication, Tier::device,
          N(plan.rules.reduce_bytes) * U);
    }
  }
  if (!plan.rules.gradients_from_start && !plan.textbook) {
    const Tier tier = plan.offload_gradients ? Tier::host : Tier::device;
    const auto part = [&](int64_t count, const char* symbol, int64_t group, const char* group_symbol) {
      if (count == 0) return;
      const N n = N(plan.gradient_bytes + plan.gradient_copy_bytes) * N::symbol(symbol, count);
      add(out.gradients, "gradients", owner, Category::gradients, tier,
          plan.zero >= 2 ? ceil_div(n, N::symbol(group_symbol, std::max<int64_t>(1, group))) : n);
    };
    part(unit.dense - unit.shared, "U", plan.shard_group, "N");
    part(unit.expert, "U_e", std::min(plan.expert_dp(), plan.shard_group), "N_e");
  }
  return out;
}

bool size_only(const Model& model, const Plan&) { return !model.shape_known || model.kinds.empty(); }

// The activations of the published formulas on one rank, and how many times each is kept.
template <Number N>
std::vector<std::pair<Storage<N>, int64_t>> textbook_storages(const Model& model, const Plan& plan, int64_t rank) {
  std::vector<std::pair<Storage<N>, int64_t>> out;
  const N s = N::symbol("s", plan.sequence), b = N::symbol("b", plan.micro_batch), h = N::symbol("h", model.hidden);
  std::map<int64_t, int64_t> by_kind;
  for (const StageLayers& stage : rank_layers(model.layers(), plan, rank)) {
    for (int64_t layer = stage.first; layer < stage.first + stage.count; ++layer) {
      ++by_kind[model.layer_kind[static_cast<size_t>(layer)]];
    }
  }
  // 1F1B keeps p - r micro-batches of a stage's layers; GPipe all of them. With c ranks of context parallelism each
  // holds s/c tokens; tensor parallelism divides the 24 of 34, with sequence parallelism all 34.
  const int64_t in_flight = plan.pp == 1                       ? 1
                            : plan.schedule == Schedule::gpipe ? plan.micro_batches
                                                               : std::min(plan.micro_batches, plan.pp - rank);
  for (const auto& [kind, layers] : by_kind) {
    const LayerKind& k = model.kinds[static_cast<size_t>(kind)];
    const N a = N::symbol("a", std::max<int64_t>(1, k.attention.heads)), kv = N::symbol("k", k.attention.kv_heads);
    // A token of a mixture of experts passes through its chosen experts and the shared one: that is its width.
    const bool moe = k.mlp.kind == MlpKind::moe;
    const bool gated = k.mlp.kind == MlpKind::gated || (moe && k.mlp.expert_gated);
    const int64_t width = moe ? k.mlp.experts_per_token * k.mlp.expert_ffn + k.mlp.shared_ffn : k.mlp.ffn;
    N bytes = gated ? textbook_llama_layer<N>(s, b, h, a, kv, N::symbol("f", width), plan.recompute, plan.flash)
                    : textbook_gpt_layer<N>(s, b, h, a, plan.recompute, plan.flash);
    if (plan.tp > 1 && plan.recompute != Recompute::full) {
      const N t = N::symbol("t", plan.tp);
      if (plan.sequence_parallel) {
        bytes = ceil_div(bytes, t);
      } else {
        // Korthikanti et al. 2022, eq. 3: the 10·s·b·h of norms, inputs and masks are not divided.
        const N whole = N(10) * s * b * h;
        bytes = whole + ceil_div(bytes - whole, t);
      }
    }
    if (plan.cp > 1) bytes = ceil_div(bytes, N::symbol("c", plan.cp));
    out.push_back({{.name = gated ? "activations, Llama formula" : "activations, GPT formula",
                    .owner = "layers",
                    .life = Life::micro_batch,
                    .bytes = bytes},
                   checked_mul(layers, in_flight)});
  }
  if (model.kinds.front().mlp.kind != MlpKind::plain && rank == plan.pp - 1 && plan.recompute != Recompute::full) {
    out.push_back({{.name = "activations besides the layers",
                    .owner = "head",
                    .life = Life::micro_batch,
                    .bytes = textbook_llama_rest<N>(s, b, h)},
                   1});
  }
  return out;
}

// Adds a block's storages to a program and writes its passes as procedures.
template <Number N>
class BlockWriter {
 public:
  BlockWriter(Program<N>& program, const Block<N>& block, const std::string& owner, uint32_t hidden,
              uint32_t hidden_gradient, bool input_is_hidden, bool output_is_hidden, Recompute recompute)
      : program_(program), forward_(block.storages.size()), gradient_(block.storages.size(), kNone) {
    const Set saved = recompute == Recompute::full ? Set{0} : block.saved();
    for (BlockId id = 0; id < block.storages.size(); ++id) {
      if ((id == block.input && input_is_hidden) || (id == block.output && output_is_hidden)) {
        forward_[id] = hidden;
        gradient_[id] = hidden_gradient;
        continue;
      }
      const auto& s = block.storages[id];
      forward_[id] = program.storage({.name = std::string(s.name),
                                      .owner = owner + "." + std::string(s.module),
                                      .category = s.category,
                                      .life = (saved & bit(id)) ? Life::micro_batch : Life::operation,
                                      .bytes = s.bytes});
      owners_.push_back({});
    }
    block_ = &block;
    owner_ = owner;
  }

  uint32_t id(BlockId b) const { return forward_[b]; }
  uint32_t gradient(BlockId b) {
    if (gradient_[b] == kNone) {
      const auto& s = block_->storages[b];
      gradient_[b] = program_.storage({.name = "gradient of " + std::string(s.name),
                                       .owner = owner_ + "." + std::string(s.module),
                                       .category = s.category,
                                       .life = Life::operation,
                                       .bytes = s.bytes});
    }
    return gradient_[b];
  }
  void target(uint32_t procedure) { procedure_ = procedure; }

  void allocate(BlockId b) { program_.allocate(procedure_, forward_[b]); }
  void free(BlockId b) { program_.free(procedure_, forward_[b]); }
  void allocate_gradient(BlockId b) { program_.allocate(procedure_, gradient(b)); }
  void free_gradient(BlockId b) { program_.free(procedure_, gradient(b)); }

 private:
  static constexpr uint32_t kNone = ~0u;
  Program<N>& program_;
  const Block<N>* block_ = nullptr;
  std::string owner_;
  std::vector<uint32_t> forward_, gradient_;
  std::vector<char> owners_;
  uint32_t procedure_ = 0;
};

template <Number N>
class StepBuilder {
 public:
  StepBuilder(const Model& model, const Plan& plan, const Overheads& overheads, int64_t rank)
      : model_(model),
        plan_(plan),
        overheads_(overheads),
        rank_(rank),
        dims_(dims_of<N>(plan)),
        options_(layer_options(plan)) {}

  Program<N> build() {
    const uint32_t main = Program<N>::main();
    const RankCounts counts = rank_counts(model_, plan_, rank_);
    for (State<N>& s : model_states<N>(model_, plan_, counts)) {
      if (s.gradient && gradients_appear() && !plan_.frozen()) continue;
      program_.allocate(main, program_.storage(std::move(s.storage)));
    }
    if (const N kept = placeholders<N>(model_, plan_, rank_); kept.value() > 0) {
      program_.allocate(main, program_.storage({.name = "placeholders of weight gradients",
                                                .owner = "workspaces",
                                                .category = Category::workspace,
                                                .bytes = kept}));
    }
    if (const N buckets = gradient_buckets<N>(plan_, counts); buckets.value() > 0) {
      program_.allocate(main, program_.storage({.name = "gradients in reduction buckets",
                                                .owner = "communicators",
                                                .category = Category::communication,
                                                .bytes = buckets}));
    }
    constant_lines(main, overheads_.context, "process", Category::context);
    constant_lines(main, overheads_.workspace, "workspaces", Category::workspace);
    constant_lines(main, overheads_.communication, "communicators", Category::communication);
    if (plan_.textbook) {
      if (model_.shape_known && !model_.kinds.empty()) textbook_activations(main);
      return std::move(program_);
    }
    if (!size_only(model_, plan_)) passes(main);
    optimizer_step(main, counts);
    return std::move(program_);
  }

 private:
  bool gradients_appear() const {
    return !plan_.rules.gradients_from_start && !plan_.textbook && !size_only(model_, plan_);
  }

  void constant_lines(uint32_t main, const std::vector<Constant>& rows, const std::string& owner, Category category) {
    for (const Constant& row : rows) {
      program_.allocate(
          main, program_.storage({.name = row.id, .owner = owner, .category = category, .bytes = N::constant(row)}));
    }
  }

  struct Procedures {
    uint32_t forward = 0, backward = 0, backward_first = 0;
  };

  // A unit's passes: buffers around the walk of its block.
  Procedures unit(const Block<N>& block, const std::string& name, const Unit& unit, bool input_is_hidden,
                  bool output_is_hidden, Recompute recompute) {
    Procedures p;
    p.forward = program_.procedure(name);
    p.backward = program_.procedure(name);
    p.backward_first = program_.procedure(name);
    BlockWriter<N> writer(program_, block, name, hidden_, hidden_gradient_, input_is_hidden, output_is_hidden,
                          recompute);
    UnitBuffers<N> buffers = unit_buffers<N>(plan_, unit, name);
    const auto declare = [&](std::vector<Storage<N>>& storages) {
      std::vector<uint32_t> ids;
      for (auto& s : storages) ids.push_back(program_.storage(std::move(s)));
      return ids;
    };
    const auto around_forward = declare(buffers.forward);
    const auto around_backward = declare(buffers.backward);
    const auto gradients = declare(buffers.gradients);

    writer.target(p.forward);
    for (uint32_t id : around_forward) program_.allocate(p.forward, id);
    if (!input_is_hidden) writer.allocate(block.input);
    walk_forward(block, recompute, writer);
    for (uint32_t id : around_forward) program_.free(p.forward, id);

    for (const bool first : {false, true}) {
      const uint32_t target = first ? p.backward_first : p.backward;
      writer.target(target);
      for (uint32_t id : around_backward) program_.allocate(target, id);
      if (!output_is_hidden) writer.allocate_gradient(block.output);
      walk_backward(block, recompute, writer);
      if (!output_is_hidden) writer.free(block.output);
      if (first) {
        for (uint32_t id : gradients) program_.allocate(target, id);
      }
      for (uint32_t id : around_backward) program_.free(target, id);
    }
    return p;
  }

  void passes(uint32_t main) {
    hidden_ = program_.storage(
        {.name = "hidden state", .owner = "layers.residual", .life = Life::micro_batch, .bytes = hidden_bytes()});
    hidden_gradient_ = program_.storage({.name = "gradient of hidden state",
                                         .owner = "layers.residual",
                                         .life = Life::operation,
                                         .bytes = hidden_bytes()});
    const auto units = kind_units(model_, plan_);
    std::vector<Procedures> kinds(model_.kinds.size());
    std::vector<bool> made(model_.kinds.size(), false);
    const auto layers = rank_layers(model_.layers(), plan_, rank_);
    std::vector<Procedures> chunks;
    for (size_t c = 0; c < layers.size(); ++c) {
      const bool first = rank_ == 0 && c == 0;
      const bool last = rank_ == plan_.pp - 1 && c + 1 == layers.size();
      std::vector<std::pair<size_t, int64_t>> runs;
      for (int64_t layer = layers[c].first; layer < layers[c].first + layers[c].count; ++layer) {
        const auto kind = static_cast<size_t>(model_.layer_kind[static_cast<size_t>(layer)]);
        if (!made[kind]) {
          const Block<N> block = layer_block<N>(model_, model_.kinds[kind], dims_, options_);
          kinds[kind] = unit(block, "layers", units[kind], true, true, plan_.recompute);
          made[kind] = true;
        }
        if (!runs.empty() && runs.back().first == kind) {
          ++runs.back().second;
        } else {
          runs.emplace_back(kind, 1);
        }
      }
      Procedures p{program_.procedure("forward"), program_.procedure("backward"), program_.procedure("backward")};
      Procedures embedding, head;
      if (first) {
        embedding = unit(embedding_block<N>(model_, dims_, options_), "embedding",
                         edge_unit(model_, plan_, units, true), false, true, Recompute::none);
        program_.call(p.forward, embedding.forward);
      } else {
        program_.allocate(p.forward, hidden_);  // received from the stage before
      }
      for (const auto& [kind, n] : runs) program_.call(p.forward, kinds[kind].forward, n);
      if (last) {
        head = unit(head_block<N>(model_, dims_, options_), "head", edge_unit(model_, plan_, units, false), true, false,
                    Recompute::none);
        program_.call(p.forward, head.forward);
      } else {
        program_.free(p.forward, hidden_);  // sent on
      }
      for (const bool first_time : {false, true}) {
        const uint32_t target = first_time ? p.backward_first : p.backward;
        const auto pick = [&](const Procedures& q) { return first_time ? q.backward_first : q.backward; };
        if (last) {
          program_.call(target, pick(head));
        } else {
          program_.allocate(target, hidden_gradient_);
        }
        for (size_t i = runs.size(); i-- > 0;) program_.call(target, pick(kinds[runs[i].first]), runs[i].second);
        if (first) {
          program_.call(target, pick(embedding));
        } else {
          program_.free(target, hidden_gradient_);
        }
      }
      chunks.push_back(p);
    }
    if (plan_.schedule == Schedule::gpipe) {
      program_.call(main, chunks[0].forward, plan_.micro_batches);
      program_.call(main, chunks[0].backward_first);
      program_.call(main, chunks[0].backward, plan_.micro_batches - 1);
      return;
    }
    std::vector<bool> has_gradients(layers.size(), false);
    for (const Pass& pass : pass_order(plan_.schedule, plan_.pp, plan_.vpp, written_micro_batches(plan_), rank_)) {
      const auto c = static_cast<size_t>(pass.chunk);
      if (pass.forward) {
        program_.call(main, chunks[c].forward);
      } else {
        program_.call(main, has_gradients[c] ? chunks[c].backward : chunks[c].backward_first);
        has_gradients[c] = true;
      }
    }
  }

  N hidden_bytes() const {
    const N all = dims_.tokens() * N(dims_.element_bytes) * N::symbol("h", model_.hidden);
    return dims_.sequence_parallel ? ceil_div(all, dims_.tensor_parallel) : all;
  }

  void optimizer_step(uint32_t main, const RankCounts& counts) {
    if (plan_.rules.step_copy_bytes == 0 || plan_.zero < 1 || plan_.zero > 2 || plan_.frozen() ||
        plan_.gradient_bytes >= 4)
      return;
    const uint32_t step = program_.procedure("optimizer");
    const N copy =
        N(plan_.rules.step_copy_bytes) *
        ceil_div(N::symbol("P", counts.dense.parameters + counts.expert.parameters), N::symbol("N", plan_.shard_group));
    const uint32_t s = program_.storage({.name = "gradient shard, fp32 copy",
                                         .owner = "model",
                                         .category = Category::gradients,
                                         .life = Life::operation,
                                         .bytes = copy});
    program_.allocate(step, s);
    program_.free(step, s);
    program_.call(main, step);
  }

  void textbook_activations(uint32_t main) {
    for (auto& [storage, count] : textbook_storages<N>(model_, plan_, rank_)) {
      const uint32_t id = program_.storage(std::move(storage));
      if (count == 1) {
        program_.allocate(main, id);
        continue;
      }
      const uint32_t layers = program_.procedure("layers");
      program_.allocate(layers, id);
      program_.call(main, layers, count);
    }
  }

  const Model& model_;
  const Plan& plan_;
  const Overheads& overheads_;
  int64_t rank_;
  Dims<N> dims_;
  LayerOptions options_;
  Program<N> program_;
  uint32_t hidden_ = 0, hidden_gradient_ = 0;
};

// Running level of a walk, for the closed form.
struct Level {
  const Bytes* sizes;
  Summary s{};
  void up(Bytes by) {
    s.net = checked_add(s.net, by);
    if (s.net > s.peak) s.peak = s.net;
  }
  void allocate(BlockId b) { up(sizes[b]); }
  void free(BlockId b) { s.net -= sizes[b]; }
  void allocate_gradient(BlockId b) { up(sizes[b]); }
  void free_gradient(BlockId b) { s.net -= sizes[b]; }
};

LayerPrice price(const Block<Fast>& block, const Plan& plan, const Unit& unit, bool input_outside, bool output_outside,
                 Recompute recompute) {
  std::array<Bytes, kMaxStorages> sizes{};
  for (size_t i = 0; i < block.storages.size(); ++i) sizes[i] = block.storages[i].bytes.value();
  const UnitBuffers<Fast> buffers = unit_buffers<Fast>(plan, unit, {});
  const auto total = [](const std::vector<Storage<Fast>>& storages) {
    Bytes sum = 0;
    for (const auto& s : storages) {
      if (s.tier == Tier::device) sum = checked_add(sum, s.bytes.value());
    }
    return sum;
  };
  const Bytes around_forward = total(buffers.forward), around_backward = total(buffers.backward);
  LayerPrice out;
  out.gradients = total(buffers.gradients);
  out.forward_flops = block.forward_flops();

  Level f{sizes.data()};
  f.up(around_forward);
  if (!input_outside) f.allocate(block.input);
  walk_forward(block, recompute, f);
  f.s.net -= around_forward;
  out.forward = f.s;

  Level b{sizes.data()};
  b.up(around_backward);
  if (!output_outside) b.allocate_gradient(block.output);
  walk_backward(block, recompute, b);
  if (!output_outside) b.free(block.output);
  Level first = b;
  b.s.net -= around_backward;
  out.backward = b.s;
  first.up(out.gradients);
  first.s.net -= around_backward;
  out.backward_first = first.s;
  return out;
}

}  // namespace

int64_t written_micro_batches(const Plan& plan) {
  constexpr int64_t kMostPasses = 1 << 16;
  return plan.micro_batches <= kMostPasses / plan.vpp
             ? plan.micro_batches
             : telling_micro_batches(plan.schedule, plan.pp, plan.micro_batches);
}

template <Number N>
Program<N> step_program(const Model& model, const Plan& plan, const Overheads& overheads, int64_t rank) {
  return StepBuilder<N>(model, plan, overheads, rank).build();
}

StepTables step_tables(const Model& model, const Plan& plan, const Overheads& overheads) {
  StepTables t;
  const bool walks = !size_only(model, plan) && !plan.textbook;
  if (walks) {
    const Dims<Fast> dims = dims_of<Fast>(plan);
    const LayerOptions options = layer_options(plan);
    const auto units = kind_units(model, plan);
    t.kinds.resize(model.kinds.size());
    for (size_t k = 0; k < model.kinds.size(); ++k) {
      t.kinds[k] =
          price(layer_block<Fast>(model, model.kinds[k], dims, options), plan, units[k], true, true, plan.recompute);
    }
    t.embedding = price(embedding_block<Fast>(model, dims, options), plan, edge_unit(model, plan, units, true), false,
                        true, Recompute::none);
    t.head = price(head_block<Fast>(model, dims, options), plan, edge_unit(model, plan, units, false), true, false,
                   Recompute::none);
    const Fast all = dims.tokens() * Fast(dims.element_bytes) * Fast(model.hidden);
    t.hidden = (dims.sequence_parallel ? ceil_div(all, dims.tensor_parallel) : all).value();
  }
  Bytes constants = 0;
  for (const auto* rows : {&overheads.context, &overheads.workspace, &overheads.communication}) {
    for (const Constant& row : *rows) constants = checked_add(constants, row.value);
  }
  const bool appear = walks && !plan.rules.gradients_from_start && !plan.frozen();
  for (int64_t rank = 0; rank < plan.pp; ++rank) {
    StepTables::Rank r;
    const RankCounts counts = rank_counts(model, plan, rank);
    Fast states(constants);
    for (const State<Fast>& s : model_states<Fast>(model, plan, counts)) {
      if (s.storage.tier == Tier::device && !(s.gradient && appear)) states = states + s.storage.bytes;
    }
    r.states = (states + placeholders<Fast>(model, plan, rank) + gradient_buckets<Fast>(plan, counts)).value();
    if (plan.rules.step_copy_bytes > 0 && plan.zero >= 1 && plan.zero <= 2 && !plan.frozen() &&
        plan.gradient_bytes < 4 && !plan.textbook) {
      r.step = checked_mul(plan.rules.step_copy_bytes,
                           ceil_div(checked_add(counts.dense.parameters, counts.expert.parameters), plan.shard_group));
    }
    if (plan.textbook && !size_only(model, plan)) {
      for (const auto& [storage, count] : textbook_storages<Fast>(model, plan, rank)) {
        r.states = checked_add(r.states, checked_mul(storage.bytes.value(), count));
      }
    }
    for (const StageLayers& stage : rank_layers(model.layers(), plan, rank)) {
      std::vector<StepTables::Rank::Run> runs;
      for (int64_t layer = stage.first; walks && layer < stage.first + stage.count; ++layer) {
        const auto kind = static_cast<int32_t>(model.layer_kind[static_cast<size_t>(layer)]);
        if (!runs.empty() && runs.back().kind == kind) {
          ++runs.back().count;
        } else {
          runs.push_back({kind, 1});
        }
      }
      r.chunks.push_back(std::move(runs));
    }
    t.ranks.push_back(std::move(r));
  }
  return t;
}

void compose(const StepTables& t, const ScheduleShape& shape, Bytes* peaks) {
  struct Chunk {
    Summary forward, backward, backward_first;
    Bytes gradients = 0;
  };
  const size_t ranks = t.ranks.size();
  for (size_t r = 0; r < ranks; ++r) {
    const StepTables::Rank& rank = t.ranks[r];
    if (t.kinds.empty()) {
      peaks[r] = checked_add(rank.states, rank.step);
      continue;
    }
    std::array<Chunk, kMaxChunks> chunks;
    const size_t count = rank.chunks.size();  // resolve_plan holds that they are at most kMaxChunks
    Bytes all_gradients = 0;
    for (size_t c = 0; c < count; ++c) {
      const bool first = r == 0 && c == 0, last = r + 1 == ranks && c + 1 == rank.chunks.size();
      Chunk chunk;
      chunk.forward = first ? t.embedding.forward : Summary{t.hidden, t.hidden};
      Summary back = last ? t.head.backward : Summary{t.hidden, t.hidden};
      Summary back_first = last ? t.head.backward_first : Summary{t.hidden, t.hidden};
      Bytes gradients = (first ? t.embedding.gradients : 0) + (last ? t.head.gradients : 0);
      const auto& runs = rank.chunks[c];
      for (const auto& run : runs) {
        const LayerPrice& p = t.kinds[static_cast<size_t>(run.kind)];
        chunk.forward = checked_then(chunk.forward, checked_repeat(p.forward, run.count));
        gradients = checked_add(gradients, checked_mul(run.count, p.gradients));
      }
      for (size_t i = runs.size(); i-- > 0;) {
        const LayerPrice& p = t.kinds[static_cast<size_t>(runs[i].kind)];
        back = checked_then(back, checked_repeat(p.backward, runs[i].count));
        back_first = checked_then(back_first, checked_repeat(p.backward_first, runs[i].count));
      }
      chunk.forward = checked_then(chunk.forward, last ? t.head.forward : Summary{-t.hidden, 0});
      const Summary end = first ? t.embedding.backward : Summary{-t.hidden, 0};
      const Summary end_first = first ? t.embedding.backward_first : Summary{-t.hidden, 0};
      chunk.backward = checked_then(back, end);
      chunk.backward_first = checked_then(back_first, end_first);
      chunk.gradients = gradients;
      all_gradients = checked_add(all_gradients, gradients);
      chunks[c] = chunk;
    }
    Bytes highest = checked_add(rank.step, all_gradients);
    for (const Moment& m : shape.ranks[r]) {
      Bytes level = 0;
      for (size_t c = 0; c < count; ++c) {
        level = checked_add(level, checked_mul(m.in_flight[c], chunks[c].forward.net));
        if (m.gradients[c]) level = checked_add(level, chunks[c].gradients);
      }
      const Chunk& now = chunks[static_cast<size_t>(m.chunk)];
      level = checked_add(level, m.forward          ? now.forward.peak
                                 : m.first_backward ? now.backward_first.peak
                                                    : now.backward.peak);
      highest = std::max(highest, level);
    }
    peaks[r] = checked_add(rank.states, highest);
  }
}

template Program<Fast> step_program<Fast>(const Model&, const Plan&, const Overheads&, int64_t);
template Program<Traced> step_program<Traced>(const Model&, const Plan&, const Overheads&, int64_t);
template Dims<Fast> dims_of<Fast>(const Plan&);
template Dims<Traced> dims_of<Traced>(const Plan&);

}  // namespace vram
