#include "ledger/ledger.h"

#include <fmt/format.h>

#include <algorithm>

namespace vram {

Bytes Ledger::of(Category category) const {
  Bytes total = 0;
  for (const Line& line : lines) {
    if (line.category == category) total += line.bytes;
  }
  return total;
}

namespace {

std::string constants_of(const Fast&) { return {}; }
std::string constants_of(const Traced& n) { return n.constants(); }

}  // namespace

template <Number N>
Ledger make_ledger(const Program<N>& program, Tier tier) {
  const Peak peak = find_peak(program, tier);
  Ledger out;
  out.tier = tier;
  out.bytes = peak.bytes;
  out.when = peak.when;
  for (const Alive& alive : peak.alive) {
    const Storage<N>& s = program.storages()[alive.storage];
    const N total = N(alive.count) * s.bytes;
    if (total.value() == 0 && total.high() == 0) continue;
    out.lines.push_back({.name = s.name,
                         .owner = s.owner,
                         .category = s.category,
                         .tier = s.tier,
                         .life = s.life,
                         .count = alive.count,
                         .each = s.bytes.value(),
                         .bytes = total.value(),
                         .low = total.low(),
                         .high = total.high(),
                         .formula = s.bytes.formula(),
                         .constants = constants_of(s.bytes)});
    out.low = checked_add(out.low, total.low());
    out.high = checked_add(out.high, total.high());
  }
  return out;
}

template Ledger make_ledger<Fast>(const Program<Fast>&, Tier);
template Ledger make_ledger<Traced>(const Program<Traced>&, Tier);

namespace {

void insert(Node& parent, const std::vector<std::string>& path, size_t depth, const Line& line) {
  parent.bytes += line.bytes;
  parent.low += line.low;
  parent.high += line.high;
  if (depth == path.size()) {
    parent.children.push_back({.name = line.name,
                               .count = line.count,
                               .bytes = line.bytes,
                               .low = line.low,
                               .high = line.high,
                               .formula = line.formula});
    return;
  }
  for (Node& child : parent.children) {
    if (child.name == path[depth] && child.count == 0) return insert(child, path, depth + 1, line);
  }
  parent.children.push_back({.name = path[depth]});
  insert(parent.children.back(), path, depth + 1, line);
}

std::vector<std::string> path_of(const Line& line, View by) {
  switch (by) {
    case View::category:
      return {std::string(category_name(line.category)), line.owner};
    case View::life:
      return {std::string(life_name(line.life)), std::string(category_name(line.category))};
    case View::storage:
      return {};
    case View::module:
      break;
  }
  std::vector<std::string> path;
  size_t begin = 0;
  while (begin <= line.owner.size()) {
    const size_t end = std::min(line.owner.find('.', begin), line.owner.size());
    path.push_back(line.owner.substr(begin, end - begin));
    begin = end + 1;
  }
  path.emplace_back(category_name(line.category));
  return path;
}

std::string check_node(const Node& node) {
  if (node.children.empty()) return {};
  Bytes sum = 0;
  for (const Node& child : node.children) {
    sum += child.bytes;
    std::string wrong = check_node(child);
    if (!wrong.empty()) return wrong;
  }
  if (sum == node.bytes) return {};
  return fmt::format("{}: {} B, but its children sum to {} B", node.name, node.bytes, sum);
}

}  // namespace

Node view(const Ledger& ledger, View by) {
  Node root{.name = std::string(tier_name(ledger.tier))};
  for (const Line& line : ledger.lines) insert(root, path_of(line, by), 0, line);
  return root;
}

std::string check_sums(const Ledger& ledger, const Node& root) {
  if (root.bytes != ledger.bytes) return fmt::format("root {} B, ledger {} B", root.bytes, ledger.bytes);
  return check_node(root);
}

}  // namespace vram
