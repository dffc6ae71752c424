// Job files of any kind and the values of options: refused in one line or read, written and read again as the same job.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"
#include "check.h"
#include "formats/formats.h"
#include "job/job.h"

namespace {

bool equal(const vram::Job& a, const vram::Job& b) {
  for (const vram::Field& f : vram::fields()) {
    if (!std::visit([&](auto member) { return a.*member == b.*member; }, f.slot)) return false;
  }
  return true;
}

void read(std::string_view text, const char* file) {
  vram::Job job;
  try {
    vram::read_job(job, vram::parse_by_name(text, file, {.bytes = 1 << 20, .depth = 16, .values = 10'000}), file);
  } catch (const vram::InputError& e) {
    vram::fuzz::require_clean(e);
    return;
  }
  for (const bool yaml : {false, true}) {
    const vram::Document written = vram::write_job(job);
    vram::Job again;
    vram::read_job(again,
                   yaml ? vram::parse_yaml(vram::write_yaml(written), "again.yaml")
                        : vram::parse_json(vram::write_json(written), "again.json"),
                   "again");
    vram::fuzz::require(equal(job, again), "a written job reads back");
  }
  try {
    vram::check_job(job);
  } catch (const vram::InputError& e) {
    vram::fuzz::require_clean(e);
  } catch (const vram::OverflowError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  // The first byte chooses: a file format, or a field whose value the rest is.
  const auto fields = vram::fields();
  switch (data[0] & 3) {
    case 0:
      read(text, "job.json");
      break;
    case 1:
      read(text, "job.yaml");
      break;
    case 2:
      read(text, "job.toml");
      break;
    default: {
      vram::Job job;
      const vram::Field& field = fields[(data[0] >> 2) % fields.size()];
      try {
        vram::set_field(job, field, text, vram::option_name(field.name));
      } catch (const vram::InputError& e) {
        vram::fuzz::require_clean(e);
        return 0;
      }
      vram::Job again;
      vram::read_job(again, vram::write_job(job), "again");
      vram::fuzz::require(equal(job, again), "a written job reads back");
    }
  }
  return 0;
}
