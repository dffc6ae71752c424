#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tensors.h"

namespace vram::arch {

/// How one family's checkpoints name and lay out the tensors of a layer. Choices only; the widths come from LayerKind.
struct Style {
  std::string root = "model";     ///< before "layers" and the final norm
  std::string layers = "layers";  ///< root.layers.{layer}
  std::string attention = "self_attn";
  std::string q = "q_proj", k = "k_proj", v = "v_proj", o = "o_proj";
  std::string q_norm = "q_norm", k_norm = "k_norm";
  std::string fused_qkv;                    ///< one matrix of q, k and v rows, where not empty
  bool q_and_v_bias = true, k_bias = true;  ///< apply only where Attention::qkv_bias
  NormKind qk_norm_kind = NormKind::rmsnorm;
  bool qk_norm_bias = false;
  bool separate_kv_of_sharing = true;  ///< layers that reuse a KV cache store k and v projections all the same
  std::string sinks = "sinks";
  std::string attention_gate;  ///< a separate output-gate projection [heads * value_head_dim, hidden]
  std::string index_q = "indexer.wq_b", index_k = "indexer.wk";
  bool transposed = false;  ///< Conv1D of GPT-2: matrices stored [in, out]

  std::string mlp = "mlp";
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";
  std::string fused_gate_up;

  std::string moe = "mlp";  ///< owner of router and experts
  std::string router = "gate";
  bool router_bias = false;             ///< an ordinary bias of the router matmul
  std::string correction_bias;          ///< a bias for choosing experts only ("gate.e_score_correction_bias")
  bool correction_bias_learned = true;  ///< false: a buffer, not among the parameters
  std::string experts = "experts.{expert}";
  std::string expert_gate = "gate_proj", expert_up = "up_proj", expert_down = "down_proj";
  /// Stacked: [experts, ...] tensors of gate and up in one and of down ("experts.gate_up_proj", "experts.down_proj").
  std::string stacked_gate_up, stacked_down;
  bool stacked_in_first = false;  ///< stacked as [experts, in, out]
  std::string shared = "shared_experts", shared_gate = "shared_expert_gate";
  std::string shared_fused_gate_up;
  std::string latent_in, latent_out, latent_norm;

  std::vector<std::string> norms = {"input_layernorm", "post_attention_layernorm"};
  bool norm_bias = false;

  std::string embedding = "embed_tokens";  ///< under embedding_root
  std::string embedding_root;              ///< empty: root
  std::string positions;                   ///< learned position table under root, where not empty
  std::string embedding_norm;
  std::string final_norm = "norm";  ///< under root; empty: none
  std::string head = "lm_head";     ///< full name; empty: the model has no head

  std::string layer() const { return dotted(dotted(root, layers), "{layer}"); }
};

/// One layer: what it computes, and a number that tells apart layers of equal kind and unequal tensors.
struct Layer {
  LayerKind kind;
  int variant = 0;
};

/// Emits tensors of a layer under `prefix`; false: not its kind of layer, the usual tensors are meant.
using Emit = std::function<bool(TensorList&, const Layer&, const std::string& prefix)>;

void attention_tensors(TensorList& t, const std::string& layer, const Attention& a, const Style& s, int64_t hidden);
void mla_tensors(TensorList& t, const std::string& module, const Attention& a, const Style& s, int64_t hidden);
void mlp_tensors(TensorList& t, const std::string& module, const Mlp& m, const Style& s, int64_t hidden);
void moe_tensors(TensorList& t, const std::string& module, const Mlp& m, const Style& s, int64_t hidden);
/// Routed experts alone; `width` is what they read and write.
void expert_tensors(TensorList& t, const std::string& module, const Mlp& m, const Style& s, int64_t width);

/// A decoder: one-off tensors, layers, and multi-token-prediction layers.
struct Decoder {
  Style style;
  int64_t hidden = 0, vocab = 0, layers = 0;
  int64_t embedding_width = 0;  ///< where it differs from hidden (opt-350m); 0: hidden
  int64_t position_rows = 0;
  bool tied = false;
  bool head_bias = false;
  NormKind norm = NormKind::rmsnorm;
  std::function<Layer(int64_t)> layer;  ///< the layer of index 0 .. layers-1
  Emit mixer;                           ///< tried before attention_tensors
  Emit mlp;                             ///< tried before the MLP or expert tensors
  Emit extra;                           ///< more tensors of each layer; its result is ignored
  /// More one-off tensors; gets style.root, which a multimodal checkpoint sets after the family has made the decoder.
  std::function<void(TensorList&, const std::string& root)> outer;

  /// Layers that predict further tokens: stored, but not among the parameters.
  struct Mtp {
    int64_t count = 0;
    bool numbered = true;            ///< model.layers.{L}, with enorm, hnorm, eh_proj, shared_head.norm inside
    bool own_embeddings = false;     ///< a copy of embedding and head in the layer
    bool learned_embeddings = true;  ///< false: the copies do not count as MTP parameters
    Layer layer;
  } mtp;
};

/// Appends the decoder to `assembly` (part text, and mtp) and sets the shape fields of the model.
void build_decoder(const Decoder& decoder, Assembly& assembly);

}  // namespace vram::arch
