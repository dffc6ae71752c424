#include "model/weights/names.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace vram::arch {
namespace {

using Part = TensorGroup::Part;
using List = std::initializer_list<std::string_view>;

constexpr int64_t kMostLayers = 100'000, kMostExperts = 1'000'000;

bool one_of(std::string_view word, List list) { return std::find(list.begin(), list.end(), word) != list.end(); }
bool holds(std::string_view text, List list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view w) { return text.find(w) != std::string_view::npos; });
}
bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// The number that a part of a name is; -1 where it is none, or one with a leading zero.
int64_t number_of(std::string_view part) {
  if (part.empty() || part.size() > 9 || (part.size() > 1 && part[0] == '0')) return -1;
  int64_t n = 0;
  for (char c : part) {
    if (c < '0' || c > '9') return -1;
    n = n * 10 + (c - '0');
  }
  return n;
}

std::string module_of(std::string_view pattern) {
  for (std::string_view leaf : {".weight", ".bias"}) {
    if (ends_with(pattern, leaf)) pattern.remove_suffix(leaf.size());
  }
  const size_t dot = pattern.rfind('.');
  return dot == std::string_view::npos ? std::string() : std::string(pattern.substr(0, dot));
}

// The last part before "weight" or "bias", or the last one.
std::string_view leaf_of(std::string_view pattern) {
  for (std::string_view end : {".weight", ".bias"}) {
    if (ends_with(pattern, end)) pattern.remove_suffix(end.size());
  }
  const size_t dot = pattern.rfind('.');
  return dot == std::string_view::npos ? pattern : pattern.substr(dot + 1);
}

bool is_bias(std::string_view pattern) { return ends_with(pattern, ".bias") || ends_with(pattern, "_bias"); }

}  // namespace

SplitName split_name(std::string_view name, std::string& pattern) {
  SplitName out;
  pattern.clear();
  // Which parts are layers is told by the part before them; other numbers stay ("merger.mlp.0.weight").
  std::string_view before;
  for (size_t from = 0; from <= name.size();) {
    const size_t dot = std::min(name.find('.', from), name.size());
    const std::string_view part = name.substr(from, dot - from);
    if (from > 0) pattern += '.';
    const bool digit = !part.empty() && part[0] >= '0' && part[0] <= '9';
    const int64_t n = digit ? number_of(part) : -1;
    if (n >= 0 && out.layer < 0 && n < kMostLayers &&
        one_of(before, {"layers", "h", "blk", "blocks", "block", "layer", "resblocks", "deepstack_merger_list"})) {
      out.layer = n;
      pattern += "{layer}";
    } else if (n >= 0 && out.expert < 0 && n < kMostExperts && before == "experts") {
      out.expert = n;
      pattern += "{expert}";
    } else {
      pattern += part;
    }
    before = part;
    from = dot + 1;
  }
  return out;
}

