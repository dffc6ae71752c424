#pragma once

#include <bit>
#include <stdexcept>

#include "graph/block.h"

namespace vram {

template <Number N>
BlockId Block<N>::add(BlockStorage<N> storage) {
  if (storages.size() >= kMaxStorages) throw std::logic_error("a block has too many storages");
  storages.push_back(std::move(storage));
  return static_cast<BlockId>(storages.size() - 1);
}

template <Number N>
Set Block<N>::saved() const {
  Set set = 0;
  for (const Operation& op : operations) set |= kernel_saves(op);
  return set;
}

template <Number N>
N Block<N>::saved_bytes() const {
  N total(0);
  const Set set = saved();
  for (BlockId id = 0; id < storages.size(); ++id) {
    if (set & bit(id)) total = total + storages[id].bytes;
  }
  return total;
}

template <Number N>
double Block<N>::forward_flops() const {
  double total = 0;
  for (const Operation& op : operations) total += op.flops;
  return total;
}

namespace detail {

inline Set set_of(const std::vector<BlockId>& ids) {
  Set set = 0;
  for (BlockId id : ids) set |= bit(id);
  return set;
}

template <class F>
void for_each(Set set, F f) {
  while (set) {
    const auto low = static_cast<uint64_t>(set);
    const int at = low ? std::countr_zero(low) : 64 + std::countr_zero(static_cast<uint64_t>(set >> 64));
    set &= set - 1;
    f(static_cast<BlockId>(at));
  }
}

// What forward keeps under a recompute mode, the input included.
template <Number N>
Set kept(const Block<N>& block, Recompute recompute) {
  if (recompute == Recompute::full) return bit(block.input);
  Set keep = 0, dropped = 0;
  for (const Operation& op : block.operations) {
    if (recompute == Recompute::selective && op.selective) {
      dropped |= set_of(op.out) | set_of(op.aux);
    } else {
      keep |= kernel_saves(op);
    }
  }
  if (recompute == Recompute::selective) {
    // A checkpointed segment keeps the inputs it is redone from, unless it makes them itself.
    for (const Operation& op : block.operations) {
      if (op.selective) keep |= set_of(op.in) & ~dropped;
    }
  }
  return keep;
}

template <Number N>
Set kept_by_caller(const Block<N>& block) {
  Set set = 0;
  for (BlockId id = 0; id < block.storages.size(); ++id) {
    if (block.storages[id].kept_by_caller) set |= bit(id);
  }
  return set;
}

// Runs the selected operations forward. `alive` is what lives already; `keep` is what must not be freed.
template <Number N, class Sink, class Select>
Set run_forward(const Block<N>& block, Set alive, Set keep, Sink& sink, Select selected) {
  const auto& ops = block.operations;
  for (size_t i = 0; i < ops.size(); ++i) {
    const Operation& op = ops[i];
    if (!selected(op)) continue;
    const Set born = (set_of(op.out) | set_of(op.aux)) & ~alive;
    for_each(born, [&](BlockId id) { sink.allocate(id); });
    for (BlockId id : op.scratch_forward) sink.allocate(id);
    for (BlockId id : op.scratch_forward) sink.free(id);
    alive |= born;
    Set needed = keep | bit(block.output);
    for (size_t j = i + 1; j < ops.size(); ++j) {
      if (selected(ops[j])) needed |= set_of(ops[j].in);
    }
    const Set done = alive & ~needed;
    for_each(done, [&](BlockId id) { sink.free(id); });
    alive &= ~done;
  }
  return alive;
}

}  // namespace detail

template <Number N>
bool keeps_input(const Block<N>& block, Recompute recompute) {
  return (detail::kept(block, recompute) & bit(block.input)) != 0;
}

template <Number N, class Sink>
void walk_forward(const Block<N>& block, Recompute recompute, Sink& sink) {
  const Set keep = detail::kept(block, recompute) | detail::kept_by_caller(block);
  detail::run_forward(block, bit(block.input), keep, sink, [](const Operation&) { return true; });
}

template <Number N, class Sink>
void walk_backward(const Block<N>& block, Recompute recompute, Sink& sink) {
  const auto& ops = block.operations;
  const Set caller = detail::kept_by_caller(block);
  Set alive = detail::kept(block, recompute) | caller;
  const Set all_saved = block.saved() | caller;
  if (recompute == Recompute::full) {
    // The layer is run again from its input, this time keeping what its operations keep. Its output is made again too
    // and dropped at once.
    alive =
        detail::run_forward(block, alive, all_saved | bit(block.input), sink, [](const Operation&) { return true; });
    if (!(all_saved & bit(block.output)) && block.output != block.input && (alive & bit(block.output))) {
      sink.free(block.output);
      alive &= ~bit(block.output);
    }
    // The checkpoint's input is held until the whole layer is done.
  }
  bool redone = recompute != Recompute::selective;
  Set gradients = bit(block.output);
  for (size_t i = ops.size(); i-- > 0;) {
    const Operation& op = ops[i];
    if (!redone && op.selective) {
      alive =
          detail::run_forward(block, alive, all_saved | alive, sink, [](const Operation& o) { return o.selective; });
      redone = true;
    }
    // Gradients of the inputs appear; one that exists already (a second consumer) is added to, the addend being alive
    // beside it for a moment.
    Set born = 0;
    const bool in_place = op.kernel == Kernel::cross_entropy_in_place || op.kernel == Kernel::cross_entropy_fused;
    if (in_place) {
      // The gradient is written over what the kernel kept, then handed on in the dtype of the logits.
      for (BlockId id : op.in) {
        if ((alive & bit(id)) && !(caller & bit(id))) {
          sink.free(id);
          alive &= ~bit(id);
        }
      }
    }
    for (BlockId id : op.in) {
      if (!block.storages[id].differentiable) continue;
      if (id == block.input && !block.input_needs_gradient) continue;
      sink.allocate_gradient(id);
      if (gradients & bit(id)) {
        born |= bit(id);  // an addend
      } else {
        gradients |= bit(id);
      }
    }
    for (BlockId id : op.scratch_backward) sink.allocate(id);
    for (BlockId id : op.scratch_backward) sink.free(id);
    detail::for_each(born, [&](BlockId id) { sink.free_gradient(id); });
    for (BlockId id : op.out) {
      if (gradients & bit(id)) {
        sink.free_gradient(id);
        gradients &= ~bit(id);
      }
    }
    // Whatever no earlier operation needs any more is freed.
    Set needed = caller;
    if (recompute == Recompute::full && i > 0) needed |= bit(block.input);
    for (size_t j = 0; j < i; ++j) {
      needed |= kernel_saves(ops[j]);
      if (!redone && ops[j].selective) needed |= detail::set_of(ops[j].in);
    }
    const Set done = alive & ~needed;
    detail::for_each(done, [&](BlockId id) { sink.free(id); });
    alive &= ~done;
  }
  detail::for_each(alive & caller, [&](BlockId id) { sink.free(id); });
}

}  // namespace vram
