#pragma once

#include <vector>

#include "ledger/program.h"
#include "training/plan.h"

namespace vram {

/// What one pipeline rank holds of the model, counted in numbers, before data parallelism divides anything. Two
/// classes: dense parameters are replicated over dp·cp ranks, experts over tp·cp·dp / (ep·etp).
struct ClassCounts {
  int64_t parameters = 0;       ///< trained or frozen base parameters on the rank
  int64_t linear = 0;           ///< of them, matrices that fp8 keeps extra copies of
  int64_t hidden_matrices = 0;  ///< of them, matrices that Muon orthogonalises
  int64_t small = 0;            ///< of them, in tensors under 4,096 numbers (8-bit Adam keeps these in fp32)
  int64_t factored = 0;         ///< rows + columns of every matrix, plus vectors: Adafactor's second moment
  Bytes base_bytes = 0;         ///< of a frozen base as stored (quantized for QLoRA)
  int64_t adapters = 0;         ///< low-rank parameters
};

struct RankCounts {
  ClassCounts dense, expert;
};

/// Counts of one chunk-independent pipeline rank.
RankCounts rank_counts(const Model& model, const Plan& plan, int64_t rank);

/// Parameters of one layer on a rank: dense and expert part.
struct LayerCounts {
  int64_t dense = 0, expert = 0;
  Bytes base_bytes = 0;  ///< as stored, where the base is quantized
};
LayerCounts layer_counts(const Model& model, const Plan& plan, int64_t layer);
/// Parameters of the embedding (first stage) and of final norm and head (last stage) on a rank.
struct UnitCounts {
  int64_t parameters = 0;
  int64_t tied = 0;  ///< of them, a table that serves as embedding and as head
  Bytes base_bytes = 0;
};
UnitCounts embedding_counts(const Model& model, const Plan& plan);
UnitCounts head_counts(const Model& model, const Plan& plan);

/// Numbers of one copy of `tensor` on a rank under tensor, expert and expert tensor parallelism, all local experts in
/// it.
int64_t local_elements(const Tensor& tensor, const Model& model, const Plan& plan, int64_t layer);

/// Tensors of weights' shapes that a stack keeps for autograd beside the gradients proper: one a distinct shape of a
/// layer's matrices on the rank, with q, k and v (gate and up) as the one matrix they are there. 0 for most stacks.
template <Number N>
N placeholders(const Model& model, const Plan& plan, int64_t rank);

/// The second copy of the gradients that plain data parallelism reduces, in a stack that has one.
template <Number N>
N gradient_buckets(const Plan& plan, const RankCounts& counts);

/// A state as the accounts show it: weights, gradients, master weights, moments.
template <Number N>
struct State {
  Storage<N> storage;
  bool gradient = false;
};

/// The model states of a rank, sharded as the plan says, on the tier where they live.
template <Number N>
std::vector<State<N>> model_states(const Model& model, const Plan& plan, const RankCounts& counts);

/// Bytes of the optimizer's states for one class, before sharding.
template <Number N>
N optimizer_bytes(const Plan& plan, N parameters, const ClassCounts& counts);

}  // namespace vram
