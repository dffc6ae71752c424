#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/messages.h"
#include "base/units.h"

namespace vram {

/// How a report is written for one reader. Everything below returns text that ends in a newline where it is a line or
/// more, and holds escape sequences only where `color` is set.
struct Style {
  Lang lang = Lang::en;
  bool color = false;
  bool unicode = true;   ///< false: ASCII bars, rules and separators
  int width = 100;       ///< columns
  bool all = false;      ///< do not shorten lists
  bool explain = false;  ///< formulas under the lines they explain
  bool steps = false;    ///< the account as numbered lines to redo by hand
};

/// What a piece of text means; decides its colour. Nothing may depend on colour alone.
enum class Tone : uint8_t { plain, strong, dim, good, bad, warn, accent };

std::string paint(const Style& style, Tone tone, std::string_view text);

/// " · " between items of one line, or " | ".
std::string_view separator(const Style& style);

/// Replaces the typographic characters of reports (· × → … – block elements) by ASCII; other text is kept.
std::string to_ascii(std::string_view text);

// --- text ---

/// `text` broken into lines of at most `width` columns. The first line begins with `first` spaces, the others with
/// `rest`. Lines break at spaces, and anywhere between Chinese, Japanese and Korean characters except before closing or
/// after opening punctuation. A word longer than a line stays whole, so that a command or path can be copied.
std::string wrap(std::string_view text, int width, int first = 0, int rest = 0);
std::string paragraph(const Style& style, std::string_view text, int first = 2, int rest = 2);

/// The answer in one line, first of all output.
std::string answer_line(const Style& style, Tone tone, std::string_view text);
/// A blank line and a heading.
std::string heading(const Style& style, std::string_view text);
/// "a · b · c" from the margin, broken only between items.
std::string fact_line(const Style& style, const std::vector<std::string>& items);
/// "  Title: a · b · c", broken only between items.
std::string item_line(const Style& style, std::string_view title, const std::vector<std::string>& items);
/// "  What moves this most: ..." and "  Next: ..." (commands). Empty text where there are no items.
std::string moves_most_line(const Style& style, const std::vector<std::string>& items);
std::string next_line(const Style& style, const std::vector<std::string>& commands);

/// "61.20 GiB (60.40-62.90)"; the bare amount where the range is a point or too narrow to print.
std::string gib_with_range(Bytes value, Bytes low, Bytes high, int digits = 2);

// --- charts ---

enum class Track : uint8_t { none, shown };

/// A bar of exactly `columns` (at least 2), painted by nobody. The limit stands at the end of columns - 1, the last
/// column is for the marker of a value beyond it: "███████▍░░░░░░░ ", "███████████████▶". A positive value shows at
/// least the thinnest block. Not-a-number and negative values are empty.
std::string bar(const Style& style, double value, double limit, int columns, Track track = Track::shown);

/// One character a column from ▁ to █ between `low` and `high`; more values than columns share a column by maximum.
std::string sparkline(const Style& style, std::span<const double> values, double low, double high, int columns);

// --- tables ---

enum class Align : uint8_t { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

struct Cell {
  Cell(std::string value = {}, Tone t = Tone::plain) : text(std::move(value)), tone(t) {}
  Cell(const char* value, Tone t = Tone::plain) : text(value), tone(t) {}
  Cell(std::string_view value, Tone t = Tone::plain) : text(value), tone(t) {}
  std::string text;
  Tone tone;
};

/// Columns aligned by display width. Where the table is too wide, its last left-aligned column is wrapped.
class Table {
 public:
  /// Columns whose titles are all empty get no title line.
  explicit Table(std::vector<Column> columns, int indent = 2) : columns_(std::move(columns)), indent_(indent) {}
  /// Missing cells are empty; more cells than columns are a programming error (std::logic_error).
  Table& row(std::vector<Cell> cells);
  /// A line across the table.
  Table& rule();
  /// A line of text under the last row, indented to its second column (formulas).
  Table& note(std::string text);
  bool empty() const { return rows_.empty(); }
  std::string render(const Style& style) const;

 private:
  enum class Kind : uint8_t { cells, rule, note };
  struct Row {
    Kind kind;
    std::vector<Cell> cells;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
  int indent_;
};

/// One line of an account: "  parameters      ████       13.03 GiB   fp32 shards 1/8".
struct TreeLine {
  std::string label;
  double value = 0;  ///< for the bar; negative: no bar
  std::string amount;
  std::string note;
  int depth = 0;                         ///< nested lines are indented two columns a level
  std::vector<std::string> explanation;  ///< printed under the line with Style::explain
  Tone tone = Tone::plain;
  bool rule_above = false;  ///< a sum: a rule stands above it
};

/// An account with bars, the longest being `limit`. Notes that do not fit are wrapped under themselves.
std::string tree(const Style& style, std::span<const TreeLine> lines, double limit, int bar_columns = 22);

}  // namespace vram
