#include "formats/core_scalar.h"
#include "formats/formats_test.h"

namespace vram {
namespace {

TEST(Yaml, ReadsValuesWithTheirLines) {
  const Case cases[] = {
      {"a: 1\nb:\n  c: 2\n  d:\n    - 3\n    - e: 4\n", "{a: 1@1, b: {c: 2@3, d: [3@5, {e: 4@6}@6]@5}@3}@1"},
      {"a: [1, 2\n, {b: c}]\n", "{a: [1@1, 2@1, {b: 'c'@2}@2]@1}@1"},
      {"- - 1\n  - 2\n- 3\n", "[[1@1, 2@2]@1, 3@3]@1"},
      {"a:\nb: 1\n", "{a: null@1, b: 1@2}@1"},
      {"# comment\n\n---\na: 1 # one\n...\n", "{a: 1@4}@4"},
      {"%YAML 1.2\n---\na: 1\n", "{a: 1@3}@3"},
      {"a: |\n  x\n  y\nb: >\n  x\n  y\nc: 1\n", "{a: 'x\ny\n'@1, b: 'x y\n'@4, c: 1@7}@1"},
      {"? a\n: 1\n", "{a: 1@2}@1"},
      {"1: x\ntrue: y\nno: z\n", "{1: 'x'@1, true: 'y'@2, no: 'z'@3}@1"},
      {"{a, b: 1}", "{a: null@1, b: 1@1}@1"},
      {"\xef\xbb\xbf"
       "a: 1",
       "{a: 1@1}@1"},
      {"a: 1\r\nb: 2\r\n", "{a: 1@1, b: 2@2}@1"},
      {"{\"a\": [1, null, \"x\"]}", "{a: [1@1, null@1, 'x'@1]@1}@1"},
      {"a: &x [1]\nb: *x\n", "{a: [1@1]@1, b: [1@1]@2}@1"},
      {"a: &x 1\nb: &y {c: *x}\nd: *y\n", "{a: 1@1, b: {c: 1@2}@2, d: {c: 1@2}@3}@1"},
      {"a: !!str 3\nb: !!int \"3\"\nc: !!float 3\nd: ! 3\ne: !!null ''\nf: !!bool 'true'\n",
       "{a: '3'@1, b: 3@2, c: 3r@3, d: '3'@4, e: null@5, f: true@6}@1"},
      {R"(a: "\N\_\L\P\e\xe9\u00e9\U0001F600")",
       "{a: '\xc2\x85\xc2\xa0\xe2\x80\xa8\xe2\x80\xa9\x1b\xc3\xa9\xc3\xa9\xf0\x9f\x98\x80'@1}@1"},
      {"plain text with spaces", "'plain text with spaces'@1"},
      {"--- 5\n", "5@1"},
      {"a: 1\n...\n...\n# end\n", "{a: 1@1}@1"},
      {"a: |\n  x", "{a: 'x'@1}@1"},
      {"a: |+\n  x\n\n", "{a: 'x\n\n'@1}@1"},
      {"a: \"x\n  y\"\n", "{a: 'x y'@1}@1"},
      {"~", "null@1"},
  };
  for (const Case& c : cases) EXPECT_EQ(shape(parse_yaml(c.text, "f")), c.expected) << c.text;
}

TEST(Yaml, ResolvesPlainScalarsByTheCoreSchema) {
  const Case cases[] = {
      {"true", "true"},
      {"True", "true"},
      {"FALSE", "false"},
      {"tRue", "'tRue'"},
      {"yes", "'yes'"},
      {"no", "'no'"},
      {"on", "'on'"},
      {"off", "'off'"},
      {"y", "'y'"},
      {"null", "null"},
      {"NULL", "null"},
      {"~", "null"},
      {"nil", "'nil'"},
      {"0", "0"},
      {"-0", "0"},
      {"+12", "12"},
      {"017", "17"},
      {"0o17", "15"},
      {"0x1F", "31"},
      {"0b11", "'0b11'"},
      {"0x", "'0x'"},
      {"0o8", "'0o8'"},
      {"-0x10", "'-0x10'"},
      {"1_000", "'1_000'"},
      {"1,000", "'1,000'"},
      {"1:30", "'1:30'"},
      {"2024-01-01", "'2024-01-01'"},
      {"1.5", "1.5r"},
      {"1.", "1r"},
      {".5", "0.5r"},
      {"-.5", "-0.5r"},
      {".", "'.'"},
      {"-", "'-'"},
      {"+", "'+'"},
      {"1e3", "1000r"},
      {"1.5E-3", "0.0015r"},
      {"1e", "'1e'"},
      {"e3", "'e3'"},
      {".e3", "'.e3'"},
      {"1.2.3", "'1.2.3'"},
      {"80GiB", "'80GiB'"},
      {"nan", "'nan'"},
      {"inf", "'inf'"},
      {".inf", "infr"},
      {"-.INF", "-infr"},
      {".nan", "nanr"},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"9223372036854775808", "9.223372036854776e+18r"},
      {"0xFFFFFFFFFFFFFFFF", "1.8446744073709552e+19r"},
      {"1e400", "infr"},
      {"1e-99999999999999999999", "0r"},
      {"0e99999999999999999999", "0r"},
  };
  for (const Case& c : cases) {
    const std::string got = shape(core_scalar(c.text));
    EXPECT_EQ(got.substr(0, got.find('@')), c.expected) << c.text;
  }
}

TEST(Yaml, RefusesWithOneLine) {
  const Case cases[] = {
      {"", "f: is empty; accepted: a YAML value"},
      {"# only a comment\n", "f: is empty; accepted: a YAML value"},
      {"a: 1\nb: 2\na: 3\n", "f:3: a is given twice, on lines 1 and 3"},
      {"a:\n  b: 1\n  b: 2\n", "f:3: a.b is given twice, on lines 2 and 3"},
      {"{a: 1, a: 2}", "f:1: a is given twice on line 1"},
      {"a: 1\n---\nb: 2\n",
       "f:2: column 1: a second document, or text after the first one's end; accepted: one document a file"},
      {"- a\nb: 1\n",
       "f:2: column 1: a second document, or text after the first one's end; accepted: one document a file"},
      {"a: *x\n", "f:1: column 4: the referenced anchor is not defined"},
      {"a: &x [1, *x]\n", "f:1: column 11: an alias inside the value it stands for"},
      {"a: &x b\n*x : 1\n", "f:2: column 1: an alias as a key; accepted: a word"},
      {"&k a: 1\n", "f:1: column 1: an anchor on a key; accepted: anchors on values"},
      {"a: &x {b: 1}\nc:\n  <<: *x\n",
       "f:3: column 3: a merge key (<<), which YAML 1.2 does not have; accepted: the members written out"},
      {"? [a]\n: 1\n", "f:1: column 3: a list as a key, or a bracket that is never closed; accepted: a word"},
      {"? {a: 1}\n: 1\n", "f:1: column 3: an object as a key, or a brace that is never closed; accepted: a word"},
      {"null: 1\n", "f:1: column 1: a key that is null; accepted: a word; quote 'null' to use it as a key"},
      {"a: .inf\n", "f:1: column 4: '.inf' is not a finite number; accepted: finite numbers or null"},
      {"a:\n- 1\n- .NaN\n", "f:3: column 3: '.NaN' is not a finite number; accepted: finite numbers or null"},
      {"a: 1e400\n", "f:1: column 4: '1e400' is not a finite number; accepted: finite numbers or null"},
      {"a: !!python/object:os.system x\n",
       "f:1: column 4: tag 'tag:yaml.org,2002:python/object:os.syste...' is not known; accepted: plain values, !!str, "
       "!!int, !!float, !!bool or !!null"},
      {"a: !secret x\n",
       "f:1: column 4: tag '!secret' is not known; accepted: plain values, !!str, !!int, !!float, !!bool or !!null"},
      {"a: !!set {x}\n",
       "f:1: column 4: tag 'tag:yaml.org,2002:set' is not known; accepted: plain values, !!str, !!int, !!float, !!bool "
       "or !!null"},
      {"a: !!int x\n", "f:1: column 4: 'x' does not suit its tag !!int"},
      {"---\n", "f: is empty; accepted: a YAML value"},
      {"a: [1\n", "f:2: column 1: a list is not closed with ']'"},
      {"a: {b: [1, 2]\n\n", "f:3: column 1: an object is not closed with '}'"},
      {"a: [[1\n", "f:1: column 5: a list as a key, or a bracket that is never closed; accepted: a word"},
      {"a: \"x\n", "f:2: column 1: the file ends inside a quoted string; was it cut off?"},
      {"a: 'x\n\n  ", "f:3: column 3: the file ends inside a quoted string; was it cut off?"},
      {"a: \"x", "f:1: column 6: the file ends inside a quoted string; was it cut off?"},
      {"a: b: c\n", "f:1: column 5: illegal map value"},
      {"a: 1\n b: 2\n", "f:2: column 3: illegal map value"},
      {"a: @x\n", "f:1: column 4: unknown token"},
      {"a: x\x01\n", "f:1: column 5: control character 0x01; accepted: text; write it as an escape in double quotes"},
      {"a: \xff\n", "f:1: column 4: bytes that are not UTF-8; accepted: UTF-8 text"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 8035\n",
       "f: is a Git LFS pointer, not the file itself; fetch the file with 'git lfs pull'"},
  };
  for (const Case& c : cases) EXPECT_EQ(refusal(parse_yaml, c.text), c.expected) << c.text;
}

TEST(Yaml, HoldsItsLimits) {
  EXPECT_EQ(refusal(parse_yaml, "[[[1]]]", {.depth = 3}), "(accepted)");
  EXPECT_EQ(refusal(parse_yaml, "a:\n  b:\n    c:\n      d: 1\n", {.depth = 3}),
            "f:4: is nested more than 3 levels deep");
  // An alias counts for as much as what it stands for, its depth included.
  EXPECT_EQ(refusal(parse_yaml, "a: &x [[1]]\nb: [*x]\n", {.depth = 4}), "(accepted)");
  EXPECT_EQ(refusal(parse_yaml, "a: &x [[1]]\nb: [*x]\n", {.depth = 3}), "f:2: is nested more than 3 levels deep");
  EXPECT_EQ(refusal(parse_yaml, "- 1\n- 2\n- 3\n", {.values = 3}), "f:3: holds too many values; accepted: at most 3");
  EXPECT_EQ(refusal(parse_yaml, "[a, b, c]", {.values = 2}),
            "f:1: holds too many values in brackets; accepted: at most 2; write larger data as JSON");
}

TEST(Yaml, RefusesBillionLaughs) {
  std::string text = "a: &a [1,1,1,1,1,1,1,1,1]\n";
  for (char c = 'b'; c <= 'k'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    text += std::string(1, c) + ": &" + c + " [" + repeated("*" + before + ",", 9) + "]\n";
  }
  EXPECT_EQ(refusal(parse_yaml, text), "f:7: holds too many values; accepted: at most 2,000,000");
  // Few values, but each a megabyte.
  EXPECT_EQ(refusal(parse_yaml, "a: &a \"" + std::string(1'000'000, 'x') + "\"\nb: [" + repeated("*a,", 300) + "]\n"),
            "f:2: grows too large; accepted: at most 67,108,864 bytes");
}

TEST(Yaml, RefusesHostileSizesAtOnce) {
  EXPECT_EQ(refusal(parse_yaml, repeated("[", 1'000'000)),
            "f:1: holds too many values in brackets; accepted: at most 500,000; write larger data as JSON");
  EXPECT_EQ(refusal(parse_yaml, repeated("[", 300) + repeated("]", 300)), "f:1: is nested more than 64 levels deep");
  EXPECT_EQ(refusal(parse_yaml, repeated("- ", 1'000'000) + "1"), "f:1: is nested more than 64 levels deep");
  std::string stairs;
  for (size_t i = 0; i < 2000; ++i) stairs += std::string(i, ' ') + "a:\n";
  EXPECT_EQ(refusal(parse_yaml, stairs), "f:65: is nested more than 64 levels deep");
  EXPECT_EQ(refusal(parse_yaml, std::string(9'000'000, 'x')),
            "f: holds 9,000,000 bytes of YAML; accepted: at most 8,388,608; write larger data as JSON");
}

}  // namespace
}  // namespace vram
