#include "model/planned_gguf.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "formats/gguf.h"
#include "model/tensors.h"

namespace vram {
namespace arch {
namespace {

using Part = TensorGroup::Part;

// In the order of llama-quantize's own list; the type is that of every matrix without a rule.
struct Mix {
  std::string_view name, base;
};
constexpr Mix kMixes[] = {
    {"q8_0", "Q8_0"},     {"q6_k", "Q6_K"},     {"q5_k_m", "Q5_K"},  {"q5_k_s", "Q5_K"},     {"q5_1", "Q5_1"},
    {"q5_0", "Q5_0"},     {"q4_k_m", "Q4_K"},   {"q4_k_s", "Q4_K"},  {"q4_1", "Q4_1"},       {"q4_0", "Q4_0"},
    {"iq4_nl", "IQ4_NL"}, {"iq4_xs", "IQ4_XS"}, {"q3_k_l", "Q3_K"},  {"q3_k_m", "Q3_K"},     {"q3_k_s", "Q3_K"},
    {"iq3_m", "IQ3_S"},   {"iq3_s", "IQ3_S"},   {"iq3_xs", "IQ3_S"}, {"iq3_xxs", "IQ3_XXS"}, {"q2_k", "Q2_K"},
    {"q2_k_s", "Q2_K"},   {"iq2_m", "IQ2_S"},   {"iq2_s", "IQ2_XS"}, {"iq2_xs", "IQ2_XS"},   {"iq2_xxs", "IQ2_XXS"},
    {"iq1_m", "IQ1_M"},   {"iq1_s", "IQ1_S"},   {"tq2_0", "TQ2_0"},  {"tq1_0", "TQ1_0"},     {"mxfp4_moe", "Q8_0"}};

// The names by which the rules know a tensor.
enum class Leaf : uint8_t { kept, output, embedding, q, k, v, qkv, attn_output, gate, up, down, expert_other, other };

Leaf leaf_of(const Tensor& t, Part part) {
  if (part == Part::vision || part == Part::audio) return Leaf::kept;
  const bool down = t.shard == Shard::row || t.shard == Shard::expert_row;
  switch (t.role) {
    case Role::embedding:
      return Leaf::embedding;
    case Role::head:
      return Leaf::output;
    case Role::attention_q:
      return Leaf::q;
    case Role::attention_k:
      return Leaf::k;
    case Role::attention_v:
      return Leaf::v;
    case Role::attention_qkv:
      return Leaf::qkv;
    case Role::attention_out:
      return Leaf::attn_output;
    case Role::mlp_gate:
    case Role::expert_gate:
      return Leaf::gate;
    case Role::mlp_up:
    case Role::mlp_gate_up:
    case Role::expert_up:
    case Role::expert_gate_up:
      return Leaf::up;
    case Role::mlp_down:
    case Role::expert_down:
      return Leaf::down;
    case Role::shared_expert:
      return down ? Leaf::down : Leaf::up;
    case Role::linear_attention:
      return t.name.find("in_proj_qkv.") != std::string::npos ? Leaf::qkv : Leaf::other;
    default:
      return Leaf::other;
  }
}

// Kept in 32 bits: what has one dimension, and small tensors that lose too much.
bool in_full(const Tensor& t) {
  if (t.shape.size() < 2) return true;
  switch (t.role) {
    case Role::norm:
    case Role::bias:
    case Role::router:
    case Role::position_embedding:
      return true;
    case Role::embedding:
      return false;
    default:
      return !t.linear;
  }
}

// Where a tensor stands.
struct At {
  int64_t layer = 0, layers = 1;         // of the model
  int64_t values = 0, value_layers = 1;  // attn_v tensors before it, and layers that have one or a fused one
  int64_t group = 1;                     // query heads per KV head
  int64_t experts = 0;
  // The layers that quality depends on most: the first and last eighth, and every third between.
  static bool more(int64_t i, int64_t n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }
  bool more_layer() const { return more(layer, layers); }
  bool first_eighth() const { return layer < layers / 8; }
};

class Rules {
 public:
  Rules(std::string_view mix, std::string_view base, bool falcon) : mix_(mix), base_(base), falcon_(falcon) {}

