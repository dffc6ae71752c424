#include "serving/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace vram {

std::vector<Stage> split_layers(int64_t layers, int64_t stages) {
  std::vector<int64_t> sizes(static_cast<size_t>(stages), layers / stages);
  int64_t rest = layers % stages;
  for (int64_t s = stages - 2; rest > 0 && s >= 0; --s, --rest) ++sizes[static_cast<size_t>(s)];
  std::vector<Stage> out;
  int64_t first = 0;
  for (int64_t size : sizes) {
    out.push_back({first, first + size});
    first += size;
  }
  return out;
}

int64_t expert_count(const Model& model) {
  int64_t most = 0;
  for (const LayerKind& kind : model.kinds) {
    if (kind.mlp.kind == MlpKind::moe) most = std::max(most, kind.mlp.experts);
  }
  return most;
}

std::vector<RankClass> rank_classes(const Model& model, const Parallel& parallel) {
  const int64_t experts = expert_count(model);
  const int64_t uneven = experts % parallel.expert;
  const int64_t ranks = parallel.tensor * parallel.data;
  const std::vector<Stage> stages = split_layers(model.layers(), parallel.pipeline);
  std::vector<RankClass> out;
  for (int64_t s = 0; s < parallel.pipeline; ++s) {
    RankClass rank{.stage = s, .stages = parallel.pipeline, .layers = stages[static_cast<size_t>(s)], .ranks = ranks};
    if (uneven == 0) {
      out.push_back(rank);
      continue;
    }
    rank.ranks = uneven * (ranks / parallel.expert);
    out.push_back(rank);
    rank.ranks = ranks - rank.ranks;
    rank.more_experts = false;
    out.push_back(rank);
  }
  return out;
}

bool heads_divide(const Model& model, int64_t tensor) {
  for (const LayerKind& kind : model.kinds) {
    const Attention& a = kind.attention;
    switch (a.kind) {
      case AttentionKind::full:
      case AttentionKind::sliding:
      case AttentionKind::chunked:
        if (a.kv_heads > 0 && a.kv_heads % tensor != 0 && tensor % a.kv_heads != 0) return false;
        [[fallthrough]];
      case AttentionKind::mla:
        if (a.heads % tensor != 0) return false;
        break;
      default:
        break;
    }
  }
  return true;
}

bool experts_divide(const Model& model, const Parallel& p) {
  if (p.expert == 1) return true;
  if (p.expert > expert_count(model)) return false;
  if ((p.tensor * p.data) % p.expert != 0) return false;
  return p.tensor % p.expert == 0 || p.expert % p.tensor == 0;
}

std::vector<Parallel> parallel_choices(const Model& model, int64_t cards, int64_t cards_per_node,
                                       const Parallel& wanted) {
  std::vector<Parallel> out;
  constexpr int64_t kMostStages = 512;  // as --pipeline-parallel takes; deeper pipelines only fill lists
  const int64_t stages_most = std::min(model.layers() > 0 ? model.layers() : cards, kMostStages);
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d * d <= cards; ++d) {
    if (cards % d != 0) continue;
    divisors.push_back(d);
    if (d * d != cards) divisors.push_back(cards / d);
  }
  std::sort(divisors.begin(), divisors.end());
  for (int64_t replica : divisors) {
    if (wanted.data != 0 && replica * wanted.data != cards) continue;
    for (auto it = divisors.rbegin(); it != divisors.rend(); ++it) {
      const int64_t tensor = *it;
      if (replica % tensor != 0 || (wanted.tensor != 0 && tensor != wanted.tensor)) continue;
      if (wanted.tensor == 0 && tensor > cards_per_node) continue;
      const Parallel p{tensor, replica / tensor, cards / replica, std::max<int64_t>(wanted.expert, 1)};
      if (wanted.pipeline != 0 && p.pipeline != wanted.pipeline) continue;
      if (p.pipeline > stages_most || !heads_divide(model, tensor) || !experts_divide(model, p)) continue;
      out.push_back(p);
    }
  }
  return out;
}

