// Safetensors beside a config, or without one.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/checked.h"
#include "base/error.h"
#include "base/units.h"
#include "model/reader.h"
#include "model/tensors.h"
#include "model/weights/table.h"
#include "model/weights/weights.h"

namespace vram {
namespace {

using arch::TensorTable;
using Part = TensorGroup::Part;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

int64_t product(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape) n = checked_mul(n, d);
  return n;
}

// Dimensions of 1 come and go between versions of the same checkpoint.
std::vector<int64_t> without_ones(std::span<const int64_t> shape) {
  std::vector<int64_t> out;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(out), [](int64_t d) { return d != 1; });
  return out;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string out;
  for (int64_t d : shape) out += (out.empty() ? "" : " x ") + std::to_string(d);
  return out.empty() ? "1" : out;
}

bool is_float(Dtype d) {
  return d == Dtype::f64 || d == Dtype::f32 || d == Dtype::f16 || d == Dtype::bf16 || d == Dtype::f8_e4m3 ||
         d == Dtype::f8_e5m2 || d == Dtype::f8_e8m0;
}

// The name of the matrix that a packed one stands for.
std::string unpacked_name(const std::string& pattern) {
  for (std::string_view end : {".qweight", ".weight_packed", ".W_q", ".q_weight"}) {
    if (ends_with(pattern, end)) return pattern.substr(0, pattern.size() - end.size()) + ".weight";
  }
  if (ends_with(pattern, "_blocks")) return pattern.substr(0, pattern.size() - 7);
  return {};
}

// What is equal in the names of one model saved in different ways: "model.language_model.layers.3.mlp.up_proj.weight".
std::string_view tail_of(std::string_view pattern) {
  const size_t at = pattern.find("{layer}.");
  if (at != std::string_view::npos) return pattern.substr(at + 8);
  const size_t last = pattern.rfind('.');
  const size_t dot = last == std::string_view::npos ? last : pattern.rfind('.', last - 1);
  return dot == std::string_view::npos || last == 0 ? pattern : pattern.substr(dot + 1);
}

// The tensors that a config promises, to be found by name.
class Promised {
 public:
  explicit Promised(const Model& model) : model_(model) {
    for (size_t g = 0; g < model.tensors.size(); ++g) {
      const TensorGroup& group = model.tensors[g];
      seen_.emplace_back(group.tensors.size(), 0);
      const int64_t last = group.layers.empty() ? -1 : *std::max_element(group.layers.begin(), group.layers.end());
      layers_.emplace_back(static_cast<size_t>(last + 1), false);
      for (int64_t layer : group.layers) layers_.back()[static_cast<size_t>(layer)] = true;
      for (size_t t = 0; t < group.tensors.size(); ++t) {
        const std::string& name = group.tensors[t].name;
        by_name_[name].push_back({g, t});
        by_tail_[tail_key(group.part, tail_of(name))].push_back({g, t});
      }
    }
  }

  const Tensor* find(const std::string& pattern, int64_t layer, int64_t count, Part& part) {
    const Place* at = in_layer(by_name_, pattern, layer);
    if (!at) {
      // Only where all candidates are one tensor of different layers: a tail alone must not mix up two.
      const std::string key = tail_key(part, tail_of(pattern));
      const auto found = by_tail_.find(key);
      if (found == by_tail_.end()) return nullptr;
      for (const Place& p : found->second) {
        if (tensor(p).name != tensor(found->second.front()).name) return nullptr;
      }
      at = in_layer(by_tail_, key, layer);
    }
    if (!at) return nullptr;
    seen_[at->group][at->tensor] += count;
    part = model_.tensors[at->group].part;
    return &tensor(*at);
  }

  /// Visits learned tensors of which copies were not found.
  template <class F>
  void for_missing(F visit) const {
    for (size_t g = 0; g < seen_.size(); ++g) {
      const TensorGroup& group = model_.tensors[g];
      for (size_t t = 0; t < seen_[g].size(); ++t) {
        const int64_t missing = group.times() * group.tensors[t].experts - seen_[g][t];
        if (group.tensors[t].learned && missing > 0) visit(group, group.tensors[t], missing);
      }
    }
  }

