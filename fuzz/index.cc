// Any bytes are an index of shards with plain file names, or one clean line of error.
#include "check.h"
#include "formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vram;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const ShardIndex index = parse_shard_index(text, "index.json");
    fuzz::require(index.names.size() == index.file_of.size(), "every tensor has a file");
    for (uint16_t f : index.file_of) fuzz::require(f < index.files.size(), "files are numbered");
    for (const std::string& name : index.files) {
      fuzz::require(!name.empty() && name.find('/') == std::string::npos && name != "..", "files have plain names");
    }
    // Held against files that hold nothing.
    FileTensors none;
    none.add_file("a");
    if (!index.names.empty()) {
      try {
        check_against_index(index, none, "index.json");
        fuzz::require(false, "missing tensors are noticed");
      } catch (const InputError& error) {
        fuzz::require_clean(error);
      }
    }
  } catch (const InputError& error) {
    fuzz::require_clean(error);
  }
  return 0;
}
