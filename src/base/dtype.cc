#include "base/dtype.h"

#include <array>
#include <utility>

namespace vram {

std::string_view dtype_name(Dtype d) {
  switch (d) {
    case Dtype::f64: return "f64";
    case Dtype::f32: return "f32";
    case Dtype::tf32: return "tf32";
    case Dtype::f16: return "f16";
    case Dtype::bf16: return "bf16";
    case Dtype::f8_e4m3: return "f8_e4m3";
    case Dtype::f8_e5m2: return "f8_e5m2";
    case Dtype::f8_e8m0: return "f8_e8m0";
    case Dtype::f6: return "f6";
    case Dtype::f4: return "f4";
    case Dtype::i64: return "i64";
    case Dtype::i32: return "i32";
    case Dtype::i16: return "i16";
    case Dtype::i8: return "i8";
    case Dtype::u8: return "u8";
    case Dtype::i4: return "i4";
    case Dtype::boolean: return "bool";
  }
  return "?";
}

std::optional<Dtype> parse_dtype(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Dtype>, 36> kNames = {{
      {"float64", Dtype::f64}, {"f64", Dtype::f64}, {"fp64", Dtype::f64}, {"double", Dtype::f64},
      {"float32", Dtype::f32}, {"f32", Dtype::f32}, {"fp32", Dtype::f32}, {"float", Dtype::f32},
      {"tf32", Dtype::tf32}, {"float16", Dtype::f16}, {"f16", Dtype::f16}, {"fp16", Dtype::f16},
      {"half", Dtype::f16}, {"bfloat16", Dtype::bf16}, {"bf16", Dtype::bf16},
      {"fp8", Dtype::f8_e4m3}, {"float8", Dtype::f8_e4m3}, {"f8_e4m3", Dtype::f8_e4m3}, {"fp8_e4m3", Dtype::f8_e4m3},
      {"float8_e4m3fn", Dtype::f8_e4m3}, {"f8_e5m2", Dtype::f8_e5m2}, {"fp8_e5m2", Dtype::f8_e5m2},
      {"float8_e5m2", Dtype::f8_e5m2}, {"f8_e8m0", Dtype::f8_e8m0}, {"f6", Dtype::f6}, {"fp6", Dtype::f6},
      {"f4", Dtype::f4}, {"fp4", Dtype::f4}, {"int64", Dtype::i64}, {"int32", Dtype::i32}, {"int16", Dtype::i16},
      {"int8", Dtype::i8}, {"i8", Dtype::i8}, {"uint8", Dtype::u8}, {"int4", Dtype::i4}, {"bool", Dtype::boolean}}};
  if (name.substr(0, 6) == "torch.") name.remove_prefix(6);
  for (const auto& [text, dtype] : kNames) {
    if (text == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace vram
