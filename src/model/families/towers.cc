// Vision and audio parts of multimodal models. Structures follow the published modelling files.
#include <fmt/format.h>

#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "model/families/families.h"

namespace vram::arch {

namespace {

using Part = TensorGroup::Part;
constexpr Role kVision = Role::vision;

// A vision config, its fields reported with the others.
class Tower {
 public:
  static std::optional<Tower> of(const Reader& r, Reader::Names names = {"vision_config"}) {
    auto fields = r.root().object(names);
    if (!fields) {
      r.assume("model.assume.no_tower");
      return std::nullopt;
    }
    return Tower(r, std::move(*fields));
  }
  int64_t size(Reader::Names names, int64_t high = kMaxWidth) const {
    return fields_.required_integer(names, {1, high});
  }
  int64_t size_or(Reader::Names names, int64_t fallback, int64_t high = kMaxWidth) const {
    return fields_.integer_or(names, fallback, {1, high});
  }
  bool flag(Reader::Names names, bool fallback) const { return fields_.boolean_or(names, fallback); }
  const Fields& fields() const { return fields_; }
  int64_t layers() const { return size({"num_hidden_layers", "depth", "vt_num_hidden_layers"}, kMaxLayers); }

 private:
  Tower(const Reader&, Fields fields) : fields_(std::move(fields)) {}
  Fields fields_;
};

int64_t patches(int64_t image, int64_t patch, const Fields& fields) {
  if (image < patch) fields.refuse("patch_size", fmt::format("exceeds the image size {}", image));
  return checked_mul(image / patch, image / patch);
}

void vision_linear(TensorList& t, const std::string& module, std::string_view leaf, int64_t out, int64_t in,
                   bool bias) {
  t.linear(module, leaf, out, in, kVision, Shard::replicated, bias);
}

void projector_linear(TensorList& t, const std::string& module, std::string_view leaf, int64_t out, int64_t in,
                      bool bias) {
  t.linear(module, leaf, out, in, Role::projector, Shard::replicated, bias);
}

void vision_norm(TensorList& t, const std::string& module, std::string_view leaf, int64_t width, bool bias) {
  t.norm(module, leaf, width, NormKind::layernorm, bias);
}

// The CLIP and SigLIP encoder layer: separate q, k, v, two LayerNorms, plain MLP, biases throughout.
void clip_layer(TensorList& t, const std::string& layer, int64_t h, int64_t ffn) {
  const std::string attention = layer + ".self_attn";
  for (const char* leaf : {"q_proj", "k_proj", "v_proj", "out_proj"}) vision_linear(t, attention, leaf, h, h, true);
  vision_norm(t, layer, "layer_norm1", h, true);
  vision_linear(t, layer + ".mlp", "fc1", ffn, h, true);
  vision_linear(t, layer + ".mlp", "fc2", h, ffn, true);
  vision_norm(t, layer, "layer_norm2", h, true);
}

struct Clip {
  int64_t hidden = 1024, ffn = 4096, layers = 24, image = 336, patch = 14, channels = 3;
};

void clip_tower(Assembly& a, const std::string& root, const Clip& c, const Fields& fields) {
  {
    TensorList t = a.once(Part::vision);
    const std::string e = root + ".embeddings";
    t.add(e + ".class_embedding", e, {c.hidden}, kVision);
    t.add(e + ".patch_embedding.weight", e, {c.hidden, c.channels, c.patch, c.patch}, kVision);
    t.table(e, "position_embedding", checked_add(patches(c.image, c.patch, fields), 1), c.hidden, kVision,
            Shard::replicated);
    vision_norm(t, root, "pre_layrnorm", c.hidden, true);
    vision_norm(t, root, "post_layernorm", c.hidden, true);
  }
  a.tower(Part::vision, 0, c.layers,
          [&](TensorList t) { clip_layer(t, root + ".encoder.layers.{layer}", c.hidden, c.ffn); });
}

void siglip_tower(Assembly& a, const std::string& root, const Clip& c, const Fields& fields) {
  {
    TensorList t = a.once(Part::vision);
    const std::string e = root + ".embeddings";
    t.add(e + ".patch_embedding.weight", e, {c.hidden, c.channels, c.patch, c.patch}, kVision);
    t.add(e + ".patch_embedding.bias", e, {c.hidden}, kVision);
    t.table(e, "position_embedding", patches(c.image, c.patch, fields), c.hidden, kVision, Shard::replicated);
    vision_norm(t, root, "post_layernorm", c.hidden, true);
  }
  a.tower(Part::vision, 0, c.layers,
          [&](TensorList t) { clip_layer(t, root + ".encoder.layers.{layer}", c.hidden, c.ffn); });
}

Clip clip_of(const Tower& v) {
  Clip c;
  c.hidden = v.size({"hidden_size"});
  c.ffn = v.size({"intermediate_size"});
  c.layers = v.layers();
  c.image = v.size({"image_size"}, 1'000'000);
  c.patch = v.size({"patch_size"}, 100'000);
  c.channels = v.size_or({"num_channels"}, 3, 1000);
  return c;
}

}  // namespace

void qwen2_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r);
  if (!v) return;
  // Qwen2-VL: embed_dim is the tower's width, hidden_size its output; Qwen2.5-VL: hidden_size and out_hidden_size.
  const bool second = v->fields().has({"embed_dim"});
  const int64_t h = second ? v->size({"embed_dim"}) : v->size_or({"hidden_size"}, 1280);
  const int64_t out =
      second ? v->size_or({"hidden_size"}, a.model().hidden) : v->size_or({"out_hidden_size"}, a.model().hidden);
  const int64_t ffn =
      second ? checked_mul(v->size_or({"mlp_ratio"}, 4, 1000), h) : v->size_or({"intermediate_size"}, 3420);
  const int64_t patch = v->size_or({"patch_size", "spatial_patch_size"}, 14, 100'000);
  const int64_t frames = v->size_or({"temporal_patch_size"}, 2, 1000);
  const int64_t merge = v->size_or({"spatial_merge_size"}, 2, 1000);
  const int64_t channels = v->size_or({"in_channels", "in_chans"}, 3, 1000);
  const int64_t depth = v->size_or({"depth"}, 32, kMaxLayers);
  const NormKind norm = second ? NormKind::layernorm : NormKind::rmsnorm;
  const std::string root = "visual";
  {
    TensorList t = a.once(Part::vision);
    t.add("visual.patch_embed.proj.weight", root, {h, channels, frames, patch, patch}, kVision);
    const int64_t merged = checked_mul(checked_mul(merge, merge), h);
    t.norm("visual.merger", "ln_q", h, norm, second);
    projector_linear(t, "visual.merger", "mlp.0", merged, merged, true);
    projector_linear(t, "visual.merger", "mlp.2", out, merged, true);
  }
  a.tower(Part::vision, 0, depth, [&](TensorList t) {
    const std::string block = "visual.blocks.{layer}";
    t.norm(block, "norm1", h, norm, second);
    t.norm(block, "norm2", h, norm, second);
    vision_linear(t, block + ".attn", "qkv", checked_mul(3, h), h, true);
    vision_linear(t, block + ".attn", "proj", h, h, true);
    if (second) {
      vision_linear(t, block + ".mlp", "fc1", ffn, h, true);
      vision_linear(t, block + ".mlp", "fc2", h, ffn, true);
    } else {
      vision_linear(t, block + ".mlp", "gate_proj", ffn, h, true);
      vision_linear(t, block + ".mlp", "up_proj", ffn, h, true);
      vision_linear(t, block + ".mlp", "down_proj", h, ffn, true);
    }
  });
}

void qwen3_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r);
  if (!v) return;
  const int64_t h = v->size({"hidden_size"});
  const int64_t ffn = v->size({"intermediate_size"});
  const int64_t out = v->size_or({"out_hidden_size"}, a.model().hidden);
  const int64_t patch = v->size_or({"patch_size"}, 16, 100'000);
  const int64_t frames = v->size_or({"temporal_patch_size"}, 2, 1000);
  const int64_t merge = v->size_or({"spatial_merge_size"}, 2, 1000);
  const int64_t channels = v->size_or({"in_channels"}, 3, 1000);
  const int64_t merged = checked_mul(checked_mul(merge, merge), h);
  const auto deep =
      v->fields().integers({"deepstack_visual_indexes"}, {0, kMaxLayers}).value_or(std::vector<int64_t>());
  const std::string root = "model.visual";
  const auto merger = [&](TensorList& t, const std::string& module, int64_t norm_width) {
    vision_norm(t, module, "norm", norm_width, true);
    projector_linear(t, module, "linear_fc1", merged, merged, true);
    projector_linear(t, module, "linear_fc2", out, merged, true);
  };
  {
    TensorList t = a.once(Part::vision);
    t.add(root + ".patch_embed.proj.weight", root, {h, channels, frames, patch, patch}, kVision);
    t.add(root + ".patch_embed.proj.bias", root, {h}, kVision);
    t.table(root, "pos_embed", v->size({"num_position_embeddings"}, kMaxPositions), h, kVision, Shard::replicated);
    merger(t, root + ".merger", h);
  }
  a.tower(Part::vision, 0, v->layers(), [&](TensorList t) {
    const std::string block = root + ".blocks.{layer}";
    vision_norm(t, block, "norm1", h, true);
    vision_norm(t, block, "norm2", h, true);
    vision_linear(t, block + ".attn", "qkv", checked_mul(3, h), h, true);
    vision_linear(t, block + ".attn", "proj", h, h, true);
    vision_linear(t, block + ".mlp", "linear_fc1", ffn, h, true);
    vision_linear(t, block + ".mlp", "linear_fc2", h, ffn, true);
  });
  a.tower(Part::vision, 0, static_cast<int64_t>(deep.size()),
          [&](TensorList t) { merger(t, root + ".deepstack_merger_list.{layer}", merged); });
}

