#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"

namespace vram {

/// Where the Hugging Face libraries keep what they downloaded: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub,
/// XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub. Empty where there is no home.
std::string hugging_face_cache(const Environment& environment);
/// HF_HOME, else the directory above the default cache. Empty where there is no home.
std::string hugging_face_home(const Environment& environment);

/// A commit as the hub names it: 40 hexadecimal digits in lower case.
bool is_commit(std::string_view text);

/// The directory of a revision in that cache, if it is there and holds a config or weights. Only names decide, never
/// times: a clock that was wrong does no harm. Links that lead nowhere count as absent.
struct Snapshot {
  std::string directory, commit;
};
std::optional<Snapshot> find_snapshot(const Environment& environment, const std::string& repository,
                                      const std::string& revision);

/// What this program keeps of one repository: XDG_CACHE_HOME/vram-ledger (or ~/.cache/vram-ledger), by commit. Every
/// entry carries its length and a checksum; one that is damaged counts as absent. Nothing here ever throws: a cache
/// that can't be written is remembered and not tried again.
class HubCache {
 public:
  HubCache(const Environment& environment, std::string_view server, const std::string& repository);

  /// `place` is a reference or a commit, `name` a file of the repository.
  std::optional<std::string> load(std::string_view place, std::string_view name, size_t limit) const;
  void store(std::string_view place, std::string_view name, const std::string& bytes) const;

  /// Why nothing could be kept; empty where everything was.
  const std::string& problem() const { return problem_; }
  const std::string& directory() const { return directory_; }

 private:
  std::string path(std::string_view place, std::string_view name) const;

  const Environment& environment_;
  std::string directory_;  // empty: there is none
  mutable std::string problem_;
};

}  // namespace vram
