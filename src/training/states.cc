#include "training/states.h"

#include <algorithm>
#include <map>
#include <set>

namespace vram {
namespace {

bool is_expert(const Tensor& t) {
  return t.shard == Shard::expert_column || t.shard == Shard::expert_row || t.shard == Shard::expert_replicated;
}

// Which stage owns a tensor that is in no layer: embeddings and encoders of other modalities sit before the first
// layer.
bool on_first_stage(const TensorGroup& group, const Tensor& t) {
  if (group.part != TensorGroup::Part::text) return true;
  switch (t.role) {
    case Role::embedding:
    case Role::position_embedding:
    case Role::vision:
    case Role::audio:
    case Role::projector:
      return true;
    default:
      return false;
  }
}

bool adapted(const Tensor& t, const Adapters& a) {
  switch (t.role) {
    case Role::attention_q:
      return a.q;
    case Role::attention_k:
      return a.k;
    case Role::attention_v:
      return a.v;
    case Role::attention_qkv:
      return a.q || a.k || a.v;
    case Role::attention_out:
      return a.o;
    case Role::mlp_gate:
      return a.gate;
    case Role::mlp_up:
      return a.up;
    case Role::mlp_gate_up:
      return a.gate || a.up;
    case Role::mlp_down:
      return a.down;
    default:
      return false;
  }
}

int64_t local_experts(const Tensor& t, const Plan& plan) { return ceil_div(t.experts, plan.ep); }

// LoRA on a matrix [out, in]: A is r x in, B is out x r. Column-parallel matrices cut B, row-parallel ones cut A.
int64_t adapter_elements(const Tensor& t, const Plan& plan) {
  if (t.shape.size() != 2) return 0;
  const int64_t out = t.shape[0], in = t.shape[1], r = plan.adapters.rank;
  const bool row = t.shard == Shard::row;
  return r * (row ? ceil_div(in, plan.tp) + out : in + ceil_div(out, plan.tp));
}

void count(const Tensor& t, const Model& model, const Plan& plan, int64_t layer, RankCounts& into) {
  if (!t.learned) return;
  ClassCounts& c = is_expert(t) ? into.expert : into.dense;
  const int64_t n = local_elements(t, model, plan, layer);
  c.parameters = checked_add(c.parameters, n);
  const bool matrix = t.shape.size() >= 2;
  if (t.linear) c.linear += n;
  if (matrix && t.linear && t.role != Role::head) c.hidden_matrices += n;
  const int64_t copies = is_expert(t) ? local_experts(t, plan) : 1;
  const int64_t one = n / std::max<int64_t>(1, copies);
  if (one < 4096) c.small += n;
  if (matrix) {
    const int64_t rows = t.shape[t.shape.size() - 2], columns = t.shape.back();
    // Adafactor factors the last two dimensions; leading ones multiply.
    int64_t lead = copies;
    for (size_t i = 0; i + 2 < t.shape.size(); ++i) lead *= t.shape[i];
    const int64_t cut = std::max<int64_t>(1, t.elements() * t.experts / std::max<int64_t>(1, n));
    c.factored += is_expert(t)
                      ? lead * (rows + columns)
                      : lead * (t.shard == Shard::row ? rows + ceil_div(columns, cut) : ceil_div(rows, cut) + columns);
  } else {
    c.factored += n;
  }
  if (plan.frozen()) {
    // Stored bytes of a quantized base divide as its elements do.
    c.base_bytes += plan.task == Task::qlora ? mul_div_up(t.stored_bytes, n, std::max<int64_t>(1, t.elements()))
                                             : checked_mul(n, plan.weight_bytes);
    if (adapted(t, plan.adapters) && !is_expert(t)) c.adapters = checked_add(c.adapters, adapter_elements(t, plan));
  }
}

}  // namespace

int64_t local_elements(const Tensor& t, const Model& model, const Plan& plan, int64_t layer) {
  const int64_t n = t.elements();
  switch (t.shard) {
    case Shard::replicated:
      return n;
    case Shard::column:
    case Shard::row:
      return ceil_div(n, plan.tp);
    case Shard::vocab: {
      const int64_t multiple = plan.textbook ? 1 : plan.rules.vocabulary_multiple;
      if (multiple == 1) return ceil_div(n, plan.tp);
      const int64_t rows = std::max<int64_t>(1, t.shape.front());
      return checked_mul(ceil_div(rows, multiple * plan.tp) * multiple, n / rows);
    }
    case Shard::kv_column: {
      int64_t heads = plan.tp;
      if (layer >= 0) heads = std::max<int64_t>(1, model.layer(layer).attention.kv_heads);
      return ceil_div(n, std::min(plan.tp, heads));
    }
    case Shard::expert_column:
    case Shard::expert_row:
      return checked_mul(local_experts(t, plan), ceil_div(n, plan.etp));
    case Shard::expert_replicated:
      return checked_mul(local_experts(t, plan), n);
  }
  return n;
}

RankCounts rank_counts(const Model& model, const Plan& plan, int64_t rank) {
  RankCounts out;
  if (!model.shape_known) {
    // Only the size is known: every group divides it evenly.
    out.dense.parameters = ceil_div(model.counts.parameters, plan.tp * plan.pp);
    out.dense.base_bytes = checked_mul(out.dense.parameters, plan.weight_bytes);
    return out;
  }
  const auto mine = rank_layers(model.layers(), plan, rank);
  for (const TensorGroup& group : model.tensors) {
    if (group.part == TensorGroup::Part::mtp) continue;
    if (group.layers.empty()) {
      for (const Tensor& t : group.tensors) {
        const bool first = on_first_stage(group, t);
        if ((first && rank == 0) || (!first && rank == plan.pp - 1)) count(t, model, plan, -1, out);
        // A tied head lives on the last stage as a second copy of the embedding.
        if (model.tied_embeddings && t.role == Role::embedding && plan.pp > 1 && rank == plan.pp - 1) {
          count(t, model, plan, -1, out);
        }
      }
      continue;
    }
    // Layers of one group share their shapes: count the first owned one and multiply.
    int64_t times = 0, sample = -1;
    const bool decoder = group.part == TensorGroup::Part::text || group.part == TensorGroup::Part::encoder;
    if (decoder) {
      for (const StageLayers& s : mine) {  // group.layers ascend
        const auto begin = std::lower_bound(group.layers.begin(), group.layers.end(), s.first);
        const auto end = std::lower_bound(begin, group.layers.end(), s.first + s.count);
        times += end - begin;
        if (begin != end) sample = *(end - 1);
      }
    } else if (rank == 0) {
      times = group.times();
    }
    if (times == 0) continue;
    RankCounts one;
    for (const Tensor& t : group.tensors) count(t, model, plan, decoder ? sample : -1, one);
    const auto add = [times](ClassCounts& to, const ClassCounts& from) {
      to.parameters = checked_add(to.parameters, checked_mul(times, from.parameters));
      to.linear += times * from.linear;
      to.hidden_matrices += times * from.hidden_matrices;
      to.small += times * from.small;
      to.factored += times * from.factored;
      to.base_bytes = checked_add(to.base_bytes, checked_mul(times, from.base_bytes));
      to.adapters = checked_add(to.adapters, checked_mul(times, from.adapters));
    };
    add(out.dense, one.dense);
    add(out.expert, one.expert);
  }
  return out;
}

LayerCounts layer_counts(const Model& model, const Plan& plan, int64_t layer) {
  LayerCounts out;
  for (const TensorGroup& group : model.tensors) {
    if (group.part != TensorGroup::Part::text && group.part != TensorGroup::Part::encoder) continue;
    if (std::find(group.layers.begin(), group.layers.end(), layer) == group.layers.end()) continue;
    RankCounts one;
    for (const Tensor& t : group.tensors) count(t, model, plan, layer, one);
    out.dense += one.dense.parameters;
    out.expert += one.expert.parameters;
    out.base_bytes += one.dense.base_bytes + one.expert.base_bytes;
  }
  return out;
}

namespace {

// Tensors outside the layers that a stage gathers with its embedding (first) or with final norm and head.
UnitCounts edge_counts(const Model& model, const Plan& plan, bool first) {
  RankCounts one, tied;
  for (const TensorGroup& group : model.tensors) {
    if (!group.layers.empty() || group.part != TensorGroup::Part::text) continue;
    for (const Tensor& t : group.tensors) {
      const bool table = model.tied_embeddings && t.role == Role::embedding;
      if (on_first_stage(group, t) == first || (!first && table)) count(t, model, plan, -1, one);
      if (table) count(t, model, plan, -1, tied);
    }
  }
  return {one.dense.parameters + one.expert.parameters, tied.dense.parameters,
          one.dense.base_bytes + one.expert.base_bytes};
}

}  // namespace

UnitCounts embedding_counts(const Model& model, const Plan& plan) { return edge_counts(model, plan, true); }
UnitCounts head_counts(const Model& model, const Plan& plan) { return edge_counts(model, plan, false); }

namespace {

// Which tensors of a layer a stack with fused projections holds as one matrix.
int fused_with(const Tensor& t) {
  switch (t.role) {
    case Role::attention_q:
    case Role::attention_k:
    case Role::attention_v:
      return 1;
    case Role::mlp_gate:
    case Role::mlp_up:
      return 2;
    case Role::expert_gate:
    case Role::expert_up:
      return 3;
    case Role::shared_expert:
      return t.shard == Shard::column ? 4 : 0;
    default:
      return 0;
  }
}

// Rows and columns of the matrices of one layer, each with the layer's copies left out.
void matrix_shapes(const TensorGroup& group, const Model& model, const Plan& plan, int64_t layer,
                   std::set<std::pair<int64_t, int64_t>>& shapes) {
  std::map<std::pair<int, int64_t>, int64_t> fused;  // (family, columns) -> rows
  for (const Tensor& t : group.tensors) {
    if (!t.learned || !t.linear || t.shape.size() < 2 || t.role == Role::router) continue;
    int64_t one = local_elements(t, model, plan, layer);
    if (is_expert(t)) one /= std::max<int64_t>(1, local_experts(t, plan));
    for (size_t i = 0; i + 2 < t.shape.size(); ++i) one /= std::max<int64_t>(1, t.shape[i]);
    const bool row = t.shard == Shard::row || t.shard == Shard::expert_row;
    const int64_t rows = row ? t.shape[t.shape.size() - 2] : one / std::max<int64_t>(1, t.shape.back());
    const int64_t columns = one / std::max<int64_t>(1, rows);
    // Latent attention projects queries and keys from different inputs: nothing to fuse there.
    const bool latent = layer >= 0 && model.layer(layer).attention.kind == AttentionKind::mla;
    const int family = latent && fused_with(t) == 1 ? 0 : fused_with(t);
    if (family == 0) {
      shapes.emplace(rows, columns);
    } else {
      fused[{family, columns}] += rows;
    }
  }
  for (const auto& entry : fused) shapes.emplace(entry.second, entry.first.second);
}

}  // namespace

template <Number N>
N placeholders(const Model& model, const Plan& plan, int64_t rank) {
  if (plan.rules.placeholder_bytes == 0 || plan.frozen() || plan.textbook || !model.shape_known) return N(0);
  std::set<std::pair<int64_t, int64_t>> shapes;
  const auto stages = stage_layers(model.layers(), plan);
  for (const TensorGroup& group : model.tensors) {
    if (group.layers.empty() || (group.part != TensorGroup::Part::text && group.part != TensorGroup::Part::encoder))
      continue;
    const auto mine = [&](int64_t layer) {
      for (const StageLayers& s : stages[static_cast<size_t>(rank)]) {
        if (layer >= s.first && layer < s.first + s.count) return true;
      }
      return false;
    };
    const auto at = std::find_if(group.layers.begin(), group.layers.end(), mine);
    if (at != group.layers.end()) matrix_shapes(group, model, plan, *at, shapes);
  }
  int64_t numbers = 0;
  for (const auto& shape : shapes) numbers = checked_add(numbers, checked_mul(shape.first, shape.second));
  return N(plan.rules.placeholder_bytes) * N::symbol("P_shapes", numbers);
}

template Fast placeholders<Fast>(const Model&, const Plan&, int64_t);
template Traced placeholders<Traced>(const Model&, const Plan&, int64_t);

template <Number N>
N gradient_buckets(const Plan& plan, const RankCounts& counts) {
  if (!plan.rules.gradients_in_buckets || plan.textbook || plan.zero > 0) return N(0);
  const auto of = [&](const ClassCounts& c, int64_t replicas, const char* symbol) {
    if (replicas <= 1) return N(0);
    if (plan.frozen()) return N(plan.adapters.bytes) * N::symbol("P_adapters", c.adapters);
    return N(plan.gradient_bytes) * N::symbol(symbol, c.parameters);
  };
  return of(counts.dense, plan.dp * plan.cp, "P") + of(counts.expert, plan.expert_dp(), "P_e");
}

template Fast gradient_buckets<Fast>(const Plan&, const RankCounts&);
template Traced gradient_buckets<Traced>(const Plan&, const RankCounts&);

template <Number N>
N optimizer_bytes(const Plan& plan, N parameters, const ClassCounts& counts) {
  const N moment(plan.moment_bytes);
  switch (plan.optimizer) {
    case Optimizer::adamw:
      return N(2) * moment * parameters;
    case Optimizer::adamw8bit: {
      // Two states of one byte, with an fp32 scale for every block of 256; tensors under 4,096 numbers stay in fp32
      // (bitsandbytes optimizer.py, min_8bit_size).
      const N small = N::symbol("P_small", counts.small);
      const N large = parameters - small;
      return N(2) * large + N(2) * N(4) * ceil_div(large, N(256)) + N(8) * small;
    }
    case Optimizer::sgd:
    case Optimizer::none:
      return N(0);
    case Optimizer::sgd_momentum:
    case Optimizer::lion:
      return moment * parameters;
    case Optimizer::adafactor:
      return N(4) * N::symbol("rows + columns", counts.factored);
    case Optimizer::muon: {
      // Momentum for hidden matrices; AdamW for embeddings, norms and the head (Jordan et al. 2024).
      const N hidden = N::symbol("P_hidden", counts.hidden_matrices);
      return moment * hidden + N(2) * moment * (parameters - hidden);
    }
  }
  return N(0);
}

template <Number N>
std::vector<State<N>> model_states(const Model&, const Plan& plan, const RankCounts& counts) {
  std::vector<State<N>> out;
  const auto add = [&](std::string name, std::string owner, Category category, Tier tier, N bytes,
                       bool gradient = false) {
    if (bytes.value() == 0) return;
    out.push_back({{.name = std::move(name),
                    .owner = std::move(owner),
                    .category = category,
                    .tier = tier,
                    .life = gradient ? Life::step : Life::process,
                    .bytes = bytes},
                   gradient});
  };
  const Tier optimizer_tier = plan.offload_optimizer ? Tier::host : Tier::device;
  const Tier gradient_tier = plan.offload_gradients ? Tier::host : Tier::device;
  const Tier weight_tier = plan.offload_parameters ? Tier::host : Tier::device;

  const auto of_class = [&](const ClassCounts& c, const std::string& owner, int64_t replicas, const char* symbol) {
    if (c.parameters == 0) return;
    const N P = N::symbol(symbol, c.parameters);
    const N group = N::symbol(replicas == plan.shard_group ? "N" : "N_e", std::max<int64_t>(1, replicas));
    const auto sharded = [&](N bytes, int64_t stage) { return plan.zero >= stage ? ceil_div(bytes, group) : bytes; };
    if (plan.frozen()) {
      const N base = plan.task == Task::qlora ? N::symbol("quantized base", c.base_bytes) : N(plan.weight_bytes) * P;
      add(plan.task == Task::qlora ? "frozen weights, 4-bit" : "frozen weights", owner, Category::parameters,
          weight_tier, sharded(base, 3));
      const N A = N::symbol("P_adapters", c.adapters);
      const N a(plan.adapters.bytes);
      add("adapter weights", owner, Category::adapters, Tier::device, sharded(a * A, 3));
      add("adapter gradients", owner, Category::gradients, Tier::device, sharded(a * A, 2), true);
      if (plan.adapters.bytes == 2) {
        add("adapter master weights", owner, Category::optimizer, optimizer_tier, sharded(N(4) * A, 1));
      }
      add("adapter moments", owner, Category::optimizer, optimizer_tier, sharded(optimizer_bytes<N>(plan, A, {}), 1));
      return;
    }
    add("weights", owner, Category::parameters, weight_tier, sharded(N(plan.weight_bytes) * P, 3));
    if (plan.precision == Precision::fp8 && c.linear > 0) {
      // Hopper multiplies fp8 matrices in one orientation only, so a transposed copy is kept beside the fp8 one
      // (Transformer Engine; NVIDIA/TransformerEngine issue 1880).
      add("fp8 weights and transposes", owner, Category::parameters, Tier::device,
          sharded(N(2) * N::symbol("P_linear", c.linear), 3));
    }
    add("gradients", owner, Category::gradients, gradient_tier, sharded(N(plan.gradient_bytes) * P, 2), true);
    if (plan.gradient_copy_bytes > 0) {
      add("gradients, fp32 copy", owner, Category::gradients, gradient_tier,
          sharded(N(plan.gradient_copy_bytes) * P, 2), true);
    }
    if (plan.master_bytes > 0) {
      add("master weights, fp32", owner, Category::optimizer, optimizer_tier, sharded(N(plan.master_bytes) * P, 1));
    }
    add(std::string(optimizer_name(plan.optimizer)) + " states", owner, Category::optimizer, optimizer_tier,
        sharded(optimizer_bytes<N>(plan, P, c), 1));
  };
  of_class(counts.dense, counts.expert.parameters > 0 ? "dense" : "model", plan.shard_group, "P");
  // Experts are replicated over fewer ranks; a hybrid shard group cannot be larger than that.
  of_class(counts.expert, "experts", std::min(plan.expert_dp(), plan.shard_group), "P_e");
  return out;
}

template std::vector<State<Fast>> model_states<Fast>(const Model&, const Plan&, const RankCounts&);
template std::vector<State<Traced>> model_states<Traced>(const Model&, const Plan&, const RankCounts&);
template Fast optimizer_bytes<Fast>(const Plan&, Fast, const ClassCounts&);
template Traced optimizer_bytes<Traced>(const Plan&, Traced, const ClassCounts&);

}  // namespace vram
