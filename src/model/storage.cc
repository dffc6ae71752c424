#include "model/storage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/checked.h"

namespace vram::arch {

namespace {

using Layout = Storage::Layout;

// "a.weight" -> "a"; stacked parameters have no such ending.
std::string module_of(std::string_view name) {
  constexpr std::string_view kEnd = ".weight";
  if (name.size() > kEnd.size() && name.substr(name.size() - kEnd.size()) == kEnd) name.remove_suffix(kEnd.size());
  return std::string(name);
}

class Sides {
 public:
  Sides(const Tensor& weight, std::vector<Tensor>& out) : weight_(weight), base_(module_of(weight.name)), out_(out) {}

  // The stacked experts' dimension comes first in every side tensor that has one a matrix.
  void add(std::string_view leaf, std::vector<int64_t> shape, Dtype dtype) {
    if (weight_.shape.size() == 3) shape.insert(shape.begin(), weight_.shape[0]);
    Tensor t;
    t.name = base_;
    t.name += base_.size() == weight_.name.size() ? "_" : ".";
    t.name += leaf;
    t.shape = std::move(shape);
    t.dtype = dtype;
    t.role = Role::scale;
    t.shard = weight_.shard;
    t.module = weight_.module;
    t.experts = weight_.experts;
    t.learned = false;
    out_.push_back(std::move(t));
  }

