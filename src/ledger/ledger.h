#pragma once

#include <string>
#include <vector>

#include "ledger/program.h"

namespace vram {

/// One line of the account: the living instances of one storage kind.
struct Line {
  std::string name;
  std::string owner;
  Category category = Category::activations;
  Tier tier = Tier::device;
  Life life = Life::process;
  int64_t count = 0;
  Bytes each = 0;
  Bytes bytes = 0;          ///< count * each
  Bytes low = 0, high = 0;  ///< what assumed and measured constants leave open
  std::string formula;      ///< of one instance, from a traced run; empty from a fast one
  std::string constants;    ///< ids of the data rows inside
};

/// What is alive in one tier at its peak. sum(lines.bytes) == bytes; nothing is counted twice or left without a name.
struct Ledger {
  Tier tier = Tier::device;
  Bytes bytes = 0;
  Bytes low = 0, high = 0;
  std::vector<Instant> when;
  std::vector<Line> lines;

  Bytes of(Category category) const;
};

/// The ledger of a program's peak.
template <Number N>
Ledger make_ledger(const Program<N>& program, Tier tier);

/// A node of a view; bytes equals the sum over the children where there are any.
struct Node {
  std::string name;
  int64_t count = 0;  ///< of a leaf: living instances
  Bytes bytes = 0;
  Bytes low = 0, high = 0;
  std::string formula;
  std::vector<Node> children;
};

enum class View : uint8_t { category, module, life, storage };

/// The ledger as a tree: grouped by category, module (owner path) or life, with storages as leaves.
Node view(const Ledger& ledger, View by);

/// Empty where every parent equals the sum of its children and the root equals the ledger, else what differs.
std::string check_sums(const Ledger& ledger, const Node& root);

}  // namespace vram
