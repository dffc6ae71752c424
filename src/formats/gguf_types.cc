// The tensor types of ggml: numbers per block, bytes per block, and what some types keep besides for each row.
#include <algorithm>
#include <array>
#include <cctype>

#include "formats/gguf.h"

namespace vram {
namespace {

struct Type {
  uint32_t id;
  Encoding encoding;
};

constexpr Type type(uint32_t id, std::string_view name, int64_t block, int64_t bytes, Dtype dtype,
                    int64_t row_bytes = 0) {
  return {id, {.name = name, .block = block, .block_bytes = bytes, .row_bytes = row_bytes, .dtype = dtype}};
}

// Packed types are shown as the nearest plain width.
constexpr Dtype k4 = Dtype::i4, k6 = Dtype::f6, k8 = Dtype::i8;

// Ids and block structures: ggml.h and ggml-common.h of github.com/ggml-org/llama.cpp; from 97 on, and the interleaved
// copies (id + 200), those of github.com/ikawrakow/ik_llama.cpp, with its per-row scales (row_meta_size in ggml.c).
constexpr Type kTypes[] = {
    type(0, "F32", 1, 4, Dtype::f32),
    type(1, "F16", 1, 2, Dtype::f16),
    type(2, "Q4_0", 32, 18, k4),
    type(3, "Q4_1", 32, 20, k4),
    type(6, "Q5_0", 32, 22, k6),
    type(7, "Q5_1", 32, 24, k6),
    type(8, "Q8_0", 32, 34, k8),
    type(9, "Q8_1", 32, 36, k8),
    type(10, "Q2_K", 256, 84, k4),
    type(11, "Q3_K", 256, 110, k4),
    type(12, "Q4_K", 256, 144, k4),
    type(13, "Q5_K", 256, 176, k6),
    type(14, "Q6_K", 256, 210, k6),
    type(15, "Q8_K", 256, 292, k8),
    type(16, "IQ2_XXS", 256, 66, k4),
    type(17, "IQ2_XS", 256, 74, k4),
    type(18, "IQ3_XXS", 256, 98, k4),
    type(19, "IQ1_S", 256, 50, k4),
    type(20, "IQ4_NL", 32, 18, k4),
    type(21, "IQ3_S", 256, 110, k4),
    type(22, "IQ2_S", 256, 82, k4),
    type(23, "IQ4_XS", 256, 136, k4),
    type(24, "I8", 1, 1, Dtype::i8),
    type(25, "I16", 1, 2, Dtype::i16),
    type(26, "I32", 1, 4, Dtype::i32),
    type(27, "I64", 1, 8, Dtype::i64),
    type(28, "F64", 1, 8, Dtype::f64),
    type(29, "IQ1_M", 256, 56, k4),
    type(30, "BF16", 1, 2, Dtype::bf16),
    type(34, "TQ1_0", 256, 54, k4),
    type(35, "TQ2_0", 256, 66, k4),
    // BitNet's ternary numbers, four a byte, and one scale of 32 bytes a tensor.
    {36, {.name = "I2_S", .block = 4, .block_bytes = 1, .tensor_bytes = 32, .dtype = k4}},
    type(39, "MXFP4", 32, 17, Dtype::f4),
    type(40, "NVFP4", 64, 36, Dtype::f4),
    type(41, "Q1_0", 128, 18, k4),
    type(42, "Q2_0", 64, 18, k4),
    type(97, "Q8_0_X4", 32, 34, k8),
    type(98, "Q8_1_X4", 32, 36, k8),
    type(99, "Q8_2_X4", 32, 36, k8),
    type(133, "Q6_0", 32, 26, k6),
    type(134, "IQ1_BN", 64, 13, k4, 2),
    type(135, "IQ2_BN", 64, 16, k4, 4),
    type(136, "Q8_K64", 64, 68, k8),
    type(137, "IQ2_K", 256, 76, k4),
    type(138, "IQ3_K", 256, 110, k4),
    type(139, "IQ4_K", 256, 144, k4),
    type(140, "IQ5_K", 256, 176, k6),
    type(141, "IQ6_K", 256, 212, k6),
    type(144, "IQ4_KS", 256, 136, k4, 4),
    type(145, "IQ2_KS", 256, 70, k4, 2),
    type(146, "IQ4_KSS", 256, 128, k4, 4),
    type(147, "Q8_K16", 64, 64, k8, 20),
    type(148, "Q8_K32", 256, 296, k8),
    type(149, "Q8_KR8", 256, 296, k8),
    type(150, "Q8_K128", 128, 140, k8),
    type(151, "Q8_KV", 32, 32, k8, 8),
    type(152, "IQ5_KS", 256, 168, k6, 4),
    type(153, "IQ2_KT", 256, 68, k4, 4),
    type(154, "IQ3_KT", 256, 100, k4, 4),
    type(155, "IQ4_KT", 256, 128, k4, 4),
    type(156, "IQ3_KS", 256, 102, k4, 2),
    type(157, "IQ2_KL", 256, 86, k4, 2),
    type(158, "IQ1_KT", 256, 56, k4, 4),
    type(202, "Q4_0_R8", 32, 18, k4),
    type(206, "Q5_0_R4", 32, 22, k6),
    type(208, "Q8_0_R8", 32, 34, k8),
    type(210, "Q2_K_R4", 256, 84, k4),
    type(211, "Q3_K_R4", 256, 110, k4),
    type(212, "Q4_K_R4", 256, 144, k4),
    type(213, "Q5_K_R4", 256, 176, k6),
    type(214, "Q6_K_R4", 256, 210, k6),
    type(216, "IQ2_XXS_R4", 256, 66, k4),
    type(217, "IQ2_XS_R4", 256, 74, k4),
    type(218, "IQ3_XXS_R4", 256, 98, k4),
    type(219, "IQ1_S_R4", 32, 6, k4, 2),
    type(220, "IQ4_NL_R4", 32, 18, k4),
    type(221, "IQ3_S_R4", 256, 110, k4),
    type(222, "IQ2_S_R4", 256, 82, k4),
    type(223, "IQ4_XS_R8", 256, 136, k4),
    type(229, "IQ1_M_R4", 32, 7, k4, 2),
    type(230, "BF16_R16", 1, 2, Dtype::bf16),
    type(233, "Q6_0_R4", 32, 26, k6),
    type(335, "IQ2_BN_R4", 64, 16, k4, 4),
    type(337, "IQ2_K_R4", 256, 76, k4),
    type(338, "IQ3_K_R4", 256, 110, k4),
    type(339, "IQ4_K_R4", 256, 144, k4),
    type(340, "IQ5_K_R4", 256, 176, k6),
    type(344, "IQ4_KS_R4", 256, 136, k4, 4),
    type(352, "IQ5_KS_R4", 256, 168, k6, 4),
    type(353, "MXFP4_R8", 32, 17, Dtype::f4),
    type(397, "Q8_K_R16", 256, 258, k8),
    type(398, "Q8_KV_R8", 32, 32, k8, 4),
    type(399, "Q8_K_R8", 256, 258, k8),
};

constexpr size_t kIds = 400;

}  // namespace

const Encoding* gguf_encoding(uint32_t id) {
  static constexpr auto kById = [] {
    std::array<const Encoding*, kIds> table{};
    for (const Type& t : kTypes) table[t.id] = &t.encoding;
    return table;
  }();
  return id < kIds ? kById[id] : nullptr;
}

const Encoding* gguf_encoding(std::string_view name) {
  std::string upper;
  for (char c : name.substr(0, 32)) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const Type& t : kTypes) {
    if (t.encoding.name == upper) return &t.encoding;
  }
  return nullptr;
}

const std::vector<std::pair<uint32_t, const Encoding*>>& gguf_encodings() {
  static const auto list = [] {
    std::vector<std::pair<uint32_t, const Encoding*>> out;
    for (const Type& t : kTypes) out.emplace_back(t.id, &t.encoding);
    return out;
  }();
  return list;
}

}  // namespace vram
