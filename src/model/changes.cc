#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "formats/formats.h"
#include "model/model.h"
#include "model/reader.h"

namespace vram {

namespace {

// A short name and the config fields it may stand for, the usual one first.
struct Canonical {
  std::string_view name;
  std::array<std::string_view, 7> fields;
};

constexpr Canonical kCanonical[] = {
    {"layers", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}},
    {"hidden", {"hidden_size", "n_embd", "n_embed", "d_model"}},
    {"heads", {"num_attention_heads", "n_head", "n_heads", "num_heads"}},
    {"kv_heads", {"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"}},
    {"head_dim", {"head_dim", "kv_channels", "d_kv"}},
    {"ffn", {"intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff"}},
    {"vocab", {"vocab_size", "padded_vocab_size"}},
    {"positions", {"max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len"}},
    {"experts", {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}},
    {"experts_per_token",
     {"num_experts_per_tok", "moe_topk", "moe_k", "moe_top_k", "top_k_experts", "num_experts_per_token"}},
    {"expert_ffn", {"moe_intermediate_size", "expert_ffn_hidden_size"}},
    {"window", {"sliding_window", "sliding_window_size"}},
    {"tied", {"tie_word_embeddings"}},
    {"kv_lora_rank", {"kv_lora_rank"}},
};

// Lists of layer numbers, which must not name layers that are gone; those of Kimi count from 1.
constexpr std::string_view kLayerNumbers[] = {
    "mlp_only_layers",        "moe_layers", "full_attn_idxs",  "attn_layer_indices",
    "cross_attention_layers", "kda_layers", "full_attn_layers"};

Document* member(Document& object, std::string_view name) {
  for (Document::Member& m : object.object()) {
    if (m.first == name) return &m.second;
  }
  return nullptr;
}

Document* text_object(Document& config) {
  for (const char* name : {"text_config", "llm_config", "language_config"}) {
    Document* inner = member(config, name);
    if (inner && inner->is_object()) return inner;
  }
  return &config;
}

Document parse_value(std::string_view text, const std::string& field) {
  if (text.empty()) throw InputError({.field = "--set " + field, .problem = "has no value", .accepted = "FIELD=VALUE"});
  if (text == "true" || text == "false") return Document(text == "true");
  if (text == "null") return Document();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return Document(value);
  const bool number = text.find_first_not_of("0123456789.+-eE") == std::string_view::npos;
  if (number) {
    // Sizes are whole: let the reader of the field refuse a fraction.
    return parse_json(text, "--set " + field);
  }
  return Document(std::string(text));
}

// Per-layer lists follow the number of layers: cut, or continued from their beginning.
void resize_layer_lists(Document& object, int64_t before, int64_t after) {
  for (Document::Member& m : object.object()) {
    if (m.second.is_object()) {
      resize_layer_lists(m.second, before, after);
      continue;
    }
    if (m.second.is_string() && m.first.find("pattern") != std::string::npos &&
        static_cast<int64_t>(m.second.string().size()) == before) {
      const std::string old = m.second.string();
      std::string text;
      for (int64_t i = 0; i < after; ++i) text += old[static_cast<size_t>(i % before)];
      m.second = Document(text, m.second.line());
      continue;
    }
    if (!m.second.is_array()) continue;
    Document::Array& list = m.second.array();
    const bool numbers =
        std::find(std::begin(kLayerNumbers), std::end(kLayerNumbers), m.first) != std::end(kLayerNumbers);
    if (numbers) {
      const int64_t last = m.first == "kda_layers" || m.first == "full_attn_layers" ? after : after - 1;
      list.erase(std::remove_if(list.begin(), list.end(),
                                [last](const Document& d) { return d.is_integer() && d.integer() > last; }),
                 list.end());
      continue;
    }
    const auto size = static_cast<int64_t>(list.size());
    if (before < 2 || (size != before && size != before + 1)) continue;
    Document::Array out;
    out.reserve(static_cast<size_t>(after));
    for (int64_t i = 0; i < after; ++i) out.push_back(list[static_cast<size_t>(i % before)]);
    list = std::move(out);
  }
}

std::string resolve_field(const Document& text, std::string_view name) {
  for (const Canonical& c : kCanonical) {
    if (c.name != name) continue;
    for (std::string_view field : c.fields) {
      if (!field.empty() && text.find(field)) return std::string(field);
    }
    return std::string(c.fields[0]);
  }
  if (text.find(name)) return std::string(name);
  for (const Canonical& c : kCanonical) {
    if (std::find(c.fields.begin(), c.fields.end(), name) != c.fields.end()) return std::string(name);
  }
  std::vector<std::string_view> known;
  for (const Canonical& c : kCanonical) known.push_back(c.name);
  std::string accepted = fmt::format("{}, or a field of the config", fmt::join(known, ", "));
  for (const Document::Member& m : text.object()) known.push_back(m.first);
  throw InputError({.field = "--set",
                    .value = std::string(name),
                    .problem = "is no field of this model",
                    .accepted = std::move(accepted),
                    .near_miss = near_miss(name, known)});
}

bool same_shape(const Model& a, const Model& b) {
  return a.kinds == b.kinds && a.layer_kind == b.layer_kind && a.counts.parameters == b.counts.parameters &&
         a.counts.stored_bytes == b.counts.stored_bytes && a.max_positions == b.max_positions;
}

}  // namespace

