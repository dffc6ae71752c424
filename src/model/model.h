#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/dtype.h"
#include "base/messages.h"

namespace vram {

/// What a tensor does. Views group by it; quantization schemes and optimizers choose by it.
enum class Role : uint8_t {
  embedding,
  position_embedding,
  head,
  norm,
  attention_q,
  attention_k,
  attention_v,
  attention_qkv,
  attention_out,
  attention_other,   ///< sinks, gates, MLA down-projections, sparse-index projections
  linear_attention,  ///< gated delta net, lightning, KDA
  mamba,
  convolution,
  rwkv,
  mlp_gate,
  mlp_up,
  mlp_gate_up,
  mlp_down,
  router,
  expert_gate,
  expert_up,
  expert_gate_up,
  expert_down,
  shared_expert,
  bias,
  vision,
  projector,
  audio,
  mtp,
  scale,
  other
};
std::string_view role_name(Role role);

/// How tensor and expert parallelism cut a tensor.
enum class Shard : uint8_t {
  replicated,  ///< a whole copy on every tensor-parallel rank
  column,      ///< outputs (dimension 0; the last of GPT-2's transposed matrices) divided by tensor_parallel
  row,         ///< inputs (the other dimension) divided by tensor_parallel
  kv_column,   ///< as column, but never below one KV head: heads replicate beyond kv_heads ranks
  vocab,       ///< vocabulary rows divided by tensor_parallel, after padding
  expert_column,
  expert_row,
  expert_replicated  ///< experts divided by expert_parallel, then by expert tensor parallel
};
std::string_view shard_name(Shard shard);

/// One kind of parameter tensor. "{layer}" and "{expert}" in the name stand for indices, so that a model of a hundred
/// thousand tensors is a few dozen of these.
struct Tensor {
  std::string name;            ///< as the published checkpoint names it
  std::vector<int64_t> shape;  ///< logical shape, rows first ([out, in] for a linear)
  Dtype dtype = Dtype::bf16;   ///< storage dtype before quantization
  Role role = Role::other;
  Shard shard = Shard::replicated;
  std::string module;        ///< owner: "model.layers.{layer}.self_attn"
  int64_t experts = 1;       ///< copies for {expert} = 0 .. experts-1; stacked experts are dimension 0 instead
  bool learned = true;       ///< false: buffers, copies of tied tensors, quantization side tensors
  bool linear = false;       ///< a matmul weight that a quantization scheme may convert
  int64_t elements() const;  ///< of one copy; throws OverflowError
  /// Bytes of one copy as stored, quantization included.
  Bytes stored_bytes = 0;
  /// The format in a weight file ("Q4_K", "F8_E4M3"), of which dtype is the nearest; empty where no file was read.
  std::string_view stored_as = {};
};

/// Tensors that occur once (layers empty) or once in each of the named layers.
struct TensorGroup {
  std::vector<int64_t> layers;
  std::vector<Tensor> tensors;
  enum class Part : uint8_t { text, encoder, vision, audio, mtp } part = Part::text;
  int64_t times() const { return layers.empty() ? 1 : static_cast<int64_t>(layers.size()); }
};

enum class AttentionKind : uint8_t { none, full, sliding, chunked, mla, linear, mamba1, mamba2, convolution, rwkv };
std::string_view attention_kind_name(AttentionKind kind);

/// The sequence mixer of a layer. Fields that do not apply to the kind are 0.
struct Attention {
  AttentionKind kind = AttentionKind::full;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t value_head_dim = 0;  ///< differs from head_dim for MLA and a few others; else equal
  int64_t window = 0;          ///< tokens seen by sliding and chunked attention
  bool qkv_bias = false, out_bias = false;
  enum class QkNorm : uint8_t { none, per_head, full_width } qk_norm = QkNorm::none;
  bool output_gate = false;  ///< q projection is twice as wide (qwen3_next)
  bool sinks = false;
  bool shares_kv = false;         ///< reuses another layer's KV cache (gemma3n)
  bool shared_key_value = false;  ///< one vector serves as key and value, and is cached once (deepseek_v4)
  bool k_equals_v = false;        ///< no value projection: V is computed from K's (gemma4 full layers)
  bool cross = false;             ///< has cross attention besides (encoder-decoder)
  // MLA
  int64_t q_lora_rank = 0, kv_lora_rank = 0, rope_head_dim = 0, nope_head_dim = 0;
  // Sparse index (DeepSeek-V3.2, GLM-5)
  int64_t index_heads = 0, index_head_dim = 0, index_topk = 0;
  /// DeepSeek-V4: besides the window, one entry of head_dim (+ index_head_dim) numbers per `compress_ratio` tokens; 0:
  /// none.
  int64_t compress_ratio = 0;
  // Recurrent kinds: state of one sequence = state_elements + conv_elements numbers.
  int64_t state_elements = 0, conv_elements = 0;
  int64_t inner = 0, state_dim = 0, conv_kernel = 0, groups = 0;
  /// Numbers this layer caches per token (K and V, or the MLA latent); 0 for recurrent kinds. Before tensor
  /// parallelism.
  int64_t cache_elements_per_token() const;
  bool operator==(const Attention&) const = default;
};

enum class MlpKind : uint8_t { none, plain, gated, moe };

struct Mlp {
  MlpKind kind = MlpKind::gated;
  int64_t ffn = 0;  ///< width of one matrix
  bool bias = false;
  std::string activation;  ///< "silu", "gelu", "relu2", ...
  // moe
  int64_t experts = 0, experts_per_token = 0, expert_ffn = 0, shared_ffn = 0;
  bool expert_gated = true;
  bool expert_bias = false;
  bool shared_gate = false;  ///< a learned gate scales the shared expert (qwen2_moe)
  int64_t latent = 0;        ///< experts work in this width, projected from and to hidden (nemotron_h, kimi_k3)
  int64_t dense_ffn = 0;     ///< a dense MLP beside the experts of the same layer (gemma4)
  bool operator==(const Mlp&) const = default;
};

enum class NormKind : uint8_t { rmsnorm, layernorm, none };

/// One kind of layer; a model is a sequence of a few kinds.
struct LayerKind {
  Attention attention;
  Mlp mlp;
  NormKind norm = NormKind::rmsnorm;
  int64_t norms = 2;
  bool parallel = false;  ///< attention and MLP read the same norm (cohere, gptj, falcon-7b)
  bool encoder = false;
  double attention_dropout = 0, hidden_dropout = 0;
  bool operator==(const LayerKind&) const = default;
};

/// A quantization scheme as a checkpoint declares it (quantization_config), or as a plan would apply it.
struct Quantization {
  std::string method;          ///< "gptq", "awq", "fp8", "nvfp4", "mxfp4", "bitsandbytes", "compressed-tensors", ...
  std::string detail;          ///< "4 bits, groups of 128"
  double bits_per_weight = 0;  ///< of the converted matrices, side tensors included
  bool planned = false;        ///< true: not what the checkpoint holds
  std::string kv_cache;        ///< how the checkpoint wants its KV cache ("FP8"); empty: as the weights' dtype
};

struct Counts {
  int64_t parameters = 0;  ///< learned: text, vision and audio; a tied head once; no MTP layers
  int64_t text = 0, encoder = 0, vision = 0, audio = 0, mtp = 0;
  int64_t active = 0;     ///< text and encoder parameters one token passes through (experts_per_token of the experts)
  int64_t embedding = 0;  ///< input embedding and positions; a tied head is in here
  int64_t head = 0;       ///< separate output head
  int64_t expert = 0;     ///< routed experts
  int64_t stored_elements = 0;  ///< numbers in the published file: learned + buffers + copies + scales + MTP
  Bytes stored_bytes = 0;       ///< of the published file
  Bytes loaded_bytes = 0;  ///< what an engine keeps: learned tensors and their scales, no MTP layers, copies or buffers
  int64_t tensors = 0;     ///< tensors in the published file
};

/// Most parameters of a model: hundreds of times more than any has, so that a few bytes for each stay far from 2^63.
inline constexpr int64_t kMaxParameters = int64_t{1} << 50;

/// A model whose shapes are known, or only its size (shape_known false, counts.parameters given).
struct Model {
  std::string name;    ///< "meta-llama/Llama-3.1-70B"
  std::string family;  ///< model_type
  std::string origin;  ///< "catalogue", "file config.json", "by hand"
  std::string source;  ///< where the catalogue has the facts from
  bool shape_known = true;
  bool family_known = true;   ///< false: read as a generic decoder, see assumptions
  bool hypothetical = false;  ///< changed by --set
  int64_t hidden = 0, vocab = 0, max_positions = 0;
  bool tied_embeddings = false;
  bool learned_positions = false;
  Dtype dtype = Dtype::bf16;
  std::vector<LayerKind> kinds;
  std::vector<int64_t> layer_kind;  ///< index into kinds, layer by layer (encoder layers first)
  std::vector<TensorGroup> tensors;
  std::optional<Quantization> quantization;
  Counts counts;
  std::vector<std::string> fields_used;  ///< config fields that decided the result
  std::vector<std::string> assumptions;  ///< what was not said and was assumed, one clause each, in English
  std::vector<Note> assumption_notes;    ///< the same, to be said in any language
  std::vector<std::string> assumed(Lang lang) const;
  /// Adds to both lists.
  void assume(Note note);

