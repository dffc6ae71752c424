#include "tiers/levels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"

namespace vram {
namespace {

Span scaled(const Span& span, double factor) { return {span.value * factor, span.low * factor, span.high * factor}; }

Span span_of(const Constant& row) {
  return {static_cast<double>(row.value), static_cast<double>(row.low), static_cast<double>(row.high)};
}

class Pyramid {
 public:
  Pyramid(const Machine& machine, const TierRows& rows, const Constants& constants)
      : m_(machine), d_(machine.device), rows_(rows), constants_(constants) {}

  std::vector<Level> build(const Store* store, std::optional<double> pcie) {
    on_chip();
    card();
    if (m_.cards_per_node > 1 && !d_.memory_only) peers();
    if (!d_.unified_memory) host(pcie);
    if (m_.nodes > 1 && m_.inter_node) network();
    disk();
    if (store) shared(*store);
    fill_steps();
    return std::move(levels_);
  }

 private:
  double cards() const { return static_cast<double>(std::max<int64_t>(1, m_.cards_per_node)); }

  void add_measured(Level& level) const {
    const Measured* row = rows_.measured(level.id, d_.id);
    if (!row) return;
    level.measured = scaled(row->rate, row->per_node ? 1 / cards() : 1);
    level.measured_basis = row->basis;
    level.what = row->what;
    level.source = row->source;
  }

  void add_constant(Level& level, const std::string& id, double factor) const {
    const Constant* row = constants_.find(id);
    if (!row) return;
    level.measured = scaled(span_of(*row), factor);
    level.measured_basis = row->basis;
    level.source = row->source;
  }

  void on_chip() {
    const Core* core = d_.compute_units ? rows_.core(d_.compute_capability) : nullptr;
    // clock = fp32 / (2 operations a fused multiply-add · lanes · units)
    std::optional<double> clock;
    if (core && d_.flops_fp32) {
      clock =
          *d_.flops_fp32 / (2 * static_cast<double>(core->fp32_fma_per_clock) * static_cast<double>(*d_.compute_units));
    }
    if (core) {
      Level level{.id = "registers", .above = "", .scope = "card"};
      level.bytes = checked_mul(core->register_bytes, *d_.compute_units);
      level.detail = fmt::format("{} x {} KiB", *d_.compute_units, core->register_bytes / kKiB);
      // A fused multiply-add reads three registers and writes one, of 4 bytes: 8 bytes an operation.
      if (d_.flops_fp32) level.rate = *d_.flops_fp32 * 8;
      levels_.push_back(std::move(level));
    }
    if (d_.smem_bytes_per_unit && d_.compute_units) {
      Level level{.id = "shared", .above = "registers", .scope = "card"};
      level.bytes = checked_mul(*d_.smem_bytes_per_unit, *d_.compute_units);
      level.detail = fmt::format("{} x {} KiB", *d_.compute_units, *d_.smem_bytes_per_unit / kKiB);
      if (clock) {
        level.rate =
            *clock * static_cast<double>(core->shared_bytes_per_clock) * static_cast<double>(*d_.compute_units);
      }
      add_measured(level);
      levels_.push_back(std::move(level));
    }
    if (d_.l2_bytes) {
      Level level{.id = "l2", .above = "shared", .scope = "card"};
      level.bytes = *d_.l2_bytes;
      std::string id = "l2_bytes_per_second.";
      for (char c : d_.id) id += c == '-' ? '_' : c;
      add_constant(level, id, 1);
      if (!level.measured) add_measured(level);
      levels_.push_back(std::move(level));
    }
  }

  void card() {
    Level level{.id = "device", .above = "l2", .scope = "card"};
    level.bytes = d_.usable_bytes();
    level.rate = d_.bandwidth;
    level.detail = d_.memory_type;
    add_measured(level);
    levels_.push_back(std::move(level));
  }

  void peers() {
    Level level{.id = "scale_up", .above = "device", .scope = "node"};
    level.bytes = checked_mul(d_.usable_bytes(), m_.cards_per_node - 1);
    if (m_.intra_node.bytes_per_second > 0) level.rate = m_.intra_node.bytes_per_second;
    level.detail = m_.intra_node.kind;
    add_measured(level);
    levels_.push_back(std::move(level));
  }

