#include "check.h"
#include "formats/formats.h"

// Any bytes are a document or one clean line of error; what was read is written and read back unchanged.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vram;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    parse_json(text, "input", {.infinity_is_null = true});
  } catch (const InputError& error) {
    fuzz::require_clean(error);
  }
  Document document;
  try {
    document = parse_json(text, "input");
  } catch (const InputError& error) {
    fuzz::require_clean(error);
    return 0;
  }
  fuzz::require(same_values(parse_json(write_json(document), "json"), document), "JSON reads back");
  fuzz::require(same_values(parse_yaml(write_yaml(document), "yaml"), document), "YAML reads back");
  return 0;
}
