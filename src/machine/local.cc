#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "machine/parse.h"

namespace vram {
namespace {

// "2 x NVIDIA A100-SXM4-80GB, 1 x NVIDIA GeForce RTX 4090", in order of first appearance.
std::string count_by_name(const std::vector<LocalGpu>& gpus) {
  std::vector<std::pair<std::string, int>> counts;
  for (const LocalGpu& gpu : gpus) {
    const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == gpu.name; });
    if (known == counts.end()) {
      counts.emplace_back(gpu.name, 1);
    } else {
      ++known->second;
    }
  }
  std::string out;
  for (const auto& count : counts) {
    out += fmt::format("{}{} x {}", out.empty() ? "" : ", ", count.second, printable(count.first));
  }
  return out;
}

// The driver's own total is better than the catalogue's (ECC switches it, boards differ); what the driver keeps for
// itself is taken over from the catalogue.
void apply_driver_total(Device& device, Bytes total) {
  const Bytes listed = device.driver_bytes.value_or(device.marketing_bytes);
  const auto shifted = [&](Bytes process) { return std::max<Bytes>(0, total - std::max<Bytes>(0, listed - process)); };
  if (device.process_bytes_low) device.process_bytes_low = shifted(*device.process_bytes_low);
  if (device.process_bytes_high) device.process_bytes_high = shifted(*device.process_bytes_high);
  device.driver_bytes = total;
  device.marketing_bytes = std::max(device.marketing_bytes, total);
}

Device unknown_gpu(const LocalGpu& gpu) {
  Device d;
  d.id = gpu.name;
  d.name = gpu.name;
  d.vendor = "NVIDIA";
  d.marketing_bytes = gpu.total_bytes;
  d.marketing_text = format_gib(gpu.total_bytes);
  d.driver_bytes = gpu.total_bytes;
  d.source = "NVML of this machine";
  d.memory_only = true;
  return d;
}

}  // namespace

Machine local_machine(const Devices& devices, const Environment& environment, const Constants& constants) {
  const LocalGpus found = environment.local_gpus();
  if (found.gpus.empty()) {
    throw UnavailableError("no GPU was found on this machine: " + found.absent_because +
                           "; name a machine instead, such as 8xH100");
  }
  const LocalGpu& first = found.gpus.front();
  const bool same = std::all_of(found.gpus.begin(), found.gpus.end(), [&](const LocalGpu& g) {
    return g.name == first.name && g.total_bytes == first.total_bytes;
  });
  const bool same_names =
      std::all_of(found.gpus.begin(), found.gpus.end(), [&](const LocalGpu& g) { return g.name == first.name; });
  if (!same_names) {
    throw InputError({.field = "machine",
                      .value = "local",
                      .problem = "has different GPUs: " + count_by_name(found.gpus),
                      .accepted = "equal cards; name those to plan for, such as 2xA100-80G"});
  }
  Bytes total = first.total_bytes;
  Bytes used = 0;
  for (const LocalGpu& gpu : found.gpus) {
    // Equal cards may differ by a few reserved pages: plan for the smallest.
    if (!same) total = std::min(total, gpu.total_bytes);
    used = std::max(used, gpu.used_bytes);
  }
  Machine m;
  m.text = "local";
  m.cards_per_node = static_cast<int64_t>(found.gpus.size());
  if (const Device* known = devices.find_driver_name(first.name, total)) {
    m.device = *known;
    apply_driver_total(m.device, total);
    m.device.cards_per_node = std::max(m.device.cards_per_node, m.cards_per_node);
  } else {
    LocalGpu smallest = first;
    smallest.total_bytes = total;
    m.device = unknown_gpu(smallest);
    assume(m, "machine.assume.unknown_gpu", fmt::arg("name", printable(first.name)));
  }
  // Below 1 GiB it is the driver's own; more means that somebody works here.
  if (used > kGiB) assume(m, "machine.assume.in_use", fmt::arg("gib", format_gib(used)));
  complete_links(m, constants);
  return m;
}

}  // namespace vram
