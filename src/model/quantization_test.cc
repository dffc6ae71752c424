#include "model/quantization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "formats/formats.h"
#include "model/model.h"
#include "model/patterns.h"

namespace vram {
namespace {

using arch::glob_match;
using arch::ModulePatterns;
using arch::regex_match;

Model catalogue(const char* name) { return Catalogue::builtin().model(*Catalogue::builtin().find(name)); }

int64_t scales(const Model& m) {
  int64_t n = 0;
  for (const TensorGroup& g : m.tensors) {
    for (const Tensor& t : g.tensors) {
      if (t.role == Role::scale) n += t.elements() * t.experts * g.times();
    }
  }
  return n;
}

// One layer of 1024 wide matrices and nothing else that counts.
Model one_layer(const std::string& quantization) {
  const std::string text =
      R"({"model_type":"llama","hidden_size":1024,"num_hidden_layers":2,"num_attention_heads":8,"num_key_value_heads":8,)"
      R"("head_dim":128,"intermediate_size":4096,"vocab_size":1000,"tie_word_embeddings":false,"torch_dtype":"bfloat16",)"
      R"("quantization_config":)" +
      quantization + "}";
  return model_from_config(parse_json(text, "config.json"), "config.json", "m");
}

TEST(Quantization, PublishedScaleCounts) {
  EXPECT_EQ(scales(catalogue("deepseek-v3")), 41'540'496);
  EXPECT_EQ(scales(catalogue("MiniMax-M2.5")), 13'880'064);
  EXPECT_EQ(scales(catalogue("Qwen/Qwen3-235B-A22B-FP8")), 14'269'952);
  const Model oss = catalogue("gpt-oss-20b");
  EXPECT_EQ(oss.counts.parameters, 20'914'757'184);
  EXPECT_EQ(scales(oss), 597'196'800);
}

TEST(Quantization, DeepSeekV3FileBytes) {
  // 3,918,786,560 numbers in bf16, 680,571,043,840 in fp8, 41,555,600 in fp32.
  EXPECT_EQ(catalogue("deepseek-v3").counts.stored_bytes, 3'918'786'560 * 2 + 680'571'043'840 + 41'555'600 * 4);
}

TEST(Quantization, BitsPerWeight) {
  struct Case {
    const char* config;
    double bits;
  };
  // By arithmetic for matrices of 1024 and 4096: group overheads, and per-column or per-matrix terms averaged over a
  // layer.
  const double matrices = 4 * 1024.0 * 1024 + 3 * 1024.0 * 4096;
  const double g_idx = 32 * (6 * 1024.0 + 4096) / matrices;
  const double per_row = 5 * 1024.0 + 2 * 4096;
  const Case kCases[] = {
      {R"({"quant_method":"gptq","bits":4,"group_size":128})", 4 + 20.0 / 128 + g_idx},
      {R"({"quant_method":"gptq","bits":8,"group_size":128})", 8 + 24.0 / 128 + g_idx},
      {R"({"quant_method":"gptq","bits":3,"group_size":128})", 3 + 19.0 / 128 + g_idx},
      {R"({"quant_method":"awq","bits":4,"group_size":128})", 4 + 20.0 / 128},
      {R"({"quant_method":"bitsandbytes","load_in_8bit":true})", 8 + (32 * per_row + 7 * 8) / matrices},
      {R"({"quant_method":"bitsandbytes","load_in_4bit":true})", 4.5 + 7 * 512 / matrices},
      {R"({"quant_method":"bitsandbytes","load_in_4bit":true,"bnb_4bit_use_double_quant":true})",
       4 + 8.0 / 64 + 32.0 / (64 * 256) + 7 * (512 + 8192) / matrices},
      {R"({"quant_method":"fp8","weight_block_size":[128,128]})", 8 + 32.0 / 16384},
      {R"({"quant_method":"fp8","activation_scheme":"static"})", 8 + 7 * 64 / matrices},
      {R"({"quant_algo":"NVFP4","exclude_modules":["lm_head"]})", 4.5 + 7 * 64 / matrices},
      {R"({"quant_method":"modelopt","quant_algo":"W4A16_NVFP4","ignore":["lm_head"]})", 4.5 + 7 * 32 / matrices},
      {R"({"quant_method":"hqq","quant_config":{"weight_quant_params":{"nbits":4,"group_size":64}}})", 4.5},
      {R"({"quant_method":"torchao","quant_type":"int4_weight_only","quant_type_kwargs":{"group_size":128}})", 4.25},
      {R"({"quant_method":"fbgemm_fp8"})", 8 + (32 * per_row + 7 * 32) / matrices},
      {R"({"quant_method":"eetq"})", 8 + 16 * per_row / matrices},
      {R"({"quant_method":"exl2","bits":4.65,"head_bits":6})", 4.65},
      {R"({"quant_method":"bitnet"})", 2 + 7 * 16 / matrices},
      {R"({"quant_method":"compressed-tensors","format":"pack-quantized","config_groups":{"g":{"targets":["Linear"],)"
       R"("weights":{"num_bits":4,"group_size":128,"strategy":"group","symmetric":true,"type":"int"}}},"ignore":["lm_head"]})",
       4.125 + 7 * 128 / matrices},
      {R"({"quant_method":"compressed-tensors","format":"mxfp4-pack-quantized","config_groups":{"g":{"targets":["Linear"],)"
       R"("weights":{"num_bits":4,"group_size":32,"type":"float"}}},"ignore":["re:.*lm_head.*"]})",
       4.25},
  };
  for (const Case& c : kCases) {
    const Model m = one_layer(c.config);
    ASSERT_TRUE(m.quantization) << c.config;
    EXPECT_FALSE(m.quantization->planned);
    if (m.quantization->method == "exl2") {
      // The head has bits of its own.
      const double head = 1000 * 1024.0;
      EXPECT_NEAR(m.quantization->bits_per_weight, (2 * matrices * 4.65 + head * 6) / (2 * matrices + head), 1e-3);
      continue;
    }
    EXPECT_NEAR(m.quantization->bits_per_weight, c.bits, 1e-6) << c.config;
    EXPECT_EQ(m.counts.parameters, one_layer("null").counts.parameters) << c.config;
  }
}

TEST(Quantization, KimiK2AndGptOssRates) {
  EXPECT_NEAR(catalogue("kimi-k2.5").quantization->bits_per_weight, 4.5, 1e-3);
  EXPECT_NEAR(catalogue("kimi-k3").quantization->bits_per_weight, 4.25, 1e-3);
  EXPECT_NEAR(catalogue("gpt-oss-120b").quantization->bits_per_weight, 4.25, 1e-9);
  EXPECT_NEAR(catalogue("deepseek-v3").quantization->bits_per_weight, 8.002, 5e-4);
}

TEST(Quantization, ListsLeaveModulesAlone) {
  const auto converted = [](const Model& m, const std::string& leaf, int64_t layer) {
    for (const TensorGroup& g : m.tensors) {
      if (!g.layers.empty() && std::find(g.layers.begin(), g.layers.end(), layer) == g.layers.end()) continue;
      for (const Tensor& t : g.tensors) {
        if (t.name.find(leaf) != std::string::npos && t.linear) return t.dtype != Dtype::bf16;
      }
    }
    return false;
  };
  const Model m = one_layer(
      R"({"quant_method":"fp8","weight_block_size":[128,128],"modules_to_not_convert":["model.layers.1.mlp","q_proj"]})");
  EXPECT_TRUE(converted(m, "k_proj", 0));
  EXPECT_FALSE(converted(m, "q_proj", 0));
  EXPECT_TRUE(converted(m, "up_proj", 0));
  EXPECT_FALSE(converted(m, "up_proj", 1));
  EXPECT_FALSE(converted(m, "lm_head", 0));
  const Model shell = one_layer(R"({"quant_algo":"NVFP4","exclude_modules":["lm_head","model.layers.0*","*.v_proj"]})");
  EXPECT_FALSE(converted(shell, "k_proj", 0));
  EXPECT_TRUE(converted(shell, "k_proj", 1));
  EXPECT_FALSE(converted(shell, "v_proj", 1));
  const Model mixed = one_layer(
      R"({"quant_algo":"MIXED_PRECISION","quantized_layers":{"model.layers.1.self_attn.q_proj":{"quant_algo":"FP8"}}})");
  EXPECT_TRUE(converted(mixed, "q_proj", 1));
  EXPECT_FALSE(converted(mixed, "q_proj", 0));
  EXPECT_FALSE(converted(mixed, "k_proj", 1));
}

TEST(Quantization, SideFileOfModelOpt) {
  const Document config = parse_json(
      R"({"model_type":"llama","hidden_size":1024,"num_hidden_layers":2,"num_attention_heads":8,"intermediate_size":4096,)"
      R"("vocab_size":1000,"tie_word_embeddings":false,"torch_dtype":"bfloat16"})",
      "config.json");
  const Document side =
      parse_json(R"({"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8","exclude_modules":["lm_head"]}})",
                 "hf_quant_config.json");
  const Model m = model_from_config(config, side, "config.json", "m");
  ASSERT_TRUE(m.quantization);
  EXPECT_EQ(m.quantization->kv_cache, "FP8");
  EXPECT_EQ(scales(m), 2 * 7 * 2);
  EXPECT_LT(m.counts.stored_bytes, model_from_config(config, "config.json", "m").counts.stored_bytes);
}

TEST(Quantization, UnknownMethodsAreSaid) {
  const Model m = one_layer(R"({"quant_method":"brand_new"})");
  EXPECT_EQ(m.counts.stored_bytes, one_layer("null").counts.stored_bytes);
  ASSERT_FALSE(m.assumptions.empty());
  EXPECT_NE(m.assumptions.back().find("brand_new"), std::string::npos);
}

TEST(Planned, BitsAndUntouchedParts) {
  const Model m = catalogue("llama-3.1-8b");
  const auto bits = [&](std::string_view scheme) {
    return with_planned_quantization(m, scheme).quantization->bits_per_weight;
  };
  EXPECT_NEAR(bits("fp8"), 8, 0.001);
  EXPECT_NEAR(bits("fp8_block"), 8 + 32.0 / 16384, 1e-9);
  EXPECT_NEAR(bits("int4"), 4.125, 0.001);
  EXPECT_NEAR(bits("awq"), 4.15625, 1e-9);
  EXPECT_NEAR(bits("gptq4"), 4.16, 0.005);
  EXPECT_NEAR(bits("nf4"), 4.5, 0.001);
  EXPECT_NEAR(bits("nf4_double"), 4.127, 0.001);
  EXPECT_NEAR(bits("nvfp4"), 4.5, 0.001);
  EXPECT_NEAR(bits("mxfp4"), 4.25, 1e-9);
  const Model int4 = with_planned_quantization(m, "int4");
  EXPECT_TRUE(int4.quantization->planned);
  EXPECT_EQ(int4.counts.parameters, m.counts.parameters);
  // Embedding and head stay in 16 bits.
  EXPECT_GT(int4.counts.stored_bytes, 2 * 2 * int64_t{128256} * 4096);
  EXPECT_EQ(with_planned_quantization(int4, "bf16").counts.stored_bytes, m.counts.stored_bytes);
  EXPECT_EQ(with_planned_quantization(m, "fp32").counts.stored_bytes, 2 * m.counts.stored_bytes);
}

TEST(Planned, ReplacesADeclaredScheme) {
  const Model v3 = catalogue("deepseek-v3");
  const Model bf16 = with_planned_quantization(v3, "bf16");
  EXPECT_FALSE(bf16.quantization);
  EXPECT_EQ(scales(bf16), 0);
  EXPECT_EQ(bf16.counts.stored_elements, v3.counts.parameters + v3.counts.mtp);
  EXPECT_EQ(scales(with_planned_quantization(v3, "fp8_block")), 41'540'496);
}

TEST(Planned, UnknownSchemeHasANearMiss) {
  try {
    with_planned_quantization(catalogue("gpt2"), "awk");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_EQ(e.fault().near_miss, "awq");
  }
}

TEST(Planned, WorksOnABareSize) {
  const Model m = with_planned_quantization(model_of_size(8'000'000'000), "nf4");
  EXPECT_EQ(m.counts.stored_bytes, 4'500'000'000);
}

TEST(Patterns, Shell) {
  EXPECT_TRUE(glob_match("model.layers.*.mlp", "model.layers.12.mlp"));
  EXPECT_FALSE(glob_match("model.layers.*.mlp", "model.layers.12.mlp.up"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("a?c*", "abcd"));
  EXPECT_FALSE(glob_match("a?c", "ac"));
}

TEST(Patterns, Expressions) {
  EXPECT_TRUE(regex_match(R"(.*self_attn.*)", "model.layers.3.self_attn.q_proj"));
  EXPECT_TRUE(regex_match(R"(.*mlp\.(gate|up|gate_up|down)_proj.*)", "model.layers.0.mlp.gate_up_proj"));
  EXPECT_FALSE(regex_match(R"(.*mlp\.(gate|up|gate_up|down)_proj.*)", "model.layers.0.mlp.experts.0.up_proj"));
  EXPECT_TRUE(regex_match(R"(model\.layers\.[0-3]\..*)", "model.layers.2.mlp"));
  EXPECT_FALSE(regex_match(R"(model\.layers\.[0-3]\..*)", "model.layers.12.mlp"));
  EXPECT_TRUE(regex_match(R"(^lm_head$)", "lm_head"));
  EXPECT_FALSE(regex_match(R"(^lm_head$)", "lm_head2"));
  EXPECT_TRUE(regex_match(R"(a(b|c)*d)", "abcbcd"));
  EXPECT_TRUE(regex_match(R"(layers\.(\d+)\.(?:q|k)_proj)", "layers.17.k_proj"));
  EXPECT_TRUE(regex_match("ab", "abc"));
  EXPECT_FALSE(regex_match("ab", "abc", true));
}

TEST(Patterns, HostileExpressionsEnd) {
  const std::string text(200, 'a');
  EXPECT_FALSE(regex_match("(a*)*b", text));
  EXPECT_FALSE(regex_match("(((((((((((a*)*)*)*)*)*)*)*)*)*)*b", text));
  EXPECT_FALSE(regex_match(std::string(5000, '('), text));
  for (const char* odd : {"(", "[", "[^", "\\", "a|", "*", "+", "?", "(?", "[a-", ")", "a)b", "(|)", "[]", "$^"})
    regex_match(odd, "abc");
}

TEST(Patterns, NamesOfOneLayerDoNotTouchOthers) {
  const ModulePatterns p(ModulePatterns::Manner::shell, {"model.layers.1.*", "model.layers.2.mlp*", "lm_head"});
  EXPECT_TRUE(p.matches("model.layers.1.mlp.up_proj"));
  EXPECT_FALSE(p.matches("model.layers.11.mlp.up_proj"));
  EXPECT_TRUE(p.matches("model.layers.2.mlp.up_proj"));
  EXPECT_FALSE(p.matches("model.layers.2.self_attn.q_proj"));
  EXPECT_TRUE(p.matches("lm_head"));
}

// Bits per weight of meta-llama/Llama-3.1-8B in the table of tools/quantize/README.md of llama.cpp; Q3_K_M is
// from an earlier version of that table. The file holds 64 rope factors in 32 bits besides the parameters.
TEST(PlannedGguf, LlamaQuantizeTable) {
  const std::pair<const char*, double> published[] = {
      {"iq1_s", 2.0042},  {"iq1_m", 2.1460},   {"iq2_xxs", 2.3824}, {"iq2_xs", 2.5882}, {"iq2_s", 2.7403},
      {"iq2_m", 2.9294},  {"iq3_xxs", 3.2548}, {"iq3_xs", 3.4977},  {"iq3_s", 3.6606},  {"iq3_m", 3.7628},
      {"iq4_xs", 4.4597}, {"iq4_nl", 4.6818},  {"q2_k_s", 2.9697},  {"q2_k", 3.1593},   {"q3_k_s", 3.6429},
      {"q3_k_m", 3.9960}, {"q3_k_l", 4.2979},  {"q4_k_s", 4.6672},  {"q4_k_m", 4.8944}, {"q5_k_s", 5.5704},
      {"q5_k_m", 5.7036}, {"q6_k", 6.5633},    {"q8_0", 8.5008}};
  const Model m = catalogue("meta-llama/Llama-3.1-8B");
  for (const auto& [mix, bits] : published) {
    const Model planned = with_planned_quantization(m, mix);
    const double per_weight = 8.0 * static_cast<double>(planned.counts.stored_bytes + 64 * 4) /
                              static_cast<double>(planned.counts.parameters + 64);
    EXPECT_NEAR(per_weight, bits, 0.00005) << mix;
    EXPECT_EQ(planned.counts.parameters, m.counts.parameters) << mix;
    EXPECT_EQ(planned.counts.loaded_bytes, planned.counts.stored_bytes) << mix;
  }
}

TEST(PlannedGguf, RowsThatBlocksDoNotDivideTakeSmallerTypes) {
  // DeepSeek-V3 as a file has it: keys and values apart, the keys' rows of 128 numbers in Q5_0, as the published tensor
  // list of its Q4_K file says (data/truth/gguf_tensors.tsv): 61 x 5,767,168 and 61 x 4,718,592 bytes.
  const Model v3 = with_planned_quantization(catalogue("deepseek-ai/DeepSeek-V3"), "q4_k_s");
  Bytes kv_b = 0;
  for (const TensorGroup& g : v3.tensors) {
    for (const Tensor& t : g.tensors) {
      if (g.part == TensorGroup::Part::text && t.role == Role::attention_k) kv_b += g.times() * t.stored_bytes;
    }
  }
  EXPECT_EQ(kv_b, 61 * (5'767'168 + 4'718'592));
  EXPECT_THROW(with_planned_quantization(model_of_size(7'000'000'000), "q4_k_m"), InputError);
  // 4.5 bits of MXFP4 where experts are, 8.5 elsewhere.
  const Model moe = with_planned_quantization(catalogue("Qwen/Qwen3-30B-A3B"), "mxfp4_moe");
  Bytes experts = 0;
  for (const TensorGroup& g : moe.tensors) {
    for (const Tensor& t : g.tensors) {
      if (t.shard == Shard::expert_column || t.shard == Shard::expert_row)
        experts += g.times() * t.experts * t.stored_bytes;
    }
  }
  EXPECT_EQ(experts, moe.counts.expert / 32 * 17);
}

}  // namespace
}  // namespace vram
