#include "model/patterns.h"

#include <cctype>
#include <functional>
#include <memory>

namespace vram::arch {

bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

namespace {

constexpr size_t kMaxPattern = 2000;
constexpr int kMaxDepth = 40;
constexpr int kMaxSteps = 20'000;

// A backtracking matcher over the pattern text itself. `steps` bounds the work, so hostile patterns end quickly.
class Expression {
 public:
  Expression(std::string_view pattern, std::string_view text) : p_(pattern), t_(text) {}

  bool match(bool whole) {
    if (p_.size() > kMaxPattern) return false;
    return alternatives(0, p_.size(), 0, 0, [&](size_t at) { return !whole || at == t_.size(); });
  }

 private:
  using Next = std::function<bool(size_t)>;

  // The end of the alternative that starts at `begin`: a '|' of this level, or `end`.
  size_t branch_end(size_t begin, size_t end) const {
    int level = 0;
    for (size_t i = begin; i < end; ++i) {
      if (p_[i] == '\\') {
        ++i;
      } else if (p_[i] == '[') {
        i = class_end(i, end) - 1;
      } else if (p_[i] == '(') {
        ++level;
      } else if (p_[i] == ')') {
        --level;
      } else if (p_[i] == '|' && level == 0) {
        return i;
      }
    }
    return end;
  }

  size_t class_end(size_t open, size_t end) const {
    size_t i = open + 1;
    if (i < end && p_[i] == '^') ++i;
    if (i < end && p_[i] == ']') ++i;
    while (i < end && p_[i] != ']') ++i;
    return i < end ? i + 1 : end;
  }

  size_t group_end(size_t open, size_t end) const {
    int level = 0;
    for (size_t i = open; i < end; ++i) {
      if (p_[i] == '\\') {
        ++i;
      } else if (p_[i] == '[') {
        i = class_end(i, end) - 1;
      } else if (p_[i] == '(') {
        ++level;
      } else if (p_[i] == ')' && --level == 0) {
        return i + 1;
      }
    }
    return end;
  }

  size_t atom_end(size_t begin, size_t end) const {
    if (p_[begin] == '(') return group_end(begin, end);
    if (p_[begin] == '[') return class_end(begin, end);
    if (p_[begin] == '\\') return begin + 2 <= end ? begin + 2 : end;
    return begin + 1;
  }

  bool one(size_t begin, size_t end, char c) const {
    const auto u = static_cast<unsigned char>(c);
    if (p_[begin] == '.') return true;
    if (p_[begin] == '\\' && begin + 1 < end) return escaped(p_[begin + 1], u);
    if (p_[begin] != '[') return p_[begin] == c;
    size_t i = begin + 1;
    const bool negated = p_[i] == '^';
    if (negated) ++i;
    bool in = false;
    for (bool first = true; i + 1 < end; first = false, ++i) {
      if (p_[i] == ']' && !first) break;
      if (p_[i] == '\\' && i + 2 < end) {
        in = in || escaped(p_[++i], u);
      } else if (i + 3 < end && p_[i + 1] == '-' && p_[i + 2] != ']') {
        in = in || (static_cast<unsigned char>(p_[i]) <= u && u <= static_cast<unsigned char>(p_[i + 2]));
        i += 2;
      } else {
        in = in || p_[i] == c;
      }
    }
    return in != negated;
  }

  static bool escaped(char kind, unsigned char c) {
    switch (kind) {
      case 'd':
        return std::isdigit(c) != 0;
      case 'w':
        return std::isalnum(c) != 0 || c == '_';
      case 's':
        return std::isspace(c) != 0;
      default:
        return static_cast<unsigned char>(kind) == c;
    }
  }

  bool alternatives(size_t begin, size_t end, size_t at, int depth, const Next& next) {
    if (depth > kMaxDepth) return false;
    for (size_t b = begin;;) {
      const size_t e = branch_end(b, end);
      if (sequence(b, e, at, depth, next)) return true;
      if (e >= end) return false;
      b = e + 1;
    }
  }

