#include "api/hub_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace vram {
namespace {

constexpr size_t kLongestPart = 96;  // of an id, as the hub allows
constexpr size_t kLongestRevision = 200;

bool ends_in(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

// The hub's own rule for the parts of an id.
bool is_part(std::string_view part) {
  if (part.empty() || part.size() > kLongestPart) return false;
  const auto edge = [](char c) { return c == '-' || c == '.'; };
  if (edge(part.front()) || edge(part.back()) || ends_in(part, ".git")) return false;
  if (part.find("--") != std::string_view::npos || part.find("..") != std::string_view::npos) return false;
  return std::all_of(part.begin(), part.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.');
  });
}

bool is_revision(std::string_view text) {
  if (text.size() > kLongestRevision || !is_inside_repository(text) || text.front() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/');
  });
}

// "org/name/file" -> id; nothing where a part is impossible.
std::optional<HubId> split(std::string_view text, bool insisted) {
  const size_t first = text.find('/');
  HubId id;
  if (first == std::string_view::npos) {
    if (!insisted || !is_part(text)) return std::nullopt;
    id.repository = text;
    return id;
  }
  const size_t second = text.find('/', first + 1);
  const std::string_view name = text.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
  if (!is_part(text.substr(0, first)) || !is_part(name)) return std::nullopt;
  id.repository = text.substr(0, second);
  if (second == std::string_view::npos) return id;
  // Without "hub:" a longer path is a misspelt one of this machine.
  id.file = text.substr(second + 1);
  if (!insisted || !is_inside_repository(id.file)) return std::nullopt;
  return id;
}

}  // namespace

bool is_inside_repository(std::string_view path) {
  if (path.empty() || path.size() > 1000 || path.front() == '/' || path.back() == '/') return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return std::all_of(path.begin(), path.end(), [](unsigned char c) { return c >= ' ' && c != 0x7f && c != '\\'; });
}

bool wants_hub(const Job& job) { return job.model.rfind(kHubPrefix, 0) == 0 || job.revision.has_value(); }

std::optional<HubId> hub_id(const Job& job) {
  const bool insisted = job.model.rfind(kHubPrefix, 0) == 0;
  std::string text = job.model.substr(insisted ? kHubPrefix.size() : 0);
  std::optional<std::string> revision = job.revision;
  const size_t at = text.find('@');
  const bool tagged = at != std::string::npos;
  const std::string tag = tagged ? text.substr(at + 1) : std::string();
  text = text.substr(0, at);
  auto id = split(text, insisted);
  if (!id && insisted) {
    throw InputError({.field = "model",
                      .value = job.model,
                      .problem = "is no id of the hub",
                      .accepted = "hub:ORG/NAME, hub:ORG/NAME@REVISION, hub:ORG/NAME/FILE"});
  }
  if (!id) return std::nullopt;
  if (tagged && revision && *revision != tag) {
    throw InputError({.field = "--revision",
                      .value = *revision,
                      .problem = fmt::format("is a second revision beside '{}'", printable(tag))});
  }
  if (tagged) revision = tag;
  if (revision) {
    if (!is_revision(*revision)) {
      throw InputError({.field = tagged ? "revision" : "--revision",
                        .value = *revision,
                        .problem = "is no revision",
                        .accepted = "a branch, a tag or a commit"});
    }
    id->revision = *revision;
  }
  return id;
}

}  // namespace vram
