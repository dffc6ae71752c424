#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "model/model.h"

namespace vram {

/// Whether `name` is written as a path: "./x", "/x", "../x", or with the ending of a model file.
bool written_as_path(const std::string& name);

/// The model at a path: a config.json, a GGUF file (of a split one any part), a safetensors file or the index of its
/// shards, or a directory that holds any of these. Beside weights a config.json tells the layers and the weights the
/// sizes; where they differ is among the model's assumptions. `changes` ("kv_heads=8") apply to a config, without its
/// weights. Only headers of weight files are read. InputError names the file and what is wrong with it.
Model model_from_path(const std::string& path, const std::vector<std::string>& changes, const Environment& environment);

}  // namespace vram