Model model_with_changes(const Document& config, const std::string& file, std::string name,
                         const std::vector<std::string>& changes) {
  if (changes.empty()) return model_from_config(config, file, std::move(name));
  if (!config.is_object()) return model_from_config(config, file, std::move(name));
  Document changed = config;
  std::vector<std::pair<std::string, std::string>> done;  // as written, config field
  for (const std::string& change : changes) {
    const size_t equals = change.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError({.field = "--set",
                        .value = change,
                        .problem = "is no change",
                        .accepted = "FIELD=VALUE, such as kv_heads=8"});
    }
    const std::string field = change.substr(0, equals);
    Document& text = *text_object(changed);
    const std::string target = resolve_field(text, field);
    Document value = parse_value(std::string_view(change).substr(equals + 1), field);
    const Document* old = text.find(target);
    const std::optional<int64_t> before = old && old->is_integer() ? std::optional(old->integer()) : std::nullopt;
    const std::optional<int64_t> after = value.is_integer() ? std::optional(value.integer()) : std::nullopt;
    const auto& layer_names = kCanonical[0].fields;
    const bool layers = std::find(layer_names.begin(), layer_names.end(), target) != layer_names.end();
    if (layers && before && after && *after >= 1 && *after <= arch::kMaxLayers)
      resize_layer_lists(text, *before, *after);
    text.set(target, std::move(value));
    done.emplace_back(field, target);
  }
  const Model original = model_from_config(config, file, name);
  try {
    Model model = model_from_config(changed, file, std::move(name));
    model.hypothetical = true;
    if (same_shape(original, model)) {
      model.assume({"model.assume.no_effect",
                    {{"changes", fmt::format("{}", fmt::join(changes, " "))}, {"family", model.family}}});
    }
    return model;
  } catch (const InputError& e) {
    // The config itself is sound, so a change is at fault: name it as it was given.
    Fault fault = e.fault();
    for (size_t i = 0; i < done.size(); ++i) {
      const std::string& target = done[i].second;
      const bool named = fault.field.size() >= target.size() &&
                         fault.field.compare(fault.field.size() - target.size(), std::string::npos, target) == 0;
      if (!named && done.size() > 1) continue;
      fault.file.clear();
      fault.line = 0;
      if (!named) fault.problem = fmt::format("makes {} '{}': {}", fault.field, fault.value, fault.problem);
      if (!named) fault.value = changes[i].substr(changes[i].find('=') + 1);
      fault.field = "--set " + done[i].first;
      throw InputError(std::move(fault));
    }
    throw;
  }
}

namespace {

int64_t round_to(double value, int64_t multiple) {
  return std::max<int64_t>(multiple,
                           static_cast<int64_t>(std::llround(value / static_cast<double>(multiple))) * multiple);
}

void check_hand(int64_t value, const char* field, int64_t high) {
  if (value >= 0 && value <= high) return;
  throw InputError({.field = field,
                    .value = fmt::format("{}", value),
                    .problem = "is out of range",
                    .accepted = fmt::format("a whole number from 1 to {}", high)});
}

}  // namespace

