#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/job.h"
#include "ledger/program.h"
#include "machine/machine.h"
#include "model/model.h"
#include "serving/parallel.h"
#include "serving/remark.h"
#include "serving/rules.h"

namespace vram {

/// How the numbers of a KV cache are kept.
struct KvFormat {
  std::string name;   ///< "bf16", "fp8", "int4", ...
  int64_t bits = 16;  ///< of one number
  Constant scale;     ///< bytes beside one K or V vector of a head; 0 for unscaled formats
};

/// What is kept free of weights and KV cache.
enum class Reserve : uint8_t {
  modelled,       ///< context, libraries, graphs and the working set of a forward pass, from the shapes
  rule_of_thumb,  ///< a share of the weights, for models whose shapes are unknown
  per_card,       ///< as the job says
  total,          ///< as the job says, spread evenly over the cards
  ratio,          ///< the share of the weights that the job names
  nothing         ///< textbook mode without a reserve
};
std::string_view reserve_name(Reserve reserve);

/// A share in parts of `of`, both whole, so that budgets stay integers: 0.9 is 9 of 10.
struct Share {
  int64_t part = 1;
  int64_t of = 1;
};
Share share_of(double ratio);

/// A serving job with every choice made. Pure data; the functions of this room compute from it.
struct ServePlan {
  std::shared_ptr<const Model> model;  ///< with its weights as they are served
  ServingRules rules;
  Parallel parallel;
  int64_t cards = 1;
  int64_t cards_per_node = 1;
  bool textbook = false;         ///< well-known formulas: memory pooled over a replica, no blocks, windows or padding
  std::string weights_dtype;     ///< as served: "checkpoint" or the scheme
  bool weights_by_table = true;  ///< false: by size, `given_weights` or parameters times bytes
  std::optional<Bytes> given_weights;
  int64_t parameters = 0;  ///< of the model, or as the job says
  KvFormat kv;
  bool kv_known = true;  ///< false: no shapes, so no KV cache can be computed
  Reserve reserve = Reserve::modelled;
  Bytes reserve_bytes = 0;           ///< of Reserve::per_card and total
  Share reserve_share;               ///< of Reserve::ratio
  std::optional<Share> utilization;  ///< gpu_memory_utilization
  Constant context;                  ///< tokens of one request, prompt and output
  Constant block;                    ///< tokens of one KV block
  std::optional<int64_t> asked;      ///< requests asked for
  std::vector<Remark> remarks;       ///< what was assumed, for the reader

  /// Cards whose memory is counted as one: a whole replica in textbook mode, else 1.
  int64_t pooled() const { return textbook ? parallel.replica() : 1; }
  /// Classes of ranks; one, of pooled cards, in textbook mode.
  std::vector<RankClass> ranks() const;
};

/// Makes every choice of `job`. Where the job leaves the parallelism open: with a concurrency, the smallest replica
/// that carries it (tensor parallel first); without, the smallest that carries nearly as many as the best
/// (rules.spread_permille). Replicas fill the machine. InputError for what contradicts itself or the model.
ServePlan resolve(const Model& model, const Machine& machine, const Job& job, const ServingRules& rules);

/// Everything that one rank of the class holds while `requests` requests of plan.context tokens run: a program whose
/// peak is the account.
template <Number N>
Program<N> rank_program(const ServePlan& plan, const RankClass& rank, int64_t requests);

}  // namespace vram
