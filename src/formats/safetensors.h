#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes.h"
#include "formats/file_tensors.h"

namespace vram {

/// Appends the tensors of one safetensors file to `out`. Reads the 8 bytes of the header's length and the header, never
/// the data. InputError for whatever the format forbids: a header that does not fit the file or is no JSON object,
/// unknown dtypes, sizes that contradict shape and dtype, holes, overlaps, names that stand there twice, and data
/// shorter or longer than the tensors. Source: README and tensor.rs of github.com/huggingface/safetensors.
void read_safetensors(const ByteSource& file, FileTensors& out);

/// The encoding of a dtype as headers write it ("BF16", "F8_E4M3"); null for others.
const Encoding* safetensors_encoding(std::string_view dtype);

/// model.safetensors.index.json: which file holds which tensor.
struct ShardIndex {
  std::vector<std::string> files;       ///< plain names, in order of first mention
  std::optional<int64_t> total_size;    ///< metadata.total_size: what the index claims its tensors take
  std::vector<std::string_view> names;  ///< into the text that was read, or into `unescaped`
  std::vector<uint16_t> file_of;        ///< of each name
  std::vector<std::unique_ptr<std::string>> unescaped;
};

/// Parses an index; `text` must outlive the result. InputError for text that is no such index, and for shard names that
/// are no plain file names.
ShardIndex parse_shard_index(std::string_view text, const std::string& file);

/// InputError where the index and its files, read in the index's order, name different tensors.
void check_against_index(const ShardIndex& index, const FileTensors& tensors, const std::string& index_file);

}  // namespace vram
