#include "formats/file_tensors.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/checked.h"
#include "base/error.h"

namespace vram {
namespace {

constexpr size_t kBlock = size_t{1} << 18;

uint32_t hash_of(std::string_view name) {
  const size_t h = std::hash<std::string_view>()(name);
  return static_cast<uint32_t>(h ^ (h >> 32));
}

}  // namespace

Bytes encoded_bytes(const Encoding& e, int64_t rows, int64_t width) {
  const Bytes row = checked_add(checked_mul(width / e.block, e.block_bytes), e.row_bytes);
  return checked_add(checked_mul(rows, row), e.tensor_bytes);
}

int64_t FileTensors::elements(const FileTensor& t) const {
  int64_t n = 1;
  for (int64_t d : shape(t)) n = checked_mul(n, d);
  return n;
}

uint16_t FileTensors::add_file(std::string name) {
  if (files_.size() >= kMaxShards) {
    throw InputError({.file = name,
                      .problem = "belongs to a model of too many files",
                      .accepted = "at most " + std::to_string(kMaxShards)});
  }
  files_.push_back(std::move(name));
  return static_cast<uint16_t>(files_.size() - 1);
}

const FileTensor* FileTensors::find(std::string_view name) const {
  if (slots_.empty()) return nullptr;
  const uint32_t hash = hash_of(name);
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask; slots_[i] != 0; i = (i + 1) & mask) {
    const uint32_t t = slots_[i] - 1;
    if (hashes_[t] == hash && tensors_[t].name == name) return &tensors_[t];
  }
  return nullptr;
}

std::string_view FileTensors::keep(std::string_view name) {
  if (name.size() > block_left_) {
    blocks_.push_back(std::make_unique<char[]>(kBlock));
    block_at_ = blocks_.back().get();
    block_left_ = kBlock;
  }
  std::memcpy(block_at_, name.data(), name.size());
  const std::string_view kept(block_at_, name.size());
  block_at_ += name.size();
  block_left_ -= name.size();
  return kept;
}

void FileTensors::grow() {
  const size_t size = std::max<size_t>(1024, slots_.size() * 2);
  slots_.assign(size, 0);
  for (uint32_t t = 0; t < tensors_.size(); ++t) {
    size_t i = hashes_[t] & (size - 1);
    while (slots_[i] != 0) i = (i + 1) & (size - 1);
    slots_[i] = t + 1;
  }
}

void FileTensors::add(std::string_view name, const Encoding& encoding, std::span<const int64_t> shape, Bytes bytes) {
  const auto refuse = [&](std::string problem, std::string accepted = {}) {
    throw InputError({.file = files_.back(),
                      .field = "tensor",
                      .value = std::string(name.substr(0, 200)),
                      .problem = std::move(problem),
                      .accepted = std::move(accepted)});
  };
  if (name.empty()) refuse("has no name");
  if (name.size() > kMaxTensorName) refuse("has too long a name", "at most 1024 bytes");
  if (static_cast<int64_t>(tensors_.size()) >= kMaxFileTensors) refuse("is one tensor too many", "at most 1,000,000");
  if (const FileTensor* there = find(name)) {
    const bool same = there->file + size_t{1} == files_.size();
    refuse(same ? "stands there twice" : "is in " + printable(files_[there->file], 120) + " as well");
  }
  if ((tensors_.size() + 1) * 2 > slots_.size()) grow();
  const uint32_t hash = hash_of(name);
  size_t i = hash & (slots_.size() - 1);
  while (slots_[i] != 0) i = (i + 1) & (slots_.size() - 1);
  bytes_ = checked_add(bytes_, bytes);
  slots_[i] = static_cast<uint32_t>(tensors_.size() + 1);
  hashes_.push_back(hash);
  tensors_.push_back({.name = keep(name),
                      .encoding = &encoding,
                      .bytes = bytes,
                      .dims_at = static_cast<uint32_t>(dims_.size()),
                      .rank = static_cast<uint16_t>(shape.size()),
                      .file = static_cast<uint16_t>(files_.size() - 1)});
  dims_.insert(dims_.end(), shape.begin(), shape.end());
}

}  // namespace vram
