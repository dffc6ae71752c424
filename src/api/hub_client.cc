#include "api/hub_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "api/hub_cache.h"
#include "base/error.h"
#include "base/units.h"

namespace vram {
namespace {

constexpr const char* kEndpoint = "https://huggingface.co";
constexpr size_t kTokenLimit = 4096;
constexpr int kHops = 8;
constexpr size_t kAtOnce = 16;

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return std::string(text);
}

Url endpoint_of(const Environment& environment) {
  const auto variable = environment.variable("HF_ENDPOINT");
  std::string text = variable ? trimmed(*variable) : std::string();
  if (text.empty()) text = kEndpoint;
  const auto url = parse_url(text);
  if (!url || url->path.find('?') != std::string::npos) {
    throw InputError({.field = "HF_ENDPOINT",
                      .value = text,
                      .problem = "is no address of a hub",
                      .accepted = "https://HOST or http://HOST:PORT"});
  }
  return *url;
}

bool is_true(const Environment& environment, const char* name) {
  std::string value = trimmed(environment.variable(name).value_or(std::string()));
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::string token_of(const Environment& environment) {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    const std::string value = trimmed(environment.variable(name).value_or(std::string()));
    if (value.empty()) continue;
    // It becomes a header: a line break in it would be a second one. It is never shown.
    const bool clean = std::all_of(value.begin(), value.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
    if (!clean)
      throw InputError({.field = name, .problem = "holds characters that no token has", .accepted = "hf_..."});
    return value;
  }
  if (is_true(environment, "HF_HUB_DISABLE_IMPLICIT_TOKEN")) return {};
  std::string file = environment.variable("HF_TOKEN_PATH").value_or(std::string());
  if (file.empty()) {
    const std::string home = hugging_face_home(environment);
    if (!home.empty()) file = home + "/token";
  }
  if (file.empty() || !environment.is_file(file)) return {};
  try {
    const std::string value = trimmed(environment.read_file(file, kTokenLimit));
    const bool clean = std::all_of(value.begin(), value.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
    return clean ? value : std::string();
  } catch (const std::runtime_error&) {
    return {};  // most models need none
  }
}

// Hugging Face's own variable for the same purpose.
int stall_of(const Environment& environment) {
  const std::string text = trimmed(environment.variable("HF_HUB_DOWNLOAD_TIMEOUT").value_or(std::string()));
  if (text.empty()) return 10;
  const int64_t seconds = parse_integer(text, Unit::none, "HF_HUB_DOWNLOAD_TIMEOUT");
  if (seconds < 1 || seconds > 3600) {
    throw InputError({.field = "HF_HUB_DOWNLOAD_TIMEOUT", .value = text, .accepted = "1 to 3600 seconds"});
  }
  return static_cast<int>(seconds);
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Why `to` must not be followed from `from`; empty where it may.
std::string objection(const Url& from, const Url& to) {
  if (to.scheme == "https") return {};
  if (from.scheme == "https") return "to plain http at " + to.host;
  if (from.host != to.host) return "to another host, " + to.host + ", over plain http";
  return {};
}

}  // namespace

bool is_web_page(const HubReply& reply) {
  if (reply.http.header("content-type").substr(0, 9) == "text/html") return true;
  std::string begin = reply.http.body.substr(0, 200);
  begin.erase(0, begin.find_first_not_of(" \t\r\n"));
  std::transform(begin.begin(), begin.end(), begin.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return begin.rfind("<!doctype", 0) == 0 || begin.rfind("<html", 0) == 0;
}

bool has_code(const HubReply& reply, std::string_view code) { return reply.http.header("x-error-code") == code; }

HubClient::HubClient(const Environment& environment)
    : environment_(environment),
      endpoint_(endpoint_of(environment)),
      token_(token_of(environment)),
      stall_seconds_(stall_of(environment)) {
  prefix_ = endpoint_.path;
  while (!prefix_.empty() && prefix_.back() == '/') prefix_.pop_back();
  token_may_be_sent_ = !token_.empty() && (endpoint_.scheme == "https" || endpoint_.loopback());
}

std::string HubClient::server() const {
  const std::string whole = endpoint_.text();
  const size_t begin = whole.find("//") + 2;
  return whole.substr(begin, whole.find('/', begin) - begin);
}

std::string HubClient::page(const std::string& repository) const {
  return endpoint_.scheme + "://" + server() + prefix_ + "/" + repository;
}

std::vector<HubReply> HubClient::get(const std::vector<HubRequest>& requests) const {
  struct Open {
    size_t index;
    Url url;
    bool token;
    int hops = 0;
  };
  std::vector<HubReply> replies(requests.size());
  std::vector<Open> open;
  for (size_t i = 0; i < requests.size(); ++i) {
    Url url = endpoint_;
    url.path = prefix_ + requests[i].path;
    open.push_back({i, std::move(url), token_may_be_sent_});
  }
  while (!open.empty()) {
    const size_t count = std::min(open.size(), kAtOnce);
    std::vector<Open> now(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(count));
    open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<HttpRequest> http;
    for (const Open& o : now) {
      const HubRequest& r = requests[o.index];
      HttpRequest h;
      h.url = o.url.text();
      // Compressed answers would make ranges and lengths mean something else.
      h.headers.emplace_back("Accept-Encoding: identity");
      if (o.token) h.headers.push_back("Authorization: Bearer " + token_);
      if (r.offset >= 0) h.range = fmt::format("{}-{}", r.offset, r.offset + static_cast<int64_t>(r.limit) - 1);
      h.limit = r.limit;
      h.cut_at_limit = r.offset >= 0;
      h.stall_seconds = stall_seconds_;
      h.connect_seconds = std::max(10, stall_seconds_);
      http.push_back(std::move(h));
    }
    std::vector<HttpReply> answers = environment_.http_get(http);
    for (size_t k = 0; k < now.size(); ++k) {
      Open& o = now[k];
      HubReply& reply = replies[o.index];
      reply.http = std::move(answers[k]);
      reply.host = o.url.host;
      reply.token_sent = reply.token_sent || o.token;
      // Only the endpoint may say which commit this is; servers behind it merely store files.
      if (o.url.origin() == endpoint_.origin()) {
        if (is_commit(reply.http.header("x-repo-commit"))) reply.commit = reply.http.header("x-repo-commit");
        if (!reply.http.header("x-linked-etag").empty()) reply.etag = reply.http.header("x-linked-etag");
      }
      if (reply.etag.empty() && !is_redirect(reply.http.status)) reply.etag = reply.http.header("etag");
      if (reply.http.problem != HttpReply::Problem::none || !is_redirect(reply.http.status)) continue;
      const auto next = redirected(o.url, reply.http.header("location"));
      if (!next) {
        reply.refused = "without a usable address";
      } else if (++o.hops > kHops) {
        reply.refused = "in a circle";
      } else {
        reply.refused = objection(o.url, *next);
      }
      if (!reply.refused.empty()) continue;
      // A token that was once left behind is not taken up again, wherever the chain leads.
      o.token = o.token && next->origin() == endpoint_.origin();
      o.url = *next;
      open.push_back(o);
    }
  }
  return replies;
}

std::string HubClient::network_problem(const HubReply& reply) const {
  using P = HttpReply::Problem;
  const std::string detail = printable(reply.http.detail, 160);
  const std::string host = reply.host.empty() ? server() : reply.host;
  switch (reply.http.problem) {
    case P::no_library:
      return fmt::format("the network needs libcurl, and {}: install it (Debian: libcurl4), or give a config.json",
                         detail);
    case P::resolve:
      return fmt::format(
          "no address is known for {} (no network, or no DNS): check the connection and HF_ENDPOINT, or give a "
          "config.json",
          host);
    case P::connect:
      return fmt::format(
          "{} does not accept connections ({}): check the network, a proxy (https_proxy) and HF_ENDPOINT", host,
          detail);
    case P::proxy:
      return fmt::format("the proxy fails ({}): check https_proxy and no_proxy", detail);
    case P::tls:
      return fmt::format(
          "no trusted TLS connection to {} ({}): check the clock; SSL_CERT_FILE names the certificate of a proxy that "
          "opens connections",
          host, detail);
    case P::certificates:
      return fmt::format(
          "the trusted certificates can't be read ({}): install ca-certificates, or correct SSL_CERT_FILE", detail);
    case P::timeout:
      return fmt::format("{} is too slow ({}): try again, or raise HF_HUB_DOWNLOAD_TIMEOUT (now {} s)", host, detail,
                         stall_seconds_);
    case P::cut_off:
      return fmt::format("{} cut the answer off after {} bytes ({}): try again", host,
                         with_commas(static_cast<int64_t>(reply.http.body.size())), detail);
    case P::too_large:
      return fmt::format("{} sends more than such a file can hold", host);
    case P::other:
    case P::none:
      break;
  }
  return fmt::format("the request to {} failed ({}): check the network and HF_ENDPOINT", host, detail);
}

std::string HubClient::explain(const HubReply& reply, const std::string& repository, const std::string& revision,
                               const std::string& what) const {
  if (!reply.refused.empty()) {
    return fmt::format("{} redirects {}, which is not followed: check HF_ENDPOINT and a proxy or login page in between",
                       reply.host, printable(reply.refused, 100));
  }
  if (reply.http.problem != HttpReply::Problem::none) return network_problem(reply);
  const int status = reply.http.status;
  const std::string_view message = reply.http.header("x-error-message");
  if (status / 100 == 2) {
    return is_web_page(reply)
               ? fmt::format(
                     "{} answers with a web page instead of {}: a proxy or login page stands between, or HF_ENDPOINT "
                     "is "
                     "no hub",
                     reply.host, what)
               : fmt::format("{} answers with something else than {}: check HF_ENDPOINT", reply.host, what);
  }
  const std::string how = !reply.token_sent && !token_.empty()
                              ? "HF_TOKEN was kept back, since HF_ENDPOINT is plain http"
                          : reply.token_sent ? "the token's account may not read it"
                                             : "no token was given (HF_TOKEN, or hf auth login)";
  if (has_code(reply, "GatedRepo")) {
    return fmt::format("is gated, and {}: accept its conditions at {} and use that account's token", how,
                       page(repository));
  }
  if (message == "Access to this resource is disabled.") return "was disabled on the hub: choose another model";
  if (status == 401 && reply.token_sent && message.find("Invalid") != std::string_view::npos) {
    return fmt::format("{} refuses the token (expired or mistyped): renew HF_TOKEN, or hf auth login", reply.host);
  }
  if (has_code(reply, "RevisionNotFound")) {
    return fmt::format("has no revision '{}': see {}/commits/main", printable(revision), page(repository));
  }
  if (has_code(reply, "EntryNotFound")) {
    return fmt::format("holds no {} at revision '{}': see {}/tree/main", what, printable(revision), page(repository));
  }
  if (has_code(reply, "RepoNotFound") || (status == 401 && reply.http.header("x-error-code").empty())) {
    return fmt::format("is missing on {} or private, and {}: check the spelling", server(), how);
  }
  if (status == 401 || status == 403) {
    return fmt::format("{} refuses access (status {}), and {}", reply.host, status, how);
  }
  if (status == 404) {
    return fmt::format("{} does not know {} (status 404): check the name and HF_ENDPOINT", reply.host, what);
  }
  if (status == 429)
    return fmt::format("{} takes no more requests for now (status 429): wait, or give a token", reply.host);
  if (status >= 500) return fmt::format("{} fails (status {}): try again later", reply.host, status);
  return fmt::format("{} answers {} with status {}: check HF_ENDPOINT", reply.host, what, status);
}

}  // namespace vram
