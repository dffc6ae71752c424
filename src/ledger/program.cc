#include "ledger/program.h"

#include <stdexcept>

namespace vram {

std::string_view category_name(Category category) {
  switch (category) {
    case Category::parameters:
      return "parameters";
    case Category::gradients:
      return "gradients";
    case Category::optimizer:
      return "optimizer";
    case Category::activations:
      return "activations";
    case Category::logits:
      return "logits";
    case Category::gathered:
      return "gathered";
    case Category::communication:
      return "communication";
    case Category::workspace:
      return "workspace";
    case Category::kv_cache:
      return "kv_cache";
    case Category::recurrent_state:
      return "recurrent_state";
    case Category::adapters:
      return "adapters";
    case Category::context:
      return "context";
    case Category::reserve:
      return "reserve";
  }
  return "?";
}

std::string_view tier_name(Tier tier) {
  switch (tier) {
    case Tier::device:
      return "device";
    case Tier::host:
      return "host";
    case Tier::disk:
      return "disk";
  }
  return "?";
}

std::string_view life_name(Life life) {
  switch (life) {
    case Life::process:
      return "process";
    case Life::step:
      return "step";
    case Life::micro_batch:
      return "micro_batch";
    case Life::operation:
      return "operation";
  }
  return "?";
}

namespace {

// Counts of storages, sparse: procedures touch few of them.
using Counts = std::vector<std::pair<uint32_t, int64_t>>;

void add(Counts& into, uint32_t storage, int64_t count) {
  for (auto& [id, n] : into) {
    if (id == storage) {
      n += count;
      return;
    }
  }
  into.emplace_back(storage, count);
}

void add(std::vector<int64_t>& into, uint32_t storage, int64_t count) { into[storage] += count; }

template <Number N>
class Walker {
 public:
  using Entry = typename Program<N>::Entry;

  Walker(const Program<N>& program, Tier tier) : program_(program), tier_(tier) {
    bytes_.reserve(program.storages().size());
    for (const auto& s : program.storages()) bytes_.push_back(s.tier == tier ? s.bytes.value() : 0);
    summaries_.resize(program.procedures().size());
    state_.resize(program.procedures().size(), State::unknown);
    counts_.resize(program.procedures().size());
    counted_.resize(program.procedures().size(), false);
  }

  Summary summary(uint32_t procedure) {
    if (state_[procedure] == State::known) return summaries_[procedure];
    if (state_[procedure] == State::open) throw std::logic_error("recursive program");
    state_[procedure] = State::open;
    Summary total;
    for (const Entry& e : program_.procedures()[procedure].entries) total = checked_then(total, of(e));
    state_[procedure] = State::known;
    return summaries_[procedure] = total;
  }

  Summary of(const Entry& e) {
    switch (e.kind) {
      case Entry::Kind::allocate:
        return {bytes_[e.id], bytes_[e.id]};
      case Entry::Kind::free:
        return {-bytes_[e.id], 0};
      case Entry::Kind::call:
        return checked_repeat(summary(e.id), e.times);
    }
    return {};
  }

  const Counts& counts(uint32_t procedure) {
    if (!counted_[procedure]) {
      Counts total;
      for (const Entry& e : program_.procedures()[procedure].entries) add_entry(total, e, 1);
      counts_[procedure] = std::move(total);
      counted_[procedure] = true;
    }
    return counts_[procedure];
  }

  Peak peak() {
    Peak out;
    out.bytes = summary(Program<N>::main()).peak;
    std::vector<int64_t> dense(program_.storages().size(), 0);
    descend(Program<N>::main(), out, dense);
    for (uint32_t id = 0; id < dense.size(); ++id) {
      if (dense[id] != 0 && program_.storages()[id].tier == tier_) out.alive.push_back({id, dense[id]});
    }
    return out;
  }

 private:
  enum class State : uint8_t { unknown, open, known };

  template <class Into>
  void add_entry(Into& into, const Entry& e, int64_t factor) {
    switch (e.kind) {
      case Entry::Kind::allocate:
        add(into, e.id, factor);
        break;
      case Entry::Kind::free:
        add(into, e.id, -factor);
        break;
      case Entry::Kind::call:
        for (const auto& [id, n] : counts(e.id)) add(into, id, n * e.times * factor);
        break;
    }
  }

