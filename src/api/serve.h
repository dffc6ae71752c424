#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/resolve.h"
#include "base/document.h"
#include "base/error.h"
#include "ledger/ledger.h"
#include "serving/capacity.h"
#include "serving/plan.h"
#include "serving/speed.h"

namespace vram {

/// Everything one class of ranks holds, at the requests that the answer shows.
struct ServeRank {
  RankClass rank;
  Ledger ledger;  ///< from a traced run: every line with its formula and range
  Bytes weights_bytes = 0;
  Bytes reserve_bytes = 0;     ///< everything but weights and caches
  Bytes cache_room_bytes = 0;  ///< left for caches; negative where weights and reserve exceed the card
  Bytes request_bytes = 0;     ///< cache of one request
  int64_t requests = 0;        ///< of one replica that the ledger shows
};

/// One line of the account that can be redone by hand, with the textbook's value beside it.
struct ServeStep {
  std::string_view id;    ///< message "serving.step.<id>", "serving.pooled.<id>" in textbook mode
  std::string_view unit;  ///< "bytes", "tokens", "requests", "parameters"
  std::string formula;
  int64_t value = 0;
  std::optional<int64_t> textbook;  ///< absent in textbook mode
  std::string textbook_formula;
  std::string_view why;  ///< message that says why the two differ; empty where they don't
};

/// What one change would do to the largest concurrency.
struct ServeLever {
  std::string_view id;  ///< message "serving.lever.<id>"
  std::string value;    ///< fills {value} in it: "fp8", "16"
  int64_t largest_concurrency = 0;
  Bytes cache_room_bytes_per_card = 0;
};

/// An assumed or measured input, and K at both ends of its range.
struct ServeMover {
  Constant row;
  int64_t concurrency_low = 0, concurrency_high = 0;
  Bytes room_low = 0, room_high = 0;  ///< left on the fullest card with the requests that were asked for
};

/// Output tokens a second that a machine with one rate doubled could not exceed, running its own largest concurrency.
struct ServeWhatIf {
  std::string_view id;  ///< "memory", "bandwidth", "compute", "link"
  int64_t requests = 0;
  double tokens_per_second = 0;
  double gain = 0;  ///< over the machine as it is, as a ratio
};

struct ServeSpeed {
  DecodeBound one;                                   ///< a single request
  DecodeBound full;                                  ///< the largest concurrency
  PrefillBound prefill;                              ///< a prompt of the whole context
  std::optional<int64_t> ridge_requests;             ///< of one replica, weights alone
  std::optional<int64_t> ridge_requests_at_context;  ///< caches included; nothing: always bound by bandwidth
  Rates rates;
  std::string compute_dtype;
  std::vector<ServeWhatIf> what_if;
};

/// What a service takes and what it can carry.
struct ServeAnswer {
  bool fits = false;  ///< the requests asked for (one, where none were) run at this context
  ServePlan plan;
  Machine machine;
  int64_t asked = 1;
  bool concurrency_known = true;       ///< false: no shapes, so nothing is known of the caches
  bool concurrency_unlimited = false;  ///< requests take no memory
  int64_t largest_concurrency = 0;     ///< over all replicas; 0 where not known
  int64_t textbook_concurrency = 0;
  Bytes kv_bytes_per_token = 0;  ///< of one copy of the model, before any window is full
  std::string kv_formula;
  Bytes kv_bytes_per_request = 0;     ///< of one copy, in whole blocks, recurrent states included
  Bytes weights_bytes = 0;            ///< over the ranks of one replica
  int64_t longest_context = 0;        ///< of a single request: as memory allows, within what the model was made for
  int64_t longest_context_asked = 0;  ///< with the requests asked for
  bool context_limited_by_model = false;
  bool context_unlimited = false;  ///< recurrent models: a request takes the same memory at any length
  Bytes room_bytes = 0;            ///< left on the fullest card with the requests asked for; negative: missing
  std::vector<ServeRank> ranks;
  size_t tightest = 0;              ///< the rank that limits K
  std::string_view binding;         ///< "capacity", "bandwidth", "compute", "link"
  std::optional<ServeSpeed> speed;  ///< absent where the machine is memory only
  std::vector<ServeStep> steps;
  std::vector<ServeLever> levers;
  std::vector<ServeMover> movers;  ///< the inputs that move K most, at most three

  Exit exit() const { return fits ? Exit::yes : Exit::no; }
  const ServeRank& worst() const { return ranks[tightest]; }
};

/// The few numbers of an answer that a search or an overview needs, without ledgers, steps, levers and movers.
struct ServeBrief {
  bool fits = false;
  Parallel parallel;
  int64_t pooled = 1;  ///< cards counted as one memory (textbook mode)
  bool concurrency_known = true, concurrency_unlimited = false;
  int64_t largest_concurrency = 0;
  int64_t longest_context = 0;  ///< of a single request, within what the model was made for
  Bytes needed_bytes = 0;       ///< weights, reserve and one request on the tightest rank, over the pooled cards
  Bytes room_bytes = 0;         ///< left there with the requests asked for (one, where none were)
};
/// The same numbers as serve() gives, some hundred times faster.
ServeBrief serve_brief(const Model& model, const Machine& machine, const Job& job, const Constants& constants);

/// Pure. InputError for jobs that contradict themselves, the model or the machine.
ServeAnswer serve(const Model& model, const Machine& machine, const Job& job, const Constants& constants);

/// The same for a job in words.
ServeAnswer answer_serve(const Job& job, const Knowledge& knowledge);

Document to_json(const ServeAnswer& answer);

}  // namespace vram
