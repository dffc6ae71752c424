#include "ledger/number.h"

#include <algorithm>
#include <vector>

#include "base/units.h"

namespace vram {

struct Traced::Node {
  enum class Op : uint8_t { literal, symbol, constant, add, sub, mul, ceil_div, floor_div, max };
  Op op = Op::literal;
  bool overflow = false;
  int64_t value = 0;
  int64_t low = 0;  // what the assumed and measured constants below leave open
  int64_t high = 0;
  std::string name;  // of a symbol or constant
  std::shared_ptr<const Node> left, right;
};

namespace {

using Node = Traced::Node;
using Op = Node::Op;

std::shared_ptr<const Node> leaf(Op op, std::string name, int64_t value, int64_t low, int64_t high) {
  auto node = std::make_shared<Node>();
  node->op = op;
  node->name = std::move(name);
  node->value = value;
  node->low = low;
  node->high = high;
  return node;
}

// All operations of the ledger are monotone, falling only in the second operand of a difference or quotient, and sizes
// are never negative: the ends of the range follow from the ends of the operands.
template <class Apply>
std::shared_ptr<const Node> binary(Op op, std::shared_ptr<const Node> a, std::shared_ptr<const Node> b, Apply apply) {
  auto node = std::make_shared<Node>();
  node->op = op;
  const bool falling = op == Op::sub || op == Op::ceil_div || op == Op::floor_div;
  const Fast value = apply(Fast(a->value), Fast(b->value));
  const Fast low = apply(Fast(a->low), Fast(falling ? b->high : b->low));
  const Fast high = apply(Fast(a->high), Fast(falling ? b->low : b->high));
  node->overflow = a->overflow || b->overflow || value.overflowed() || low.overflowed() || high.overflowed();
  if (!node->overflow) {
    node->value = value.value();
    node->low = low.value();
    node->high = high.value();
  }
  node->left = std::move(a);
  node->right = std::move(b);
  return node;
}

int precedence(Op op) {
  switch (op) {
    case Op::add:
    case Op::sub:
      return 1;
    case Op::mul:
      return 2;
    default:
      return 3;
  }
}

void print(const Node& node, bool numbers, std::string& out) {
  const auto operand = [&](const Node& child, bool strict) {
    const bool parens =
        strict ? precedence(child.op) <= precedence(node.op) : precedence(child.op) < precedence(node.op);
    if (parens) out += '(';
    print(child, numbers, out);
    if (parens) out += ')';
  };
  // Inside the brackets of a quotient, products need no parentheses and sums do.
  const auto quotient = [&](const Node& n) {
    const auto side = [&](const Node& child, int least) {
      const bool parens = precedence(child.op) < least;
      if (parens) out += '(';
      print(child, numbers, out);
      if (parens) out += ')';
    };
    side(*n.left, 2);
    out += " / ";
    side(*n.right, 3);
  };
  switch (node.op) {
    case Op::literal:
      out += with_commas(node.value);
      break;
    case Op::symbol:
    case Op::constant:
      out += numbers ? with_commas(node.value) : node.name;
      break;
    case Op::add:
      operand(*node.left, false);
      out += " + ";
      operand(*node.right, false);
      break;
    case Op::sub:
      operand(*node.left, false);
      out += " - ";
      operand(*node.right, true);
      break;
    case Op::mul:
      operand(*node.left, false);
      out += "\u00b7";
      operand(*node.right, false);
      break;
    case Op::ceil_div:
      out += "\u2308";
      quotient(node);
      out += "\u2309";
      break;
    case Op::floor_div:
      out += "\u230a";
      quotient(node);
      out += "\u230b";
      break;
    case Op::max:
      out += "max(";
      print(*node.left, numbers, out);
      out += ", ";
      print(*node.right, numbers, out);
      out += ")";
      break;
  }
}

void collect_constants(const Node& node, std::vector<std::string>& ids) {
  if (node.op == Op::constant && std::find(ids.begin(), ids.end(), node.name) == ids.end()) ids.push_back(node.name);
  if (node.left) collect_constants(*node.left, ids);
  if (node.right) collect_constants(*node.right, ids);
}

bool is_literal(const Node& node, int64_t value) { return node.op == Op::literal && node.value == value; }

// Exact division is written with a plain slash: "P / dp" rather than a ceiling that does nothing would hide padding, so
// the ceiling is kept; only division by the literal 1 and products with the literal 1 disappear.
}  // namespace

Traced::Traced(int64_t literal) : node_(leaf(Op::literal, {}, literal, literal, literal)) {}

Traced Traced::symbol(std::string_view name, int64_t value) {
  return Traced(leaf(Op::symbol, std::string(name), value, value, value));
}

Traced Traced::constant(const Constant& c) { return Traced(leaf(Op::constant, c.id, c.value, c.low, c.high)); }

int64_t Traced::value() const {
  if (node_->overflow) throw OverflowError("a size exceeds 2^63 bytes: " + expression());
  return node_->value;
}

int64_t Traced::low() const {
  value();
  return node_->low;
}

int64_t Traced::high() const {
  value();
  return node_->high;
}

std::string Traced::expression() const {
  std::string out;
  print(*node_, false, out);
  return out;
}

std::string Traced::formula() const {
  const std::string symbols = expression();
  std::string numbers;
  print(*node_, true, numbers);
  const std::string result = with_commas(value());
  std::string out = symbols;
  if (numbers != symbols) out += " = " + numbers;
  if (result != numbers) out += " = " + result;
  return out;
}

std::string Traced::constants() const {
  std::vector<std::string> ids;
  collect_constants(*node_, ids);
  std::string out;
  for (const std::string& id : ids) out += (out.empty() ? "" : ", ") + id;
  return out;
}

Traced operator+(const Traced& a, const Traced& b) {
  if (is_literal(*a.node_, 0)) return b;
  if (is_literal(*b.node_, 0)) return a;
  return Traced(binary(Op::add, a.node_, b.node_, [](Fast x, Fast y) { return x + y; }));
}

Traced operator-(const Traced& a, const Traced& b) {
  if (is_literal(*b.node_, 0)) return a;
  return Traced(binary(Op::sub, a.node_, b.node_, [](Fast x, Fast y) { return x - y; }));
}

Traced operator*(const Traced& a, const Traced& b) {
  if (is_literal(*a.node_, 1)) return b;
  if (is_literal(*b.node_, 1)) return a;
  return Traced(binary(Op::mul, a.node_, b.node_, [](Fast x, Fast y) { return x * y; }));
}

Traced ceil_div(const Traced& a, const Traced& b) {
  if (b.node_->value == 1) return a;
  return Traced(binary(Op::ceil_div, a.node_, b.node_, [](Fast x, Fast y) { return ceil_div(x, y); }));
}

Traced floor_div(const Traced& a, const Traced& b) {
  if (b.node_->value == 1) return a;
  return Traced(binary(Op::floor_div, a.node_, b.node_, [](Fast x, Fast y) { return floor_div(x, y); }));
}

Traced max(const Traced& a, const Traced& b) {
  return Traced(binary(Op::max, a.node_, b.node_, [](Fast x, Fast y) { return max(x, y); }));
}

}  // namespace vram
