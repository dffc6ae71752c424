#include "api/models.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "base/checked.h"

namespace vram {
namespace {

std::string folded(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != '-' && c != '_' && c != ' ' && c != '.')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

bool holds(const ModelSummary& m, const std::string& word) {
  const std::string wanted = folded(word);
  if (folded(m.id).find(wanted) != std::string::npos || folded(m.family).find(wanted) != std::string::npos) return true;
  return std::any_of(m.aliases.begin(), m.aliases.end(),
                     [&](const std::string& a) { return folded(a).find(wanted) != std::string::npos; });
}

int64_t kv_elements(const Model& model, bool past_window) {
  int64_t sum = 0;
  for (int64_t i = 0; i < model.layers(); ++i) {
    const Attention& a = model.layer(i).attention;
    const bool bounded = a.kind == AttentionKind::sliding || a.kind == AttentionKind::chunked;
    if (past_window && bounded) continue;
    sum = checked_add(sum, a.cache_elements_per_token());
  }
  return sum;
}

// "0-3, 5, 7-9"
std::string ranges(const std::vector<int64_t>& layers) {
  std::string out;
  for (size_t i = 0; i < layers.size();) {
    size_t j = i;
    while (j + 1 < layers.size() && layers[j + 1] == layers[j] + 1) ++j;
    out += (out.empty() ? "" : ", ") + std::to_string(layers[i]);
    if (j > i) out += "-" + std::to_string(layers[j]);
    i = j + 1;
  }
  return out;
}

std::string_view part_name(TensorGroup::Part part) {
  switch (part) {
    case TensorGroup::Part::text:
      return "text";
    case TensorGroup::Part::encoder:
      return "encoder";
    case TensorGroup::Part::vision:
      return "vision";
    case TensorGroup::Part::audio:
      return "audio";
    case TensorGroup::Part::mtp:
      return "mtp";
  }
  return "text";
}

// Groups in order of first appearance.
void add(std::vector<ParameterGroup>& groups, std::string_view name, const Tensor& t, int64_t copies) {
  auto found = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& g) { return g.name == name; });
  if (found == groups.end()) {
    groups.push_back({std::string(name)});
    found = groups.end() - 1;
  }
  found->tensors = checked_add(found->tensors, copies);
  if (t.learned) found->parameters = checked_add(found->parameters, checked_mul(copies, t.elements()));
  found->stored_bytes = checked_add(found->stored_bytes, checked_mul(copies, t.stored_bytes));
}

std::vector<LayerGroup> layer_groups(const Model& model) {
  std::vector<LayerGroup> out(model.kinds.size());
  std::vector<std::vector<int64_t>> members(model.kinds.size());
  for (int64_t i = 0; i < model.layers(); ++i) {
    members[static_cast<size_t>(model.layer_kind[static_cast<size_t>(i)])].push_back(i);
  }
  for (size_t k = 0; k < out.size(); ++k) {
    out[k].kind = model.kinds[k];
    out[k].count = static_cast<int64_t>(members[k].size());
    out[k].layers = ranges(members[k]);
    out[k].kv_elements_per_token = model.kinds[k].attention.cache_elements_per_token();
    if (members[k].empty()) continue;
    // All layers of a kind have the same tensors: the first one stands for them.
    const int64_t first = members[k].front();
    for (const TensorGroup& g : model.tensors) {
      if (g.part == TensorGroup::Part::vision || g.part == TensorGroup::Part::audio || g.part == TensorGroup::Part::mtp)
        continue;
      if (std::find(g.layers.begin(), g.layers.end(), first) == g.layers.end()) continue;
      for (const Tensor& t : g.tensors) {
        if (t.learned) out[k].parameters = checked_add(out[k].parameters, checked_mul(t.experts, t.elements()));
      }
    }
  }
  out.erase(std::remove_if(out.begin(), out.end(), [](const LayerGroup& g) { return g.count == 0; }), out.end());
  return out;
}

Document strings(const std::vector<std::string>& list) {
  Document::Array out;
  for (const std::string& s : list) out.emplace_back(s);
  return out;
}

