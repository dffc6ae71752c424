#include "host/curl.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <deque>

#include "base/error.h"
#include "base/units.h"
#include "host/host.h"

namespace vram {
namespace {

// The few names and numbers of libcurl that are used (curl/curl.h, curl/multi.h; the ABI of libcurl.so.4 is stable).
// Linking it would cost every run of the command its start-up; the header is not needed to build.
using Easy = void*;
using Multi = void*;
struct List;
struct Message {
  int kind;
  Easy easy;
  union {
    void* pointer;
    int result;
  } data;
};

enum Option : int {
  kUrl = 10002,
  kWriteData = 10001,
  kRange = 10007,
  kErrorBuffer = 10010,
  kUserAgent = 10018,
  kHttpHeader = 10023,
  kHeaderData = 10029,
  kCaFile = 10065,
  kCaPath = 10097,
  kPrivate = 10103,
  kWriteFunction = 20011,
  kHeaderFunction = 20079,
  kLowSpeedLimit = 19,
  kLowSpeedTime = 20,
  kFollowLocation = 52,
  kNoSignal = 99,
  kTimeoutMs = 155,
  kConnectTimeoutMs = 156,
  kProtocols = 181,
  kSuppressConnectHeaders = 265,
};
constexpr int kMultiMaxTotalConnections = 13;
constexpr int kInfoResponseCode = 0x200002;
constexpr long kGlobalAll = 3;
constexpr long kHttpAndHttps = 1 | 2;
constexpr int kDone = 1;
constexpr long kConnections = 8;
constexpr long kStallRate = 1000;  // bytes a second
constexpr size_t kHeaderLimit = size_t{64} << 10;
constexpr size_t kErrorSize = 256;  // CURL_ERROR_SIZE

// Result codes of a transfer.
enum Result : int {
  kOk = 0,
  kCouldNotResolveProxy = 5,
  kCouldNotResolveHost = 6,
  kCouldNotConnect = 7,
  kPartialFile = 18,
  kWriteError = 23,
  kTimedOut = 28,
  kTlsConnect = 35,
  kGotNothing = 52,
  kTlsCertificate = 58,
  kPeerVerification = 60,
  kReceiveError = 56,
  kCaFileUnreadable = 77,
  kTlsIssuer = 83,
  kHttp2 = 16,
  kHttp2Stream = 92,
  kProxy = 97,
};

struct Library {
  int (*global_init)(long) = nullptr;
  Easy (*easy_init)() = nullptr;
  void (*easy_cleanup)(Easy) = nullptr;
  int (*easy_setopt)(Easy, int, ...) = nullptr;
  int (*easy_getinfo)(Easy, int, ...) = nullptr;
  const char* (*easy_strerror)(int) = nullptr;
  List* (*slist_append)(List*, const char*) = nullptr;
  void (*slist_free_all)(List*) = nullptr;
  Multi (*multi_init)() = nullptr;
  int (*multi_cleanup)(Multi) = nullptr;
  int (*multi_setopt)(Multi, int, ...) = nullptr;
  int (*multi_add_handle)(Multi, Easy) = nullptr;
  int (*multi_remove_handle)(Multi, Easy) = nullptr;
  int (*multi_perform)(Multi, int*) = nullptr;
  int (*multi_wait)(Multi, void*, unsigned, int, int*) = nullptr;
  Message* (*multi_info_read)(Multi, int*) = nullptr;

