#pragma once

#include "api/claim_grammar.h"
#include "machine/machine.h"

namespace vram {

/// The slots of data/claims.toml: <model> (catalogue:ID or size:70B), <canonical> ("4x80GB"), <count>, <device>,
/// <device_one>, <memory>, <tokens>, <tokens_k>, <number>, <ratio>, <decimal> and <amount>. `devices` and `numbers`
/// (words in Latin script) must outlive the slots.
Slots claim_slots(const Devices& devices, const std::map<std::string, int64_t, std::less<>>& numbers);

/// The names of the slots.
std::vector<std::string> claim_slot_names();

}  // namespace vram