Document config_by_hand(const DecoderByHand& d, std::vector<Note>& assumptions) {
  check_hand(d.layers, "--layers", arch::kMaxLayers);
  check_hand(d.hidden, "--hidden", 10'000'000);
  check_hand(d.heads, "--heads", 10'000'000);
  check_hand(d.kv_heads, "--kv-heads", 10'000'000);
  check_hand(d.head_dim, "--head-dim", 10'000'000);
  check_hand(d.ffn, "--ffn", 1'000'000'000);
  check_hand(d.vocab, "--vocab", 1'000'000'000);
  check_hand(d.parameters, "--params", kMaxParameters);
  const auto assume = [&](const char* what, int64_t value) {
    assumptions.push_back({"model.assume.not_given", {{"field", what}, {"value", fmt::format("{}", value)}}});
    return value;
  };
  DecoderByHand s = d;
  if (s.vocab == 0) s.vocab = assume("vocab", s.gpt ? 50257 : 32000);
  if (s.hidden == 0) {
    if (s.parameters == 0) {
      throw InputError({.field = "--hidden", .problem = "is missing", .accepted = "a width such as 4096, or --params"});
    }
    // A layer has about 12 hidden^2 numbers; published decoders have about hidden / 128 layers.
    const auto p = static_cast<double>(s.parameters);
    const double layers = s.layers > 0 ? static_cast<double>(s.layers) : 0;
    const double width = layers > 0 ? std::sqrt(p / (12 * layers)) : std::cbrt(p * 128 / 12);
    s.hidden = assume("hidden", round_to(width, width >= 1024 ? 128 : 64));
  }
  if (s.layers == 0) {
    const double h = static_cast<double>(s.hidden);
    const double body = static_cast<double>(s.parameters) - 2 * static_cast<double>(s.vocab) * h;
    const double count = s.parameters > 0 ? body / (12 * h * h) : h / 128;
    s.layers = assume("layers", std::clamp<int64_t>(static_cast<int64_t>(std::llround(count)), 1, arch::kMaxLayers));
  }
  if (s.heads == 0) {
    const int64_t dim = s.head_dim > 0 ? s.head_dim : s.hidden >= 2048 ? 128 : 64;
    s.heads = assume("heads", std::max<int64_t>(1, s.hidden / dim));
    if (s.head_dim == 0 && s.hidden % s.heads != 0) s.head_dim = assume("head_dim", dim);
  }
  if (s.kv_heads == 0) s.kv_heads = assume("kv_heads", s.heads);
  if (s.ffn == 0)
    s.ffn = assume("ffn", s.gpt ? checked_mul(4, s.hidden) : round_up(ceil_div(checked_mul(8, s.hidden), 3), 256));
  if (s.positions == 0) s.positions = assume("positions", s.gpt ? 2048 : 4096);
  if (!s.tied_embeddings) {
    s.tied_embeddings = s.gpt;
    assumptions.push_back(
        {"model.assume.not_given", {{"field", "tie_word_embeddings"}, {"value", s.gpt ? "true" : "false"}}});
  }
  Document c;
  c.set("model_type", "decoder");
  c.set("hidden_size", s.hidden);
  c.set("num_hidden_layers", s.layers);
  c.set("num_attention_heads", s.heads);
  c.set("num_key_value_heads", s.kv_heads);
  if (s.head_dim > 0) c.set("head_dim", s.head_dim);
  c.set("intermediate_size", s.ffn);
  c.set("vocab_size", s.vocab);
  c.set("max_position_embeddings", s.positions);
  c.set("tie_word_embeddings", *s.tied_embeddings);
  c.set("hidden_act", s.gpt ? "gelu" : "silu");
  c.set("gated_mlp", !s.gpt);
  c.set("norm", s.gpt ? "layernorm" : "rmsnorm");
  c.set("position_embedding", s.gpt ? "learned" : "rope");
  c.set("attention_bias", s.gpt);
  c.set("mlp_bias", s.gpt);
  c.set("torch_dtype", "bfloat16");
  if (s.experts > 0) {
    c.set("num_experts", s.experts);
    c.set("num_experts_per_tok",
          s.experts_per_token > 0 ? s.experts_per_token : assume("experts_per_token", std::min<int64_t>(2, s.experts)));
    c.set("moe_intermediate_size", s.expert_ffn > 0 ? s.expert_ffn : assume("expert_ffn", s.ffn));
  }
  return c;
}

Document config_by_hand(const DecoderByHand& decoder, std::vector<std::string>& assumptions) {
  std::vector<Note> notes;
  Document config = config_by_hand(decoder, notes);
  for (const Note& note : notes) assumptions.push_back(say(Lang::en, note));
  return config;
}

Model model_by_hand(const DecoderByHand& decoder) {
  std::vector<Note> notes;
  const Document config = config_by_hand(decoder, notes);
  Model model;
  try {
    model = model_from_config(config, "by hand", decoder.name.empty() ? "decoder by hand" : decoder.name);
  } catch (const InputError& e) {
    // Nobody wrote that config: the fault is in the options it was made from.
    Fault fault = e.fault();
    fault.file.clear();
    fault.line = 0;
    for (const Canonical& c : kCanonical) {
      if (std::find(c.fields.begin(), c.fields.end(), fault.field) == c.fields.end()) continue;
      fault.field = "--" + std::string(c.name);
      std::replace(fault.field.begin(), fault.field.end(), '_', '-');
    }
    throw InputError(std::move(fault));
  }
  model.origin = "by hand";
  for (Note& note : notes) model.assume(std::move(note));
  return model;
}

}  // namespace vram
