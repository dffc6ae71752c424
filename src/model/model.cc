#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "model/extras.h"
#include "model/families/families.h"
#include "model/quantization.h"

namespace vram {

namespace {

using arch::Assembly;
using arch::Decoder;
using arch::Family;
using arch::Reader;

// The config of the language model inside a multimodal one.
std::optional<Fields> text_part(const Fields& root) {
  for (const char* name : {"text_config", "llm_config", "language_config"}) {
    if (auto inner = root.object({name})) return inner;
  }
  if (auto thinker = root.object({"thinker_config"})) {
    if (auto inner = thinker->object({"text_config"})) return inner;
  }
  return std::nullopt;
}

void read_dtype(const Fields& root, const Fields& text, Model& model) {
  std::string name = text.string_or({"torch_dtype", "dtype"}, "");
  const bool inside = !name.empty();
  if (!inside) name = root.string_or({"torch_dtype", "dtype"}, "");
  if (name.empty() || name == "auto") {
    model.assume({"model.assume.not_given", {{"field", "torch_dtype"}, {"value", "bfloat16"}}});
    return;
  }
  const auto dtype = parse_dtype(name);
  const Fields& where = inside ? text : root;
  if (!dtype || bits(*dtype) < 8) {
    where.refuse(where.has({"torch_dtype"}) ? "torch_dtype" : "dtype", "is no dtype of weights",
                 "bfloat16, float16 or float32");
  }
  model.dtype = *dtype;
}

// Nested configs are often saved without what equals their class's defaults (LLaVA-1.5's text part names three fields).
Document with_class_defaults(const Document& text, const std::string& type, Model& model) {
  struct Default {
    const char* field;
    int64_t llama, mistral;
  };
  static constexpr Default kDefaults[] = {
      {"hidden_size", 4096, 4096},         {"num_hidden_layers", 32, 32}, {"num_attention_heads", 32, 32},
      {"intermediate_size", 11008, 14336}, {"vocab_size", 32000, 32000},
  };
  Document full = text;
  const bool mistral = type == "mistral";
  if (type != "llama" && !mistral) return full;
  for (const Default& d : kDefaults) {
    const Document* given = text.find(d.field);
    if (given && !given->is_null()) continue;
    const int64_t value = mistral ? d.mistral : d.llama;
    full.set(d.field, Document(value, text.line()));
    model.assume({"model.assume.text_default", {{"field", d.field}, {"value", fmt::format("{}", value)}}});
  }
  if (mistral && !text.find("num_key_value_heads")) full.set("num_key_value_heads", Document(int64_t{8}, text.line()));
  return full;
}

void note_fields(const Fields& fields, Model& model) {
  for (const std::string& name : fields.used()) model.fields_used.push_back(fields.prefix() + name);
}

void check_size(const Model& model, const std::string& file) {
  if (model.counts.parameters <= 0) {
    throw InputError({.file = file, .problem = "describes a model without parameters", .accepted = "a config.json"});
  }
  if (model.counts.parameters > kMaxParameters) {
    throw InputError(
        {.file = file,
         .problem = fmt::format("describes a model of {} parameters", with_commas(model.counts.parameters)),
         .accepted = fmt::format("sizes of a real model, at most {} parameters", with_commas(kMaxParameters))});
  }
}

Model read_config(const Document& config, const Document* hf_quant, const std::string& file, std::string name) {
  const Fields root(config, file);
  const std::string type = root.string_or({"model_type"}, "");
  Model model;
  model.name = std::move(name);
  model.family = type;
  model.origin = fmt::format("file {}", file);
  std::optional<Fields> inner = text_part(root);
  Document completed;
  if (inner) {
    completed = with_class_defaults(inner->document(), inner->string_or({"model_type"}, "llama"), model);
    inner = Fields(completed, file, std::string(inner->prefix()));
  }
  const Fields& text = inner ? *inner : root;
  read_dtype(root, text, model);

  const Family* family = arch::find_family(type);
  const Family* text_family = family;
  if (family && !family->decoder && !family->whole) {
    const std::string inner_type = inner ? inner->string_or({"model_type"}, "llama") : std::string("llama");
    text_family = arch::find_family(inner_type);
    if (text_family && !text_family->decoder) text_family = nullptr;
    if (!text_family) {
      model.family_known = false;
      model.assume({"model.assume.text_type", {{"type", printable(inner_type)}}});
    }
  } else if (!family) {
    model.family_known = false;
    if (type.empty()) {
      model.assume({"model.assume.no_type", {}});
    } else {
      model.assume({"model.assume.type", {{"type", printable(type)}}});
    }
    if (root.has({"vision_config", "audio_config"})) {
      model.assume({"model.assume.parts_uncounted", {}});
    }
  }

  const Reader reader(root, text, model);
  Assembly assembly(model);
  if (family && family->whole) {
    family->whole(reader, assembly);
  } else {
    Decoder decoder =
        text_family && text_family->decoder ? text_family->decoder(reader) : arch::generic_decoder(reader);
    if (inner && family && !family->root.empty()) {
      decoder.style.root = family->root;
      if (!decoder.style.head.empty()) decoder.style.head = family->head;
    }
    arch::apply_published_layout(model.name, decoder);
    arch::build_decoder(decoder, assembly);
    if (family && family->towers) family->towers(reader, assembly);
  }
  arch::add_published_extras(model, reader);
  arch::apply_declared_quantization(model, root, text, hf_quant, file);
  arch::finish_counts(model);
  check_size(model, file);
  note_fields(root, model);
  if (inner) note_fields(*inner, model);
  return model;
}

Model read_checked(const Document& config, const Document* hf_quant, const std::string& file, std::string name) {
  try {
    return read_config(config, hf_quant, file, std::move(name));
  } catch (const OverflowError&) {
    throw InputError({.file = file,
                      .line = config.line(),
                      .problem = "describes a model of more than 2^63 bytes",
                      .accepted = "sizes of a real model"});
  }
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

}  // namespace

void Model::assume(Note note) {
  assumptions.push_back(say(Lang::en, note));
  assumption_notes.push_back(std::move(note));
}

std::vector<std::string> Model::assumed(Lang lang) const {
  std::vector<std::string> out;
  out.reserve(assumption_notes.size());
  for (const Note& note : assumption_notes) out.push_back(say(lang, note));
  return out;
}

Model model_from_config(const Document& config, const std::string& file, std::string name) {
  return read_checked(config, nullptr, file, std::move(name));
}

Model model_from_config(const Document& config, const Document& hf_quant_config, const std::string& file,
                        std::string name) {
  return read_checked(config, &hf_quant_config, file, std::move(name));
}

Model model_of_size(int64_t parameters) {
  if (parameters < 1 || parameters > kMaxParameters) {
    throw InputError({.field = "--params",
                      .value = fmt::format("{}", parameters),
                      .problem = "is out of range",
                      .accepted = "a number of parameters such as 7B"});
  }
  Model model;
  model.origin = "by size";
  model.family = "unknown";
  model.shape_known = false;
  model.family_known = false;
  model.counts.parameters = model.counts.text = model.counts.active = model.counts.stored_elements = parameters;
  model.counts.stored_bytes = model.counts.loaded_bytes = checked_mul(2, parameters);
  model.assume({"model.assume.size_only", {}});
  return model;
}

void for_each_tensor(
    const Model& model,
    const std::function<void(const std::string& name, const Tensor&, int64_t layer, int64_t expert)>& visit) {
  std::string name;
  for (const TensorGroup& group : model.tensors) {
    const size_t times = group.layers.empty() ? 1 : group.layers.size();
    for (size_t i = 0; i < times; ++i) {
      const int64_t layer = group.layers.empty() ? -1 : group.layers[i];
      for (const Tensor& t : group.tensors) {
        const bool by_expert = t.experts > 1 || t.name.find("{expert}") != std::string::npos;
        for (int64_t e = 0; e < t.experts; ++e) {
          name = t.name;
          if (layer >= 0) replace_all(name, "{layer}", std::to_string(layer));
          if (by_expert) replace_all(name, "{expert}", std::to_string(e));
          visit(name, t, layer, by_expert ? e : -1);
        }
      }
    }
  }
}

std::vector<std::string_view> known_families() {
  std::vector<std::string_view> out;
  for (const Family& f : arch::families()) out.push_back(f.type);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace vram
