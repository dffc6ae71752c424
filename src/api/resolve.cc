#include "api/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "api/files.h"
#include "api/hub.h"
#include "base/error.h"
#include "base/units.h"
#include "formats/formats.h"

namespace vram {
namespace {

constexpr int64_t kGptPositions = 2048;  // of GPT-3; what a decoder by hand has unless told otherwise
constexpr size_t kRowsLimit = size_t{4} << 20;

constexpr size_t kConfigLimit = size_t{16} << 20;

bool ends_in(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

// "7B", "1.5T", "350M": a size and nothing else. "7b" in a name such as "mistral-7b" does not count.
std::optional<int64_t> size_of(const std::string& name) {
  if (name.empty() || !std::isdigit(static_cast<unsigned char>(name[0]))) return std::nullopt;
  // Digits with at most one letter behind them mean a size: what is wrong with it is said. "01-ai/Yi" is a name.
  const bool meant = name.find_first_not_of("0123456789.,_eE+") >= name.size() - 1;
  try {
    const int64_t n = parse_integer(name, Unit::count, "model");
    if (n > 0) return n;
  } catch (const InputError&) {
    if (meant) throw;
    return std::nullopt;
  }
  if (!meant) return std::nullopt;
  throw InputError({.field = "model",
                    .value = name,
                    .problem = "is no size of a model",
                    .accepted = std::string(unit_help(Unit::count))});
}

std::vector<std::string> hand_fields(const Job& job) {
  std::vector<std::string> out;
  for (const Field& f : fields()) {
    // These say which model is meant and where it may be had from; the others of the group describe one.
    const bool names = f.name == "model" || f.name == "revision" || f.name == "offline" || f.name == "refresh";
    if (f.group == "model" && !names && f.name != "set" && f.name != "params" && f.is_set(job)) {
      out.push_back(option_name(f.name));
    }
  }
  return out;
}

[[noreturn]] void unknown_model(const std::string& name) {
  std::vector<std::string_view> known;
  for (const CatalogueEntry& e : Catalogue::builtin().entries()) {
    known.push_back(e.id);
    known.insert(known.end(), e.aliases.begin(), e.aliases.end());
  }
  std::string near = near_miss(name, known);
  if (!near.empty()) {
    if (const CatalogueEntry* e = Catalogue::builtin().find(near)) near = e->id;
  }
  throw InputError(
      {.field = "unknown model",
       .value = name,
       .accepted = near.empty()
                       ? "a catalogue id, a config.json, a model directory, a GGUF or safetensors file, a hub id such "
                         "as org/name, or a size such as 7B"
                       : "",
       .near_miss = near,
       .hint = "vram models lists all"});
}

DecoderByHand decoder_of(const Job& job, int64_t parameters) {
  DecoderByHand d;
  d.name = "by hand";
  d.gpt = job.block && *job.block == "gpt";
  d.parameters = parameters;
  d.layers = job.layers.value_or(0);
  d.hidden = job.hidden.value_or(0);
  d.heads = job.heads.value_or(0);
  d.kv_heads = job.kv_heads.value_or(0);
  d.head_dim = job.head_dim.value_or(0);
  d.ffn = job.ffn.value_or(0);
  d.vocab = job.vocab.value_or(0);
  // Learned positions must reach as far as the job does.
  const int64_t longest = std::max(job.sequence.value_or(0), job.context.value_or(0));
  if (d.gpt && longest > kGptPositions) d.positions = longest;
  d.experts = job.experts.value_or(0);
  d.experts_per_token = job.experts_per_token.value_or(0);
  return d;
}

// A decoder in this product's own words: a file with the fields of the group "model" (layers, hidden, heads, ...).
bool is_own_description(const Document& document) {
  return document.is_object() && !document.find("model_type") && !document.find("hidden_size") &&
         (document.find("layers") || document.find("hidden") || document.find("params"));
}

Model describe_by_hand(const Job& job, int64_t parameters);

Model read_own_description(const Document& document, const std::string& file, const std::string& name, const Job& job) {
  Job described;
  read_job(described, document, file);
  for (const Field& f : fields()) {
    if (f.group != "model" && f.is_set(described)) {
      throw InputError({.file = file,
                        .field = std::string(f.name),
                        .problem = "does not describe a model",
                        .accepted = "params, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, experts, block"});
    }
  }
  if (!described.model.empty()) {
    throw InputError({.file = file, .field = "model", .problem = "is set in a description of a model"});
  }
  described.set.insert(described.set.end(), job.set.begin(), job.set.end());
  Model model = describe_by_hand(described, described.params.value_or(0));
  model.name = name;
  model.origin = "file " + file;
  return model;
}

// Files that people write: a description in our own words, or a config in YAML or TOML. All others are configs and
// weights as published.
Model read_file_model(const std::string& path, const Job& job, const Environment& environment) {
  const bool written = ends_in(path, ".yaml") || ends_in(path, ".yml") || ends_in(path, ".toml");
  const bool json = ends_in(path, ".json") && !ends_in(path, ".index.json");
  if (!(written || json) || !environment.is_file(path)) return model_from_path(path, job.set, environment);
  const Limits limits{.bytes = kConfigLimit, .depth = 64, .values = 1'000'000, .infinity_is_null = true};
  const Document document = parse_by_name(environment.read_file(path, kConfigLimit), path, limits);
  const std::string name = path.substr(path.find_last_of('/') + 1);
  if (is_own_description(document)) return read_own_description(document, path, name, job);
  if (json) return model_from_path(path, job.set, environment);
  return job.set.empty() ? model_from_config(document, path, name) : model_with_changes(document, path, name, job.set);
}

Model read_hub_model(const HubId& id, const Job& job, const Environment& environment) {
  const HubFiles hub(id, job, environment);
  const std::string path = hub.directory() + (id.file.empty() ? "" : "/" + id.file);
  Model model = read_file_model(path, job, hub);
  model.name = id.repository + (id.file.empty() ? "" : "/" + id.file);
  model.origin = hub.origin();
  model.source = hub.source();
  for (Note& note : hub.notes()) model.assume(std::move(note));
  return model;
}

[[noreturn]] void no_hub_model(const Job& job) {
  throw InputError({.field = "--revision",
                    .value = *job.revision,
                    .problem = fmt::format("belongs to models of the hub, and '{}' is none", printable(job.model)),
                    .accepted = "a model such as org/name"});
}

int64_t count_with_ffn(DecoderByHand decoder, int64_t ffn) {
  decoder.ffn = ffn;
  return model_by_hand(decoder).counts.parameters;
}

// The given size and the given layers meet in the width of the MLP, which nobody named: parameters are linear in it.
void choose_ffn(DecoderByHand& decoder, int64_t parameters) {
  const int64_t least = count_with_ffn(decoder, 1);
  const int64_t step = count_with_ffn(decoder, 2) - least;
  if (parameters < least || step <= 0) {
    throw InputError({.field = "--params",
                      .value = with_commas(parameters),
                      .problem = fmt::format("is less than the {} of these layers", with_commas(least)),
                      .accepted = "fewer or narrower layers, or a larger size"});
  }
  decoder.ffn = 1 + (parameters - least) / step;
}

// What whole matrices cannot make up of the given size.
void add_remainder(Model& model, int64_t elements) {
  Tensor rest;
  rest.name = "remainder";
  rest.shape = {elements};
  rest.dtype = model.dtype;
  rest.module = "remainder";
  rest.stored_bytes = dtype_bytes(model.dtype, elements);
  model.counts.parameters += elements;
  model.counts.text += elements;
  model.counts.active += elements;
  model.counts.stored_elements += elements;
  model.counts.stored_bytes += rest.stored_bytes;
  model.counts.loaded_bytes += rest.stored_bytes;
  model.counts.tensors += 1;
  model.tensors.push_back({.layers = {}, .tensors = {std::move(rest)}, .part = TensorGroup::Part::text});
}

// A decoder of which both the layers and the size are given.
Model of_shape_and_size(const Job& job, int64_t parameters) {
  DecoderByHand decoder = decoder_of(job, 0);
  if (!job.ffn) choose_ffn(decoder, parameters);
  Model model = model_by_hand(decoder);
  const int64_t shaped = model.counts.parameters;
  if (!job.ffn) {
    model.assume({"model.assume.ffn_left", {{"ffn", with_commas(decoder.ffn)}}});
    if (parameters > shaped) add_remainder(model, parameters - shaped);
  } else if (std::abs(static_cast<double>(shaped - parameters)) > 0.1 * static_cast<double>(parameters)) {
    throw InputError({.field = "--params",
                      .value = with_commas(parameters),
                      .problem = fmt::format("contradicts the layers, which hold {}", with_commas(shaped))});
  } else if (shaped != parameters) {
    model.assume({"model.assume.shaped", {{"shaped", with_commas(shaped)}, {"said", with_commas(parameters)}}});
  }
  return model;
}

Model describe_by_hand(const Job& job, int64_t parameters) {
  if (hand_fields(job).empty()) {
    if (!job.set.empty()) {
      throw InputError({.field = "--set",
                        .value = job.set.front(),
                        .problem = "changes a model with layers; this one is only a size",
                        .accepted = "options such as --layers and --hidden"});
    }
    return model_of_size(parameters);
  }
  const bool shaped = job.layers && (job.hidden || (job.heads && job.head_dim));
  if (shaped && parameters > 0 && job.set.empty()) return of_shape_and_size(job, parameters);
  const DecoderByHand decoder = decoder_of(job, parameters);
  if (job.set.empty()) return model_by_hand(decoder);
  std::vector<Note> assumptions;
  const Document config = config_by_hand(decoder, assumptions);
  Model model = model_with_changes(config, "the model by hand", decoder.name, job.set);
  for (Note& note : assumptions) model.assume(std::move(note));
  return model;
}

}  // namespace

void Knowledge::add_rows(const std::string& file) {
  const std::string toml = environment_->read_file(file, kRowsLimit);
  const Document rows = parse_toml(toml, file);
  const bool has_devices = rows.find("device") != nullptr;
  const bool has_constants = rows.find("constant") != nullptr;
  const bool has_tiers = rows.find("disk") != nullptr || rows.find("store") != nullptr;
  const int kinds = static_cast<int>(has_devices) + static_cast<int>(has_constants) + static_cast<int>(has_tiers);
  if (kinds != 1) {
    throw InputError({.file = file,
                      .problem = kinds > 1 ? "holds rows of several kinds" : "holds no rows",
                      .accepted = "[[device]] tables, [[constant]] tables, or [[disk]] and [[store]] tables, each in a "
                                  "file of their own"});
  }
  if (has_devices) {
    devices_ = devices().with_rows_of(toml, file);
  } else if (has_constants) {
    constants_ = constants().with_rows_of(toml, file);
  } else {
    tier_rows_ = tier_rows().with_rows_of(toml, file);
  }
}

bool has_model(const Job& job) { return !job.model.empty() || job.params || !hand_fields(job).empty(); }

Model resolve_model(const Job& job, const Environment& environment) {
  if (!has_model(job)) {
    throw InputError(
        {.field = "MODEL",
         .problem = "is missing",
         .accepted = "a catalogue id, a config.json, a model directory, a hub id, a size such as 7B, or --params",
         .hint = "vram models lists all"});
  }
  const std::vector<std::string> by_hand = hand_fields(job);
  if (job.model.empty()) return describe_by_hand(job, job.params.value_or(0));

  const bool hub_meant = wants_hub(job);
  const CatalogueEntry* entry =
      hub_meant || written_as_path(job.model) ? nullptr : Catalogue::builtin().find(job.model);
  const bool on_disk =
      !entry && !hub_meant &&
      (written_as_path(job.model) || environment.is_file(job.model) || environment.is_directory(job.model));
  const std::optional<HubId> hub = entry || on_disk ? std::nullopt : hub_id(job);
  if (hub_meant && !hub) no_hub_model(job);
  if (!entry && !on_disk && !hub) {
    const auto size = size_of(job.model);
    if (!size) unknown_model(job.model);
    if (job.params && *job.params != *size) {
      throw InputError({.field = "--params",
                        .value = with_commas(*job.params),
                        .problem = fmt::format("contradicts the model '{}'", job.model)});
    }
    return describe_by_hand(job, *size);
  }
  if (job.params || !by_hand.empty()) {
    throw InputError(
        {.field = job.params ? "--params" : by_hand.front(),
         .problem = fmt::format("describes a model by hand, and '{}' is a known one", printable(job.model)),
         .accepted = "--set FIELD=VALUE to change it"});
  }
  if (hub) return read_hub_model(*hub, job, environment);
  if (!entry) return read_file_model(job.model, job, environment);
  const Catalogue& catalogue = Catalogue::builtin();
  if (job.set.empty()) return catalogue.model(*entry);
  Model model = model_with_changes(catalogue.config(*entry), "catalogue:" + std::string(entry->id),
                                   std::string(entry->id), job.set);
  model.origin = "catalogue";
  return model;
}

Machine resolve_machine(const Job& job, const Knowledge& knowledge) {
  if (job.on.empty()) {
    throw InputError({.field = "--on",
                      .problem = "is missing",
                      .accepted = "cards such as 8xH100, 16x8xH100-80G, 4x80GB or local",
                      .hint = "vram gpus lists all"});
  }
  Machine machine = parse_machine(job.on, knowledge.devices(), knowledge.environment(), knowledge.constants());
  if (job.usable) {
    if (!machine.device.memory_only && *job.usable > machine.device.marketing_bytes) {
      throw InputError({.field = "--usable",
                        .value = format_gib(*job.usable),
                        .problem = fmt::format("exceeds the {} of {}", format_gib(machine.device.marketing_bytes),
                                               machine.device.name)});
    }
    machine.device.process_bytes_low = *job.usable;
    machine.device.process_bytes_high = *job.usable;
  }
  if (job.host_memory) machine.host_bytes_per_node = *job.host_memory;
  if (job.pcie) machine.device.host_link = Link{"as given", *job.pcie, false};
  if (job.price) {
    machine.device.rent_low = *job.price;
    machine.device.rent_high = *job.price;
  }
  return machine;
}

}  // namespace vram