 private:
  struct Place {
    size_t group, tensor;
  };
  using Index = std::unordered_map<std::string, std::vector<Place>>;

  static std::string tail_key(Part part, std::string_view tail) {
    std::string key(1, static_cast<char>('0' + static_cast<int>(part)));
    return key += tail;
  }
  const Tensor& tensor(const Place& p) const { return model_.tensors[p.group].tensors[p.tensor]; }
  const Place* in_layer(const Index& index, const std::string& key, int64_t layer) const {
    const auto found = index.find(key);
    if (found == index.end()) return nullptr;
    for (const Place& p : found->second) {
      const std::vector<bool>& has = layers_[p.group];
      const bool inside =
          layer < 0 ? has.empty() : static_cast<size_t>(layer) < has.size() && has[static_cast<size_t>(layer)];
      if (inside) return &p;
    }
    return nullptr;
  }

  const Model& model_;
  std::vector<std::vector<int64_t>> seen_;
  std::vector<std::vector<bool>> layers_;
  Index by_name_, by_tail_;
};

// Differences of one kind, to be told as one sentence.
struct Difference {
  int64_t count = 0;
  Bytes bytes = 0;
  std::string name, found, wanted;  // of the first
  void add(int64_t n, Bytes all, const std::string& of, std::string is = {}, std::string should = {}) {
    if (count == 0) {
      name = of;
      found = std::move(is);
      wanted = std::move(should);
    }
    count = checked_add(count, n);
    bytes = checked_add(bytes, all);
  }
};

std::string first_name(std::string pattern, int64_t layer) {
  for (const auto& [what, index] : {std::pair<std::string_view, int64_t>{"{layer}", layer}, {"{expert}", 0}}) {
    const size_t at = pattern.find(what);
    if (at != std::string::npos) pattern.replace(at, what.size(), std::to_string(index));
  }
  return printable(pattern, 120);
}

std::string size_text(Bytes bytes) { return bytes < kMiB ? with_commas(bytes) + " B" : format_gib(bytes); }

class Merge {
 public:
  Merge(const Model& config, const FileTensors& tensors) : config_(config), table_(tensors), promised_(config) {
    while (encoder_layers_ < config.layers() && config.layer(encoder_layers_).encoder) ++encoder_layers_;
  }

  Model build(int64_t index_total) {
    Model out = config_;
    out.tensors = arch::groups_of(
        table_, [this](const TensorTable::Cell& c) { return place(c); },
        [this](Part part, int64_t layer) { return kind_of(part, layer); });
    if (!out.quantization) set_dtype(out);
    arch::finish_counts(out);
    tell(out, index_total);
    return out;
  }

 private:
  int64_t text_layers() const { return config_.layers() - encoder_layers_; }

  int64_t kind_of(Part part, int64_t layer) const {
    if (part == Part::text && layer < text_layers()) {
      return config_.layer_kind[static_cast<size_t>(layer + encoder_layers_)];
    }
    if (part == Part::encoder && layer < encoder_layers_) return config_.layer_kind[static_cast<size_t>(layer)];
    return -1;
  }

  arch::Placed place(const TensorTable::Cell& cell) {
    const std::string& pattern = table_.patterns()[cell.pattern];
    const auto shape = table_.shape(cell);
    arch::Placed out{arch::describe_checkpoint_name(pattern, shape), {}};
    Part part = out.what.part;
    const Tensor* promised = promised_.find(pattern, cell.layer, cell.count, part);
    const std::string packed = promised ? std::string() : unpacked_name(pattern);
    if (!packed.empty()) promised = promised_.find(packed, cell.layer, cell.count, part);
    if (!promised) return unknown(cell, std::move(out));
    out.what.role = promised->role;
    out.what.shard = promised->shard;
    out.what.part = part;
    out.what.learned = promised->learned;
    out.what.linear = promised->linear;
    out.shape = compare(cell, *promised, pattern);
    return out;
  }