void gemma3_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r);
  if (!v) return;
  const Clip c = clip_of(*v);
  siglip_tower(a, "vision_tower.vision_model", c, v->fields());
  TensorList t = a.once(Part::vision);
  const std::string p = "multi_modal_projector";
  t.add(p + ".mm_input_projection_weight", p, {c.hidden, a.model().hidden}, Role::projector);
  t.norm(p, "mm_soft_emb_norm", c.hidden, NormKind::rmsnorm, false);
}

void gemma3n_towers(const Reader& r, Assembly&) {
  if (r.root().has({"vision_config", "audio_config"})) {
    r.assume("model.assume.gemma3n_towers");
  }
}

void gemma4_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r);
  if (!v) return;
  const int64_t h = v->size({"hidden_size"});
  const int64_t ffn = v->size({"intermediate_size"});
  const int64_t heads = v->size({"num_attention_heads"});
  const int64_t kv = v->size_or({"num_key_value_heads"}, heads);
  const int64_t d = v->size({"head_dim"});
  const int64_t patch = v->size({"patch_size"}, 100'000);
  const int64_t rows = v->size({"position_embedding_size"}, kMaxPositions);
  const std::string root = "model.vision_tower";
  {
    TensorList t = a.once(Part::vision);
    const std::string e = root + ".patch_embedder";
    vision_linear(t, e, "input_proj", h, checked_mul(3, checked_mul(patch, patch)), false);
    t.add(e + ".position_embedding_table", e, {2, rows, h}, kVision);
    if (v->flag({"standardize"}, false)) {
      t.add(root + ".std_bias", root, {h}, kVision).learned = false;
      t.add(root + ".std_scale", root, {h}, kVision).learned = false;
    }
    projector_linear(t, "model.embed_vision", "embedding_projection", a.model().hidden, h, false);
  }
  a.tower(Part::vision, 0, v->layers(), [&](TensorList t) {
    const std::string layer = root + ".encoder.layers.{layer}";
    for (const char* leaf :
         {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
      t.norm(layer, leaf, h, NormKind::rmsnorm, false);
    }
    const std::string attention = layer + ".self_attn";
    vision_linear(t, attention, "q_proj", checked_mul(heads, d), h, false);
    vision_linear(t, attention, "k_proj", checked_mul(kv, d), h, false);
    vision_linear(t, attention, "v_proj", checked_mul(kv, d), h, false);
    vision_linear(t, attention, "o_proj", h, checked_mul(heads, d), false);
    t.norm(attention, "q_norm", d, NormKind::rmsnorm, false);
    t.norm(attention, "k_norm", d, NormKind::rmsnorm, false);
    vision_linear(t, layer + ".mlp", "gate_proj", ffn, h, false);
    vision_linear(t, layer + ".mlp", "up_proj", ffn, h, false);
    vision_linear(t, layer + ".mlp", "down_proj", h, ffn, false);
  });
  if (r.root().has({"audio_config"})) r.assume("model.assume.audio_uncounted");
}

void llama4_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r);
  if (!v) return;
  const Clip c = clip_of(*v);
  const int64_t in = v->size_or({"projector_input_dim"}, 4096);
  const int64_t mid = v->size_or({"projector_output_dim"}, 4096);
  const int64_t out = v->size_or({"vision_output_dim"}, mid);
  const std::string root = "vision_model";
  {
    TensorList t = a.once(Part::vision);
    vision_linear(t, root + ".patch_embedding", "linear", c.hidden,
                  checked_mul(c.channels, checked_mul(c.patch, c.patch)), false);
    t.add(root + ".class_embedding", root, {c.hidden}, kVision);
    t.add(root + ".positional_embedding_vlm", root, {checked_add(patches(c.image, c.patch, v->fields()), 1), c.hidden},
          kVision);
    vision_norm(t, root, "layernorm_pre", c.hidden, true);
    vision_norm(t, root, "layernorm_post", c.hidden, true);
    projector_linear(t, root + ".vision_adapter.mlp", "fc1", in, c.ffn, false);
    projector_linear(t, root + ".vision_adapter.mlp", "fc2", mid, in, false);
    projector_linear(t, "multi_modal_projector", "linear_1", a.model().hidden, out, false);
  }
  a.tower(Part::vision, 0, c.layers, [&](TensorList t) {
    const std::string layer = root + ".model.layers.{layer}";
    for (const char* leaf : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      vision_linear(t, layer + ".self_attn", leaf, c.hidden, c.hidden, true);
    }
    vision_linear(t, layer + ".mlp", "fc1", c.ffn, c.hidden, true);
    vision_linear(t, layer + ".mlp", "fc2", c.hidden, c.ffn, true);
    vision_norm(t, layer, "input_layernorm", c.hidden, true);
    vision_norm(t, layer, "post_attention_layernorm", c.hidden, true);
  });
}

