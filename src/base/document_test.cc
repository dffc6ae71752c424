#include "base/document.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace vram {
namespace {

template <class Function>
std::string refusal(Function function) {
  try {
    function();
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

Document sample() {
  return Document(Document::Object{{"hidden_size", Document(4096, 2)},
                                   {"layers", Document("many", 3)},
                                   {"ratio", Document(0.5, 4)},
                                   {"whole", Document(4096.0, 5)},
                                   {"huge", Document(1e30, 6)},
                                   {"flag", Document(true, 7)},
                                   {"one", Document(1, 8)},
                                   {"nothing", Document()},
                                   {"kinds", Document(Document::Array{Document("a", 10), Document(1, 11)}, 10)},
                                   {"sizes", Document(Document::Array{Document(1, 12), Document(2.5, 13)}, 12)},
                                   {"text_config", Document(Document::Object{{"heads", Document(-1, 15)}}, 14)}},
                  1);
}

TEST(Document, FindsAndSets) {
  Document d;
  EXPECT_EQ(d.find("a"), nullptr);
  d.set("b", 1);
  d.set("a", "x");
  d.set("b", 2);
  EXPECT_EQ(d.object().size(), 2u);
  EXPECT_EQ(d.object()[0].first, "b");
  EXPECT_EQ(d.find("b")->integer(), 2);
  EXPECT_EQ(d.find("b")->number(), 2.0);
  EXPECT_EQ(Document(5).find("a"), nullptr);
}

TEST(Document, KindsAndText) {
  EXPECT_EQ(Document().kind_name(), "null");
  EXPECT_EQ(Document(true).kind_name(), "true or false");
  EXPECT_EQ(Document(1).kind_name(), "a number");
  EXPECT_EQ(Document(1.5).kind_name(), "a number");
  EXPECT_EQ(Document("x").kind_name(), "a string");
  EXPECT_EQ(Document(Document::Array()).kind_name(), "a list");
  EXPECT_EQ(Document(Document::Object()).kind_name(), "an object");
  EXPECT_EQ(Document(Document::Array{Document(1), Document("x"), Document()}).to_text(), "[1, x, null]");
  EXPECT_LT(Document(Document::Array(10'000, Document(123456))).to_text().size(), 200u);
}

TEST(Document, ComparesKindsAndValuesButNotLines) {
  EXPECT_TRUE(same_values(sample(), sample()));
  EXPECT_TRUE(same_values(Document(1, 5), Document(1, 9)));
  EXPECT_FALSE(same_values(Document(1), Document(1.0)));
  EXPECT_FALSE(same_values(Document(1), Document(true)));
  EXPECT_FALSE(same_values(Document(), Document(Document::Object())));
  EXPECT_FALSE(same_values(Document(Document::Array()), Document(Document::Object())));
  EXPECT_FALSE(
      same_values(Document(Document::Object{{"a", 1}, {"b", 2}}), Document(Document::Object{{"b", 2}, {"a", 1}})));
  EXPECT_FALSE(same_values(Document(Document::Array{1}), Document(Document::Array{1, 2})));
}

TEST(Fields, ReadsTypedValues) {
  const Document d = sample();
  const Fields f(d, "config.json");
  EXPECT_EQ(f.integer({"n_embd", "hidden_size"}), 4096);
  EXPECT_EQ(f.integer({"whole"}), 4096);
  EXPECT_EQ(f.integer({"absent"}), std::nullopt);
  EXPECT_EQ(f.integer({"nothing"}), std::nullopt);
  EXPECT_EQ(f.integer_or({"nothing"}, 7), 7);
  EXPECT_EQ(f.real({"ratio"}, 0, 1), 0.5);
  EXPECT_EQ(f.real({"hidden_size"}, 0, 1e9), 4096.0);
  EXPECT_EQ(f.boolean({"flag"}), true);
  EXPECT_EQ(f.boolean({"one"}), true);
  EXPECT_EQ(f.string({"layers"}), "many");
  EXPECT_EQ(f.string_or({"absent"}, "x"), "x");
  EXPECT_EQ(f.required_integer({"hidden_size"}), 4096);
  EXPECT_FALSE(f.has({"nothing"}));
  EXPECT_TRUE(f.object({"text_config"}));
  EXPECT_FALSE(f.object({"vision_config"}));
  EXPECT_EQ(f.unused(), (std::vector<std::string>{"huge", "kinds", "sizes"}));
}

TEST(Fields, RefusesWithFileLineFieldAndValue) {
  const Document d = sample();
  const Fields f(d, "config.json");
  EXPECT_EQ(refusal([&] { f.integer({"layers"}); }),
            "config.json:3: layers 'many' is a string; accepted: a whole number from 0");
  EXPECT_EQ(refusal([&] { f.integer({"ratio"}); }),
            "config.json:4: ratio '0.5' is not a whole number; accepted: a whole number from 0");
  EXPECT_EQ(refusal([&] { f.integer({"huge"}); }),
            "config.json:6: huge '1e+30' is out of range; accepted: a whole number from 0");
  EXPECT_EQ(refusal([&] { f.integer({"flag"}); }),
            "config.json:7: flag 'true' is true or false; accepted: a whole number from 0");
  EXPECT_EQ(refusal([&] {
              f.integer({"n_embd", "hidden_size"}, {1, 1024});
            }),
            "config.json:2: hidden_size '4096' is out of range; accepted: a whole number from 1 to 1024");
  EXPECT_EQ(refusal([&] { f.real({"hidden_size"}, 0, 1); }),
            "config.json:2: hidden_size '4096' is out of range; accepted: a number from 0 to 1");
  EXPECT_EQ(refusal([&] { f.real({"layers"}, 0, 1); }),
            "config.json:3: layers 'many' is a string; accepted: a number from 0 to 1");
  EXPECT_EQ(refusal([&] { f.boolean({"layers"}); }),
            "config.json:3: layers 'many' is a string; accepted: true or false");
  EXPECT_EQ(refusal([&] { f.boolean({"hidden_size"}); }),
            "config.json:2: hidden_size '4096' is a number; accepted: true or false");
  EXPECT_EQ(refusal([&] { f.string({"one"}); }), "config.json:8: one '1' is a number; accepted: a string");
  EXPECT_EQ(refusal([&] { f.strings({"kinds"}); }),
            "config.json:11: kinds[1] '1' is a number; accepted: a list of strings");
  EXPECT_EQ(refusal([&] { f.strings({"one"}); }), "config.json:8: one '1' is a number; accepted: a list of strings");
  EXPECT_EQ(refusal([&] { f.integers({"sizes"}); }),
            "config.json:13: sizes[1] '2.5' is not a whole number; accepted: a whole number from 0");
  EXPECT_EQ(refusal([&] { f.integers({"kinds"}); }),
            "config.json:10: kinds[0] 'a' is a string; accepted: a whole number from 0");
  EXPECT_EQ(refusal([&] {
              f.required_integer({"heads", "n_head"}, {1, 512});
            }),
            "config.json:1: heads is missing; accepted: a whole number from 1 to 512");
  EXPECT_EQ(refusal([&] { f.required_string({"nothing"}); }), "config.json:1: nothing is missing; accepted: a string");
  EXPECT_EQ(refusal([&] { f.object({"one"}); }), "config.json:8: one '1' is a number; accepted: an object");
  EXPECT_EQ(refusal([&] { f.object({"text_config"})->integer({"heads"}); }),
            "config.json:15: text_config.heads '-1' is out of range; accepted: a whole number from 0");
  EXPECT_EQ(refusal([&] { f.object({"text_config"})->required_integer({"layers"}); }),
            "config.json:14: text_config.layers is missing; accepted: a whole number from 0");
  EXPECT_EQ(refusal([] { Fields(Document(Document::Array{1}, 1), "x.json"); }),
            "x.json:1: '[1]' is a list; accepted: an object");
}

}  // namespace
}  // namespace vram
