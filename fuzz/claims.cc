// Claims of any kind: refused in one line, or read as a claim that is complete; what is answered has a verdict.
#include <cstdint>
#include <string_view>

#include "api/check.h"
#include "api/claim.h"
#include "base/checked.h"
#include "base/error.h"
#include "check.h"

namespace {

class Nowhere : public vram::Environment {
 public:
  std::string read_file(const std::string& path, size_t) const override {
    throw vram::UnavailableError(path + " can't be read");
  }
  bool is_file(const std::string&) const override { return false; }
  bool is_directory(const std::string&) const override { return false; }
  std::vector<std::string> list(const std::string&) const override { return {}; }
  void write_file(const std::string& path, const std::string&) const override {
    throw vram::UnavailableError(path + " can't be written");
  }
  std::optional<std::string> variable(const std::string&) const override { return std::nullopt; }
  vram::LocalGpus local_gpus() const override { return {.gpus = {}, .absent_because = "none here"}; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Nowhere environment;
  static const vram::Knowledge knowledge(environment);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const vram::Claim claim = vram::parse_claim(text, knowledge.devices());
    using Kind = vram::Claim::Kind;
    if (claim.kind == Kind::concept_row) {
      vram::fuzz::require(claim.row < vram::ClaimBook::builtin().concepts.size(), "a row is one of the book");
      return 0;  // its answer does not depend on the input
    }
    vram::fuzz::require(!claim.model.empty(), "a claim names a model");
    if (claim.kind == Kind::capacity)
      vram::fuzz::require(claim.count > 0 && !claim.device.empty(), "a claim names cards");
    if (claim.kind == Kind::amount)
      vram::fuzz::require(!claim.amount_text.empty() && !claim.quantity.empty(), "an amount of something");
    const vram::CheckAnswer answer = vram::answer_check(text, knowledge);
    if (claim.kind == Kind::capacity) vram::fuzz::require(answer.readings.size() >= 5, "every reading is answered");
    if (claim.kind == Kind::amount) vram::fuzz::require(!answer.amounts.empty(), "an amount is answered");
    vram::to_json(answer);
  } catch (const vram::InputError& e) {
    vram::fuzz::require_clean(e);
  } catch (const vram::OverflowError&) {
  }
  return 0;
}
