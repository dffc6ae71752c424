#include "api/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "api/url.h"
#include "base/error.h"

namespace vram {
namespace {

constexpr size_t kRefLimit = 4096;
constexpr size_t kLongestName = 200;  // of a file; most file systems allow 255 bytes

std::string value_of(const Environment& environment, const char* name) {
  return environment.variable(name).value_or(std::string());
}

// "~" and "~/x" as shells read them; Hugging Face's libraries do the same with their variables.
std::string expanded(const Environment& environment, const std::string& path) {
  if (path != "~" && path.rfind("~/", 0) != 0) return path;
  const std::string home = value_of(environment, "HOME");
  return home.empty() ? std::string() : home + path.substr(1);
}

// The directory for caches: the specification tells to ignore a relative one.
std::string cache_home(const Environment& environment) {
  const std::string xdg = value_of(environment, "XDG_CACHE_HOME");
  if (!xdg.empty() && xdg.front() == '/') return xdg;
  const std::string home = value_of(environment, "HOME");
  return home.empty() ? std::string() : home + "/.cache";
}

std::string folder_of(const std::string& repository) {
  std::string out = "models--" + repository;
  const size_t slash = out.find('/');
  if (slash != std::string::npos) out.replace(slash, 1, "--");
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

bool ends_in(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

bool holds_a_model(const Environment& environment, const std::string& directory) {
  if (environment.is_file(directory + "/config.json")) return true;
  for (const std::string& name : environment.list(directory)) {
    if ((ends_in(name, ".gguf") || ends_in(name, ".safetensors")) && environment.is_file(directory + "/" + name)) {
      return true;
    }
  }
  return false;
}

// FNV-1a, 64 bits: notices damage, and is no protection against anybody (who may write here may change the program).
uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

std::string seal(std::string_view bytes) {
  return fmt::format("vram-ledger cache 1 {} {:016x}\n", bytes.size(), checksum(bytes));
}

}  // namespace

std::string hugging_face_home(const Environment& environment) {
  const std::string home = value_of(environment, "HF_HOME");
  if (!home.empty()) return expanded(environment, home);
  const std::string cache = cache_home(environment);
  return cache.empty() ? cache : cache + "/huggingface";
}

std::string hugging_face_cache(const Environment& environment) {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    const std::string value = value_of(environment, name);
    if (!value.empty()) return expanded(environment, value);
  }
  const std::string home = hugging_face_home(environment);
  return home.empty() ? home : home + "/hub";
}

bool is_commit(std::string_view text) {
  return text.size() == 40 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f');
         });
}

std::optional<Snapshot> find_snapshot(const Environment& environment, const std::string& repository,
                                      const std::string& revision) {
  const std::string cache = hugging_face_cache(environment);
  if (cache.empty()) return std::nullopt;
  const std::string folder = cache + "/" + folder_of(repository);
  std::string commit = revision;
  if (!is_commit(revision)) {
    try {
      commit = trimmed(environment.read_file(folder + "/refs/" + revision, kRefLimit));
    } catch (const std::runtime_error&) {
      return std::nullopt;
    }
    if (!is_commit(commit)) return std::nullopt;
  }
  std::string directory = folder + "/snapshots/" + commit;
  if (!holds_a_model(environment, directory)) return std::nullopt;
  return Snapshot{std::move(directory), std::move(commit)};
}

HubCache::HubCache(const Environment& environment, std::string_view server, const std::string& repository)
    : environment_(environment) {
  const std::string home = cache_home(environment);
  if (home.empty()) {
    problem_ = "neither XDG_CACHE_HOME nor HOME is set";
    return;
  }
  directory_ = home + "/vram-ledger/hub/" + percent_encoded(server, false) + "/" + folder_of(repository);
}

std::string HubCache::path(std::string_view place, std::string_view name) const {
  const std::string folder = percent_encoded(place, false), file = percent_encoded(name, false);
  // "." and ".." are folders of their own; an encoded name never begins with '%' followed by nothing.
  const bool odd = folder.empty() || file.empty() || folder.front() == '.' || file.front() == '.';
  if (directory_.empty() || odd || folder.size() > kLongestName || file.size() > kLongestName) return {};
  return directory_ + "/" + folder + "/" + file;
}

std::optional<std::string> HubCache::load(std::string_view place, std::string_view name, size_t limit) const {
  const std::string file = path(place, name);
  if (file.empty() || !environment_.is_file(file)) return std::nullopt;
  try {
    std::string bytes = environment_.read_file(file, limit + 100);
    const size_t line = bytes.find('\n');
    if (line == std::string::npos || line > 100) return std::nullopt;
    const std::string_view content = std::string_view(bytes).substr(line + 1);
    if (content.size() > limit || bytes.compare(0, line + 1, seal(content)) != 0) return std::nullopt;
    return bytes.substr(line + 1);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

void HubCache::store(std::string_view place, std::string_view name, const std::string& bytes) const {
  const std::string file = path(place, name);
  if (file.empty() || !problem_.empty()) return;
  try {
    environment_.make_directories(file.substr(0, file.find_last_of('/')));
    environment_.write_file(file, seal(bytes) + bytes);
  } catch (const std::runtime_error& e) {
    problem_ = e.what();
  }
}

}  // namespace vram
