#include "model/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "model/patterns.h"
#include "model/storage.h"
#include "model/tensors.h"

namespace vram::arch {

namespace {

using Layout = Storage::Layout;
using Manner = ModulePatterns::Manner;

// A declared scheme: what is converted, how, and what is left alone.
struct Declared {
  std::string method, detail, kv_cache;
  Storage storage;  // Layout::plain: nothing unless an override says so
  Storage experts;  // where routed experts differ; plain: as `storage`
  Manner manner = Manner::transformers;
  std::vector<std::string> ignored;
  std::vector<std::pair<std::string, Storage>> expressions;  // module expressions with a storage of their own
  std::unordered_map<std::string, Storage> modules;          // module names with a storage of their own
  bool head = false;                                         // the output head is converted too
  bool towers = false;                                       // vision and audio parts are converted too
  bool experts_only = false;
  Storage head_storage;  // of the head, where it differs
  std::string unknown;   // why the scheme could not be applied
};

bool is_expert(const Tensor& t) { return t.shard == Shard::expert_column || t.shard == Shard::expert_row; }

bool has_digit(const std::string& s) { return s.find_first_of("0123456789") != std::string::npos; }

int64_t group_size(const Fields& q, Fields::Names names, int64_t fallback) {
  const int64_t g = q.integer_or(names, fallback, {-1, int64_t{1} << 30});
  return g <= 0 ? 0 : g;
}

std::vector<std::string> words(const Fields& q, Fields::Names names) {
  const Document* d = q.find(names);
  if (!d || !d->is_array()) return {};
  return q.strings(names).value_or(std::vector<std::string>());
}

std::string bits_detail(int64_t bits, int64_t group) {
  return group > 0 ? fmt::format("{} bits, groups of {}", bits, group) : fmt::format("{} bits", bits);
}

Storage fp8_block_storage(int64_t rows, int64_t columns) {
  Storage s;
  s.layout = Layout::fp8_block;
  s.block_rows = rows;
  s.block_columns = columns;
  return s;
}

void read_gptq(const Fields& q, Declared& d) {
  const int64_t bits = q.integer_or({"bits", "w_bit"}, 4, {2, 8});
  d.storage.layout = Layout::gptq;
  d.storage.bits = static_cast<int>(bits);
  d.storage.group = group_size(q, {"group_size"}, 128);
  d.head = q.boolean_or({"lm_head"}, false);
  d.ignored = words(q, {"modules_to_not_convert"});
  d.detail = bits_detail(bits, d.storage.group);
  // GPTQModel: "-:expression" leaves modules alone, "+:expression" (or none) gives them widths of their own.
  if (const auto dynamic = q.object({"dynamic"})) {
    for (const Document::Member& m : dynamic->document().object()) {
      std::string expression = m.first;
      const bool skip = expression.rfind("-:", 0) == 0;
      if (skip || expression.rfind("+:", 0) == 0) expression = expression.substr(2);
      Storage s = d.storage;
      if (skip) {
        s = Storage{};
      } else if (m.second.is_object()) {
        const Fields own(m.second, q.file(), q.prefix() + "dynamic.");
        s.bits = static_cast<int>(own.integer_or({"bits"}, bits, {2, 8}));
        s.group = group_size(own, {"group_size"}, d.storage.group > 0 ? d.storage.group : -1);
      }
      d.expressions.emplace_back(expression, s);
    }
  }
}

void read_awq(const Fields& q, Declared& d) {
  const int64_t bits = q.integer_or({"bits", "w_bit"}, 4, {2, 8});
  d.storage.layout = Layout::awq;
  d.storage.bits = static_cast<int>(bits);
  d.storage.group = group_size(q, {"group_size", "q_group_size"}, 128);
  d.ignored = words(q, {"modules_to_not_convert"});
  d.detail = bits_detail(bits, d.storage.group);
}

void read_bitsandbytes(const Fields& q, Declared& d) {
  const bool four = q.boolean_or({"load_in_4bit", "_load_in_4bit"}, false);
  const bool eight = q.boolean_or({"load_in_8bit", "_load_in_8bit"}, false);
  if (four && eight) q.refuse("load_in_4bit", "contradicts load_in_8bit", "one of the two");
  d.towers = true;
  d.ignored = words(q, {"llm_int8_skip_modules"});
  if (four) {
    d.storage.layout = Layout::bnb4;
    d.storage.double_quant = q.boolean_or({"bnb_4bit_use_double_quant"}, false);
    d.detail = fmt::format("{}, blocks of 64{}", q.string_or({"bnb_4bit_quant_type"}, "fp4"),
                           d.storage.double_quant ? ", double quantization" : "");
  } else {
    d.storage.layout = Layout::bnb8;
    d.detail = "8 bits a row";
  }
}

void read_fp8(const Fields& q, const Model& model, bool fp4_experts, Declared& d) {
  d.ignored = words(q, {"modules_to_not_convert", "ignored_layers"});
  const auto block = q.integers({"weight_block_size"}, {1, int64_t{1} << 20});
  if (block) {
    if (block->size() != 2) q.refuse("weight_block_size", "must have two numbers", "[128, 128]");
    d.storage = fp8_block_storage((*block)[0], (*block)[1]);
    d.detail = fmt::format("e4m3, blocks of {} x {}", (*block)[0], (*block)[1]);
    // V4 stores its power-of-two scales as exponents; V3.1 and V3.2 round them too, but keep them in 32 bits.
    if (model.family == "deepseek_v4" && q.string_or({"scale_fmt"}, "") == "ue8m0") d.storage.scale = Dtype::f8_e8m0;
  } else {
    d.storage.layout = Layout::fp8_tensor;
    d.storage.input_scale = q.string_or({"activation_scheme"}, "dynamic") == "static";
    d.detail = "e4m3, one scale a matrix";
  }
  if (fp4_experts) {
    d.experts.layout = Layout::mxfp4;
    d.detail += "; experts in 4 bits, an exponent per 32";
  }
}

// What ModelOpt calls its algorithms.
std::optional<Storage> modelopt_storage(const std::string& algorithm, int64_t group) {
  Storage s;
  if (algorithm == "FP8") {
    s.layout = Layout::fp8_tensor;
    s.input_scale = true;
  } else if (algorithm == "FP8_PER_CHANNEL_PER_TOKEN") {
    s.layout = Layout::fp8_channel;
  } else if (algorithm == "FP8_PB_WO" || algorithm == "FP8_PB_REAL") {
    s = fp8_block_storage(128, 128);
  } else if (algorithm == "NVFP4" || algorithm == "NVFP4_AWQ") {
    s.layout = Layout::nvfp4;
    s.input_scale = true;
  } else if (algorithm == "W4A16_NVFP4") {
    s.layout = Layout::nvfp4;
  } else if (algorithm == "MXFP4" || algorithm == "W4A8_MXFP4_FP8") {
    s.layout = Layout::mxfp4;
  } else if (algorithm == "MXFP8") {
    s.layout = Layout::mxfp8;
  } else if (algorithm == "W4A16_AWQ" || algorithm == "W4A8_AWQ") {
    s.layout = Layout::awq;
    s.bits = 4;
    s.group = group > 0 ? group : 128;
  } else if (algorithm == "W8A16" || algorithm == "INT8_SQ" || algorithm == "W8A8_SQ_PER_CHANNEL") {
    s.layout = Layout::int8_channel;
  } else {
    return std::nullopt;
  }
  return s;
}

void read_modelopt(const Fields& q, Declared& d) {
  d.manner = Manner::shell;
  d.ignored = words(q, {"exclude_modules", "ignore"});
  d.towers = true;
  d.head = true;
  const std::string algorithm = q.string_or({"quant_algo"}, "NVFP4");
  d.kv_cache = q.string_or({"kv_cache_quant_algo"}, "");
  if (d.kv_cache.empty()) {
    if (const Document* scheme = q.find({"kv_cache_scheme"}); scheme && scheme->is_string()) {
      d.kv_cache = scheme->string();
    } else if (const auto described = q.object({"kv_cache_scheme"})) {
      d.kv_cache = described->integer_or({"num_bits"}, 8, {1, 64}) == 8 ? "FP8" : "";
    }
  }
  const int64_t group = group_size(q, {"group_size"}, 0);
  if (const auto layers = q.object({"quantized_layers"})) {
    for (const Document::Member& m : layers->document().object()) {
      if (!m.second.is_object()) layers->refuse(m.first, "is no object", "an object with quant_algo");
      const Fields own(m.second, q.file(), q.prefix() + "quantized_layers.");
      const std::string name = own.string_or({"quant_algo"}, algorithm);
      if (const auto s = modelopt_storage(name, group_size(own, {"group_size"}, 0))) {
        d.modules.emplace(m.first, *s);
      } else {
        d.unknown = fmt::format("algorithm '{}'", printable(name));
      }
    }
  }
  d.detail = algorithm;
  if (algorithm == "MIXED_PRECISION") return;
  if (const auto s = modelopt_storage(algorithm, group)) {
    d.storage = *s;
  } else {
    d.unknown = fmt::format("algorithm '{}'", printable(algorithm));
  }
}

// The weights of one of compressed-tensors' config_groups.
std::optional<Storage> compressed_weights(const Fields& weights, const std::string& format) {
  Storage s;
  const int64_t bits = weights.integer_or({"num_bits"}, 8, {1, 16});
  const bool by_float = format.find("float") != std::string::npos || format.find("fp4") != std::string::npos;
  const std::string type = weights.string_or({"type"}, by_float ? "float" : "int");
  const std::string strategy = weights.string_or({"strategy"}, "tensor");
  s.bits = static_cast<int>(bits);
  s.group = group_size(weights, {"group_size"}, 0);
  s.symmetric = weights.boolean_or({"symmetric"}, true);
  s.scale = Dtype::bf16;
  const Document* order = weights.find({"actorder"});
  s.act_order = order && order->is_string() && order->string() == "group";
  if (format == "nvfp4-pack-quantized" || (type == "float" && bits == 4 && s.group == 16)) {
    s.layout = Layout::nvfp4;
  } else if (format == "mxfp4-pack-quantized" || (type == "float" && bits == 4)) {
    s.layout = Layout::mxfp4;
  } else if (format == "mxfp8-quantized") {
    s.layout = Layout::mxfp8;
  } else if (type == "float" && bits == 8) {
    const auto block = weights.integers({"block_structure"}, {1, int64_t{1} << 20});
    if (strategy == "block") {
      s.layout = Layout::fp8_block;
      if (block && block->size() == 2) {
        s.block_rows = (*block)[0];
        s.block_columns = (*block)[1];
      }
    } else {
      s.layout = strategy == "channel" ? Layout::fp8_channel : Layout::fp8_tensor;
    }
  } else if (type == "int" && (format == "pack-quantized" || bits < 8)) {
    s.layout = Layout::int_group;
  } else if (type == "int" && bits == 8) {
    s.layout = s.group > 0 ? Layout::int_group : Layout::int8_channel;
  } else {
    return std::nullopt;
  }
  return s;
}

void read_compressed(const Fields& q, Declared& d) {
  d.manner = Manner::compressed_tensors;
  d.ignored = words(q, {"ignore"});
  d.head = true;
  d.towers = true;
  const std::string format = q.string_or({"format"}, "dense");
  d.detail = format;
  if (format == "dense") return;
  if (format == "sparse-24-bitmask" || format == "sparse-bitmask" || format == "marlin-24") {
    d.unknown = fmt::format("format '{}'", format);
    return;
  }
  const auto groups = q.object({"config_groups"});
  if (!groups) {
    // The short form: one group for every linear layer.
    if (!q.has({"num_bits"})) q.refuse("config_groups", "is missing", "an object of groups, or num_bits");
    const auto storage = compressed_weights(q, format);
    if (!storage) {
      d.unknown = fmt::format("format '{}'", printable(format));
      return;
    }
    d.storage = *storage;
    d.detail = fmt::format("{}, {}", format, bits_detail(storage->bits, storage->group));
    return;
  }
  for (const Document::Member& m : groups->document().object()) {
    if (!m.second.is_object()) groups->refuse(m.first, "is no object", "an object with targets and weights");
    const Fields group(m.second, q.file(), q.prefix() + "config_groups." + m.first + ".");
    const auto weights = group.object({"weights"});
    if (!weights) continue;
    auto storage = compressed_weights(*weights, group.string_or({"format"}, format));
    const auto inputs = group.object({"input_activations"});
    if (storage) storage->input_scale = inputs && !inputs->boolean_or({"dynamic"}, false);
    if (!storage) {
      d.unknown = fmt::format("weights of group '{}'", printable(m.first));
      return;
    }
    for (const std::string& target : words(group, {"targets"})) {
      if (target == "Linear") {
        d.storage = *storage;
      } else if (target.rfind("re:", 0) == 0) {
        d.expressions.emplace_back(target.substr(3), *storage);
      } else {
        d.modules.emplace(target, *storage);
      }
    }
    d.detail = fmt::format("{}, {}", format, bits_detail(storage->bits, storage->group));
  }
}

void read_hqq(const Fields& q, Declared& d) {
  std::optional<Fields> inner = q.object({"quant_config"});
  std::optional<Fields> weights = inner ? inner->object({"weight_quant_params"}) : q.object({"weight_quant_params"});
  const Fields& w = weights ? *weights : inner ? *inner : q;
  const int64_t bits = w.integer_or({"nbits", "bits"}, 4, {1, 8});
  d.storage.layout = Layout::hqq;
  d.storage.bits = static_cast<int>(bits);
  d.storage.group = group_size(w, {"group_size"}, 64);
  d.ignored = words(q, {"skip_modules"});
  d.detail = bits_detail(bits, d.storage.group);
}

void read_torchao(const Fields& q, Declared& d) {
  d.ignored = words(q, {"modules_to_not_convert"});
  std::string type;
  int64_t group = 128;
  if (const Document* t = q.find({"quant_type"}); t && t->is_object()) {
    const Fields outer(*t, q.file(), q.prefix() + "quant_type.");
    if (const auto entry = outer.object({"default"})) {
      type = entry->string_or({"_type"}, "");
      if (const auto data = entry->object({"_data"})) group = data->integer_or({"group_size"}, 128, {1, 1 << 20});
    }
  } else {
    type = q.string_or({"quant_type"}, "");
    if (const auto data = q.object({"quant_type_kwargs"})) group = data->integer_or({"group_size"}, 128, {1, 1 << 20});
  }
  std::string plain;
  for (char c : type) {
    if (c != '_') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  d.detail = type;
  if (plain.find("int4") != std::string::npos) {
    d.storage.layout = Layout::tinygemm;
    d.storage.bits = 4;
    d.storage.group = group;
  } else if (plain.find("int8") != std::string::npos) {
    d.storage.layout = Layout::int8_channel;
    d.storage.scale = Dtype::bf16;
  } else if (plain.find("float8") != std::string::npos) {
    d.storage.layout = Layout::fp8_channel;
  } else {
    d.unknown = fmt::format("type '{}'", printable(type));
  }
}

void read_quark(const Fields& q, Declared& d) {
  d.manner = Manner::shell;
  d.ignored = words(q, {"exclude"});
  d.towers = true;
  d.head = true;
  const auto global = q.object({"global_quant_config"});
  const auto weight = global ? global->object({"weight"}) : std::nullopt;
  if (!weight) {
    d.unknown = "no global_quant_config.weight";
    return;
  }
  const std::string dtype = weight->string_or({"dtype"}, "");
  const std::string scheme = weight->string_or({"qscheme"}, "per_tensor");
  d.detail = fmt::format("{} {}", dtype, scheme);
  d.storage.group = group_size(*weight, {"group_size"}, 0);
  if (dtype == "fp4") {
    d.storage.layout = Layout::mxfp4;
  } else if (dtype == "fp8_e4m3") {
    d.storage.layout = scheme == "per_channel" ? Layout::fp8_channel : Layout::fp8_tensor;
    d.storage.input_scale = true;
  } else if (dtype == "int8") {
    d.storage.layout = Layout::int8_channel;
  } else if (dtype == "int4" || dtype == "uint4") {
    d.storage.layout = Layout::awq;
    d.storage.bits = 4;
    if (d.storage.group == 0) d.storage.group = 128;
  } else {
    d.storage = Storage{};
    d.unknown = fmt::format("dtype '{}'", printable(dtype));
  }
}

Declared read_declared(const Fields& q, const Model& model, const Fields& root, const Fields& text) {
  Declared d;
  d.method = q.string_or({"quant_method"}, q.has({"quant_algo"}) ? "modelopt" : "");
  const bool fp4_experts = text.string_or({"expert_dtype"}, root.string_or({"expert_dtype"}, "")) == "fp4";
  if (d.method == "gptq" || d.method == "gptqmodel") {
    read_gptq(q, d);
  } else if (d.method == "awq") {
    read_awq(q, d);
  } else if (d.method == "auto-round" || d.method == "intel/auto-round") {
    q.string_or({"packing_format"}, "").find("awq") != std::string::npos ? read_awq(q, d) : read_gptq(q, d);
  } else if (d.method == "bitsandbytes") {
    read_bitsandbytes(q, d);
  } else if (d.method == "fp8") {
    read_fp8(q, model, fp4_experts, d);
    if (q.has({"quantized_layers"})) {
      // A ModelOpt recipe laid over a checkpoint that was in 8 bits already.
      Declared over;
      read_modelopt(q, over);
      d.modules = std::move(over.modules);
      d.experts = Storage{};
      d.unknown = over.unknown;
      d.ignored.insert(d.ignored.end(), over.ignored.begin(), over.ignored.end());
      d.manner = over.manner;
      d.kv_cache = over.kv_cache;
      d.detail += "; some modules " + over.detail;
    }
  } else if (d.method == "modelopt" || d.method == "modelopt_fp4" || d.method == "modelopt_mixed") {
    read_modelopt(q, d);
  } else if (d.method == "mxfp4") {
    d.storage.layout = Layout::mxfp4;
    d.experts_only = true;
    d.ignored = words(q, {"modules_to_not_convert"});
    d.detail = "experts in 4 bits, an exponent per 32";
  } else if (d.method == "compressed-tensors") {
    read_compressed(q, d);
  } else if (d.method == "hqq") {
    read_hqq(q, d);
  } else if (d.method == "torchao") {
    read_torchao(q, d);
  } else if (d.method == "exl2" || d.method == "exl3") {
    d.storage.layout = Layout::average;
    d.storage.bits_per_weight = q.real({"bits"}, 0.5, 16).value_or(4.0);
    d.head = true;
    d.head_storage = d.storage;
    d.head_storage.bits_per_weight = q.real({"head_bits"}, 0.5, 16).value_or(6.0);
    d.detail = fmt::format("{} bits on average", d.storage.bits_per_weight);
  } else if (d.method == "quark") {
    read_quark(q, d);
  } else if (d.method == "fbgemm_fp8") {
    d.storage.layout = Layout::fp8_channel;
    d.storage.input_scale = true;
    d.ignored = words(q, {"modules_to_not_convert"});
    d.detail = "e4m3, one scale a row";
  } else if (d.method == "eetq") {
    d.storage.layout = Layout::int8_channel;
    d.storage.scale = Dtype::f16;
    d.ignored = words(q, {"modules_to_not_convert"});
    d.detail = "8 bits a row";
  } else if (d.method == "bitnet") {
    d.storage.layout = Layout::ternary;
    d.ignored = words(q, {"modules_to_not_convert"});
    d.detail = "ternary, four numbers a byte";
  } else {
    d.unknown = d.method.empty() ? std::string("no quant_method") : fmt::format("method '{}'", printable(d.method));
  }
  return d;
}

void apply(Model& model, const Declared& d, bool text_only) {
  const ModulePatterns ignored(d.manner, d.ignored);
  bool by_layer = !d.modules.empty();
  for (const std::string& pattern : d.ignored) by_layer = by_layer || has_digit(pattern);
  for (const auto& e : d.expressions) by_layer = by_layer || has_digit(e.first);
  const auto choose = [&](const Tensor& t, TensorGroup::Part part, const std::string& module) -> Storage {
    const bool tower = part == TensorGroup::Part::vision || part == TensorGroup::Part::audio;
    if (tower && (text_only || !d.towers)) return {};
    if (t.role == Role::router || t.role == Role::embedding) return {};
    if (t.role == Role::head && !d.head) return {};
    // The projection that joins embedding and hidden state before an MTP layer stays as it was (DeepSeek-V3, GLM-5).
    if (t.role == Role::mtp) return {};
    // Small projections that no scheme converts unless it names them.
    const bool small =
        t.name.find("weights_proj") != std::string::npos || t.name.find("compressor") != std::string::npos;
    if (!d.modules.empty()) {
      // A module, or what it lies in ("layers.3.ffn.experts").
      for (std::string_view name = module; !name.empty();) {
        const auto found = d.modules.find(std::string(name));
        if (found != d.modules.end()) return found->second;
        const size_t dot = name.rfind('.');
        name = dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
      }
    }
    if (small && d.manner != Manner::shell) return {};
    if (d.storage.layout == Layout::plain && d.experts.layout == Layout::plain && d.expressions.empty()) return {};
    if (d.experts_only && !is_expert(t)) return {};
    if (ignored.matches(module)) return {};
    for (const auto& e : d.expressions) {
      if (regex_match(e.first, module)) return e.second;
    }
    if (t.role == Role::head && d.head_storage.layout != Layout::plain) return d.head_storage;
    if (is_expert(t) && d.experts.layout != Layout::plain) return d.experts;
    return d.storage;
  };
  const Converted sum = rewrite(model, choose, by_layer);
  Quantization out;
  out.method = d.method;
  out.detail = d.detail;
  out.kv_cache = d.kv_cache;
  if (sum.weights > 0) out.bits_per_weight = 8.0 * static_cast<double>(sum.bytes) / static_cast<double>(sum.weights);
  model.quantization = std::move(out);
}

}  // namespace

void apply_declared_quantization(Model& model, const Fields& root, const Fields& text, const Document* hf_quant,
                                 const std::string& file) {
  std::optional<Fields> q = text.object({"quantization_config"});
  const bool nested = &root.document() != &text.document();
  bool text_only = q && nested;
  if (!q && nested) q = root.object({"quantization_config"});
  std::optional<Fields> outer;
  if (!q && hf_quant) {
    outer.emplace(*hf_quant, "hf_quant_config.json");
    q = outer->object({"quantization"});
    text_only = false;
  }
  if (!q) return;
  // The older form wraps everything in "quantization".
  if (!q->has({"quant_method", "quant_algo"})) {
    if (auto inner = q->object({"quantization"})) q = std::move(inner);
  }
  const Declared d = read_declared(*q, model, root, text);
  (void)file;
  if (!d.unknown.empty()) {
    model.assume({"model.assume.quantization", {{"what", d.unknown}}});
    if (d.modules.empty() && d.storage.layout == Layout::plain) {
      model.quantization = Quantization{d.method, d.detail, 0, false, d.kv_cache};
      return;
    }
  }
  apply(model, d, text_only);
}

}  // namespace vram::arch
