#include "api/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "formats/bytes.h"
#include "formats/formats.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "model/weights/weights.h"

namespace vram {
namespace {

constexpr size_t kConfigLimit = size_t{16} << 20;
constexpr size_t kIndexLimit = size_t{128} << 20;
constexpr std::string_view kAccepted = "a config.json, safetensors or GGUF";

bool ends_in(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}
bool begins_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.find_last_of('/') + 1);
}
// "a/b/" of "a/b/c"; empty for a plain name.
std::string folder_of(const std::string& path) { return path.substr(0, path.find_last_of('/') + 1); }

// The folder's name where it has one of its own.
std::string label_of(const std::string& folder, std::string otherwise) {
  if (folder.empty()) return otherwise;
  const std::string name = last_part(folder);
  return name.empty() || name == "." || name == ".." || name == "/" ? otherwise : name;
}

bool is_pickle(std::string_view name) {
  return ends_in(name, ".bin") || ends_in(name, ".pt") || ends_in(name, ".pth") || ends_in(name, ".ckpt");
}

// "model-00001-of-00163.safetensors": what stands before the number, and how many there are; count 0 for other names.
GgufShard safetensors_shard(const std::string& name) {
  constexpr std::string_view kEnd = ".safetensors";
  if (!ends_in(name, kEnd)) return {};
  return gguf_shard(name.substr(0, name.size() - kEnd.size()) + ".gguf");
}

// The weight files of one model, in order.
struct WeightFiles {
  std::vector<std::string> names;  // beside one another
  std::string index;               // name of the index that tells them; empty: none
  bool gguf = false;
};

class Folder {
 public:
  Folder(std::string path, const Environment& environment) : path_(std::move(path)), environment_(environment) {}

  const std::string& path() const { return path_; }
  std::string at(const std::string& name) const { return path_ + name; }
  bool has(const std::string& name) const { return environment_.is_file(at(name)); }
  const Environment& environment() const { return environment_; }
  const std::vector<std::string>& names() const {
    if (!names_) names_ = environment_.list(path_.empty() ? "." : path_);
    return *names_;
  }

  // All parts of the set that `shard` belongs to. InputError where some are missing.
  std::vector<std::string> parts(const GgufShard& shard, std::string_view ending, const std::string& told_by) const {
    std::vector<std::string> out;
    for (int64_t n = 1; n <= shard.count; ++n) {
      std::string name = fmt::format("{}-{:05}-of-{:05}{}", shard.prefix, n, shard.count, ending);
      if (!has(name)) missing(name, told_by);
      out.push_back(std::move(name));
    }
    return out;
  }
  [[noreturn]] void missing(const std::string& name, const std::string& told_by) const {
    throw InputError({.file = at(told_by),
                      .problem = fmt::format("{} is not beside it (an unfinished download?)", printable(name, 120)),
                      .accepted = "all files of the model"});
  }

 private:
  std::string path_;
  const Environment& environment_;
  mutable std::optional<std::vector<std::string>> names_;
};

std::string read_index(const Folder& folder, const std::string& name) {
  return folder.environment().read_file(folder.at(name), kIndexLimit);
}

// The safetensors of a folder: those of its index, model.safetensors, the one numbered set, or the only file.
std::optional<WeightFiles> find_safetensors(const Folder& folder) {
  std::vector<std::string> found, indices;
  for (const std::string& name : folder.names()) {
    if (ends_in(name, ".safetensors.index.json")) indices.push_back(name);
    if (ends_in(name, ".safetensors") && !begins_with(name, "adapter")) found.push_back(name);
  }
  const auto model_index = std::find(indices.begin(), indices.end(), "model.safetensors.index.json");
  if (model_index != indices.end() || indices.size() == 1) {
    return WeightFiles{{}, model_index != indices.end() ? *model_index : indices.front(), false};
  }
  if (found.empty()) return std::nullopt;
  if (std::find(found.begin(), found.end(), "model.safetensors") != found.end()) {
    return WeightFiles{{"model.safetensors"}, {}, false};
  }
  std::map<std::string, std::string> sets;  // what stands before the number -> a file; single files by their name
  for (const std::string& name : found) {
    const GgufShard shard = safetensors_shard(name);
    sets.emplace(shard.count > 0 ? shard.prefix + "/" + std::to_string(shard.count) : name, name);
  }
  if (sets.size() > 1) {
    throw InputError({.file = folder.path(),
                      .problem = fmt::format("holds safetensors of {} models", sets.size()),
                      .accepted = "the name of one file, such as " + folder.at(found.front())});
  }
  const GgufShard shard = safetensors_shard(found.front());
  if (shard.count == 0) return WeightFiles{found, {}, false};
  return WeightFiles{folder.parts(shard, ".safetensors", found.front()), {}, false};
}

