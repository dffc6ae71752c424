#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/hub_cache.h"
#include "api/hub_client.h"
#include "api/hub_id.h"
#include "base/environment.h"
#include "base/messages.h"
#include "job/job.h"

namespace vram {

/// A repository of the hub as a directory of files, of which only what is asked for is fetched. It is looked for in the
/// Hugging Face cache, in this program's own, and then, unless that is forbidden, on the hub. Everything outside the
/// directory is the system's.
///
/// All files are of one commit. What was fetched is kept by that commit: small files whole, of weights the beginning
/// that was read. A cache that can't be written is no failure, and said in notes(). Where weights are here in part and
/// the network is forbidden, they are not seen at all, and the config answers alone.
class HubFiles : public Environment {
 public:
  /// UnavailableError in one line where the model can't be had, with what to do about it.
  HubFiles(HubId id, const Job& job, const Environment& system);

  /// The directory, "hub:org/name" where it is not one of this machine.
  const std::string& directory() const { return directory_; }
  const HubId& id() const { return id_; }
  /// "hub 1a2b3c4d"
  std::string origin() const;
  /// The address of what was read, for people.
  std::string source() const;
  /// What the reader should know: a cache that could not be written, a hub without lists of files.
  std::vector<Note> notes() const;

  std::string read_file(const std::string& path, size_t limit) const override;
  bool is_file(const std::string& path) const override;
  bool is_directory(const std::string& path) const override;
  int64_t file_size(const std::string& path) const override;
  std::string read_range(const std::string& path, int64_t offset, size_t length) const override;
  std::vector<std::string> list(const std::string& path) const override;
  void write_file(const std::string& path, const std::string& bytes) const override;
  std::optional<std::string> variable(const std::string& name) const override { return system_.variable(name); }
  LocalGpus local_gpus() const override { return system_.local_gpus(); }
  void make_directories(const std::string& path) const override { system_.make_directories(path); }
  std::vector<HttpReply> http_get(const std::vector<HttpRequest>& requests) const override {
    return system_.http_get(requests);
  }

 private:
  /// The beginning of a file that is not fetched whole.
  struct Head {
    int64_t size = 0;  ///< of the file
    std::string bytes;
  };

  bool from_own_cache();
  void from_network();
  [[noreturn]] void fail(const std::string& why) const;
  const HubClient& client() const;
  std::optional<std::string> name_of(const std::string& path) const;
  const std::string& whole(const std::string& name, size_t limit) const;
  const Head& head(const std::string& name, int64_t wanted) const;
  void take(const std::string& name, const HubReply& reply, size_t asked, Head& head) const;
  bool load_head(const std::string& name) const;
  std::vector<std::string> shards_like(const std::string& name) const;
  std::string path_on_hub(const std::string& name) const;
  bool weights_are_whole() const;
  bool shown(const std::string& name) const;

  const Environment& system_;
  HubId id_;
  bool offline_ = false, refresh_ = false;
  std::string directory_;
  std::string place_;    // what names the version: the commit; "etag-..." where the hub tells none; empty: unknown
  bool local_ = false;   // the directory is one of this machine
  bool hidden_ = false;  // its weights are not all there: the config answers alone
  bool listed_ = false;
  std::set<std::string> names_;
  std::optional<HubClient> client_;
  std::unique_ptr<HubCache> cache_;
  mutable std::map<std::string, std::string> files_;
  mutable std::map<std::string, Head> heads_;
};

}  // namespace vram
