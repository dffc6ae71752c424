// From a GGUF file to a model. What a block computes is told by the tensors that it has; the metadata adds what shapes
// leave open (heads, windows, experts per token). Keys: docs/gguf.md of github.com/ggml-org/ggml and gguf-py of
// llama.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/checked.h"
#include "base/error.h"
#include "model/reader.h"
#include "model/tensors.h"
#include "model/weights/gguf_arch.h"
#include "model/weights/table.h"
#include "model/weights/weights.h"

namespace vram {
namespace {

using arch::TensorTable;
using Part = TensorGroup::Part;

// The metadata of one architecture, checked as it is read.
class Keys {
 public:
  Keys(const GgufMetadata& meta, const std::string& file, Model& model) : meta_(meta), file_(file), model_(model) {
    const Document* a = meta.find("general.architecture");
    if (!a || !a->is_string()) {
      throw InputError({.file = file, .field = "key", .value = "general.architecture", .problem = "is missing"});
    }
    arch_ = a->string();
    model_.fields_used.emplace_back("general.architecture");
  }

  const std::string& arch() const { return arch_; }

  [[noreturn]] void refuse(std::string_view key, std::string problem, std::string accepted = {}) const {
    throw InputError({.file = file_,
                      .field = "key",
                      .value = full(key),
                      .problem = std::move(problem),
                      .accepted = std::move(accepted)});
  }
  [[noreturn]] void refuse_tensor(std::string_view name, std::string problem, std::string accepted = {}) const {
    throw InputError({.file = file_,
                      .field = "tensor",
                      .value = std::string(name),
                      .problem = std::move(problem),
                      .accepted = std::move(accepted)});
  }

  /// A whole number, or of a list the entry of layer `i` (the first for -1). `low` to `high`.
  std::optional<int64_t> integer(std::string_view key, int64_t low, int64_t high, int64_t i = -1) const {
    const Document* d = find(key);
    if (!d) return std::nullopt;
    if (d->is_array()) {
      const auto& list = d->array();
      const auto at = static_cast<size_t>(std::max<int64_t>(i, 0));
      if (at >= list.size()) {
        refuse(key, fmt::format("has {} entries", list.size()), fmt::format("one for each of the {} blocks", blocks));
      }
      d = &list[at];
    }
    if (!d->is_integer()) refuse(key, fmt::format("is {}", d->kind_name()), "a whole number");
    if (d->integer() < low || d->integer() > high) {
      refuse(key, fmt::format("is {}", d->integer()), fmt::format("{} to {}", low, high));
    }
    return d->integer();
  }
  int64_t integer_or(std::string_view key, int64_t fallback, int64_t low, int64_t high, int64_t i = -1) const {
    return integer(key, low, high, i).value_or(fallback);
  }
  int64_t required(std::string_view key, int64_t low, int64_t high) const {
    const auto n = integer(key, low, high);
    if (!n) refuse(key, "is missing");
    return *n;
  }
  bool flag(std::string_view key, bool fallback) const {
    const Document* d = find(key);
    return d && d->is_bool() ? d->boolean() : fallback;
  }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  const Document* find(std::string_view key) const {
    const Document* d = meta_.find(full(key));
    if (d && used_.insert(std::string(key)).second) model_.fields_used.push_back(full(key));
    return d;
  }

  int64_t blocks = 0;

 private:
  std::string full(std::string_view key) const { return arch_ + "." + std::string(key); }

  const GgufMetadata& meta_;
  const std::string& file_;
  Model& model_;
  std::string arch_;
  mutable std::set<std::string> used_;
};

class Builder {
 public:
  Builder(const GgufMetadata& meta, const FileTensors& tensors, const std::string& file, std::string name)
      : table_(tensors), file_(file), keys_(meta, file, model_) {
    model_.name = std::move(name);
    model_.origin = fmt::format("file {}", file);
  }