  std::string_view type(Leaf leaf, const At& at, bool tied, int64_t width) const {
    if (leaf == Leaf::output || (leaf == Leaf::embedding && tied)) return output(width);
    if (leaf == Leaf::embedding) return embedding();
    if (is("mxfp4_moe")) return leaf == Leaf::expert_other ? "MXFP4" : "Q8_0";
    if (tiny()) return tiny_type(leaf, at);
    switch (leaf) {
      case Leaf::v:
        return value(at);
      case Leaf::k:
        if (at.experts == 8) return "Q8_0";
        [[fallthrough]];
      case Leaf::q:
        return is("iq3_xs") ? "IQ3_XXS" : is("iq3_xxs") ? "IQ2_S" : base_;
      case Leaf::down:
        return down(at);
      case Leaf::attn_output:
        return attention_output(at);
      case Leaf::qkv:
        return is("q3_k_m", "q3_k_l", "iq3_m") ? "Q4_K" : is("q4_k_m") ? "Q5_K" : is("q5_k_m") ? "Q6_K" : base_;
      case Leaf::gate:
      case Leaf::up:
        return is("iq3_xs") && !at.first_eighth() && at.layer < 7 * at.layers / 8 ? "IQ3_XXS" : base_;
      default:
        return base_;
    }
  }

 private:
  template <class... Names>
  bool is(Names... names) const {
    return ((mix_ == names) || ...);
  }
  bool tiny() const { return is("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq2_m"); }

  std::string_view output(int64_t width) const {
    if (is("mxfp4_moe", "q8_0") || falcon_ || width % 256 != 0) return "Q8_0";
    return tiny() || is("iq3_xxs") ? "Q5_K" : "Q6_K";
  }

  std::string_view embedding() const {
    if (is("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs")) return "Q2_K";
    if (is("iq2_s", "iq2_m", "iq3_xxs")) return "IQ3_S";
    if (is("tq1_0", "tq2_0")) return "Q4_K";
    return base_;
  }

  std::string_view tiny_type(Leaf leaf, const At& at) const {
    const bool larger = is("iq2_s", "iq2_m");
    if (leaf == Leaf::v) return at.group >= 4 || at.experts >= 4 ? "Q4_K" : larger ? "IQ3_S" : "Q2_K";
    if (leaf == Leaf::k && at.experts == 8) return "Q4_K";
    if (leaf == Leaf::down && at.first_eighth()) return larger ? "IQ3_S" : "Q2_K";
    if (leaf == Leaf::attn_output) {
      return at.experts == 8 ? "Q5_K" : is("iq1_s", "iq1_m") ? "IQ2_XXS" : larger ? "IQ3_S" : base_;
    }
    return base_;
  }

  std::string_view value(const At& at) const {
    if (at.experts == 8) return "Q8_0";
    const bool grouped = at.group >= 4;
    std::string_view out = base_;
    if (is("q2_k")) out = grouped ? "Q4_K" : "Q3_K";
    if (is("q2_k_s", "iq3_xxs", "iq3_xs", "iq3_s") && grouped) out = "Q4_K";
    if (is("iq3_m")) out = "Q4_K";
    if (is("q3_k_m")) out = at.values < 2 ? "Q5_K" : "Q4_K";
    if (is("q3_k_l")) out = "Q5_K";
    if (is("iq4_nl", "iq4_xs") && grouped) out = "Q5_K";
    if (is("q4_k_m", "q5_k_m") && At::more(at.values, at.value_layers)) out = "Q6_K";
    if (is("q4_k_s") && at.values < 4) out = "Q5_K";
    // The 70B class shares one value head among eight, so more bits cost little.
    if (at.layers == 80 && (out == "Q3_K" || out == "Q4_K")) out = "Q5_K";
    return out;
  }

  std::string_view down(const At& at) const {
    if (is("q2_k")) return "Q3_K";
    if (is("q2_k_s")) return at.first_eighth() ? "Q4_K" : base_;
    if (is("q3_k_m")) {
      return at.layer < at.layers / 16 ? "Q5_K" : !falcon_ || at.more_layer() ? "Q4_K" : "Q3_K";
    }
    if (is("iq3_m")) return at.first_eighth() || (at.experts == 8 && at.more_layer()) ? "Q4_K" : base_;
    if (is("q3_k_l")) return falcon_ ? "Q4_K" : "Q5_K";
    if (is("q4_k_m") && falcon_) {
      return at.layer < at.layers / 16 ? "Q6_K" : at.more_layer() ? "Q5_K" : "Q4_K";
    }
    if (is("q4_k_m", "q5_k_m")) return at.more_layer() ? "Q6_K" : base_;
    if (is("iq4_nl", "iq4_xs") && at.first_eighth()) return "Q5_K";
    if (is("q4_k_s") && !falcon_ && at.first_eighth()) return "Q5_K";
    return base_;
  }

