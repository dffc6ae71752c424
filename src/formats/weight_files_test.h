#pragma once

// Writers of safetensors and GGUF headers for tests and benchmarks: what they write is exactly what they are told, so
// that every kind of broken file can be made.

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "formats/gguf.h"

namespace vram::made {

inline std::string little(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

/// A safetensors file: length, header, data of `data` zeros.
inline std::string safetensors(std::string_view header, size_t data = 0) {
  return little(header.size(), 8) + std::string(header) + std::string(data, '\0');
}

/// Collects tensors one behind the other: the header of a well-formed file and the size of its data.
class SafetensorsHeader {
 public:
  void add(std::string_view name, std::string_view dtype, const std::vector<int64_t>& shape, int64_t bytes) {
    text_ += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                         text_.empty() ? "" : ",", name, dtype, fmt::join(shape, ","), end_, end_ + bytes);
    end_ += bytes;
  }
  std::string file_start() const {
    std::string header = "{" + text_ + "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    return safetensors(header);
  }
  int64_t data_bytes() const { return end_; }

 private:
  std::string text_;
  int64_t end_ = 0;
};

/// Puts a GGUF file together.
class GgufWriter {
 public:
  explicit GgufWriter(uint32_t version = 3, bool big_endian = false) : version_(version), big_(big_endian) {}

  std::string number(uint64_t value, size_t bytes) const {
    std::string out = little(value, bytes);
    return big_ ? std::string(out.rbegin(), out.rend()) : out;
  }
  std::string count(uint64_t n) const { return number(n, version_ == 1 ? 4 : 8); }
  std::string string(std::string_view text) const { return count(text.size()) + std::string(text); }

  /// A pair with its value as bytes.
  GgufWriter& raw(std::string_view key, uint32_t type, const std::string& value) {
    pairs_ += string(key) + number(type, 4) + value;
    ++pair_count;
    return *this;
  }
  GgufWriter& u16(std::string_view key, uint64_t value) { return raw(key, 2, number(value, 2)); }
  GgufWriter& u32(std::string_view key, uint64_t value) { return raw(key, 4, number(value, 4)); }
  GgufWriter& i32(std::string_view key, uint64_t value) { return raw(key, 5, number(value, 4)); }
  GgufWriter& boolean(std::string_view key, bool value) { return raw(key, 7, number(value, 1)); }
  GgufWriter& text(std::string_view key, std::string_view value) { return raw(key, 8, string(value)); }
  GgufWriter& u32s(std::string_view key, const std::vector<int64_t>& values) {
    std::string bytes = number(4, 4) + count(values.size());
    for (int64_t v : values) bytes += number(static_cast<uint64_t>(v), 4);
    return raw(key, 9, bytes);
  }
  GgufWriter& booleans(std::string_view key, const std::vector<bool>& values) {
    std::string bytes = number(7, 4) + count(values.size());
    for (bool v : values) bytes += number(v, 1);
    return raw(key, 9, bytes);
  }
  GgufWriter& texts(std::string_view key, size_t entries, std::string_view each) {
    std::string bytes = number(8, 4) + count(entries);
    for (size_t i = 0; i < entries; ++i) bytes += string(each);
    return raw(key, 9, bytes);
  }
  /// Puts the metadata of `other` in the place of its own.
  void take_metadata(const GgufWriter& other) {
    pairs_ = other.pairs_;
    pair_count = other.pair_count;
  }
  /// `ne` in ggml's order. Offsets follow one another unless one is given.
  GgufWriter& tensor(std::string_view name, const std::vector<int64_t>& ne, uint32_t type, int64_t bytes,
                     int64_t offset = -1) {
    tensors_ += string(name) + number(ne.size(), 4);
    for (int64_t n : ne) tensors_ += count(static_cast<uint64_t>(n));
    tensors_ += number(type, 4) + number(static_cast<uint64_t>(offset < 0 ? data_ : offset), 8);
    data_ += (bytes + alignment - 1) / alignment * alignment;
    ++tensor_count;
    return *this;
  }
  GgufWriter& tensor(std::string_view name, const std::vector<int64_t>& ne, std::string_view type, int64_t bytes) {
    for (const auto& [id, encoding] : gguf_encodings()) {
      if (encoding == gguf_encoding(type)) return tensor(name, ne, id, bytes);
    }
    return *this;
  }

  std::string header() const {
    std::string out = "GGUF" + number(version_, 4) + count(tensor_count) + count(pair_count) + pairs_ + tensors_;
    out.resize((out.size() + static_cast<size_t>(alignment) - 1) / static_cast<size_t>(alignment) *
                   static_cast<size_t>(alignment),
               '\0');
    return out;
  }
  /// The bytes of the whole file, data included.
  int64_t size() const { return static_cast<int64_t>(header().size()) + data_; }

  uint64_t tensor_count = 0, pair_count = 0;
  int64_t alignment = 32;

 private:
  uint32_t version_;
  bool big_;
  std::string pairs_, tensors_;
  int64_t data_ = 0;
};

/// A tensor list of data/truth/gguf_tensors.tsv.
struct RealList {
  std::string name;
  int64_t tensors = 0, elements = 0, bytes = 0;  ///< as summed over the published list
  GgufWriter writer;                             ///< with its tensors and no metadata
};

inline std::vector<RealList> real_lists(const std::string& source_dir) {
  std::vector<RealList> out;
  std::ifstream list(source_dir + "/data/truth/gguf_tensors.tsv");
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream in(line[0] == '=' ? line.substr(2) : line);
    if (line[0] == '=') {
      RealList& next = out.emplace_back();
      in >> next.name >> next.tensors >> next.elements >> next.bytes;
      continue;
    }
    std::string name, blocks, ne, type, part;
    int64_t each = 0;
    in >> name >> blocks >> ne >> type >> each;
    std::vector<int64_t> dims;
    for (std::istringstream s(ne); std::getline(s, part, ',');) dims.push_back(std::stoll(part));
    for (std::istringstream s(blocks); std::getline(s, part, ',');) {
      if (part == "-") {
        out.back().writer.tensor(name, dims, type, each);
        continue;
      }
      const size_t dash = part.find('-');
      const int first = std::stoi(part);
      const int last = dash == std::string::npos ? first : std::stoi(part.substr(dash + 1));
      for (int b = first; b <= last; ++b) {
        std::string filled = name;
        out.back().writer.tensor(filled.replace(filled.find('#'), 1, std::to_string(b)), dims, type, each);
      }
    }
  }
  return out;
}

}  // namespace vram::made