  Model build() {
    known_ = arch::find_gguf_arch(keys_.arch());
    model_.family = known_ ? std::string(known_->family) : keys_.arch();
    model_.family_known = known_ != nullptr;
    const bool decoder = table_.find("token_embd.weight", -1) && keys_.has("block_count") &&
                         table_.last_layer("blk.") >= 0 && keys_.arch() != "clip";
    if (decoder) {
      sizes();
      layers();
    } else {
      model_.shape_known = false;
      model_.assume({"weights.assume.no_decoder", {{"what", printable(keys_.arch())}}});
    }
    if (!known_ && decoder) model_.assume({"weights.assume.architecture", {{"name", printable(keys_.arch())}}});
    model_.tensors = arch::groups_of(
        table_, [this](const TensorTable::Cell& c) { return place(c); },
        [this](Part part, int64_t layer) { return kind_of(part, layer); });
    precision();
    arch::finish_counts(model_);
    if (model_.counts.parameters == 0) {
      throw InputError({.file = file_, .problem = "holds no weights", .accepted = "a GGUF file of a model"});
    }
    return std::move(model_);
  }

 private:
  // --- the whole model ---

  void sizes() {
    const auto embedding = shape("token_embd.weight", -1);
    if (embedding.size() != 2 || embedding[0] == 0) keys_.refuse_tensor("token_embd.weight", "is no matrix");
    model_.hidden = keys_.required("embedding_length", 1, arch::kMaxWidth);
    if (embedding[1] != model_.hidden) {
      keys_.refuse_tensor("token_embd.weight",
                          fmt::format("has rows of {}; embedding_length is {}", embedding[1], model_.hidden));
    }
    model_.vocab = embedding[0];
    model_.max_positions = keys_.integer_or("context_length", 0, 0, arch::kMaxPositions);
    model_.tied_embeddings = !table_.find("output.weight", -1);
    model_.learned_positions = table_.find("position_embd.weight", -1) != nullptr;
    keys_.blocks = keys_.required("block_count", 1, arch::kMaxLayers);
    const int64_t mtp = keys_.integer_or("nextn_predict_layers", 0, 0, keys_.blocks - 1);
    layers_ = keys_.blocks - mtp;
    const int64_t last = table_.last_layer("blk.");
    // MTP blocks may have been dropped when the file was made.
    if (last >= keys_.blocks || last < layers_ - 1) {
      keys_.refuse("block_count", fmt::format("is {}; the tensors have blocks 0 to {}", keys_.blocks, last));
    }
  }

  void layers() {
    for (int64_t i = 0; i < layers_; ++i) {
      const LayerKind k = layer(i);
      auto same = std::find(model_.kinds.begin(), model_.kinds.end(), k);
      if (same == model_.kinds.end()) same = model_.kinds.insert(same, k);
      model_.layer_kind.push_back(same - model_.kinds.begin());
    }
  }

  // --- one layer ---

  std::span<const int64_t> shape(std::string_view pattern, int64_t layer) const {
    const TensorTable::Cell* c = table_.find(pattern, layer);
    return c ? table_.shape(*c) : std::span<const int64_t>();
  }
  std::string blk(std::string_view leaf) const { return "blk.{layer}." + std::string(leaf); }
  bool has(std::string_view leaf, int64_t i) const { return table_.find(blk(leaf), i) != nullptr; }
  // Rows of a matrix (0 where there is none), and columns.
  int64_t rows(std::string_view leaf, int64_t i) const {
    const auto s = shape(blk(leaf), i);
    return s.size() < 2 ? 0 : s[s.size() - 2];
  }
  int64_t columns(std::string_view leaf, int64_t i) const {
    const auto s = shape(blk(leaf), i);
    return s.empty() ? 0 : s.back();
  }

