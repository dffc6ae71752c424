#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/resolve.h"
#include "api/serve.h"
#include "api/train.h"
#include "base/document.h"

namespace vram {

/// One thing one may want to do with a model on some cards.
struct FitRow {
  std::string id;        ///< "serve_bf16", "qlora", "full_offload", ...
  bool possible = true;  ///< false: this model or machine has no such job (see how)
  bool fits = false;
  Bytes needed = 0;                     ///< per card, of the setting that `how` tells
  Bytes room = 0;                       ///< negative: what is missing
  Bytes host_per_node = 0;              ///< host memory that the setting takes
  bool host_lacks = false;              ///< the hosts have less than that
  std::vector<Note> how;                ///< the setting, one clause each
  std::string command;                  ///< the verb and options that show this setting's account
  Job job;                              ///< the same as a job: answering it gives the account of this row
  std::optional<int64_t> cards_needed;  ///< where it does not fit: the smallest number of such cards on which it does
  // serving
  int64_t concurrency = 0, context = 0, longest_context = 0, cards_used = 0;
  int64_t cards_enough = 0;  ///< of the smallest replica that holds one request; 0: not asked
};

struct FitAnswer {
  Model model;
  Machine machine;
  Bytes usable = 0;
  int64_t sequence = 0, micro_batch = 0;
  std::vector<FitRow> rows;
  std::vector<Effect> movers;  ///< of full fine-tuning's account
  std::vector<std::string> assumed(Lang lang) const;
  bool any() const;
};

/// What can be done with the job's model on its machine: serving in three precisions, adapters, fine-tuning with and
/// without offload, pre-training. Fields that the job sets are kept in every row.
FitAnswer answer_fit(const Job& job, const Knowledge& knowledge);

/// One row alone: id is "serve_" and a weights dtype ("serve_bf16"), or one of qlora, lora, full, full_offload and
/// pretrain. A setting that `base` names is kept. std::logic_error for other ids.
FitRow fit_row(const Model& model, const Machine& machine, const Job& base, std::string_view id,
               const Constants& constants);

/// The largest catalogue models for each task on a machine.
struct LargestRow {
  std::string id;  ///< as FitRow::id
  struct Entry {
    std::string model;
    int64_t parameters = 0;
    Bytes needed = 0;
  };
  std::vector<Entry> models;  ///< largest first
};
struct LargestAnswer {
  Machine machine;
  Bytes usable = 0;
  int64_t tried = 0;
  std::vector<LargestRow> rows;
};
LargestAnswer answer_largest(const Job& job, const Knowledge& knowledge);

/// The training job with what it leaves open of sharding, recompute and tensor and pipeline sizes set the least
/// intrusive way that fits, or the way that needs least memory where none fits. Nothing where no way is valid.
std::optional<Job> settled(const Model& model, const Machine& machine, const Job& job, const Constants& constants);

Document to_json(const FitAnswer& answer);
Document to_json(const LargestAnswer& answer);

}  // namespace vram