  // Known families load what they know; everything else counts, since leaving out what an engine keeps is the worse
  // mistake.
  arch::Placed unknown(const TensorTable::Cell& cell, arch::Placed out) {
    Part& part = out.what.part;
    const bool beyond = part == Part::text && cell.layer >= text_layers() && config_.layers() > 0;
    if (beyond) part = Part::mtp;
    if (config_.tied_embeddings && out.what.role == Role::head) out.what.learned = false;
    if (out.what.learned) {
      extra_.add(cell.count, checked_mul(cell.count, cell.first->bytes),
                 first_name(table_.patterns()[cell.pattern], cell.layer));
    }
    return out;
  }

  // The logical shape; empty where it is the file's.
  std::vector<int64_t> compare(const TensorTable::Cell& cell, const Tensor& wanted, const std::string& pattern) {
    const auto shape = table_.shape(cell);
    const Encoding& encoding = *cell.first->encoding;
    const bool same_numbers = product(shape) == wanted.elements();
    const bool packed = wanted.linear && !same_numbers && !is_float(encoding.dtype);
    const Bytes all = checked_mul(cell.count, cell.first->bytes);
    if (packed ? cell.first->bytes != wanted.stored_bytes : wanted.learned && encoding.dtype != wanted.dtype) {
      std::string should(dtype_name(wanted.dtype));
      std::transform(should.begin(), should.end(), should.begin(), [](unsigned char c) { return std::toupper(c); });
      dtype_.add(cell.count, all, first_name(pattern, cell.layer), std::string(encoding.name), std::move(should));
    }
    if (packed) return wanted.shape;
    if (!same_numbers || without_ones(shape) != without_ones(wanted.shape)) {
      if (wanted.learned) {
        shape_.add(cell.count, all, first_name(pattern, cell.layer), shape_text(shape), shape_text(wanted.shape));
      }
      return {};
    }
    return wanted.shape;
  }

  // Without a quantization the dtype is that of most matrices, whatever the config says.
  static void set_dtype(Model& model) {
    Bytes of[64] = {};
    for (const TensorGroup& g : model.tensors) {
      for (const Tensor& t : g.tensors) {
        if (!t.learned || t.shape.size() < 2 || !is_float(t.dtype)) continue;
        Bytes& sum = of[static_cast<size_t>(t.dtype)];
        sum = checked_add(sum, checked_mul(t.stored_bytes, checked_mul(g.times(), t.experts)));
      }
    }
    const auto most = std::max_element(std::begin(of), std::end(of));
    if (*most > 0) model.dtype = static_cast<Dtype>(most - std::begin(of));
  }

  void tell(Model& out, int64_t index_total) const {
    Difference missing;
    promised_.for_missing([&](const TensorGroup& group, const Tensor& t, int64_t copies) {
      const int64_t layer = group.layers.empty() ? -1 : group.layers.front();
      missing.add(copies, checked_mul(copies, t.stored_bytes), first_name(t.name, layer));
    });
    const auto differ = [&](std::string_view id, const Difference& d) {
      if (d.count == 0) return;
      out.assume({std::string(id),
                  {{"count", with_commas(d.count)},
                   {"bytes", size_text(d.bytes)},
                   {"name", d.name},
                   {"found", d.found},
                   {"wanted", d.wanted}}});
    };
    differ("weights.differ.missing", missing);
    differ("weights.differ.extra", extra_);
    differ("weights.differ.dtype", dtype_);
    differ("weights.differ.shape", shape_);
    const auto total = [&](std::string_view id, std::string found, std::string wanted) {
      out.assume({std::string(id), {{"found", std::move(found)}, {"wanted", std::move(wanted)}}});
    };
    const Counts &now = out.counts, &then = config_.counts;
    if (now.parameters != then.parameters) {
      total("weights.differ.parameters", with_commas(now.parameters), with_commas(then.parameters));
    } else if (now.loaded_bytes != then.loaded_bytes) {
      total("weights.differ.bytes", with_commas(now.loaded_bytes) + " B", with_commas(then.loaded_bytes) + " B");
    }
    if (index_total >= 0 && index_total != table_.list().bytes()) {
      total("weights.differ.index", with_commas(table_.list().bytes()) + " B", with_commas(index_total) + " B");
    }
  }

