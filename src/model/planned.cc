// Quantizations that a plan would apply to a model.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "model/model.h"
#include "model/planned_gguf.h"
#include "model/storage.h"
#include "model/tensors.h"

namespace vram {

namespace {

using arch::Storage;
using Layout = Storage::Layout;

struct Planned {
  std::string_view name, detail;
  Storage storage;
};

// The schemes that people plan with, in their usual settings.
const std::vector<Planned>& planned() {
  static const std::vector<Planned> table = [] {
    std::vector<Planned> out;
    const auto add = [&](std::string_view name, std::string_view detail, Layout layout, int bits, int64_t group,
                         Dtype scale = Dtype::f32) {
      Storage s;
      s.layout = layout;
      s.bits = bits;
      s.group = group;
      s.scale = scale;
      out.push_back({name, detail, s});
    };
    add("fp8", "e4m3, one scale a matrix", Layout::fp8_tensor, 8, 0);
    add("fp8_block", "e4m3, blocks of 128 x 128", Layout::fp8_block, 8, 0);
    add("int8", "8 bits a row", Layout::int8_channel, 8, 0);
    add("int4", "4 bits, groups of 128, symmetric", Layout::int_group, 4, 128, Dtype::bf16);
    add("awq", "4 bits, groups of 128", Layout::awq, 4, 128);
    add("gptq4", "4 bits, groups of 128", Layout::gptq, 4, 128);
    add("gptq8", "8 bits, groups of 128", Layout::gptq, 8, 128);
    add("nf4", "nf4, blocks of 64", Layout::bnb4, 4, 64);
    add("nf4_double", "nf4, blocks of 64, double quantization", Layout::bnb4, 4, 64);
    out.back().storage.double_quant = true;
    add("nvfp4", "4 bits, an 8-bit scale per 16", Layout::nvfp4, 4, 16);
    out.back().storage.input_scale = true;
    add("mxfp4", "4 bits, an exponent per 32", Layout::mxfp4, 4, 32);
    return out;
  }();
  return table;
}

}  // namespace

const std::vector<std::string_view>& planned_quantizations() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Planned& p : planned()) out.push_back(p.name);
    for (std::string_view plain : {"bf16", "fp16", "fp32"}) out.push_back(plain);
    out.insert(out.end(), arch::gguf_mixes().begin(), arch::gguf_mixes().end());
    return out;
  }();
  return names;
}

Model with_planned_quantization(const Model& model, std::string_view scheme) {
  Model out = model;
  const auto plain = scheme == "bf16"   ? std::optional(Dtype::bf16)
                     : scheme == "fp16" ? std::optional(Dtype::f16)
                     : scheme == "fp32" ? std::optional(Dtype::f32)
                                        : std::nullopt;
  const Planned* found = nullptr;
  for (const Planned& p : planned()) {
    if (p.name == scheme) found = &p;
  }
  const bool mix = is_gguf_mix(scheme);
  if (!plain && !found && !mix) {
    throw InputError({.field = "quantization",
                      .value = std::string(scheme),
                      .problem = "is not known",
                      .accepted = fmt::format("{}", fmt::join(planned_quantizations(), ", ")),
                      .near_miss = near_miss(scheme, planned_quantizations())});
  }
  out.quantization.reset();
  if (mix && !out.shape_known) {
    throw InputError({.field = "quantization",
                      .value = std::string(scheme),
                      .problem = "is a mix of types over known tensors; of this model only the size is known",
                      .accepted = "a model with layers, or int4, int8, fp8, bf16"});
  }
  if (!out.shape_known) {
    // Only the size is known: every number takes the scheme's bits.
    const double bits_each = plain ? static_cast<double>(bits(*plain))
                             : found->storage.layout == Layout::bnb4 || found->storage.bits == 4 ? 4.5
                                                                                                 : 8.0;
    out.counts.stored_bytes = out.counts.loaded_bytes =
        mul_div_up(out.counts.parameters, static_cast<int64_t>(bits_each * 1000), 8000);
    if (found)
      out.quantization = Quantization{std::string(found->name), std::string(found->detail), bits_each, true, ""};
    return out;
  }
  arch::undo(out);
  const Dtype before = out.dtype;
  if (plain) out.dtype = *plain;
  for (TensorGroup& group : out.tensors) {
    for (Tensor& t : group.tensors) {
      if (plain && t.dtype == before) t.dtype = *plain;
      t.stored_bytes = 0;
    }
  }
  if (mix) arch::apply_gguf_mix(out, scheme);
  if (found) {
    const auto choose = [&](const Tensor& t, TensorGroup::Part part, const std::string&) -> Storage {
      if (part == TensorGroup::Part::vision || part == TensorGroup::Part::audio) return {};
      if (t.role == Role::router || t.role == Role::embedding || t.role == Role::head || t.role == Role::mtp) return {};
      return found->storage;
    };
    const arch::Converted sum = arch::rewrite(out, choose, false);
    Quantization q{std::string(found->name), std::string(found->detail), 0, true, ""};
    if (sum.weights > 0) q.bits_per_weight = 8.0 * static_cast<double>(sum.bytes) / static_cast<double>(sum.weights);
    out.quantization = std::move(q);
  }
  arch::finish_counts(out);
  return out;
}

}  // namespace vram
