#pragma once

#include <string>
#include <string_view>

#include "machine/machine.h"

namespace vram {

/// The device that `text` names: one of the catalogue, or an amount of memory ("80GB" is 80e9 bytes, "80GiB" 80 *
/// 2^30).
struct NamedDevice {
  std::optional<Device> device;
  bool left_open = false;
};
NamedDevice device_or_memory(std::string_view text, const Devices& devices);

/// InputError for an unknown device or machine, with the nearest known name.
[[noreturn]] void refuse_machine(std::string_view text, std::string problem, std::string near_miss = {});

/// Adds one assumption in both languages.
template <class... Args>
void assume(Machine& machine, std::string_view id, Args&&... args) {
  machine.assumptions.push_back(say(Lang::en, id, args...));
  machine.assumptions_zh.push_back(say(Lang::zh, id, args...));
}

/// Fills links that are not stated: inside the node from the device, between nodes from the constants.
void complete_links(Machine& machine, const Constants& constants);

/// Adds what holds for every use of this device: its name was short, it is half a package, only memory is known.
void assume_device(Machine& machine, std::string_view written, bool left_open);

/// "local": this machine's GPUs.
Machine local_machine(const Devices& devices, const Environment& environment, const Constants& constants);

/// A machine file.
Machine machine_of_file(const std::string& path, const Devices& devices, const Environment& environment,
                        const Constants& constants);

}  // namespace vram