// The first file of each GGUF model of a folder, without multimodal projectors where there is anything else.
std::vector<std::string> find_gguf(const Folder& folder) {
  std::map<std::string, std::string> sets;
  std::string projector;
  for (const std::string& name : folder.names()) {
    if (!ends_in(name, ".gguf")) continue;
    if (name.find("mmproj") != std::string::npos) {
      projector = name;
      continue;
    }
    const GgufShard shard = gguf_shard(name);
    sets.emplace(shard.count > 0 ? shard.prefix + "/" + std::to_string(shard.count) : name, name);
  }
  std::vector<std::string> out;
  for (const auto& [set, name] : sets) out.push_back(name);
  if (out.empty() && !projector.empty()) out.push_back(projector);
  return out;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 6; ++i) out += (i ? ", " : "") + printable(names[i], 80);
  if (names.size() > 6) out += ", ...";
  return out;
}

// Tensors of safetensors files, and what their index claims they take (-1: there is none).
FileTensors read_safetensors_files(const Folder& folder, const WeightFiles& files, int64_t& index_total) {
  FileTensors out;
  index_total = -1;
  if (files.index.empty()) {
    for (const std::string& name : files.names) {
      read_safetensors(FileBytes(folder.environment(), folder.at(name)), out);
    }
    return out;
  }
  const std::string text = read_index(folder, files.index);
  const ShardIndex index = parse_shard_index(text, folder.at(files.index));
  for (const std::string& name : index.files) {
    if (!folder.has(name)) folder.missing(name, files.index);
    read_safetensors(FileBytes(folder.environment(), folder.at(name)), out);
  }
  check_against_index(index, out, folder.at(files.index));
  index_total = index.total_size.value_or(-1);
  return out;
}

Model read_gguf_model(const Folder& folder, const std::string& name) {
  const GgufShard shard = gguf_shard(name);
  std::vector<std::unique_ptr<ByteSource>> files;
  const auto names = shard.count > 1 ? folder.parts(shard, ".gguf", name) : std::vector<std::string>{name};
  for (const std::string& part : names) {
    files.push_back(std::make_unique<FileBytes>(folder.environment(), folder.at(part)));
  }
  FileTensors tensors;
  const GgufMetadata meta = read_gguf_split(files, tensors);
  const std::string label =
      shard.count > 0 ? shard.prefix : name.substr(0, name.size() - (ends_in(name, ".gguf") ? 5 : 0));
  return model_from_gguf(meta, tensors, folder.at(names.front()), label);
}

Model read_config_model(const Folder& folder, const std::string& name, const std::string& label,
                        const std::vector<std::string>& changes, bool beside) {
  const std::string file = folder.at(name);
  // Some published configs hold Infinity (rope bounds), which decides nothing here.
  const Limits limits{.bytes = kConfigLimit, .depth = 64, .values = 1'000'000, .infinity_is_null = true};
  const Document config = parse_json(folder.environment().read_file(file, kConfigLimit), file, limits);
  if (!changes.empty()) return model_with_changes(config, file, label, changes);
  constexpr const char* kQuant = "hf_quant_config.json";
  if (beside && folder.has(kQuant)) {
    const std::string quant = folder.at(kQuant);
    return model_from_config(config, parse_json(folder.environment().read_file(quant, kConfigLimit), quant, limits),
                             file, label);
  }
  return model_from_config(config, file, label);
}

// The first file of the weights that is a Git LFS pointer: a clone without LFS has only such files.
std::optional<std::string> pointer_among(const Folder& folder, const WeightFiles& files) {
  std::string first;
  if (!files.names.empty()) {
    first = files.names.front();
  } else {
    const std::string text = read_index(folder, files.index);
    if (is_lfs_pointer(text)) return files.index;
    const ShardIndex index = parse_shard_index(text, folder.at(files.index));
    if (index.files.empty() || !folder.has(index.files.front())) return std::nullopt;
    first = index.files.front();
  }
  if (!is_lfs_pointer(folder.environment().read_range(folder.at(first), 0, 64))) return std::nullopt;
  return first;
}

// Safetensors with the config beside them, or without one.
Model read_weights_model(const Folder& folder, const WeightFiles& files, const std::string& label,
                         const std::vector<std::string>& changes) {
  const std::string first = folder.at(files.index.empty() ? files.names.front() : files.index);
  int64_t index_total = -1;
  if (folder.has("config.json")) {
    Model config = read_config_model(folder, "config.json", label, changes, true);
    // What was changed is no longer what the files hold.
    if (!changes.empty()) return config;
    const FileTensors tensors = read_safetensors_files(folder, files, index_total);
    try {
      Model out = model_with_weights(config, tensors, index_total);
      out.origin = fmt::format("file {}", first);
      return out;
    } catch (const OverflowError&) {
      throw InputError({.file = first, .problem = "describes a model of more than 2^63 bytes"});
    }
  }
  if (!changes.empty()) {
    throw InputError({.field = "--set",
                      .value = changes.front(),
                      .problem = "changes a config, and there is none beside " + printable(first, 120)});
  }
  return model_from_weights(read_safetensors_files(folder, files, index_total), first, label);
}