  bool sequence(size_t begin, size_t end, size_t at, int depth, const Next& next) {
    if (++steps_ > kMaxSteps) return false;
    if (begin >= end) return next(at);
    if (p_[begin] == '^') return at == 0 && sequence(begin + 1, end, at, depth, next);
    if (p_[begin] == '$') return at == t_.size() && sequence(begin + 1, end, at, depth, next);
    const size_t atom = atom_end(begin, end);
    const char quantifier = atom < end ? p_[atom] : '\0';
    if (p_[begin] == '(') return group(begin, atom, end, quantifier, at, depth, next);
    if (quantifier == '*' || quantifier == '+' || quantifier == '?') {
      // Greedy: the longest run first.
      const size_t least = quantifier == '+' ? 1 : 0;
      const size_t most = quantifier == '?' ? 1 : t_.size();
      size_t run = 0;
      while (run < most && at + run < t_.size() && one(begin, atom, t_[at + run])) ++run;
      size_t rest = atom + 1;
      if (rest < end && p_[rest] == '?') ++rest;  // laziness changes what is captured, not what matches
      for (size_t n = run + 1; n-- > least;) {
        if (sequence(rest, end, at + n, depth, next)) return true;
      }
      return false;
    }
    if (at >= t_.size() || !one(begin, atom, t_[at])) return false;
    return sequence(atom, end, at + 1, depth, next);
  }

  bool group(size_t open, size_t close, size_t end, char quantifier, size_t at, int depth, const Next& next) {
    size_t inner = open + 1;
    if (inner + 1 < close && p_[inner] == '?') {
      if (p_[inner + 1] != ':') return false;  // look-around and named groups are beyond this subset
      inner += 2;
    }
    const size_t inner_end = close > inner && p_[close - 1] == ')' ? close - 1 : close;
    const bool repeats = quantifier == '*' || quantifier == '+';
    const bool optional = quantifier == '*' || quantifier == '?';
    const size_t rest = repeats || optional ? close + 1 : close;
    const auto after = [&, rest](size_t now) { return sequence(rest, end, now, depth + 1, next); };
    const Next body = [&](size_t now) {
      if (repeats && now > at && group(open, close, end, '*', now, depth + 1, next)) return true;
      return after(now);
    };
    if (depth < kMaxDepth && alternatives(inner, inner_end, at, depth + 1, body)) return true;
    return optional && after(at);
  }

  std::string_view p_, t_;
  int steps_ = 0;
};

bool is_number(std::string_view s) {
  for (char c : s) {
    if (c < '0' || c > '9') return false;
  }
  return !s.empty();
}

// The first path part that is a number and followed by a dot, which is the layer in every naming: "7" of
// "a.layers.7.b".
std::string_view layer_part(std::string_view name) {
  for (size_t at = 0; at < name.size();) {
    const size_t dot = name.find('.', at);
    if (dot == std::string_view::npos) return {};
    const std::string_view part = name.substr(at, dot - at);
    if (part.find('*') != std::string_view::npos || part.find('?') != std::string_view::npos) return {};
    if (is_number(part)) return part;
    at = dot + 1;
  }
  return {};
}

}  // namespace

bool regex_match(std::string_view pattern, std::string_view text, bool whole) {
  return Expression(pattern, text).match(whole);
}

ModulePatterns::ModulePatterns(Manner manner, const std::vector<std::string>& patterns) : manner_(manner) {
  for (const std::string& pattern : patterns) {
    const bool expression = manner == Manner::compressed_tensors
                                ? pattern.rfind("re:", 0) == 0
                                : pattern.find_first_of("*?[\\^$|(") != std::string::npos;
    if (!expression) {
      literals_.insert(pattern);
      continue;
    }
    const std::string_view layer = manner == Manner::shell ? layer_part(pattern) : std::string_view();
    if (layer.empty()) {
      general_.push_back(pattern);
    } else {
      by_layer_[std::string(layer)].push_back(pattern);
    }
  }
}

bool ModulePatterns::matches_one(const std::string& pattern, std::string_view module) const {
  switch (manner_) {
    case Manner::transformers:
      return regex_match(pattern, module);
    case Manner::shell:
      return glob_match(pattern, module);
    case Manner::compressed_tensors:
      return regex_match(std::string_view(pattern).substr(3), module);
  }
  return false;
}

bool ModulePatterns::matches(std::string_view module) const {
  if (!literals_.empty()) {
    std::string key(module);
    if (literals_.count(key)) return true;
    if (manner_ != Manner::compressed_tensors) {
      for (size_t dot = module.find('.'); dot != std::string_view::npos; dot = module.find('.', dot + 1)) {
        if (literals_.count(std::string(module.substr(0, dot)))) return true;
        if (manner_ == Manner::transformers && literals_.count(std::string(module.substr(dot + 1)))) return true;
      }
    }
  }
  if (!by_layer_.empty()) {
    const auto found = by_layer_.find(std::string(layer_part(module)));
    if (found != by_layer_.end()) {
      for (const std::string& pattern : found->second) {
        if (matches_one(pattern, module)) return true;
      }
    }
  }
  for (const std::string& pattern : general_) {
    if (matches_one(pattern, module)) return true;
  }
  return false;
}

}  // namespace vram::arch