  LayerKind layer(int64_t i) {
    LayerKind k;
    k.attention = attention(i);
    k.mlp = mlp(i);
    k.norms = 0;
    bool bias = false;
    for (const auto& c : table_.of_layer(i)) {
      const std::string& name = table_.patterns()[c.pattern];
      const std::string_view leaf = std::string_view(name).substr(std::min<size_t>(name.size(), 12));
      static constexpr std::string_view kNorms[] = {
          "attn_norm.weight",      "attn_norm_2.weight",     "ffn_norm.weight",         "post_attention_norm.weight",
          "post_ffw_norm.weight",  "pre_ffw_norm.weight",    "attn_output_norm.weight", "layer_output_norm.weight",
          "pre_ffw_norm_2.weight", "post_ffw_norm_1.weight", "post_ffw_norm_2.weight",  "ffn_norm_exps.weight",
          "attn_post_norm.weight"};
      if (std::find(std::begin(kNorms), std::end(kNorms), leaf) != std::end(kNorms)) ++k.norms;
      bias = bias || leaf == "attn_norm.bias";
    }
    const bool layernorm =
        bias || (keys_.has("attention.layer_norm_epsilon") && !keys_.has("attention.layer_norm_rms_epsilon"));
    k.norm = k.norms == 0 ? NormKind::none : layernorm ? NormKind::layernorm : NormKind::rmsnorm;
    const bool both = k.attention.kind != AttentionKind::none && k.mlp.kind != MlpKind::none;
    k.parallel = both && (k.norms == 1 || keys_.flag("use_parallel_residual", keys_.arch() == "falcon"));
    k.encoder = !keys_.flag("attention.causal", true);
    return k;
  }

  Attention attention(int64_t i) {
    if (has("time_mix_key.weight", i)) return rwkv();
    if (has("shortconv.conv.weight", i)) return short_convolution();
    if (has("ssm_conv1d_q.weight", i)) return kimi_delta(i);
    if (delta_net(i)) return gated_delta();
    if (has("ssm_in.weight", i) && !has("attn_q.weight", i)) return mamba(i);
    if (has("attn_kv_a_mqa.weight", i)) return latent(i);
    if (has("attn_q.weight", i) || has("attn_qkv.weight", i)) return grouped(i);
    Attention none;
    none.kind = AttentionKind::none;
    return none;
  }

  bool delta_net(int64_t i) const {
    return has("ssm_conv1d.weight", i) && (has("ssm_beta.weight", i) || has("ssm_ba.weight", i));
  }

  // Heads of block `i`; 0 is refused where it divides.
  int64_t heads(int64_t i) const {
    const auto n = keys_.integer("attention.head_count", 1, arch::kMaxWidth, i);
    if (!n) keys_.refuse("attention.head_count", "is missing");
    return *n;
  }

  // Whether block `i` sees a window only.
  bool slides(int64_t i, int64_t window) {
    if (window == 0) return false;
    if (const Document* pattern = keys_.find("attention.sliding_window_pattern")) {
      if (pattern->is_array()) {
        const auto& list = pattern->array();
        if (static_cast<int64_t>(list.size()) <= i) {
          keys_.refuse("attention.sliding_window_pattern", fmt::format("has {} entries", list.size()),
                       fmt::format("one for each of the {} blocks", keys_.blocks));
        }
        const Document& at = list[static_cast<size_t>(i)];
        return at.is_bool() ? at.boolean() : at.is_integer() && at.integer() != 0;
      }
      const int64_t period = keys_.integer_or("attention.sliding_window_pattern", 1, 1, arch::kMaxLayers);
      return (i + 1) % period != 0;
    }
    const int64_t period = known_ ? known_->window_period : 0;
    if (period > 0) return period == 1 || (i + 1) % period != 0;
    if (i == 0 && keys_.has("attention.sliding_window")) {
      model_.assume({"weights.assume.window", {{"window", std::to_string(window)}}});
    }
    return false;
  }

