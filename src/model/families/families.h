#pragma once

#include <span>
#include <string_view>

#include "model/reader.h"

namespace vram::arch {

/// One model_type. Either `decoder` (a decoder-only text model), or `whole` (everything else), or neither: the text
/// model is the family that the nested text config names. `towers` appends vision and audio parts.
struct Family {
  std::string_view type;
  Decoder (*decoder)(const Reader&) = nullptr;
  void (*towers)(const Reader&, Assembly&) = nullptr;
  void (*whole)(const Reader&, Assembly&) = nullptr;
  std::string_view root;  ///< where a multimodal checkpoint keeps the text layers ("language_model.model")
  std::string_view head;
};

/// Every family, in no order.
std::span<const Family> families();
/// Null where unknown.
const Family* find_family(std::string_view type);

/// A config of no listed family, or "decoder": every field that decoders commonly have is honoured.
Decoder generic_decoder(const Reader& r);

// families/llama.cc: descendants of Llama that differ in biases, norms, windows and names
Decoder llama(const Reader& r);
Decoder mistral(const Reader& r);
Decoder smollm3(const Reader& r);
Decoder internlm(const Reader& r);
Decoder internlm2(const Reader& r);
Decoder baichuan(const Reader& r);
Decoder orion(const Reader& r);
Decoder minicpm(const Reader& r);
Decoder olmo(const Reader& r);
Decoder olmo2(const Reader& r);
Decoder olmo3(const Reader& r);
Decoder cohere(const Reader& r);
Decoder cohere2(const Reader& r);
Decoder stablelm(const Reader& r);
Decoder starcoder2(const Reader& r);
Decoder exaone(const Reader& r);
Decoder exaone4(const Reader& r);
Decoder ernie45(const Reader& r);
Decoder hunyuan_dense(const Reader& r);
Decoder nemotron(const Reader& r);
Decoder pangu_embedded(const Reader& r);
Decoder mimo(const Reader& r);
Decoder seed_oss(const Reader& r);
Decoder bitnet(const Reader& r);
Decoder arcee(const Reader& r);
Decoder nemotron_nas(const Reader& r);
Decoder molmo(const Reader& r);

// families/qwen.cc
Decoder qwen(const Reader& r);
Decoder qwen2(const Reader& r);
Decoder qwen2_moe(const Reader& r);
Decoder qwen3(const Reader& r);
Decoder qwen3_moe(const Reader& r);
Decoder qwen3_next(const Reader& r);
Decoder qwen35(const Reader& r);

// families/gemma.cc
Decoder gemma(const Reader& r);
Decoder gemma2(const Reader& r);
Decoder gemma3(const Reader& r);
Decoder gemma3n(const Reader& r);
Decoder gemma4(const Reader& r);

// families/phi_glm.cc
Decoder phi(const Reader& r);
Decoder phi_msft(const Reader& r);
Decoder phi3(const Reader& r);
Decoder phimoe(const Reader& r);
Decoder chatglm(const Reader& r);
Decoder glm(const Reader& r);
Decoder glm4(const Reader& r);
Decoder glm4_moe(const Reader& r);

// families/deepseek.cc: latent attention and its relatives
Decoder deepseek(const Reader& r);
Decoder deepseek_v2(const Reader& r);
Decoder deepseek_v3(const Reader& r);
Decoder deepseek_v4(const Reader& r);
Decoder kimi_linear(const Reader& r);
Decoder minicpm3(const Reader& r);

// families/moe.cc: experts without latent attention
Decoder mixtral(const Reader& r);
Decoder dbrx(const Reader& r);
Decoder gpt_oss(const Reader& r);
Decoder llama4(const Reader& r);
Decoder granitemoe(const Reader& r);
Decoder olmoe(const Reader& r);
Decoder minimax_text_01(const Reader& r);
Decoder minimax_m2(const Reader& r);
Decoder minimax_m3(const Reader& r);
Decoder ernie45_moe(const Reader& r);
Decoder hunyuan_moe(const Reader& r);

// families/step_mimo.cc
Decoder mimo_v2(const Reader& r);
Decoder step3(const Reader& r);
Decoder step35(const Reader& r);

// families/gpt.cc: the GPT-2 line
Decoder gpt2(const Reader& r);
Decoder gptj(const Reader& r);
Decoder gpt_neo(const Reader& r);
Decoder gpt_neox(const Reader& r);
Decoder gpt_bigcode(const Reader& r);
Decoder opt(const Reader& r);
Decoder bloom(const Reader& r);
Decoder falcon(const Reader& r);
Decoder mpt(const Reader& r);

// families/hybrid.cc: state-space and convolution layers
Decoder mamba(const Reader& r);
Decoder falcon_mamba(const Reader& r);
Decoder mamba2(const Reader& r);
Decoder jamba(const Reader& r);
Decoder nemotron_h(const Reader& r);
Decoder granite_hybrid(const Reader& r);
Decoder bamba(const Reader& r);
Decoder lfm2(const Reader& r);

// families/rwkv.cc
Decoder rwkv4(const Reader& r);
Decoder rwkv5(const Reader& r);
Decoder rwkv6(const Reader& r);
Decoder rwkv7(const Reader& r);

// families/encoder.cc: models with an encoder
void t5(const Reader& r, Assembly& a);
void whisper(const Reader& r, Assembly& a);
void bert(const Reader& r, Assembly& a);

// families/towers.cc: vision and audio parts
void qwen2_vision(const Reader& r, Assembly& a);
void qwen3_vision(const Reader& r, Assembly& a);
void gemma3_vision(const Reader& r, Assembly& a);
void gemma3n_towers(const Reader& r, Assembly& a);
void gemma4_vision(const Reader& r, Assembly& a);
void llama4_vision(const Reader& r, Assembly& a);
void llava_vision(const Reader& r, Assembly& a);
void phi3_vision(const Reader& r, Assembly& a);
void pixtral_vision(const Reader& r, Assembly& a);
void kimi_vision(const Reader& r, Assembly& a);
void internvl_vision(const Reader& r, Assembly& a);
void mllama_vision(const Reader& r, Assembly& a);
void molmo_vision(const Reader& r, Assembly& a);
void uncounted_vision(const Reader& r, Assembly& a);

/// The text model of mllama: Llama with cross-attention layers in between.
Decoder mllama(const Reader& r);

}  // namespace vram::arch
