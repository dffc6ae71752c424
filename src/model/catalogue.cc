#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/embedded.h"
#include "base/error.h"
#include "formats/formats.h"
#include "model/model.h"

namespace vram {

namespace embedded {
extern const File models[];
extern const size_t models_count;
}  // namespace embedded

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Case and the separators that people swap do not count: "Llama 3.1-8B", "llama-3.1-8b" and "llama3.1:8b" are one.
// Between two digits a separator stays, as a point: opt-1.3b is not opt-13b.
std::string folded(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  bool separated = false;
  for (char c : name) {
    if (c == '-' || c == '_' || c == '.' || c == ':' || c == ' ') {
      separated = true;
      continue;
    }
    if (separated && !out.empty() && is_digit(out.back()) && is_digit(c)) out += '.';
    separated = false;
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return out;
}

// The rows begin {"id":"...","aliases":["..."],"stores":["..."]: read without parsing the config that follows.
std::string_view quoted_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  const size_t begin = at + key.size();
  return line.substr(begin, line.find('"', begin) - begin);
}

std::vector<std::string_view> list_after(std::string_view line, std::string_view key) {
  std::vector<std::string_view> out;
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return out;
  const size_t end = line.find(']', at);
  for (size_t open = line.find('"', at + key.size()); open < end; open = line.find('"', open + 1)) {
    const size_t close = line.find('"', open + 1);
    out.push_back(line.substr(open + 1, close - open - 1));
    open = close;
  }
  return out;
}

// What stands before the config.
std::string_view head_of(std::string_view line) { return line.substr(0, line.find("\"config\":")); }

}  // namespace

Catalogue::Catalogue() {
  if (embedded::models_count != 1) throw std::logic_error("the catalogue is not compiled in");
  std::string_view rest = embedded::models[0].bytes;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    const std::string_view head = head_of(line);
    CatalogueEntry entry;
    entry.id = quoted_after(head, "{\"id\":\"");
    entry.aliases = list_after(head, "\"aliases\":[");
    entries_.push_back(std::move(entry));
    lines_.push_back(line);
  }
  std::vector<std::pair<std::string, size_t>> last_parts;
  for (size_t i = 0; i < entries_.size(); ++i) {
    keys_.emplace_back(folded(entries_[i].id), i);
    const auto last_part = [&](std::string_view name) {
      const size_t slash = name.rfind('/');
      if (slash != std::string_view::npos) last_parts.emplace_back(folded(name.substr(slash + 1)), i);
    };
    last_part(entries_[i].id);
    for (std::string_view alias : entries_[i].aliases) {
      keys_.emplace_back(folded(alias), i);
      last_part(alias);
    }
  }
  std::sort(keys_.begin(), keys_.end());
  std::sort(last_parts.begin(), last_parts.end());
  last_parts.erase(std::unique(last_parts.begin(), last_parts.end()), last_parts.end());
  // The last path part stands for an entry where nothing else claims it.
  const size_t claimed = keys_.size();
  for (size_t i = 0; i < last_parts.size(); ++i) {
    const std::string& key = last_parts[i].first;
    const bool shared =
        (i > 0 && last_parts[i - 1].first == key) || (i + 1 < last_parts.size() && last_parts[i + 1].first == key);
    const auto end = keys_.begin() + static_cast<std::ptrdiff_t>(claimed);
    const auto found = std::lower_bound(keys_.begin(), end, std::make_pair(key, size_t{0}));
    if (!shared && (found == end || found->first != key)) keys_.push_back(last_parts[i]);
  }
  std::sort(keys_.begin(), keys_.end());
}

const Catalogue& Catalogue::builtin() {
  static const Catalogue catalogue;
  return catalogue;
}

const CatalogueEntry* Catalogue::find(std::string_view name) const {
  const std::string key = folded(name);
  const auto found = std::lower_bound(keys_.begin(), keys_.end(), std::make_pair(key, size_t{0}));
  if (key.empty() || found == keys_.end() || found->first != key) return nullptr;
  return &entries_[found->second];
}

Document Catalogue::config(const CatalogueEntry& entry) const {
  const auto index = static_cast<size_t>(&entry - entries_.data());
  if (index >= lines_.size()) throw std::logic_error("the entry is not of this catalogue");
  const std::string_view line = lines_[index];
  constexpr std::string_view kKey = "\"config\":";
  const size_t at = line.find(kKey);
  if (at == std::string_view::npos) throw std::logic_error("a catalogue row has no config");
  // The row ends with the brace of the row itself.
  const std::string_view text = line.substr(at + kKey.size(), line.rfind('}') - at - kKey.size());
  return parse_json(text, "catalogue:" + std::string(entry.id));
}

std::string Catalogue::source(const CatalogueEntry& entry) const {
  const auto index = static_cast<size_t>(&entry - entries_.data());
  if (index >= lines_.size()) throw std::logic_error("the entry is not of this catalogue");
  return std::string(quoted_after(head_of(lines_[index]), "\"source\":\""));
}

std::vector<std::string> Catalogue::stores(std::string_view id) const {
  const std::string key = folded(id);
  const auto found = std::lower_bound(keys_.begin(), keys_.end(), std::make_pair(key, size_t{0}));
  if (found == keys_.end() || found->first != key || folded(entries_[found->second].id) != key) return {};
  std::vector<std::string> out;
  for (std::string_view s : list_after(head_of(lines_[found->second]), "\"stores\":[")) out.emplace_back(s);
  return out;
}

Model Catalogue::model(const CatalogueEntry& entry) const {
  Model model = model_from_config(config(entry), "catalogue:" + std::string(entry.id), std::string(entry.id));
  model.origin = "catalogue";
  model.source = source(entry);
  return model;
}

}  // namespace vram