Document groups_json(const std::vector<ParameterGroup>& groups) {
  Document::Array out;
  for (const ParameterGroup& g : groups) {
    out.emplace_back(Document::Object{
        {"name", g.name}, {"tensors", g.tensors}, {"parameters", g.parameters}, {"stored_bytes", g.stored_bytes}});
  }
  return out;
}

Document attention_json(const Attention& a) {
  Document out{Document::Object{{"kind", std::string(attention_kind_name(a.kind))}}};
  const std::pair<const char*, int64_t> numbers[] = {{"heads", a.heads},
                                                     {"kv_heads", a.kv_heads},
                                                     {"head_dim", a.head_dim},
                                                     {"value_head_dim", a.value_head_dim},
                                                     {"window", a.window},
                                                     {"q_lora_rank", a.q_lora_rank},
                                                     {"kv_lora_rank", a.kv_lora_rank},
                                                     {"rope_head_dim", a.rope_head_dim},
                                                     {"index_heads", a.index_heads},
                                                     {"index_head_dim", a.index_head_dim},
                                                     {"state_elements", a.state_elements},
                                                     {"conv_elements", a.conv_elements}};
  for (const auto& [name, value] : numbers) {
    if (value != 0) out.set(name, value);
  }
  if (a.shares_kv) out.set("shares_kv", true);
  return out;
}

Document mlp_json(const Mlp& m) {
  static constexpr const char* kKinds[] = {"none", "plain", "gated", "moe"};
  Document out{Document::Object{{"kind", kKinds[static_cast<size_t>(m.kind)]}}};
  const std::pair<const char*, int64_t> numbers[] = {{"ffn", m.ffn},
                                                     {"experts", m.experts},
                                                     {"experts_per_token", m.experts_per_token},
                                                     {"expert_ffn", m.expert_ffn},
                                                     {"shared_ffn", m.shared_ffn}};
  for (const auto& [name, value] : numbers) {
    if (value != 0) out.set(name, value);
  }
  if (!m.activation.empty()) out.set("activation", m.activation);
  return out;
}

}  // namespace

ModelsAnswer answer_models(const std::vector<std::string>& words) {
  const Catalogue& catalogue = Catalogue::builtin();
  ModelsAnswer out;
  out.words = words;
  out.known = static_cast<int64_t>(catalogue.entries().size());
  for (const CatalogueEntry& entry : catalogue.entries()) {
    const Model model = catalogue.model(entry);
    ModelSummary m;
    m.id = entry.id;
    m.aliases.assign(entry.aliases.begin(), entry.aliases.end());
    m.family = model.family;
    if (!std::all_of(words.begin(), words.end(), [&](const std::string& w) { return holds(m, w); })) continue;
    m.dtype = dtype_name(model.dtype);
    if (model.quantization) m.quantization = model.quantization->method;
    m.parameters = model.counts.parameters;
    m.active = model.counts.active;
    m.layers = model.layers();
    m.max_positions = model.max_positions;
    m.kv_elements_per_token = kv_elements(model, false);
    out.models.push_back(std::move(m));
  }
  return out;
}

ModelAnswer answer_model(const Job& job, const Knowledge& knowledge) {
  ModelAnswer out;
  out.model = resolve_model(job, knowledge.environment());
  const Model& model = out.model;
  for (const TensorGroup& g : model.tensors) {
    for (const Tensor& t : g.tensors) {
      const int64_t copies = checked_mul(g.times(), t.experts);
      add(out.by_role, role_name(t.role), t, copies);
      add(out.by_module, t.module, t, copies);
      add(out.by_part, part_name(g.part), t, copies);
    }
  }
  out.layers = layer_groups(model);
  out.kv_elements_per_token = kv_elements(model, false);
  out.kv_elements_past_window = kv_elements(model, true);
  for (int64_t i = 0; i < model.layers(); ++i) {
    const Attention& a = model.layer(i).attention;
    out.state_elements_per_sequence =
        checked_add(out.state_elements_per_sequence, checked_add(a.state_elements, a.conv_elements));
  }
  return out;
}

