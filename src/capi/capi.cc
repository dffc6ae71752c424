#include <cstdlib>
#include <cstring>
#include <exception>

#include "api/call.h"
#include "base/checked.h"
#include "formats/formats.h"
#include "host/host.h"
#include "vram/vram.h"

namespace {

constexpr size_t kRequestLimit = size_t{4} << 20;

vram::Document failure(vram::Exit status, const char* what) {
  return vram::Document::Object{{"status", static_cast<int64_t>(status)}, {"error", std::string(what)}};
}

vram::Document answer(const char* request) {
  using namespace vram;
  try {
    if (!request) return failure(Exit::bad_input, "request is null");
    const Limits limits{.bytes = kRequestLimit, .depth = 16, .values = 20'000};
    const HostEnvironment environment;
    const Knowledge knowledge(environment);
    Reply reply = call(parse_json(request, "request", limits), knowledge);
    return Document::Object{{"status", static_cast<int64_t>(reply.status)}, {"answer", std::move(reply.answer)}};
  } catch (const InputError& e) {
    return failure(Exit::bad_input, e.what());
  } catch (const OverflowError& e) {
    return failure(Exit::bad_input, e.what());
  } catch (const UnavailableError& e) {
    return failure(Exit::unavailable, e.what());
  } catch (const std::exception& e) {
    return failure(Exit::unavailable, e.what());
  }
}

}  // namespace

extern "C" char* vram_call(const char* request) {
  const std::string text = vram::write_json(answer(request));
  char* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (out) std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

extern "C" void vram_free(char* reply) { std::free(reply); }

extern "C" const char* vram_version(void) { return VRAM_VERSION; }