  const Model& config_;
  TensorTable table_;
  Promised promised_;
  Difference extra_, dtype_, shape_;
  int64_t encoder_layers_ = 0;
};

// Decoders whose blocks are q, k, v, o and a gated or plain MLP, by their names and shapes alone.
class Guess {
 public:
  Guess(const FileTensors& tensors, const std::string& file, std::string name) : table_(tensors) {
    model_.name = std::move(name);
    model_.origin = fmt::format("file {}", file);
    model_.family = "unknown";
    model_.family_known = false;
  }

  Model build(const std::string& file) {
    const bool decoder = layers();
    if (!decoder) {
      model_.kinds.clear();
      model_.layer_kind.clear();
      model_.shape_known = false;
    }
    model_.tensors = arch::groups_of(
        table_,
        [this](const TensorTable::Cell& c) {
          arch::Placed out{arch::describe_checkpoint_name(table_.patterns()[c.pattern], table_.shape(c)), {}};
          if (model_.shape_known && out.what.part == Part::text && c.layer >= model_.layers())
            out.what.part = Part::mtp;
          return out;
        },
        [this](Part part, int64_t layer) {
          const bool own = part == Part::text && layer < model_.layers();
          return own ? model_.layer_kind[static_cast<size_t>(layer)] : -1;
        });
    precision();
    arch::finish_counts(model_);
    if (model_.counts.parameters == 0) {
      throw InputError({.file = file, .problem = "holds no weights", .accepted = "the files of a model"});
    }
    model_.assume({decoder ? "weights.assume.names" : "weights.assume.sizes_only", {}});
    if (assumed_head_dim_ > 0) {
      model_.assume({"weights.assume.head_dim", {{"value", std::to_string(assumed_head_dim_)}}});
    }
    if (assumed_experts_ > 0) {
      model_.assume({"weights.assume.experts_per_token", {{"value", std::to_string(assumed_experts_)}}});
    }
    return std::move(model_);
  }

 private:
  // The cell of `layer` whose name ends in one of `ends`.
  const TensorTable::Cell* cell(int64_t layer, std::initializer_list<std::string_view> ends) const {
    for (const TensorTable::Cell& c : table_.of_layer(layer)) {
      const std::string& name = table_.patterns()[c.pattern];
      if (arch::describe_checkpoint_name(name, table_.shape(c)).part != Part::text) continue;
      for (std::string_view end : ends) {
        if (ends_with(name, end)) return &c;
      }
    }
    return nullptr;
  }
  int64_t rows(const TensorTable::Cell* c) const { return c && table_.shape(*c).size() == 2 ? table_.shape(*c)[0] : 0; }

  bool layers() {
    const auto* embedding = cell(-1, {"embed_tokens.weight", "tok_embeddings.weight", "wte.weight"});
    if (!embedding || table_.shape(*embedding).size() != 2) return false;
    model_.vocab = table_.shape(*embedding)[0];
    model_.hidden = table_.shape(*embedding)[1];
    if (model_.vocab == 0 || model_.hidden == 0) return false;
    model_.tied_embeddings = !cell(-1, {"lm_head.weight", "output.weight"});
    const int64_t last = table_.cells().back().layer;
    for (int64_t i = 0; i <= last; ++i) {
      LayerKind k;
      if (!layer(i, k)) return false;
      const auto same = std::find(model_.kinds.begin(), model_.kinds.end(), k);
      model_.layer_kind.push_back(same - model_.kinds.begin());
      if (same == model_.kinds.end()) model_.kinds.push_back(k);
    }
    return last >= 0;
  }

