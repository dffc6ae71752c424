#include "formats/formats_test.h"

namespace vram {
namespace {

using namespace std::string_view_literals;

TEST(Json, ReadsValuesWithTheirLines) {
  const Case cases[] = {
      {"5", "5@1"},
      {"-0", "0@1"},
      {"1e3", "1000r@1"},
      {"1.0", "1r@1"},
      {"true", "true@1"},
      {"\n\nnull\n", "null@3"},
      {"\"\\u00e9\\n\"", "'\xc3\xa9\n'@1"},
      {"[]", "[]@1"},
      {"{}", "{}@1"},
      {"\xef\xbb\xbf{\"a\": 1}", "{a: 1@1}@1"},
      // A number is known only once the character behind it is read: a newline there must not count.
      {"[1\n,\n2\n]", "[1@1, 2@3]@1"},
      {"{\"a\":\n  1,\n \"b\"\n:\n[\n true,\n {\n\"c\":2\n}\n]}", "{a: 1@2, b: [true@6, {c: 2@8}@7]@5}@1"},
      {"{\r\n\"a\": 1,\r\n\"b\": \"x\"\r\n}", "{a: 1@2, b: 'x'@3}@1"},
      {"9223372036854775807", "9223372036854775807@1"},
      {"-9223372036854775808", "-9223372036854775808@1"},
      {"9223372036854775808", "9.223372036854776e+18r@1"},
      {"-9223372036854775809", "-9.223372036854776e+18r@1"},
      {"18446744073709551616", "1.8446744073709552e+19r@1"},
      {"1000000000000000000000000000000", "1e+30r@1"},
      {"1e-400", "0r@1"},
      {"{\"\": {\"\": 1}}", "{: {: 1@1}@1}@1"},
      {"{\"b\": 1, \"a\": 2}", "{b: 1@1, a: 2@1}@1"},
  };
  for (const Case& c : cases) EXPECT_EQ(shape(parse_json(c.text, "f")), c.expected) << c.text;
}

TEST(Json, RefusesWithOneLine) {
  const Case cases[] = {
      {"", "f: is empty; accepted: a JSON value"},
      {" \n\t", "f: is empty; accepted: a JSON value"},
      {"\xef\xbb\xbf", "f: is empty; accepted: a JSON value"},
      {"{", "f:1: column 2: the file ends inside the object that starts on line 1; was it cut off?"},
      {"{\"a\": 1,\n\"b\": [1,\n2",
       "f:3: column 2: the file ends inside the list that starts on line 2; was it cut off?"},
      {"\"abc", "f:1: column 5: ends before its value is complete; was it cut off?"},
      {"[1,\n 2,]", "f:2: column 4: a comma before ']'; accepted: commas between values only"},
      {"{\"a\": 1,\n}", "f:2: column 1: a comma before '}'; accepted: commas between values only"},
      {"{\"a\": NaN}", "f:1: column 7: 'NaN' is not a finite number; accepted: finite numbers or null"},
      {"[1, -Infinity]", "f:1: column 5: '-Infinity' is not a finite number; accepted: finite numbers or null"},
      {"[nan]", "f:1: column 2: 'nan' is not a finite number; accepted: finite numbers or null"},
      {"[\n1e400]", "f:2: column 1: number '1e400' is too large; accepted: finite numbers"},
      {"-1e400", "f:1: column 1: number '-1e400' is too large; accepted: finite numbers"},
      {"{\"a\": True}", "f:1: column 7: 'True' is Python, not JSON; accepted: true, false or null"},
      {"{'a': 1}", "f:1: column 2: a string in single quotes; accepted: double quotes"},
      {"{\"a\": 1 // one\n}", "f:1: column 9: a comment, which JSON does not have"},
      {"# x\n{}", "f:1: column 1: a comment, which JSON does not have"},
      {"[1]\n x", "f:2: column 2: more text after the JSON value"},
      {"{}{}", "f:1: column 3: more text after the JSON value"},
      {"[tru]",
       "f:1: column 2: unknown word 'tru'; accepted: true, false, null, a number or a string in double quotes"},
      {"{\"a\": nul",
       "f:1: column 7: unknown word 'nul'; accepted: true, false, null, a number or a string in double quotes"},
      {"[+1]", "f:1: column 2: unexpected '+1'; accepted: a JSON value"},
      {"[.5]", "f:1: column 2: unexpected '.5'; accepted: a JSON value"},
      {"[0123]", "f:1: column 3: unexpected number literal; expected ']'"},
      {"[1.]", "f:1: column 2: invalid number; expected digit after '.'"},
      {"{\"a\" 1}", "f:1: column 6: unexpected number literal; expected ':'"},
      {"{\"a\": 1 \"b\": 2}", "f:1: column 9: unexpected string literal; expected '}'"},
      {"{1: 2}", "f:1: column 2: unexpected number literal; expected string literal"},
      {"{\"a\": 1,\n \"b\": {\"c\": 1,\n \"c\": 2}}", "f:3: b.c is given twice, on lines 2 and 3"},
      {"[{}, {\"a\": 1, \"a\": 1}]", "f:1: [1].a is given twice on line 1"},
      {"\"a\tb\"", "f:1: column 3: invalid string: control character U+0009 (HT) must be escaped to \\u0009 or \\t"},
      {"[\"\\ud800\"]", "f:1: column 2: invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF"},
      {"[\"\xff\"]", "f:1: column 3: bytes that are not UTF-8; accepted: UTF-8 text"},
      {"[\"\xe4\xbd\xa0\", \"\xc0\x80\"]", "f:1: column 8: bytes that are not UTF-8; accepted: UTF-8 text"},
      {"1\0 garbage"sv, "f:1: column 2: NUL byte; is this a binary file?; accepted: UTF-8 text"},
      {"{\"a\": \"x\0\"}"sv, "f:1: column 9: NUL byte; is this a binary file?; accepted: UTF-8 text"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 8035\n",
       "f: is a Git LFS pointer, not the file itself; fetch the file with 'git lfs pull'"},
      {"<!DOCTYPE html><html>", "f: is an HTML page, not the file itself"},
      {"\x1f\x8b\x08\x00\x00"sv, "f: is compressed (gzip); accepted: UTF-8 text"},
      {"PK\x03\x04zip", "f: is a ZIP archive (or a PyTorch checkpoint); accepted: UTF-8 text"},
      {"GGUF\x03\0\0\0"sv, "f: is a GGUF file; accepted: UTF-8 text"},
      {"\x10\0\0\0\0\0\0\0{\"a\":{}}"sv, "f: is a safetensors file; accepted: UTF-8 text"},
      {"\xff\xfe{\0}\0"sv, "f: is UTF-16 text; accepted: UTF-8 text"},
      {"\x80\x02}q\x00."sv, "f:1: column 1: bytes that are not UTF-8; accepted: UTF-8 text"},
  };
  for (const Case& c : cases) EXPECT_EQ(refusal(parse_json, c.text), c.expected) << c.text;
}

TEST(Json, KeysOfAFileCannotBreakTheErrorLine) {
  EXPECT_EQ(refusal(parse_json, "{\"a\\n\\u001b[31m\": 1,\n\"a\\n\\u001b[31m\": 2}"),
            "f:2: a??[31m is given twice, on lines 1 and 2");
}

TEST(Json, FindsDuplicatesInLargeObjects) {
  std::string text = "{\n";
  for (int i = 0; i < 1000; ++i) text += "\"k" + std::to_string(i) + "\": 1,\n";
  EXPECT_EQ(refusal(parse_json, text + "\"z\": 1}"), "(accepted)");
  EXPECT_EQ(refusal(parse_json, text + "\"k7\": 1}"), "f:1002: k7 is given twice, on lines 9 and 1002");
  EXPECT_EQ(refusal(parse_json, text + "\"k999\": 1}"), "f:1002: k999 is given twice, on lines 1001 and 1002");
}

TEST(Json, HoldsItsLimits) {
  EXPECT_EQ(refusal(parse_json, "[[[1]]]", {.depth = 3}), "(accepted)");
  EXPECT_EQ(refusal(parse_json, "[[\n[[1]]]]", {.depth = 3}), "f:2: is nested more than 3 levels deep");
  EXPECT_EQ(refusal(parse_json, "[1, 2]", {.values = 3}), "(accepted)");
  EXPECT_EQ(refusal(parse_json, "[1, 2,\n3]", {.values = 3}), "f:2: holds too many values; accepted: at most 3");
  EXPECT_EQ(refusal(parse_json, "[1, 2]", {.bytes = 6}), "(accepted)");
  EXPECT_EQ(refusal(parse_json, "[1, 2] ", {.bytes = 6}), "f: holds 7 bytes; accepted: at most 6 bytes");
}

TEST(Json, ReadsInfinityAsNullWhereAsked) {
  const Limits lenient{.infinity_is_null = true};
  EXPECT_EQ(
      shape(parse_json("{\"a\": [0.0, Infinity],\n\"b\": -Infinity, \"Infinity\": \"\\\"Infinity\"}", "f", lenient)),
      "{a: [0r@1, null@1]@1, b: null@2, Infinity: '\"Infinity'@2}@1");
  // Positions of later mistakes stay what they were.
  EXPECT_EQ(refusal(parse_json, "[Infinity, NaN]", lenient),
            "f:1: column 12: 'NaN' is not a finite number; accepted: finite numbers or null");
  EXPECT_EQ(
      refusal(parse_json, "[Infinity2]", lenient),
      "f:1: column 2: unknown word 'Infinity2'; accepted: true, false, null, a number or a string in double quotes");
  EXPECT_EQ(refusal(parse_json, "[1, Infinity]"),
            "f:1: column 5: 'Infinity' is not a finite number; accepted: finite numbers or null");
}

TEST(Json, RefusesHostileSizesAtOnce) {
  EXPECT_EQ(refusal(parse_json, repeated("[", 1'000'000)), "f:1: is nested more than 64 levels deep");
  EXPECT_EQ(refusal(parse_json, repeated("{\"a\":", 1'000'000)), "f:1: is nested more than 64 levels deep");
  EXPECT_EQ(refusal(parse_json, std::string(100'000'000, ' ')),
            "f: holds 100,000,000 bytes; accepted: at most 67,108,864 bytes");
  EXPECT_EQ(refusal(parse_json, "[" + repeated("1,", 2'100'000) + "1]"),
            "f:1: holds too many values; accepted: at most 2,000,000");
  // Neither a long word nor a long string is repeated in the message.
  EXPECT_EQ(refusal(parse_json, "[" + std::string(1'000'000, '9') + "]"),
            "f:1: column 2: number '" + std::string(40, '9') + "...' is too large; accepted: finite numbers");
  EXPECT_LT(refusal(parse_json, "[\"" + std::string(1'000'000, 'x') + "\n\"]").size(), 200u);
  EXPECT_LT(refusal(parse_json, "[t" + std::string(1'000'000, 'x') + "]").size(), 200u);
}

}  // namespace
}  // namespace vram