  Attention grouped(int64_t i) {
    Attention a;
    a.heads = heads(i);
    a.kv_heads = keys_.integer_or("attention.head_count_kv", a.heads, 0, arch::kMaxWidth, i);
    const int64_t window =
        keys_.integer_or("attention.sliding_window", known_ ? known_->window : 0, 0, arch::kMaxPositions, i);
    const bool window_only = slides(i, window);
    a.kind = !window_only                ? AttentionKind::full
             : known_ && known_->chunked ? AttentionKind::chunked
                                         : AttentionKind::sliding;
    if (window_only) a.window = window;
    const auto width = [&](std::string_view key, std::string_view windowed) {
      const auto plain = keys_.integer(key, 1, arch::kMaxWidth);
      const auto swa = window_only ? keys_.integer(windowed, 1, arch::kMaxWidth) : std::nullopt;
      if (swa) return *swa;
      if (plain) return *plain;
      return std::max<int64_t>(1, model_.hidden / a.heads);
    };
    a.head_dim = width("attention.key_length", "attention.key_length_swa");
    a.value_head_dim = width("attention.value_length", "attention.value_length_swa");
    check_projections(a, i);
    a.qkv_bias = has("attn_q.bias", i) || has("attn_qkv.bias", i);
    a.out_bias = has("attn_output.bias", i);
    a.sinks = has("attn_sinks.weight", i) || has("attn_sinks", i);
    if (has("attn_q_norm.weight", i)) {
      const auto s = shape(blk("attn_q_norm.weight"), i);
      const bool per_head = s.size() == 1 && s[0] == a.head_dim;
      a.qk_norm = per_head ? Attention::QkNorm::per_head : Attention::QkNorm::full_width;
    }
    // The last layers of Gemma 3n and 4 reuse the cache of earlier ones.
    const int64_t sharing = keys_.integer_or("attention.shared_kv_layers", 0, 0, layers_);
    a.shares_kv = sharing > 0 && i >= layers_ - sharing;
    a.k_equals_v = !a.shares_kv && has("attn_q.weight", i) && has("attn_k.weight", i) && !has("attn_v.weight", i);
    if (has("ssm_in.weight", i)) {  // Falcon-H1: a state-space half beside the attention
      const Attention m = mamba(i);
      a.state_elements = m.state_elements;
      a.conv_elements = m.conv_elements;
    }
    return a;
  }

  // The tensors and the metadata must agree: from both of them memory is computed.
  void check_projections(Attention& a, int64_t i) {
    if (a.kv_heads == 0) {
      keys_.refuse("attention.head_count_kv", fmt::format("is 0 for block {}, which has attention", i), "at least 1");
    }
    if (a.heads % a.kv_heads != 0) {
      keys_.refuse("attention.head_count_kv",
                   fmt::format("is {} and does not divide the {} heads", a.kv_heads, a.heads));
    }
    const auto name = [&](std::string_view leaf) { return fmt::format("blk.{}.{}", i, leaf); };
    const int64_t q = checked_mul(a.heads, a.head_dim), k = checked_mul(a.kv_heads, a.head_dim),
                  v = checked_mul(a.kv_heads, a.value_head_dim);
    const auto expect = [&](std::string_view leaf, int64_t wanted) {
      const int64_t found = rows(leaf, i);
      if (found == 0 || found == wanted) return;
      keys_.refuse_tensor(name(leaf), fmt::format("has {} rows", with_commas(found)),
                          fmt::format("{}, by the heads of the metadata", with_commas(wanted)));
    };
    const int64_t q_rows = rows("attn_q.weight", i);
    a.output_gate = q_rows > 0 && q_rows == checked_mul(2, q);
    if (!a.output_gate) expect("attn_q.weight", q);
    expect("attn_k.weight", k);
    expect("attn_v.weight", v);
    expect("attn_qkv.weight", checked_add(q, checked_add(k, v)));
  }