void llava_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r);
  if (!v) return;
  const Clip c = clip_of(*v);
  const std::string type = v->fields().string_or({"model_type"}, "clip_vision_model");
  if (type == "siglip_vision_model") {
    siglip_tower(a, "vision_tower.vision_model", c, v->fields());
  } else {
    clip_tower(a, "vision_tower.vision_model", c, v->fields());
  }
  const int64_t h = a.model().hidden;
  TensorList t = a.once(Part::vision);
  projector_linear(t, "multi_modal_projector", "linear_1", h, c.hidden, true);
  projector_linear(t, "multi_modal_projector", "linear_2", h, h, true);
  if (r.root().string_or({"model_type"}, "") == "llava_next") t.add("image_newline", "", {h}, Role::projector);
}

void phi3_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r, {"img_processor"});
  if (!v) return;
  // The processor names a published tower, CLIP-L/14 at 336 pixels, whose sizes are that model's.
  const Clip c;
  const std::string root = "model.vision_embed_tokens";
  clip_tower(a, root + ".img_processor.vision_model", c, v->fields());
  const int64_t h = a.model().hidden;
  // The high-resolution transform joins 2 x 2 patches.
  const int64_t in = checked_mul(4, v->size_or({"image_dim_out"}, c.hidden));
  TensorList t = a.once(Part::vision);
  t.add(root + ".glb_GN", root, {1, 1, in}, Role::projector);
  t.add(root + ".sub_GN", root, {1, 1, 1, in}, Role::projector);
  projector_linear(t, root + ".img_projection", "0", h, in, true);
  projector_linear(t, root + ".img_projection", "2", h, h, true);
}

