// Pages as Markdown.
#include "report/page.h"

namespace vram {
namespace {

// Text that comes from data must not become markup. Inside tables a bar would end the cell.
std::string escaped(std::string_view text, bool in_table) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '<':
      case '>':
      case '#':
      case '~':
        out += '\\';
        out += c;
        break;
      case '|':
        out += in_table ? "\\|" : "|";
        break;
      case '\n':
      case '\r':
        out += ' ';
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string toned(const PageCell& cell) {
  const std::string text = escaped(cell.text, true);
  const bool strong = cell.tone == Tone::strong || cell.tone == Tone::bad || cell.tone == Tone::good;
  return strong && !text.empty() ? "**" + text + "**" : text;
}

// Bars say nothing that the figures beside them do not.
bool is_drawn(const PageBlock& block, size_t column) {
  for (const PageRow& row : block.rows) {
    if (column < row.cells.size() && (row.cells[column].share || !row.cells[column].text.empty())) {
      return row.cells[column].share.has_value();
    }
  }
  return false;
}

void write_table(std::string& out, const PageBlock& block) {
  bool notes = false;
  for (const PageRow& row : block.rows) notes |= !row.notes.empty();
  std::vector<size_t> shown;
  for (size_t c = 0; c < block.columns.size(); ++c) {
    if (!is_drawn(block, c)) shown.push_back(c);
  }
  out += "\n|";
  for (size_t c : shown) out += " " + escaped(block.columns[c].title, true) + " |";
  if (notes) out += "  |";
  out += "\n|";
  for (size_t c : shown) out += block.columns[c].align == Align::right ? " --: |" : " --- |";
  if (notes) out += " --- |";
  out += "\n";
  for (const PageRow& row : block.rows) {
    out += "|";
    for (size_t c : shown) out += " " + (c < row.cells.size() ? toned(row.cells[c]) : std::string()) + " |";
    if (notes) {
      std::string text;
      for (const std::string& note : row.notes) text += (text.empty() ? "" : "<br>") + escaped(note, true);
      out += " " + text + " |";
    }
    out += "\n";
  }
}

}  // namespace

std::string render_markdown(const Page& page, Lang) {
  std::string out = "# " + escaped(page.title, false) + "\n";
  for (const Page::Verdict& v : page.verdicts) out += "\n**" + escaped(v.text, false) + "**\n";
  for (const PageBlock& block : page.blocks) {
    switch (block.kind) {
      case PageBlock::Kind::heading:
        out += "\n## " + escaped(block.title, false) + "\n";
        break;
      case PageBlock::Kind::text:
        for (const std::string& text : block.items) out += "\n" + escaped(text, false) + "\n";
        break;
      case PageBlock::Kind::facts: {
        std::string line;
        for (const std::string& item : block.items) line += (line.empty() ? "" : " · ") + escaped(item, false);
        out += "\n" + line + "\n";
        break;
      }
      case PageBlock::Kind::list:
        out += "\n";
        if (!block.title.empty()) out += escaped(block.title, false) + "\n\n";
        for (const std::string& item : block.items) out += "- " + escaped(item, false) + "\n";
        break;
      case PageBlock::Kind::table:
        write_table(out, block);
        break;
    }
  }
  if (!page.footer.empty()) out += "\n" + escaped(page.footer, false) + "\n";
  return out;
}

}  // namespace vram