  Attention latent(int64_t i) {
    Attention a;
    a.kind = AttentionKind::mla;
    a.heads = a.kv_heads = heads(i);
    a.kv_lora_rank = keys_.required("attention.kv_lora_rank", 1, arch::kMaxWidth);
    a.q_lora_rank = rows("attn_q_a.weight", i);
    a.rope_head_dim = rows("attn_kv_a_mqa.weight", i) - a.kv_lora_rank;
    if (a.rope_head_dim < 0) {
      keys_.refuse("attention.kv_lora_rank",
                   fmt::format("is {}; attn_kv_a_mqa has {} rows", a.kv_lora_rank, rows("attn_kv_a_mqa.weight", i)));
    }
    // Files made for absorbed attention hold key_length = rank + rope and the real lengths beside it.
    const auto length = [&](std::string_view mla, std::string_view plain) {
      const auto n = keys_.integer(mla, 1, arch::kMaxWidth);
      return n ? *n : keys_.required(plain, 1, arch::kMaxWidth);
    };
    a.head_dim = length("attention.key_length_mla", "attention.key_length");
    a.value_head_dim = length("attention.value_length_mla", "attention.value_length");
    if (a.head_dim <= a.rope_head_dim) {
      keys_.refuse("attention.key_length", fmt::format("is {}", a.head_dim),
                   fmt::format("more than the {} rotary dimensions", a.rope_head_dim));
    }
    a.nope_head_dim = a.head_dim - a.rope_head_dim;
    const int64_t q = rows(a.q_lora_rank > 0 ? "attn_q_b.weight" : "attn_q.weight", i);
    if (q != checked_mul(a.heads, a.head_dim)) {
      keys_.refuse("attention.key_length", fmt::format("times {} heads is not the {} rows of the queries", a.heads, q));
    }
    if (has("indexer.attn_k.weight", i)) {
      a.index_heads = keys_.required("attention.indexer.head_count", 1, arch::kMaxWidth);
      a.index_head_dim = keys_.required("attention.indexer.key_length", 1, arch::kMaxWidth);
      a.index_topk = keys_.required("attention.indexer.top_k", 1, arch::kMaxPositions);
    }
    return a;
  }

  Attention gated_delta() const {
    Attention a;
    a.kind = AttentionKind::linear;
    a.conv_kernel = keys_.required("ssm.conv_kernel", 1, 1000);
    a.inner = keys_.required("ssm.inner_size", 1, arch::kMaxWidth);
    a.state_dim = a.head_dim = keys_.required("ssm.state_size", 1, arch::kMaxWidth);
    a.heads = keys_.required("ssm.time_step_rank", 1, arch::kMaxWidth);
    a.groups = a.kv_heads = keys_.required("ssm.group_count", 1, arch::kMaxWidth);
    if (a.inner % a.heads != 0) keys_.refuse("ssm.time_step_rank", fmt::format("does not divide {}", a.inner));
    a.value_head_dim = a.inner / a.heads;
    const int64_t keys = checked_mul(a.kv_heads, a.head_dim);
    a.state_elements = checked_mul(a.inner, a.head_dim);
    a.conv_elements = checked_mul(a.conv_kernel - 1, checked_add(checked_mul(2, keys), a.inner));
    return a;
  }

  Attention kimi_delta(int64_t i) const {
    Attention a;
    a.kind = AttentionKind::linear;
    a.heads = a.kv_heads = heads(i);
    a.head_dim = a.value_head_dim = a.state_dim = keys_.required("kda.head_dim", 1, arch::kMaxWidth);
    a.conv_kernel = keys_.required("ssm.conv_kernel", 1, 1000);
    a.inner = checked_mul(a.heads, a.head_dim);
    a.state_elements = checked_mul(a.inner, a.head_dim);
    a.conv_elements = checked_mul(checked_mul(3, a.conv_kernel - 1), a.inner);
    return a;
  }

