#pragma once

namespace vram {

/// When to save, for failures that come independently at a mean of `mtbf` seconds (of the whole job). `cost`: seconds
/// that training stands still for one save. `restore`: seconds from a failure until training goes on, load included.
struct SaveInterval {
  double mtbf = 0, cost = 0, restore = 0;
  double young = 0;             ///< seconds of work between saves: sqrt(2·C·M)
  double daly = 0;              ///< its correction of higher order (Daly 2006)
  double exact = 0;             ///< where the expected share of useful time is largest
  double efficiency = 0;        ///< that share, at `exact`
  double efficiency_young = 0;  ///< at `young`
};

/// Preconditions: mtbf > 0, cost > 0, restore >= 0, all finite.
SaveInterval best_interval(double mtbf, double cost, double restore);

/// The expected share of time that is useful work when saving every `interval` seconds of work. A failure anywhere in a
/// segment of work and save repeats the segment after a restore, which itself may fail:
/// interval / (M·e^(R/M)·(e^((interval+C)/M) - 1)).
double useful_share(double interval, double mtbf, double cost, double restore);

}  // namespace vram
