#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/dtype.h"

namespace vram {

/// What a tensor does. Views group by it; quantization schemes and optimizers choose by it.
enum class Role : uint8_t {
  embedding, position_embedding, head, norm, attention_q, attention_k, attention_v, attention_qkv, attention_out,
  attention_other,      ///< sinks, gates, MLA down-projections, sparse-index projections
  linear_attention,     ///< gated delta net, lightning, KDA
  mamba, convolution, rwkv,
  mlp_gate, mlp_up, mlp_gate_up, mlp_down,
  router, expert_gate, expert_up, expert_gate_up, expert_down, shared_expert, bias, vision, projector, audio,
  mtp, scale, other
};
std::string_view role_name(Role role);

/// How tensor and expert parallelism cut a tensor.
enum class Shard : uint8_t {
  replicated,   ///< a whole copy on every tensor-parallel rank
  column,       ///< output rows (dimension 0) divided by tensor_parallel
  row,          ///< input columns (last dimension) divided by tensor_parallel
  kv_column,    ///< as column, but never below one KV head: heads replicate beyond kv_heads ranks
  vocab,        ///< vocabulary rows divided by tensor_parallel, after padding
  expert_column, expert_row, expert_replicated  ///< experts divided by expert_parallel, then by expert tensor parallel
};
std::string_view shard_name(Shard shard);

/// One kind of parameter tensor. "{layer}" and "{expert}" in the name stand for indices, so that a model of a hundred
/// thousand tensors is a few dozen of these.
struct Tensor {
  std::string name;                ///< as the published checkpoint names it
  std::vector<int64_t> shape;      ///< logical shape, rows first ([out, in] for a linear)
  Dtype dtype = Dtype::bf16;       ///< storage dtype before quantization
  Role role = Role::other;
  Shard shard = Shard::replicated;
  std::string module;              ///< owner: "model.layers.{layer}.self_attn"
  int64_t experts = 1;             ///< copies for {expert} = 0 .. experts-1
  bool learned = true;             ///< false: buffers, copies of tied tensors, quantization side tensors
  bool linear = false;             ///< a matmul weight that a quantization scheme may convert
  int64_t elements() const;        ///< of one copy; throws OverflowError
  /// Bytes of one copy as stored, quantization included.
  Bytes stored_bytes = 0;
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
  int64_t value_head_dim = 0;            ///< differs from head_dim for MLA and a few others; else equal
  int64_t window = 0;                    ///< tokens seen by sliding and chunked attention
  bool qkv_bias = false, out_bias = false;
  enum class QkNorm : uint8_t { none, per_head, full_width } qk_norm = QkNorm::none;
  bool output_gate = false;              ///< q projection is twice as wide (qwen3_next)
  bool sinks = false;
  bool shares_kv = false;                ///< reuses another layer's KV cache (gemma3n)
  bool cross = false;                    ///< has cross attention besides (encoder-decoder)
  // MLA
  int64_t q_lora_rank = 0, kv_lora_rank = 0, rope_head_dim = 0, nope_head_dim = 0;
  // Sparse index (DeepSeek-V3.2, GLM-5)
  int64_t index_heads = 0, index_head_dim = 0, index_topk = 0;
  // Recurrent kinds: state of one sequence = state_elements + conv_elements numbers.
  int64_t state_elements = 0, conv_elements = 0;
  int64_t inner = 0, state_dim = 0, conv_kernel = 0, groups = 0;
  /// Numbers this layer caches per token (K and V, or the MLA latent); 0 for recurrent kinds. Before tensor parallelism.
  int64_t cache_elements_per_token() const;
};

enum class MlpKind : uint8_t { none, plain, gated, moe };

struct Mlp {
  MlpKind kind = MlpKind::gated;
  int64_t ffn = 0;                       ///< width of one matrix
  bool bias = false;
  std::string activation;                ///< "silu", "gelu", "relu2", ...
  // moe
  int64_t experts = 0, experts_per_token = 0, expert_ffn = 0, shared_ffn = 0;
  bool expert_gated = true;
  bool expert_bias = false;
};

enum class NormKind : uint8_t { rmsnorm, layernorm, none };

/// One kind of layer; a model is a sequence of a few kinds.
struct LayerKind {
  Attention attention;
  Mlp mlp;
  NormKind norm = NormKind::rmsnorm;
  int64_t norms = 2;
  bool parallel = false;                 ///< attention and MLP read the same norm (cohere, gptj, falcon-7b)
  bool encoder = false;
  double attention_dropout = 0, hidden_dropout = 0;
};

/// A quantization scheme as a checkpoint declares it (quantization_config), or as a plan would apply it.
struct Quantization {
  std::string method;                    ///< "gptq", "awq", "fp8", "nvfp4", "mxfp4", "bitsandbytes", "compressed-tensors", ...
  std::string detail;                    ///< "4 bits, groups of 128"
  double bits_per_weight = 0;            ///< of the converted matrices, side tensors included
  bool planned = false;                  ///< true: not what the checkpoint holds
};

struct Counts {
  int64_t parameters = 0;        ///< learned: text, vision and audio; a tied head once; no MTP layers
  int64_t text = 0, encoder = 0, vision = 0, audio = 0, mtp = 0;
  int64_t active = 0;            ///< parameters one token passes through (experts_per_token of the experts)
  int64_t embedding = 0;         ///< input embedding and positions; a tied head is in here
  int64_t head = 0;              ///< separate output head
  int64_t expert = 0;            ///< routed experts
  int64_t stored_elements = 0;   ///< numbers in the published file: learned + buffers + copies + scales + MTP
  Bytes stored_bytes = 0;
  int64_t tensors = 0;
};

/// A model whose shapes are known, or only its size (shape_known false, counts.parameters given).
struct Model {
  std::string name;                      ///< "meta-llama/Llama-3.1-70B"
  std::string family;                    ///< model_type
  std::string origin;                    ///< "catalogue", "file config.json", "by hand"
  std::string source;                    ///< where the catalogue has the facts from
  bool shape_known = true;
  bool family_known = true;              ///< false: read as a generic decoder, see assumptions
  bool hypothetical = false;             ///< changed by --set
  int64_t hidden = 0, vocab = 0, max_positions = 0;
  bool tied_embeddings = false;
  bool learned_positions = false;
  Dtype dtype = Dtype::bf16;
  std::vector<LayerKind> kinds;
  std::vector<int64_t> layer_kind;       ///< index into kinds, layer by layer (encoder layers first)
  std::vector<TensorGroup> tensors;
  std::optional<Quantization> quantization;
  Counts counts;
  std::vector<std::string> fields_used;  ///< config fields that decided the result
  std::vector<std::string> assumptions;  ///< what was not said and was assumed, one clause each

