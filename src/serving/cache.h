#pragma once

#include <vector>

#include "ledger/number.h"
#include "serving/plan.h"

namespace vram {

/// Equal caches of one stage: those of `layers` layers with this attention.
struct CacheKind {
  const Attention* attention = nullptr;
  int64_t layers = 0;
  bool cross = false;  ///< K and V of the encoder's output
};
/// The caches of the layers of a stage, in order of first use. Encoder layers, layers that share another's cache, and
/// layers without a sequence mixer have none.
std::vector<CacheKind> cache_kinds(const Model& model, const Stage& stage);

/// Whether any layer decodes.
bool has_decoder(const Model& model);

/// Whether the layers keep one state a sequence rather than something a token.
bool is_recurrent(AttentionKind kind);

/// What grows with the tokens of one request on one rank, in all layers of the kind. A kind has one or two parts: K and
/// V (or the latent, with the sparse index), and compressed entries besides a window.
template <Number N>
struct CachePart {
  const CacheKind* kind = nullptr;
  bool compressed = false;
  N per_token{0};       ///< bytes a kept entry
  int64_t cap = 0;      ///< entries kept at most (window); 0: all
  int64_t every = 1;    ///< tokens of one entry
  bool spills = false;  ///< a moving window touches one more block than its length
};
template <Number N>
std::vector<CachePart<N>> cache_parts(const ServePlan& plan, const CacheKind& kind);

/// Entries that a request of `context` tokens occupies, in whole blocks.
template <Number N>
N cache_entries(const ServePlan& plan, const CachePart<N>& part, int64_t context);
/// The same, for the closed form.
inline int64_t cache_entries(int64_t cap, int64_t every, bool spills, int64_t block, int64_t context) {
  const int64_t entries = every == 1 ? context : ceil_div(context, every);
  const int64_t whole = round_up(entries, block);
  if (cap == 0 || entries <= cap) return whole;
  // With blocks of one token a window lies in exactly its length; a request never takes more than its own tokens.
  const int64_t most = round_up(cap, block) + (spills && block > 1 ? block : 0);
  return whole < most ? whole : most;
}

/// Bytes of one request's recurrent and convolution states on one rank, in all layers of the kind.
template <Number N>
N state_bytes(const ServePlan& plan, const CacheKind& kind);

}  // namespace vram
