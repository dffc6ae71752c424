#pragma once

#include <cstdint>
#include <string_view>

namespace vram {

/// What one device does in one piece of work.
struct Work {
  double flops = 0;  ///< operations, an amount
  double bytes = 0;  ///< read from and written to its own memory
  double sent = 0;   ///< bytes given to its link, one direction
};

inline Work operator+(Work a, Work b) { return {a.flops + b.flops, a.bytes + b.bytes, a.sent + b.sent}; }
inline Work operator*(double n, Work a) { return {n * a.flops, n * a.bytes, n * a.sent}; }

/// Rates of one device, a second. A rate of 0 is unknown and bounds nothing.
struct Rates {
  double flops = 0;
  double bytes = 0;
  double sent = 0;
};

enum class Bound : uint8_t { bandwidth, compute, link };
/// "bandwidth", "compute", "link".
std::string_view bound_name(Bound bound);

/// The time that `work` can't beat: its parts overlap perfectly and each runs at its full rate.
struct Roofline {
  double seconds = 0;  ///< the largest of the three
  double memory_seconds = 0;
  double compute_seconds = 0;
  double link_seconds = 0;
  Bound bound = Bound::bandwidth;
};
Roofline roofline(const Work& work, const Rates& rates);

/// FLOP per byte from which on work is bound by compute; 0 where a rate is unknown.
double ridge_point(const Rates& rates);

/// Bytes that each of `ranks` sends in a ring all-reduce of `bytes`: 2 (n - 1) / n of them (half for an all-gather or a
/// reduce-scatter). No algorithm without in-network reduction sends less.
double all_reduce_sent(double bytes, int64_t ranks);

}  // namespace vram
