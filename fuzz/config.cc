// Configs of any kind: refused in one line, or read as a model whose counts agree with its tensors.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"
#include "formats/formats.h"
#include "model/model.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

// The run-length coded tables agree with the counts; visiting a million tensors one by one would only be slow.
void check(const vram::Model& m) {
  int64_t elements = 0, tensors = 0;
  for (const vram::TensorGroup& g : m.tensors) {
    for (const vram::Tensor& t : g.tensors) {
      const int64_t copies = vram::checked_mul(g.times(), t.experts);
      elements = vram::checked_add(elements, vram::checked_mul(copies, t.elements()));
      tensors = vram::checked_add(tensors, copies);
      expect(t.stored_bytes >= 0);
    }
  }
  const vram::Counts& c = m.counts;
  expect(elements == c.stored_elements);
  expect(tensors == c.tensors);
  expect(c.parameters > 0 && c.active >= 0 && c.active <= c.parameters && c.loaded_bytes <= c.stored_bytes);
  expect(c.text + c.encoder + c.vision + c.audio == c.parameters);
  for (int64_t i = 0; i < m.layers(); ++i) {
    try {
      expect(m.layer(i).attention.cache_elements_per_token() >= 0);
    } catch (const vram::OverflowError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const vram::Document config =
        vram::parse_json(text, "config.json", {.bytes = 1 << 20, .depth = 32, .values = 20'000});
    const vram::Model model = vram::model_from_config(config, "config.json", "fuzz");
    check(model);
    for (std::string_view scheme : {"int4", "nf4"}) {
      try {
        check(vram::with_planned_quantization(model, scheme));
      } catch (const vram::OverflowError&) {
      }
    }
    vram::model_with_changes(config, "config.json", "fuzz", {"layers=3"});
  } catch (const vram::InputError& e) {
    expect(std::string_view(e.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
