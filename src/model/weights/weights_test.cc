#include "model/weights/weights.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "formats/safetensors.h"
#include "formats/weight_files_test.h"
#include "model/weights/names.h"

namespace vram {
namespace {

using made::GgufWriter;

Model read(const GgufWriter& w, const std::string& name = "m") {
  FileTensors tensors;
  const std::string header = w.header();
  const GgufMetadata meta = read_gguf(MemoryBytes("m.gguf", header, w.size()), tensors);
  return model_from_gguf(meta, tensors, "m.gguf", name);
}

std::string refusal(const GgufWriter& w) {
  try {
    read(w);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

using Numbers = std::vector<std::pair<const char*, int64_t>>;
void describe(GgufWriter& w, const std::string& arch, const Numbers& numbers) {
  w.text("general.architecture", arch).u32("general.file_type", 15);
  for (const auto& [key, value] : numbers) w.u32(arch + "." + key, value);
}

Model catalogue(const char* id) { return Catalogue::builtin().model(*Catalogue::builtin().find(id)); }

// Metadata as the converter writes it for these models, of their published configs.
void describe_real(GgufWriter& w, const std::string& list) {
  const auto is = [&](const char* start) { return list.rfind(start, 0) == 0; };
  if (is("Qwen3-4B")) {
    describe(w, "qwen3",
             {{"block_count", 36},
              {"embedding_length", 2560},
              {"context_length", 40960},
              {"attention.head_count", 32},
              {"attention.head_count_kv", 8},
              {"attention.key_length", 128},
              {"attention.value_length", 128}});
  } else if (is("Qwen3.5-27B")) {
    describe(w, "qwen35",
             {{"block_count", 64},
              {"embedding_length", 5120},
              {"context_length", 262144},
              {"attention.head_count", 24},
              {"attention.head_count_kv", 4},
              {"attention.key_length", 256},
              {"attention.value_length", 256},
              {"ssm.conv_kernel", 4},
              {"ssm.inner_size", 6144},
              {"ssm.state_size", 128},
              {"ssm.time_step_rank", 48},
              {"ssm.group_count", 16}});
  } else if (is("Qwen3.5-35B")) {
    describe(w, "qwen35moe",
             {{"block_count", 40},
              {"embedding_length", 2048},
              {"context_length", 262144},
              {"attention.head_count", 16},
              {"attention.head_count_kv", 2},
              {"attention.key_length", 256},
              {"attention.value_length", 256},
              {"expert_count", 256},
              {"expert_used_count", 8},
              {"ssm.conv_kernel", 4},
              {"ssm.inner_size", 4096},
              {"ssm.state_size", 128},
              {"ssm.time_step_rank", 32},
              {"ssm.group_count", 16}});
  } else if (is("DeepSeek")) {
    describe(w, "deepseek2",
             {{"block_count", 61},
              {"embedding_length", 7168},
              {"context_length", 163840},
              {"attention.head_count", 128},
              {"attention.head_count_kv", 1},
              {"attention.key_length", 576},
              {"attention.value_length", 512},
              {"attention.key_length_mla", 192},
              {"attention.value_length_mla", 128},
              {"attention.q_lora_rank", 1536},
              {"attention.kv_lora_rank", 512},
              {"expert_count", 256},
              {"expert_used_count", 8}});
  } else if (is("GLM-4.5")) {
    describe(w, "glm4moe",
             {{"block_count", 47},
              {"nextn_predict_layers", 1},
              {"embedding_length", 4096},
              {"context_length", 131072},
              {"attention.head_count", 96},
              {"attention.head_count_kv", 8},
              {"attention.key_length", 128},
              {"attention.value_length", 128},
              {"expert_count", 128},
              {"expert_used_count", 8}});
  } else if (is("GLM-5.2")) {
    describe(w, "glm-dsa",
             {{"block_count", 79},
              {"nextn_predict_layers", 1},
              {"embedding_length", 6144},
              {"context_length", 1048576},
              {"attention.head_count", 64},
              {"attention.head_count_kv", 1},
              {"attention.key_length", 576},
              {"attention.value_length", 512},
              {"attention.key_length_mla", 256},
              {"attention.value_length_mla", 256},
              {"attention.kv_lora_rank", 512},
              {"attention.indexer.head_count", 32},
              {"attention.indexer.key_length", 128},
              {"attention.indexer.top_k", 2048},
              {"expert_count", 256},
              {"expert_used_count", 8}});
  } else {
    describe(w, "gemma4",
             {{"block_count", 60},
              {"embedding_length", 5376},
              {"context_length", 262144},
              {"attention.head_count", 32},
              {"attention.key_length", 512},
              {"attention.value_length", 512},
              {"attention.key_length_swa", 256},
              {"attention.value_length_swa", 256},
              {"attention.sliding_window", 1024}});
    std::vector<int64_t> kv;
    std::vector<bool> slides;
    for (int i = 0; i < 60; ++i) {
      slides.push_back((i + 1) % 6 != 0);
      kv.push_back(slides.back() ? 16 : 4);
    }
    w.u32s("gemma4.attention.head_count_kv", kv).booleans("gemma4.attention.sliding_window_pattern", slides);
  }
}

TEST(GgufModel, RealFilesHaveThePublishedLayersAndParameters) {
  const std::map<std::string, const char*> published = {
      {"Qwen3-4B", "Qwen/Qwen3-4B"},          {"Qwen3.5-27", "Qwen/Qwen3.5-27B"},
      {"Qwen3.5-35", "Qwen/Qwen3.5-35B-A3B"}, {"DeepSeek", "deepseek-ai/DeepSeek-V3"},
      {"GLM-4.5", "zai-org/GLM-4.5-Air"},     {"GLM-5.2", "zai-org/GLM-5.2"}};
  for (made::RealList& list : made::real_lists(VRAM_SOURCE_DIR)) {
    describe_real(list.writer, list.name);
    const Model m = read(list.writer);
    EXPECT_EQ(m.counts.stored_bytes, list.bytes) << list.name;
    EXPECT_EQ(m.counts.stored_elements, list.elements) << list.name;
    EXPECT_EQ(m.counts.tensors, list.tensors) << list.name;
    EXPECT_TRUE(m.assumptions.empty()) << list.name << ": " << m.assumptions.front();
    const auto known = std::find_if(published.begin(), published.end(),
                                    [&](const auto& p) { return list.name.rfind(p.first, 0) == 0; });
    if (known == published.end()) continue;
    const Model of = catalogue(known->second);
    EXPECT_EQ(m.hidden, of.hidden) << list.name;
    EXPECT_EQ(m.vocab, of.vocab) << list.name;
    EXPECT_EQ(m.max_positions, of.max_positions) << list.name;
    EXPECT_EQ(m.tied_embeddings, of.tied_embeddings) << list.name;
    EXPECT_EQ(m.counts.text, of.counts.text) << list.name;
    EXPECT_EQ(m.counts.expert, of.counts.expert) << list.name;
    EXPECT_EQ(m.counts.embedding, of.counts.embedding) << list.name;
    EXPECT_EQ(m.counts.head, of.counts.head) << list.name;
    ASSERT_EQ(m.layers(), of.layers()) << list.name;
    for (int64_t i = 0; i < m.layers(); ++i) {
      LayerKind a = m.layer(i), b = of.layer(i);
      // Of layers with experts alone, the width of an MLP that they don't have; published configs may give one.
      if (b.mlp.kind == MlpKind::moe) a.mlp.ffn = b.mlp.ffn;
      ASSERT_TRUE(a == b) << list.name << " layer " << i;
    }
  }
}

TEST(GgufModel, GemmaFourSlidesAndSharesNothingElse) {
  for (made::RealList& list : made::real_lists(VRAM_SOURCE_DIR)) {
    if (list.name.rfind("gemma", 0) != 0) continue;
    describe_real(list.writer, list.name);
    const Model m = read(list.writer);
    EXPECT_EQ(m.layer(0).attention.kind, AttentionKind::sliding);
    EXPECT_EQ(m.layer(0).attention.cache_elements_per_token(), 2 * 16 * 256);
    EXPECT_EQ(m.layer(5).attention.kind, AttentionKind::full);
    EXPECT_EQ(m.layer(5).attention.cache_elements_per_token(), 2 * 4 * 512);
    EXPECT_TRUE(m.layer(5).attention.k_equals_v);
    EXPECT_EQ(m.layer(5).norms, 4);
    EXPECT_TRUE(m.tied_embeddings);
  }
}

// A llama of two blocks, 64 wide, in the given types.
GgufWriter small(const char* matrices = "F16") {
  GgufWriter w;
  describe(w, "llama",
           {{"block_count", 2},
            {"embedding_length", 64},
            {"context_length", 512},
            {"attention.head_count", 4},
            {"attention.head_count_kv", 2},
            {"feed_forward_length", 128}});
  const auto add = [&](const std::string& name, const std::vector<int64_t>& ne, const char* type) {
    const Encoding& e = *gguf_encoding(type);
    w.tensor(name, ne, type, encoded_bytes(e, ne.size() > 1 ? ne[1] : 1, ne[0]));
  };
  add("token_embd.weight", {64, 1000}, matrices);
  for (const std::string b : {"blk.0.", "blk.1."}) {
    add(b + "attn_norm.weight", {64}, "F32");
    add(b + "ffn_norm.weight", {64}, "F32");
    add(b + "attn_q.weight", {64, 64}, matrices);
    add(b + "attn_k.weight", {64, 32}, matrices);
    add(b + "attn_v.weight", {64, 32}, matrices);
    add(b + "attn_output.weight", {64, 64}, matrices);
    add(b + "ffn_gate.weight", {64, 128}, matrices);
    add(b + "ffn_up.weight", {64, 128}, matrices);
    add(b + "ffn_down.weight", {128, 64}, matrices);
  }
  add("output_norm.weight", {64}, "F32");
  return w;
}
constexpr int64_t kSmall = 1000 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64) + 64;

TEST(GgufModel, SaysWhatItsTypesAre) {
  const Model plain = read(small());
  EXPECT_EQ(plain.counts.parameters, kSmall);
  EXPECT_FALSE(plain.quantization);
  EXPECT_EQ(plain.dtype, Dtype::f16);
  EXPECT_EQ(plain.layers(), 2);
  EXPECT_EQ(plain.layer(0).attention.head_dim, 16);
  EXPECT_EQ(plain.layer(0).mlp.kind, MlpKind::gated);
  const Model packed = read(small("Q8_0"));
  ASSERT_TRUE(packed.quantization);
  EXPECT_EQ(packed.quantization->method, "gguf");
  EXPECT_DOUBLE_EQ(packed.quantization->bits_per_weight, 8.5);
  EXPECT_EQ(packed.counts.parameters, kSmall);
  EXPECT_EQ(packed.counts.stored_bytes, (kSmall - 5 * 64) / 32 * 34 + 5 * 64 * 4);
  EXPECT_EQ(packed.counts.loaded_bytes, packed.counts.stored_bytes);
  // Planning anew forgets the file's types, of tables as well.
  const Model bf16 = with_planned_quantization(packed, "bf16");
  EXPECT_EQ(bf16.counts.stored_bytes, 2 * (kSmall - 5 * 64) + 4 * 5 * 64);
  // Layers of equal tensors share one group.
  int64_t layered = 0;
  for (const TensorGroup& g : packed.tensors) layered += !g.layers.empty();
  EXPECT_EQ(layered, 1);
}

TEST(GgufModel, RefusesWhatIsNoModelOrContradictsItself) {
  const auto with = [](auto&& change) {
    GgufWriter w;
    change(w);
    return refusal(w);
  };
  const auto changed = [](const Numbers& numbers, const char* arch = "llama") {
    GgufWriter w = small();
    GgufWriter with_numbers;
    describe(with_numbers, arch, numbers);
    w.take_metadata(with_numbers);
    return refusal(w);
  };
  const Numbers good = {
      {"block_count", 2}, {"embedding_length", 64}, {"attention.head_count", 4}, {"attention.head_count_kv", 2}};
  const auto but = [&](const char* key, int64_t value) {
    Numbers n = good;
    for (auto& [k, v] : n) {
      if (std::string_view(k) == key) v = value;
    }
    if (std::find_if(n.begin(), n.end(), [&](const auto& p) { return std::string_view(p.first) == key; }) == n.end()) {
      n.emplace_back(key, value);
    }
    return changed(n);
  };
  EXPECT_EQ(changed(good), "(accepted)");
  const std::pair<std::string, const char*> cases[] = {
      {with([](GgufWriter& w) { w.text("general.architecture", "llama"); }), "holds no tensors (a vocabulary alone)"},
      {with([](GgufWriter& w) { w.tensor("a", {1}, "F32", 4); }), "key 'general.architecture' is missing"},
      {with([](GgufWriter& w) {
         w.text("general.architecture", "llama").text("general.type", "adapter").tensor("a", {1}, "F32", 4);
       }),
       "holds a LoRA adapter"},
      {but("block_count", 3), "is 3; the tensors have blocks 0 to 1"},
      {but("block_count", 1), "is 1; the tensors have blocks 0 to 1"},
      {but("block_count", 0), "is 0; accepted: 1 to 10000"},
      {but("embedding_length", 32), "has rows of 64; embedding_length is 32"},
      {but("attention.head_count", 0), "is 0; accepted: 1 to"},
      {but("attention.head_count_kv", 0), "is 0 for block 0, which has attention"},
      {but("attention.head_count_kv", 3), "is 3 and does not divide the 4 heads"},
      {but("attention.head_count", 8), "'blk.0.attn_k.weight' has 32 rows; accepted: 16, by the heads of the metadata"},
      {but("attention.key_length", 32), "'blk.0.attn_q.weight' has 64 rows; accepted: 128"},
      {but("nextn_predict_layers", 2), "is 2; accepted: 0 to 1"},
  };
  for (const auto& [line, expected] : cases) EXPECT_NE(line.find(expected), std::string::npos) << line;
}

TEST(GgufModel, ListsMayBeOnePerBlock) {
  GgufWriter w = small();
  GgufWriter meta;
  describe(meta, "llama", {{"block_count", 2}, {"embedding_length", 64}, {"attention.head_count", 4}});
  GgufWriter both = meta;
  both.u32s("llama.attention.head_count_kv", {2, 2});
  w.take_metadata(both);
  EXPECT_EQ(read(w).layer(1).attention.kv_heads, 2);
  meta.u32s("llama.attention.head_count_kv", {2});
  w.take_metadata(meta);
  EXPECT_NE(refusal(w).find("has 1 entries; accepted: one for each of the 2 blocks"), std::string::npos) << refusal(w);
}

TEST(GgufModel, UnknownArchitecturesAreReadFromTheirTensors) {
  GgufWriter w = small();
  GgufWriter meta;
  describe(meta, "future",
           {{"block_count", 2}, {"embedding_length", 64}, {"attention.head_count", 4}, {"attention.head_count_kv", 2}});
  w.take_metadata(meta);
  const Model m = read(w);
  EXPECT_FALSE(m.family_known);
  EXPECT_EQ(m.layers(), 2);
  ASSERT_EQ(m.assumptions.size(), 1u);
  EXPECT_EQ(m.assumed(Lang::zh).size(), 1u);
  // A projector has no layers that decode.
  GgufWriter clip;
  clip.text("general.architecture", "clip").tensor("v.blk.0.attn_q.weight", {64, 64}, "F16", 64 * 64 * 2);
  EXPECT_FALSE(read(clip).shape_known);
  EXPECT_EQ(read(clip).counts.vision, 64 * 64);
}

TEST(Names, SplitIntoPatternAndIndices) {
  const auto split = [](const char* name) {
    std::string pattern;
    const arch::SplitName s = arch::split_name(name, pattern);
    return fmt::format("{} {} {}", pattern, s.layer, s.expert);
  };
  EXPECT_EQ(split("model.layers.3.mlp.experts.17.up_proj.weight"),
            "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight 3 17");
  EXPECT_EQ(split("blk.10.ffn_up.weight"), "blk.{layer}.ffn_up.weight 10 -1");
  EXPECT_EQ(split("lm_head.weight"), "lm_head.weight -1 -1");
  EXPECT_EQ(split("visual.merger.mlp.0.weight"), "visual.merger.mlp.0.weight -1 -1");
  EXPECT_EQ(split("encoder.block.2.layer.0.SelfAttention.q.weight"),
            "encoder.block.{layer}.layer.0.SelfAttention.q.weight 2 -1");
  EXPECT_EQ(split("h.007.x"), "h.007.x -1 -1");
  EXPECT_EQ(split("layers.99999999999999999999.x"), "layers.99999999999999999999.x -1 -1");
  EXPECT_EQ(split(""), " -1 -1");
  EXPECT_EQ(split("a..b."), "a..b. -1 -1");
}

// --- safetensors ---

std::string fill(std::string text, std::string_view what, int64_t n) {
  const size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), std::to_string(n));
}

// The file of a model, tensor by tensor, changed by `change(name, dtype, shape)`; false leaves one out.
using Change = std::function<bool(std::string&, std::string&, std::vector<int64_t>&)>;
FileTensors files_of(const Model& m, const Change& change = {}) {
  FileTensors out;
  out.add_file("model.safetensors");
  for_each_tensor(m, [&](const std::string& name, const Tensor& t, int64_t, int64_t) {
    std::string n = name, dtype(dtype_name(t.dtype));
    std::transform(dtype.begin(), dtype.end(), dtype.begin(), [](unsigned char c) { return std::toupper(c); });
    std::vector<int64_t> shape = t.shape;
    if (change && !change(n, dtype, shape)) return;
    const Encoding* e = safetensors_encoding(dtype);
    ASSERT_NE(e, nullptr) << dtype;
    int64_t elements = 1;
    for (int64_t d : shape) elements *= d;
    out.add(n, *e, shape, elements / e->block * e->block_bytes);
  });
  return out;
}

TEST(Weights, EqualToTheConfigTellNothing) {
  int read = 0;
  for (const CatalogueEntry& entry : Catalogue::builtin().entries()) {
    const Model config = Catalogue::builtin().model(entry);
    // Of packed integers no plain file is made here, and the largest would only take time.
    bool plain = config.counts.tensors <= 20'000;
    for (const TensorGroup& g : config.tensors) {
      for (const Tensor& t : g.tensors) {
        plain = plain && t.dtype != Dtype::i4 && t.stored_bytes == dtype_bytes(t.dtype, t.elements());
      }
    }
    if (!plain) continue;
    ++read;
    const std::string id(entry.id);
    const Model m = model_with_weights(config, files_of(config), config.counts.stored_bytes);
    EXPECT_EQ(m.counts.parameters, config.counts.parameters) << id;
    EXPECT_EQ(m.counts.active, config.counts.active) << id;
    EXPECT_EQ(m.counts.stored_bytes, config.counts.stored_bytes) << id;
    EXPECT_EQ(m.counts.loaded_bytes, config.counts.loaded_bytes) << id;
    EXPECT_EQ(m.counts.tensors, config.counts.tensors) << id;
    EXPECT_EQ(m.assumptions, config.assumptions) << id;
    // Roles and cuts as the family has them.
    std::map<std::pair<Role, Shard>, int64_t> a, b;
    for (const auto* model : {&config, &m}) {
      for (const TensorGroup& g : model->tensors) {
        for (const Tensor& t : g.tensors) {
          (model == &m ? a : b)[{t.role, t.shard}] += g.times() * t.experts * t.elements();
        }
      }
    }
    EXPECT_TRUE(a == b) << id;
  }
  EXPECT_GT(read, 150);
}

std::vector<std::string> told(const Model& config, const Change& change, int64_t index_total = -1) {
  const Model m = model_with_weights(config, files_of(config, change), index_total);
  EXPECT_EQ(m.assumed(Lang::zh).size(), m.assumptions.size());
  return {m.assumptions.begin() + static_cast<std::ptrdiff_t>(config.assumptions.size()), m.assumptions.end()};
}

TEST(Weights, DifferencesAreTold) {
  const Model config = catalogue("meta-llama/Llama-3.1-8B");
  const auto ends = [](const std::string& name, std::string_view end) {
    return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
  };
  // Other names of the same tensors are no difference.
  EXPECT_TRUE(told(config, [](std::string& n, std::string&, std::vector<int64_t>&) {
                n = "language_model." + n;
                return true;
              }).empty());
  const auto missing =
      told(config, [&](std::string& n, std::string&, std::vector<int64_t>&) { return !ends(n, "mlp.up_proj.weight"); });
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[0],
            "the weights lack 32 of the tensors of the config (3.50 GiB), such as "
            "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(missing[1], "the weights hold 6,151,213,056 parameters, the config describes 8,030,261,248");
  const auto extra = told(config, [&](std::string& n, std::string&, std::vector<int64_t>&) {
    if (ends(n, "mlp.up_proj.weight")) n = fill(n, "up_proj", 7);
    return true;
  });
  ASSERT_EQ(extra.size(), 2u);
  EXPECT_EQ(extra[1],
            "the weights hold 32 tensors (3.50 GiB) that the config does not tell of, such as "
            "model.layers.0.mlp.7.weight: counted");
  const auto dtype = told(config, [&](std::string& n, std::string& d, std::vector<int64_t>&) {
    if (ends(n, "norm.weight")) d = "F32";
    return true;
  });
  ASSERT_EQ(dtype.size(), 2u);
  EXPECT_EQ(dtype[0], "65 tensors are stored as F32, not BF16, such as model.norm.weight");
  EXPECT_EQ(dtype[1], "the weights take 16,061,054,976 B, by the config 16,060,522,496 B");
  const auto shape = told(config, [&](std::string& n, std::string&, std::vector<int64_t>& s) {
    if (n == "lm_head.weight") s[0] += 64;
    return true;
  });
  ASSERT_EQ(shape.size(), 2u);
  EXPECT_EQ(shape[0],
            "1 tensors have another shape than by the config, such as lm_head.weight: 128320 x 4096, not "
            "128256 x 4096");
  const auto index = told(config, {}, 5);
  ASSERT_EQ(index.size(), 1u);
  EXPECT_EQ(index[0], "the index claims 5 B, the tensors take 16,060,522,496 B");
  // Buffers and scales that no config tells of are no parameters; a tied head's copy neither.
  FileTensors more = files_of(config);
  const std::vector<int64_t> row = {64};
  more.add("model.layers.0.self_attn.rotary_emb.inv_freq", *safetensors_encoding("F32"), row, 256);
  const Model with_buffer = model_with_weights(config, more);
  EXPECT_EQ(with_buffer.assumptions, config.assumptions);
  EXPECT_EQ(with_buffer.counts.stored_bytes, config.counts.stored_bytes + 256);
  EXPECT_EQ(with_buffer.counts.loaded_bytes, config.counts.loaded_bytes);
}

TEST(Weights, FloatsOfFourBytesThroughoutAreTheDtype) {
  const Model config = catalogue("meta-llama/Llama-3.1-8B");
  const Model m = model_with_weights(config, files_of(config, [](std::string&, std::string& d, std::vector<int64_t>&) {
                                       d = "F32";
                                       return true;
                                     }));
  EXPECT_EQ(m.dtype, Dtype::f32);
  EXPECT_EQ(m.counts.stored_bytes, 2 * config.counts.stored_bytes);
}

TEST(Weights, PackedMatricesKeepTheirLogicalShape) {
  Document quantization{Document::Object{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 128}}};
  Document document = Catalogue::builtin().config(*Catalogue::builtin().find("meta-llama/Llama-3.1-8B"));
  document.set("quantization_config", quantization);
  const Model config = model_from_config(document, "config.json", "m");
  const Model m =
      model_with_weights(config, files_of(config, [](std::string& n, std::string& d, std::vector<int64_t>& s) {
                           if (d == "I4") {  // eight numbers a word, packed along the input
                             d = "I32";
                             n = n.substr(0, n.size() - 6) + "qweight";
                             s = {s[1] / 8, s[0]};
                           }
                           return true;
                         }));
  EXPECT_EQ(m.assumptions, config.assumptions);
  EXPECT_EQ(m.counts.parameters, 8'030'261'248);
  EXPECT_EQ(m.counts.stored_bytes, config.counts.stored_bytes);
  EXPECT_EQ(m.counts.loaded_bytes, config.counts.loaded_bytes);
}

TEST(Weights, AloneTellADecoderOrOnlySizes) {
  const Model config = catalogue("Qwen/Qwen3-30B-A3B");
  const Model m = model_from_weights(files_of(config), "model.safetensors", "m");
  EXPECT_TRUE(m.shape_known);
  EXPECT_EQ(m.counts.parameters, config.counts.parameters);
  EXPECT_EQ(m.counts.active, config.counts.active);
  EXPECT_EQ(m.counts.stored_bytes, config.counts.stored_bytes);
  ASSERT_EQ(m.layers(), config.layers());
  EXPECT_EQ(m.layer(3).attention.kv_heads, config.layer(3).attention.kv_heads);
  EXPECT_EQ(m.layer(3).attention.head_dim, config.layer(3).attention.head_dim);
  EXPECT_EQ(m.layer(3).mlp.expert_ffn, config.layer(3).mlp.expert_ffn);
  EXPECT_EQ(m.vocab, config.vocab);
  const Model gpt = model_from_weights(files_of(catalogue("gpt2")), "model.safetensors", "m");
  EXPECT_FALSE(gpt.shape_known);
  EXPECT_EQ(gpt.counts.stored_bytes, catalogue("gpt2").counts.stored_bytes);
  EXPECT_THROW(model_from_weights(FileTensors(), "f", "m"), InputError);
}

}  // namespace
}  // namespace vram
