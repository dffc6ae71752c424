#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <limits>

#include "formats/formats_test.h"

namespace vram {
namespace {

// Strings that a careless writer gets wrong, beside random ones.
rc::Gen<std::string> any_text() {
  static const std::vector<std::string> tricky = {"",
                                                  " ",
                                                  "a b",
                                                  "a  b",
                                                  " a",
                                                  "a ",
                                                  "yes",
                                                  "No",
                                                  "true",
                                                  "null",
                                                  "~",
                                                  "1",
                                                  "1e3",
                                                  "0x10",
                                                  ".5",
                                                  "-",
                                                  "- a",
                                                  "---",
                                                  "...",
                                                  "a: b",
                                                  "a:",
                                                  ":",
                                                  "#",
                                                  "a #b",
                                                  "[",
                                                  "{}",
                                                  "&a",
                                                  "*a",
                                                  "!a",
                                                  "|",
                                                  ">",
                                                  "%",
                                                  "@",
                                                  "`",
                                                  "\"",
                                                  "'",
                                                  "\\",
                                                  "\n",
                                                  "a\nb\n",
                                                  "\t",
                                                  "\r\n",
                                                  std::string("\0x", 2),
                                                  "\x7f",
                                                  "\xc2\x85",
                                                  "\xe2\x80\xa8",
                                                  "\xef\xbb\xbf",
                                                  "\xe4\xbd\xa0\xe5\xa5\xbd",
                                                  "\xf0\x9f\x98\x80",
                                                  "<<",
                                                  "=",
                                                  "2024-01-01",
                                                  "1:30",
                                                  "1_000",
                                                  ".inf",
                                                  "meta-llama/Llama-3.1-70B",
                                                  "?",
                                                  "? a",
                                                  "a,b"};
  return rc::gen::oneOf(rc::gen::elementOf(tricky), rc::gen::container<std::string>(rc::gen::inRange(
                                                        static_cast<char>(1), static_cast<char>(127))));
}

rc::Gen<Document> any_document(int depth) {
  const auto scalar = rc::gen::oneOf(
      rc::gen::just(Document()), rc::gen::map(rc::gen::arbitrary<bool>(), [](bool v) { return Document(v); }),
      rc::gen::map(rc::gen::arbitrary<int64_t>(), [](int64_t v) { return Document(v); }),
      rc::gen::map(rc::gen::arbitrary<double>(), [](double v) { return Document(v); }),
      rc::gen::map(rc::gen::elementOf(std::vector<double>{0.0, -0.0, 1.0, 1e30, 1e-30, 0.1, 123456789.0, 5e-324,
                                                          1.7976931348623157e308}),
                   [](double v) { return Document(v); }),
      rc::gen::map(any_text(), [](std::string v) { return Document(std::move(v)); }));
  if (depth == 0) return scalar;
  const auto items = rc::gen::scale(
      0.3, rc::gen::container<std::vector<Document>>(rc::gen::lazy([=] { return any_document(depth - 1); })));
  const auto names = rc::gen::scale(0.3, rc::gen::container<std::vector<std::string>>(any_text()));
  return rc::gen::oneOf(scalar, rc::gen::map(items, [](std::vector<Document> v) { return Document(std::move(v)); }),
                        rc::gen::apply(
                            [](const std::vector<std::string>& keys, const std::vector<Document>& values) {
                              Document out{Document::Object()};
                              for (size_t i = 0; i < std::min(keys.size(), values.size()); ++i)
                                out.set(keys[i], values[i]);
                              return out;
                            },
                            names, items));
}

RC_GTEST_PROP(Write, JsonReadsBackAsItWas, ()) {
  const Document document = *any_document(4);
  const std::string text = write_json(document);
  RC_ASSERT(same_values(parse_json(text, "f"), document));
  RC_ASSERT(write_json(parse_json(text, "f")) == text);
}

RC_GTEST_PROP(Write, YamlReadsBackAsItWas, ()) {
  const Document document = *any_document(4);
  const std::string text = write_yaml(document);
  RC_ASSERT(same_values(parse_yaml(text, "f"), document));
}

RC_GTEST_PROP(Write, JsonIsYaml, ()) {
  const Document document = *any_document(3);
  RC_ASSERT(same_values(parse_yaml(write_json(document), "f"), document));
}

Document sample() {
  return parse_json(
      R"({"model": "meta-llama/Llama-3.1-8B", "tp": 8, "mfu": 0.45, "rate": 1e30, "whole": 4096.0, "flag": true,
    "none": null, "answer": "no", "size": "80GiB", "date": "2024-01-01", "list": [1, [2, 3], {"a": 1, "b": [4]}, [], {}],
    "nested": {"deep": {"x": "a: b"}}, "empty": {}, "": "\n"})",
      "f");
}

TEST(Write, JsonLooksAsDocumented) {
  EXPECT_EQ(write_json(parse_json(R"({"a": [1, 2.0, 1e30], "b": {}, "c": [], "d": {"e": "x\"\n"}})", "f")),
            "{\n  \"a\": [\n    1,\n    2.0,\n    1.0e+30\n  ],\n  \"b\": {},\n  \"c\": [],\n  \"d\": {\n    \"e\": "
            "\"x\\\"\\n\"\n  }\n}\n");
  EXPECT_EQ(write_json(Document()), "null\n");
}

TEST(Write, YamlLooksAsDocumented) {
  EXPECT_EQ(write_yaml(sample()), R"(model: meta-llama/Llama-3.1-8B
tp: 8
mfu: 0.45
rate: 1.0e+30
whole: 4096.0
flag: true
none: null
answer: "no"
size: "80GiB"
date: "2024-01-01"
list:
  - 1
  - - 2
    - 3
  - a: 1
    b:
      - 4
  - []
  - {}
nested:
  deep:
    x: "a: b"
empty: {}
"": "\n"
)");
}

TEST(Write, InfinityBecomesNullAndBrokenUtf8AReplacement) {
  EXPECT_EQ(write_json(Document(std::numeric_limits<double>::infinity())), "null\n");
  EXPECT_EQ(write_yaml(Document(std::numeric_limits<double>::quiet_NaN())), "null\n");
  EXPECT_EQ(write_json(Document("a\xff"
                                "b")),
            "\"a\xef\xbf\xbd"
            "b\"\n");
}

TEST(Write, LongYamlKeysReadBack) {
  Document document;
  document.set(std::string(5000, 'k'), Document(Document::Array{Document(1), Document("x")}));
  document.set("outer", document);
  EXPECT_TRUE(same_values(parse_yaml(write_yaml(document), "f"), document));
}

TEST(ByName, ChoosesTheFormat) {
  EXPECT_EQ(parse_by_name("{\"a\": 1}", "x.JSON").find("a")->integer(), 1);
  EXPECT_EQ(parse_by_name("a: 1", "x.yaml").find("a")->integer(), 1);
  EXPECT_EQ(parse_by_name("a: 1", "x.yml").find("a")->integer(), 1);
  EXPECT_EQ(parse_by_name("a = 1", "x.toml").find("a")->integer(), 1);
  EXPECT_EQ(parse_by_name(" \n{\"a\": 1}", "-").find("a")->integer(), 1);
  EXPECT_EQ(parse_by_name("a: 1", "-").find("a")->integer(), 1);
  // The ending decides, so that the error speaks of the format that the person meant.
  EXPECT_EQ(refusal(parse_by_name, "a: 1"), "(accepted)");
  try {
    parse_by_name("a: 1", "x.json");
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "x.json:1: column 1: unknown word 'a'; accepted: true, false, null, a number or a string in double quotes");
  }
}

}  // namespace
}  // namespace vram
