#include "model/tensors.h"

#include <utility>

#include "base/checked.h"

namespace vram {

std::string_view role_name(Role role) {
  switch (role) {
    case Role::embedding:
      return "embedding";
    case Role::position_embedding:
      return "position embedding";
    case Role::head:
      return "head";
    case Role::norm:
      return "norm";
    case Role::attention_q:
      return "attention q";
    case Role::attention_k:
      return "attention k";
    case Role::attention_v:
      return "attention v";
    case Role::attention_qkv:
      return "attention qkv";
    case Role::attention_out:
      return "attention out";
    case Role::attention_other:
      return "attention other";
    case Role::linear_attention:
      return "linear attention";
    case Role::mamba:
      return "mamba";
    case Role::convolution:
      return "convolution";
    case Role::rwkv:
      return "rwkv";
    case Role::mlp_gate:
      return "mlp gate";
    case Role::mlp_up:
      return "mlp up";
    case Role::mlp_gate_up:
      return "mlp gate and up";
    case Role::mlp_down:
      return "mlp down";
    case Role::router:
      return "router";
    case Role::expert_gate:
      return "expert gate";
    case Role::expert_up:
      return "expert up";
    case Role::expert_gate_up:
      return "expert gate and up";
    case Role::expert_down:
      return "expert down";
    case Role::shared_expert:
      return "shared expert";
    case Role::bias:
      return "bias";
    case Role::vision:
      return "vision";
    case Role::projector:
      return "projector";
    case Role::audio:
      return "audio";
    case Role::mtp:
      return "multi-token prediction";
    case Role::scale:
      return "quantization scale";
    case Role::other:
      return "other";
  }
  return "other";
}

std::string_view shard_name(Shard shard) {
  switch (shard) {
    case Shard::replicated:
      return "replicated";
    case Shard::column:
      return "column";
    case Shard::row:
      return "row";
    case Shard::kv_column:
      return "kv column";
    case Shard::vocab:
      return "vocab";
    case Shard::expert_column:
      return "expert column";
    case Shard::expert_row:
      return "expert row";
    case Shard::expert_replicated:
      return "expert";
  }
  return "replicated";
}

std::string_view attention_kind_name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::none:
      return "none";
    case AttentionKind::full:
      return "full";
    case AttentionKind::sliding:
      return "sliding";
    case AttentionKind::chunked:
      return "chunked";
    case AttentionKind::mla:
      return "mla";
    case AttentionKind::linear:
      return "linear";
    case AttentionKind::mamba1:
      return "mamba1";
    case AttentionKind::mamba2:
      return "mamba2";
    case AttentionKind::convolution:
      return "convolution";
    case AttentionKind::rwkv:
      return "rwkv";
  }
  return "none";
}

int64_t Tensor::elements() const {
  int64_t n = 1;
  for (int64_t d : shape) n = checked_mul(n, d);
  return n;
}

int64_t Attention::cache_elements_per_token() const {
  if (shares_kv) return 0;
  const int64_t index = index_heads > 0 && compress_ratio == 0 ? index_head_dim : 0;
  switch (kind) {
    case AttentionKind::full:
    case AttentionKind::sliding:
    case AttentionKind::chunked: {
      const int64_t width = shared_key_value ? head_dim : checked_add(head_dim, value_head_dim);
      return checked_add(checked_mul(kv_heads, width), index);
    }
    case AttentionKind::mla:
      return checked_add(checked_add(kv_lora_rank, rope_head_dim), index);
    default:
      return 0;
  }
}