  Attention mamba(int64_t i) const {
    Attention a;
    a.inner = keys_.required("ssm.inner_size", 1, arch::kMaxWidth);
    a.state_dim = keys_.required("ssm.state_size", 1, arch::kMaxWidth);
    a.conv_kernel = keys_.required("ssm.conv_kernel", 1, 1000);
    a.state_elements = checked_mul(a.inner, a.state_dim);
    int64_t channels = a.inner;
    if (has("ssm_x.weight", i)) {
      a.kind = AttentionKind::mamba1;
    } else {
      a.kind = AttentionKind::mamba2;
      a.groups = keys_.required("ssm.group_count", 1, arch::kMaxWidth);
      a.heads = keys_.required("ssm.time_step_rank", 1, arch::kMaxWidth);
      if (a.inner % a.heads != 0) keys_.refuse("ssm.time_step_rank", fmt::format("does not divide {}", a.inner));
      a.head_dim = a.value_head_dim = a.inner / a.heads;
      channels = checked_add(channels, checked_mul(checked_mul(2, a.groups), a.state_dim));
    }
    a.conv_elements = checked_mul(a.conv_kernel - 1, channels);
    return a;
  }

  Attention short_convolution() const {
    Attention a;
    a.kind = AttentionKind::convolution;
    a.inner = model_.hidden;
    a.conv_kernel = keys_.required("shortconv.l_cache", 1, 1000);
    a.conv_elements = checked_mul(a.conv_kernel - 1, model_.hidden);
    return a;
  }

  Attention rwkv() const {
    Attention a;
    a.kind = AttentionKind::rwkv;
    a.head_dim = a.value_head_dim = a.state_dim = keys_.required("wkv.head_size", 1, arch::kMaxWidth);
    a.inner = model_.hidden;
    if (a.inner % a.head_dim != 0) keys_.refuse("wkv.head_size", fmt::format("does not divide {}", a.inner));
    a.heads = a.kv_heads = a.inner / a.head_dim;
    a.state_elements = checked_mul(a.inner, a.head_dim);
    a.conv_elements = checked_mul(keys_.integer_or("token_shift_count", 2, 0, 16), model_.hidden);
    return a;
  }

  Mlp mlp(int64_t i) {
    Mlp m;
    m.activation = known_ ? known_->activation : "silu";
    const int64_t dense = rows("ffn_up.weight", i) > 0 ? rows("ffn_up.weight", i) : rows("channel_mix_key.weight", i);
    const bool routed = has("ffn_down_exps.weight", i);
    if (!routed) {
      if (dense == 0) {
        m = Mlp{};
        m.kind = MlpKind::none;
        return m;
      }
      // Gate and up may be one matrix (phi3, glm4): then twice as wide as what ffn_down reads.
      const int64_t inner = columns("ffn_down.weight", i) > 0 ? columns("ffn_down.weight", i) : dense;
      const bool fused = dense == checked_mul(2, inner);
      m.kind = has("ffn_gate.weight", i) || fused ? MlpKind::gated : MlpKind::plain;
      m.ffn = inner;
      m.bias = has("ffn_down.bias", i);
      return m;
    }
    m.kind = MlpKind::moe;
    m.experts = keys_.required("expert_count", 1, arch::kMaxExperts);
    m.experts_per_token = keys_.required("expert_used_count", 1, m.experts);
    const auto down = shape(blk("ffn_down_exps.weight"), i);
    if (down.size() != 3 || down[0] != m.experts) {
      keys_.refuse("expert_count", fmt::format("is {}; ffn_down_exps of block {} has another number", m.experts, i));
    }
    m.expert_ffn = down[2];
    m.expert_gated = has("ffn_gate_exps.weight", i) || has("ffn_gate_up_exps.weight", i);
    m.expert_bias = has("ffn_down_exps.bias", i);
    m.shared_ffn = columns("ffn_down_shexp.weight", i);
    m.shared_gate = has("ffn_gate_inp_shexp.weight", i);
    m.dense_ffn = dense;
    // Nemotron-H's experts work in a narrower space.
    if (down[1] != model_.hidden) m.latent = down[1];
    return m;
  }

  // --- the tensors ---

