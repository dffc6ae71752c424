#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/resolve.h"
#include "base/document.h"
#include "ledger/ledger.h"
#include "training/cost.h"
#include "training/plan.h"

namespace vram {

/// Bytes of the model states per card, on whichever tier they live.
struct StateBytes {
  Bytes weights = 0, gradients = 0, optimizer = 0, adapters = 0;
  Bytes total() const { return weights + gradients + optimizer + adapters; }
};

/// What changes if an assumption is made otherwise.
struct Effect {
  std::string field;  ///< job field that decides it, or a data row's id
  std::string current;
  std::string alternative;
  Bytes delta = 0;  ///< of the peak on the fullest rank
};

/// "--recompute none (full: -12.3 GiB)".
std::string effect_text(Lang lang, const Effect& effect);

/// One line of the account on a whiteboard.
struct WorkedStep {
  Note title;
  std::string expression;  ///< of one instance: "12·P / N = 12·8,030,261,248 / 8 = ..."
  int64_t count = 1;       ///< instances
  Bytes bytes = 0;
  std::optional<Bytes> textbook;  ///< what the well-known formula gives for this line
  std::optional<Note> why;        ///< why they differ
};

struct TrainAnswer {
  Model model;
  std::optional<Machine> machine;  ///< absent: no --on
  Plan plan;
  std::optional<Bytes> usable;       ///< per card
  std::vector<Bytes> peaks;          ///< device bytes at the peak, by pipeline rank
  std::vector<Ledger> rank_ledgers;  ///< what is alive at each of these peaks (without formulas)
  int64_t worst = 0;                 ///< rank with the highest peak
  Ledger device, host;  ///< with formulas; device: of that rank; host: per card of the rank that keeps most there
  Bytes host_all = 0;   ///< host bytes over all cards
  std::vector<double> timeline;  ///< device bytes over the step of that rank, the highest of each of at most 64 spans
  StateBytes states;             ///< of that rank
  StateBytes states_all;         ///< of one whole replica: Ψ times the bytes a parameter
  int64_t parameters_on_rank = 0;
  std::optional<Bytes> host_needed, host_available;  ///< per node
  std::optional<int64_t> cards_for_states;           ///< cards whose memory holds the states alone
  TrainingFlops flops;
  double tokens_per_step = 0;
  std::optional<double> tokens;
  std::optional<TrainingTime> time;
  bool mfu_assumed = false;
  Traffic traffic;
  std::optional<OffloadTime> offload;
  std::vector<Effect> movers;  ///< largest first
  std::vector<WorkedStep> steps;
  std::vector<Note> assumptions;

  bool fits() const { return !usable || (device.bytes <= *usable && host_fits()); }
  bool host_fits() const { return !host_needed || !host_available || *host_needed <= *host_available; }
  /// The range that measured and assumed data rows leave open straddles the card's memory.
  bool doubtful() const { return usable && device.low <= *usable && device.high > *usable; }
};

TrainAnswer answer_train(const Job& job, const Knowledge& knowledge);
/// For callers that hold the parts already (fit).
TrainAnswer answer_train(Model model, std::optional<Machine> machine, const Job& job, const Knowledge& knowledge);

/// Only the numbers a search needs: the highest device peak over the ranks, and host bytes per card.
struct TrainPeak {
  Bytes device = 0, host = 0;
};
TrainPeak train_peak(const Model& model, const Machine* machine, const Job& job, const Rules& rules,
                     const Constants& constants);

Document to_json(const TrainAnswer& answer);
/// A ledger as JSON: lines with formulas, sums by category, and the trees by module and life.
Document to_json(const Ledger& ledger);
/// The moment of a peak as a list of {name, round, rounds}.
Document to_json(const std::vector<Instant>& when);
Document to_json(const Note& note);

}  // namespace vram
