#include "model/recurrent.h"

#include "base/checked.h"

namespace vram::arch {

namespace {

// A depthwise convolution [channels, 1, kernel].
void convolution(TensorList& t, const std::string& module, std::string_view leaf, int64_t channels, int64_t kernel,
                 bool bias, Role role) {
  const std::string base = dotted(module, leaf);
  t.add(base + ".weight", module, {channels, 1, kernel}, role, Shard::column);
  if (bias) t.add(base + ".bias", module, {channels}, Role::bias, Shard::column);
}

}  // namespace

Attention gated_delta_net(const Reader& r) {
  Attention a;
  a.kind = AttentionKind::linear;
  a.kv_heads = r.size_or({"linear_num_key_heads"}, 16);
  a.heads = r.size_or({"linear_num_value_heads"}, 32);
  a.head_dim = r.size_or({"linear_key_head_dim"}, 128);
  a.value_head_dim = r.size_or({"linear_value_head_dim"}, 128);
  a.conv_kernel = r.size_or({"linear_conv_kernel_dim"}, 4);
  const int64_t keys = checked_mul(a.kv_heads, a.head_dim);
  a.inner = checked_mul(a.heads, a.value_head_dim);
  a.state_dim = a.head_dim;
  a.groups = a.kv_heads;
  a.state_elements = checked_mul(a.inner, a.head_dim);
  a.conv_elements = checked_mul(a.conv_kernel - 1, checked_add(checked_mul(2, keys), a.inner));
  return a;
}

void gated_delta_net_tensors(TensorList& t, const std::string& module, const Attention& a, int64_t hidden, bool fused) {
  const int64_t keys = checked_mul(a.kv_heads, a.head_dim);
  const int64_t qkv = checked_add(checked_mul(2, keys), a.inner);
  constexpr Role role = Role::linear_attention;
  convolution(t, module, "conv1d", qkv, a.conv_kernel, false, role);
  t.add(dotted(module, "dt_bias"), module, {a.heads}, role, Shard::column);
  t.add(dotted(module, "A_log"), module, {a.heads}, role, Shard::column);
  if (fused) {
    t.linear(module, "in_proj_qkvz", checked_add(qkv, a.inner), hidden, role, Shard::column);
    t.linear(module, "in_proj_ba", checked_mul(2, a.heads), hidden, role, Shard::column);
  } else {
    t.linear(module, "in_proj_qkv", qkv, hidden, role, Shard::column);
    t.linear(module, "in_proj_z", a.inner, hidden, role, Shard::column);
    t.linear(module, "in_proj_b", a.heads, hidden, role, Shard::column);
    t.linear(module, "in_proj_a", a.heads, hidden, role, Shard::column);
  }
  t.add(dotted(module, "norm.weight"), module, {a.value_head_dim}, Role::norm);
  t.linear(module, "out_proj", hidden, a.inner, role, Shard::row);
}

void kimi_delta_tensors(TensorList& t, const std::string& module, const Attention& a, int64_t hidden,
                        bool full_rank_gate) {
  constexpr Role role = Role::linear_attention;
  for (const char* leaf : {"q_proj", "k_proj", "v_proj"}) t.linear(module, leaf, a.inner, hidden, role, Shard::column);
  for (const char* leaf : {"q_conv1d", "k_conv1d", "v_conv1d"}) {
    convolution(t, module, leaf, a.inner, a.conv_kernel, false, role);
  }
  t.add(dotted(module, "A_log"), module, {1, 1, a.heads, 1}, role, Shard::column);
  t.linear(module, "f_a_proj", a.head_dim, hidden, role, Shard::replicated);
  t.linear(module, "f_b_proj", a.inner, a.head_dim, role, Shard::column);
  t.add(dotted(module, "dt_bias"), module, {a.inner}, role, Shard::column);
  t.linear(module, "b_proj", a.heads, hidden, role, Shard::column);
  if (full_rank_gate) {
    t.linear(module, "g_proj", a.inner, hidden, role, Shard::column);
  } else {
    t.linear(module, "g_a_proj", a.head_dim, hidden, role, Shard::replicated);
    t.linear(module, "g_b_proj", a.inner, a.head_dim, role, Shard::column);
  }
  t.add(dotted(module, "o_norm.weight"), module, {a.head_dim}, Role::norm);
  t.linear(module, "o_proj", hidden, a.inner, role, Shard::row);
}

void lightning_tensors(TensorList& t, const std::string& module, const Attention& a, int64_t hidden) {
  constexpr Role role = Role::linear_attention;
  t.linear(module, "qkv_proj", checked_mul(3, a.inner), hidden, role, Shard::column);
  t.linear(module, "out_proj", hidden, a.inner, role, Shard::row);
  t.linear(module, "output_gate", a.inner, hidden, role, Shard::column);
  t.add(dotted(module, "norm.weight"), module, {a.inner}, Role::norm);
}

Attention mamba1(int64_t inner, int64_t state, int64_t conv_kernel) {
  Attention a;
  a.kind = AttentionKind::mamba1;
  a.inner = inner;
  a.state_dim = state;
  a.conv_kernel = conv_kernel;
  a.state_elements = checked_mul(inner, state);
  a.conv_elements = checked_mul(conv_kernel - 1, inner);
  return a;
}

void mamba1_tensors(TensorList& t, const std::string& module, const Attention& a, int64_t hidden, int64_t rank,
                    MambaBiases biases) {
  constexpr Role role = Role::mamba;
  t.add(dotted(module, "A_log"), module, {a.inner, a.state_dim}, role, Shard::column);
  t.add(dotted(module, "D"), module, {a.inner}, role, Shard::column);
  convolution(t, module, "conv1d", a.inner, a.conv_kernel, biases.conv, role);
  t.linear(module, "in_proj", checked_mul(2, a.inner), hidden, role, Shard::column, biases.projection);
  t.linear(module, "x_proj", checked_add(rank, checked_mul(2, a.state_dim)), a.inner, role, Shard::row);
  t.linear(module, "dt_proj", a.inner, rank, role, Shard::column, true);
  t.linear(module, "out_proj", hidden, a.inner, role, Shard::row, biases.projection);
  if (biases.norms) {
    t.norm(module, "dt_layernorm", rank, NormKind::rmsnorm, false);
    t.norm(module, "b_layernorm", a.state_dim, NormKind::rmsnorm, false);
    t.norm(module, "c_layernorm", a.state_dim, NormKind::rmsnorm, false);
  }
}

Attention mamba2(int64_t heads, int64_t head_dim, int64_t state, int64_t groups, int64_t conv_kernel) {
  Attention a;
  a.kind = AttentionKind::mamba2;
  a.heads = heads;
  a.head_dim = a.value_head_dim = head_dim;
  a.inner = checked_mul(heads, head_dim);
  a.state_dim = state;
  a.groups = groups;
  a.conv_kernel = conv_kernel;
  a.state_elements = checked_mul(a.inner, state);
  a.conv_elements = checked_mul(conv_kernel - 1, checked_add(a.inner, checked_mul(checked_mul(2, groups), state)));
  return a;
}

void mamba2_tensors(TensorList& t, const std::string& module, const Attention& a, int64_t hidden, MambaBiases biases) {
  constexpr Role role = Role::mamba;
  const int64_t conv = checked_add(a.inner, checked_mul(checked_mul(2, a.groups), a.state_dim));
  t.add(dotted(module, "A_log"), module, {a.heads}, role, Shard::column);
  t.add(dotted(module, "D"), module, {a.heads}, role, Shard::column);
  convolution(t, module, "conv1d", conv, a.conv_kernel, biases.conv, role);
  t.add(dotted(module, "dt_bias"), module, {a.heads}, role, Shard::column);
  t.linear(module, "in_proj", checked_add(checked_add(a.inner, conv), a.heads), hidden, role, Shard::column,
           biases.projection);
  t.add(dotted(module, "norm.weight"), module, {a.inner}, Role::norm, Shard::column);
  t.linear(module, "out_proj", hidden, a.inner, role, Shard::row, biases.projection);
}

}  // namespace vram::arch
