#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/file_tensors.h"
#include "model/weights/names.h"

namespace vram::arch {

/// A hundred thousand tensors as some dozens of patterns with the layers and experts that have them.
class TensorTable {
 public:
  /// Tensors of one pattern and layer with the same encoding and shape.
  struct Cell {
    uint32_t pattern = 0;
    int32_t layer = -1;
    const FileTensor* first = nullptr;
    int64_t count = 0;
  };

  /// `tensors` must outlive this.
  explicit TensorTable(const FileTensors& tensors);

  const FileTensors& list() const { return list_; }
  const std::vector<std::string>& patterns() const { return patterns_; }
  /// Sorted by layer, then in order of the patterns' first appearance.
  const std::vector<Cell>& cells() const { return cells_; }
  std::span<const int64_t> shape(const Cell& cell) const { return list_.shape(*cell.first); }
  std::span<const Cell> of_layer(int64_t layer) const;
  /// The first cell of `pattern` in `layer`, or null.
  const Cell* find(std::string_view pattern, int64_t layer) const;
  /// The largest layer of any cell whose pattern starts with `prefix`; -1 where there is none.
  int64_t last_layer(std::string_view prefix) const;

 private:
  const FileTensors& list_;
  std::vector<std::string> patterns_;
  std::vector<Cell> cells_;
};

/// How one cell becomes a Tensor of the model.
struct Placed {
  Described what;
  std::vector<int64_t> shape;  ///< logical; empty: the file's
};

/// The groups of a model: cells whose layers hold the same tensors share one. `place` describes a cell; `kind` tells
/// apart layers of equal tensors and different computation.
std::vector<TensorGroup> groups_of(const TensorTable& table,
                                   const std::function<Placed(const TensorTable::Cell&)>& place,
                                   const std::function<int64_t(TensorGroup::Part, int64_t layer)>& kind);

}  // namespace vram::arch