Model read_directory(const Folder& folder, const std::vector<std::string>& changes) {
  const std::string label = label_of(folder.path(), "model");
  const bool has_config = folder.has("config.json");
  if (has_config && !changes.empty()) return read_config_model(folder, "config.json", label, changes, true);
  const auto noted = [&](Note note) {
    Model model = read_config_model(folder, "config.json", label, {}, true);
    model.assume(std::move(note));
    return model;
  };
  if (const auto safetensors = find_safetensors(folder)) {
    if (has_config) {
      if (const auto pointer = pointer_among(folder, *safetensors)) {
        return noted({"weights.note.pointers", {{"file", printable(*pointer, 120)}}});
      }
    }
    return read_weights_model(folder, *safetensors, label, changes);
  }
  const std::vector<std::string> ggufs = find_gguf(folder);
  if (ggufs.size() == 1 && changes.empty()) {
    if (has_config && is_lfs_pointer(folder.environment().read_range(folder.at(ggufs.front()), 0, 64))) {
      return noted({"weights.note.pointers", {{"file", printable(ggufs.front(), 120)}}});
    }
    return read_gguf_model(folder, ggufs.front());
  }
  if (ggufs.size() > 1) {
    if (has_config) return noted({"weights.note.several", {{"files", joined(ggufs)}}});
    throw InputError({.file = folder.path(),
                      .problem = fmt::format("holds {} GGUF models", ggufs.size()),
                      .accepted = "the name of one of them: " + joined(ggufs)});
  }
  const auto& names = folder.names();
  const auto pickle = std::find_if(names.begin(), names.end(), [](const std::string& n) { return is_pickle(n); });
  if (has_config) {
    if (pickle != names.end()) return noted({"weights.note.pickles", {{"file", printable(*pickle, 120)}}});
    return read_config_model(folder, "config.json", label, changes, true);
  }
  if (folder.has("adapter_config.json")) {
    throw InputError({.file = folder.path(), .problem = "holds a LoRA adapter", .accepted = "its base model"});
  }
  if (pickle != names.end()) {
    throw InputError(
        {.file = folder.path(),
         .problem = fmt::format("holds PyTorch checkpoints alone ({}), which are not opened", printable(*pickle, 80)),
         .accepted = std::string(kAccepted)});
  }
  throw InputError({.file = folder.path(),
                    .problem = "this directory holds no config.json and no weights",
                    .accepted = std::string(kAccepted)});
}

}  // namespace

bool written_as_path(const std::string& name) {
  return name[0] == '/' || begins_with(name, "./") || begins_with(name, "../") || name == "." || name == ".." ||
         ends_in(name, ".json") || ends_in(name, ".yaml") || ends_in(name, ".yml") || ends_in(name, ".toml") ||
         ends_in(name, ".gguf") || ends_in(name, ".safetensors");
}

Model model_from_path(const std::string& path, const std::vector<std::string>& changes,
                      const Environment& environment) {
  if (environment.is_directory(path)) {
    return read_directory(Folder(path.back() == '/' ? path : path + "/", environment), changes);
  }
  const Folder folder(folder_of(path), environment);
  const std::string name = path.substr(folder.path().size());
  // Blobs of a cache have no ending.
  const bool nameless = !ends_in(name, ".json") && !ends_in(name, ".safetensors") && environment.is_file(path);
  const bool is_gguf = ends_in(name, ".gguf") || (nameless && environment.read_range(path, 0, 4) == "GGUF");
  if (is_gguf) {
    if (!changes.empty()) {
      throw InputError({.field = "--set",
                        .value = changes.front(),
                        .problem = "changes a config; a GGUF file is what it is",
                        .accepted = "a config.json or a known model"});
    }
    return read_gguf_model(folder, name);
  }
  if (ends_in(name, ".safetensors")) {
    const GgufShard shard = safetensors_shard(name);
    WeightFiles files{{name}, {}, false};
    if (shard.count > 1) files.names = folder.parts(shard, ".safetensors", name);
    const bool usual = begins_with(name, "model") || shard.count > 1;
    return read_weights_model(folder, files, usual ? label_of(folder.path(), name) : name, changes);
  }
  if (ends_in(name, ".index.json")) {
    if (!ends_in(name, ".safetensors.index.json")) {
      throw InputError({.file = path,
                        .problem = "is the index of PyTorch checkpoints, which are not opened",
                        .accepted = std::string(kAccepted)});
    }
    return read_weights_model(folder, {{}, name, false}, label_of(folder.path(), name), changes);
  }
  if (is_pickle(name)) {
    throw InputError(
        {.file = path, .problem = "is a PyTorch checkpoint, which is not opened", .accepted = std::string(kAccepted)});
  }
  // The directory names the model.
  return read_config_model(folder, name, name == "config.json" ? label_of(folder.path(), name) : name, changes, false);
}

}  // namespace vram
