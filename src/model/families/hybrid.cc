// State-space models and their hybrids with attention, and LFM2's short convolutions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "model/families/families.h"
#include "model/recurrent.h"

namespace vram::arch {

namespace {

using QkNorm = Attention::QkNorm;

LayerKind bare_mixer(const Attention& a) {
  LayerKind k;
  k.attention = a;
  k.mlp.kind = MlpKind::none;
  k.norms = 1;
  return k;
}

Sizes mamba_sizes(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.vocab = r.vocab();
  s.positions = r.positions();
  return s;
}

void backbone_names(Style& s) {
  s.root = "backbone";
  s.embedding = "embeddings";
  s.norms = {"norm"};
  s.final_norm = "norm_f";
}

Decoder mamba1_decoder(const Reader& r, bool tied) {
  const Sizes s = mamba_sizes(r);
  const int64_t inner = r.size_or({"intermediate_size"}, checked_mul(r.size_or({"expand"}, 2, 1000), s.hidden));
  int64_t rank = ceil_div(s.hidden, 16);
  if (const Document* f = r.text().find({"time_step_rank"}); f && !f->is_string()) rank = r.size({"time_step_rank"});
  const MambaBiases biases{r.flag({"use_conv_bias"}, true), r.flag({"use_bias"}, false), false};
  const LayerKind k = bare_mixer(mamba1(inner, r.size_or({"state_size"}, 16), r.size_or({"conv_kernel"}, 4, 1000)));
  Decoder d = r.decoder(s, tied);
  backbone_names(d.style);
  d.layer = [k](int64_t) { return Layer{k, 0}; };
  d.mixer = [=, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    mamba1_tensors(t, dotted(prefix, "mixer"), layer.kind.attention, hidden, rank, biases);
    return true;
  };
  return d;
}

}  // namespace

Decoder mamba(const Reader& r) { return mamba1_decoder(r, true); }
Decoder falcon_mamba(const Reader& r) { return mamba1_decoder(r, false); }

Decoder mamba2(const Reader& r) {
  const Sizes s = mamba_sizes(r);
  const int64_t inner = checked_mul(r.size_or({"expand"}, 2, 1000), s.hidden);
  const int64_t head_dim = r.size_or({"head_dim"}, 64);
  const int64_t heads = r.size_or({"num_heads"}, std::max<int64_t>(1, inner / head_dim));
  const MambaBiases biases{r.flag({"use_conv_bias"}, true), r.flag({"use_bias"}, false), false};
  const LayerKind k = bare_mixer(arch::mamba2(heads, head_dim, r.size_or({"state_size"}, 128),
                                              r.size_or({"n_groups"}, 8), r.size_or({"conv_kernel"}, 4, 1000)));
  Decoder d = r.decoder(s, false);
  backbone_names(d.style);
  d.layer = [k](int64_t) { return Layer{k, 0}; };
  d.mixer = [=, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    mamba2_tensors(t, dotted(prefix, "mixer"), layer.kind.attention, hidden, biases);
    return true;
  };
  return d;
}

Decoder jamba(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind full;
  full.attention = r.attention(s);
  full.mlp = r.gated(s);
  r.dropouts(full);
  Mlp experts;
  const bool any = r.count_or({"num_experts"}, 16, kMaxExperts) > 1;
  if (any) experts = r.moe({"num_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  const int64_t inner = checked_mul(r.size_or({"mamba_expand"}, 2, 1000), s.hidden);
  int64_t rank = ceil_div(s.hidden, 16);
  if (const Document* f = r.text().find({"mamba_dt_rank"}); f && !f->is_string()) rank = r.size({"mamba_dt_rank"});
  const MambaBiases biases{r.flag({"mamba_conv_bias"}, true), r.flag({"mamba_proj_bias"}, false), true};
  LayerKind recurrent = full;
  recurrent.attention = mamba1(inner, r.size_or({"mamba_d_state"}, 16), r.size_or({"mamba_d_conv"}, 4, 1000));
  const int64_t attention_period = r.size_or({"attn_layer_period"}, 8, kMaxLayers);
  const int64_t attention_offset = r.count_or({"attn_layer_offset"}, 4, kMaxLayers);
  const int64_t expert_period = r.size_or({"expert_layer_period"}, 2, kMaxLayers);
  const int64_t expert_offset = r.count_or({"expert_layer_offset"}, 1, kMaxLayers);
  Decoder d = r.decoder(s, false);
  d.style.mlp = d.style.moe = "feed_forward";
  d.style.router = "router";
  d.style.norms = {"input_layernorm", "pre_ff_layernorm"};
  d.style.final_norm = "final_layernorm";
  d.layer = [=](int64_t i) {
    Layer layer{i % attention_period == attention_offset ? full : recurrent, 0};
    if (any && i % expert_period == expert_offset) layer.kind.mlp = experts;
    return layer;
  };
  d.mixer = [=, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    if (layer.kind.attention.kind != AttentionKind::mamba1) return false;
    mamba1_tensors(t, dotted(prefix, "mamba"), layer.kind.attention, hidden, rank, biases);
    return true;
  };
  return d;
}

namespace {

// One block a layer: M Mamba-2, * attention, - MLP, E experts.
std::string block_letters(const Reader& r, Reader::Names pattern, Reader::Names words) {
  if (const auto list = r.text().strings(words)) {
    std::string letters;
    for (const std::string& word : *list) {
      if (word == "mamba") {
        letters += 'M';
      } else if (word == "attention") {
        letters += '*';
      } else if (word == "mlp") {
        letters += '-';
      } else if (word == "moe") {
        letters += 'E';
      } else {
        throw InputError({.file = r.text().file(),
                          .line = r.text().find(words)->line(),
                          .field = r.text().prefix() + std::string(*words.begin()),
                          .value = word,
                          .problem = "is no known kind of block",
                          .accepted = "mamba, attention, mlp or moe"});
      }
    }
    return letters;
  }
  std::string letters = r.word(pattern, "");
  letters.erase(std::remove(letters.begin(), letters.end(), '|'), letters.end());
  const size_t bad = letters.find_first_not_of("M*-E");
  if (bad != std::string::npos) {
    r.text().refuse(*pattern.begin(), fmt::format("holds '{}'", printable(letters.substr(bad, 1))),
                    "the letters M, *, - and E");
  }
  return letters;
}

}  // namespace

Decoder nemotron_h(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.heads = r.heads();
  s.kv_heads = r.kv_heads(s.heads);
  s.head_dim = r.head_dim(s.hidden, s.heads);
  s.vocab = r.vocab();
  s.positions = r.positions();
  const std::string letters = block_letters(r, {"hybrid_override_pattern"}, {"layers_block_type"});
  if (letters.empty()) {
    r.text().refuse("hybrid_override_pattern", "is missing", "one letter a layer (M, *, -, E), or layers_block_type");
  }
  s.layers = static_cast<int64_t>(letters.size());
  if (s.layers > kMaxLayers)
    r.text().refuse("hybrid_override_pattern", "is too long", fmt::format("at most {} layers", kMaxLayers));
  if (const auto given = r.text().integer({"num_hidden_layers"}, {1, kMaxLayers}); given && *given != s.layers) {
    r.text().refuse("num_hidden_layers", fmt::format("contradicts the pattern of {} layers", s.layers),
                    fmt::format("{}", s.layers));
  }
  LayerKind attention;
  attention.attention = r.attention(s);
  attention.attention.qkv_bias = attention.attention.out_bias = r.flag({"attention_bias"}, false);
  attention.mlp.kind = MlpKind::none;
  attention.norms = 1;
  r.dropouts(attention);
  LayerKind recurrent =
      bare_mixer(arch::mamba2(r.size({"mamba_num_heads"}), r.size({"mamba_head_dim"}), r.size({"ssm_state_size"}),
                              r.size_or({"n_groups"}, 8), r.size_or({"conv_kernel"}, 4, 1000)));
  LayerKind plain = bare_mixer(Attention{});
  plain.attention.kind = AttentionKind::none;
  LayerKind experts = plain;
  const bool has_plain = letters.find('-') != std::string::npos;
  if (has_plain) {
    s.ffn = r.ffn();
    plain.mlp = r.plain(s, "relu2");
    plain.mlp.bias = r.flag({"mlp_bias"}, false);
  }
  if (letters.find('E') != std::string::npos) {
    experts.mlp = r.moe({"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"}, "relu2");
    experts.mlp.expert_gated = false;
    experts.mlp.shared_ffn = r.count_or({"n_shared_experts"}, 1, kMaxExperts) > 0
                                 ? r.count_or({"moe_shared_expert_intermediate_size"}, 0, kMaxVocab)
                                 : 0;
    experts.mlp.latent = r.count_or({"moe_latent_size"}, 0);
  }
  const MambaBiases biases{r.flag({"use_conv_bias"}, true), r.flag({"mamba_proj_bias", "use_bias"}, false), false};
  const auto layer_of = [=](char letter) {
    switch (letter) {
      case 'M':
        return Layer{recurrent, 0};
      case '*':
        return Layer{attention, 0};
      case '-':
        return Layer{plain, 0};
      default:
        return Layer{experts, 0};
    }
  };
  Decoder d = r.decoder(s, false);
  backbone_names(d.style);
  d.style.attention = d.style.mlp = d.style.moe = "mixer";
  d.style.correction_bias = "gate.e_score_correction_bias";
  d.style.correction_bias_learned = false;
  d.style.latent_in = "fc1_latent_proj";
  d.style.latent_out = "fc2_latent_proj";
  d.layer = [=](int64_t i) { return layer_of(letters[static_cast<size_t>(i)]); };
  d.mixer = [=, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    if (layer.kind.attention.kind != AttentionKind::mamba2) return false;
    mamba2_tensors(t, dotted(prefix, "mixer"), layer.kind.attention, hidden, biases);
    return true;
  };
  if (r.count_or({"num_nextn_predict_layers"}, 0, kMaxLayers) > 0) {
    r.assume("model.assume.mtp_uncounted");
  }
  return d;
}

Decoder granite_hybrid(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.kv_heads = r.kv_heads(s.heads);
  s.head_dim = r.head_dim(s.hidden, s.heads);
  s.vocab = r.vocab();
  s.positions = r.positions();
  const auto kinds = r.attention_kinds(s.layers, [](int64_t) { return AttentionKind::mamba2; });
  LayerKind full;
  full.attention = r.attention(s);
  full.attention.qkv_bias = full.attention.out_bias = r.flag({"attention_bias"}, false);
  r.dropouts(full);
  Mlp& m = full.mlp;
  m.activation = r.activation("silu");
  const int64_t shared = r.count_or({"shared_intermediate_size"}, 0, kMaxVocab);
  if (r.count_or({"num_local_experts"}, 0, kMaxExperts) > 0) {
    m = r.moe({"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
    m.shared_ffn = shared;
  } else {
    m.kind = MlpKind::gated;
    m.ffn = shared;
  }
  LayerKind recurrent = full;
  const bool any = std::find(kinds.begin(), kinds.end(), AttentionKind::mamba2) != kinds.end();
  if (any) {
    const int64_t inner = checked_mul(r.size_or({"mamba_expand"}, 2, 1000), s.hidden);
    const int64_t heads = r.size_or({"mamba_n_heads"}, 128);
    int64_t head_dim = inner / heads;
    if (const Document* f = r.text().find({"mamba_d_head"}); f && !f->is_string()) head_dim = r.size({"mamba_d_head"});
    recurrent.attention = arch::mamba2(heads, std::max<int64_t>(head_dim, 1), r.size_or({"mamba_d_state"}, 256),
                                       r.size_or({"mamba_n_groups"}, 1), r.size_or({"mamba_d_conv"}, 4, 1000));
  }
  const MambaBiases biases{r.flag({"mamba_conv_bias"}, true), r.flag({"mamba_proj_bias"}, false), false};
  Decoder d = r.decoder(s, true);
  d.layer = [=](int64_t i) {
    return Layer{kinds[static_cast<size_t>(i)] == AttentionKind::mamba2 ? recurrent : full, 0};
  };
  d.mixer = [=, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    if (layer.kind.attention.kind != AttentionKind::mamba2) return false;
    mamba2_tensors(t, dotted(prefix, "mamba"), layer.kind.attention, hidden, biases);
    return true;
  };
  d.mlp = [style = d.style, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    const Mlp& mlp = layer.kind.mlp;
    const bool sparse = mlp.kind == MlpKind::moe;
    const int64_t dense = sparse ? mlp.shared_ffn : mlp.ffn;
    if (dense > 0) {
      const std::string module = dotted(prefix, "shared_mlp");
      t.linear(module, "input_linear", checked_mul(2, dense), hidden, sparse ? Role::shared_expert : Role::mlp_gate_up,
               Shard::column);
      t.linear(module, "output_linear", hidden, dense, sparse ? Role::shared_expert : Role::mlp_down, Shard::row);
    }
    if (!sparse) return true;
    const std::string moe = dotted(prefix, "block_sparse_moe");
    t.linear(dotted(moe, "router"), "layer", mlp.experts, hidden, Role::router, Shard::replicated);
    Style names = style;
    names.stacked_gate_up = "input_linear.weight";
    names.stacked_down = "output_linear.weight";
    expert_tensors(t, moe, mlp, names, hidden);
    return true;
  };
  return d;
}

Decoder bamba(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind full;
  full.attention = r.attention(s);
  full.attention.qkv_bias = full.attention.out_bias = r.flag({"attention_bias"}, false);
  full.mlp = r.gated(s);
  full.mlp.bias = r.flag({"mlp_bias"}, false);
  r.dropouts(full);
  const int64_t inner = checked_mul(r.size_or({"mamba_expand"}, 2, 1000), s.hidden);
  const int64_t heads = r.size_or({"mamba_n_heads"}, 128);
  int64_t head_dim = std::max<int64_t>(1, inner / heads);
  if (const Document* f = r.text().find({"mamba_d_head"}); f && !f->is_string()) head_dim = r.size({"mamba_d_head"});
  LayerKind recurrent = full;
  recurrent.attention = arch::mamba2(heads, head_dim, r.size_or({"mamba_d_state"}, 256),
                                     r.size_or({"mamba_n_groups"}, 1), r.size_or({"mamba_d_conv"}, 4, 1000));
  std::vector<bool> attends(static_cast<size_t>(s.layers), false);
  for (int64_t i : r.text().integers({"attn_layer_indices"}, {0, kMaxLayers}).value_or(std::vector<int64_t>())) {
    if (i < s.layers) attends[static_cast<size_t>(i)] = true;
  }
  const MambaBiases biases{r.flag({"mamba_conv_bias"}, true), r.flag({"mamba_proj_bias"}, false), false};
  Decoder d = r.decoder(s, false);
  d.style.mlp = "feed_forward";
  d.style.norms = {"input_layernorm", "pre_ff_layernorm"};
  d.style.final_norm = "final_layernorm";
  d.layer = [=](int64_t i) { return Layer{attends[static_cast<size_t>(i)] ? full : recurrent, 0}; };
  d.mixer = [=, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    if (layer.kind.attention.kind != AttentionKind::mamba2) return false;
    mamba2_tensors(t, dotted(prefix, "mamba"), layer.kind.attention, hidden, biases);
    return true;
  };
  return d;
}

Decoder lfm2(const Reader& r) {
  Sizes s;
  s.hidden = r.hidden();
  s.layers = r.layers();
  s.heads = r.heads();
  s.kv_heads = r.kv_heads(s.heads);
  s.head_dim = r.head_dim(s.hidden, s.heads);
  s.ffn = r.size({"block_ff_dim", "intermediate_size"}, kMaxVocab);
  s.vocab = r.vocab();
  s.positions = r.positions();
  const bool experts = r.text().has({"num_experts"});
  if (!experts && r.flag({"block_auto_adjust_ff_dim"}, true)) {
    // Two thirds, scaled, rounded up to a multiple.
    const double scale = r.text().real({"block_ffn_dim_multiplier"}, 1e-3, 1e3).value_or(1.0);
    s.ffn = static_cast<int64_t>(scale * static_cast<double>(2 * s.ffn / 3));
    s.ffn = round_up(std::max<int64_t>(s.ffn, 1), r.size_or({"block_multiple_of"}, 256));
  }
  LayerKind full;
  full.attention = r.attention(s);
  full.attention.qk_norm = QkNorm::per_head;
  full.mlp = r.gated(s);
  r.dropouts(full);
  LayerKind conv = full;
  conv.attention = Attention{};
  conv.attention.kind = AttentionKind::convolution;
  conv.attention.inner = s.hidden;
  conv.attention.conv_kernel = r.size_or({"conv_L_cache"}, 3, 1000);
  conv.attention.conv_elements = checked_mul(conv.attention.conv_kernel - 1, s.hidden);
  const bool conv_bias = r.flag({"conv_bias"}, false);
  std::vector<bool> attends(static_cast<size_t>(s.layers), false);
  if (const auto list = r.text().integers({"full_attn_idxs"}, {0, kMaxLayers})) {
    for (int64_t i : *list) {
      if (i < s.layers) attends[static_cast<size_t>(i)] = true;
    }
  } else {
    const auto kinds = r.attention_kinds(s.layers, [](int64_t) { return AttentionKind::full; });
    for (size_t i = 0; i < attends.size(); ++i) attends[i] = kinds[i] == AttentionKind::full;
  }
  Mlp moe;
  if (experts) moe = r.moe({"num_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  const int64_t dense = experts ? r.count_or({"num_dense_layers"}, 2, kMaxLayers) : s.layers;
  Decoder d = r.decoder(s, true);
  d.style.o = "out_proj";
  d.style.q_norm = "q_layernorm";
  d.style.k_norm = "k_layernorm";
  d.style.mlp = d.style.moe = "feed_forward";
  d.style.gate = d.style.expert_gate = "w1";
  d.style.up = d.style.expert_up = "w3";
  d.style.down = d.style.expert_down = "w2";
  d.style.norms = {"operator_norm", "ffn_norm"};
  d.style.final_norm = "embedding_norm";
  if (experts && r.flag({"use_expert_bias"}, true)) d.style.correction_bias = "expert_bias";
  d.layer = [=](int64_t i) {
    Layer layer{attends[static_cast<size_t>(i)] ? full : conv, 0};
    if (i >= dense) layer.kind.mlp = moe;
    return layer;
  };
  d.mixer = [hidden = s.hidden, conv_bias](TensorList& t, const Layer& layer, const std::string& prefix) {
    const Attention& a = layer.kind.attention;
    if (a.kind != AttentionKind::convolution) return false;
    const std::string m = dotted(prefix, "conv");
    t.linear(m, "in_proj", checked_mul(3, hidden), hidden, Role::convolution, Shard::column, conv_bias);
    t.add(dotted(m, "conv.weight"), m, {hidden, 1, a.conv_kernel}, Role::convolution, Shard::column);
    if (conv_bias) t.add(dotted(m, "conv.bias"), m, {hidden}, Role::bias, Shard::column);
    t.linear(m, "out_proj", hidden, hidden, Role::convolution, Shard::row, conv_bias);
    return true;
  };
  return d;
}

}  // namespace vram::arch
