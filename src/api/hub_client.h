#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/url.h"
#include "base/environment.h"

namespace vram {

/// One file or listing wanted from the hub.
struct HubRequest {
  std::string path;     ///< behind the endpoint: "/org/name/resolve/main/config.json"
  int64_t offset = -1;  ///< of a range; -1: the whole file
  size_t limit = 0;     ///< bytes of the range, or the most that a whole file may have
};

struct HubReply {
  HttpReply http;       ///< the last answer, redirects followed
  std::string commit;   ///< X-Repo-Commit as the endpoint itself gave it; may be empty
  std::string etag;     ///< ETag of the last answer, or X-Linked-Etag of the endpoint
  std::string refused;  ///< why a redirect was not followed
  std::string host;     ///< that gave the last answer
  bool token_sent = false;

  bool ok() const { return refused.empty() && http.problem == HttpReply::Problem::none && http.status / 100 == 2; }
};

/// Talks to the hub at HF_ENDPOINT with HF_TOKEN (or the file that `hf auth login` writes).
///
/// Redirects are followed to https, or to the same host where the endpoint is plain http. The token goes to the
/// endpoint's own scheme, host and port and nowhere else, and over plain http only within this machine.
class HubClient {
 public:
  /// InputError for an impossible HF_ENDPOINT, HF_TOKEN or timeout.
  explicit HubClient(const Environment& environment);

  std::vector<HubReply> get(const std::vector<HubRequest>& requests) const;

  const Url& endpoint() const { return endpoint_; }
  /// "huggingface.co", "127.0.0.1:8080"
  std::string server() const;
  /// The address of a page of the repository, for people.
  std::string page(const std::string& repository) const;

  /// Why there was no answer, and what to do: one clause without the repository's name. `what` is the file asked for.
  std::string explain(const HubReply& reply, const std::string& repository, const std::string& revision,
                      const std::string& what) const;

 private:
  std::string network_problem(const HubReply& reply) const;

  const Environment& environment_;
  Url endpoint_;
  std::string prefix_;  // the endpoint's own path, without the last slash
  std::string token_;
  bool token_may_be_sent_ = false;
  int stall_seconds_ = 10;
};

/// Whether a person was meant to read it, not a program: what login pages and proxies answer with.
bool is_web_page(const HubReply& reply);

/// Whether the hub says so: X-Error-Code of the reply.
bool has_code(const HubReply& reply, std::string_view code);

}  // namespace vram
