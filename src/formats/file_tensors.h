#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace vram {

/// How a file stores numbers: `block` numbers of a row take `block_bytes`, each row `row_bytes` more and each tensor
/// `tensor_bytes` more.
struct Encoding {
  std::string_view name;  ///< "BF16", "Q4_K"
  int64_t block = 1;
  int64_t block_bytes = 0;
  int64_t row_bytes = 0;
  int64_t tensor_bytes = 0;
  Dtype dtype = Dtype::f32;  ///< the same numbers, or the nearest width of packed ones
  bool plain() const { return block == 1 && row_bytes == 0 && tensor_bytes == 0; }
  double bits() const { return 8.0 * static_cast<double>(block_bytes) / static_cast<double>(block); }
};

/// Bytes of a tensor of `rows` rows of `width` numbers. Throws OverflowError. Precondition: width % block == 0.
Bytes encoded_bytes(const Encoding& encoding, int64_t rows, int64_t width);

/// One tensor as its file describes it.
struct FileTensor {
  std::string_view name;
  const Encoding* encoding = nullptr;
  Bytes bytes = 0;
  uint32_t dims_at = 0;
  uint16_t rank = 0;
  uint16_t file = 0;
};

// Nothing published comes near these; a value beyond them is a mistake or an attack.
inline constexpr int64_t kMaxFileTensors = 1'000'000;
inline constexpr size_t kMaxTensorName = 1024;
inline constexpr size_t kMaxRank = 16;
inline constexpr size_t kMaxShards = 10'000;

/// The tensors of one model's weight files, in the files' order. Names are unique; shapes have rows first ([out, in]).
class FileTensors {
 public:
  FileTensors() = default;
  FileTensors(FileTensors&&) = default;
  FileTensors& operator=(FileTensors&&) = default;

  const std::vector<FileTensor>& tensors() const { return tensors_; }
  const std::vector<std::string>& files() const { return files_; }
  std::span<const int64_t> shape(const FileTensor& t) const { return {dims_.data() + t.dims_at, t.rank}; }
  int64_t elements(const FileTensor& t) const;
  Bytes bytes() const { return bytes_; }
  /// Null where there is none.
  const FileTensor* find(std::string_view name) const;

  /// A file that further tensors belong to; its index. InputError beyond kMaxShards.
  uint16_t add_file(std::string name);
  /// Copies the name. InputError, naming the last added file, for a name that is there already or is no name, and
  /// beyond kMaxFileTensors; OverflowError where all bytes exceed 2^63.
  void add(std::string_view name, const Encoding& encoding, std::span<const int64_t> shape, Bytes bytes);

 private:
  std::string_view keep(std::string_view name);
  void grow();

  std::vector<FileTensor> tensors_;
  std::vector<int64_t> dims_;
  std::vector<std::string> files_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_left_ = 0;
  char* block_at_ = nullptr;
  std::vector<uint32_t> slots_;  // open addressing: 1 + index into tensors_
  std::vector<uint32_t> hashes_;
  Bytes bytes_ = 0;
};

}  // namespace vram
