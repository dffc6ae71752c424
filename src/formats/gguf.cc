#include "formats/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace vram {
namespace {

// What a reader of sizes may keep and must not believe. Real files stay far below: the largest vocabularies make
// headers of some 30 MB.
constexpr size_t kChunk = size_t{1} << 18;
constexpr int64_t kMaxHeader = int64_t{256} << 20;
constexpr int64_t kMaxPairs = 65'536;
constexpr int64_t kMaxKey = 65'535;
constexpr int64_t kMaxKeptString = 4096;
constexpr int64_t kMaxKeptNumbers = 4096;
constexpr int64_t kMaxArray = int64_t{1} << 30;
constexpr int64_t kMaxString = int64_t{1} << 30;
constexpr int64_t kMaxAlignment = int64_t{1} << 20;
constexpr size_t kMaxName = 63;
// The least that a pair (key length, type, one byte) and a tensor (name length, dimensions, type, offset) take.
constexpr int64_t kLeastPair = 13, kLeastTensor = 24;

enum Kind : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64, kinds };
constexpr int64_t kKindBytes[kinds] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::string_view kKindNames[kinds] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                "bool", "string", "array", "u64", "i64", "f64"};

// Reads forward through a header, in pieces.
class Cursor {
 public:
  explicit Cursor(const ByteSource& file) : file_(file), size_(file.size()) {}

  int64_t at() const { return start_ + static_cast<int64_t>(next_); }
  int64_t left() const { return size_ - at(); }
  int64_t size() const { return size_; }
  const std::string& name() const { return file_.name(); }
  bool swap = false;

  [[noreturn]] void refuse(std::string problem, std::string accepted = {}) const {
    throw InputError({.file = file_.name(), .problem = std::move(problem), .accepted = std::move(accepted)});
  }

  /// A view of the next `n` bytes, valid until the next call.
  std::string_view take(size_t n) {
    if (buffer_.size() - next_ < n) fill(n);
    const std::string_view out = std::string_view(buffer_).substr(next_, n);
    next_ += n;
    return out;
  }
  void skip(int64_t n) {
    if (n > left()) ends_early();
    if (n <= static_cast<int64_t>(buffer_.size() - next_)) {
      next_ += static_cast<size_t>(n);
      return;
    }
    start_ = at() + n;
    buffer_.clear();
    next_ = 0;
  }
  std::string beginning() const { return file_.read(0, 256); }
  template <class T>
  T number() {
    char bytes[sizeof(T)];
    std::memcpy(bytes, take(sizeof(T)).data(), sizeof(T));
    if (swap) std::reverse(bytes, bytes + sizeof(T));
    T out;
    std::memcpy(&out, bytes, sizeof(T));
    return out;
  }

 private:
  [[noreturn]] void ends_early() const {
    refuse(fmt::format("ends within its header, at byte {} (an unfinished download?)", with_commas(size_)));
  }
  void fill(size_t n) {
    if (static_cast<int64_t>(n) > left()) ends_early();
    const int64_t from = at();
    read_ += static_cast<int64_t>(std::max(n, kChunk));
    if (read_ > kMaxHeader) {
      refuse("has a header of more than 256 MiB", "the metadata of a real model");
    }
    buffer_ = file_.read(from, std::max(n, kChunk));
    start_ = from;
    next_ = 0;
    if (buffer_.size() < n) refuse("was cut while it was read");
  }

  const ByteSource& file_;
  int64_t size_;
  int64_t start_ = 0;  // of the buffer, in the file
  size_t next_ = 0;
  int64_t read_ = 0;
  std::string buffer_;
};

class Reader {
 public:
  Reader(const ByteSource& file, FileTensors& out) : in_(file), out_(out) {}

  GgufMetadata read() {
    head();
    pairs();
    tensors();
    return std::move(meta_);
  }

 private:
  [[noreturn]] void bad_key(std::string_view key, std::string problem, std::string accepted = {}) const {
    throw InputError({.file = in_.name(),
                      .field = "key",
                      .value = std::string(key.substr(0, 200)),
                      .problem = std::move(problem),
                      .accepted = std::move(accepted)});
  }
  [[noreturn]] void bad_tensor(std::string_view name, std::string problem, std::string accepted = {}) const {
    throw InputError({.file = in_.name(),
                      .field = "tensor",
                      .value = std::string(name.substr(0, 200)),
                      .problem = std::move(problem),
                      .accepted = std::move(accepted)});
  }

  // Counts and lengths: 32 bits in version 1. A value beyond int64 becomes -1.
  int64_t count() {
    if (meta_.version == 1) return in_.number<uint32_t>();
    const auto n = in_.number<uint64_t>();
    return n > static_cast<uint64_t>(INT64_MAX) ? -1 : static_cast<int64_t>(n);
  }

