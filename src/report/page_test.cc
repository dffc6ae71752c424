#include "report/page.h"

#include <gtest/gtest.h>

namespace vram {
namespace {

Page sample() {
  Page page;
  page.title = "a <b> & \"c\"";
  page.verdicts = {{Tone::good, "fits"}};
  page.facts({"one", "two"});
  page.heading("Account");
  PageBlock& table = page.table({{""}, {""}, {"GiB", Align::right}});
  table.rows.push_back({.cells = {"weights|x", PageCell::bar(0.5), "1.00"}, .notes = {"2·P = 2·<7>"}});
  table.rows.push_back({.cells = {PageCell("sum", Tone::strong), PageCell::bar(1.5), "3.00"}, .sum = true});
  page.paragraph("first *word*");
  page.paragraph("second");
  page.list("Why:", {"a_b", "c"});
  page.footer = "the end";
  return page;
}

TEST(Page, TextHasVerdictFirstAndNotesUnderRows) {
  const std::string out = render_text(sample(), {.unicode = false});
  EXPECT_EQ(out.rfind("fits\n", 0), 0u);
  EXPECT_LT(out.find("weights|x"), out.find("2*P = 2*<7>"));
  EXPECT_LT(out.find("second"), out.find("Why:"));
  EXPECT_NE(out.find("the end"), std::string::npos);
}

TEST(Page, MarkdownEscapesAndLeavesBarsOut) {
  const std::string out = render_markdown(sample(), Lang::en);
  EXPECT_EQ(out.rfind("# a \\<b\\> & \"c\"\n", 0), 0u);
  // One column fewer than the page, and one for notes.
  EXPECT_NE(out.find("|  | GiB |  |\n| --- | --: | --- |\n| weights\\|x | 1.00 | 2·P = 2·\\<7\\> |\n"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("| **sum** | 3.00 |  |"), std::string::npos) << out;
  EXPECT_NE(out.find("first \\*word\\*"), std::string::npos);
  EXPECT_NE(out.find("- a\\_b\n"), std::string::npos);
}

TEST(Page, HtmlIsOneFileThatFetchesNothing) {
  for (Lang lang : {Lang::en, Lang::zh}) {
    const std::string out = render_html(sample(), lang);
    EXPECT_EQ(out.rfind("<!DOCTYPE html>", 0), 0u);
    EXPECT_NE(out.find(lang == Lang::zh ? "lang=\"zh-CN\"" : "lang=\"en\""), std::string::npos);
    EXPECT_NE(out.find("<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"), std::string::npos);
    EXPECT_EQ(out.find("a <b>"), std::string::npos);
    for (const char* reaching : {"<script", "src=", "href=", "url(", "@import", "http:", "https:", "//"}) {
      EXPECT_EQ(out.find(reaching), std::string::npos) << reaching;
    }
    EXPECT_NE(out.find("@media print"), std::string::npos);
    EXPECT_NE(out.find("width:50.0%"), std::string::npos);
    EXPECT_NE(out.find("bar over"), std::string::npos);  // a value beyond the limit
    EXPECT_NE(out.find("width:100.0%"), std::string::npos);
  }
}

TEST(Page, HtmlTagsAreBalanced) {
  const std::string out = render_html(sample(), Lang::en);
  const auto count = [&](std::string_view piece) {
    size_t n = 0;
    for (size_t at = out.find(piece); at != std::string::npos; at = out.find(piece, at + 1)) ++n;
    return n;
  };
  for (const char* tag :
       {"table", "tbody", "thead", "tr", "td", "th", "p", "h1", "h2", "ul", "li", "b", "span", "main", "body", "div"}) {
    const std::string name(tag);
    EXPECT_EQ(count("<" + name + ">") + count("<" + name + " "), count("</" + name + ">")) << tag;
  }
}

}  // namespace
}  // namespace vram