  bool load(void* handle) {
    const auto one = [&](auto& slot, const char* symbol) {
      slot = reinterpret_cast<std::decay_t<decltype(slot)>>(::dlsym(handle, symbol));
      return slot != nullptr;
    };
    return one(global_init, "curl_global_init") && one(easy_init, "curl_easy_init") &&
           one(easy_cleanup, "curl_easy_cleanup") && one(easy_setopt, "curl_easy_setopt") &&
           one(easy_getinfo, "curl_easy_getinfo") && one(easy_strerror, "curl_easy_strerror") &&
           one(slist_append, "curl_slist_append") && one(slist_free_all, "curl_slist_free_all") &&
           one(multi_init, "curl_multi_init") && one(multi_cleanup, "curl_multi_cleanup") &&
           one(multi_setopt, "curl_multi_setopt") && one(multi_add_handle, "curl_multi_add_handle") &&
           one(multi_remove_handle, "curl_multi_remove_handle") && one(multi_perform, "curl_multi_perform") &&
           one(multi_wait, "curl_multi_wait") && one(multi_info_read, "curl_multi_info_read");
  }
};

// Loaded once and never unloaded: TLS libraries leave handlers behind that run at exit.
struct Loaded {
  Library functions;
  std::string missing;
};

const Loaded& load_library(const std::vector<std::string>& names) {
  static const Loaded loaded = [&] {
    Loaded out;
    for (const std::string& name : names) {
      void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!handle) continue;
      if (out.functions.load(handle) && out.functions.global_init(kGlobalAll) == kOk) return out;
      out.missing = name + " lacks functions of libcurl";
      return out;
    }
    out.missing = names.front() + " is not installed";
    return out;
  }();
  return loaded;
}

struct Transfer {
  const HttpRequest* request = nullptr;
  HttpReply* reply = nullptr;
  Easy easy = nullptr;
  List* headers = nullptr;
  size_t header_bytes = 0;
  bool cut = false, exceeded = false, done = false;
  std::array<char, kErrorSize> error{};
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// Called by C code: nothing may be thrown out of it.
size_t on_header(char* data, size_t size, size_t count, void* user) noexcept {
  Transfer& t = *static_cast<Transfer*>(user);
  const std::string_view line(data, size * count);
  t.header_bytes += line.size();
  if (t.header_bytes > kHeaderLimit) {
    t.exceeded = true;
    return 0;
  }
  // A status line begins a response anew (after an interim one).
  if (line.substr(0, 5) == "HTTP/") t.reply->headers.clear();
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    t.reply->headers.emplace_back(lower(trimmed(line.substr(0, colon))), trimmed(line.substr(colon + 1)));
  }
  return size * count;
}

size_t on_body(char* data, size_t size, size_t count, void* user) noexcept {
  Transfer& t = *static_cast<Transfer*>(user);
  const size_t n = size * count;
  const size_t room = t.request->limit - std::min(t.request->limit, t.reply->body.size());
  t.reply->body.append(data, std::min(n, room));
  if (n <= room) return n;
  (t.request->cut_at_limit ? t.cut : t.exceeded) = true;
  return 0;
}

HttpReply::Problem problem_of(int result, const Transfer& t) {
  using P = HttpReply::Problem;
  if (t.exceeded) return P::too_large;
  if (result == kOk || t.cut) return P::none;
  switch (result) {
    case kCouldNotResolveHost:
      return P::resolve;
    case kCouldNotResolveProxy:
    case kProxy:
      return P::proxy;
    case kCouldNotConnect:
      return P::connect;
    case kTlsConnect:
    case kTlsCertificate:
    case kPeerVerification:
    case kTlsIssuer:
      return P::tls;
    case kCaFileUnreadable:
      return P::certificates;
    case kTimedOut:
      return P::timeout;
    case kPartialFile:
    case kGotNothing:
    case kReceiveError:
    case kHttp2:
    case kHttp2Stream:
      return P::cut_off;
    default:
      return P::other;
  }
}

void finish(const Library& curl, Transfer& t, int result) {
  long status = 0;
  curl.easy_getinfo(t.easy, kInfoResponseCode, &status);
  t.reply->status = static_cast<int>(status);
  t.reply->problem = problem_of(result, t);
  if (t.reply->problem != HttpReply::Problem::none) {
    t.error.back() = '\0';
    t.reply->detail = t.error.front() != '\0' ? t.error.data() : curl.easy_strerror(result);
  }
  t.done = true;
}

bool start(const Library& curl, Multi multi, Transfer& t, const Certificates& certificates) {
  t.easy = curl.easy_init();
  if (!t.easy) return false;
  const HttpRequest& r = *t.request;
  for (const std::string& header : r.headers) t.headers = curl.slist_append(t.headers, header.c_str());
  const auto set = [&](int option, auto value) { curl.easy_setopt(t.easy, option, value); };
  set(kUrl, r.url.c_str());
  set(kErrorBuffer, t.error.data());
  set(kNoSignal, 1L);
  set(kProtocols, kHttpAndHttps);
  set(kFollowLocation, 0L);
  set(kSuppressConnectHeaders, 1L);
  set(kConnectTimeoutMs, 1000L * r.connect_seconds);
  set(kTimeoutMs, 1000L * r.total_seconds);
  set(kLowSpeedLimit, kStallRate);
  set(kLowSpeedTime, static_cast<long>(r.stall_seconds));
  set(kUserAgent, "vram-ledger");
  if (t.headers) set(kHttpHeader, static_cast<void*>(t.headers));
  if (!r.range.empty()) set(kRange, r.range.c_str());
  if (!certificates.file.empty()) set(kCaFile, certificates.file.c_str());
  if (!certificates.directory.empty()) set(kCaPath, certificates.directory.c_str());
  set(kPrivate, static_cast<void*>(&t));
  set(kHeaderFunction, &on_header);
  set(kHeaderData, static_cast<void*>(&t));
  set(kWriteFunction, &on_body);
  set(kWriteData, static_cast<void*>(&t));
  return curl.multi_add_handle(multi, t.easy) == kOk;
}

// "huggingface.co  3 of 30  1,310,720 B  2 s": the same in every language.
class Progress {
 public:
  explicit Progress(bool wanted) {
    const char* term = std::getenv("TERM");
    wanted_ = wanted && ::isatty(STDERR_FILENO) == 1 && !(term && std::string_view(term) == "dumb");
  }
  ~Progress() {
    if (shown_) write("\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::deque<Transfer>& transfers) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin_).count();
    if (!wanted_ || seconds < 1) return;
    size_t bytes = 0, done = 0;
    for (const Transfer& t : transfers) {
      bytes += t.reply->body.size();
      done += t.done ? 1 : 0;
    }
    std::string host = transfers.front().request->url;
    const size_t begin = host.find("//");
    host = begin == std::string::npos ? host : host.substr(begin + 2);
    host = printable(host.substr(0, host.find('/')), 40);
    write(fmt::format("\r{}  {}/{}  {} B  {} s\033[K", host, done, transfers.size(), with_commas(int64_t(bytes)),
                      seconds));
    shown_ = true;
  }

 private:
  static void write(const std::string& text) {
    // A terminal that went away is no reason to stop.
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
  }

  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool wanted_ = false, shown_ = false;
};

}  // namespace

Http::Http(const std::vector<std::string>& libraries) {
  const Loaded& loaded = load_library(libraries);
  missing_ = loaded.missing;
  if (!missing_.empty()) return;
  multi_ = loaded.functions.multi_init();
  if (!multi_) {
    missing_ = "libcurl cannot start";
    return;
  }
  loaded.functions.multi_setopt(multi_, kMultiMaxTotalConnections, kConnections);
}

Http::~Http() {
  if (multi_) load_library({}).functions.multi_cleanup(multi_);
}

std::vector<HttpReply> Http::get(const std::vector<HttpRequest>& requests, const Certificates& certificates,
                                 bool progress) {
  std::vector<HttpReply> replies(requests.size());
  if (requests.empty()) return replies;
  if (!multi_) {
    for (HttpReply& reply : replies) {
      reply.problem = HttpReply::Problem::no_library;
      reply.detail = missing_;
    }
    return replies;
  }
  const Library& curl = load_library({}).functions;
  std::deque<Transfer> transfers(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    transfers[i].request = &requests[i];
    transfers[i].reply = &replies[i];
    if (start(curl, multi_, transfers[i], certificates)) continue;
    replies[i].problem = HttpReply::Problem::other;
    replies[i].detail = "libcurl cannot start a request";
    transfers[i].done = true;
  }
  Progress line(progress);
  for (int running = 1; running > 0;) {
    if (curl.multi_perform(multi_, &running) != kOk) break;
    int left = 0;
    while (const Message* message = curl.multi_info_read(multi_, &left)) {
      if (message->kind != kDone) continue;
      for (Transfer& t : transfers) {
        if (t.easy == message->easy) finish(curl, t, message->data.result);
      }
    }
    line.show(transfers);
    if (running > 0) curl.multi_wait(multi_, nullptr, 0, 200, nullptr);
  }
  for (Transfer& t : transfers) {
    if (!t.done) {
      t.reply->problem = HttpReply::Problem::other;
      t.reply->detail = "libcurl gave up";
    }
    if (t.easy) {
      curl.multi_remove_handle(multi_, t.easy);
      curl.easy_cleanup(t.easy);
    }
    if (t.headers) curl.slist_free_all(t.headers);
  }
  return replies;
}

std::vector<HttpReply> HostEnvironment::http_get(const std::vector<HttpRequest>& requests) const {
  const std::lock_guard<std::mutex> lock(http_mutex_);
  if (!http_) {
    const auto named = variable("VRAM_CURL_LIBRARY");
    // Debian and its kin install a second build of the same interface, which git brings along.
    http_ = std::make_shared<Http>(
        named && !named->empty() ? std::vector<std::string>{*named}
                                 : std::vector<std::string>{"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"});
  }
  Certificates certificates;
  for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
    const auto value = variable(name);
    if (!value || value->empty()) continue;
    (is_directory(*value) ? certificates.directory : certificates.file) = *value;
    break;
  }
  return http_->get(requests, certificates, progress_);
}

}  // namespace vram
