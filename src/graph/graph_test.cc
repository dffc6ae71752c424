#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "graph/layers.h"

namespace vram {
namespace {

Model llama(int64_t h, int64_t a, int64_t k, int64_t d, int64_t f, int64_t vocab = 128256) {
  Model m;
  m.hidden = h;
  m.vocab = vocab;
  LayerKind kind;
  kind.attention.heads = a;
  kind.attention.kv_heads = k;
  kind.attention.head_dim = kind.attention.value_head_dim = d;
  kind.mlp.ffn = f;
  kind.mlp.activation = "silu";
  m.kinds = {kind};
  m.layer_kind = {0};
  return m;
}

Model gpt(int64_t h, int64_t a, int64_t f) {
  Model m = llama(h, a, a, h / a, f);
  m.kinds[0].mlp.kind = MlpKind::plain;
  m.kinds[0].mlp.activation = "gelu";
  m.kinds[0].norm = NormKind::layernorm;
  return m;
}

KernelChoice hugging_face() {
  return {.norm_fused = false, .attention_fused = true, .swiglu_fused = false, .moe_grouped = false};
}
KernelChoice torchtitan() { return {.norm_fused = true, .attention_fused = true, .swiglu_fused = false}; }
KernelChoice megatron() { return {.loss = KernelChoice::Loss::vocab_parallel}; }

double saved_per_token(const Model& m, const KernelChoice& kernels, int64_t s, LayerOptions options = {},
                       Dims<Fast> dims = {}) {
  dims.sequence = Fast(s);
  options.kernels = kernels;
  const Block<Fast> block = layer_block<Fast>(m, m.kinds[0], dims, options);
  return static_cast<double>(block.saved_bytes().value()) / static_cast<double>(s);
}

// Bytes a token and layer. The expected values are sums of the per-operation rules published for each stack; none of
// them is tabulated in the product.
TEST(SavedTensors, EqualThePublishedTables) {
  const Model llama3_8b = llama(4096, 32, 8, 128, 14336);
  EXPECT_EQ(saved_per_token(llama3_8b, hugging_face(), 8192), 200'840);
  EXPECT_EQ(saved_per_token(llama3_8b, torchtitan(), 8192), 168'072);
  EXPECT_EQ(saved_per_token(llama3_8b, megatron(), 8192), 139'400);
  const Model llama2_7b = llama(4096, 32, 32, 128, 11008);
  EXPECT_EQ(saved_per_token(llama2_7b, hugging_face(), 2048), 186'504);
  EXPECT_EQ(saved_per_token(llama2_7b, torchtitan(), 2048), 153'736);
  const Model qwen = llama(3584, 28, 4, 128, 18944);
  EXPECT_EQ(saved_per_token(qwen, hugging_face(), 4096), 225'400);
  EXPECT_EQ(saved_per_token(qwen, torchtitan(), 4096), 196'728);
}

TEST(SavedTensors, EagerAttentionAddsSixBytesAScore) {
  KernelChoice eager = hugging_face();
  eager.attention_fused = false;
  eager.repeat_kv = true;
  EXPECT_EQ(saved_per_token(llama(4096, 32, 32, 128, 11008), eager, 2048), 579'592);
  EXPECT_EQ(saved_per_token(llama(4096, 32, 8, 128, 14336), eager, 8192), 1'785'864);
  EXPECT_EQ(saved_per_token(llama(3584, 28, 4, 128, 18944), eager, 4096), 925'704);
}

TEST(SavedTensors, FrozenWeightsKeepNoInputs) {
  LayerOptions frozen;
  frozen.frozen = true;
  EXPECT_EQ(saved_per_token(llama(4096, 32, 8, 128, 14336), hugging_face(), 4096, frozen), 139'400);
  EXPECT_EQ(saved_per_token(llama(8192, 64, 8, 128, 28672), hugging_face(), 8192, frozen), 274'696);
  // Adapters on all seven linears, rank 16: 16-bit ones share the inputs, fp32 ones each cast a copy.
  frozen.adapters = {.rank = 16, .bytes = 2};
  EXPECT_EQ(saved_per_token(llama(4096, 32, 8, 128, 14336), hugging_face(), 4096, frozen),
            139'400 + 4 * 4096 + 2 * 14336 + 14 * 16);
  frozen.adapters.bytes = 4;
  EXPECT_EQ(saved_per_token(llama(4096, 32, 8, 128, 14336), hugging_face(), 4096, frozen), 295'496);
}

TEST(SavedTensors, GptBlockIsThe34OfTheLiterature) {
  const int64_t h = 4096, a = 32;
  LayerOptions options;
  EXPECT_EQ(saved_per_token(gpt(h, a, 4 * h), megatron(), 2048, options), 32 * h + 4 * a + 16);
  options.hidden_dropout = 0.1;
  EXPECT_EQ(saved_per_token(gpt(h, a, 4 * h), megatron(), 2048, options), 34 * h + 4 * a + 16);
  // Unfused attention with dropout in 16 bits adds the 5·a·s of the formula (log-sum-exp goes).
  KernelChoice eager = megatron();
  eager.attention_fused = false;
  eager.softmax_fp32 = false;
  options.attention_dropout = 0.1;
  EXPECT_EQ(saved_per_token(gpt(h, a, 4 * h), eager, 2048, options), 34 * h + 5 * a * 2048 + 16);
  // Hugging Face's GPT-2 with the Python GELU.
  KernelChoice python_gelu = torchtitan();
  python_gelu.gelu_fused = false;
  EXPECT_EQ(saved_per_token(gpt(h, a, 4 * h), python_gelu, 2048), 56 * h + 4 * a + 16);
  // Its LayerNorm is torch.nn.LayerNorm: no fp32 copies, though RMSNorm in the same framework is Python.
  KernelChoice gpt2 = hugging_face();
  gpt2.gelu_fused = false;
  EXPECT_EQ(saved_per_token(gpt(h, a, 4 * h), gpt2, 2048), 56 * h + 4 * a + 16);
}

TEST(SavedTensors, TensorAndSequenceParallel) {
  const int64_t h = 4096, f = 14336, A = 4096, K = 1024, a = 32;
  Dims<Fast> dims;
  dims.tensor_parallel = Fast(4);
  dims.tensor_parallel_value = 4;
  EXPECT_EQ(saved_per_token(llama(h, a, 8, 128, f), megatron(), 4096, {}, dims),
            8 * h + (4 * A + 4 * K + 6 * f + 4 * a) / 4 + 8);
  dims.sequence_parallel = true;
  EXPECT_EQ(saved_per_token(llama(h, a, 8, 128, f), megatron(), 4096, {}, dims),
            (8 * h + 4 * A + 4 * K + 6 * f + 4 * a + 8) / 4);
  // Fewer KV heads than ranks: each rank still holds one.
  dims.tensor_parallel = Fast(16);
  dims.tensor_parallel_value = 16;
  EXPECT_EQ(saved_per_token(llama(h, a, 8, 128, f), megatron(), 4096, {}, dims),
            (8 * h + 4 * A + 6 * f + 4 * a + 8) / 16.0 + 4 * 128);
  // Norms over queries and keys keep their inputs and a statistic a head, of the replicated head too.
  Model normed = llama(h, a, 8, 128, f);
  normed.kinds[0].attention.qk_norm = Attention::QkNorm::per_head;
  EXPECT_EQ(saved_per_token(normed, megatron(), 4096, {}, dims),
            (8 * h + 6 * A + 6 * f + 8 * a + 8) / 16.0 + 6 * 128 + 4);
}

TEST(SavedTensors, LatentAttentionAndExperts) {
  Model m = llama(7168, 128, 128, 192, 18432);
  Attention& a = m.kinds[0].attention;
  a.kind = AttentionKind::mla;
  a.value_head_dim = 128;
  a.q_lora_rank = 1536;
  a.kv_lora_rank = 512;
  a.rope_head_dim = 64;
  a.nope_head_dim = 128;
  m.kinds[0].mlp = {.kind = MlpKind::none};
  // 4h + 4·r_q + (2·r_kv + 2·d_r) + 2·r_kv + q, k, v, out + log-sum-exp + statistics of three norms: the latent is kept
  // with its rotary part, since the norm reads a slice of it.
  EXPECT_EQ(saved_per_token(m, megatron(), 4096),
            4 * 7168 + 4 * 1536 + 4 * 512 + 2 * 64 + 2 * (128 * 192 * 2 + 128 * 128 * 2) + 4 * 128 + 12);
  m.kinds[0].attention.kind = AttentionKind::none;
  m.kinds[0].mlp = {.kind = MlpKind::moe,
                    .activation = "silu",
                    .experts = 256,
                    .experts_per_token = 8,
                    .expert_ffn = 2048,
                    .shared_ffn = 2048};
  const int64_t routed = 8 * (2 * 7168 + 6 * 2048), shared = 6 * 2048;
  EXPECT_EQ(saved_per_token(m, megatron(), 4096), 4 * 7168 + routed + shared + 4 + 4 * 256 + 8 * 8);
}

// A decoder layer with cross attention keeps a third norm, queries, its own keys and values, and the output; the
// encoder's output itself is one tensor for all layers.
TEST(SavedTensors, CrossAttention) {
  Model m = gpt(1024, 16, 4096);
  EXPECT_EQ(saved_per_token(m, megatron(), 512), 32 * 1024 + 4 * 16 + 16);
  m.kinds[0].attention.cross = true;
  EXPECT_EQ(saved_per_token(m, megatron(), 512), (32 + 4 + 8) * 1024 + 2 * 4 * 16 + 24);
}

// Experts in a latent width: routed copies shrink to it, and the combined latent is kept for the way up. A dense MLP
// beside the experts is kept as one of its own.
TEST(SavedTensors, LatentExpertsAndADenseBranch) {
  Model m = llama(1024, 8, 8, 128, 2048);
  m.kinds[0].attention.kind = AttentionKind::none;
  m.kinds[0].mlp = {
      .kind = MlpKind::moe, .activation = "silu", .experts = 8, .experts_per_token = 2, .expert_ffn = 512};
  const double plain = saved_per_token(m, megatron(), 4096);
  m.kinds[0].mlp.latent = 256;
  EXPECT_EQ(saved_per_token(m, megatron(), 4096) - plain, 2 * 2 * (256 - 1024) + 2 * 256);
  m.kinds[0].mlp.latent = 0;
  m.kinds[0].mlp.dense_ffn = 2048;
  EXPECT_EQ(saved_per_token(m, megatron(), 4096) - plain, 6 * 2048);
}

// Megatron-Core multiplies by the routing weights inside the experts: for nothing where one kernel does both, else for
// one more tensor of the experts' width.
TEST(SavedTensors, RoutingWeightsInsideTheExperts) {
  Model m = llama(512, 8, 8, 64, 2048);
  m.kinds[0].mlp = {
      .kind = MlpKind::moe, .activation = "silu", .experts = 8, .experts_per_token = 2, .expert_ffn = 1024};
  KernelChoice weighted = megatron();
  weighted.moe_weighted_activation = true;
  const auto more = [&] { return saved_per_token(m, weighted, 4096) - saved_per_token(m, megatron(), 4096); };
  EXPECT_EQ(more(), 2 * 4);
  m.kinds[0].mlp.expert_gated = false;
  m.kinds[0].mlp.activation = "relu2";
  EXPECT_EQ(more(), 2 * 4);
  m.kinds[0].mlp.activation = "gelu";
  EXPECT_EQ(more(), 2 * (4 + 2 * 1024));
}

// Records the level of a walk.
struct Meter {
  const Block<Fast>& block;
  Bytes level = 0, peak = 0;
  std::vector<int64_t> alive = std::vector<int64_t>(kMaxStorages, 0), gradients = std::vector<int64_t>(kMaxStorages, 0);
  void move(Bytes by) {
    level += by;
    peak = std::max(peak, level);
  }
  Bytes size(BlockId id) const { return block.storages[id].bytes.value(); }
  void allocate(BlockId id) { move(size(id)), ++alive[id]; }
  void free(BlockId id) { move(-size(id)), --alive[id]; }
  void allocate_gradient(BlockId id) { move(size(id)), ++gradients[id]; }
  void free_gradient(BlockId id) { move(-size(id)), --gradients[id]; }
};

TEST(Walks, LogitsCostWhatWasMeasured) {
  const Model m = llama(4096, 32, 8, 128, 14336);
  const auto peaks = [&](KernelChoice kernels, int64_t tp) {
    Dims<Fast> dims;
    dims.sequence = Fast(1024);
    dims.tensor_parallel = Fast(tp);
    dims.tensor_parallel_value = tp;
    LayerOptions options;
    options.kernels = kernels;
    const Block<Fast> head = head_block<Fast>(m, dims, options);
    Meter forward{head};
    walk_forward(head, Recompute::none, forward);
    Meter backward{head};
    backward.level = forward.level;
    backward.peak = backward.level;
    walk_backward(head, Recompute::none, backward);
    const double vocabulary = static_cast<double>(m.vocab) * 1024 / static_cast<double>(tp);
    return std::pair(static_cast<double>(forward.peak) / vocabulary, static_cast<double>(backward.peak) / vocabulary);
  };
  KernelChoice hf = hugging_face();
  hf.logits_kept = true;
  auto [forward, backward] = peaks(hf, 1);
  EXPECT_NEAR(forward, 10, 0.3);
  EXPECT_NEAR(backward, 14, 0.3);
  std::tie(forward, backward) = peaks(megatron(), 8);
  EXPECT_NEAR(forward, 6, 1.2);  // the unsharded norm output weighs at tp 8
  EXPECT_NEAR(backward, 6, 1.2);
  KernelChoice compiled = megatron();
  compiled.loss = KernelChoice::Loss::vocab_parallel_compiled;
  std::tie(forward, backward) = peaks(compiled, 1);
  EXPECT_NEAR(forward, 10, 0.2);
  EXPECT_NEAR(backward, 6, 0.2);
  KernelChoice fused = megatron();
  fused.loss = KernelChoice::Loss::fused;
  std::tie(forward, backward) = peaks(fused, 1);
  EXPECT_NEAR(forward, 2, 0.2);
  EXPECT_NEAR(backward, 2, 0.2);
}

// The head's backward under sequence parallelism: the gathered input, the input's whole gradient and a tensor of the
// weight's shape stand beside the gradient of the logits; the vocabulary is padded.
TEST(Walks, HeadsBackwardHoldsWholeTensors) {
  const Model m = llama(4096, 32, 8, 128, 14336);
  const int64_t tokens = 256, t = 4, h = 4096;
  const auto peak = [&](bool sequence_parallel, int64_t placeholder_bytes) {
    Dims<Fast> dims;
    dims.sequence = Fast(tokens);
    dims.tensor_parallel = Fast(t);
    dims.tensor_parallel_value = t;
    dims.sequence_parallel = sequence_parallel;
    LayerOptions options;
    options.kernels = megatron();
    options.kernels.loss = KernelChoice::Loss::fused;
    options.vocabulary_multiple = 128;
    options.placeholder_bytes = placeholder_bytes;
    const Block<Fast> head = head_block<Fast>(m, dims, options);
    Meter meter{head};
    meter.move(head.storages[head.input].bytes.value());
    walk_forward(head, Recompute::none, meter);
    meter.peak = meter.level;
    meter.allocate_gradient(head.output);
    walk_backward(head, Recompute::none, meter);
    return meter.peak;
  };
  const int64_t padded = (m.vocab + 511) / 512 * 512;
  const int64_t stream = 2 * tokens * h, logits = 2 * tokens * padded / t, statistics = 4 * tokens;
  // Norm input and output, gradient of the normed input and of the logits; the loss.
  EXPECT_EQ(peak(false, 2), 3 * stream + statistics + logits + 4 * tokens + 2 * padded * h / t);
  EXPECT_EQ(peak(true, 2), 3 * stream / t + statistics / t + 2 * stream + logits + 4 * tokens + 2 * padded * h / t);
}

TEST(Walks, ForwardAndBackwardLeaveNothingBehind) {
  rc::check([] {
    const int64_t heads = *rc::gen::element<int64_t>(4, 8, 16), kv = *rc::gen::element<int64_t>(1, 2, 4);
    Model m = llama(64 * heads, heads, kv, 64, 128 * *rc::gen::inRange<int64_t>(1, 9));
    LayerKind& kind = m.kinds[0];
    kind.mlp.kind = *rc::gen::element(MlpKind::gated, MlpKind::plain, MlpKind::moe);
    kind.mlp.experts = 8;
    kind.mlp.experts_per_token = 2;
    kind.mlp.expert_ffn = 64;
    kind.mlp.shared_ffn = *rc::gen::element<int64_t>(0, 64);
    kind.mlp.dense_ffn = *rc::gen::element<int64_t>(0, 128);
    kind.mlp.latent = *rc::gen::element<int64_t>(0, 32);
    kind.attention.cross = *rc::gen::arbitrary<bool>();
    kind.parallel = *rc::gen::element(false, true);
    kind.norms = *rc::gen::element<int64_t>(1, 2, 4);
    kind.attention.kind = *rc::gen::element(AttentionKind::full, AttentionKind::none, AttentionKind::mamba2);
    kind.attention.qk_norm = *rc::gen::element(Attention::QkNorm::none, Attention::QkNorm::per_head);
    LayerOptions options;
    options.kernels.norm_fused = *rc::gen::arbitrary<bool>();
    options.kernels.attention_fused = *rc::gen::arbitrary<bool>();
    options.kernels.repeat_kv = *rc::gen::arbitrary<bool>();
    options.kernels.swiglu_fused = *rc::gen::arbitrary<bool>();
    options.kernels.moe_grouped = *rc::gen::arbitrary<bool>();
    options.frozen = *rc::gen::arbitrary<bool>();
    options.adapters.rank = *rc::gen::element<int64_t>(0, 8);
    options.hidden_dropout = *rc::gen::element(0.0, 0.1);
    options.attention_dropout = *rc::gen::element(0.0, 0.1);
    Dims<Fast> dims;
    dims.sequence = Fast(16 * *rc::gen::inRange<int64_t>(1, 20));
    dims.micro_batch = Fast(*rc::gen::inRange<int64_t>(1, 4));
    dims.tensor_parallel_value = *rc::gen::element<int64_t>(1, 2, 4);
    dims.tensor_parallel = Fast(dims.tensor_parallel_value);
    dims.sequence_parallel = *rc::gen::arbitrary<bool>();
    const Recompute mode = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
    const Block<Fast> block = layer_block<Fast>(m, kind, dims, options);

    Meter meter{block};
    ++meter.alive[block.input];
    walk_forward(block, mode, meter);
    RC_ASSERT(meter.alive[block.output] == 1);
    const bool kept = keeps_input(block, mode);
    RC_ASSERT(meter.alive[block.input] == (kept ? 1 : 0));
    --meter.alive[block.output];  // handed on to the next layer
    ++meter.gradients[block.output];
    walk_backward(block, mode, meter);
    for (BlockId id = 0; id < block.storages.size(); ++id) {
      RC_ASSERT(meter.alive[id] == 0);
      RC_ASSERT(meter.gradients[id] == (id == block.input ? 1 : 0));
    }
  });
}

TEST(Textbook, WorkedExamples) {
  // One GPT block: h 4096, a 32, s 4096, b 4: 194·s·b·h.
  const auto layer = textbook_gpt_layer<Fast>(Fast(4096), Fast(4), Fast(4096), Fast(32), Recompute::none, false);
  EXPECT_EQ(layer.value(), int64_t{194} * 4096 * 4 * 4096);
  const auto small = textbook_gpt_layer<Fast>(Fast(2048), Fast(1), Fast(4096), Fast(32), Recompute::none, false);
  EXPECT_NEAR(static_cast<double>(32 * small.value()) / 1e9, 30.6, 0.05);
  const Fast s(2048), b(1), h(4096);
  const int64_t all =
      32 * textbook_llama_layer<Fast>(s, b, h, Fast(32), Fast(32), Fast(11008), Recompute::none, false).value() +
      textbook_llama_rest<Fast>(s, b, h).value();
  EXPECT_NEAR(static_cast<double>(all) / 1e9, 31.04, 0.005);
}

TEST(Blocks, FlopsOfADenseLayerAreTwiceItsWeights) {
  const Model m = llama(4096, 32, 8, 128, 14336);
  Dims<Fast> dims;
  dims.sequence = Fast(2048);
  LayerOptions options;
  const Block<Fast> block = layer_block<Fast>(m, m.kinds[0], dims, options);
  const double weights = 4096.0 * 4096 * 2 + 4096.0 * 1024 * 2 + 3.0 * 4096 * 14336;
  const double attention = 4.0 * 2048 * 2048 * 4096;
  EXPECT_DOUBLE_EQ(block.forward_flops(), 2.0 * 2048 * weights + attention);
}

}  // namespace
}  // namespace vram
