#pragma once

#include <string>

#include "model/layers.h"
#include "model/reader.h"

namespace vram::arch {

/// Gated delta net (qwen3_next, qwen3_5). State of a sequence: a key x value matrix a head, and the convolution's last
/// inputs.
Attention gated_delta_net(const Reader& r);
/// `fused`: one projection of q, k, v and z and one of b and a (qwen3_next); else four (qwen3_5).
void gated_delta_net_tensors(TensorList& t, const std::string& module, const Attention& a, int64_t hidden, bool fused);

/// Kimi delta attention: three short convolutions, low-rank decay and gate (or a full-rank gate).
void kimi_delta_tensors(TensorList& t, const std::string& module, const Attention& a, int64_t hidden,
                        bool full_rank_gate);

/// Lightning attention (minimax_text_01).
void lightning_tensors(TensorList& t, const std::string& module, const Attention& a, int64_t hidden);

/// Mamba-1 of `inner` channels, `state` numbers a channel.
Attention mamba1(int64_t inner, int64_t state, int64_t conv_kernel);
struct MambaBiases {
  bool conv = true, projection = false;
  bool norms = false;  ///< jamba: norms of dt, B and C
};
void mamba1_tensors(TensorList& t, const std::string& module, const Attention& a, int64_t hidden, int64_t rank,
                    MambaBiases biases);

/// Mamba-2 of heads x head_dim channels.
Attention mamba2(int64_t heads, int64_t head_dim, int64_t state, int64_t groups, int64_t conv_kernel);
void mamba2_tensors(TensorList& t, const std::string& module, const Attention& a, int64_t hidden, MambaBiases biases);

}  // namespace vram::arch
