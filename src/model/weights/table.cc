#include "model/weights/table.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

namespace vram::arch {
namespace {

bool same_shape(std::span<const int64_t> a, std::span<const int64_t> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

// Names go to terminals: control characters and what is not UTF-8 are replaced.
std::string shown(std::string_view pattern) {
  for (char c : pattern) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
      return printable(pattern, kMaxTensorName);
  }
  return std::string(pattern);
}

}  // namespace

TensorTable::TensorTable(const FileTensors& tensors) : list_(tensors) {
  // Keys are views into patterns_, which therefore must not move: they are moved into the vector at the end.
  std::unordered_map<std::string, uint32_t> pattern_ids;
  std::unordered_map<uint64_t, uint32_t> first_cell;  // of (pattern, layer)
  std::vector<uint32_t> next_cell;                    // the next variant of the same; 0: none
  std::string pattern;
  for (const FileTensor& t : tensors.tensors()) {
    const SplitName split = split_name(t.name, pattern);
    const auto id = pattern_ids.try_emplace(pattern, static_cast<uint32_t>(pattern_ids.size())).first->second;
    const uint64_t key = static_cast<uint64_t>(id) << 32 | static_cast<uint32_t>(split.layer + 1);
    const auto [at, added] = first_cell.try_emplace(key, static_cast<uint32_t>(cells_.size()));
    uint32_t cell = at->second;
    if (!added) {
      while (cells_[cell].first->encoding != t.encoding || !same_shape(shape(cells_[cell]), tensors.shape(t))) {
        if (next_cell[cell] == 0) {
          next_cell[cell] = static_cast<uint32_t>(cells_.size());
          cell = next_cell[cell];
          break;
        }
        cell = next_cell[cell];
      }
    }
    if (cell == cells_.size()) {
      cells_.push_back({id, static_cast<int32_t>(split.layer), &t, 0});
      next_cell.push_back(0);
    }
    ++cells_[cell].count;
  }
  patterns_.resize(pattern_ids.size());
  for (auto& [text, id] : pattern_ids) patterns_[id] = shown(text);
  std::stable_sort(cells_.begin(), cells_.end(), [](const Cell& a, const Cell& b) {
    return a.layer != b.layer ? a.layer < b.layer : a.pattern < b.pattern;
  });
}

std::span<const TensorTable::Cell> TensorTable::of_layer(int64_t layer) const {
  const auto begin = std::lower_bound(cells_.begin(), cells_.end(), layer,
                                      [](const Cell& c, int64_t wanted) { return c.layer < wanted; });
  const auto end =
      std::upper_bound(begin, cells_.end(), layer, [](int64_t wanted, const Cell& c) { return wanted < c.layer; });
  return {begin, end};
}

const TensorTable::Cell* TensorTable::find(std::string_view pattern, int64_t layer) const {
  for (const Cell& c : of_layer(layer)) {
    if (patterns_[c.pattern] == pattern) return &c;
  }
  return nullptr;
}

int64_t TensorTable::last_layer(std::string_view prefix) const {
  int64_t last = -1;
  for (const Cell& c : cells_) {
    if (c.layer > last && patterns_[c.pattern].compare(0, prefix.size(), prefix) == 0) last = c.layer;
  }
  return last;
}

namespace {

using Part = TensorGroup::Part;

struct Item {
  const TensorTable::Cell* cell;
  Placed placed;
};

bool same_items(const TensorTable& table, const std::vector<Item>& a, const std::vector<Item>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto &x = *a[i].cell, &y = *b[i].cell;
    if (x.pattern != y.pattern || x.count != y.count || x.first->encoding != y.first->encoding ||
        !same_shape(table.shape(x), table.shape(y)) || a[i].placed.shape != b[i].placed.shape) {
      return false;
    }
  }
  return true;
}

Tensor tensor_of(const TensorTable& table, const Item& item) {
  const auto& cell = *item.cell;
  Tensor t;
  t.name = table.patterns()[cell.pattern];
  const auto shape = table.shape(cell);
  t.shape = item.placed.shape.empty() ? std::vector<int64_t>(shape.begin(), shape.end()) : item.placed.shape;
  t.dtype = cell.first->encoding->dtype;
  t.stored_as = cell.first->encoding->name;
  t.role = item.placed.what.role;
  t.shard = item.placed.what.shard;
  t.module = item.placed.what.module;
  t.learned = item.placed.what.learned;
  t.linear = item.placed.what.linear;
  t.experts = cell.count;
  t.stored_bytes = cell.first->bytes;
  return t;
}

}  // namespace

std::vector<TensorGroup> groups_of(const TensorTable& table,
                                   const std::function<Placed(const TensorTable::Cell&)>& place,
                                   const std::function<int64_t(Part, int64_t layer)>& kind) {
  struct Candidate {
    size_t group;
    int64_t kind;
    std::vector<Item> items;
  };
  std::vector<TensorGroup> out;
  std::unordered_map<uint64_t, std::vector<Candidate>> seen;
  const auto& cells = table.cells();
  for (size_t from = 0; from < cells.size();) {
    size_t to = from;
    while (to < cells.size() && cells[to].layer == cells[from].layer) ++to;
    const int64_t layer = cells[from].layer;
    std::vector<Item> of_part[5];
    for (size_t i = from; i < to; ++i) {
      Item item{&cells[i], place(cells[i])};
      of_part[static_cast<size_t>(item.placed.what.part)].push_back(std::move(item));
    }
    for (size_t p = 0; p < 5; ++p) {
      std::vector<Item>& items = of_part[p];
      if (items.empty()) continue;
      const auto part = static_cast<Part>(p);
      const int64_t layer_kind = layer >= 0 ? kind(part, layer) : 0;
      uint64_t hash = p * 31 + static_cast<uint64_t>(layer_kind) * 7 + (layer < 0 ? 1 : 0);
      for (const Item& item : items) hash = hash * 1'000'003 + item.cell->pattern;
      std::vector<Candidate>& candidates = seen[hash];
      const auto same = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
        return out[c.group].part == part && c.kind == layer_kind && same_items(table, c.items, items);
      });
      if (layer >= 0 && same != candidates.end()) {
        out[same->group].layers.push_back(layer);
        continue;
      }
      TensorGroup group;
      group.part = part;
      if (layer >= 0) group.layers.push_back(layer);
      group.tensors.reserve(items.size());
      for (const Item& item : items) group.tensors.push_back(tensor_of(table, item));
      out.push_back(std::move(group));
      candidates.push_back({out.size() - 1, layer_kind, std::move(items)});
    }
    from = to;
  }
  return out;
}

}  // namespace vram::arch
