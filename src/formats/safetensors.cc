#include "formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/checked.h"
#include "base/error.h"
#include "base/units.h"
#include "formats/json_scan.h"

namespace vram {
namespace {

// The reference implementation's limit as well.
constexpr int64_t kHeaderLimit = 100'000'000;

// Numbers of less than a byte fill whole bytes together; the shape counts numbers.
constexpr Encoding kEncodings[] = {
    {.name = "BF16", .block_bytes = 2, .dtype = Dtype::bf16},
    {.name = "F16", .block_bytes = 2, .dtype = Dtype::f16},
    {.name = "F32", .block_bytes = 4, .dtype = Dtype::f32},
    {.name = "F8_E4M3", .block_bytes = 1, .dtype = Dtype::f8_e4m3},
    {.name = "U8", .block_bytes = 1, .dtype = Dtype::u8},
    {.name = "I8", .block_bytes = 1, .dtype = Dtype::i8},
    {.name = "I32", .block_bytes = 4, .dtype = Dtype::i32},
    {.name = "I64", .block_bytes = 8, .dtype = Dtype::i64},
    {.name = "F8_E5M2", .block_bytes = 1, .dtype = Dtype::f8_e5m2},
    {.name = "F8_E8M0", .block_bytes = 1, .dtype = Dtype::f8_e8m0},
    {.name = "F8_E4M3FNUZ", .block_bytes = 1, .dtype = Dtype::f8_e4m3},
    {.name = "F8_E5M2FNUZ", .block_bytes = 1, .dtype = Dtype::f8_e5m2},
    {.name = "F4", .block = 2, .block_bytes = 1, .dtype = Dtype::f4},
    {.name = "F6_E2M3", .block = 4, .block_bytes = 3, .dtype = Dtype::f6},
    {.name = "F6_E3M2", .block = 4, .block_bytes = 3, .dtype = Dtype::f6},
    {.name = "BOOL", .block_bytes = 1, .dtype = Dtype::boolean},
    {.name = "I16", .block_bytes = 2, .dtype = Dtype::i16},
    {.name = "U16", .block_bytes = 2, .dtype = Dtype::i16},
    {.name = "U32", .block_bytes = 4, .dtype = Dtype::i32},
    {.name = "U64", .block_bytes = 8, .dtype = Dtype::i64},
    {.name = "F64", .block_bytes = 8, .dtype = Dtype::f64},
    {.name = "C64", .block_bytes = 8, .dtype = Dtype::f64},  // two F32
};

std::string accepted_dtypes() {
  std::string out;
  for (const Encoding& e : kEncodings) out += (out.empty() ? "" : ", ") + std::string(e.name);
  return out;
}

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

struct Range64 {
  int64_t begin, end;
  uint32_t tensor;
};

class Header {
 public:
  Header(const ByteSource& file, std::string_view text, FileTensors& out)
      : file_(file.name()), scan_(text, file_, true), out_(out) {}

  // Returns where the last tensor ends.
  int64_t read() {
    out_.add_file(file_);
    scan_.expect('{');
    if (!scan_.accept('}')) {
      do {
        name_ = scan_.string(name_scratch_);
        scan_.expect(':');
        if (name_ == "__metadata__") {
          metadata();
        } else {
          tensor();
        }
      } while (scan_.accept(','));
      scan_.expect('}');
    }
    scan_.end();
    return check_ranges();
  }

 private:
  [[noreturn]] void refuse(std::string_view tensor, std::string problem, std::string accepted = {}) const {
    throw InputError({.file = file_,
                      .field = "tensor",
                      .value = std::string(tensor.substr(0, 200)),
                      .problem = std::move(problem),
                      .accepted = std::move(accepted)});
  }

  void metadata() {
    if (has_metadata_) scan_.refuse("__metadata__ stands there twice");
    has_metadata_ = true;
    std::vector<std::string> keys;
    scan_.expect('{');
    if (scan_.accept('}')) return;
    do {
      keys.emplace_back(scan_.string(scratch_));
      scan_.expect(':');
      scan_.string(scratch_);
    } while (scan_.accept(','));
    scan_.expect('}');
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) {
      throw InputError({.file = file_, .field = "__metadata__", .value = *twice, .problem = "stands there twice"});
    }
  }

