// Any bytes are a safetensors file whose tensors fill its data exactly, or one clean line of error; what was read makes
// a model or one more such line.
#include "formats/safetensors.h"
#include "check.h"
#include "model/weights/weights.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vram;
  // The header and, in the place of its data, as many zeros as the last two bytes say: mutations need not grow the
  // file.
  if (size < 2) return 0;
  const auto zeros = static_cast<int64_t>(data[size - 2] | data[size - 1] << 8);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size - 2);
  FileTensors tensors;
  try {
    const auto whole = static_cast<int64_t>(bytes.size()) + zeros;
    read_safetensors(MemoryBytes("f", bytes, whole), tensors);
    Bytes sum = 0;
    for (const FileTensor& t : tensors.tensors()) {
      fuzz::require(t.bytes >= 0 && tensors.elements(t) >= 0, "sizes are not negative");
      fuzz::require(tensors.find(t.name) == &t, "names are unique");
      sum += t.bytes;
    }
    fuzz::require(sum == tensors.bytes() && sum < whole, "tensors fill the data");
    const Model model = model_from_weights(tensors, "f", "m");
    fuzz::require(model.counts.stored_bytes == sum, "the model has the file's bytes");
    fuzz::require(model.counts.tensors == static_cast<int64_t>(tensors.tensors().size()), "and its tensors");
  } catch (const InputError& error) {
    fuzz::require_clean(error);
  }
  return 0;
}