namespace {

std::string list_of(int64_t low, int64_t high, const std::function<bool(int64_t)>& accepted) {
  std::string out;
  for (int64_t n = low; n <= high; ++n) {
    if (!accepted(n)) continue;
    if (!out.empty()) out += ", ";
    out += std::to_string(n);
  }
  return out;
}

std::string shapes(const Model& model) {
  int64_t heads = 0, kv_heads = 0;
  for (const LayerKind& kind : model.kinds) {
    heads = std::max(heads, kind.attention.heads);
    kv_heads = std::max(kv_heads, kind.attention.kv_heads);
  }
  return kv_heads > 0 && kv_heads != heads ? fmt::format("{} query and {} KV heads", heads, kv_heads)
                                           : fmt::format("{} query heads", heads);
}

}  // namespace

void refuse_parallel(const Model& model, const Machine& machine, const Parallel& wanted) {
  const int64_t cards = machine.cards();
  const auto divides_cards = [&](int64_t n) { return cards % n == 0; };
  const int64_t shown = std::min<int64_t>(cards, 4096);
  if (wanted.tensor != 0 && !heads_divide(model, wanted.tensor)) {
    throw InputError(
        {.field = "--tensor-parallel",
         .value = std::to_string(wanted.tensor),
         .problem = fmt::format("does not divide the {} of {}", shapes(model), model.name),
         .accepted = list_of(1, shown, [&](int64_t n) { return divides_cards(n) && heads_divide(model, n); })});
  }
  if (wanted.pipeline != 0 && model.layers() > 0 && wanted.pipeline > model.layers()) {
    throw InputError({.field = "--pipeline-parallel",
                      .value = std::to_string(wanted.pipeline),
                      .problem = fmt::format("exceeds the {} layers of {}", model.layers(), model.name),
                      .accepted = fmt::format("1 to {}", model.layers())});
  }
  const struct {
    const char* field;
    int64_t value;
  } given[] = {
      {"--tensor-parallel", wanted.tensor}, {"--pipeline-parallel", wanted.pipeline}, {"--data-parallel", wanted.data}};
  int64_t product = 1;
  for (const auto& g : given) {
    if (g.value == 0) continue;
    const int64_t before = product;
    const int64_t next = g.value > cards ? cards + 1 : product * g.value;
    const bool last_free = wanted.tensor == 0 || wanted.pipeline == 0 || wanted.data == 0;
    if (cards % next != 0 || (&g == &given[2] && !last_free && next != cards)) {
      const std::string accepted = list_of(1, shown, [&](int64_t n) {
        if (!last_free && &g == &given[2]) return before * n == cards;
        return cards % (before * n) == 0 && (&g != &given[0] || heads_divide(model, n));
      });
      const std::string rest = before > 1 ? fmt::format(" (with {} already spent on the others)", before) : "";
      throw InputError({.field = g.field,
                        .value = std::to_string(g.value),
                        .problem = fmt::format("does not fit the {} cards of {}{}", cards, machine.text, rest),
                        .accepted = accepted});
    }
    product = next;
  }
  if (wanted.expert > 1) {
    const int64_t experts = expert_count(model);
    if (experts == 0) {
      throw InputError({.field = "--expert-parallel",
                        .value = std::to_string(wanted.expert),
                        .problem = fmt::format("needs experts, and {} has none", model.name),
                        .accepted = "1"});
    }
    Parallel free = wanted;
    throw InputError({.field = "--expert-parallel",
                      .value = std::to_string(wanted.expert),
                      .problem = fmt::format("does not divide the ranks of a stage, or exceeds the {} experts of {}",
                                             experts, model.name),
                      .accepted = list_of(1, std::min(shown, experts), [&](int64_t n) {
                        free.expert = n;
                        return !parallel_choices(model, cards, machine.cards_per_node, free).empty();
                      })});
  }
  // What is left: numbers that are possible each for itself, but not together.
  std::string accepted;
  for (const Parallel& p : parallel_choices(model, cards, machine.cards_per_node, {0, 0, 0, 1})) {
    if (accepted.size() > 160) break;
    if (!accepted.empty()) accepted += "; ";
    accepted += fmt::format("{} x {} x {}", p.tensor, p.pipeline, p.data);
  }
  throw InputError(
      {.field = "--tensor-parallel x --pipeline-parallel x --data-parallel",
       .value = fmt::format("{} x {} x {}", wanted.tensor, wanted.pipeline, wanted.data),
       .problem = fmt::format("can't spread {} over the {} cards of {} (0 is free)", model.name, cards, machine.text),
       .accepted = accepted});
}

}  // namespace vram
