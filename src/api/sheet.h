#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/resolve.h"
#include "api/serve.h"
#include "api/train.h"
#include "base/document.h"

namespace vram {

/// USD for the card-hours of a training run: at the job's price, or at both ends of the device's rents.
struct Cost {
  double low = 0, high = 0;
  double price_low = 0, price_high = 0;  ///< USD per card-hour
  bool given = false;                    ///< the job named the price
};

/// The three accounts of a project: memory of training; its FLOPs, time and money; KV cache and capacity of serving.
/// Nothing is computed here that `train` and `serve` answer: the sheet asks them and sets their answers side by side.
struct SheetAnswer {
  TrainAnswer training;
  ServeAnswer serving;
  bool tokens_assumed = false;               ///< training.tokens is a share of the parameters, not said by the job
  std::vector<std::string> chosen;           ///< options that were decided because the job left them open: "--zero 3"
  std::optional<Cost> cost;                  ///< absent without a time, or where no rent is known
  std::string train_command, serve_command;  ///< what shows each account in full

  bool fits() const { return training.fits() && serving.fits; }
  Exit exit() const { return fits() ? Exit::yes : Exit::no; }
  /// Everything assumed by either account, each sentence once, the sheet's own first.
  std::vector<std::string> assumed(Lang lang) const;
};

/// The training layout that the job leaves open is the least intrusive one that fits. Its parallel sizes are those of
/// training; the service is spread over the machine as `serve` spreads it. InputError as those two verbs.
SheetAnswer answer_sheet(const Job& job, const Knowledge& knowledge);

Document to_json(const SheetAnswer& answer);

}  // namespace vram
