#include "clock/roofline.h"

#include <algorithm>

namespace vram {

std::string_view bound_name(Bound bound) {
  switch (bound) {
    case Bound::bandwidth:
      return "bandwidth";
    case Bound::compute:
      return "compute";
    case Bound::link:
      return "link";
  }
  return "?";
}

Roofline roofline(const Work& work, const Rates& rates) {
  Roofline out;
  if (rates.bytes > 0) out.memory_seconds = work.bytes / rates.bytes;
  if (rates.flops > 0) out.compute_seconds = work.flops / rates.flops;
  if (rates.sent > 0) out.link_seconds = work.sent / rates.sent;
  out.seconds = std::max({out.memory_seconds, out.compute_seconds, out.link_seconds});
  if (out.seconds > out.memory_seconds) {
    out.bound = out.compute_seconds >= out.link_seconds ? Bound::compute : Bound::link;
  }
  return out;
}

double ridge_point(const Rates& rates) { return rates.bytes > 0 ? rates.flops / rates.bytes : 0; }

double all_reduce_sent(double bytes, int64_t ranks) {
  if (ranks <= 1) return 0;
  const auto n = static_cast<double>(ranks);
  return 2 * (n - 1) / n * bytes;
}

}  // namespace vram