  void tensor() {
    const Encoding* encoding = nullptr;
    bool has_shape = false, has_range = false;
    Range64 range{0, 0, static_cast<uint32_t>(out_.tensors().size())};
    scan_.expect('{');
    do {
      const std::string_view field = scan_.string(scratch_);
      const bool again =
          (field == "dtype" && encoding) || (field == "shape" && has_shape) || (field == "data_offsets" && has_range);
      if (again) refuse(name_, fmt::format("has {} twice", field));
      if (field == "dtype") {
        scan_.expect(':');
        const std::string_view dtype = scan_.string(scratch_);
        encoding = safetensors_encoding(dtype);
        if (!encoding) refuse(name_, fmt::format("has the unknown dtype '{}'", printable(dtype)), accepted_dtypes());
      } else if (field == "shape") {
        scan_.expect(':');
        shape();
        has_shape = true;
      } else if (field == "data_offsets") {
        scan_.expect(':');
        scan_.expect('[');
        range.begin = scan_.whole_number("a data offset");
        scan_.expect(',');
        range.end = scan_.whole_number("a data offset");
        scan_.expect(']');
        has_range = true;
      } else {
        refuse(name_, fmt::format("has the unknown field '{}'", printable(field)), "dtype, shape, data_offsets");
      }
    } while (scan_.accept(','));
    scan_.expect('}');
    if (!encoding || !has_shape || !has_range) {
      refuse(name_, fmt::format("has no {}", !encoding ? "dtype" : !has_shape ? "shape" : "data_offsets"));
    }
    check_size(*encoding, range);
    ranges_.push_back(range);
    out_.add(name_, *encoding, shape_, range.end - range.begin);
  }

  void shape() {
    shape_.clear();
    scan_.expect('[');
    if (scan_.accept(']')) return;
    do {
      if (shape_.size() == kMaxRank) refuse(name_, "has too many dimensions", fmt::format("at most {}", kMaxRank));
      shape_.push_back(scan_.whole_number("a dimension"));
    } while (scan_.accept(','));
    scan_.expect(']');
  }

  void check_size(const Encoding& encoding, const Range64& range) const {
    Bytes bytes = 0;
    int64_t elements = 1;
    try {
      // In the order of the shape, as readers multiply: a zero at the end does not undo an overflow.
      for (int64_t d : shape_) elements = checked_mul(elements, d);
      if (elements % encoding.block == 0) bytes = checked_mul(elements / encoding.block, encoding.block_bytes);
    } catch (const OverflowError&) {
      refuse(name_, fmt::format("of shape {} and dtype {} exceeds 2^63 bytes", shape_text(shape_), encoding.name));
    }
    if (elements % encoding.block != 0) {
      refuse(name_, fmt::format("of shape {} and dtype {} fills no whole bytes", shape_text(shape_), encoding.name),
             fmt::format("a multiple of {} numbers", encoding.block));
    }
    if (range.end < range.begin) {
      refuse(name_, fmt::format("has data_offsets [{}, {}] that run backwards", range.begin, range.end));
    }
    if (range.end - range.begin != bytes) {
      refuse(name_,
             fmt::format("has data_offsets of {} bytes; shape {} of {} takes {}", with_commas(range.end - range.begin),
                         shape_text(shape_), encoding.name, with_commas(bytes)));
    }
  }

  // Every byte of the data belongs to one tensor.
  int64_t check_ranges() {
    const auto before = [](const Range64& a, const Range64& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    };
    if (!std::is_sorted(ranges_.begin(), ranges_.end(), before)) std::sort(ranges_.begin(), ranges_.end(), before);
    int64_t end = 0;
    for (const Range64& r : ranges_) {
      if (r.begin != end) {
        const std::string_view name = out_.tensors()[r.tensor].name;
        if (r.begin < end) {
          refuse(name, fmt::format("begins at byte {} of the data and overlaps a tensor that ends at {}",
                                   with_commas(r.begin), with_commas(end)));
        }
        refuse(name, fmt::format("begins at byte {} of the data: a hole of {} bytes is before it", with_commas(r.begin),
                                 with_commas(r.begin - end)));
      }
      end = r.end;
    }
    return end;
  }

  const std::string& file_;
  JsonScan scan_;
  FileTensors& out_;
  std::vector<Range64> ranges_;
  std::vector<int64_t> shape_;
  std::string_view name_;
  std::string name_scratch_, scratch_;
  bool has_metadata_ = false;
};

}  // namespace

const Encoding* safetensors_encoding(std::string_view dtype) {
  for (const Encoding& e : kEncodings) {
    if (e.name == dtype) return &e;
  }
  return nullptr;
}

void read_safetensors(const ByteSource& file, FileTensors& out) {
  const std::string& name = file.name();
  const auto refuse = [&](std::string problem, std::string accepted = {}) {
    throw InputError({.file = name, .problem = std::move(problem), .accepted = std::move(accepted)});
  };
  const std::string first = file.read(0, 8);
  if (first.size() < 8) refuse(fmt::format("holds {} bytes, too few for a safetensors file", first.size()));
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(first[i]);
  const auto room = static_cast<uint64_t>(std::max<int64_t>(0, file.size() - 8));
  if (length > static_cast<uint64_t>(kHeaderLimit) || length > room) {
    // Files of other kinds read as absurd lengths.
    const std::string start = file.read(0, 256);
    refuse_impostor(name, start, "a safetensors file");
    if (start.compare(0, 4, "GGUF") == 0) refuse("is a GGUF file", "a safetensors file, or a name that ends in .gguf");
    if (start[0] == '{') refuse("is JSON text", "a safetensors file");
  }
  if (length > static_cast<uint64_t>(kHeaderLimit)) {
    refuse(fmt::format("claims a header of {} bytes", length), "at most 100,000,000 bytes");
  }
  if (length > room) {
    refuse(fmt::format("claims a header of {} bytes, and only {} follow (an unfinished download?)",
                       with_commas(static_cast<int64_t>(length)), with_commas(static_cast<int64_t>(room))));
  }
  const std::string header = file.read(8, static_cast<size_t>(length));
  if (header.size() < length) refuse("was cut while it was read");
  if (header.empty() || header[0] != '{') refuse("has a header that does not begin with '{'", "a JSON object");
  const int64_t end = Header(file, header, out).read();
  const int64_t data = static_cast<int64_t>(room - length);
  if (end > data) {
    refuse(fmt::format("ends {} bytes before its last tensor does (an unfinished download?)", with_commas(end - data)),
           fmt::format("{} bytes in all", with_commas(file.size() - data + end)));
  }
  if (end < data) {
    refuse(fmt::format("goes on for {} bytes after its last tensor", with_commas(data - end)),
           fmt::format("{} bytes in all", with_commas(file.size() - data + end)));
  }
}

