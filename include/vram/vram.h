/* VRAM Ledger as a library: one call, JSON in, JSON out. Usable from C and, by any foreign-function interface, from
 * elsewhere. Link against the target vram_capi. */
#ifndef VRAM_VRAM_H
#define VRAM_VRAM_H

#ifdef __cplusplus
extern "C" {
#endif

/* Answers one question. `request` is a JSON object in UTF-8:
 *   {"verb": "train", "job": {"model": "meta-llama/Llama-3.1-8B", "on": "8xH100", "zero": 3}}
 * The job is what a job file holds. Returns a JSON object, never null:
 *   {"status": 0, "answer": {...}}                      0: answered and fits, 1: answered and does not
 *   {"status": 2, "error": "--tp '3' does not ..."}     2: bad input, 3: a file or device was unavailable
 * The answer is what the command prints with --json. The caller frees the result with vram_free. Thread-safe. */
char* vram_call(const char* request);

void vram_free(char* reply);

/* "0.1.0" */
const char* vram_version(void);

#ifdef __cplusplus
}

#include <memory>
#include <string>

namespace vram {

/// vram_call with strings.
inline std::string call_json(const std::string& request) {
  const std::unique_ptr<char, void (*)(char*)> reply(vram_call(request.c_str()), vram_free);
  return reply ? std::string(reply.get()) : std::string();
}

}  // namespace vram
#endif

#endif