  std::string_view attention_output(const At& at) const {
    if (falcon_) return is("q3_k_l") ? "Q4_K" : base_;
    if (at.experts == 8) {
      const bool small = is("q2_k", "iq3_xs", "iq3_xxs", "iq3_s", "iq3_m") || is("q3_k_s", "q3_k_m") ||
                         is("iq4_nl", "iq4_xs", "q4_k_s", "q4_k_m");
      return small ? "Q5_K" : base_;
    }
    if (is("q2_k")) return "Q3_K";
    if (is("iq3_xxs")) return "IQ3_S";
    if (is("q3_k_m", "iq3_m")) return "Q4_K";
    if (is("q3_k_l")) return "Q5_K";
    return base_;
  }

  std::string_view mix_, base_;
  bool falcon_;
};

// Rows that a type's blocks don't divide take a type of smaller blocks, then 16 bits.
const Encoding& fitting(std::string_view type, int64_t width) {
  const Encoding* e = gguf_encoding(type);
  if (width % e->block == 0) return *e;
  std::string_view smaller = "F16";
  if (type.substr(0, 2) == "IQ") smaller = "IQ4_NL";
  if (type == "Q2_K" || type == "Q3_K" || type.substr(0, 2) == "TQ") smaller = "Q4_0";
  if (type == "Q4_K") smaller = "Q5_0";
  if (type == "Q5_K") smaller = "Q5_1";
  if (type == "Q6_K") smaller = "Q8_0";
  e = gguf_encoding(smaller);
  return width % e->block == 0 ? *e : *gguf_encoding("F16");
}

Bytes bytes_in(const Encoding& e, int64_t elements, int64_t width) {
  return width > 0 ? encoded_bytes(e, elements / width, width) : 0;
}

class Converter {
 public:
  Converter(Model& model, const Rules& rules) : model_(model), rules_(rules) {
    for (const TensorGroup& g : model.tensors) {
      if (g.part != Part::text && g.part != Part::encoder) continue;
      bool separate = false, any = false;
      for (const Tensor& t : g.tensors) {
        separate = separate || (t.role == Role::attention_v && t.linear);
        any = any || leaf_of(t, g.part) == Leaf::qkv || leaf_of(t, g.part) == Leaf::v || is_latent(t, g);
      }
      if (separate) value_layers_.insert(value_layers_.end(), g.layers.begin(), g.layers.end());
      if (any) counted_ += g.times();
    }
    std::sort(value_layers_.begin(), value_layers_.end());
  }

  void run() {
    std::vector<TensorGroup> out;
    for (const TensorGroup& g : model_.tensors) {
      // Layers of equal types stay together, in the order of their first layer.
      std::vector<TensorGroup> parts;
      const std::vector<int64_t> once = {-1};
      for (int64_t layer : g.layers.empty() ? once : g.layers) {
        TensorGroup one = converted(g, layer);
        const auto same = std::find_if(parts.begin(), parts.end(), [&](const TensorGroup& p) {
          return std::equal(p.tensors.begin(), p.tensors.end(), one.tensors.begin(), one.tensors.end(),
                            [](const Tensor& a, const Tensor& b) { return a.stored_as == b.stored_as; });
        });
        if (same == parts.end()) {
          if (layer >= 0) one.layers = {layer};
          parts.push_back(std::move(one));
        } else {
          same->layers.push_back(layer);
        }
      }
      for (TensorGroup& p : parts) out.push_back(std::move(p));
    }
    model_.tensors = std::move(out);
  }

  int64_t numbers = 0;
  Bytes bytes = 0;

