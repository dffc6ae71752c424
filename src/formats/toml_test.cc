#include "formats/formats_test.h"

namespace vram {
namespace {

TEST(Toml, ReadsValuesWithTheirLines) {
  const Case cases[] = {
      {"", "{}@1"},
      {"z = 1\na = 2\n", "{z: 1@1, a: 2@2}@1"},
      {"a = 1\n[b]\nc = 2\nd.e = 3\n", "{a: 1@1, b: {c: 2@3, d: {e: 3@4}@4}@2}@1"},
      {"[[f]]\ng = 1\n[[f]]\ng = 2\n", "{f: [{g: 1@2}@1, {g: 2@4}@3]@1}@1"},
      {"a = [1,\n2,\n{x = 1}]\n", "{a: [1@1, 2@2, {x: 1@3}@3]@1}@1"},
      {"a = 0x10\nb = 1_000\nc = 1e3\nd = 0.5\ne = true\n", "{a: 16@1, b: 1000@2, c: 1000r@3, d: 0.5r@4, e: true@5}@1"},
      {"a = 2024-01-01\nb = 07:32:00\nc = 1979-05-27T07:32:00Z\n",
       "{a: '2024-01-01'@1, b: '07:32:00'@2, c: '1979-05-27T07:32:00Z'@3}@1"},
      {"a = \"\"\"x\ny\"\"\"\nb = '''[[[\n'''\nc = \"a.b.c # no comment\" # comment [[[\n",
       "{a: 'x\ny'@1, b: '[[[\n'@3, c: 'a.b.c # no comment'@5}@1"},
      {"a = \"\"\"\"x\"\"\"\"\" # \"\nb = '''''y'''''\n", "{a: '\"x\"\"'@1, b: '''y'''@2}@1"},
      {"\"a.b\" = 1\n'c d' = 2\n", "{a.b: 1@1, c d: 2@2}@1"},
      {"\xef\xbb\xbf"
       "a = 1",
       "{a: 1@1}@1"},
      {"a = 1\r\nb = 2\r\n", "{a: 1@1, b: 2@2}@1"},
  };
  for (const Case& c : cases) EXPECT_EQ(shape(parse_toml(c.text, "f")), c.expected) << c.text;
}

TEST(Toml, RefusesWithOneLine) {
  const Case cases[] = {
      {"a = 1\na = 2\n", "f:2: column 5: parsing key-value pair: cannot redefine existing integer 'a'"},
      {"[a]\n[a]\n", "f:2: column 1: parsing table header: cannot redefine existing table 'a'"},
      {"[b]\na = nan\n", "f:2: b.a 'nan' is not a finite number; accepted: finite numbers"},
      {"a = [1.0, -inf]\n", "f:1: a[1] '-inf' is not a finite number; accepted: finite numbers"},
      {"a = 1\n[ = 2]\n",
       "f:2: column 3: parsing key: expected bare key starting character or string delimiter, saw '='"},
      {"a = [}\n", "f:1: column 6: parsing value: could not determine value type"},
      {"a = [[},]\n", "f:1: column 7: parsing value: could not determine value type"},
      {"a = {}}\n", "f:1: column 7: parsing key-value pair: expected a comment or whitespace, saw '}'"},
      {"[[ . ]]\n", "f:1: column 4: parsing key: expected bare key starting character or string delimiter, saw '.'"},
      {"a = 1\nb \xef\xbb\xb7= 2\n", "f:2: column 3: a character that TOML allows in quotes only"},
      {"a = [\"\"\"x\"\"\"\", \xef\xbb\xb7]\n", "f:1: column 16: a character that TOML allows in quotes only"},
      {"a = \n", "f:1: column 5: parsing key-value pair: expected value, saw '\\n'"},
      {"a = 99999999999999999999\n",
       "f:1: column 25: parsing decimal integer: '99999999999999999999' is not representable in 64 bits"},
      {"a = \"x\n",
       "f:1: column 7: parsing string: unescaped control characters other than TAB (U+0009) are explicitly prohibited"},
      {"a = 1 b = 2\n", "f:1: column 7: parsing key-value pair: expected a comment or whitespace, saw 'b'"},
      {"a = 01\n", "f:1: column 7: parsing decimal integer: leading zeroes are prohibited"},
      {"{\"a\": 1}", "f:1: column 1: parsing root table: expected keys, tables, whitespace or comments, saw '{'"},
      {"a = \"\xff\"\n", "f:1: column 6: bytes that are not UTF-8; accepted: UTF-8 text"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 8035\n",
       "f: is a Git LFS pointer, not the file itself; fetch the file with 'git lfs pull'"},
  };
  for (const Case& c : cases) EXPECT_EQ(refusal(parse_toml, c.text), c.expected) << c.text;
}

TEST(Toml, HoldsItsLimits) {
  EXPECT_EQ(refusal(parse_toml, "a.b.c = 1\n", {.depth = 3}), "(accepted)");
  EXPECT_EQ(refusal(parse_toml, "x = 1\na.b.c = [1]\n", {.depth = 3}), "f:2: is nested more than 3 levels deep");
  EXPECT_EQ(refusal(parse_toml, "a = [1,\n2]\n", {.values = 3}), "f:2: holds too many values; accepted: at most 3");
}

TEST(Toml, RefusesHostileSizesAtOnce) {
  const std::string deep = "f:1: is nested more than 64 levels deep";
  EXPECT_EQ(refusal(parse_toml, "a = " + repeated("[", 1'000'000)), deep);
  EXPECT_EQ(refusal(parse_toml, "a = " + repeated("{a=", 1'000'000)), deep);
  EXPECT_EQ(refusal(parse_toml, repeated("a.", 1'000'000) + "a = 1"), deep);
  EXPECT_EQ(refusal(parse_toml, "[" + repeated("a.", 1'000'000) + "a]"), deep);
  // Dots and braces add up: each level is short, all of them are not.
  EXPECT_EQ(refusal(parse_toml, "x = " + repeated("{a.a.a.a.a.a.a.a=", 50) + "1" + repeated("}", 50)), deep);
  EXPECT_EQ(refusal(parse_toml, std::string(9'000'000, '#')),
            "f: holds 9,000,000 bytes of TOML; accepted: at most 8,388,608; write larger data as JSON");
  EXPECT_EQ(refusal(parse_toml, "a = [" + repeated("1,", 30) + "]", {.values = 9}), "f:1: holds too many values");
  // Brackets in strings and comments nest nothing.
  EXPECT_EQ(refusal(parse_toml, "a = '" + repeated("[", 1000) + "' # " + repeated("[", 1000)), "(accepted)");
}

}  // namespace
}  // namespace vram
