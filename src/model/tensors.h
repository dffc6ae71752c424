#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace vram::arch {

/// Appends tensors to one group of a model. All names of a group's layer hold "{layer}", of an expert "{expert}".
class TensorList {
 public:
  TensorList(Model& model, size_t group) : model_(&model), group_(group) {}

  /// A tensor `name` whose owner is `module`, in the model's dtype.
  Tensor& add(std::string name, std::string_view module, std::vector<int64_t> shape, Role role,
              Shard shard = Shard::replicated);
  /// module.leaf.weight [out, in], a matmul weight, and module.leaf.bias [out].
  void linear(std::string_view module, std::string_view leaf, int64_t out, int64_t in, Role role, Shard shard,
              bool bias = false);
  /// module.leaf.weight [width], and the bias; nothing for NormKind::none.
  void norm(std::string_view module, std::string_view leaf, int64_t width, NormKind kind, bool bias);
  /// module.leaf.weight [rows, width] (embedding tables).
  void table(std::string_view module, std::string_view leaf, int64_t rows, int64_t width, Role role, Shard shard);

  Dtype dtype() const { return model_->dtype; }
  Model& model() { return *model_; }

 private:
  Model* model_;
  size_t group_;
};

/// "a.b", or the part that is not empty.
std::string dotted(std::string_view a, std::string_view b);

/// Collects the groups and layer kinds of a model. Equal layers share one kind and one group.
class Assembly {
 public:
  explicit Assembly(Model& model) : model_(model) {}

  Model& model() { return model_; }
  /// The tensors of `part` that occur once.
  TensorList once(TensorGroup::Part part);
  /// One more layer of the model's sequence. `emit(TensorList)` runs for the first layer of each (part, kind, variant).
  template <class Emit>
  void layer(TensorGroup::Part part, int64_t index, const LayerKind& kind, int variant, Emit emit) {
    const size_t k = kind_index(kind);
    model_.layer_kind.push_back(static_cast<int64_t>(k));
    repeated(part, index, static_cast<int64_t>(k), variant, emit);
  }
  /// Layers outside the sequence: `count` equal ones of a tower or of the MTP part, numbered from `first`.
  template <class Emit>
  void tower(TensorGroup::Part part, int64_t first, int64_t count, Emit emit) {
    if (count <= 0) return;
    const size_t group = new_group(part);
    for (int64_t i = 0; i < count; ++i) model_.tensors[group].layers.push_back(first + i);
    emit(TensorList(model_, group));
  }

 private:
  struct Key {
    TensorGroup::Part part;
    int64_t kind;
    int variant;
    size_t group;
  };
  size_t kind_index(const LayerKind& kind);
  size_t new_group(TensorGroup::Part part);

  template <class Emit>
  void repeated(TensorGroup::Part part, int64_t index, int64_t kind, int variant, Emit& emit) {
    for (const Key& key : keys_) {
      if (key.part == part && key.kind == kind && key.variant == variant) {
        model_.tensors[key.group].layers.push_back(index);
        return;
      }
    }
    const size_t group = new_group(part);
    keys_.push_back({part, kind, variant, group});
    model_.tensors[group].layers.push_back(index);
    emit(TensorList(model_, group));
  }

  Model& model_;
  std::vector<Key> keys_;
};

/// Fills Tensor::stored_bytes where it is 0 and no file told it, and Model::counts. Throws OverflowError.
void finish_counts(Model& model);

}  // namespace vram::arch
