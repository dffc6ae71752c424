#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "model/model.h"

namespace vram {

/// How a service is spread: `data` replicas of `pipeline` stages of `tensor` ranks. Experts are spread over `expert` of
/// the tensor·data ranks of a stage, and cut by expert_tensor() where there are fewer expert ranks than tensor ranks.
struct Parallel {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t data = 1;
  int64_t expert = 1;

  int64_t replica() const { return tensor * pipeline; }
  int64_t cards() const { return replica() * data; }
  int64_t expert_tensor() const { return expert >= tensor ? 1 : tensor / expert; }
};

/// Layers [first, end) of one stage.
struct Stage {
  int64_t first = 0;
  int64_t end = 0;
};
/// Equal shares; what remains goes one by one to the stages from the second last backwards, since the first and the
/// last hold embedding and head besides (vLLM's rule).
std::vector<Stage> split_layers(int64_t layers, int64_t stages);

/// Ranks that hold the same bytes. Tensor-parallel ranks are alike; where experts don't divide evenly, some hold one
/// more.
struct RankClass {
  int64_t stage = 0;
  int64_t stages = 1;
  Stage layers;
  int64_t ranks = 1;         ///< over all replicas
  bool more_experts = true;  ///< holds the larger share of the experts

  bool first() const { return stage == 0; }
  bool last() const { return stage + 1 == stages; }
};
std::vector<RankClass> rank_classes(const Model& model, const Parallel& parallel);

/// Routed experts of the largest MoE layer; 0 for dense models.
int64_t expert_count(const Model& model);

/// Whether the heads of every layer can be spread over `tensor` ranks: query heads divide, KV heads divide or
/// replicate.
bool heads_divide(const Model& model, int64_t tensor);
/// The same for experts: `expert` divides the ranks of a stage, and it and `tensor` divide one another.
bool experts_divide(const Model& model, const Parallel& parallel);

/// The ways to spread `model` over all of `cards` (data-parallel replicas included) that keep every constraint; zeros
/// in `wanted` are free. Smallest replica first; tensor before pipeline parallelism; tensor parallelism within a node.
std::vector<Parallel> parallel_choices(const Model& model, int64_t cards, int64_t cards_per_node,
                                       const Parallel& wanted);

/// InputError naming what is accepted, where `wanted` (zeros are free) has no choice on `machine`.
[[noreturn]] void refuse_parallel(const Model& model, const Machine& machine, const Parallel& wanted);

}  // namespace vram
