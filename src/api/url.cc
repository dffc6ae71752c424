#include "api/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace vram {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// A name, an IPv4 address, or an IPv6 address in brackets.
bool is_host(std::string_view host) {
  if (host.empty()) return false;
  const bool bracketed = host.front() == '[';
  if (bracketed && (host.size() < 4 || host.back() != ']')) return false;
  const std::string_view inner = bracketed ? host.substr(1, host.size() - 2) : host;
  return std::all_of(inner.begin(), inner.end(), [&](unsigned char c) {
    return bracketed ? std::isxdigit(c) != 0 || c == ':' || c == '.'
                     : std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
}

}  // namespace

std::string Url::text() const {
  const bool usual = (scheme == "https" && port == "443") || (scheme == "http" && port == "80");
  return scheme + "://" + host + (usual ? "" : ":" + port) + path;
}

bool Url::loopback() const {
  if (host == "localhost" || host == "[::1]") return true;
  const bool numeric =
      std::all_of(host.begin(), host.end(), [](unsigned char c) { return std::isdigit(c) || c == '.'; });
  return numeric && host.rfind("127.", 0) == 0;
}

std::optional<Url> parse_url(std::string_view text) {
  const bool clean = std::all_of(text.begin(), text.end(),
                                 [](unsigned char c) { return c > ' ' && c < 0x7f && c != '\\' && c != '"'; });
  const size_t after = text.find("://");
  if (!clean || after == std::string_view::npos) return std::nullopt;
  Url url;
  url.scheme = lower(text.substr(0, after));
  if (url.scheme != "http" && url.scheme != "https") return std::nullopt;
  std::string_view rest = text.substr(after + 3);
  const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, end);
  rest = rest.substr(end);
  rest = rest.substr(0, rest.find('#'));
  url.path = rest.empty() || rest.front() != '/' ? "/" + std::string(rest) : std::string(rest);
  const size_t colon = authority.find_last_of(':');
  url.port = url.scheme == "https" ? "443" : "80";
  // The colons of "[::1]" are no port's.
  if (colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos) {
    const std::string_view port = authority.substr(colon + 1);
    if (!digits(port) || port.size() > 5) return std::nullopt;
    url.port = port;
    authority = authority.substr(0, colon);
  }
  if (!is_host(authority)) return std::nullopt;
  url.host = lower(authority);
  return url;
}

std::optional<Url> redirected(const Url& base, std::string_view location) {
  if (location.empty()) return std::nullopt;
  if (location.substr(0, 2) == "//") return parse_url(base.scheme + ":" + std::string(location));
  const size_t colon = location.find("://");
  if (colon != std::string_view::npos && colon < location.find_first_of("/?#")) return parse_url(location);
  const std::string root = base.scheme + "://" + base.host + ":" + base.port;
  if (location.front() == '/') return parse_url(root + std::string(location));
  const std::string without_query = base.path.substr(0, base.path.find('?'));
  return parse_url(root + without_query.substr(0, without_query.find_last_of('/') + 1) + std::string(location));
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~' || (c == '/' && keep_slashes);
    if (plain && byte < 0x80) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

}  // namespace vram
