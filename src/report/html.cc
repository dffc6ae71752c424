// Pages as one HTML file each: the style stands inside, nothing is fetched, nothing runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/page.h"

namespace vram {
namespace {

// Fonts are the reader's; the numbers stand under each other; a page prints without its background.
constexpr std::string_view kStyle = R"(
:root{--ink:#1b1f24;--dim:#5c6670;--line:#d5dae0;--bar:#3f6fb5;--good:#1a7f37;--bad:#b42318;--paper:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#9aa4ae;--line:#39414a;--bar:#6d9be0;--good:#4cc46c;--bad:#ff8076;--paper:#14181c}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:14px/1.45 system-ui,"Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif}
main{max-width:66rem;margin:0 auto;padding:1.5rem 1rem 2rem}
h1{font-size:1.35rem;margin:0 0 .5rem}
h2{font-size:1.02rem;margin:1.3rem 0 .3rem;padding-bottom:.15rem;border-bottom:1px solid var(--line);break-after:avoid}
p{margin:.25rem 0}
.verdict{font-weight:600;font-size:1.05rem}
.good{color:var(--good)}.bad,.warn{color:var(--bad)}.dim{color:var(--dim)}.strong{font-weight:600}.accent{color:var(--bar)}
.facts{color:var(--dim)}
table{border-collapse:collapse;width:100%;margin:.3rem 0;font-variant-numeric:tabular-nums}
th{font-weight:600;color:var(--dim);text-align:left;vertical-align:bottom}
th,td{padding:.12rem .5rem .12rem 0}
td{vertical-align:top}
.r{text-align:right;white-space:nowrap}
tr.sum td{border-top:1px solid var(--ink)}
tr{break-inside:avoid}
.note{color:var(--dim);font-size:.86em;padding-left:.6rem;overflow-wrap:anywhere}
.note div{padding-left:.8em;text-indent:-.8em}
.bar{display:inline-block;width:6em;height:.62rem;background:var(--line)}
.bar i{display:block;height:100%;background:var(--bar);-webkit-print-color-adjust:exact;print-color-adjust:exact}
.bar.over i{background:var(--bad)}
ul{margin:.25rem 0 .25rem 1.1rem;padding:0}
footer{margin-top:1.2rem;color:var(--dim);font-size:.86em}
@page{margin:10mm}
@media print{:root{--ink:#000;--dim:#444;--line:#bbb;--bar:#3f6fb5;--good:#000;--bad:#000;--paper:#fff}body{font-size:8pt;line-height:1.25}main{max-width:none;padding:0}h1{font-size:12pt;margin:0 0 2pt}h2{font-size:9pt;margin:5pt 0 1pt}.verdict{font-size:9pt;margin:1pt 0}p{margin:1pt 0}table{margin:1pt 0}th,td{padding:.5pt 4pt .5pt 0}ul{margin:1pt 0 1pt 10pt}footer{margin-top:5pt}}
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string_view tone_class(Tone tone) {
  switch (tone) {
    case Tone::strong:
      return "strong";
    case Tone::dim:
      return "dim";
    case Tone::good:
      return "good";
    case Tone::bad:
      return "bad";
    case Tone::warn:
      return "warn";
    case Tone::accent:
      return "accent";
    case Tone::plain:
      break;
  }
  return {};
}

std::string bar_html(double share) {
  const double shown = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  return fmt::format(R"(<span class="bar{}"><i style="width:{:.1f}%"></i></span>)", share > 1 ? " over" : "",
                     100 * shown);
}

void write_table(std::string& out, const PageBlock& block) {
  out += "<table>\n";
  const bool notes =
      std::any_of(block.rows.begin(), block.rows.end(), [](const PageRow& row) { return !row.notes.empty(); });
  const bool titles = std::any_of(block.columns.begin(), block.columns.end(),
                                  [](const Column& column) { return !column.title.empty(); });
  const auto right = [&](size_t c) { return c < block.columns.size() && block.columns[c].align == Align::right; };
  if (titles) {
    out += "<thead><tr>";
    for (size_t c = 0; c < block.columns.size(); ++c) {
      out +=
          fmt::format(R"(<th scope="col"{}>{}</th>)", right(c) ? R"( class="r")" : "", escaped(block.columns[c].title));
    }
    out += notes ? "<td></td></tr></thead>\n" : "</tr></thead>\n";
  }
  out += "<tbody>\n";
  for (const PageRow& row : block.rows) {
    out += row.sum ? R"(<tr class="sum">)" : "<tr>";
    for (size_t c = 0; c < block.columns.size(); ++c) {
      const PageCell cell = c < row.cells.size() ? row.cells[c] : PageCell();
      std::string classes(tone_class(cell.tone));
      if (right(c)) classes += classes.empty() ? "r" : " r";
      out += classes.empty() ? "<td>" : fmt::format(R"(<td class="{}">)", classes);
      out += (cell.share ? bar_html(*cell.share) : escaped(cell.text)) + "</td>";
    }
    if (notes) {
      out += R"(<td class="note">)";
      for (const std::string& note : row.notes) out += "<div>" + escaped(note) + "</div>";
      out += "</td>";
    }
    out += "</tr>\n";
  }
  out += "</tbody></table>\n";
}

}  // namespace

std::string render_html(const Page& page, Lang lang) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n<main>\n<h1>{}</h1>\n",
      lang == Lang::zh ? "zh-CN" : "en", escaped(page.title), kStyle, escaped(page.title));
  for (const Page::Verdict& v : page.verdicts) {
    out += fmt::format("<p class=\"verdict {}\">{}</p>\n", tone_class(v.tone), escaped(v.text));
  }
  for (const PageBlock& block : page.blocks) {
    switch (block.kind) {
      case PageBlock::Kind::heading:
        out += "<h2>" + escaped(block.title) + "</h2>\n";
        break;
      case PageBlock::Kind::text:
        for (const std::string& text : block.items) out += "<p>" + escaped(text) + "</p>\n";
        break;
      case PageBlock::Kind::facts: {
        std::string line;
        for (const std::string& item : block.items) line += (line.empty() ? "" : " · ") + escaped(item);
        out += "<p class=\"facts\">" + line + "</p>\n";
        break;
      }
      case PageBlock::Kind::list:
        if (!block.title.empty()) {  // a few words each: one line, as in a terminal
          out += "<p><b>" + escaped(block.title) + "</b> ";
          for (size_t i = 0; i < block.items.size(); ++i) out += (i > 0 ? " · " : "") + escaped(block.items[i]);
          out += "</p>\n";
          break;
        }
        out += "<ul>\n";
        for (const std::string& item : block.items) out += "<li>" + escaped(item) + "</li>\n";
        out += "</ul>\n";
        break;
      case PageBlock::Kind::table:
        write_table(out, block);
        break;
    }
  }
  if (!page.footer.empty()) out += "<footer>" + escaped(page.footer) + "</footer>\n";
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace vram
