#include "tiers/checkpoint.h"

#include <cmath>

namespace vram {

double useful_share(double interval, double mtbf, double cost, double restore) {
  return interval / (mtbf * std::exp(restore / mtbf) * std::expm1((interval + cost) / mtbf));
}

SaveInterval best_interval(double mtbf, double cost, double restore) {
  SaveInterval out{.mtbf = mtbf, .cost = cost, .restore = restore};
  const double c = cost / mtbf;
  out.young = std::sqrt(2 * cost * mtbf);
  // Daly's series holds for C < 2M; beyond, one saves once a failure.
  const double x = std::sqrt(c / 2);
  out.daly = c < 2 ? out.young * (1 + x / 3 + x * x / 9) - cost : mtbf;
  // The share is largest where 1 - u = e^-(u + c) with u = interval / M; the left side falls faster, so halving finds
  // it.
  double low = 0, high = 1;
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = (low + high) / 2;
    // -u - expm1(-(u + c)) keeps its digits where both are small.
    (-middle - std::expm1(-(middle + c)) > 0 ? low : high) = middle;
  }
  out.exact = mtbf * (low + high) / 2;
  out.efficiency = useful_share(out.exact, mtbf, cost, restore);
  out.efficiency_young = useful_share(out.young, mtbf, cost, restore);
  return out;
}

}  // namespace vram
