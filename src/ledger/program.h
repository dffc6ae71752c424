#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "ledger/number.h"

namespace vram {

/// What a storage is for. Every byte has exactly one category.
enum class Category : uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,
  logits,
  gathered,
  communication,
  workspace,
  kv_cache,
  recurrent_state,
  adapters,
  context,
  reserve
};
inline constexpr int kCategories = 13;
std::string_view category_name(Category category);

/// Where a storage lives.
enum class Tier : uint8_t { device, host, disk };
inline constexpr int kTiers = 3;
std::string_view tier_name(Tier tier);

/// How long a storage is meant to live; a view of the ledger groups by it. Lives themselves follow from the program.
enum class Life : uint8_t { process, step, micro_batch, operation };
std::string_view life_name(Life life);

/// A kind of storage: {what, owner, category, tier, bytes}. One kind may have many instances alive.
template <Number N>
struct Storage {
  std::string name;   ///< "attention output"
  std::string owner;  ///< module: "layers.attention", "embedding"
  Category category = Category::activations;
  Tier tier = Tier::device;
  Life life = Life::process;
  N bytes{0};  ///< of one instance
};

/// Operations that allocate and free storages, with repetition. Nothing is unrolled: a procedure is written once and
/// called n times, so a step of 128 micro-batches over 100 layers is a few hundred entries.
///
/// Freeing takes the youngest living instance of a storage kind, which is the order in which backward consumes what
/// forward kept. A well-formed program never frees what is not alive (check() holds it).
template <Number N>
class Program {
 public:
  using StorageId = uint32_t;
  using ProcedureId = uint32_t;

  struct Entry {
    enum class Kind : uint8_t { allocate, free, call } kind;
    uint32_t id;    ///< storage or procedure
    int64_t times;  ///< of a call
  };
  struct Procedure {
    std::string name;  ///< "forward", "layer", "backward", "optimizer": names an instant of the peak
    std::vector<Entry> entries;
  };

  Program() { procedures_.push_back({"step", {}}); }

  StorageId storage(Storage<N> storage) {
    storages_.push_back(std::move(storage));
    return static_cast<StorageId>(storages_.size() - 1);
  }
  ProcedureId procedure(std::string name) {
    procedures_.push_back({std::move(name), {}});
    return static_cast<ProcedureId>(procedures_.size() - 1);
  }
  static constexpr ProcedureId main() { return 0; }

  void allocate(ProcedureId p, StorageId s) { procedures_[p].entries.push_back({Entry::Kind::allocate, s, 1}); }
  void free(ProcedureId p, StorageId s) { procedures_[p].entries.push_back({Entry::Kind::free, s, 1}); }
  /// `callee` must have been declared after `p` was and must not call `p`: programs have no recursion.
  void call(ProcedureId p, ProcedureId callee, int64_t times = 1) {
    if (times > 0) procedures_[p].entries.push_back({Entry::Kind::call, callee, times});
  }

  const std::vector<Storage<N>>& storages() const { return storages_; }
  const std::vector<Procedure>& procedures() const { return procedures_; }

 private:
  std::vector<Storage<N>> storages_;
  std::vector<Procedure> procedures_;
};

/// Net change and highest point above entry of a piece of program: the max-plus pair. peak >= 0, peak >= net.
struct Summary {
  Bytes net = 0;
  Bytes peak = 0;
};

constexpr Summary then(Summary a, Summary b) {
  const Bytes second = a.net + b.peak;
  return {a.net + b.net, a.peak > second ? a.peak : second};
}

/// n >= 0 repetitions. A growing piece peaks in its last round, a shrinking one in its first.
constexpr Summary repeat(Summary a, int64_t n) {
  if (n <= 0) return {};
  return {n * a.net, a.net > 0 ? a.peak + (n - 1) * a.net : a.peak};
}

/// The same where sizes are of untrusted origin. Throw OverflowError.
inline Summary checked_then(Summary a, Summary b) {
  checked_add(a.net, b.peak);
  checked_add(a.net, b.net);
  return then(a, b);
}
inline Summary checked_repeat(Summary a, int64_t n) {
  const Bytes grown = checked_mul(a.net, n);
  checked_add(a.peak, grown > 0 ? grown : 0);
  return repeat(a, n);
}

/// One level of the moment of a peak: which procedure, and which of its rounds (1-based).
struct Instant {
  std::string name;
  int64_t round = 1;
  int64_t rounds = 1;
};

/// Living instances of one storage kind at the peak.
struct Alive {
  uint32_t storage = 0;
  int64_t count = 0;
};

struct Peak {
  Bytes bytes = 0;
  std::vector<Instant> when;  ///< from the outermost procedure inwards
  std::vector<Alive> alive;   ///< in order of storage id, counts > 0
};

/// The exact peak of a tier without unrolling anything (PeakSink). Overflow throws OverflowError.
template <Number N>
Summary summarize(const Program<N>& program, Tier tier);

/// The first moment at which the tier is at its peak, and what lives then (LedgerSink).
template <Number N>
Peak find_peak(const Program<N>& program, Tier tier);

/// One event of the unrolled program (EventSink). Instances are numbered from 0 in order of allocation.
struct Event {
  bool allocate = true;
  uint32_t storage = 0;
  int64_t instance = 0;
};

/// Visits every event in order. Returns false, having stopped, once `limit` events were visited.
template <Number N>
bool for_each_event(const Program<N>& program, const std::function<void(const Event&)>& visit,
                    int64_t limit = std::numeric_limits<int64_t>::max());

/// Empty where the program is well formed, else what is wrong: a free of something not alive.
template <Number N>
std::string check(const Program<N>& program);

}  // namespace vram