 private:
  bool is_latent(const Tensor& t, const TensorGroup& g) const {
    return t.role == Role::attention_k && !g.layers.empty() &&
           kind(g, g.layers.front()).attention.kind == AttentionKind::mla;
  }
  // Layers of the MTP part and of towers stand as the last layer does.
  const LayerKind& kind(const TensorGroup& g, int64_t layer) const {
    static const LayerKind none;
    if (model_.layers() == 0) return none;
    const bool own = g.part == Part::text || g.part == Part::encoder;
    return model_.layer(own && layer >= 0 && layer < model_.layers() ? layer : model_.layers() - 1);
  }

  TensorGroup converted(const TensorGroup& g, int64_t layer) {
    TensorGroup out;
    out.part = g.part;
    const LayerKind& k = kind(g, layer);
    At at;
    at.layer = std::max<int64_t>(layer, 0);
    at.layers = std::max<int64_t>(model_.layers(), 1);
    at.values = std::lower_bound(value_layers_.begin(), value_layers_.end(), layer) - value_layers_.begin();
    at.value_layers = std::max<int64_t>(counted_, 1);
    at.group = k.attention.kv_heads > 0 ? k.attention.heads / k.attention.kv_heads : 1;
    for (const LayerKind& any : model_.kinds) at.experts = std::max(at.experts, any.mlp.experts);
    for (const Tensor& t : g.tensors) out.tensors.push_back(convert(t, g, k, at));
    return out;
  }

  Tensor convert(Tensor t, const TensorGroup& g, const LayerKind& k, const At& at) {
    Leaf leaf = leaf_of(t, g.part);
    if (leaf == Leaf::kept) return t;
    const int64_t width = t.shape.empty() ? 1 : t.shape.back();
    const bool routed = t.shard == Shard::expert_column || t.shard == Shard::expert_row;
    if (routed && rules_.type(Leaf::expert_other, at, false, width) == "MXFP4") leaf = Leaf::expert_other;
    const Encoding* e = gguf_encoding("F32");
    const int64_t elements = t.elements();
    if (in_full(t)) {
      t.stored_bytes = checked_mul(4, elements);
    } else if (t.role == Role::other) {
      e = gguf_encoding("F16");
      t.stored_bytes = checked_mul(2, elements);
    } else {
      const std::string_view type = rules_.type(leaf, at, model_.tied_embeddings, width);
      e = &fitting(type, width);
      t.stored_bytes = bytes_in(*e, elements, width);
      const Attention& a = k.attention;
      if (is_latent(t, g) && t.shape.size() == 2 && t.shape[0] == a.heads * (a.nope_head_dim + a.value_head_dim)) {
        // Files keep the halves apart, that of the keys transposed: its rows are a head's numbers.
        const Encoding& keys = fitting(type, a.nope_head_dim);
        t.stored_bytes = checked_add(bytes_in(keys, a.heads * a.nope_head_dim * width, a.nope_head_dim),
                                     bytes_in(*e, a.heads * a.value_head_dim * width, width));
      }
      const int64_t copies = t.experts;
      numbers = checked_add(numbers, checked_mul(elements, copies));
      bytes = checked_add(bytes, checked_mul(t.stored_bytes, copies));
    }
    t.dtype = e->dtype;
    t.stored_as = e->name;
    return t;
  }

  Model& model_;
  const Rules& rules_;
  std::vector<int64_t> value_layers_;
  int64_t counted_ = 0;
};

}  // namespace

const std::vector<std::string_view>& gguf_mixes() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Mix& m : kMixes) out.push_back(m.name);
    return out;
  }();
  return names;
}

}  // namespace arch

bool is_gguf_mix(std::string_view scheme) {
  const auto& names = arch::gguf_mixes();
  return std::find(names.begin(), names.end(), scheme) != names.end();
}

namespace arch {

bool apply_gguf_mix(Model& model, std::string_view mix) {
  const auto found = std::find_if(std::begin(kMixes), std::end(kMixes), [&](const Mix& m) { return m.name == mix; });
  if (found == std::end(kMixes)) return false;
  const Rules rules(found->name, found->base, model.family == "falcon");
  Converter converter(model, rules);
  converter.run();
  Quantization q{"gguf", std::string(found->name), 0, true, ""};
  if (converter.numbers > 0) {
    q.bits_per_weight = 8.0 * static_cast<double>(converter.bytes) / static_cast<double>(converter.numbers);
  }
  model.quantization = std::move(q);
  return true;
}

}  // namespace arch
}  // namespace vram
