#include "tiers/offload.h"

#include <algorithm>

namespace vram {

OffloadBound offload_bound(const OffloadLoad& load, const OffloadRates& rates, double tokens,
                           std::optional<double> tokens_per_second) {
  OffloadBound out;
  bool known = true;
  const auto seconds = [&](double bytes, double rate) {
    if (bytes <= 0) return 0.0;
    if (rate <= 0) {
      known = false;
      return 0.0;
    }
    return bytes / rate;
  };
  out.link_seconds = seconds(load.down_bytes + load.up_bytes, rates.link);
  out.duplex_seconds = seconds(std::max(load.down_bytes, load.up_bytes), rates.link);
  const bool link_known = known;
  out.host_seconds = seconds(load.host_bytes, rates.host);
  out.disk_seconds = seconds(load.disk_read_bytes, rates.disk_read) + seconds(load.disk_write_bytes, rates.disk_write);
  if (tokens_per_second && *tokens_per_second > 0) {
    out.compute_seconds = tokens / *tokens_per_second;
    if (link_known) {
      out.tokens_for_link = out.link_seconds * *tokens_per_second;
      out.link_hides = out.link_seconds <= *out.compute_seconds;
    }
    if (known) {
      out.tokens_for_all = out.seconds() * *tokens_per_second;
      out.all_hides = out.seconds() <= *out.compute_seconds;
    }
  }
  return out;
}

}  // namespace vram