void pixtral_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r);
  if (!v) return;
  const int64_t h = v->size({"hidden_size"});
  const int64_t ffn = v->size({"intermediate_size"});
  const int64_t heads = v->size({"num_attention_heads"});
  const int64_t inner = checked_mul(heads, v->size_or({"head_dim"}, std::max<int64_t>(1, h / heads)));
  const int64_t patch = v->size({"patch_size"}, 100'000);
  const int64_t channels = v->size_or({"num_channels"}, 3, 1000);
  const int64_t merge = r.root().integer_or({"spatial_merge_size"}, 2, {1, 1000});
  const bool bias = r.root().boolean_or({"multimodal_projector_bias"}, false);
  const std::string root = "vision_tower";
  {
    TensorList t = a.once(Part::vision);
    t.add(root + ".patch_conv.weight", root, {h, channels, patch, patch}, kVision);
    t.norm(root, "ln_pre", h, NormKind::rmsnorm, false);
    const std::string p = "multi_modal_projector";
    const int64_t out = a.model().hidden;
    t.norm(p, "norm", h, NormKind::rmsnorm, false);
    projector_linear(t, p + ".patch_merger", "merging_layer", h, checked_mul(h, checked_mul(merge, merge)), false);
    projector_linear(t, p, "linear_1", out, h, bias);
    projector_linear(t, p, "linear_2", out, out, bias);
  }
  a.tower(Part::vision, 0, v->layers(), [&](TensorList t) {
    const std::string layer = root + ".transformer.layers.{layer}";
    for (const char* leaf : {"q_proj", "k_proj", "v_proj"})
      vision_linear(t, layer + ".attention", leaf, inner, h, false);
    vision_linear(t, layer + ".attention", "o_proj", h, inner, false);
    t.norm(layer, "attention_norm", h, NormKind::rmsnorm, false);
    t.norm(layer, "ffn_norm", h, NormKind::rmsnorm, false);
    vision_linear(t, layer + ".feed_forward", "gate_proj", ffn, h, false);
    vision_linear(t, layer + ".feed_forward", "up_proj", ffn, h, false);
    vision_linear(t, layer + ".feed_forward", "down_proj", h, ffn, false);
  });
}