  int64_t kind_of(Part part, int64_t layer) const {
    const bool own = (part == Part::text || part == Part::encoder) && layer >= 0 && layer < model_.layers();
    return own ? model_.layer_kind[static_cast<size_t>(layer)] : -1;
  }

  arch::Placed place(const TensorTable::Cell& cell) const {
    const std::string& pattern = table_.patterns()[cell.pattern];
    const bool linear = model_.shape_known && cell.layer >= 0 && cell.layer < model_.layers() &&
                        model_.layer(cell.layer).attention.kind == AttentionKind::linear;
    arch::Placed out{arch::describe_gguf_name(pattern, table_.shape(cell), linear), {}};
    if (model_.shape_known && cell.layer >= model_.layers() && pattern.compare(0, 4, "blk.") == 0)
      out.what.part = Part::mtp;
    return out;
  }

  // The dtype of computation, and the quantization as far as the matrices have one.
  void precision() {
    std::map<std::string_view, Bytes> bytes_of;
    int64_t numbers = 0;
    Bytes bytes = 0, plain[3] = {0, 0, 0};
    for (const TensorGroup& g : model_.tensors) {
      for (const Tensor& t : g.tensors) {
        if (!t.learned) continue;
        const Encoding* e = gguf_encoding(t.stored_as);
        const Bytes all = checked_mul(t.stored_bytes, checked_mul(g.times(), t.experts));
        if (e->plain()) {
          if (t.shape.size() > 1) {
            plain[t.dtype == Dtype::bf16 ? 0 : t.dtype == Dtype::f16 ? 1 : 2] += all;
          }
          continue;
        }
        bytes_of[t.stored_as] += all;
        bytes = checked_add(bytes, all);
        numbers = checked_add(numbers, checked_mul(t.elements(), checked_mul(g.times(), t.experts)));
      }
    }
    // Packed weights are computed in 16 bits; llama.cpp keeps the cache of every file in f16 unless told otherwise.
    if (numbers > 0) {
      model_.dtype = Dtype::f16;
    } else {
      model_.dtype = plain[2] > plain[0] + plain[1] ? Dtype::f32 : plain[1] > plain[0] ? Dtype::f16 : Dtype::bf16;
    }
    if (numbers == 0) return;
    std::vector<std::pair<Bytes, std::string_view>> most;
    for (const auto& [name, b] : bytes_of) most.emplace_back(b, name);
    std::sort(most.rbegin(), most.rend());
    std::string detail;
    for (size_t i = 0; i < most.size() && i < 4; ++i) {
      const double share = 100.0 * static_cast<double>(most[i].first) / static_cast<double>(bytes);
      detail += fmt::format("{}{} {:.0f}%", i ? ", " : "", most[i].second, share);
    }
    Quantization q;
    q.method = "gguf";
    q.detail = detail;
    q.bits_per_weight = 8.0 * static_cast<double>(bytes) / static_cast<double>(numbers);
    model_.quantization = std::move(q);
  }

  TensorTable table_;
  const std::string& file_;
  Model model_;
  Keys keys_;
  const arch::GgufArch* known_ = nullptr;
  int64_t layers_ = 0;
};

}  // namespace

Model model_from_gguf(const GgufMetadata& meta, const FileTensors& tensors, const std::string& file, std::string name) {
  const Document* type = meta.find("general.type");
  if (type && type->is_string() && type->string() == "adapter") {
    throw InputError({.file = file, .problem = "holds a LoRA adapter", .accepted = "a GGUF file of a model"});
  }
  if (tensors.tensors().empty()) {
    throw InputError(
        {.file = file, .problem = "holds no tensors (a vocabulary alone)", .accepted = "a GGUF file of a model"});
  }
  try {
    return Builder(meta, tensors, file, std::move(name)).build();
  } catch (const OverflowError&) {
    throw InputError({.file = file, .problem = "describes a model of more than 2^63 bytes"});
  }
}

}  // namespace vram
