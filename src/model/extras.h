#pragma once

#include <string_view>

#include "model/reader.h"

namespace vram::arch {

/// What the published file of exactly this name adds that no config says: whether MTP layers keep their own embedding.
void apply_published_layout(std::string_view name, Decoder& decoder);

/// Buffers and copies that the published file of exactly this name holds besides its parameters (learned: false).
void add_published_extras(Model& model, const Reader& r);

}  // namespace vram::arch
