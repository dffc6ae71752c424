#include "serving/cache.h"

namespace vram {

bool has_decoder(const Model& model) {
  for (const LayerKind& kind : model.kinds) {
    if (!kind.encoder) return true;
  }
  return false;
}

bool is_recurrent(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::linear:
    case AttentionKind::mamba1:
    case AttentionKind::mamba2:
    case AttentionKind::convolution:
    case AttentionKind::rwkv:
      return true;
    default:
      return false;
  }
}

std::vector<CacheKind> cache_kinds(const Model& model, const Stage& stage) {
  std::vector<CacheKind> out;
  const auto add = [&](const Attention& a, bool cross) {
    for (CacheKind& kind : out) {
      if (kind.cross == cross && (kind.attention == &a || *kind.attention == a)) {
        ++kind.layers;
        return;
      }
    }
    out.push_back({&a, 1, cross});
  };
  for (int64_t i = stage.first; i < stage.end; ++i) {
    const LayerKind& layer = model.layer(i);
    const Attention& a = layer.attention;
    if (layer.encoder || a.kind == AttentionKind::none) continue;
    if (!a.shares_kv) add(a, false);
    if (a.cross) add(a, true);
  }
  return out;
}

namespace {

// One K or V vector of a head, with its scale.
template <Number N>
N vector_bytes(const KvFormat& kv, N d) {
  const N numbers = kv.bits % 8 == 0 ? d * N::symbol("b", kv.bits / 8) : ceil_div(d * N(kv.bits), N(8));
  if (kv.scale.value == 0 && kv.scale.high == 0) return numbers;
  return numbers + N::constant(kv.scale);
}

template <Number N>
N heads_on_rank(const ServePlan& plan, int64_t heads) {
  const N n = N::symbol("n_kv", heads);
  return plan.textbook ? n : ceil_div(n, N::symbol("tp", plan.parallel.tensor));
}

}  // namespace

template <Number N>
std::vector<CachePart<N>> cache_parts(const ServePlan& plan, const CacheKind& kind) {
  const Attention& a = *kind.attention;
  if (is_recurrent(a.kind)) return {};
  const N layers = N::symbol("L", kind.layers);
  const int64_t value_dim = a.value_head_dim > 0 ? a.value_head_dim : a.head_dim;
  CachePart<N> part{.kind = &kind};
  if (a.kind == AttentionKind::mla && !kind.cross) {
    // One latent serves all heads: every tensor-parallel rank keeps it.
    const N latent = N::symbol("r_kv", a.kv_lora_rank) + N::symbol("r_rope", a.rope_head_dim);
    part.per_token = layers * vector_bytes(plan.kv, latent);
  } else if (a.shared_key_value) {
    part.per_token = layers * heads_on_rank<N>(plan, a.kv_heads) * vector_bytes(plan.kv, N::symbol("d", a.head_dim));
  } else if (value_dim == a.head_dim) {
    part.per_token =
        N(2) * layers * heads_on_rank<N>(plan, a.kv_heads) * vector_bytes(plan.kv, N::symbol("d", a.head_dim));
  } else {
    part.per_token =
        layers * heads_on_rank<N>(plan, a.kv_heads) *
        (vector_bytes(plan.kv, N::symbol("d_k", a.head_dim)) + vector_bytes(plan.kv, N::symbol("d_v", value_dim)));
  }
  // The index of sparse attention is one 8-bit vector for all heads with a scale per group.
  const auto index = [&] {
    const N d = N::symbol("d_index", a.index_head_dim);
    return layers *
           (d + ceil_div(d, N::constant(plan.rules.index_scale_elements)) * N::constant(plan.rules.index_scale_bytes));
  };
  const bool indexed = a.index_head_dim > 0 && !kind.cross;
  if (indexed && a.compress_ratio == 0) part.per_token = part.per_token + index();
  if (!plan.textbook && !kind.cross && a.window > 0) {
    part.cap = a.window;
    part.spills = a.kind == AttentionKind::sliding;
  }
  std::vector<CachePart<N>> out = {part};
  if (a.compress_ratio > 0 && !kind.cross && !plan.textbook) {
    CachePart<N> compressed{.kind = &kind, .compressed = true, .every = a.compress_ratio};
    compressed.per_token = layers * vector_bytes(plan.kv, N::symbol("d", a.head_dim));
    if (indexed) compressed.per_token = compressed.per_token + index();
    out.push_back(compressed);
  }
  return out;
}

template <Number N>
N cache_entries(const ServePlan& plan, const CachePart<N>& part, int64_t context) {
  N entries = N::symbol("s", context);
  if (part.every > 1) entries = ceil_div(entries, N::symbol("ratio", part.every));
  const int64_t size = plan.block.value;
  // A window that spills into one block more may still hold no more than the whole request.
  const bool spills = part.spills && size > 1 && round_up(entries.value(), size) >= round_up(part.cap, size) + size;
  const bool capped = part.cap > 0 && entries.value() > part.cap && (spills || !part.spills || size == 1);
  if (capped) entries = N::symbol("window", part.cap);
  if (plan.block.value == 1) return entries;
  // Rounding that changes nothing is left out of the formula; the block's own range is tried by the list of
  // assumptions.
  const N block = N::symbol("block", plan.block.value);
  if (capped && spills) return (ceil_div(entries, block) + N(1)) * block;
  if (entries.value() % plan.block.value == 0) return entries;
  return ceil_div(entries, block) * block;
}

template <Number N>
N state_bytes(const ServePlan& plan, const CacheKind& kind) {
  const Attention& a = *kind.attention;
  if (!is_recurrent(a.kind) || plan.textbook) return N(0);
  const N tp = N::symbol("tp", plan.parallel.tensor);
  N bytes(0);
  if (a.state_elements > 0) {
    bytes = bytes + ceil_div(N::symbol("state", a.state_elements), tp) * N::constant(plan.rules.state_bytes);
  }
  if (a.conv_elements > 0) {
    bytes = bytes + ceil_div(N::symbol("conv", a.conv_elements), tp) * N::constant(plan.rules.conv_bytes);
  }
  return N::symbol("L", kind.layers) * bytes;
}

template std::vector<CachePart<Fast>> cache_parts<Fast>(const ServePlan&, const CacheKind&);
template std::vector<CachePart<Traced>> cache_parts<Traced>(const ServePlan&, const CacheKind&);
template Fast cache_entries<Fast>(const ServePlan&, const CachePart<Fast>&, int64_t);
template Traced cache_entries<Traced>(const ServePlan&, const CachePart<Traced>&, int64_t);
template Fast state_bytes<Fast>(const ServePlan&, const CacheKind&);
template Traced state_bytes<Traced>(const ServePlan&, const CacheKind&);

}  // namespace vram
