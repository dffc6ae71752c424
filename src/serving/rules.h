#pragma once

#include <array>
#include <vector>

#include "catalog/constant.h"
#include "machine/machine.h"

namespace vram {

/// The data rows that the account of a service rests on. Without an engine they describe a paged engine with the
/// published defaults of vLLM; all of them may be overridden by the user's own rows.
struct ServingRules {
  Constant usable_bytes;          ///< of one card, as a process sees it: the range over drivers
  Constant context_tokens;        ///< of one request where the job says nothing
  Constant block_tokens;          ///< of one KV block
  Constant context_bytes;         ///< CUDA context of a rank
  Constant alone_bytes;           ///< libraries outside the allocator of a rank without tensor parallelism
  Constant pair_bytes;            ///< the same with two tensor-parallel ranks, communicators included
  Constant group_bytes;           ///< the same with more
  Constant graph_bytes;           ///< captured graphs
  Constant batched_tokens;        ///< tokens of the largest forward pass
  Constant sequences;             ///< rows that one step samples at most
  Constant forward_ffn_permille;  ///< widths of the MLP that are alive in a forward pass, in thousandths
  Constant forward_hidden_permille;
  Constant sampler_bytes;                                ///< alive in sampling, per row and vocabulary entry
  Constant vocabulary_padding;                           ///< vocabulary rows are padded to a multiple of it
  Constant kv_scale_fp8, kv_scale_int8, kv_scale_int4;   ///< bytes beside one K or V vector
  Constant index_scale_bytes, index_scale_elements;      ///< of a sparse index, which is kept in 8 bits
  Constant state_bytes, conv_bytes;                      ///< of one number of a recurrent or convolution state
  Constant int4_group, int4_scale_bits, int4_zero_bits;  ///< of models known by their size alone
  Constant nf4_block, nf4_absmax_bits;
  Constant reserve_permille;  ///< rule of thumb: share of the weights
  Constant spread_permille;   ///< share of the best spread with which a smaller replica is preferred

  using Member = Constant ServingRules::*;
  /// The rows that are sizes; spread_permille decides a choice instead.
  static const std::vector<Member>& members();
};

/// Throws std::logic_error where a row is missing. A given `usable` replaces what the catalogue says of the card.
ServingRules serving_rules(const Constants& constants, const Machine& machine, const std::optional<Bytes>& usable);

}  // namespace vram