  // Follows the first entry in which the peak of `procedure` is reached, adding what earlier entries left alive.
  void descend(uint32_t procedure, Peak& out, std::vector<int64_t>& alive) {
    const Bytes target = summary(procedure).peak;
    const auto& entries = program_.procedures()[procedure].entries;
    Bytes level = 0;
    size_t at = entries.size();
    for (size_t i = 0; i < entries.size(); ++i) {
      const Summary s = of(entries[i]);
      if (level + s.peak == target && (target > 0 || s.peak > 0)) {
        at = i;
        break;
      }
      level += s.net;
    }
    if (at == entries.size()) return;  // the peak is the entry itself: nothing rises above it
    for (size_t i = 0; i < at; ++i) add_entry(alive, entries[i], 1);
    const Entry& e = entries[at];
    if (e.kind != Entry::Kind::call) {
      add_entry(alive, e, 1);
      return;
    }
    const int64_t round = summary(e.id).net > 0 ? e.times : 1;
    for (const auto& [id, n] : counts(e.id)) add(alive, id, n * (round - 1));
    out.when.push_back({program_.procedures()[e.id].name, round, e.times});
    descend(e.id, out, alive);
  }

  const Program<N>& program_;
  Tier tier_;
  std::vector<Bytes> bytes_;
  std::vector<Summary> summaries_;
  std::vector<State> state_;
  std::vector<Counts> counts_;
  std::vector<bool> counted_;
};

template <Number N>
class Unroller {
 public:
  Unroller(const Program<N>& program, const std::function<void(const Event&)>& visit, int64_t limit)
      : program_(program), visit_(visit), left_(limit), living_(program.storages().size()) {}

  bool run(uint32_t procedure) {
    for (const auto& e : program_.procedures()[procedure].entries) {
      if (e.kind == Program<N>::Entry::Kind::call) {
        for (int64_t i = 0; i < e.times; ++i) {
          if (!run(e.id)) return false;
        }
        continue;
      }
      if (left_-- <= 0) return false;
      if (e.kind == Program<N>::Entry::Kind::allocate) {
        living_[e.id].push_back(next_);
        visit_({true, e.id, next_++});
      } else {
        if (living_[e.id].empty()) {
          throw std::logic_error("frees '" + program_.storages()[e.id].name + "' that is not alive");
        }
        const int64_t instance = living_[e.id].back();
        living_[e.id].pop_back();
        visit_({false, e.id, instance});
      }
    }
    return true;
  }

 private:
  const Program<N>& program_;
  const std::function<void(const Event&)>& visit_;
  int64_t left_;
  int64_t next_ = 0;
  std::vector<std::vector<int64_t>> living_;
};

}  // namespace

template <Number N>
Summary summarize(const Program<N>& program, Tier tier) {
  return Walker<N>(program, tier).summary(Program<N>::main());
}

template <Number N>
Peak find_peak(const Program<N>& program, Tier tier) {
  return Walker<N>(program, tier).peak();
}

template <Number N>
bool for_each_event(const Program<N>& program, const std::function<void(const Event&)>& visit, int64_t limit) {
  return Unroller<N>(program, visit, limit).run(Program<N>::main());
}

template <Number N>
std::string check(const Program<N>& program) {
  try {
    for_each_event<N>(program, [](const Event&) {});
  } catch (const std::logic_error& e) {
    return e.what();
  }
  return {};
}

template Summary summarize<Fast>(const Program<Fast>&, Tier);
template Summary summarize<Traced>(const Program<Traced>&, Tier);
template Peak find_peak<Fast>(const Program<Fast>&, Tier);
template Peak find_peak<Traced>(const Program<Traced>&, Tier);
template bool for_each_event<Fast>(const Program<Fast>&, const std::function<void(const Event&)>&, int64_t);
template bool for_each_event<Traced>(const Program<Traced>&, const std::function<void(const Event&)>&, int64_t);
template std::string check<Fast>(const Program<Fast>&);
template std::string check<Traced>(const Program<Traced>&);

}  // namespace vram
