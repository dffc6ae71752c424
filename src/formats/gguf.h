#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "formats/bytes.h"
#include "formats/file_tensors.h"

namespace vram {

/// What a GGUF file says besides its tensors. Values are kept where a reader of sizes needs them: numbers, strings of
/// up to 4 KiB, and arrays of up to 4,096 numbers. Longer ones (vocabularies, chat templates) are passed over and
/// counted.
struct GgufMetadata {
  struct Skipped {
    std::string key;
    int64_t length = 0;  ///< entries of an array, bytes of a string
  };
  Document values{Document::Object()};
  std::vector<Skipped> skipped;
  int64_t version = 0;
  bool big_endian = false;

  const Document* find(std::string_view key) const { return values.find(key); }
  /// Entries of an array, kept or not; -1 where there is none of that name.
  int64_t length(std::string_view key) const;
};

/// Appends the tensors of one GGUF file (version 1 to 3, either byte order) to `out` and returns its metadata. Reads
/// the header only, in pieces, and believes no count before the bytes behind it are there. InputError for whatever the
/// format forbids. Shapes are reversed: rows first, as everywhere here. Sources: docs/gguf.md and src/gguf.cpp of
/// github.com/ggml-org/ggml.
GgufMetadata read_gguf(const ByteSource& file, FileTensors& out);

/// The tensor type of number `id`; null for unknown and for removed ones.
const Encoding* gguf_encoding(uint32_t id);
/// By name, upper or lower case ("Q4_K", "q4_k").
const Encoding* gguf_encoding(std::string_view name);
/// Every type with its number.
const std::vector<std::pair<uint32_t, const Encoding*>>& gguf_encodings();

/// "NAME-00002-of-00005.gguf" taken apart; count 0 for other names.
struct GgufShard {
  std::string prefix;  ///< "NAME"
  int64_t number = 0, count = 0;
};
GgufShard gguf_shard(std::string_view file_name);
/// The name of shard `number` (from 1) beside a file of that prefix and count.
std::string gguf_shard_name(const GgufShard& shard, int64_t number);

/// Reads the files of a split model, given in order; metadata of the first file, completed by the others'. InputError
/// where they don't belong together: counts, numbers or tensors missing, names in two files.
GgufMetadata read_gguf_split(const std::vector<std::unique_ptr<ByteSource>>& files, FileTensors& out);

}  // namespace vram
