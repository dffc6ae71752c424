#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/block.h"
#include "model/model.h"

namespace vram {

/// Which kernel a framework uses for what. A framework is such a choice plus dtypes and buffers.
struct KernelChoice {
  bool norm_fused = true;
  bool attention_fused = true;  ///< flash; false: scores are materialised
  bool softmax_fp32 = true;     ///< eager attention computes the softmax in fp32 and casts back
  bool repeat_kv = false;       ///< eager attention materialises K and V for every query head
  bool swiglu_fused = true;
  bool gelu_fused = true;                ///< false: a Python GELU that keeps six more tensors of the FFN's width
  bool moe_grouped = true;               ///< grouped GEMM; false: a loop over experts that keeps the experts' outputs
  bool moe_weighted_activation = false;  ///< routing weights multiply inside the experts, after the activation
  enum class Loss : uint8_t { upcast, plain, vocab_parallel, vocab_parallel_compiled, fused } loss = Loss::upcast;
  bool logits_kept = false;  ///< the caller holds the logits through backward
};

/// Low-rank adapters on some linears of a layer.
struct Adapters {
  int64_t rank = 0;   ///< 0: none
  int64_t bytes = 4;  ///< of one adapter weight: 4 (PEFT's default) or 2
  bool q = true, k = true, v = true, o = true, gate = true, up = true, down = true;

  void set_attention(bool on) { q = k = v = o = on; }
  void set_mlp(bool on) { gate = up = down = on; }
};

/// Everything besides the model that decides the sizes of a layer's storages on one rank.
template <Number N>
struct Dims {
  N sequence{1};                ///< s: tokens of a sample, before context parallelism
  N micro_batch{1};             ///< b
  N context_parallel{1};        ///< c
  N tensor_parallel{1};         ///< t
  N expert_tensor_parallel{1};  ///< et
  bool sequence_parallel = false;
  int64_t element_bytes = 2;  ///< of an activation
  int64_t tensor_parallel_value = 1;

  /// Tokens of one micro-batch on one rank.
  N tokens() const { return ceil_div(sequence * micro_batch, context_parallel); }
};

struct LayerOptions {
  KernelChoice kernels;
  Adapters adapters;
  bool frozen = false;      ///< base weights are not trained (LoRA, QLoRA)
  bool dequantize = false;  ///< QLoRA: each linear is expanded to 16 bits while it is used
  double hidden_dropout = 0, attention_dropout = 0;
  int64_t vocabulary_multiple = 1;  ///< logits of a tensor-parallel rank are padded to a multiple of this
  int64_t placeholder_bytes = 0;    ///< of one number of a tensor like the head's (the table's) weight in its backward
  bool input_needs_gradient = true;
};

/// One decoder (or encoder) layer.
template <Number N>
Block<N> layer_block(const Model& model, const LayerKind& kind, const Dims<N>& dims, const LayerOptions& options);
/// Token (and position) embedding: output is the first residual stream.
template <Number N>
Block<N> embedding_block(const Model& model, const Dims<N>& dims, const LayerOptions& options);
/// Final norm, output head, loss.
template <Number N>
Block<N> head_block(const Model& model, const Dims<N>& dims, const LayerOptions& options);

/// The well-known closed forms, for --textbook. Bytes of one layer at 16-bit activations.
/// GPT: s·b·h·(34 + 5·a·s/h) (Korthikanti et al. 2022, eq. 2; with tensor and sequence parallelism eqs. 3 and 4).
template <Number N>
N textbook_gpt_layer(N s, N b, N h, N a, Recompute recompute, bool flash);
/// Llama: (10 + 4·n_kv/n)·b·s·h + 8·b·s·f + 5·b·n·s². The items of its derivation sum to 12, its total prints 10.
template <Number N>
N textbook_llama_layer(N s, N b, N h, N a, N k, N f, Recompute recompute, bool flash);
/// What the Llama form adds once for the whole model: 4·b·s·h.
template <Number N>
N textbook_llama_rest(N s, N b, N h);

}  // namespace vram