  int64_t layers() const { return static_cast<int64_t>(layer_kind.size()); }
  const LayerKind& layer(int64_t i) const { return kinds[static_cast<size_t>(layer_kind[static_cast<size_t>(i)])]; }
};

/// Visits every tensor with its indices filled in: name, layer (-1: none), expert (-1: none).
void for_each_tensor(const Model& model,
                     const std::function<void(const std::string& name, const Tensor&, int64_t layer, int64_t expert)>& visit);

/// Reads a Hugging Face config.json. `name` labels the model. InputError names file, line and field.
Model model_from_config(const Document& config, const std::string& file, std::string name);

/// A model known only by its size: "7B". No layers, no tensors.
Model model_of_size(int64_t parameters);

/// Applies "kv_heads=8"-style changes to a config and reads it again; the result is marked hypothetical.
/// InputError for unknown fields (with near misses) and impossible values.
Model model_with_changes(const Document& config, const std::string& file, std::string name,
                         const std::vector<std::string>& changes);

/// The built-in catalogue (data/models.jsonl).
struct CatalogueEntry {
  std::string_view id;                      ///< "meta-llama/Llama-3.1-70B"
  std::vector<std::string_view> aliases;    ///< "llama-3.1-70b", "llama3.1:70b"
};
class Catalogue {
 public:
  static const Catalogue& builtin();
  const std::vector<CatalogueEntry>& entries() const { return entries_; }
  /// By id or alias, ignoring case and separators; the last path part suffices where it is unique. Null where unknown.
  const CatalogueEntry* find(std::string_view name) const;
  /// The config of an entry, parsed now. `file` for errors is "catalogue:ID".
  Document config(const CatalogueEntry& entry) const;
  Model model(const CatalogueEntry& entry) const;

 private:
  std::vector<CatalogueEntry> entries_;
};

}  // namespace vram
