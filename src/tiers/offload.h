#pragma once

#include <optional>

namespace vram {

/// What one optimizer step moves for one card.
struct OffloadLoad {
  double down_bytes = 0, up_bytes = 0;  ///< across the host link
  double host_bytes = 0;                ///< read and written in host memory by the optimizer
  double disk_read_bytes = 0, disk_write_bytes = 0;
};

/// Rates of one card's share, bytes a second; 0 is unknown.
struct OffloadRates {
  double link = 0;  ///< one direction
  double host = 0;
  double disk_read = 0, disk_write = 0;
};

/// Whether the copies hide: m_offload / bandwidth <= t_compute.
struct OffloadBound {
  double link_seconds = 0;    ///< down, then up
  double duplex_seconds = 0;  ///< both directions at once
  double host_seconds = 0;    ///< the optimizer's own pass over host memory
  double disk_seconds = 0;    ///< read, then write
  /// One after the other: nothing of it overlaps. It is what a step without overlap pays.
  double seconds() const { return link_seconds + host_seconds + disk_seconds; }
  std::optional<double> compute_seconds;       ///< of the step on this card
  std::optional<double> tokens_for_link;       ///< of one card and step, from which on the link alone hides
  std::optional<double> tokens_for_all;        ///< and the optimizer and disks, too
  bool link_hides = false, all_hides = false;  ///< at the step's own tokens
};

/// `tokens`: one card's share of a step. `tokens_per_second`: what one card computes; absent where its speed is
/// unknown. A rate of 0 with bytes to move makes that part unknown: it counts as nothing and hides never.
OffloadBound offload_bound(const OffloadLoad& load, const OffloadRates& rates, double tokens,
                           std::optional<double> tokens_per_second);

}  // namespace vram