  void host(std::optional<double> pcie) {
    if (d_.host_link || pcie) {
      Level level{.id = "host_link", .above = "device", .scope = "card"};
      level.rate = pcie ? *pcie : d_.host_link->bytes_per_second;
      level.detail = pcie ? "--pcie" : d_.host_link->kind;
      if (!pcie && d_.host_link_text.size() > 2 && d_.host_link_text[1] == 'x') {
        const double lanes = std::stod(d_.host_link_text.substr(2));
        add_constant(level, fmt::format("pcie_x16_measured_bytes_per_second.gen{}", d_.host_link_text[0]), lanes / 16);
      } else if (!pcie) {
        add_constant(level, "c2c_measured_bytes_per_second", 1);
      }
      levels_.push_back(std::move(level));
    }
    Level level{.id = "host", .above = "host_link", .scope = "node"};
    level.bytes = m_.host_bytes_per_node;
    // A node's memory serves all of its cards.
    add_constant(level, "host_memory_bytes_per_second", 1 / cards());
    levels_.push_back(std::move(level));
  }

  void network() {
    Level level{.id = "network", .above = "device", .scope = "machine"};
    level.bytes = checked_mul(checked_mul(d_.usable_bytes(), m_.cards_per_node), m_.nodes - 1);
    level.rate = m_.inter_node->bytes_per_second;
    level.detail = m_.inter_node->kind;
    add_measured(level);
    levels_.push_back(std::move(level));
  }

  void disk() {
    const Disk& disk = rows_.usual_disk(d_.host_link_text);
    Level level{.id = "disk", .above = d_.unified_memory ? "device" : "host", .scope = "node"};
    if (disk.bytes > 0) level.bytes = disk.bytes;
    level.measured = scaled(disk.read, 1 / cards());
    level.measured_basis = disk.basis;
    level.detail = disk.name;
    level.source = disk.source;
    levels_.push_back(std::move(level));
  }

  void shared(const Store& store) {
    Level level{.id = "store", .above = "disk", .scope = "machine"};
    const double all = static_cast<double>(m_.cards());
    Span rate = scaled(store.read, store.per_client ? 1 / cards() : 1 / all);
    // A card receives no faster than its links carry.
    if (const auto limit = link_limit(levels_)) {
      rate = {std::min(rate.value, *limit), std::min(rate.low, *limit), std::min(rate.high, *limit)};
    }
    level.measured = rate;
    level.measured_basis = store.basis;
    level.detail = store.name;
    level.source = store.source;
    levels_.push_back(std::move(level));
  }

  const Level* find(std::string_view id) const {
    const auto found = std::find_if(levels_.begin(), levels_.end(), [&](const Level& l) { return l.id == id; });
    return found == levels_.end() ? nullptr : &*found;
  }

  void fill_steps() {
    for (Level& level : levels_) {
      // A level whose rate nobody knows is stepped over.
      const Level* above = find(level.above);
      while (above && !above->counted()) above = find(above->above);
      level.above = above ? above->id : "";
      if (!above || !level.counted()) continue;
      level.step = *above->counted() / *level.counted();
      if (level.measured && above->measured) level.measured_step = above->measured->value / level.measured->value;
    }
  }

  const Machine& m_;
  const Device& d_;
  const TierRows& rows_;
  const Constants& constants_;
  std::vector<Level> levels_;
};

}  // namespace

std::optional<double> link_limit(const std::vector<Level>& levels) {
  std::optional<double> out;
  for (const Level& l : levels) {
    if (l.id != "host_link" && l.id != "network") continue;
    // What was measured of the link counts, an assumption about it does not.
    const auto rate =
        l.measured && l.measured_basis == Basis::measured ? std::optional<double>(l.measured->value) : l.rate;
    if (rate) out = out ? std::min(*out, *rate) : *rate;
  }
  return out;
}

std::vector<Level> pyramid(const Machine& machine, const TierRows& rows, const Constants& constants, const Store* store,
                           std::optional<double> pcie) {
  return Pyramid(machine, rows, constants).build(store, pcie);
}

}  // namespace vram
