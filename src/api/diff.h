#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/resolve.h"
#include "api/serve.h"
#include "api/train.h"
#include "base/document.h"

namespace vram {

enum class DiffOf : uint8_t { train, serve };

/// A field that the two jobs say otherwise.
struct SaidChange {
  std::string field;  ///< name of the field table
  std::string a, b;   ///< as options; empty: left open
  /// What this change alone does to job A: bytes of the peak on its fullest card, or requests of K. Nothing where A
  /// with this one field of B is no valid job, or K is not known.
  std::optional<int64_t> alone;
};

/// Something that was decided otherwise although neither job says it, by its JSON key: "data_parallel".
struct ResolvedChange {
  std::string key, a, b;
};

/// One quantity of both answers.
struct DiffLine {
  std::string group;  ///< "memory", "states", "host", "compute", "time", "traffic", "cache", "capacity", "speed"
  std::string id;     ///< JSON key without its group: "activations_bytes", "largest_concurrency"
  std::string unit;   ///< "bytes", "flops", "seconds", "hours", "tokens", "requests", "tokens_per_second"
  std::optional<double> a, b;

  bool differs() const { return a != b; }
};

/// Two jobs and what tells them apart. Made of their answers; nothing is computed besides differences.
struct DiffAnswer {
  DiffOf of = DiffOf::train;
  std::string name_a, name_b;
  std::vector<SaidChange> said;
  std::vector<ResolvedChange> resolved;
  std::vector<DiffLine> lines;
  std::optional<TrainAnswer> train_a, train_b;
  std::optional<ServeAnswer> serve_a, serve_b;

  bool fits_a() const { return train_a ? train_a->fits() : serve_a->fits; }
  bool fits_b() const { return train_b ? train_b->fits() : serve_b->fits; }
  const DiffLine* find(std::string_view group, std::string_view id) const;
  /// The question is whether B will do.
  Exit exit() const { return fits_b() ? Exit::yes : Exit::no; }
};

struct DiffRequest {
  Job a, b;
  std::string name_a, name_b;  ///< as the reader wrote them
  std::optional<DiffOf> of;    ///< absent: as the fields tell
};

/// InputError where either job is refused (its name stands before the field), or where the fields do not tell whether
/// training or serving is meant.
DiffAnswer answer_diff(const DiffRequest& request, const Knowledge& knowledge);

Document to_json(const DiffAnswer& answer);

}  // namespace vram
