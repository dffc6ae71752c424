#include "base/dtype.h"

#include <string>
#include <utility>

namespace vram {

std::string_view dtype_name(Dtype d) {
  switch (d) {
    case Dtype::f64:
      return "f64";
    case Dtype::f32:
      return "f32";
    case Dtype::tf32:
      return "tf32";
    case Dtype::f16:
      return "f16";
    case Dtype::bf16:
      return "bf16";
    case Dtype::f8_e4m3:
      return "f8_e4m3";
    case Dtype::f8_e5m2:
      return "f8_e5m2";
    case Dtype::f8_e8m0:
      return "f8_e8m0";
    case Dtype::f6:
      return "f6";
    case Dtype::f4:
      return "f4";
    case Dtype::i64:
      return "i64";
    case Dtype::i32:
      return "i32";
    case Dtype::i16:
      return "i16";
    case Dtype::i8:
      return "i8";
    case Dtype::u8:
      return "u8";
    case Dtype::i4:
      return "i4";
    case Dtype::boolean:
      return "bool";
  }
  return "?";
}

std::optional<Dtype> parse_dtype(std::string_view name) {
  // Lower case; safetensors headers write "BF16", PyTorch "torch.bfloat16", NVIDIA's tools "FP8_E4M3" or "E4M3".
  static constexpr std::pair<std::string_view, Dtype> kNames[] = {{"f64", Dtype::f64},
                                                                  {"float64", Dtype::f64},
                                                                  {"fp64", Dtype::f64},
                                                                  {"double", Dtype::f64},
                                                                  {"f32", Dtype::f32},
                                                                  {"float32", Dtype::f32},
                                                                  {"fp32", Dtype::f32},
                                                                  {"float", Dtype::f32},
                                                                  {"single", Dtype::f32},
                                                                  {"tf32", Dtype::tf32},
                                                                  {"f16", Dtype::f16},
                                                                  {"float16", Dtype::f16},
                                                                  {"fp16", Dtype::f16},
                                                                  {"half", Dtype::f16},
                                                                  {"bf16", Dtype::bf16},
                                                                  {"bfloat16", Dtype::bf16},
                                                                  {"f8", Dtype::f8_e4m3},
                                                                  {"fp8", Dtype::f8_e4m3},
                                                                  {"float8", Dtype::f8_e4m3},
                                                                  {"e4m3", Dtype::f8_e4m3},
                                                                  {"f8_e4m3", Dtype::f8_e4m3},
                                                                  {"fp8_e4m3", Dtype::f8_e4m3},
                                                                  {"float8_e4m3", Dtype::f8_e4m3},
                                                                  {"f8_e4m3fn", Dtype::f8_e4m3},
                                                                  {"float8_e4m3fn", Dtype::f8_e4m3},
                                                                  {"float8_e4m3fnuz", Dtype::f8_e4m3},
                                                                  {"e5m2", Dtype::f8_e5m2},
                                                                  {"f8_e5m2", Dtype::f8_e5m2},
                                                                  {"fp8_e5m2", Dtype::f8_e5m2},
                                                                  {"float8_e5m2", Dtype::f8_e5m2},
                                                                  {"e8m0", Dtype::f8_e8m0},
                                                                  {"f8_e8m0", Dtype::f8_e8m0},
                                                                  {"float8_e8m0fnu", Dtype::f8_e8m0},
                                                                  {"f6", Dtype::f6},
                                                                  {"fp6", Dtype::f6},
                                                                  {"float6", Dtype::f6},
                                                                  {"f4", Dtype::f4},
                                                                  {"fp4", Dtype::f4},
                                                                  {"float4", Dtype::f4},
                                                                  {"i64", Dtype::i64},
                                                                  {"int64", Dtype::i64},
                                                                  {"long", Dtype::i64},
                                                                  {"i32", Dtype::i32},
                                                                  {"int32", Dtype::i32},
                                                                  {"int", Dtype::i32},
                                                                  {"i16", Dtype::i16},
                                                                  {"int16", Dtype::i16},
                                                                  {"short", Dtype::i16},
                                                                  {"i8", Dtype::i8},
                                                                  {"int8", Dtype::i8},
                                                                  {"u8", Dtype::u8},
                                                                  {"uint8", Dtype::u8},
                                                                  {"byte", Dtype::u8},
                                                                  {"i4", Dtype::i4},
                                                                  {"int4", Dtype::i4},
                                                                  {"bool", Dtype::boolean},
                                                                  {"boolean", Dtype::boolean}};
  std::string lower;
  if (name.size() > 32) return std::nullopt;
  for (char c : name) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  std::string_view wanted = lower;
  if (wanted.substr(0, 6) == "torch.") wanted.remove_prefix(6);
  for (const auto& [text, dtype] : kNames) {
    if (text == wanted) return dtype;
  }
  return std::nullopt;
}

}  // namespace vram
