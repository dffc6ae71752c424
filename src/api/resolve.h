#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "catalog/constant.h"
#include "job/job.h"
#include "machine/machine.h"
#include "model/model.h"
#include "tiers/data.h"

namespace vram {

/// What answers depend on besides the question: the system, and the data rows with the user's own laid over them.
/// Built-in rows are parsed when they are first asked for.
class Knowledge {
 public:
  /// `environment` must outlive this.
  explicit Knowledge(const Environment& environment) : environment_(&environment) {}
  /// Lays the rows of a TOML file over the built-in ones: [[device]] tables, [[constant]] tables, or [[disk]] and
  /// [[store]] tables.
  void add_rows(const std::string& file);

  const Environment& environment() const { return *environment_; }
  const Devices& devices() const { return devices_ ? *devices_ : Devices::builtin(); }
  const Constants& constants() const { return constants_ ? *constants_ : Constants::builtin(); }
  const TierRows& tier_rows() const { return tier_rows_ ? *tier_rows_ : TierRows::builtin(); }

 private:
  const Environment* environment_;
  std::optional<Devices> devices_;
  std::optional<Constants> constants_;
  std::optional<TierRows> tier_rows_;
};

/// The model of a job, for every verb: Job::model is a catalogue id or alias, a file or directory (api/files.h), a
/// model of the hub (api/hub.h), or a size ("7B"); without it, Job::params and the other fields describe a decoder by
/// hand; Job::set changes a known one. InputError where there is no model, an unknown one (with a near miss), or fields
/// that contradict each other.
Model resolve_model(const Job& job, const Environment& environment);

/// Whether the job names or describes a model at all.
bool has_model(const Job& job);

/// The machine of a job: Job::on with usable, host_memory, pcie and price laid over it. InputError without `on`.
Machine resolve_machine(const Job& job, const Knowledge& knowledge);

}  // namespace vram
