#include "model/extras.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/checked.h"

namespace vram::arch {

namespace {

bool holds(const std::vector<std::string>& list, std::string_view what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

void buffer(TensorList t, std::string name, std::string_view module, std::vector<int64_t> shape, Dtype dtype) {
  Tensor& tensor = t.add(std::move(name), module, std::move(shape), Role::other);
  tensor.learned = false;
  tensor.dtype = dtype;
}

}  // namespace

void apply_published_layout(std::string_view name, Decoder& decoder) {
  if (decoder.mtp.count == 0) return;
  const auto stores = Catalogue::builtin().stores(name);
  if (holds(stores, "mtp_embeddings")) decoder.mtp.own_embeddings = true;
}

void add_published_extras(Model& model, const Reader& r) {
  const auto stores = Catalogue::builtin().stores(model.name);
  if (stores.empty()) return;
  Assembly assembly(model);
  if (holds(stores, "duplicate_lm_head") && model.tied_embeddings) {
    TensorList t = assembly.once(TensorGroup::Part::text);
    Tensor& head = t.add("lm_head.weight", "", {model.vocab, model.hidden}, Role::head, Shard::vocab);
    head.learned = false;
  }
  // One rotary table for the whole model, or one a layer; half of the rotated dimensions each.
  const bool layered = holds(stores, "rotary_inv_freq");
  if (layered || holds(stores, "rotary_inv_freq_once")) {
    const Attention& a = model.layer(0).attention;
    const double part = r.text()
                            .real({"rotary_pct", "partial_rotary_factor"}, 0, 1)
                            .value_or(model.family == "gpt_neox"  ? 0.25
                                      : model.family == "chatglm" ? 0.5
                                                                  : 1.0);
    const auto rotated = static_cast<int64_t>(static_cast<double>(a.head_dim) * part) / 2;
    if (layered) {
      assembly.tower(TensorGroup::Part::text, 0, model.layers(), [&](TensorList t) {
        buffer(t, "model.layers.{layer}.self_attn.rotary_emb.inv_freq", "model.layers.{layer}.self_attn", {rotated},
               Dtype::f32);
      });
    } else {
      buffer(assembly.once(TensorGroup::Part::text), "transformer.rotary_pos_emb.inv_freq", "transformer", {rotated},
             Dtype::f32);
    }
  }
  if (holds(stores, "causal_mask")) {
    const int64_t n = model.max_positions;
    // GPT-2 keeps its mask as numbers, GPT-NeoX as bytes.
    const Dtype dtype = model.family == "gpt_neox" ? Dtype::u8 : model.dtype;
    assembly.tower(TensorGroup::Part::text, 0, model.layers(), [&](TensorList t) {
      buffer(t, "layers.{layer}.attention.bias", "layers.{layer}.attention", {1, 1, n, n}, dtype);
    });
  }
}

}  // namespace vram::arch
