#pragma once

#include <string>

#include "formats/file_tensors.h"
#include "formats/gguf.h"
#include "model/model.h"

namespace vram {

/// The model of a GGUF file (of a split one: of all its parts). Tensors with their stored bytes, roles from the names;
/// layer kinds from the metadata and the tensors of each block. InputError for files without a language model (LoRA
/// adapters, vocabularies) and for metadata that contradicts the tensors.
Model model_from_gguf(const GgufMetadata& metadata, const FileTensors& tensors, const std::string& file,
                      std::string name);

/// The model of safetensors without a config. Where the names are those of a usual decoder its layers are known as far
/// as the tensors tell them, and what they don't tell is assumed; else the tensors and their sizes alone (shape_known
/// false).
Model model_from_weights(const FileTensors& tensors, const std::string& file, std::string name);

/// The model of a config with the tensors and sizes of its weights, and where the two differ among its assumptions:
/// what is missing, what the config doesn't know, other dtypes, other shapes. `index_total` is what the index of the
/// shards claims, -1 for none. A learned tensor that the config has and the files lack is no longer part of the model.
Model model_with_weights(const Model& config, const FileTensors& tensors, int64_t index_total = -1);

}  // namespace vram
