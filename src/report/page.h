#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/console.h"

namespace vram {

/// One cell of a page's table. `share` (0 to 1, or beyond) also draws a bar.
struct PageCell {
  PageCell(std::string value = {}, Tone t = Tone::plain) : text(std::move(value)), tone(t) {}
  PageCell(const char* value, Tone t = Tone::plain) : text(value), tone(t) {}
  PageCell(std::string_view value, Tone t = Tone::plain) : text(value), tone(t) {}
  static PageCell bar(double share);

  std::string text;
  Tone tone;
  std::optional<double> share;
};

struct PageRow {
  std::vector<PageCell> cells;
  std::vector<std::string> notes;  ///< under the row: formulas, reasons
  bool sum = false;                ///< a rule stands above it
};

/// A piece of a page. Exactly the members of its kind are used.
struct PageBlock {
  enum class Kind : uint8_t { heading, text, facts, list, table };
  Kind kind = Kind::text;
  std::string title;               ///< heading; of a list, before its items
  std::vector<std::string> items;  ///< text: paragraphs; facts: one line, broken between them; list: points
  std::vector<Column> columns;     ///< titles may be empty
  std::vector<PageRow> rows;
};

/// A report before it has a form: terminal text, Markdown and HTML are three writings of the same value.
struct Page {
  struct Verdict {
    Tone tone = Tone::plain;
    std::string text;
  };
  std::string title;              ///< of the document; terminal text begins with the verdicts
  std::vector<Verdict> verdicts;  ///< the answer, a line each
  std::vector<PageBlock> blocks;
  std::string footer;

  void heading(std::string text);
  void paragraph(std::string text);
  void facts(std::vector<std::string> items);
  void list(std::string name, std::vector<std::string> items);
  PageBlock& table(std::vector<Column> columns);
};

std::string render_text(const Page& page, const Style& style);
/// CommonMark with tables (GFM). Formulas stand under their rows in a column of their own.
std::string render_markdown(const Page& page, Lang lang);
/// One file: style inside, nothing is fetched, no scripts; prints on A4 and letter.
std::string render_html(const Page& page, Lang lang);

}  // namespace vram
