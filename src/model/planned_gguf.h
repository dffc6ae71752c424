#pragma once

#include <string_view>
#include <vector>

#include "model/model.h"

namespace vram::arch {

/// The mixes of llama-quantize, by their names in lower case ("q4_k_m", "iq3_xxs"): which type each tensor of a GGUF
/// file gets. With an importance matrix where llama-quantize wants one (iq1 to iq3_xxs), without one elsewhere.
/// Sources: llama-quant.cpp and tools/quantize/README.md of github.com/ggml-org/llama.cpp.
const std::vector<std::string_view>& gguf_mixes();

/// `model`, unquantized, stored as `mix`; false where that is no mix. Norms, biases, routers and convolutions become
/// F32, towers of other modalities stay as they are: they go to a file of their own.
bool apply_gguf_mix(Model& model, std::string_view mix);

}  // namespace vram::arch
