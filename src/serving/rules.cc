#include "serving/rules.h"

#include <algorithm>
#include <cctype>

namespace vram {

const std::vector<ServingRules::Member>& ServingRules::members() {
  using R = ServingRules;
  static const std::vector<Member> all = {
      &R::usable_bytes,   &R::context_tokens,     &R::block_tokens,         &R::context_bytes,
      &R::alone_bytes,    &R::pair_bytes,         &R::group_bytes,          &R::graph_bytes,
      &R::batched_tokens, &R::sequences,          &R::forward_ffn_permille, &R::forward_hidden_permille,
      &R::sampler_bytes,  &R::vocabulary_padding, &R::kv_scale_fp8,         &R::kv_scale_int8,
      &R::kv_scale_int4,  &R::index_scale_bytes,  &R::index_scale_elements, &R::state_bytes,
      &R::conv_bytes,     &R::int4_group,         &R::int4_scale_bits,      &R::int4_zero_bits,
      &R::nf4_block,      &R::nf4_absmax_bits,    &R::reserve_permille};
  return all;
}

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// A start-up log of a card with 70 GiB or more other than A100 shows the larger defaults of the engine.
bool is_large(const Device& device, Bytes usable) {
  return usable >= 70 * kGiB && lower(device.name).find("a100") == std::string::npos;
}

Constant usable_row(const Machine& machine, const std::optional<Bytes>& given) {
  const Device& d = machine.device;
  Constant row{.id = "usable_bytes", .unit = "bytes"};
  if (given || d.memory_only) {
    row.value = row.low = row.high = given.value_or(d.usable_bytes());
    row.basis = Basis::exact;
    row.source = given ? "--usable" : "the memory that was named";
    return row;
  }
  row.id += "." + d.id;
  row.value = d.usable_bytes();
  row.low = std::min(row.value, d.process_bytes_low.value_or(row.value));
  row.high = std::max(row.value, d.process_bytes_high.value_or(row.value));
  row.basis = d.process_bytes_low ? Basis::measured : Basis::assumed;
  row.source = d.source;
  return row;
}

}  // namespace

ServingRules serving_rules(const Constants& constants, const Machine& machine, const std::optional<Bytes>& usable) {
  ServingRules r;
  r.usable_bytes = usable_row(machine, usable);
  const std::string size = is_large(machine.device, r.usable_bytes.value) ? "large" : "default";
  r.context_tokens = constants.get("serving_context_tokens");
  r.block_tokens = constants.get("kv_block_tokens.default");
  r.context_bytes = constants.get_or_default("cuda_context_bytes", lower(machine.device.arch));
  r.alone_bytes = constants.get("vllm_non_torch_bytes.tp1");
  r.pair_bytes = constants.get("vllm_non_torch_bytes.tp2");
  r.group_bytes = constants.get("vllm_non_torch_bytes.default");
  r.graph_bytes = constants.get("vllm_cuda_graph_bytes");
  r.batched_tokens = constants.get("vllm_batched_tokens." + size);
  r.sequences = constants.get("vllm_max_sequences." + size);
  r.forward_ffn_permille = constants.get("serving_forward_ffn_permille");
  r.forward_hidden_permille = constants.get("serving_forward_hidden_permille");
  r.sampler_bytes = constants.get("serving_sampler_bytes");
  r.vocabulary_padding = constants.get("vocabulary_padding_rows");
  r.kv_scale_fp8 = constants.get("kv_scale_bytes.fp8");
  r.kv_scale_int8 = constants.get("kv_scale_bytes.int8");
  r.kv_scale_int4 = constants.get("kv_scale_bytes.int4");
  r.index_scale_bytes = constants.get("sparse_index_scale_bytes");
  r.index_scale_elements = constants.get("sparse_index_scale_elements");
  r.state_bytes = constants.get("recurrent_state_bytes");
  r.conv_bytes = constants.get("convolution_state_bytes");
  r.int4_group = constants.get("int4_group_elements");
  r.int4_scale_bits = constants.get("int4_scale_bits");
  r.int4_zero_bits = constants.get("int4_zero_bits");
  r.nf4_block = constants.get("nf4_block_elements");
  r.nf4_absmax_bits = constants.get("nf4_absmax_bits");
  r.reserve_permille = constants.get("reserve_ratio_permille");
  r.spread_permille = constants.get("serving_spread_permille");
  return r;
}

}  // namespace vram
