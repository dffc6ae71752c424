#pragma once

#include <string>
#include <vector>

#include "base/environment.h"

namespace vram {

/// Which certificates are trusted besides libcurl's own choice; both may be empty.
struct Certificates {
  std::string file, directory;
};

/// GET requests by libcurl, several at once, over connections that stay open. One thread at a time.
class Http {
 public:
  /// `libraries` are tried in order; where none can be loaded every request is answered with that.
  explicit Http(const std::vector<std::string>& libraries);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  std::vector<HttpReply> get(const std::vector<HttpRequest>& requests, const Certificates& certificates, bool progress);

 private:
  std::string missing_;    // why there is no library; empty where there is one
  void* multi_ = nullptr;  // CURLM
};

}  // namespace vram
