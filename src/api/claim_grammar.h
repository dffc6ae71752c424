#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vram {

/// A piece of a sentence that a rule or a slot took, and what it stands for: "task" = "train", "tokens" = "32768".
struct Meaning {
  std::string key, value;
};

/// One way in which a slot takes text: up to byte `end`, standing for `value`.
struct Taken {
  size_t end = 0;
  std::string value;
};

/// What can stand in a slot at byte `at` of a sentence, longest first; empty where nothing can.
using Slot = std::function<std::vector<Taken>(std::string_view sentence, size_t at)>;
using Slots = std::map<std::string, Slot, std::less<>>;

/// A closed grammar of sentences. Patterns are written as data:
///   word            these letters (in Latin script up to a word's end; hyphens join); spaces around them do not matter
///   [a b]           may be missing
///   (a | b c)       one of these
///   {a}             any number of times
///   <name>          a rule, or a slot; <name:key> files what the slot takes under another key
/// A rule is a list of patterns and a list of meanings that hold where it is used ("task=train").
class Grammar {
 public:
  void rule(std::string name, const std::vector<std::string>& patterns, std::vector<Meaning> sets = {});
  /// A whole sentence; `id` comes back from parse().
  void sentence(std::string id, const std::vector<std::string>& patterns, std::vector<Meaning> sets = {});
  /// Resolves names. std::logic_error for patterns that can't be read, unknown names and left recursion.
  void close(const std::vector<std::string>& slot_names);

  struct Result {
    std::string sentence;           ///< id of what matched; empty: nothing
    std::vector<Meaning> meanings;  ///< in the order of the sentence
    // Where nothing matched:
    size_t furthest = 0;                ///< byte up to which some sentence was followed
    std::string nearest;                ///< id of that sentence
    std::vector<std::string> expected;  ///< words and "<slot>"s that could have come there
  };
  /// The first sentence that the whole of `text` is. Gives up, as if nothing matched, after a bounded number of steps.
  Result parse(std::string_view text, const Slots& slots) const;

 private:
  struct Item {
    enum class Kind : uint8_t { word, reference, optional, choice, repeated } kind = Kind::word;
    std::string text;                        // the word, or the name
    std::string key;                         // of a slot
    int rule = -1;                           // reference: the rule; -1: a slot
    std::vector<std::vector<Item>> choices;  // optional, choice, repeated
  };
  using Sequence = std::vector<Item>;
  struct Rule {
    std::string name;
    std::vector<Sequence> choices;
    std::vector<Meaning> sets;
  };
  struct Matcher;
  static std::vector<Sequence> read(const std::string& pattern);
  void resolve(std::vector<Sequence>& choices, const std::vector<std::string>& slot_names);
  bool begins_with(const std::vector<Sequence>& choices, int rule, std::vector<char>& seen) const;

  std::vector<Rule> rules_, sentences_;
  std::map<std::string, int, std::less<>> names_;
};

/// A sentence as the grammar reads it: lower case, half-width, one space between words, without marks that carry no
/// meaning. Bytes that are no UTF-8 become "?". `fold` replaces single characters (traditional by simplified ones).
std::string normal_sentence(std::string_view text, const std::map<std::string, std::string, std::less<>>& fold = {});

}  // namespace vram