namespace arch {

std::string dotted(std::string_view a, std::string_view b) {
  std::string out;
  out.reserve(a.size() + b.size() + 1);
  out += a;
  if (!a.empty() && !b.empty() && a.back() != '.') out += '.';
  out += b;
  if (!out.empty() && out.back() == '.') out.pop_back();
  return out;
}

Tensor& TensorList::add(std::string name, std::string_view module, std::vector<int64_t> shape, Role role, Shard shard) {
  std::vector<Tensor>& tensors = model_->tensors[group_].tensors;
  Tensor& t = tensors.emplace_back();
  t.name = std::move(name);
  t.shape = std::move(shape);
  t.dtype = model_->dtype;
  t.role = role;
  t.shard = shard;
  t.module = module;
  if (!t.module.empty() && t.module.back() == '.') t.module.pop_back();
  return t;
}

void TensorList::linear(std::string_view module, std::string_view leaf, int64_t out, int64_t in, Role role, Shard shard,
                        bool bias) {
  std::string base = dotted(module, leaf);
  Tensor& t = add(base + ".weight", module, {out, in}, role, shard);
  t.linear = role != Role::router;
  if (!bias) return;
  // The bias of a row-parallel matmul is added once, after the sum over ranks.
  const Shard cut = shard == Shard::row          ? Shard::replicated
                    : shard == Shard::expert_row ? Shard::expert_replicated
                                                 : shard;
  add(std::move(base) + ".bias", module, {out}, Role::bias, cut);
}

void TensorList::norm(std::string_view module, std::string_view leaf, int64_t width, NormKind kind, bool bias) {
  if (kind == NormKind::none) return;
  std::string base = dotted(module, leaf);
  add(base + ".weight", module, {width}, Role::norm);
  if (bias) add(std::move(base) + ".bias", module, {width}, Role::norm);
}

void TensorList::table(std::string_view module, std::string_view leaf, int64_t rows, int64_t width, Role role,
                       Shard shard) {
  add(dotted(module, leaf) + ".weight", module, {rows, width}, role, shard);
}

size_t Assembly::kind_index(const LayerKind& kind) {
  // The last kind is the likeliest; a model has a handful of kinds.
  for (size_t k = model_.kinds.size(); k-- > 0;) {
    if (model_.kinds[k] == kind) return k;
  }
  model_.kinds.push_back(kind);
  return model_.kinds.size() - 1;
}

size_t Assembly::new_group(TensorGroup::Part part) {
  model_.tensors.emplace_back().part = part;
  return model_.tensors.size() - 1;
}

TensorList Assembly::once(TensorGroup::Part part) {
  for (size_t g = 0; g < model_.tensors.size(); ++g) {
    if (model_.tensors[g].part == part && model_.tensors[g].layers.empty()) return TensorList(model_, g);
  }
  return TensorList(model_, new_group(part));
}

namespace {

bool is_expert(const Tensor& t) {
  return t.shard == Shard::expert_column || t.shard == Shard::expert_row || t.shard == Shard::expert_replicated;
}

// The MLP of the layers of `group`: expert tensors pass experts_per_token / experts of their numbers.
const Mlp* mlp_of(const Model& model, const TensorGroup& group, int64_t encoder_layers) {
  if (group.part == TensorGroup::Part::encoder || group.part == TensorGroup::Part::text) {
    if (group.layers.empty()) return nullptr;
    const int64_t offset = group.part == TensorGroup::Part::text ? encoder_layers : 0;
    const int64_t i = group.layers.front() + offset;
    if (i >= 0 && i < model.layers()) return &model.layer(i).mlp;
  }
  return nullptr;
}

}  // namespace

void finish_counts(Model& model) {
  Counts c;
  int64_t encoder_layers = 0;
  for (int64_t i = 0; i < model.layers() && model.layer(i).encoder; ++i) ++encoder_layers;
  for (TensorGroup& group : model.tensors) {
    const Mlp* mlp = mlp_of(model, group, encoder_layers);
    for (Tensor& t : group.tensors) {
      const int64_t copies = checked_mul(group.times(), t.experts);
      const int64_t elements = checked_mul(t.elements(), copies);
      if (t.stored_bytes == 0 && t.stored_as.empty()) t.stored_bytes = dtype_bytes(t.dtype, t.elements());
      const Bytes bytes = checked_mul(t.stored_bytes, copies);
      c.tensors = checked_add(c.tensors, copies);
      c.stored_elements = checked_add(c.stored_elements, elements);
      c.stored_bytes = checked_add(c.stored_bytes, bytes);
      if (group.part != TensorGroup::Part::mtp && (t.learned || t.role == Role::scale)) {
        c.loaded_bytes = checked_add(c.loaded_bytes, bytes);
      }
      if (!t.learned) continue;
      switch (group.part) {
        case TensorGroup::Part::text:
          c.text = checked_add(c.text, elements);
          break;
        case TensorGroup::Part::encoder:
          c.encoder = checked_add(c.encoder, elements);
          break;
        case TensorGroup::Part::vision:
          c.vision = checked_add(c.vision, elements);
          break;
        case TensorGroup::Part::audio:
          c.audio = checked_add(c.audio, elements);
          break;
        case TensorGroup::Part::mtp:
          c.mtp = checked_add(c.mtp, elements);
          break;
      }
      if (group.part == TensorGroup::Part::mtp) continue;
      if (t.role == Role::embedding || t.role == Role::position_embedding)
        c.embedding = checked_add(c.embedding, elements);
      if (t.role == Role::head) c.head = checked_add(c.head, elements);
      if (is_expert(t)) c.expert = checked_add(c.expert, elements);
      if (group.part == TensorGroup::Part::text || group.part == TensorGroup::Part::encoder) {
        const bool part_used = is_expert(t) && mlp && mlp->experts > 0;
        c.active = checked_add(c.active, part_used ? elements / mlp->experts * mlp->experts_per_token : elements);
      }
    }
  }
  c.parameters = checked_add(checked_add(c.text, c.encoder), checked_add(c.vision, c.audio));
  model.counts = c;
}

}  // namespace arch
}  // namespace vram