  int64_t layers() const { return static_cast<int64_t>(layer_kind.size()); }
  const LayerKind& layer(int64_t i) const { return kinds[static_cast<size_t>(layer_kind[static_cast<size_t>(i)])]; }
};

/// Visits every tensor with its indices filled in: name, layer (-1: none), expert (-1: none).
void for_each_tensor(
    const Model& model,
    const std::function<void(const std::string& name, const Tensor&, int64_t layer, int64_t expert)>& visit);

/// Reads a Hugging Face config.json. `name` labels the model. InputError names file, line and field.
Model model_from_config(const Document& config, const std::string& file, std::string name);

/// The same with the checkpoint's hf_quant_config.json (ModelOpt); it counts where `config` declares no quantization.
Model model_from_config(const Document& config, const Document& hf_quant_config, const std::string& file,
                        std::string name);

/// A model known only by its size: "7B". No layers, no tensors.
Model model_of_size(int64_t parameters);

/// A decoder described in a few numbers; what is 0 or absent is assumed and listed in Model::assumptions.
struct DecoderByHand {
  std::string name;
  bool gpt = false;        ///< block: gpt (LayerNorm, biases, plain MLP, learned positions) or llama
  int64_t parameters = 0;  ///< wanted size where no shape is given: layers and hidden are chosen near it
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, positions = 0;
  int64_t experts = 0, experts_per_token = 0, expert_ffn = 0;
  std::optional<bool> tied_embeddings;
};
/// The config that stands for `decoder` ("model_type": "decoder"), with the assumed fields named.
Document config_by_hand(const DecoderByHand& decoder, std::vector<std::string>& assumptions);
Document config_by_hand(const DecoderByHand& decoder, std::vector<Note>& assumptions);
Model model_by_hand(const DecoderByHand& decoder);

/// The model with its linear weights stored in another scheme; embeddings, head, routers, norms and towers keep theirs.
/// Schemes: fp8, fp8_block, int8, int4 (groups of 128, symmetric), awq, gptq4, gptq8, nf4, nf4_double, nvfp4, mxfp4;
/// bf16, fp16, fp32, which undo any scheme; and the mixes of llama-quantize (q4_k_m, ...), which convert tables too.
/// InputError for others, with near misses.
Model with_planned_quantization(const Model& model, std::string_view scheme);
/// The schemes that with_planned_quantization knows.
const std::vector<std::string_view>& planned_quantizations();
/// Whether `scheme` is one of llama-quantize's mixes, which need a model whose tensors are known.
bool is_gguf_mix(std::string_view scheme);

/// The model types that are read exactly, sorted.
std::vector<std::string_view> known_families();

/// Applies "kv_heads=8"-style changes to a config and reads it again; the result is marked hypothetical.
/// InputError for unknown fields (with near misses) and impossible values.
Model model_with_changes(const Document& config, const std::string& file, std::string name,
                         const std::vector<std::string>& changes);

/// The built-in catalogue (data/models.jsonl).
struct CatalogueEntry {
  std::string_view id;                    ///< "meta-llama/Llama-3.1-70B"
  std::vector<std::string_view> aliases;  ///< "llama-3.1-70b", "llama3.1:70b"
};
class Catalogue {
 public:
  static const Catalogue& builtin();
  const std::vector<CatalogueEntry>& entries() const { return entries_; }
  /// By id or alias, ignoring case and separators; the last path part suffices where it is unique. Null where unknown.
  const CatalogueEntry* find(std::string_view name) const;
  /// The config of an entry, parsed now. `file` for errors is "catalogue:ID".
  Document config(const CatalogueEntry& entry) const;
  /// Where the entry's config was read.
  std::string source(const CatalogueEntry& entry) const;
  Model model(const CatalogueEntry& entry) const;
  /// What the published file of the exact id `id` holds besides its parameters ("duplicate_lm_head", "causal_mask",
  /// "rotary_inv_freq", "mtp_embeddings", ...); empty for other names.
  std::vector<std::string> stores(std::string_view id) const;

 private:
  Catalogue();
  std::vector<CatalogueEntry> entries_;
  std::vector<std::string_view> lines_;               // of the embedded file, in step with entries_
  std::vector<std::pair<std::string, size_t>> keys_;  // folded id, alias or last path part -> entry, sorted
};

}  // namespace vram
