#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/resolve.h"
#include "api/train.h"
#include "base/document.h"
#include "base/error.h"
#include "tiers/checkpoint.h"
#include "tiers/levels.h"
#include "tiers/offload.h"

namespace vram {

/// Something that may leave the card, and whether moving it hides behind the step.
struct OffloadCase {
  std::string id;                        ///< "optimizer", "parameters", "optimizer_disk"
  bool asked = false;                    ///< the job names it in `offload`
  OffloadLoad load;                      ///< of one card and step
  OffloadBound bound;                    ///< at the specified link rate
  std::optional<OffloadBound> measured;  ///< at the measured low end of the link, where it was measured
  Bytes host_bytes_per_card = 0;
  std::optional<bool> host_fits;  ///< absent where the host's memory is not known
  Bytes device_bytes = 0;         ///< peak of a card with it
  bool device_fits = false;
};

/// What a checkpoint may hold.
struct CheckpointKind {
  std::string id;  ///< "training" (weights and optimizer), "optimizer" (fp32 copy and moments), "weights", "resident"
  double bytes_per_parameter = 0;
  Bytes bytes = 0;
};

/// Saving to one place.
struct SaveTo {
  std::string id, name;  ///< of a store or disk; empty for rates that the job gave
  std::string kind;
  Span write, read;         ///< bytes a second of the whole job
  bool link_bound = false;  ///< the store could take more than the cards' links carry
  std::optional<double> write_seconds, write_seconds_low, write_seconds_high;  ///< of the checkpoint
  std::optional<double> read_seconds;
  std::optional<SaveInterval> interval;
  Basis basis = Basis::assumed;
  std::string source;
};

struct CheckpointAnswer {
  std::optional<Bytes> bytes;  ///< absent: neither given nor a model
  bool given = false;
  std::vector<CheckpointKind> kinds;       ///< of the model
  std::optional<Bytes> bytes_per_node;     ///< what a node stages in host memory before it writes in the background
  std::optional<double> snapshot_seconds;  ///< card to host, all cards at once: what such a save stands still for
  std::optional<double> mtbf;              ///< of the job
  bool mtbf_assumed = false;
  double restart = 0;
  bool restart_assumed = true;
  std::optional<SaveTo> chosen;  ///< by --store, --write, --read
  std::vector<SaveTo> stores;    ///< every known one
};

struct DatasetAnswer {
  double tokens = 0;
  double bytes_2 = 0, bytes_4 = 0;               ///< at 2 and at 4 bytes a token
  std::optional<double> tokens_per_second;       ///< of the job
  std::optional<double> store_bytes_per_second;  ///< of the chosen store, reads
};

/// Where data may live and what moving them costs.
struct TiersAnswer {
  std::optional<Machine> machine;
  std::optional<TrainAnswer> training;  ///< absent without a model
  std::vector<std::string> layout;      ///< options that were chosen because the job left them open
  std::vector<Level> levels;            ///< empty without a machine
  std::vector<OffloadCase> offload;     ///< empty without a model, a machine or a link
  CheckpointAnswer checkpoint;
  std::optional<DatasetAnswer> dataset;

  /// No: an offload that the job asks for does not fit or does not hide.
  Exit exit() const;
};

/// Answers what the job's fields allow: levels with a machine; checkpoints with a size or a model; data with tokens.
/// InputError as `train`, and for stores that nobody knows.
TiersAnswer answer_tiers(const Job& job, const Knowledge& knowledge);

Document to_json(const TiersAnswer& answer);

}  // namespace vram
