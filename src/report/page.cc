#include "report/page.h"

#include <algorithm>

namespace vram {
namespace {

constexpr int kBarColumns = 14;

void write_table(std::string& out, const PageBlock& block, const Style& style) {
  Table table(block.columns);
  for (const PageRow& row : block.rows) {
    if (row.sum) table.rule();
    std::vector<Cell> cells;
    for (const PageCell& cell : row.cells) {
      cells.emplace_back(cell.share ? bar(style, *cell.share, 1, kBarColumns) : cell.text, cell.tone);
    }
    table.row(std::move(cells));
    for (const std::string& note : row.notes) table.note(note);
  }
  out += table.render(style);
}

}  // namespace

PageCell PageCell::bar(double share) {
  PageCell cell;
  cell.share = share;
  return cell;
}

void Page::heading(std::string text) { blocks.push_back({.kind = PageBlock::Kind::heading, .title = std::move(text)}); }

void Page::paragraph(std::string text) {
  // Paragraphs that follow each other are one block.
  if (blocks.empty() || blocks.back().kind != PageBlock::Kind::text) blocks.push_back({.kind = PageBlock::Kind::text});
  blocks.back().items.push_back(std::move(text));
}

void Page::facts(std::vector<std::string> items) {
  blocks.push_back({.kind = PageBlock::Kind::facts, .items = std::move(items)});
}

void Page::list(std::string name, std::vector<std::string> items) {
  if (items.empty()) return;
  blocks.push_back({.kind = PageBlock::Kind::list, .title = std::move(name), .items = std::move(items)});
}

PageBlock& Page::table(std::vector<Column> columns) {
  blocks.push_back({.kind = PageBlock::Kind::table, .columns = std::move(columns)});
  return blocks.back();
}

std::string render_text(const Page& page, const Style& style) {
  std::string out;
  for (const Page::Verdict& v : page.verdicts) out += answer_line(style, v.tone, v.text);
  PageBlock::Kind previous = PageBlock::Kind::facts;
  if (!page.blocks.empty() && page.blocks.front().kind != PageBlock::Kind::heading) out += "\n";
  for (const PageBlock& block : page.blocks) {
    switch (block.kind) {
      case PageBlock::Kind::heading:
        out += heading(style, block.title);
        break;
      case PageBlock::Kind::text:
        for (const std::string& text : block.items) out += paragraph(style, text);
        break;
      case PageBlock::Kind::facts:
        out += fact_line(style, block.items);
        break;
      case PageBlock::Kind::list:
        if (previous != PageBlock::Kind::list && previous != PageBlock::Kind::heading) out += "\n";
        if (block.title.empty()) {
          for (const std::string& item : block.items) out += paragraph(style, "- " + item, 2, 4);
        } else {
          out += item_line(style, block.title, block.items);
        }
        break;
      case PageBlock::Kind::table:
        write_table(out, block, style);
        break;
    }
    previous = block.kind;
  }
  if (!page.footer.empty()) out += "\n" + paragraph(style, page.footer);
  return style.unicode ? out : to_ascii(out);
}

}  // namespace vram