void kimi_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r);
  if (!v) return;
  const int64_t h = v->size({"vt_hidden_size", "hidden_size"});
  const int64_t ffn = v->size({"vt_intermediate_size", "intermediate_size"});
  const int64_t inner = v->size_or({"qkv_hidden_size"}, h);
  const int64_t patch = v->size_or({"patch_size"}, 14, 100'000);
  const bool rms = v->fields().string_or({"norm_type"}, "layernorm") == "rmsnorm";
  const bool attention_bias = v->flag({"attn_bias"}, true);
  const bool linear_bias = v->flag({"linear_bias"}, true);
  const NormKind norm = rms ? NormKind::rmsnorm : NormKind::layernorm;
  const std::string root = "vision_tower";
  {
    TensorList t = a.once(Part::vision);
    const std::string e = root + ".patch_embed";
    t.add(e + ".proj.weight", e, {h, 3, patch, patch}, kVision);
    if (v->flag({"patch_embed_proj_bias"}, true)) t.add(e + ".proj.bias", e, {h}, kVision);
    t.add(e + ".pos_emb.weight", e,
          {v->size_or({"init_pos_emb_height"}, 64), v->size_or({"init_pos_emb_width"}, 64), h}, kVision);
    t.norm(root + ".encoder", "final_layernorm", h, norm, !rms);
    const int64_t merged = checked_mul(4, h);
    const std::string p = "mm_projector";
    t.norm(p, "pre_norm", h, norm, !rms);
    projector_linear(t, p, "proj.0", merged, merged, true);
    projector_linear(t, p, "proj.2", a.model().hidden, merged, true);
  }
  if (v->fields().string_or({"mm_projector_type"}, "patchmerger") != "patchmerger") {
    r.assume("model.assume.patch_merger");
  }
  a.tower(Part::vision, 0, v->layers(), [&](TensorList t) {
    const std::string block = root + ".encoder.blocks.{layer}";
    t.norm(block, "norm0", h, norm, !rms);
    t.norm(block, "norm1", h, norm, !rms);
    vision_linear(t, block, "wqkv", checked_mul(3, inner), h, attention_bias);
    vision_linear(t, block, "wo", h, inner, attention_bias);
    vision_linear(t, block + ".mlp", "fc0", ffn, h, linear_bias);
    vision_linear(t, block + ".mlp", "fc1", h, ffn, linear_bias);
  });
}