  void head() {
    const std::string_view magic = in_.take(static_cast<size_t>(std::min<int64_t>(4, in_.size())));
    if (magic != "GGUF") {
      const std::string start = in_.beginning();
      refuse_impostor(in_.name(), start, "a GGUF file");
      if (start.size() > 9 && start[8] == '{' && start[7] == '\0') in_.refuse("is a safetensors file", "a GGUF file");
      if (magic == "ggml" || magic == "lmgg" || magic == "fmgg" || magic == "tjgg") {
        in_.refuse("is a model file from before GGUF", "a GGUF file");
      }
      in_.refuse("does not begin as a GGUF file does", "the bytes 'GGUF'");
    }
    // The byte order is not stated: a version with nothing in its low half is one read the wrong way round.
    auto version = in_.number<uint32_t>();
    if (version != 0 && (version & 0xFFFF) == 0) {
      in_.swap = meta_.big_endian = true;
      version = __builtin_bswap32(version);
    }
    if (version < 1 || version > 3) in_.refuse(fmt::format("is GGUF of version {}", version), "versions 1 to 3");
    meta_.version = version;
    tensor_count_ = count();
    pair_count_ = count();
    const int64_t left = in_.left();
    if (pair_count_ < 0 || pair_count_ > left / kLeastPair) {
      in_.refuse("claims more metadata than the file can hold", "a whole GGUF file");
    }
    if (tensor_count_ < 0 || tensor_count_ > left / kLeastTensor) {
      in_.refuse("claims more tensors than the file can hold", "a whole GGUF file");
    }
    if (pair_count_ > kMaxPairs) {
      in_.refuse(fmt::format("claims {} metadata keys", with_commas(pair_count_)), "at most 65,536");
    }
    if (tensor_count_ > kMaxFileTensors) {
      in_.refuse(fmt::format("claims {} tensors", with_commas(tensor_count_)), "at most 1,000,000");
    }
  }

  std::string key() {
    const int64_t length = count();
    if (length == 0) in_.refuse("has a metadata key without a name");
    if (length < 0 || length > kMaxKey) {
      in_.refuse(fmt::format("has a metadata key of {} bytes", length < 0 ? "2^63" : with_commas(length)),
                 "at most 65,535");
    }
    std::string name(in_.take(static_cast<size_t>(length)));
    for (char c : name) {
      if (c <= ' ' || static_cast<unsigned char>(c) >= 0x7f) bad_key(name, "is no key", "printable ASCII");
    }
    if (!keys_.insert(name).second) bad_key(name, "stands there twice");
    return name;
  }

  void pairs() {
    Document::Object& values = meta_.values.object();
    for (int64_t i = 0; i < pair_count_; ++i) {
      std::string name = key();
      const auto kind = in_.number<uint32_t>();
      if (kind >= kinds) bad_key(name, fmt::format("has the unknown type {}", kind), "0 to 12");
      if (name == "general.alignment") {
        if (kind != u32) bad_key(name, fmt::format("is of type {}", kKindNames[kind]), "u32");
        set_alignment(name, in_.number<uint32_t>());
        values.emplace_back(std::move(name), Document(alignment_));
        continue;
      }
      Document value = kind == array ? array_value(name) : kind == string ? string_value(name) : scalar(name, kind);
      if (!value.is_null()) values.emplace_back(std::move(name), std::move(value));
    }
  }

  void set_alignment(const std::string& name, uint32_t value) {
    alignment_ = value;
    if (value == 0 || (value & (value - 1)) != 0 || value > kMaxAlignment) {
      bad_key(name, fmt::format("is {}", value), "a power of two up to 1,048,576");
    }
  }

  // Numbers beyond int64 are kept as reals: none of them is a size.
  Document scalar(const std::string& name, uint32_t kind) {
    switch (kind) {
      case u8:
        return Document(int64_t{in_.number<uint8_t>()});
      case i8:
        return Document(int64_t{in_.number<int8_t>()});
      case u16:
        return Document(int64_t{in_.number<uint16_t>()});
      case i16:
        return Document(int64_t{in_.number<int16_t>()});
      case u32:
        return Document(int64_t{in_.number<uint32_t>()});
      case i32:
        return Document(int64_t{in_.number<int32_t>()});
      case f32:
        return Document(static_cast<double>(in_.number<float>()));
      case boolean: {
        const auto byte = in_.number<uint8_t>();
        if (byte > 1) bad_key(name, fmt::format("is a bool of value {}", byte), "0 or 1");
        return Document(byte == 1);
      }
      case u64: {
        const auto n = in_.number<uint64_t>();
        if (n > static_cast<uint64_t>(INT64_MAX)) return Document(static_cast<double>(n));
        return Document(static_cast<int64_t>(n));
      }
      case i64:
        return Document(in_.number<int64_t>());
      default:
        return Document(in_.number<double>());
    }
  }

