#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/environment.h"

namespace vram {

/// The bytes of one weight file, read in parts: a file of this machine, or of another one by range requests.
class ByteSource {
 public:
  /// `name` stands for the file in errors.
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  virtual int64_t size() const = 0;
  /// `length` bytes from `offset` on, fewer only where the file ends.
  virtual std::string read(int64_t offset, size_t length) const = 0;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// A file of an Environment, which must outlive this.
class FileBytes : public ByteSource {
 public:
  FileBytes(const Environment& environment, std::string path)
      : ByteSource(path), environment_(environment), path_(std::move(path)), size_(environment.file_size(path_)) {}
  int64_t size() const override { return size_; }
  std::string read(int64_t offset, size_t length) const override {
    return environment_.read_range(path_, offset, length);
  }

 private:
  const Environment& environment_;
  std::string path_;
  int64_t size_;
};

/// Bytes held in memory, which must outlive this. A `size` beyond them stands for zeros: the data behind a header.
class MemoryBytes : public ByteSource {
 public:
  MemoryBytes(std::string name, std::string_view bytes, int64_t size = -1)
      : ByteSource(std::move(name)), bytes_(bytes), size_(size < 0 ? static_cast<int64_t>(bytes.size()) : size) {}
  int64_t size() const override { return size_; }
  std::string read(int64_t offset, size_t length) const override;

 private:
  std::string_view bytes_;
  int64_t size_;
};

/// InputError where the first bytes show that the file is none of a model's: a Git LFS pointer (said with the size that
/// it stands for), an HTML page, an archive, a PyTorch checkpoint. `wanted` names what it should be.
void refuse_impostor(const std::string& file, std::string_view first_bytes, std::string_view wanted);

/// Whether the first bytes are those of a Git LFS pointer.
bool is_lfs_pointer(std::string_view first_bytes);

}  // namespace vram