void internvl_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r);
  if (!v) return;
  const Clip c = clip_of(*v);
  const bool rms = v->fields().string_or({"norm_type"}, "layer_norm") == "rms_norm";
  const NormKind norm = rms ? NormKind::rmsnorm : NormKind::layernorm;
  const bool qkv_bias = v->flag({"qkv_bias"}, true);
  const bool qk_norm = v->flag({"qk_normalization"}, false);
  const std::string root = "vision_model";
  {
    TensorList t = a.once(Part::vision);
    const std::string e = root + ".embeddings";
    t.add(e + ".class_embedding", e, {1, 1, c.hidden}, kVision);
    t.add(e + ".patch_embedding.weight", e, {c.hidden, c.channels, c.patch, c.patch}, kVision);
    t.add(e + ".patch_embedding.bias", e, {c.hidden}, kVision);
    t.add(e + ".position_embedding", e, {1, checked_add(patches(c.image, c.patch, v->fields()), 1), c.hidden}, kVision);
    const int64_t h = a.model().hidden;
    // Pixel shuffle joins 2 x 2 patches (downsample_ratio 0.5).
    const int64_t merged = checked_mul(4, c.hidden);
    vision_norm(t, "mlp1", "0", merged, true);
    projector_linear(t, "mlp1", "1", h, merged, true);
    projector_linear(t, "mlp1", "3", h, h, true);
  }
  a.tower(Part::vision, 0, c.layers, [&](TensorList t) {
    const std::string layer = root + ".encoder.layers.{layer}";
    vision_linear(t, layer + ".attn", "qkv", checked_mul(3, c.hidden), c.hidden, qkv_bias);
    vision_linear(t, layer + ".attn", "proj", c.hidden, c.hidden, true);
    if (qk_norm) {
      t.norm(layer + ".attn", "q_norm", c.hidden, NormKind::rmsnorm, false);
      t.norm(layer + ".attn", "k_norm", c.hidden, NormKind::rmsnorm, false);
    }
    vision_linear(t, layer + ".mlp", "fc1", c.ffn, c.hidden, true);
    vision_linear(t, layer + ".mlp", "fc2", c.hidden, c.ffn, true);
    t.norm(layer, "norm1", c.hidden, norm, !rms);
    t.norm(layer, "norm2", c.hidden, norm, !rms);
    t.add(layer + ".ls1", layer, {c.hidden}, kVision);
    t.add(layer + ".ls2", layer, {c.hidden}, kVision);
  });
}

Decoder mllama(const Reader& r) {
  const Sizes s = r.sizes();
  LayerKind k;
  k.attention = r.attention(s);
  k.mlp = r.gated(s);
  r.dropouts(k);
  std::vector<bool> crosses(static_cast<size_t>(s.layers), false);
  for (int64_t i : r.text().integers({"cross_attention_layers"}, {0, kMaxLayers}).value_or(std::vector<int64_t>())) {
    if (i < s.layers) crosses[static_cast<size_t>(i)] = true;
  }
  Decoder d = r.decoder(s);
  d.layer = [=](int64_t i) {
    Layer layer{k, 0};
    if (crosses[static_cast<size_t>(i)]) {
      // Keys and values of the image, computed once a request: no cache entry per text token.
      layer.kind.attention.cross = true;
      layer.kind.attention.shares_kv = true;
      layer.kind.attention.qk_norm = Attention::QkNorm::per_head;
      layer.variant = 1;
    }
    return layer;
  };
  d.mixer = [style = d.style, hidden = s.hidden](TensorList& t, const Layer& layer, const std::string& prefix) {
    Style names = style;
    if (layer.variant == 1) names.attention = "cross_attn";
    attention_tensors(t, prefix, layer.kind.attention, names, hidden);
    if (layer.variant == 1) {
      t.add(dotted(prefix, "cross_attn_attn_gate"), prefix, {1}, Role::attention_other);
      t.add(dotted(prefix, "cross_attn_mlp_gate"), prefix, {1}, Role::other);
    }
    return true;
  };
  // Eight more rows of the input embedding stand for image tokens.
  d.outer = [hidden = s.hidden](TensorList& t, const std::string& root) {
    t.add(dotted(root, "embed_tokens.image_rows"), dotted(root, "embed_tokens"), {8, hidden}, Role::embedding);
  };
  return d;
}