  int64_t string_length(const std::string& name) {
    const int64_t length = count();
    if (length < 0 || length > in_.left() || length > kMaxString) {
      bad_key(name, "has a string longer than the file");
    }
    return length;
  }

  // Null where it is passed over.
  Document string_value(const std::string& name) {
    const int64_t length = string_length(name);
    if (length > kMaxKeptString) {
      in_.skip(length);
      meta_.skipped.push_back({name, length});
      return {};
    }
    return Document(std::string(in_.take(static_cast<size_t>(length))));
  }

  Document array_value(const std::string& name) {
    const auto kind = in_.number<uint32_t>();
    if (kind == array) bad_key(name, "is an array of arrays", "arrays of numbers or strings");
    if (kind >= kinds) bad_key(name, fmt::format("is an array of the unknown type {}", kind), "0 to 12");
    const int64_t n = count();
    const int64_t each = kind == string ? (meta_.version == 1 ? 4 : 8) : kKindBytes[kind];
    if (n < 0 || n > kMaxArray || n > in_.left() / each) bad_key(name, "has more entries than the file can hold");
    if (kind != string && n <= kMaxKeptNumbers) {
      Document::Array out;
      out.reserve(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) out.push_back(scalar(name, kind));
      return Document(std::move(out));
    }
    if (kind == string) {
      for (int64_t i = 0; i < n; ++i) in_.skip(string_length(name));
    } else {
      in_.skip(n * each);
    }
    meta_.skipped.push_back({name, n});
    return {};
  }

  void tensors() {
    out_.add_file(in_.name());
    std::vector<int64_t> shape;
    int64_t end = 0;
    const auto first = static_cast<uint32_t>(out_.tensors().size());
    for (int64_t i = 0; i < tensor_count_; ++i) {
      const int64_t length = count();
      if (length < 0 || length > static_cast<int64_t>(kMaxName)) {
        in_.refuse("has a tensor name that is too long", "less than 64 bytes");
      }
      const std::string name(in_.take(static_cast<size_t>(length)));
      if (name.empty()) in_.refuse("has a tensor without a name");
      if (find_invalid_utf8(name) != std::string::npos) bad_tensor(name, "has a name that is not UTF-8");
      const auto dims = in_.number<uint32_t>();
      if (dims > 4) bad_tensor(name, fmt::format("has {} dimensions", dims), "at most 4");
      shape.clear();
      for (uint32_t d = 0; d < dims; ++d) {
        const int64_t n = count();
        if (n < 0) bad_tensor(name, "has a dimension beyond 2^63");
        shape.push_back(n);
      }
      const auto id = in_.number<uint32_t>();
      const auto offset = in_.number<uint64_t>();
      const Encoding& encoding = checked_encoding(name, id);
      const Bytes bytes = checked_size(name, encoding, shape);
      if (offset % static_cast<uint64_t>(alignment_) != 0) {
        bad_tensor(name, fmt::format("begins at byte {}", offset), fmt::format("a multiple of {}", alignment_));
      }
      if (offset != static_cast<uint64_t>(end)) {
        bad_tensor(name, fmt::format("begins at byte {} of the data", offset),
                   fmt::format("{}, where the tensor before it ends", end));
      }
      try {
        end = checked_add(end, bytes);
        last_end_ = end;
        end = checked_mul(ceil_div(end, alignment_), alignment_);
        std::reverse(shape.begin(), shape.end());
        out_.add(name, encoding, shape, bytes);
      } catch (const OverflowError&) {
        bad_tensor(name, "makes the sizes exceed 2^63 bytes");
      }
    }
    if (out_.tensors().size() == first) return;
    const int64_t data = ceil_div(in_.at(), alignment_) * alignment_;
    const int64_t room = in_.size() - data;
    if (room < last_end_) {
      in_.refuse(fmt::format("ends {} bytes before its last tensor does (an unfinished download?)",
                             with_commas(last_end_ - room)),
                 fmt::format("{} bytes in all", with_commas(in_.size() + last_end_ - room)));
    }
  }

  const Encoding& checked_encoding(const std::string& name, uint32_t id) const {
    if (const Encoding* known = gguf_encoding(id)) return *known;
    const bool removed = id == 4 || id == 5 || (id >= 31 && id <= 33) || id == 37 || id == 38 || id == 142 || id == 143;
    bad_tensor(name, fmt::format("is of {} type {}", removed ? "the removed" : "the unknown", id),
               removed ? "types that are still read" : "a tensor type of ggml");
  }