namespace {

struct Rule {
  std::string_view leaf;
  Role role;
  Shard shard;
};

constexpr Rule kCheckpointRules[] = {
    {"q_proj", Role::attention_q, Shard::column},
    {"q_b_proj", Role::attention_q, Shard::column},
    {"wq", Role::attention_q, Shard::column},
    {"query", Role::attention_q, Shard::column},
    {"k_proj", Role::attention_k, Shard::kv_column},
    {"wk", Role::attention_k, Shard::kv_column},
    {"key", Role::attention_k, Shard::kv_column},
    {"kv_b_proj", Role::attention_k, Shard::column},
    {"v_proj", Role::attention_v, Shard::kv_column},
    {"wv", Role::attention_v, Shard::kv_column},
    {"value", Role::attention_v, Shard::kv_column},
    {"qkv_proj", Role::attention_qkv, Shard::column},
    {"query_key_value", Role::attention_qkv, Shard::column},
    {"c_attn", Role::attention_qkv, Shard::column},
    {"Wqkv", Role::attention_qkv, Shard::column},
    {"wqkv", Role::attention_qkv, Shard::column},
    {"W_pack", Role::attention_qkv, Shard::column},
    {"att_proj", Role::attention_qkv, Shard::column},
    {"o_proj", Role::attention_out, Shard::row},
    {"wo", Role::attention_out, Shard::row},
    {"q_a_proj", Role::attention_other, Shard::replicated},
    {"kv_a_proj_with_mqa", Role::attention_other, Shard::replicated},
    {"sinks", Role::attention_other, Shard::column},
    {"gate_proj", Role::mlp_gate, Shard::column},
    {"w1", Role::mlp_gate, Shard::column},
    {"up_proj", Role::mlp_up, Shard::column},
    {"w3", Role::mlp_up, Shard::column},
    {"fc1", Role::mlp_up, Shard::column},
    {"fc_in", Role::mlp_up, Shard::column},
    {"c_fc", Role::mlp_up, Shard::column},
    {"dense_h_to_4h", Role::mlp_up, Shard::column},
    {"gate_up_proj", Role::mlp_gate_up, Shard::column},
    {"down_proj", Role::mlp_down, Shard::row},
    {"w2", Role::mlp_down, Shard::row},
    {"fc2", Role::mlp_down, Shard::row},
    {"fc_out", Role::mlp_down, Shard::row},
    {"dense_4h_to_h", Role::mlp_down, Shard::row},
    {"embed_tokens", Role::embedding, Shard::vocab},
    {"wte", Role::embedding, Shard::vocab},
    {"word_embeddings", Role::embedding, Shard::vocab},
    {"tok_embeddings", Role::embedding, Shard::vocab},
    {"embed_in", Role::embedding, Shard::vocab},
    {"wpe", Role::position_embedding, Shard::replicated},
    {"position_embeddings", Role::position_embedding, Shard::replicated},
    {"embed_positions", Role::position_embedding, Shard::replicated},
    {"lm_head", Role::head, Shard::vocab},
    {"embed_out", Role::head, Shard::vocab},
};

// An expert's matrix in the role of the same matrix of an MLP.
Role expert_role(Role role) {
  switch (role) {
    case Role::mlp_gate:
      return Role::expert_gate;
    case Role::mlp_up:
      return Role::expert_up;
    case Role::mlp_gate_up:
      return Role::expert_gate_up;
    case Role::mlp_down:
      return Role::expert_down;
    default:
      return role;
  }
}

Shard expert_shard(Shard shard) {
  switch (shard) {
    case Shard::column:
      return Shard::expert_column;
    case Shard::row:
      return Shard::expert_row;
    default:
      return Shard::expert_replicated;
  }
}

// What quantizers keep beside a packed matrix.
bool is_side(std::string_view leaf) {
  return one_of(leaf, {"scales",
                       "qzeros",
                       "g_idx",
                       "weight_scale",
                       "weight_scale_inv",
                       "weight_scale_2",
                       "input_scale",
                       "weight_zero_point",
                       "weight_shape",
                       "weight_g_idx",
                       "weight_global_scale",
                       "input_global_scale",
                       "absmax",
                       "quant_map",
                       "nested_absmax",
                       "nested_quant_map",
                       "SCB",
                       "weight_format",
                       "k_scale",
                       "v_scale",
                       "q_scale",
                       "scale",
                       "zero",
                       "scale_and_zero",
                       "q_scale_max",
                       "q_groups",
                       "q_perm",
                       "q_invperm",
                       "perm",
                       "workspace",
                       "smooth_factor",
                       "suh",
                       "svh"}) ||
         ends_with(leaf, "_scales") || ends_with(leaf, "_scale_inv") || leaf.substr(0, 11) == "quant_state" ||
         leaf.substr(0, 12) == "bitsandbytes";
}

bool is_buffer(std::string_view pattern, std::string_view leaf, std::span<const int64_t> shape) {
  if (one_of(leaf, {"inv_freq", "masked_bias", "position_ids", "num_batches_tracked"})) return true;
  // GPT-2's causal mask is called attn.bias and has two long dimensions.
  return ends_with(pattern, ".bias") && shape.size() == 4;
}

Part part_of(std::string_view pattern) {
  if (holds(pattern, {"vision", "visual", "vit.", "image", "mm_projector", "multi_modal_projector"}))
    return Part::vision;
  if (holds(pattern, {"audio", "speech"})) return Part::audio;
  if (pattern.substr(0, 4) == "mtp." || holds(pattern, {".mtp", "nextn"})) return Part::mtp;
  return Part::text;
}

}  // namespace

