#pragma once

#include <functional>
#include <vector>

#include "model/quantization.h"

namespace vram::arch {

/// Rewrites `weight` as `storage` keeps it and appends its side tensors (Role::scale, learned false) to `out`.
void store(Tensor weight, const Storage& storage, std::vector<Tensor>& out);

/// Chooses how a linear weight is stored; `module` is its name without ".weight", with the layer filled in.
using Chooser = std::function<Storage(const Tensor& weight, TensorGroup::Part part, const std::string& module)>;

struct Converted {
  int64_t weights = 0;  ///< numbers converted
  Bytes bytes = 0;      ///< that they take, side tensors included
};

/// Applies `choose` to every linear weight. `by_layer`: ask for each layer (groups are split where answers differ), not
/// only for the first layer of a group.
Converted rewrite(Model& model, const Chooser& choose, bool by_layer);

/// Drops side tensors and gives every linear weight the model's dtype again.
void undo(Model& model);

}  // namespace vram::arch
