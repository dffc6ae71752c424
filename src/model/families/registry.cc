// One line a model type. A new family is a function in one of the files beside this one, declared in families.h, and a
// line.
#include <algorithm>

#include "model/families/families.h"

namespace vram::arch {

namespace {

constexpr std::string_view kInner = "language_model.model";  // where most multimodal checkpoints keep the text layers
constexpr std::string_view kInnerHead = "language_model.lm_head";
constexpr std::string_view kQwen = "model.language_model";

constexpr Family kFamilies[] = {
    {"decoder", generic_decoder},
    // Llama and its descendants
    {"llama", llama},
    {"yi", llama},
    {"aquila", llama},
    {"InternLM", internlm},
    {"mistral", mistral},
    {"ministral", mistral},
    {"ministral3", mistral, pixtral_vision, nullptr, kInner, kInnerHead},
    {"mistral3", nullptr, pixtral_vision, nullptr, kInner, kInnerHead},
    {"mistral3_text", mistral},
    {"smollm3", smollm3},
    {"granite", llama},
    {"internlm", internlm},
    {"internlm2", internlm2},
    {"baichuan", baichuan},
    {"orion", orion},
    {"minicpm", minicpm},
    {"olmo", olmo},
    {"olmo2", olmo2},
    {"olmo3", olmo3},
    {"cohere", cohere},
    {"cohere2", cohere2},
    {"stablelm", stablelm},
    {"stablelm_epoch", stablelm},
    {"starcoder2", starcoder2},
    {"exaone", exaone},
    {"exaone4", exaone4},
    {"ernie4_5", ernie45},
    {"hunyuan_v1_dense", hunyuan_dense},
    {"nemotron", nemotron},
    {"PanguEmbedded", pangu_embedded},
    {"mimo", mimo},
    {"seed_oss", seed_oss},
    {"bitnet", bitnet},
    {"arcee", arcee},
    {"nemotron-nas", nemotron_nas},
    {"deci", nemotron_nas},
    {"molmo", molmo, molmo_vision},
    // Qwen
    {"qwen", qwen},
    {"qwen2", qwen2},
    {"qwen2_moe", qwen2_moe},
    {"qwen3", qwen3},
    {"qwen3_moe", qwen3_moe},
    {"qwen3_next", qwen3_next},
    {"qwen3_5", qwen35, qwen3_vision, nullptr, kQwen, "lm_head"},
    {"qwen3_5_text", qwen35},
    {"qwen3_5_moe", qwen35, qwen3_vision, nullptr, kQwen, "lm_head"},
    {"qwen3_5_moe_text", qwen35},
    {"qwen2_vl", qwen2, qwen2_vision},
    {"qwen2_vl_text", qwen2},
    {"qwen2_5_vl", qwen2, qwen2_vision},
    {"qwen2_5_vl_text", qwen2},
    {"qwen3_vl", qwen3, qwen3_vision, nullptr, kQwen, "lm_head"},
    {"qwen3_vl_text", qwen3},
    {"qwen3_vl_moe", qwen3_moe, qwen3_vision, nullptr, kQwen, "lm_head"},
    {"qwen3_vl_moe_text", qwen3_moe},
    // Gemma
    {"gemma", gemma},
    {"gemma2", gemma2},
    {"gemma3_text", gemma3},
    {"gemma3", gemma3, gemma3_vision, nullptr, kInner, kInnerHead},
    {"gemma3n_text", gemma3n},
    {"gemma3n", gemma3n, gemma3n_towers, nullptr, kQwen, "lm_head"},
    {"gemma4_text", gemma4},
    {"gemma4", gemma4, gemma4_vision, nullptr, kQwen, "lm_head"},
    // Phi, GLM
    {"phi", phi},
    {"phi-msft", phi_msft},
    {"phi3", phi3},
    {"phi3_v", phi3, phi3_vision},
    {"phimoe", phimoe},
    {"chatglm", chatglm},
    {"glm", glm},
    {"glm4", glm4},
    {"glm4_moe", glm4_moe},
    // Latent attention
    {"deepseek", deepseek},
    {"deepseek_v2", deepseek_v2},
    {"deepseek_v3", deepseek_v3},
    {"deepseek_v32", deepseek_v3},
    {"deepseek_v4", deepseek_v4},
    {"deepseek_ref", deepseek_v4},
    {"kimi_k2", deepseek_v3},
    {"kimi_k25", nullptr, kimi_vision, nullptr, kInner, kInnerHead},
    {"kimi_linear", kimi_linear},
    {"kimi_k3", nullptr, kimi_vision, nullptr, kInner, kInnerHead},
    {"glm4_moe_lite", deepseek_v3},
    {"glm_moe_dsa", deepseek_v3},
    {"minicpm3", minicpm3},
    // Experts
    {"mixtral", mixtral},
    {"dbrx", dbrx},
    {"gpt_oss", gpt_oss},
    {"llama4", llama4, llama4_vision, nullptr, kInner, kInnerHead},
    {"llama4_text", llama4},
    {"granitemoe", granitemoe},
    {"granitemoeshared", granitemoe},
    {"olmoe", olmoe},
    {"minimax_text_01", minimax_text_01},
    {"minimax", minimax_text_01},
    {"MiniMaxText01", minimax_text_01},
    {"MiniMaxM1", minimax_text_01},
    {"minimax_m2", minimax_m2},
    {"minimax_m3", minimax_m3},
    {"minimax_m3_text", minimax_m3},
    {"minimax_m3_vl_text", minimax_m3},
    {"minimax_m3_vl", minimax_m3, uncounted_vision, nullptr, kInner, kInnerHead},
    {"ernie4_5_moe", ernie45_moe},
    {"hunyuan_v1_moe", hunyuan_moe},
    {"hunyuan", hunyuan_moe},
    {"mimo_v2_flash", mimo_v2},
    {"mimo_v2", mimo_v2},
    {"step3_text", step3},
    {"step3_vl", step3, uncounted_vision, nullptr, "model", "lm_head"},
    {"step3p5", step35},
    {"step3p7_text", step35},
    {"step3p7", step35, uncounted_vision},
    // The GPT-2 line
    {"gpt2", gpt2},
    {"gptj", gptj},
    {"gpt_neo", gpt_neo},
    {"gpt_neox", gpt_neox},
    {"gpt_bigcode", gpt_bigcode},
    {"opt", opt},
    {"bloom", bloom},
    {"falcon", falcon},
    {"RefinedWeb", falcon},
    {"RefinedWebModel", falcon},
    {"mpt", mpt},
    // State space, convolutions, RWKV
    {"mamba", mamba},
    {"mamba2", mamba2},
    {"falcon_mamba", falcon_mamba},
    {"jamba", jamba},
    {"nemotron_h", nemotron_h},
    {"granitemoehybrid", granite_hybrid},
    {"bamba", bamba},
    {"lfm2", lfm2},
    {"lfm2_moe", lfm2},
    {"rwkv", rwkv4},
    {"rwkv5", rwkv5},
    {"rwkv6", rwkv6},
    {"rwkv7", rwkv7},
    // Encoders
    {"t5", nullptr, nullptr, t5},
    {"mt5", nullptr, nullptr, t5},
    {"whisper", nullptr, nullptr, whisper},
    {"bert", nullptr, nullptr, bert},
    {"roberta", nullptr, nullptr, bert},
    {"xlm-roberta", nullptr, nullptr, bert},
    // Images besides text
    {"llava", nullptr, llava_vision, nullptr, kInner, kInnerHead},
    {"llava_next", nullptr, llava_vision, nullptr, kInner, kInnerHead},
    {"internvl_chat", nullptr, internvl_vision, nullptr, kInner, kInnerHead},
    {"internvl", nullptr, internvl_vision, nullptr, kInner, kInnerHead},
    {"mllama", mllama, mllama_vision, nullptr, kInner, kInnerHead},
    {"mllama_text_model", mllama},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view type) {
  for (const Family& f : kFamilies) {
    if (f.type == type) return &f;
  }
  return nullptr;
}

}  // namespace vram::arch
