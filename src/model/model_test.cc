// Shapes, layer patterns, caches, bad input and properties of models read from configs.
#include "model/model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/checked.h"
#include "base/error.h"
#include "formats/formats.h"

namespace vram {
namespace {

Model read(const std::string& text, const std::string& name = "a model") {
  return model_from_config(parse_json(text, "config.json"), "config.json", name);
}

Model catalogue(const char* name) {
  const CatalogueEntry* entry = Catalogue::builtin().find(name);
  if (!entry) throw std::runtime_error(name);
  return Catalogue::builtin().model(*entry);
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

const std::string kLlama =
    R"("model_type":"llama","hidden_size":64,"num_hidden_layers":4,"num_attention_heads":8,"num_key_value_heads":2,)"
    R"("intermediate_size":128,"vocab_size":1000,"tie_word_embeddings":false,"torch_dtype":"bfloat16")";

const Tensor* tensor(const Model& m, const std::string& name) {
  for (const TensorGroup& g : m.tensors) {
    for (const Tensor& t : g.tensors) {
      if (t.name == name) return &t;
    }
  }
  return nullptr;
}

TEST(Model, TensorsAreNamedAndCutAsPublished) {
  const Model m = read("{" + kLlama + "}");
  const Tensor* k = tensor(m, "model.layers.{layer}.self_attn.k_proj.weight");
  ASSERT_NE(k, nullptr);
  EXPECT_EQ(k->shape, (std::vector<int64_t>{16, 64}));
  EXPECT_EQ(k->shard, Shard::kv_column);
  EXPECT_EQ(k->module, "model.layers.{layer}.self_attn");
  EXPECT_TRUE(k->linear);
  ASSERT_NE(tensor(m, "model.norm.weight"), nullptr);
  EXPECT_EQ(tensor(m, "lm_head.weight")->role, Role::head);
  EXPECT_EQ(m.layers(), 4);
  EXPECT_EQ(m.kinds.size(), 1u);
}

TEST(Model, FusedLayoutsFollowTheirCheckpoints) {
  const Model phi = catalogue("microsoft/Phi-3-mini-4k-instruct");
  EXPECT_EQ(tensor(phi, "model.layers.{layer}.self_attn.qkv_proj.weight")->shape, (std::vector<int64_t>{9216, 3072}));
  EXPECT_EQ(tensor(phi, "model.layers.{layer}.mlp.gate_up_proj.weight")->shape, (std::vector<int64_t>{16384, 3072}));
  const Model gpt2 = catalogue("gpt2");
  EXPECT_EQ(tensor(gpt2, "transformer.h.{layer}.attn.c_attn.weight")->shape, (std::vector<int64_t>{768, 2304}));
  const Model oss = catalogue("gpt-oss-20b");
  EXPECT_EQ(tensor(oss, "model.layers.{layer}.mlp.experts.gate_up_proj")->shape,
            (std::vector<int64_t>{32, 5760, 2880}));
  const Model mixtral = catalogue("mixtral-8x7b");
  const Tensor* w2 = tensor(mixtral, "model.layers.{layer}.block_sparse_moe.experts.{expert}.w2.weight");
  ASSERT_NE(w2, nullptr);
  EXPECT_EQ(w2->experts, 8);
  EXPECT_EQ(w2->shard, Shard::expert_row);
}

std::string pattern(const Model& m) {
  std::string out;
  for (int64_t i = 0; i < m.layers(); ++i) {
    switch (m.layer(i).attention.kind) {
      case AttentionKind::full:
        out += 'F';
        break;
      case AttentionKind::sliding:
        out += 's';
        break;
      case AttentionKind::chunked:
        out += 'c';
        break;
      case AttentionKind::linear:
        out += 'l';
        break;
      case AttentionKind::mla:
        out += 'M';
        break;
      case AttentionKind::mamba1:
      case AttentionKind::mamba2:
        out += 'm';
        break;
      case AttentionKind::convolution:
        out += 'v';
        break;
      case AttentionKind::rwkv:
        out += 'r';
        break;
      case AttentionKind::none:
        out += '-';
        break;
    }
  }
  return out;
}

TEST(Model, LayerPatternsThatConfigsLeaveOut) {
  EXPECT_EQ(pattern(catalogue("gemma-2-2b")).substr(0, 4), "sFsF");
  EXPECT_EQ(pattern(catalogue("gemma-3-1b")).substr(0, 12), "sssssFsssssF");
  EXPECT_EQ(catalogue("gemma-3-1b").layer(0).attention.window, 512);
  EXPECT_EQ(pattern(catalogue("gpt-oss-20b")).substr(0, 4), "sFsF");
  EXPECT_EQ(pattern(catalogue("command-r7b")).substr(0, 8), "sssFsssF");
  EXPECT_EQ(pattern(catalogue("llama-4-scout")).substr(0, 8), "cccFcccF");
  EXPECT_EQ(catalogue("llama-4-scout").layer(0).attention.window, 8192);
  EXPECT_EQ(pattern(catalogue("qwen3-next")).substr(0, 8), "lllFlllF");
  EXPECT_EQ(pattern(catalogue("jamba-mini")).substr(0, 8), "mmmmFmmm");
  EXPECT_EQ(pattern(catalogue("LiquidAI/LFM2-1.2B")).substr(0, 6), "vvFvvF");
  EXPECT_EQ(pattern(catalogue("mistral-7b")).find_first_not_of('s'), std::string::npos);
  EXPECT_EQ(pattern(catalogue("Mistral-7B-Instruct-v0.3")).find_first_not_of('F'), std::string::npos);
  EXPECT_EQ(pattern(catalogue("Qwen/Qwen2-7B")).find_first_not_of('F'),
            std::string::npos);  // window present, but inert
  EXPECT_EQ(pattern(catalogue("kimi-linear")).substr(0, 8), "lllMlllM");
  EXPECT_EQ(pattern(catalogue("minimax-text-01")).substr(0, 16), "lllllllFlllllllF");
}

TEST(Model, CacheAndStateSizes) {
  const auto cache = [](const Model& m) {
    int64_t sum = 0;
    for (int64_t i = 0; i < m.layers(); ++i) sum += m.layer(i).attention.cache_elements_per_token();
    return sum;
  };
  EXPECT_EQ(cache(catalogue("llama-3.1-70b")), 2 * 80 * 8 * 128);
  EXPECT_EQ(cache(catalogue("deepseek-v3")), 61 * 576);  // whatever num_key_value_heads says
  EXPECT_EQ(cache(catalogue("deepseek-v3.2")), 61 * (576 + 128));
  EXPECT_EQ(cache(catalogue("falcon-7b")), 32 * 2 * 64);
  // State of a sequence in 32 bits: 48 layers of (3 x 10240 + 6144 x 128) numbers.
  int64_t state = 0;
  const Model qwen = catalogue("Qwen/Qwen3.5-27B");
  for (int64_t i = 0; i < qwen.layers(); ++i) {
    state += qwen.layer(i).attention.state_elements + qwen.layer(i).attention.conv_elements;
  }
  EXPECT_EQ(state, 48 * (3 * 10240 + 6144 * 128));
  const LayerKind lfm = catalogue("LiquidAI/LFM2-1.2B").layer(0);
  EXPECT_EQ(lfm.attention.conv_elements, 2048 * 2);
  EXPECT_EQ(lfm.attention.state_elements, 0);
}

TEST(Model, UnlistedFamilyIsAGenericDecoderAndSaysSo) {
  const Model m = read(R"({"model_type":"newcomer","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,)"
                       R"("intermediate_size":256,"vocab_size":100,"vision_config":{}})");
  EXPECT_FALSE(m.family_known);
  // 2 x embedding, 2 x (4 x 64^2 + 3 x 64 x 256 + 2 x 64), 64
  EXPECT_EQ(m.counts.parameters, 2 * 6400 + 2 * (4 * 4096 + 3 * 16384 + 128) + 64);
  const auto said = [&](const char* what) {
    return std::any_of(m.assumptions.begin(), m.assumptions.end(),
                       [&](const std::string& a) { return a.find(what) != std::string::npos; });
  };
  EXPECT_TRUE(said("newcomer"));
  EXPECT_TRUE(said("tie_word_embeddings"));
  EXPECT_TRUE(said("gated"));
  EXPECT_TRUE(said("torch_dtype"));
  EXPECT_TRUE(said("vision"));
  EXPECT_NE(std::find(m.fields_used.begin(), m.fields_used.end(), "intermediate_size"), m.fields_used.end());
}

TEST(Model, DecoderForm) {
  // GPT-3 175B in the generic form: 174.6 B.
  const Model m = read(
      R"({"model_type":"decoder","hidden_size":12288,"num_hidden_layers":96,"num_attention_heads":96,"num_key_value_heads":96,)"
      R"("head_dim":128,"intermediate_size":49152,"vocab_size":51200,"tie_word_embeddings":true,"hidden_act":"gelu",)"
      R"("gated_mlp":false,"norm":"layernorm","position_embedding":"learned","max_position_embeddings":2048,)"
      R"("attention_bias":true,"mlp_bias":true,"attention_dropout":0.1,"hidden_dropout":0.1,"torch_dtype":"bfloat16"})");
  EXPECT_TRUE(m.family_known);
  const int64_t h = 12288, layer = 12 * h * h + 13 * h;
  EXPECT_EQ(m.counts.parameters, 96 * layer + 2 * h + (51200 + 2048) * h);
  EXPECT_TRUE(m.learned_positions);
  EXPECT_DOUBLE_EQ(m.layer(0).attention_dropout, 0.1);
  EXPECT_TRUE(m.assumptions.empty()) << m.assumptions.front();
}

struct Bad {
  const char* change;    // "field":value, after the fields of a good config
  const char* expected;  // in the error
};

TEST(Model, BadFieldsAreNamed) {
  const Bad kBad[] = {
      {R"("hidden_size":0)", "hidden_size"},
      {R"("hidden_size":-4096)", "hidden_size"},
      {R"("hidden_size":1e30)", "hidden_size"},
      {R"("hidden_size":"4096")", "is a string"},
      {R"("hidden_size":4096.5)", "hidden_size"},
      {R"("hidden_size":10000001)", "hidden_size"},
      {R"("num_hidden_layers":100001)", "num_hidden_layers"},
      {R"("num_hidden_layers":[4])", "num_hidden_layers"},
      {R"("num_attention_heads":6)", "does not divide the hidden size 64"},
      {R"("num_key_value_heads":3)", "does not divide the 8 attention heads"},
      {R"("vocab_size":null)", "vocab_size is missing"},
      {R"("tie_word_embeddings":"yes")", "tie_word_embeddings"},
      {R"("torch_dtype":"float17")", "torch_dtype"},
      {R"("torch_dtype":"int4")", "torch_dtype"},
      {R"("attention_dropout":1.5)", "attention_dropout"},
      {R"("quantization_config":7)", "quantization_config"},
      {R"("quantization_config":{"quant_method":"gptq","bits":77})", "quantization_config.bits"},
      {R"("quantization_config":{"quant_method":"bitsandbytes","load_in_4bit":true,"load_in_8bit":true})",
       "load_in_4bit"},
      {R"("model_type":"mixtral","num_local_experts":8,"num_experts_per_tok":9)", "num_experts_per_tok"},
      {R"("model_type":"mixtral","num_local_experts":8)", "num_experts_per_tok is missing"},
      {R"("model_type":"gemma2","layer_types":["full_attention"])", "has 1 entries for 4 layers"},
      {R"("model_type":"gemma2","layer_types":["full_attention","x","x","x"])", "is no known kind of layer"},
      {R"("model_type":"nemotron_h","hybrid_override_pattern":"MQ")", "hybrid_override_pattern"},
      {R"("model_type":"nemotron_h","hybrid_override_pattern":"**")", "contradicts the pattern of 2 layers"},
      {R"("text_config":[])", "text_config"},
  };
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.change);
    // The later of two equal fields is what this test means: drop the good one.
    Document good = parse_json("{" + kLlama + "}", "config.json");
    const Document change = parse_json("{" + std::string(bad.change) + "}", "config.json");
    for (const auto& member : change.object()) good.set(member.first, member.second);
    std::string message;
    try {
      model_from_config(good, "config.json", "m");
    } catch (const InputError& e) {
      message = e.what();
    }
    EXPECT_NE(message.find(bad.expected), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_EQ(message.rfind("config.json:", 0), 0u) << message;
  }
}

TEST(Model, SizesThatOverflowAreBadInput) {
  const std::string message = error_of(
      R"({"model_type":"qwen3_moe","hidden_size":10000000,"num_hidden_layers":10000,"num_attention_heads":1000000,)"
      R"("head_dim":10000000,"moe_intermediate_size":1000000000,"num_experts":1000000,"num_experts_per_tok":8,)"
      R"("vocab_size":1000000000,"intermediate_size":1000000000})");
  EXPECT_NE(message.find("2^63"), std::string::npos) << message;
}

TEST(Model, NotAConfig) {
  EXPECT_NE(error_of("[]").find("accepted: an object"), std::string::npos);
  EXPECT_NE(error_of("{}").find("hidden_size is missing"), std::string::npos);
}

TEST(Model, OfASize) {
  const Model m = model_of_size(7'000'000'000);
  EXPECT_FALSE(m.shape_known);
  EXPECT_EQ(m.counts.parameters, 7'000'000'000);
  EXPECT_EQ(m.counts.stored_bytes, 14'000'000'000);
  EXPECT_THROW(model_of_size(0), InputError);
  EXPECT_THROW(model_of_size(-5), InputError);
}

TEST(Model, Changes) {
  const Catalogue& c = Catalogue::builtin();
  const Document config = c.config(*c.find("llama-3.1-70b"));
  const Model kv = model_with_changes(config, "c", "m", {"kv_heads=64"});
  EXPECT_TRUE(kv.hypothetical);
  EXPECT_EQ(kv.layer(0).attention.kv_heads, 64);
  EXPECT_EQ(kv.counts.parameters - c.model(*c.find("llama-3.1-70b")).counts.parameters,
            int64_t{80} * 2 * 56 * 128 * 8192);
  EXPECT_EQ(model_with_changes(config, "c", "m", {"num_hidden_layers=40", "vocab=1000"}).layers(), 40);
  const auto message = [&](const std::string& change) {
    try {
      model_with_changes(config, "c", "m", {change});
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(message("kv_headz=8").find("kv_heads"), std::string::npos);
  EXPECT_NE(message("kv_heads=7").find("--set kv_heads"), std::string::npos) << message("kv_heads=7");
  EXPECT_NE(message("kv_heads=eight").find("--set kv_heads"), std::string::npos);
  EXPECT_NE(message("kv_heads").find("FIELD=VALUE"), std::string::npos);
  EXPECT_NE(message("kv_heads=").find("no value"), std::string::npos);
  EXPECT_NE(message("heads=63").find("--set heads"), std::string::npos) << message("heads=63");
}

TEST(Model, ChangedLayersKeepTheirPattern) {
  const Catalogue& c = Catalogue::builtin();
  const auto changed = [&](const char* name, const char* change) {
    return model_with_changes(c.config(*c.find(name)), "c", "m", {change});
  };
  EXPECT_EQ(pattern(changed("Qwen/Qwen3.5-27B", "layers=8")), "lllFlllF");
  EXPECT_EQ(pattern(changed("gemma-3-27b", "layers=12")), "sssssFsssssF");
  EXPECT_EQ(pattern(changed("kimi-k3", "layers=8")), "lllMlllM");
  EXPECT_EQ(changed("nvidia/Nemotron-H-56B-Base-8K", "layers=10").layers(), 10);
  EXPECT_EQ(changed("MiniMax-M3", "layers=80").layers(), 80);
}

TEST(Model, ChangeWithoutEffectIsSaid) {
  const Catalogue& c = Catalogue::builtin();
  const Model m = model_with_changes(c.config(*c.find("deepseek-v3")), "c", "m", {"kv_heads=8"});
  ASSERT_FALSE(m.assumptions.empty());
  EXPECT_NE(m.assumptions.back().find("changes nothing"), std::string::npos);
}

TEST(Model, ByHand) {
  DecoderByHand d;
  d.layers = 32;
  d.hidden = 4096;
  d.heads = 32;
  d.ffn = 11008;
  d.vocab = 32000;
  d.tied_embeddings = false;
  EXPECT_EQ(model_by_hand(d).counts.parameters, 6'738'415'616);  // LLaMA-7B
  DecoderByHand gpt;
  gpt.gpt = true;
  gpt.layers = 48;
  gpt.hidden = 1600;
  gpt.heads = 25;
  gpt.vocab = 50257;
  gpt.positions = 1024;
  EXPECT_EQ(model_by_hand(gpt).counts.parameters, 1'557'611'200);  // GPT-2 XL
  DecoderByHand size;
  size.parameters = 7'000'000'000;
  const Model m = model_by_hand(size);
  EXPECT_NEAR(static_cast<double>(m.counts.parameters), 7e9, 0.5e9);
  EXPECT_GE(m.assumptions.size(), 5u);
  EXPECT_THROW(model_by_hand({}), InputError);
}

void expect_consistent(const Model& m) {
  int64_t elements = 0, learned = 0, mtp = 0, tensors = 0;
  Bytes bytes = 0;
  std::set<std::string> names;
  for_each_tensor(m, [&](const std::string& name, const Tensor& t, int64_t layer, int64_t expert) {
    (void)layer;
    (void)expert;
    ++tensors;
    elements += t.elements();
    bytes += t.stored_bytes;
    if (t.learned) learned += t.elements();
    EXPECT_EQ(name.find('{'), std::string::npos) << name;
    EXPECT_TRUE(tensors > 3000 || names.insert(name).second) << m.name << ": " << name << " occurs twice";
  });
  for (const TensorGroup& g : m.tensors) {
    if (g.part != TensorGroup::Part::mtp) continue;
    for (const Tensor& t : g.tensors) {
      if (t.learned) mtp += t.elements() * t.experts * g.times();
    }
  }
  EXPECT_EQ(elements, m.counts.stored_elements) << m.name;
  EXPECT_EQ(bytes, m.counts.stored_bytes) << m.name;
  EXPECT_EQ(tensors, m.counts.tensors) << m.name;
  EXPECT_EQ(learned - mtp, m.counts.parameters) << m.name;
  EXPECT_EQ(mtp, m.counts.mtp) << m.name;
  const Counts& c = m.counts;
  EXPECT_EQ(c.text + c.encoder + c.vision + c.audio, c.parameters) << m.name;
  EXPECT_LE(c.active, c.parameters) << m.name;
  EXPECT_LE(c.loaded_bytes, c.stored_bytes) << m.name;
}

TEST(Model, CountsAreTheSumOfTheTensors) {
  for (const char* name : {"llama-3.2-1b",
                           "gpt2",
                           "gemma-3-4b",
                           "Qwen/Qwen3.5-27B",
                           "t5-base",
                           "openai/whisper-tiny",
                           "bert",
                           "jamba-mini",
                           "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
                           "granite-3.1-1b",
                           "gpt-oss-20b",
                           "falcon-7b",
                           "RWKV/rwkv-5-world-3b",
                           "LFM2-350M",
                           "Kimi-Linear-48B-A3B-Instruct",
                           "Molmo-7B-D-0924-bnb-nf4",
                           "deepseek-v2",
                           "dbrx",
                           "EleutherAI/pythia-410m",
                           "nemotron-super-49b",
                           "llama-3.2-11b-vision"}) {
    expect_consistent(catalogue(name));
  }
}

RC_GTEST_PROP(ModelProperties, RandomDecodersAreConsistent, ()) {
  const auto pick = [](std::initializer_list<int64_t> values) {
    return *rc::gen::elementOf(std::vector<int64_t>(values));
  };
  const int64_t head_dim = pick({8, 16, 64});
  const int64_t kv = pick({1, 2, 4});
  const int64_t heads = kv * pick({1, 2, 8});
  const int64_t layers = *rc::gen::inRange<int64_t>(1, 40);
  Document c;
  c.set("model_type", *rc::gen::elementOf(std::vector<std::string>{"decoder", "llama", "qwen2", "qwen3", "olmo2",
                                                                   "starcoder2", "cohere"}));
  c.set("hidden_size", pick({64, 96, 128}));
  c.set("num_hidden_layers", layers);
  c.set("num_attention_heads", heads);
  c.set("num_key_value_heads", kv);
  c.set("head_dim", head_dim);
  c.set("intermediate_size", pick({64, 100, 256}));
  c.set("vocab_size", pick({17, 1000}));
  c.set("tie_word_embeddings", *rc::gen::arbitrary<bool>());
  c.set("max_position_embeddings", int64_t{64});
  const Model m = model_from_config(c, "c", "m");
  expect_consistent(m);
  RC_ASSERT(m.layers() == layers);
  c.set("num_hidden_layers", layers + 1);
  RC_ASSERT(model_from_config(c, "c", "m").counts.parameters > m.counts.parameters);
  for (std::string_view scheme : {"fp8", "int4", "nf4", "awq"}) expect_consistent(with_planned_quantization(m, scheme));
}

TEST(Families, AreFoundOnce) {
  const auto families = known_families();
  EXPECT_GE(families.size(), 75u);
  EXPECT_EQ(std::set<std::string_view>(families.begin(), families.end()).size(), families.size());
}

}  // namespace
}  // namespace vram