Described describe_checkpoint_name(std::string_view pattern, std::span<const int64_t> shape) {
  Described out;
  out.part = part_of(pattern);
  out.module = module_of(pattern);
  std::string_view leaf = leaf_of(pattern);
  if (is_buffer(pattern, leaf, shape)) {
    out.learned = false;
    return out;
  }
  if (is_side(leaf) || holds(pattern, {".weight.absmax", ".weight.quant", ".weight.nested"})) {
    out.role = Role::scale;
    out.learned = false;
    return out;
  }
  // Packed matrices: "q_proj.qweight", "gate_up_proj_blocks", "up_proj.weight_packed".
  const std::string matrix = out.module;
  if (one_of(leaf, {"qweight", "weight_packed", "W_q", "q_weight"})) {
    out.module = module_of(matrix);
    leaf = leaf_of(matrix);
  } else if (ends_with(leaf, "_blocks")) {
    leaf.remove_suffix(7);
  }
  const bool routed = holds(pattern, {"experts.{expert}", "mlp.experts.", "moe.experts"}) && leaf != "experts";
  const bool shared = holds(pattern, {"shared_expert", "shared_mlp"});
  const bool in_mlp = holds(pattern, {"mlp", "ffn", "feed_forward", "block_sparse_moe", "moe"});
  const bool stateful = holds(pattern, {"linear_attn", "mamba", "mixer."});
  for (const Rule& rule : kCheckpointRules) {
    if (rule.leaf != leaf) continue;
    out.role = rule.role;
    out.shard = rule.shard;
  }
  // Names that mean one thing within attention and another within the MLP.
  if (one_of(leaf, {"c_proj", "dense", "out_proj"})) {
    out.role = in_mlp ? Role::mlp_down : Role::attention_out;
    out.shard = Shard::row;
  }
  const bool last_is_norm = holds(leaf, {"norm"}) || leaf.substr(0, 3) == "ln_" || leaf == "ln";
  if (last_is_norm) {
    out.role = Role::norm;
    out.shard = Shard::replicated;
  } else if (one_of(leaf, {"gate", "router", "shared_expert_gate", "e_score_correction_bias", "gate_inp"}) &&
             (in_mlp || leaf == "router")) {
    out.role = Role::router;
    out.shard = Shard::replicated;
  } else if (stateful) {
    out.role = holds(pattern, {"linear_attn"}) ? Role::linear_attention : Role::mamba;
    out.shard = out.shard == Shard::row || one_of(leaf, {"x_proj"}) ? Shard::row : Shard::column;
  } else if (routed) {
    out.role = expert_role(out.role);
    out.shard = expert_shard(out.shard);
  } else if (shared) {
    out.role = Role::shared_expert;
  }
  if (out.part == Part::vision || out.part == Part::audio) {
    const bool projector = holds(pattern, {"projector", "merger", "connector"});
    out.role = out.part == Part::audio ? Role::audio : projector ? Role::projector : Role::vision;
    out.shard = Shard::replicated;
  }
  if (is_bias(pattern)) {
    if (out.role != Role::norm && out.role != Role::router) out.role = Role::bias;
    if (out.shard == Shard::row) out.shard = Shard::replicated;
    if (out.shard == Shard::expert_row) out.shard = Shard::expert_replicated;
    return out;
  }
  out.linear = shape.size() >= 2 && out.role != Role::embedding && out.role != Role::position_embedding &&
               out.role != Role::norm && out.role != Role::router && out.role != Role::other &&
               !holds(leaf, {"conv", "A_log"});
  return out;
}

