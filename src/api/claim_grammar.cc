#include "api/claim_grammar.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <stdexcept>

#include "base/text.h"

namespace vram {
namespace {

constexpr int kMostSteps = 400'000;  // some milliseconds; sentences take a few thousand
constexpr int kMostDepth = 1'000;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

size_t skip_spaces(std::string_view text, size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

[[noreturn]] void bad_pattern(std::string_view pattern, const std::string& problem) {
  throw std::logic_error("pattern '" + std::string(pattern) + "' " + problem);
}

size_t length_of_character(std::string_view text, size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  const size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
  return std::min(n, text.size() - at);
}

// Marks that only separate. Those of Latin script are kept where they are part of a number or a name.
bool separates(std::string_view c) {
  static constexpr std::string_view marks[] = {"，", "。", "！", "？", "、",     "；",    "：", "（",
                                               "）", "“",  "”",  "‘",  "「",     "」",    "《", "》",
                                               "…",  "—",  "–",  "·",  "\u00a0", "\u3000"};
  return std::find(std::begin(marks), std::end(marks), c) != std::end(marks);
}

}  // namespace

std::string normal_sentence(std::string_view text, const std::map<std::string, std::string, std::less<>>& fold) {
  std::string plain;  // half-width, folded, lower case
  while (!text.empty()) {
    const size_t bad = find_invalid_utf8(text);
    const std::string_view good = text.substr(0, bad);
    for (size_t at = 0; at < good.size();) {
      const std::string_view c = good.substr(at, length_of_character(good, at));
      at += c.size();
      const auto b = [&](size_t i) { return static_cast<unsigned char>(c[i]); };
      if (c.size() == 1) {
        plain += b(0) < 0x20 || b(0) == 0x7f ? ' ' : static_cast<char>(std::tolower(b(0)));
      } else if (separates(c)) {
        plain += ' ';
      } else if (c == "×") {
        plain += 'x';
      } else if (c == "’") {
        plain += '\'';
      } else if (c == "\u2011" || c == "\u2010") {
        plain += '-';
      } else if (c.size() == 3 && b(0) == 0xEF && (b(1) == 0xBC || b(1) == 0xBD)) {
        // U+FF01 .. U+FF5E are the ASCII characters in full width.
        const int code = ((b(0) & 0x0F) << 12) | ((b(1) & 0x3F) << 6) | (b(2) & 0x3F);
        if (code >= 0xFF01 && code <= 0xFF5E) {
          plain += static_cast<char>(std::tolower(code - 0xFF01 + 0x21));
        } else {
          plain += c;
        }
      } else {
        const auto found = fold.find(c);
        plain += found == fold.end() ? std::string(c) : found->second;
      }
    }
    if (bad == std::string_view::npos) break;
    plain += '?';
    text.remove_prefix(bad + 1);
  }
  std::string out;
  for (size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    const char before = i > 0 ? plain[i - 1] : ' ', after = i + 1 < plain.size() ? plain[i + 1] : ' ';
    const bool between_digits =
        std::isdigit(static_cast<unsigned char>(before)) && std::isdigit(static_cast<unsigned char>(after));
    bool space = c == ' ' || c == '!' || c == '"' || c == '(' || c == ')' || c == ';' || c == '`' || c == '?';
    if (c == ',') space = !between_digits;
    if (c == '.' || c == ':') space = !is_word(after);
    if (c == '?' && (is_word(before) && is_word(after))) space = false;
    if (space) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else {
      out += c;
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// --- reading patterns -----------------------------------------------------------------------------------------------

std::vector<Grammar::Sequence> Grammar::read(const std::string& pattern) {
  size_t at = 0;
  // Choices up to the closing mark `end` (or the pattern's end).
  const std::function<std::vector<Sequence>(char)> choices_until = [&](char end) {
    std::vector<Sequence> out(1);
    while (true) {
      at = skip_spaces(pattern, at);
      if (at == pattern.size()) {
        if (end != '\0') bad_pattern(pattern, std::string("lacks ") + end);
        return out;
      }
      const char c = pattern[at];
      if (c == end) {
        ++at;
        return out;
      }
      if (c == '|') {
        out.emplace_back();
        ++at;
        continue;
      }
      Item item;
      if (c == '[' || c == '(' || c == '{') {
        ++at;
        item.kind = c == '[' ? Item::Kind::optional : c == '(' ? Item::Kind::choice : Item::Kind::repeated;
        item.choices = choices_until(c == '[' ? ']' : c == '(' ? ')' : '}');
      } else if (c == '<') {
        const size_t close = pattern.find('>', at);
        if (close == std::string::npos) bad_pattern(pattern, "lacks >");
        item.kind = Item::Kind::reference;
        item.text = pattern.substr(at + 1, close - at - 1);
        const size_t colon = item.text.find(':');
        if (colon != std::string::npos) {
          item.key = item.text.substr(colon + 1);
          item.text.resize(colon);
        }
        at = close + 1;
      } else {
        const size_t stop = pattern.find_first_of(" [](){}<>|", at);
        item.text = pattern.substr(at, stop == std::string::npos ? stop : stop - at);
        if (item.text.empty()) bad_pattern(pattern, std::string("has an unexpected ") + c);
        at += item.text.size();
      }
      out.back().push_back(std::move(item));
    }
  };
  auto out = choices_until('\0');
  for (const Sequence& s : out) {
    if (s.empty()) bad_pattern(pattern, "has an empty choice");
  }
  return out;
}

void Grammar::rule(std::string name, const std::vector<std::string>& patterns, std::vector<Meaning> sets) {
  if (names_.count(name) > 0) throw std::logic_error("rule '" + name + "' is given twice");
  names_.emplace(name, static_cast<int>(rules_.size()));
  Rule r{std::move(name), {}, std::move(sets)};
  for (const std::string& p : patterns) {
    for (Sequence& s : read(p)) r.choices.push_back(std::move(s));
  }
  rules_.push_back(std::move(r));
}

void Grammar::sentence(std::string id, const std::vector<std::string>& patterns, std::vector<Meaning> sets) {
  Rule r{std::move(id), {}, std::move(sets)};
  for (const std::string& p : patterns) {
    for (Sequence& s : read(p)) r.choices.push_back(std::move(s));
  }
  sentences_.push_back(std::move(r));
}

void Grammar::resolve(std::vector<Sequence>& choices, const std::vector<std::string>& slot_names) {
  for (Sequence& s : choices) {
    for (Item& item : s) {
      resolve(item.choices, slot_names);
      if (item.kind != Item::Kind::reference) continue;
      const auto found = names_.find(item.text);
      if (found != names_.end()) {
        item.rule = found->second;
      } else if (std::find(slot_names.begin(), slot_names.end(), item.text) == slot_names.end()) {
        throw std::logic_error("no rule or slot <" + item.text + ">");
      } else if (item.key.empty()) {
        item.key = item.text;
      }
    }
  }
}

// Whether `rule` can come first in one of the choices, which would never end.
bool Grammar::begins_with(const std::vector<Sequence>& choices, int rule, std::vector<char>& seen) const {
  for (const Sequence& s : choices) {
    for (const Item& item : s) {
      if (item.kind == Item::Kind::reference && item.rule >= 0) {
        if (item.rule == rule) return true;
        if (!seen[static_cast<size_t>(item.rule)]) {
          seen[static_cast<size_t>(item.rule)] = 1;
          if (begins_with(rules_[static_cast<size_t>(item.rule)].choices, rule, seen)) return true;
        }
      }
      if (begins_with(item.choices, rule, seen)) return true;
      if (item.kind != Item::Kind::optional && item.kind != Item::Kind::repeated) break;
    }
  }
  return false;
}

void Grammar::close(const std::vector<std::string>& slot_names) {
  for (Rule& r : rules_) resolve(r.choices, slot_names);
  for (Rule& r : sentences_) resolve(r.choices, slot_names);
  for (size_t i = 0; i < rules_.size(); ++i) {
    std::vector<char> seen(rules_.size(), 0);
    if (begins_with(rules_[i].choices, static_cast<int>(i), seen)) {
      throw std::logic_error("rule <" + rules_[i].name + "> begins with itself");
    }
  }
}

// --- matching -------------------------------------------------------------------------------------------------------

// Recursive descent with a continuation: every way to read the sentence is tried in the order of the patterns.
struct Grammar::Matcher {
  const Grammar& grammar;
  const Slots& slots;
  std::string_view text;
  Result result;
  const std::string* current = nullptr;
  int steps = 0, depth = 0;
  bool spent = false;
  std::map<std::pair<std::string_view, size_t>, std::vector<Taken>> taken;

  using Then = std::function<bool(size_t)>;

  void missed(size_t at, const std::string& what) {
    if (at < result.furthest) return;
    if (at > result.furthest || result.nearest.empty()) {
      result.expected.clear();
      result.furthest = at;
      result.nearest = *current;
    }
    if (std::find(result.expected.begin(), result.expected.end(), what) == result.expected.end()) {
      result.expected.push_back(what);
    }
  }

  bool any(const std::vector<Sequence>& choices, size_t at, const Then& then) {
    for (const Sequence& s : choices) {
      if (sequence(s, 0, at, then)) return true;
    }
    return false;
  }

  bool word(const std::string& w, size_t at, const Then& then) {
    const size_t begin = skip_spaces(text, at);
    const bool joined = begin == at && begin > 0 && is_word(text[begin - 1]) && is_word(w.front());
    if (joined || text.compare(begin, w.size(), w) != 0) return missed(begin, w), false;
    const size_t end = begin + w.size();
    // "llama-3" is one word: its first part alone is none.
    const bool goes_on = end < text.size() &&
                         (is_word(text[end]) || (text[end] == '-' && end + 1 < text.size() && is_word(text[end + 1])));
    if (is_word(w.back()) && goes_on) return missed(begin, w), false;
    return then(end);
  }

  bool slot(const Item& item, size_t at, const Then& then) {
    const size_t begin = skip_spaces(text, at);
    if (begin == at && begin > 0 && begin < text.size() && is_word(text[begin - 1]) && is_word(text[begin])) {
      return missed(begin, "<" + item.text + ">"), false;
    }
    auto& ways = [&]() -> std::vector<Taken>& {
      const auto key = std::make_pair(std::string_view(item.text), begin);
      const auto found = taken.find(key);
      if (found != taken.end()) return found->second;
      return taken.emplace(key, slots.find(item.text)->second(text, begin)).first->second;
    }();
    if (ways.empty()) return missed(begin, "<" + item.text + ">"), false;
    for (const Taken& way : ways) {
      result.meanings.push_back({item.key, way.value});
      if (then(way.end)) return true;
      result.meanings.pop_back();
    }
    return false;
  }

  bool repeated(const Item& item, size_t at, const Then& then) {
    // As many as there are, then fewer.
    return any(item.choices, at, [&](size_t end) { return end > at && repeated(item, end, then); }) || then(at);
  }

  bool sequence(const Sequence& s, size_t i, size_t at, const Then& then) {
    if (i == s.size()) return then(at);
    if (spent || ++steps > kMostSteps || depth > kMostDepth) return spent = true, false;
    ++depth;
    const Item& item = s[i];
    const Then rest = [&](size_t end) { return sequence(s, i + 1, end, then); };
    bool done = false;
    switch (item.kind) {
      case Item::Kind::word:
        done = word(item.text, at, rest);
        break;
      case Item::Kind::choice:
        done = any(item.choices, at, rest);
        break;
      case Item::Kind::optional:
        done = any(item.choices, at, rest) || rest(at);
        break;
      case Item::Kind::repeated:
        done = repeated(item, at, rest);
        break;
      case Item::Kind::reference:
        if (item.rule < 0) {
          done = slot(item, at, rest);
        } else {
          const Rule& r = grammar.rules_[static_cast<size_t>(item.rule)];
          const size_t before = result.meanings.size();
          for (const Meaning& m : r.sets) result.meanings.push_back(m);
          done = any(r.choices, at, rest);
          if (!done) result.meanings.resize(before);
        }
        break;
    }
    --depth;
    return done;
  }

  Result run() {
    for (const Rule& r : grammar.sentences_) {
      current = &r.name;
      result.meanings = r.sets;
      const bool done = any(r.choices, 0, [&](size_t end) {
        if (skip_spaces(text, end) == text.size()) return true;
        missed(skip_spaces(text, end), "");
        return false;
      });
      if (done && !spent) {
        result.sentence = r.name;
        return std::move(result);
      }
      if (spent) break;
    }
    result.meanings.clear();
    return std::move(result);
  }
};

Grammar::Result Grammar::parse(std::string_view text, const Slots& slots) const {
  Matcher m{*this, slots, text, {}, nullptr, 0, 0, false, {}};
  return m.run();
}

}  // namespace vram
