#pragma once

#include <optional>

#include "machine/machine.h"
#include "training/plan.h"
#include "training/states.h"

namespace vram {

/// Operations of training, counted the way model FLOPs utilisation counts them: recomputation is not work.
struct TrainingFlops {
  double textbook_per_token = 0;   ///< 6·N (N: active parameters)
  double matmul_per_token = 0;     ///< 6 x parameters that multiply (the embedding look-up does not, a tied head does)
  double attention_per_token = 0;  ///< 12·L·s·width, sliding windows counted as such, causality not
  double recompute_per_token = 0;  ///< done again in backward: not part of MFU
  double per_token() const { return matmul_per_token + attention_per_token; }
};
TrainingFlops training_flops(const Model& model, const Plan& plan);

/// Bytes that one rank sends in a step (ring algorithms: all-gather and reduce-scatter (N-1)/N of the data, all-reduce
/// twice that), by the group that exchanges them.
struct Traffic {
  double data_parallel = 0, tensor_parallel = 0, context_parallel = 0, pipeline_parallel = 0, expert_parallel = 0;
  double host = 0;  ///< across the host link, both directions together
  double host_down = 0, host_up = 0;
};
/// Of a rank that holds `counts`. Experts are exchanged with fewer ranks than the rest of the model. A hybrid shard
/// group exchanges within itself as ZeRO does and all-reduces its shard of the gradients with the other groups.
Traffic step_traffic(const Model& model, const Plan& plan, const RankCounts& counts);

/// Time to train on `tokens`, from a given utilisation. Absent where the device's speed is unknown.
struct TrainingTime {
  double flops = 0;  ///< in all
  double peak_flops_per_card = 0;
  double mfu = 0;
  double seconds = 0;
  double card_hours = 0;
  double tokens_per_second = 0;
  std::optional<double> price;  ///< USD in all
};
std::optional<TrainingTime> training_time(double flops_per_token, double tokens, int64_t cards, const Device& device,
                                          Precision precision, double mfu, std::optional<double> price_per_card_hour);

/// Optimizer offload: seconds a step spends on the host link, and the tokens a card must work on in a step to hide it.
struct OffloadTime {
  double bytes_per_step = 0;
  double seconds_one_way = 0;  ///< down, then up
  double seconds_duplex = 0;
  std::optional<double> tokens_to_hide;
};
OffloadTime offload_time(const Traffic& traffic, double link_bytes_per_second, double flops_per_token,
                         std::optional<double> peak_flops, double mfu);

}  // namespace vram