 private:
  const Tensor& weight_;
  std::string base_;
  std::vector<Tensor>& out_;
};

Dtype packed_dtype(int bits) { return bits == 4 ? Dtype::i4 : Dtype::i8; }

}  // namespace

void store(Tensor w, const Storage& s, std::vector<Tensor>& out) {
  if (s.layout == Layout::plain || w.shape.size() < 2) {
    out.push_back(std::move(w));
    return;
  }
  const int64_t rows = w.shape[w.shape.size() - 2];
  const int64_t columns = w.shape[w.shape.size() - 1];
  const int64_t copies = w.shape.size() == 3 ? w.shape[0] : 1;
  const int64_t group = s.group > 0 ? std::min(s.group, columns) : columns;
  const int64_t groups = ceil_div(columns, group);
  const int64_t elements = w.elements();
  std::vector<Tensor> sides;
  Sides side(w, sides);
  // Words of 32 bits for `n` numbers; 3-bit formats pack 32 numbers in three words.
  const auto words = [&](int64_t n) { return ceil_div(checked_mul(n, s.bits), 32); };
  Dtype dtype = Dtype::i8;
  Bytes bytes = 0;
  switch (s.layout) {
    case Layout::plain:
      break;
    case Layout::fp8_block:
      dtype = Dtype::f8_e4m3;
      bytes = elements;
      side.add("weight_scale_inv", {ceil_div(rows, s.block_rows), ceil_div(columns, s.block_columns)}, s.scale);
      break;
    case Layout::fp8_tensor:
      dtype = Dtype::f8_e4m3;
      bytes = elements;
      side.add("weight_scale", {1}, s.scale);
      if (s.input_scale) side.add("input_scale", {1}, s.scale);
      break;
    case Layout::fp8_channel:
      dtype = Dtype::f8_e4m3;
      bytes = elements;
      side.add("weight_scale", {rows, 1}, s.scale);
      if (s.input_scale) side.add("input_scale", {1}, s.scale);
      break;
    case Layout::int8_channel:
      bytes = elements;
      side.add("weight_scale", {rows, 1}, s.scale);
      if (!s.symmetric) side.add("weight_zero_point", {rows, 1}, Dtype::i8);
      break;
    case Layout::int_group:
      dtype = packed_dtype(s.bits);
      bytes = checked_mul(copies, checked_mul(checked_mul(rows, words(columns)), 4));
      side.add("weight_scale", {rows, groups}, s.scale);
      if (!s.symmetric) side.add("weight_zero_point", {words(rows), groups}, Dtype::i32);
      side.add("weight_shape", {2}, Dtype::i64);
      if (s.act_order) side.add("weight_g_idx", {columns}, Dtype::i32);
      break;
    case Layout::gptq:
      dtype = packed_dtype(s.bits);
      bytes = checked_mul(copies, checked_mul(checked_mul(words(columns), rows), 4));
      side.add("qzeros", {groups, words(rows)}, Dtype::i32);
      side.add("scales", {groups, rows}, Dtype::f16);
      side.add("g_idx", {columns}, Dtype::i32);
      break;
    case Layout::awq:
      dtype = packed_dtype(s.bits);
      bytes = checked_mul(copies, checked_mul(checked_mul(columns, words(rows)), 4));
      side.add("qzeros", {groups, words(rows)}, Dtype::i32);
      side.add("scales", {groups, rows}, Dtype::f16);
      break;
    case Layout::bnb8:
      bytes = elements;
      side.add("SCB", {rows}, Dtype::f32);
      side.add("weight_format", {1}, Dtype::u8);
      break;
    case Layout::bnb4: {
      // Blocks of 64 run through the flattened matrix. The few bytes of JSON beside each matrix are left out.
      dtype = Dtype::f4;
      const int64_t matrix = checked_mul(rows, columns);
      bytes = checked_mul(copies, ceil_div(matrix, 2));
      const int64_t blocks = ceil_div(matrix, 64);
      if (s.double_quant) {
        side.add("weight.absmax", {blocks}, Dtype::u8);
        side.add("weight.nested_absmax", {ceil_div(blocks, 256)}, Dtype::f32);
        side.add("weight.nested_quant_map", {256}, Dtype::f32);
      } else {
        side.add("weight.absmax", {blocks}, Dtype::f32);
      }
      side.add("weight.quant_map", {16}, Dtype::f32);
      break;
    }
    case Layout::mxfp4:
      dtype = Dtype::f4;
      bytes = checked_mul(copies, checked_mul(rows, ceil_div(columns, 2)));
      side.add("scales", {rows, ceil_div(columns, 32)}, Dtype::f8_e8m0);
      break;
    case Layout::nvfp4:
      dtype = Dtype::f4;
      bytes = checked_mul(copies, checked_mul(rows, ceil_div(columns, 2)));
      side.add("weight_scale", {rows, ceil_div(columns, 16)}, Dtype::f8_e4m3);
      side.add("weight_scale_2", {1}, Dtype::f32);
      if (s.input_scale) side.add("input_scale", {1}, Dtype::f32);
      break;
    case Layout::mxfp8:
      dtype = Dtype::f8_e4m3;
      bytes = elements;
      side.add("weight_scale", {rows, ceil_div(columns, 32)}, Dtype::f8_e8m0);
      break;
    case Layout::hqq: {
      const int64_t matrix = checked_mul(rows, columns);
      const int64_t size = s.group > 0 ? s.group : matrix;
      dtype = packed_dtype(s.bits);
      // 3-bit numbers are packed ten to a word of 32 bits, the others fill bytes.
      bytes = checked_mul(
          copies, s.bits == 3 ? checked_mul(4, ceil_div(matrix, 10)) : ceil_div(checked_mul(matrix, s.bits), 8));
      side.add("scale", {ceil_div(matrix, size)}, Dtype::f16);
      side.add("zero", {ceil_div(matrix, size)}, Dtype::f16);
      break;
    }
    case Layout::tinygemm:
      dtype = packed_dtype(s.bits);
      bytes = checked_mul(copies, checked_mul(rows, ceil_div(checked_mul(columns, s.bits), 8)));
      side.add("scale_and_zero", {groups, rows, 2}, Dtype::bf16);
      break;
    case Layout::ternary:
      bytes = checked_mul(copies, checked_mul(ceil_div(rows, 4), columns));
      side.add("weight_scale", {1}, Dtype::bf16);
      break;
    case Layout::average: {
      // Mixed widths whose average is declared: whole bytes of the product.
      dtype = s.bits_per_weight <= 6 ? Dtype::i4 : Dtype::i8;
      const auto thousandths = static_cast<int64_t>(std::llround(s.bits_per_weight * 1000));
      bytes = mul_div_up(elements, thousandths, 8000);
      break;
    }
  }
  w.dtype = dtype;
  w.stored_bytes = bytes;
  out.push_back(std::move(w));
  for (Tensor& t : sides) {
    t.stored_bytes = dtype_bytes(t.dtype, t.elements());
    out.push_back(std::move(t));
  }
}

namespace {

void fill_in(std::string& name, std::string_view what, int64_t index) {
  const size_t at = name.find(what);
  if (at != std::string::npos) name.replace(at, what.size(), std::to_string(index));
}

std::string module_name(const Tensor& t, int64_t layer) {
  std::string name = module_of(t.name);
  fill_in(name, "{layer}", layer);
  fill_in(name, "{expert}", 0);
  return name;
}

TensorGroup converted(const TensorGroup& group, std::vector<int64_t> layers, const std::vector<Storage>& storages,
                      Converted& sum) {
  TensorGroup out;
  out.part = group.part;
  out.layers = std::move(layers);
  out.tensors.reserve(group.tensors.size() * 2);
  const int64_t times = out.times();
  for (size_t i = 0; i < group.tensors.size(); ++i) {
    const size_t first = out.tensors.size();
    store(group.tensors[i], storages[i], out.tensors);
    if (storages[i].layout == Layout::plain) continue;
    for (size_t k = first; k < out.tensors.size(); ++k) {
      const Tensor& t = out.tensors[k];
      const int64_t copies = checked_mul(times, t.experts);
      sum.bytes = checked_add(sum.bytes, checked_mul(t.stored_bytes, copies));
      if (k == first) sum.weights = checked_add(sum.weights, checked_mul(t.elements(), copies));
    }
  }
  return out;
}

}  // namespace

Converted rewrite(Model& model, const Chooser& choose, bool by_layer) {
  Converted sum;
  std::vector<TensorGroup> out;
  out.reserve(model.tensors.size());
  for (const TensorGroup& group : model.tensors) {
    const auto storages_for = [&](int64_t layer) {
      std::vector<Storage> storages(group.tensors.size());
      for (size_t i = 0; i < group.tensors.size(); ++i) {
        const Tensor& t = group.tensors[i];
        if (t.linear) storages[i] = choose(t, group.part, module_name(t, layer));
      }
      return storages;
    };
    if (!by_layer || group.layers.size() < 2) {
      const int64_t layer = group.layers.empty() ? 0 : group.layers.front();
      out.push_back(converted(group, group.layers, storages_for(layer), sum));
      continue;
    }
    // Layers of equal treatment stay together, in the order of their first layer.
    std::vector<std::pair<std::vector<Storage>, std::vector<int64_t>>> parts;
    for (int64_t layer : group.layers) {
      std::vector<Storage> storages = storages_for(layer);
      auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part.first == storages; });
      if (found == parts.end()) {
        parts.emplace_back(std::move(storages), std::vector<int64_t>{layer});
      } else {
        found->second.push_back(layer);
      }
    }
    for (auto& part : parts) out.push_back(converted(group, std::move(part.second), part.first, sum));
  }
  model.tensors = std::move(out);
  return sum;
}

void undo(Model& model) {
  for (TensorGroup& group : model.tensors) {
    auto& tensors = group.tensors;
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                                 [](const Tensor& t) { return t.role == Role::scale && !t.learned; }),
                  tensors.end());
    for (Tensor& t : tensors) {
      // Of a file's packed formats nothing stays, of its plain ones the dtype.
      const bool packed = !t.stored_as.empty() && t.stored_bytes != dtype_bytes(t.dtype, t.elements());
      t.stored_as = {};
      if (!t.linear && !packed) continue;
      t.dtype = model.dtype;
      t.stored_bytes = 0;
    }
  }
}

}  // namespace vram::arch