namespace {

std::optional<int64_t> total_size_of(std::string_view text) {
  // Some writers divide and leave a fraction (8.0).
  if (const size_t point = text.find('.'); point != std::string_view::npos) text = text.substr(0, point);
  if (text.empty() || text.size() > 18) return std::nullopt;
  int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

void check_shard_name(const JsonScan& scan, std::string_view name) {
  const bool plain = !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
  if (!plain) scan.refuse(fmt::format("'{}' is no plain file name", printable(name)), "a file beside the index");
}

}  // namespace

ShardIndex parse_shard_index(std::string_view text, const std::string& file) {
  refuse_impostor(file, text.substr(0, 256), "an index of shards");
  ShardIndex out;
  JsonScan scan(text, file, false);
  std::unordered_map<std::string, uint16_t> known;
  std::string scratch, shard_scratch;
  std::string_view last_shard;  // neighbours are in one file
  uint16_t last = 0;
  bool has_map = false;
  const auto entry = [&] {
    std::string_view name = scan.string(scratch);
    if (name.data() == scratch.data()) name = *out.unescaped.emplace_back(std::make_unique<std::string>(name));
    scan.expect(':');
    const std::string_view shard = scan.string(shard_scratch);
    if (out.names.empty() || shard != last_shard) {
      check_shard_name(scan, shard);
      const auto [at, added] = known.emplace(std::string(shard), static_cast<uint16_t>(out.files.size()));
      if (added) {
        if (out.files.size() >= kMaxShards) scan.refuse("names too many files", fmt::format("at most {}", kMaxShards));
        out.files.emplace_back(shard);
      }
      last = at->second;
      last_shard = at->first;
    }
    if (static_cast<int64_t>(out.names.size()) >= kMaxFileTensors) scan.refuse("names more than 1,000,000 tensors");
    out.names.push_back(name);
    out.file_of.push_back(last);
  };
  scan.expect('{');
  if (!scan.accept('}')) {
    do {
      const std::string key(scan.string(scratch));
      scan.expect(':');
      if (key == "weight_map") {
        if (has_map) scan.refuse("weight_map stands there twice");
        has_map = true;
        scan.expect('{');
        if (scan.accept('}')) continue;
        do entry();
        while (scan.accept(','));
        scan.expect('}');
      } else if (key == "metadata" && scan.accept('{')) {
        if (scan.accept('}')) continue;
        do {
          const bool total = scan.string(scratch) == "total_size";
          scan.expect(':');
          const std::string_view value = scan.value_text();
          if (total) out.total_size = total_size_of(value);
        } while (scan.accept(','));
        scan.expect('}');
      } else {
        scan.skip_value();
      }
    } while (scan.accept(','));
    scan.expect('}');
  }
  scan.end();
  if (!has_map) throw InputError({.file = file, .problem = "has no weight_map", .accepted = "an index of shards"});
  return out;
}

void check_against_index(const ShardIndex& index, const FileTensors& tensors, const std::string& index_file) {
  const auto refuse = [&](std::string_view name, std::string problem) {
    throw InputError({.file = index_file,
                      .field = "tensor",
                      .value = std::string(name.substr(0, 200)),
                      .problem = std::move(problem)});
  };
  std::vector<bool> seen(tensors.tensors().size(), false);
  for (size_t i = 0; i < index.names.size(); ++i) {
    const FileTensor* t = tensors.find(index.names[i]);
    const std::string& file = index.files[index.file_of[i]];
    if (!t || t->file != index.file_of[i]) {
      refuse(index.names[i], fmt::format("is not in {}, where the index has it", printable(file, 120)));
    }
    const auto at = static_cast<size_t>(t - tensors.tensors().data());
    if (seen[at]) refuse(index.names[i], "stands there twice");
    seen[at] = true;
  }
  const auto missed = std::find(seen.begin(), seen.end(), false);
  if (missed == seen.end()) return;
  const FileTensor& t = tensors.tensors()[static_cast<size_t>(missed - seen.begin())];
  refuse(t.name, fmt::format("is in {} and not in the index", printable(tensors.files()[t.file], 120)));
}

}  // namespace vram
