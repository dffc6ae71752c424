#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/document.h"
#include "model/model.h"

namespace vram::arch {

/// How one matrix is stored. The side tensors of each layout stand in research of the formats and are checked by tests.
struct Storage {
  enum class Layout : uint8_t {
    plain,         ///< as it was
    fp8_block,     ///< F8 and one scale per block_rows x block_columns
    fp8_tensor,    ///< F8 and one scale (and one of the input, where static)
    fp8_channel,   ///< F8 and one scale a row
    int8_channel,  ///< I8 and one scale a row
    int_group,     ///< compressed-tensors: packed integers, scales by group, shape
    gptq,
    awq,
    bnb8,
    bnb4,
    mxfp4,     ///< two numbers a byte, one 8-bit exponent per 32
    nvfp4,     ///< two numbers a byte, an F8 scale per 16 and one F32 scale
    mxfp8,     ///< F8, one 8-bit exponent per 32
    hqq,       ///< packed integers, 16-bit scale and zero by group
    tinygemm,  ///< torchao int4: packed integers, 16-bit scale and zero by group and row
    ternary,   ///< four numbers a byte and one scale
    average    ///< `bits_per_weight` bits each, whatever the layout
  };
  Layout layout = Layout::plain;
  int bits = 8;
  int64_t group = 0;  ///< numbers of one row that share a scale; 0: the whole row
  int64_t block_rows = 128, block_columns = 128;
  bool symmetric = true;
  bool input_scale = false;
  bool act_order = false;
  bool double_quant = false;
  Dtype scale = Dtype::f32;
  double bits_per_weight = 0;  ///< of Layout::average
  bool operator==(const Storage&) const = default;
};

/// Reads quantization_config (of the text part or the whole) or hf_quant_config.json and rewrites the tensors.
void apply_declared_quantization(Model& model, const Fields& root, const Fields& text, const Document* hf_quant,
                                 const std::string& file);

}  // namespace vram::arch