  // `ne` in ggml's order: the row first.
  Bytes checked_size(const std::string& name, const Encoding& encoding, const std::vector<int64_t>& ne) const {
    const int64_t width = ne.empty() ? 1 : ne[0];
    if (width % encoding.block != 0) {
      bad_tensor(name,
                 fmt::format("has rows of {} numbers, which {} does not store", with_commas(width), encoding.name),
                 fmt::format("a multiple of {}", encoding.block));
    }
    try {
      int64_t rows = 1;
      for (size_t i = 1; i < ne.size(); ++i) rows = checked_mul(rows, ne[i]);
      checked_mul(rows, width);
      if (rows == 0 || width == 0) return 0;
      return encoded_bytes(encoding, rows, width);
    } catch (const OverflowError&) {
      bad_tensor(name, fmt::format("of shape [{}] exceeds 2^63 bytes", fmt::join(ne, ", ")));
    }
  }

  Cursor in_;
  FileTensors& out_;
  GgufMetadata meta_;
  std::set<std::string, std::less<>> keys_;
  int64_t tensor_count_ = 0, pair_count_ = 0;
  int64_t alignment_ = 32;
  int64_t last_end_ = 0;
};

int64_t integer_or(const GgufMetadata& meta, std::string_view key, int64_t fallback) {
  const Document* value = meta.find(key);
  return value && value->is_integer() ? value->integer() : fallback;
}

}  // namespace

int64_t GgufMetadata::length(std::string_view key) const {
  const Document* kept = values.find(key);
  if (kept) return kept->is_array() ? static_cast<int64_t>(kept->array().size()) : -1;
  for (const Skipped& s : skipped) {
    if (s.key == key) return s.length;
  }
  return -1;
}

GgufMetadata read_gguf(const ByteSource& file, FileTensors& out) { return Reader(file, out).read(); }

GgufShard gguf_shard(std::string_view name) {
  // "-00001-of-00003.gguf"
  constexpr std::string_view kEnd = ".gguf";
  constexpr size_t kTail = 15;
  if (name.size() <= kTail + kEnd.size() || name.substr(name.size() - kEnd.size()) != kEnd) return {};
  const std::string_view stem = name.substr(0, name.size() - kEnd.size());
  const std::string_view tail = stem.substr(stem.size() - kTail);
  const auto five = [](std::string_view digits) {
    int64_t n = 0;
    for (char c : digits) {
      if (c < '0' || c > '9') return int64_t{-1};
      n = n * 10 + (c - '0');
    }
    return n;
  };
  const int64_t number = five(tail.substr(1, 5)), count = five(tail.substr(10, 5));
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || number < 1 || count < 1 || number > count) return {};
  return {std::string(stem.substr(0, stem.size() - kTail)), number, count};
}

std::string gguf_shard_name(const GgufShard& shard, int64_t number) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", shard.prefix, number, shard.count);
}

GgufMetadata read_gguf_split(const std::vector<std::unique_ptr<ByteSource>>& files, FileTensors& out) {
  GgufMetadata all;
  const auto count = static_cast<int64_t>(files.size());
  std::vector<bool> seen(files.size(), false);
  for (size_t i = 0; i < files.size(); ++i) {
    GgufMetadata meta = read_gguf(*files[i], out);
    const auto refuse = [&](std::string key, std::string problem, std::string accepted = {}) {
      throw InputError({.file = files[i]->name(),
                        .field = "key",
                        .value = std::move(key),
                        .problem = std::move(problem),
                        .accepted = std::move(accepted)});
    };
    const int64_t claimed = integer_or(meta, "split.count", count == 1 ? 1 : -1);
    if (claimed != count && !(count == 1 && claimed == 0)) {
      refuse("split.count", claimed < 0 ? "is missing" : fmt::format("is {}; there are {} files", claimed, count));
    }
    if (count > 1) {
      const int64_t number = integer_or(meta, "split.no", -1);
      if (number < 0 || number >= count)
        refuse("split.no", "is missing or out of range", fmt::format("0 to {}", count - 1));
      if (seen[static_cast<size_t>(number)]) refuse("split.no", fmt::format("is {}, as in another file", number));
      seen[static_cast<size_t>(number)] = true;
    }
    if (i == 0) {
      all = std::move(meta);
      continue;
    }
    for (auto& [key, value] : meta.values.object()) {
      if (!all.find(key)) all.values.object().emplace_back(std::move(key), std::move(value));
    }
    all.skipped.insert(all.skipped.end(), meta.skipped.begin(), meta.skipped.end());
  }
  const auto found = static_cast<int64_t>(out.tensors().size());
  if (const int64_t told = integer_or(all, "split.tensors.count", found); count > 1 && told != found) {
    throw InputError({.file = files.front()->name(),
                      .field = "key",
                      .value = "split.tensors.count",
                      .problem = fmt::format("is {}; the {} files hold {}", told, count, found)});
  }
  return all;
}

}  // namespace vram
