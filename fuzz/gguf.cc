// Any bytes are a GGUF file whose tensors lie within it, or one clean line of error; what was read makes a model or one
// more such line.
#include "formats/gguf.h"
#include "base/checked.h"
#include "check.h"
#include "model/weights/weights.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vram;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Zeros behind the header stand for the data.
  const MemoryBytes file("f", bytes, static_cast<int64_t>(size) + (1 << 20));
  FileTensors tensors;
  try {
    const GgufMetadata meta = read_gguf(file, tensors);
    Bytes sum = 0;
    for (const FileTensor& t : tensors.tensors()) {
      fuzz::require(t.bytes >= 0 && tensors.elements(t) >= 0, "sizes are not negative");
      sum += t.bytes;
    }
    fuzz::require(sum == tensors.bytes() && sum <= file.size(), "tensors lie within the file");
    const Model model = model_from_gguf(meta, tensors, "f", "m");
    fuzz::require(model.counts.stored_bytes == sum, "the model has the file's bytes");
    for (int64_t i = 0; i < model.layers(); ++i) {
      try {
        fuzz::require(model.layer(i).attention.cache_elements_per_token() >= 0, "caches are not negative");
      } catch (const OverflowError&) {
      }
    }
    with_planned_quantization(model, "bf16");
    if (model.shape_known) with_planned_quantization(model, "q4_k_m");
  } catch (const InputError& error) {
    fuzz::require_clean(error);
  } catch (const OverflowError&) {
  }
  return 0;
}
