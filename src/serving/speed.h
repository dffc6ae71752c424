#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clock/roofline.h"
#include "serving/capacity.h"

namespace vram {

/// What one rank of a stage reads, computes and sends, reduced to what steps depend on.
struct StageWork {
  double weights_bytes = 0;  ///< read in every step: all but the input table and experts
  double token_flops = 0;    ///< dense matrices, per token
  double head_flops = 0;     ///< output head, per token whose logits are wanted
  struct Routed {
    double bytes = 0, flops = 0;  ///< all experts of the rank; flops per token if it passed through all of them
    double experts = 0, per_token = 0;
  };
  std::vector<Routed> routed;
  struct Entries {
    double bytes = 0;         ///< read per cached entry and decoded token
    double decode_flops = 0;  ///< per cached entry and token
    double prefill_flops = 0;
    int64_t cap = 0;    ///< entries looked at, at most; 0: all
    int64_t every = 1;  ///< tokens of one entry
  };
  std::vector<Entries> entries;
  double state_bytes = 0;    ///< read and written again for each request and token
  double reduced_bytes = 0;  ///< all-reduced per token: two hidden states a layer
};

/// The bounds of one plan: peak rates, perfect overlap, nothing but weights, caches, matrices and tensor-parallel
/// all-reduces. No implementation on this machine is faster.
struct Speed {
  std::vector<StageWork> stages;
  Rates rates;
  std::string compute_dtype;  ///< "bf16": whose peak rate is taken
  int64_t tensor = 1, replicas = 1;
  double expert_share = 1;  ///< replicas whose tokens meet at the experts of one rank
};

/// Nothing where the machine is memory only, its bandwidth unknown, or the model without a decoder.
std::optional<Speed> prepare_speed(const ServePlan& plan, const Machine& machine);

struct DecodeBound {
  int64_t requests = 0;          ///< over all replicas
  double step_seconds = 0;       ///< every request gets one token
  double tokens_per_second = 0;  ///< over all replicas
  Roofline parts;                ///< of the slowest stage, per step
  Work work;                     ///< of the slowest stage, per step
};
/// One decode step of `requests` requests (at least 1, over all replicas) with `context` tokens each. Pipelines run one
/// or as many micro-batches as stages, whichever bounds less.
DecodeBound decode_bound(const Speed& speed, int64_t requests, int64_t context);

struct PrefillBound {
  int64_t tokens = 0;
  double seconds = 0;
  Roofline parts;
  Work work;
};
/// The prompt of one request; the stages of a pipeline overlap.
PrefillBound prefill_bound(const Speed& speed, int64_t tokens);

/// Requests of one replica from which on a decode step at `context` is not bound by bandwidth; nothing where that never
/// happens. Context 0 counts weights alone.
std::optional<int64_t> ridge_requests(const Speed& speed, int64_t context);

}  // namespace vram
