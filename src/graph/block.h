#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ledger/program.h"

namespace vram {

/// A set of a block's storages, as a bit mask. A plain layer has about 25; expert layers with adapters on every linear
/// and unfused kernels exceed 64.
__extension__ typedef unsigned __int128 Set;
inline constexpr size_t kMaxStorages = 128;
using BlockId = uint8_t;
constexpr Set bit(BlockId id) { return Set{1} << id; }

/// Kernels, by what autograd keeps for them. Their rules stand in kernels.cc, one each, with source.
enum class Kernel : uint8_t {
  linear,           ///< y = x W^T
  norm_python,      ///< Hugging Face RMSNorm written in Python: upcasts, normalises, casts back
  norm_fused,       ///< one kernel: Transformer Engine, Apex, F.rms_norm, F.layer_norm
  attention_fused,  ///< flash or memory-efficient attention
  batched_matmul,   ///< scores = q k^T, context = p v
  softmax,
  silu,
  gelu,
  relu2,
  tanh,
  mul,
  swiglu_fused,  ///< silu(gate) * up in one kernel, recomputing silu in backward
  dropout,
  free_form,    ///< rope, add, scale, cast, view, split, repeat: keeps nothing
  scan,         ///< recurrent mixers (Mamba, gated delta net, ...): keeps its inputs
  gather_rows,  ///< embedding, MoE permutation: keeps the index map (aux)
  log_softmax,
  nll,
  cross_entropy_in_place,  ///< Megatron's vocabulary-parallel cross entropy: gradient overwrites what it kept
  cross_entropy_fused      ///< Transformer Engine / Triton: gradient overwrites the logits, nothing else kept
};
std::string_view kernel_name(Kernel kernel);

struct Operation {
  Kernel kernel = Kernel::free_form;
  std::string_view name;
  std::vector<BlockId> in;
  std::vector<BlockId> out;
  std::vector<BlockId> aux;  ///< what the kernel makes for its own backward: statistics, masks, casts
  std::vector<BlockId> scratch_forward, scratch_backward;  ///< alive during the operation only
  bool trainable = true;                                   ///< has a trainable weight (or gain)
  bool selective = false;                                  ///< dropped and redone by selective recompute
  double flops = 0;  ///< of one forward pass; backward is twice that for a trainable matmul, once if frozen
};

/// Which storages of `op` are kept from forward to backward.
Set kernel_saves(const Operation& op);
/// Where the rule of a kernel is from.
std::string_view kernel_source(Kernel kernel);

template <Number N>
struct BlockStorage {
  std::string_view name;
  std::string_view module;  ///< "attention", "mlp", "norm", "loss"
  N bytes{0};
  Category category = Category::activations;
  bool differentiable = true;   ///< has a gradient of its own size in backward
  bool kept_by_caller = false;  ///< a Python variable holds it until the end of backward (Hugging Face's logits)
};

/// One layer (or the embedding, or head and loss) as operations over storages. storages[input] and storages[output]
/// are the residual stream: made outside respectively handed on.
template <Number N>
struct Block {
  std::vector<BlockStorage<N>> storages;
  std::vector<Operation> operations;
  BlockId input = 0;
  BlockId output = 0;
  bool input_needs_gradient = true;

  BlockId add(BlockStorage<N> storage);  ///< std::logic_error beyond kMaxStorages
  Set saved() const;                     ///< union of the kernels' rules
  N saved_bytes() const;                 ///< sum over saved(), the input included where it is kept
  double forward_flops() const;
};

/// How much of a layer is recomputed in backward.
enum class Recompute : uint8_t { none, selective, full };

/// What one pass over a block does, in order. `Sink` has allocate(BlockId), free(BlockId) for forward storages and
/// allocate_gradient(BlockId), free_gradient(BlockId) for the gradient that belongs to a storage.
///
/// Forward: enters with the input alive, leaves with the output alive and everything kept for backward. The input is
/// freed after its last use unless the block keeps it.
template <Number N, class Sink>
void walk_forward(const Block<N>& block, Recompute recompute, Sink& sink);
/// Backward: enters with the gradient of the output alive, leaves with that of the input alive (if it needs one) and
/// nothing else of the block, the input included where the block kept it.
template <Number N, class Sink>
void walk_backward(const Block<N>& block, Recompute recompute, Sink& sink);

/// True if forward leaves the block's input alive for backward.
template <Number N>
bool keeps_input(const Block<N>& block, Recompute recompute);

}  // namespace vram

#include "graph/walk.h"