void mllama_vision(const Reader& r, Assembly& a) {
  const auto v = Tower::of(r);
  if (!v) return;
  const Clip c = clip_of(*v);
  const int64_t global = v->size_or({"num_global_layers"}, 8, kMaxLayers);
  const int64_t tiles = v->size_or({"max_num_tiles"}, 4, 1000);
  const int64_t ratios = checked_add(v->size_or({"max_aspect_ratio_id"}, 8, 100'000), 1);
  const int64_t out = v->size_or({"vision_output_dim"}, 7680);
  const int64_t positions = checked_add(patches(c.image, c.patch, v->fields()), 1);
  const std::string root = "vision_model";
  {
    TensorList t = a.once(Part::vision);
    t.add(root + ".patch_embedding.weight", root, {c.hidden, c.channels, c.patch, c.patch}, kVision);
    t.add(root + ".class_embedding", root, {c.hidden}, kVision);
    const std::string p = root + ".gated_positional_embedding";
    t.add(p + ".gate", p, {1}, kVision);
    t.add(p + ".embedding", p, {positions, c.hidden}, kVision);
    t.table(p, "tile_embedding", ratios, checked_mul(tiles, checked_mul(positions, c.hidden)), kVision,
            Shard::replicated);
    for (const char* leaf : {"pre_tile_positional_embedding", "post_tile_positional_embedding"}) {
      const std::string m = root + "." + leaf;
      t.add(m + ".gate", m, {1}, kVision);
      t.table(m, "embedding", ratios, checked_mul(tiles, c.hidden), kVision, Shard::replicated);
    }
    vision_norm(t, root, "layernorm_pre", c.hidden, true);
    vision_norm(t, root, "layernorm_post", c.hidden, true);
    projector_linear(t, "", "multi_modal_projector", a.model().hidden, out, true);
  }
  const auto layer = [&](TensorList& t, const std::string& name, bool gated) {
    for (const char* leaf : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      vision_linear(t, name + ".self_attn", leaf, c.hidden, c.hidden, false);
    }
    vision_linear(t, name + ".mlp", "fc1", c.ffn, c.hidden, true);
    vision_linear(t, name + ".mlp", "fc2", c.hidden, c.ffn, true);
    vision_norm(t, name, "input_layernorm", c.hidden, true);
    vision_norm(t, name, "post_attention_layernorm", c.hidden, true);
    if (gated) {
      t.add(name + ".gate_attn", name, {1}, kVision);
      t.add(name + ".gate_ffn", name, {1}, kVision);
    }
  };
  a.tower(Part::vision, 0, c.layers, [&](TensorList t) { layer(t, root + ".transformer.layers.{layer}", false); });
  a.tower(Part::vision, 0, global, [&](TensorList t) { layer(t, root + ".global_transformer.layers.{layer}", true); });
}

void molmo_vision(const Reader& r, Assembly& a) {
  // The config does not describe the tower: CLIP-L/14 at 336 pixels without its last layer, features of two layers
  // pooled by attention over 2 x 2 patches.
  const Clip c;
  const int64_t h = a.model().hidden;
  const int64_t ffn = r.ffn() / 2;
  const std::string root = "model.vision_backbone";
  {
    TensorList t = a.once(Part::vision);
    const std::string vit = root + ".image_vit";
    t.add(vit + ".class_embedding", vit, {c.hidden}, kVision);
    t.add(vit + ".positional_embedding", vit, {577, c.hidden}, kVision);
    vision_linear(t, vit, "patch_embedding", c.hidden, 588, false);
    vision_norm(t, vit, "pre_ln", c.hidden, true);
    t.add(root + ".pad_embed", root, {2, 2 * c.hidden}, kVision);
    const std::string pool = root + ".image_pooling_2d";
    for (const char* leaf : {"wq", "wk", "wv"}) projector_linear(t, pool, leaf, c.hidden, 2 * c.hidden, true);
    projector_linear(t, pool, "wo", c.hidden, c.hidden, true);
    const std::string p = root + ".image_projector";
    projector_linear(t, p, "w1", ffn, c.hidden, false);
    projector_linear(t, p, "w3", ffn, c.hidden, false);
    projector_linear(t, p, "w2", h, ffn, false);
  }
  r.assume("model.assume.clip_tower");
  a.tower(Part::vision, 0, c.layers - 1, [&](TensorList t) {
    const std::string block = root + ".image_vit.transformer.resblocks.{layer}";
    for (const char* leaf : {"wq", "wk", "wv", "wo"})
      vision_linear(t, block + ".attention", leaf, c.hidden, c.hidden, true);
    vision_linear(t, block + ".feed_forward", "w1", c.ffn, c.hidden, true);
    vision_linear(t, block + ".feed_forward", "w2", c.hidden, c.ffn, true);
    vision_norm(t, block, "attention_norm", c.hidden, true);
    vision_norm(t, block, "ffn_norm", c.hidden, true);
  });
}

void uncounted_vision(const Reader& r, Assembly&) {
  if (r.root().has({"vision_config"})) r.assume("model.assume.tower_uncounted");
}

}  // namespace vram::arch
