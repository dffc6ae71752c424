#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/model.h"

namespace vram::arch {

/// A tensor's name with its indices taken out: "model.layers.3.mlp.experts.17.up_proj.weight" is layer 3, expert 17 of
/// "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight". -1 where there is no such index.
struct SplitName {
  int64_t layer = -1, expert = -1;
};
/// Writes the pattern into `pattern`, whose capacity is reused.
SplitName split_name(std::string_view name, std::string& pattern);

/// What a name alone tells about a tensor.
struct Described {
  Role role = Role::other;
  Shard shard = Shard::replicated;
  TensorGroup::Part part = TensorGroup::Part::text;
  std::string module;
  bool learned = true;
  bool linear = false;
};

/// Of the checkpoints of Hugging Face models, whatever their family.
Described describe_checkpoint_name(std::string_view pattern, std::span<const int64_t> shape);
/// Of GGUF files. `linear_layer`: the block is one of a linear attention, whose attn_qkv and attn_gate belong to it.
Described describe_gguf_name(std::string_view pattern, std::span<const int64_t> shape, bool linear_layer);

}  // namespace vram::arch
