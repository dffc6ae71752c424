#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vram {

/// An http or https address in parts. Scheme and host are in lower case; the port is written out.
struct Url {
  std::string scheme, host, port;
  std::string path;  ///< from the first '/', query included, fragment left out

  /// "https://huggingface.co:443": what must be equal for two addresses to be of one server.
  std::string origin() const { return scheme + "://" + host + ":" + port; }
  std::string text() const;
  /// 127.0.0.0/8, ::1 and localhost: what is sent there does not leave the machine.
  bool loopback() const;
};

/// Nothing for other schemes, user names ("https://huggingface.co@elsewhere/"), and characters that don't belong.
std::optional<Url> parse_url(std::string_view text);

/// What a Location header means for one who asked for `base`.
std::optional<Url> redirected(const Url& base, std::string_view location);

/// Every byte but letters, digits, '-', '_', '.', '~' (and '/' where `keep_slashes`) as %XX.
std::string percent_encoded(std::string_view text, bool keep_slashes);

}  // namespace vram
