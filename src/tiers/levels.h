#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "tiers/data.h"

namespace vram {

/// One level of a machine's pyramid. Rates are of one card: what a node or a store has is divided by its cards.
struct Level {
  std::string
      id;  ///< "registers", "shared", "l2", "device", "scale_up", "network", "host_link", "host", "disk", "store"
  std::string above;             ///< the level that it is reached from; empty for the first
  std::string scope;             ///< whose `bytes` are: "card", "node", "machine"
  std::optional<Bytes> bytes;    ///< absent for links, and where not known
  std::optional<double> rate;    ///< bytes a second by specification or arithmetic
  std::optional<Span> measured;  ///< by somebody, or assumed where `measured_basis` says so
  Basis measured_basis = Basis::measured;
  std::string detail;          ///< "132 x 256 KiB", "HBM3", "NVLink4"
  std::string what, source;    ///< of the measurement
  std::optional<double> step;  ///< times slower than `above`: specified rates where there are, else measured ones
  std::optional<double> measured_step;  ///< the same of measured rates, where both were measured

  /// The rate to count with: specified, else measured.
  std::optional<double> counted() const {
    return rate ? rate : measured ? std::optional<double>(measured->value) : std::nullopt;
  }
};

/// The levels of a machine from registers to the shared store, fastest first. `store` null: none is named. `pcie`: the
/// host link's rate as the job says.
std::vector<Level> pyramid(const Machine& machine, const TierRows& rows, const Constants& constants, const Store* store,
                           std::optional<double> pcie);

/// What one card can send out of its node or across its host link, whichever is less; nothing where neither is known.
std::optional<double> link_limit(const std::vector<Level>& levels);

}  // namespace vram