Document to_json(const ModelsAnswer& answer) {
  Document::Array models;
  for (const ModelSummary& m : answer.models) {
    Document row{Document::Object{{"id", m.id},
                                  {"aliases", strings(m.aliases)},
                                  {"family", m.family},
                                  {"parameters", m.parameters},
                                  {"active_parameters", m.active},
                                  {"layers", m.layers},
                                  {"max_positions", m.max_positions},
                                  {"dtype", m.dtype}}};
    if (!m.quantization.empty()) row.set("quantization", m.quantization);
    row.set("kv_elements_per_token", m.kv_elements_per_token);
    row.set("kv_bytes_per_token_16bit", kv_bytes_16bit(m.kv_elements_per_token));
    models.push_back(std::move(row));
  }
  return Document::Object{{"known", answer.known}, {"models", std::move(models)}};
}

Document to_json(const ModelAnswer& answer, bool tensors) {
  const Model& m = answer.model;
  Document out{Document::Object{{"name", m.name}, {"family", m.family}, {"origin", m.origin}}};
  if (!m.source.empty()) out.set("source", m.source);
  out.set("hypothetical", m.hypothetical);
  out.set("shape_known", m.shape_known);
  out.set("family_known", m.family_known);
  out.set("hidden", m.hidden);
  out.set("vocab", m.vocab);
  out.set("max_positions", m.max_positions);
  out.set("tied_embeddings", m.tied_embeddings);
  out.set("dtype", dtype_name(m.dtype));
  if (m.quantization) {
    out.set("quantization", Document::Object{{"method", m.quantization->method},
                                             {"detail", m.quantization->detail},
                                             {"bits_per_weight", m.quantization->bits_per_weight}});
  }
  const Counts& c = m.counts;
  out.set("counts", Document::Object{{"parameters", c.parameters},
                                     {"active", c.active},
                                     {"text", c.text},
                                     {"encoder", c.encoder},
                                     {"vision", c.vision},
                                     {"audio", c.audio},
                                     {"mtp", c.mtp},
                                     {"embedding", c.embedding},
                                     {"head", c.head},
                                     {"expert", c.expert},
                                     {"stored_elements", c.stored_elements},
                                     {"stored_bytes", c.stored_bytes},
                                     {"loaded_bytes", c.loaded_bytes},
                                     {"tensors", c.tensors}});
  out.set("kv_elements_per_token", answer.kv_elements_per_token);
  out.set("kv_bytes_per_token_16bit", kv_bytes_16bit(answer.kv_elements_per_token));
  out.set("kv_bytes_per_token_16bit_past_window", kv_bytes_16bit(answer.kv_elements_past_window));
  out.set("state_elements_per_sequence", answer.state_elements_per_sequence);
  Document::Array layers;
  for (const LayerGroup& g : answer.layers) {
    layers.emplace_back(Document::Object{{"count", g.count},
                                         {"layers", g.layers},
                                         {"parameters", g.parameters},
                                         {"kv_elements_per_token", g.kv_elements_per_token},
                                         {"attention", attention_json(g.kind.attention)},
                                         {"mlp", mlp_json(g.kind.mlp)}});
  }
  out.set("layer_kinds", std::move(layers));
  out.set("by_role", groups_json(answer.by_role));
  out.set("by_module", groups_json(answer.by_module));
  out.set("by_part", groups_json(answer.by_part));
  if (tensors) {
    Document::Array list;
    for (const TensorGroup& g : m.tensors) {
      for (const Tensor& t : g.tensors) {
        Document::Array shape;
        for (int64_t n : t.shape) shape.emplace_back(n);
        list.emplace_back(Document::Object{{"name", t.name},
                                           {"shape", std::move(shape)},
                                           {"dtype", dtype_name(t.dtype)},
                                           {"role", role_name(t.role)},
                                           {"shard", shard_name(t.shard)},
                                           {"module", t.module},
                                           {"part", part_name(g.part)},
                                           {"layers", ranges(g.layers)},
                                           {"copies", checked_mul(g.times(), t.experts)},
                                           {"learned", t.learned},
                                           {"elements", t.elements()},
                                           {"stored_bytes", t.stored_bytes}});
      }
    }
    out.set("tensors", std::move(list));
  }
  out.set("fields_used", strings(m.fields_used));
  out.set("assumptions", strings(m.assumptions));
  return out;
}

}  // namespace vram
