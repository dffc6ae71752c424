#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "job/job.h"

namespace vram {

inline constexpr std::string_view kHubPrefix = "hub:";

/// A model on the hub: "org/name" or "org/name@revision"; with "hub:" before it also names without an organisation and
/// single files, "hub:org/name/file.gguf".
struct HubId {
  std::string repository;         ///< "org/name"
  std::string file;               ///< one file of it; empty: the model as a whole
  std::string revision = "main";  ///< branch, tag or commit
};

/// The hub's model that `job` names; nothing where Job::model has another form. InputError for "hub:" before an
/// impossible id, and for an impossible or second revision.
std::optional<HubId> hub_id(const Job& job);

/// Whether the job insists on the hub although the catalogue may know the model: "hub:", or a revision.
bool wants_hub(const Job& job);

/// Whether `path` names a file inside a repository and stays there.
bool is_inside_repository(std::string_view path);

}  // namespace vram