namespace {

constexpr Rule kGgufRules[] = {
    {"token_embd", Role::embedding, Shard::vocab},
    {"per_layer_token_embd", Role::embedding, Shard::replicated},
    {"position_embd", Role::position_embedding, Shard::replicated},
    {"token_types", Role::position_embedding, Shard::replicated},
    {"output", Role::head, Shard::vocab},
    {"attn_q", Role::attention_q, Shard::column},
    {"attn_q_b", Role::attention_q, Shard::column},
    {"attn_k", Role::attention_k, Shard::kv_column},
    {"attn_v", Role::attention_v, Shard::kv_column},
    {"attn_qkv", Role::attention_qkv, Shard::column},
    {"attn_output", Role::attention_out, Shard::row},
    {"attn_q_a", Role::attention_other, Shard::replicated},
    {"attn_kv_a_mqa", Role::attention_other, Shard::replicated},
    {"attn_kv_b", Role::attention_k, Shard::column},
    {"attn_k_b", Role::attention_k, Shard::column},
    {"attn_v_b", Role::attention_v, Shard::column},
    {"attn_gate", Role::attention_other, Shard::column},
    {"attn_sinks", Role::attention_other, Shard::column},
    {"ffn_gate", Role::mlp_gate, Shard::column},
    {"ffn_up", Role::mlp_up, Shard::column},
    {"ffn_down", Role::mlp_down, Shard::row},
    {"ffn_gate_inp", Role::router, Shard::replicated},
    {"ffn_gate_inp_shexp", Role::router, Shard::replicated},
    {"exp_probs_b", Role::router, Shard::replicated},
    {"ffn_gate_exps", Role::expert_gate, Shard::expert_column},
    {"ffn_up_exps", Role::expert_up, Shard::expert_column},
    {"ffn_gate_up_exps", Role::expert_gate_up, Shard::expert_column},
    {"ffn_down_exps", Role::expert_down, Shard::expert_row},
    {"ffn_gate_shexp", Role::shared_expert, Shard::column},
    {"ffn_up_shexp", Role::shared_expert, Shard::column},
    {"ffn_down_shexp", Role::shared_expert, Shard::row},
};

}  // namespace

Described describe_gguf_name(std::string_view pattern, std::span<const int64_t> shape, bool linear_layer) {
  Described out;
  out.module = module_of(pattern);
  const std::string_view leaf = leaf_of(pattern);
  if (pattern.substr(0, 2) == "v." || pattern.substr(0, 3) == "mm.") {
    out.part = Part::vision;
    out.role = pattern[0] == 'm' ? Role::projector : Role::vision;
    out.linear = shape.size() >= 2;
    return out;
  }
  if (pattern.substr(0, 2) == "a.") {
    out.part = Part::audio;
    out.role = Role::audio;
    out.linear = shape.size() >= 2;
    return out;
  }
  // Constants that the converter writes: no parameters.
  if (one_of(leaf, {"rope_freqs", "rope_factors_long", "rope_factors_short", "attn_rot_embd", "layer_output_scale"})) {
    out.learned = false;
    return out;
  }
  for (const Rule& rule : kGgufRules) {
    if (rule.leaf != leaf) continue;
    out.role = rule.role;
    out.shard = rule.shard;
  }
  if (holds(pattern, {"indexer."})) {
    out.role = holds(leaf, {"norm"}) ? Role::norm : Role::attention_other;
    out.shard = Shard::replicated;
  } else if (holds(pattern, {"nextn."})) {
    out.role = holds(leaf, {"norm"}) ? Role::norm : Role::mtp;
    out.shard = Shard::replicated;
  } else if (holds(leaf, {"norm"})) {
    out.role = Role::norm;
    out.shard = Shard::replicated;
  } else if (leaf.substr(0, 4) == "ssm_" || leaf.substr(0, 9) == "shortconv") {
    out.role = leaf[1] == 'h' ? Role::convolution : linear_layer ? Role::linear_attention : Role::mamba;
    out.shard = one_of(leaf, {"ssm_out", "ssm_x"}) ? Shard::row : Shard::column;
    if (one_of(leaf, {"ssm_f_a", "ssm_g_a"})) out.shard = Shard::replicated;
  } else if (holds(pattern, {".shortconv."})) {
    out.role = Role::convolution;
    out.shard = leaf == "out_proj" ? Shard::row : Shard::column;
  } else if (leaf.substr(0, 9) == "time_mix_" || leaf.substr(0, 12) == "channel_mix_") {
    out.role = Role::rwkv;
  } else if (linear_layer && one_of(leaf, {"attn_qkv", "attn_gate", "attn_q", "attn_k", "attn_v", "attn_output"})) {
    out.role = Role::linear_attention;
    out.shard = leaf == "attn_output" ? Shard::row : Shard::column;
  }
  if (ends_with(pattern, ".bias")) {
    if (out.role != Role::norm && out.role != Role::router) out.role = Role::bias;
    if (out.shard == Shard::row) out.shard = Shard::replicated;
    if (out.shard == Shard::expert_row) out.shard = Shard::expert_replicated;
    return out;
  }
  const bool table = out.role == Role::embedding || out.role == Role::position_embedding || out.role == Role::norm ||
                     out.role == Role::router || holds(leaf, {"conv1d", "ssm_a", "ssm_d"});
  out.linear = shape.size() >= 2 && !table;
  return out;
}

}  // namespace vram::arch