  bool layer(int64_t i, LayerKind& k) {
    const int64_t q = rows(cell(i, {"q_proj.weight", "wq.weight"})), kv = rows(cell(i, {"k_proj.weight", "wk.weight"}));
    const int64_t v = rows(cell(i, {"v_proj.weight", "wv.weight"}));
    if (q == 0 || kv == 0 || v != kv) return false;
    // A norm over a head's numbers tells how many they are; else they are 128 where that divides, or 64.
    const auto* norm = cell(i, {"q_norm.weight"});
    int64_t dim = norm && table_.shape(*norm).size() == 1 ? table_.shape(*norm)[0] : 0;
    const bool per_head = dim > 0 && q % dim == 0 && kv % dim == 0 && dim != q;
    if (!per_head) {
      dim = q % 128 == 0 && kv % 128 == 0 ? 128 : 64;
      if (q % dim != 0 || kv % dim != 0) return false;
      assumed_head_dim_ = dim;
    }
    Attention& a = k.attention;
    a.heads = q / dim;
    a.kv_heads = kv / dim;
    if (a.heads % a.kv_heads != 0) return false;
    a.head_dim = a.value_head_dim = dim;
    a.qkv_bias = cell(i, {"q_proj.bias"}) != nullptr;
    a.out_bias = cell(i, {"o_proj.bias"}) != nullptr;
    if (norm) a.qk_norm = per_head ? Attention::QkNorm::per_head : Attention::QkNorm::full_width;
    Mlp& m = k.mlp;
    m.activation = "silu";
    if (const auto* up = cell(i, {"experts.{expert}.up_proj.weight", "experts.{expert}.w3.weight"})) {
      m.kind = MlpKind::moe;
      m.experts = up->count;
      m.experts_per_token = std::min<int64_t>(8, m.experts);
      assumed_experts_ = m.experts_per_token;
      m.expert_ffn = rows(up);
      m.shared_ffn = rows(cell(i, {"shared_expert.up_proj.weight", "shared_experts.up_proj.weight"}));
      return m.expert_ffn > 0;
    }
    m.ffn = rows(cell(i, {"mlp.up_proj.weight", "feed_forward.w3.weight"}));
    if (m.ffn == 0) return false;
    m.kind = cell(i, {"mlp.gate_proj.weight", "feed_forward.w1.weight"}) ? MlpKind::gated : MlpKind::plain;
    return true;
  }

  void precision() {
    Bytes of[64] = {};
    Bytes all = 0;
    int64_t numbers = 0;
    for (const TensorGroup& g : model_.tensors) {
      for (const Tensor& t : g.tensors) {
        if (!t.learned) continue;
        const int64_t copies = checked_mul(g.times(), t.experts);
        const Bytes bytes = checked_mul(copies, t.stored_bytes);
        of[static_cast<size_t>(t.dtype)] = checked_add(of[static_cast<size_t>(t.dtype)], bytes);
        all = checked_add(all, bytes);
        numbers = checked_add(numbers, checked_mul(copies, t.elements()));
      }
    }
    for (Dtype d : {Dtype::bf16, Dtype::f16, Dtype::f32}) {
      if (of[static_cast<size_t>(d)] > of[static_cast<size_t>(model_.dtype)]) model_.dtype = d;
    }
    // Stored otherwise than in one dtype: a model of which only the sizes are known is asked for its bytes as they are.
    if (all == checked_mul(numbers, bits(model_.dtype) / 8) || numbers == 0) return;
    Quantization q;
    q.method = "mixed";
    q.bits_per_weight = 8.0 * static_cast<double>(all) / static_cast<double>(numbers);
    q.detail = fmt::format("{:.2f} bits a number", q.bits_per_weight);
    model_.quantization = std::move(q);
  }

  TensorTable table_;
  Model model_;
  int64_t assumed_head_dim_ = 0, assumed_experts_ = 0;
};

}  // namespace

Model model_with_weights(const Model& config, const FileTensors& tensors, int64_t index_total) {
  return Merge(config, tensors).build(index_total);
}

Model model_from_weights(const FileTensors& tensors, const std::string& file, std::string name) {
  if (tensors.tensors().empty()) {
    throw InputError({.file = file, .problem = "holds no tensors", .accepted = "the files of a model"});
  }
  try {
    return Guess(tensors, file, std::move(name)).build(file);
  } catch (const OverflowError&) {
    throw InputError({.file = file, .problem = "describes a model of more than 2^63 bytes"});
  }
}

}  // namespace vram
