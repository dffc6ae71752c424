#include "base/error.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"

namespace vram {
namespace {

TEST(InputError, IsOneLineWithEveryPart) {
  EXPECT_STREQ(InputError({.file = "job.yaml",
                           .line = 7,
                           .field = "stack",
                           .value = "megatro",
                           .problem = "is unknown",
                           .accepted = "megatron, fsdp",
                           .near_miss = "megatron"})
                   .what(),
               "job.yaml:7: stack 'megatro' is unknown; accepted: megatron, fsdp. Did you mean megatron?");
  EXPECT_STREQ(InputError({.field = "--tp", .value = "3", .problem = "does not divide the 64 heads"}).what(),
               "--tp '3' does not divide the 64 heads");
  EXPECT_STREQ(InputError({.file = "x", .problem = "is empty"}).what(), "x: is empty");
}

TEST(InputError, NoPartCanBreakTheLine) {
  const std::string hostile = "a\nb\x1b[31m\r";
  const InputError error({.file = hostile,
                          .line = 1,
                          .field = hostile,
                          .value = hostile,
                          .problem = hostile,
                          .accepted = hostile,
                          .near_miss = hostile});
  const std::string_view what = error.what();
  EXPECT_EQ(what.find('\n'), std::string_view::npos);
  EXPECT_EQ(what.find('\r'), std::string_view::npos);
  EXPECT_EQ(what.find('\x1b'), std::string_view::npos);
  EXPECT_EQ(error.fault().value, hostile);
}

TEST(NearMiss, FindsWhatWasMeant) {
  const std::vector<std::string_view> models = {"meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.1-70B-Instruct",
                                                "meta-llama/Llama-3.1-8B", "Qwen/Qwen2.5-7B",
                                                "mistralai/Mistral-7B-v0.1"};
  EXPECT_EQ(near_miss("llama-3.1-70", models), "meta-llama/Llama-3.1-70B");
  EXPECT_EQ(near_miss("Llama_3.1 70b", models), "meta-llama/Llama-3.1-70B");
  EXPECT_EQ(near_miss("qwen25-7b", models), "Qwen/Qwen2.5-7B");
  EXPECT_EQ(near_miss("gpt-oss-120b", models), "");
  const std::vector<std::string_view> options = {"tensor_parallel", "pipeline_parallel", "tp", "zero", "stack"};
  EXPECT_EQ(near_miss("tensor-paralel", options), "tensor_parallel");
  EXPECT_EQ(near_miss("zeor", options), "");  // two of four letters differ
  EXPECT_EQ(near_miss("zer0", options), "zero");
  EXPECT_EQ(near_miss("TP", options), "tp");
  EXPECT_EQ(near_miss("x", options), "");
  EXPECT_EQ(near_miss("", options), "");
  EXPECT_EQ(near_miss("stakc", options), "stack");
  EXPECT_EQ(near_miss("anything", {}), "");
}

TEST(NearMiss, ToleratesAHugeWord) {
  const std::string word(1'000'000, 'x');
  EXPECT_EQ(near_miss(word, {"tp", "zero"}), "");
}

TEST(Printable, ReplacesWhatWouldDisturbATerminal) {
  EXPECT_EQ(printable("plain"), "plain");
  EXPECT_EQ(printable("a\tb\nc\x1b[0m\x7f"), "a?b?c?[0m?");
  EXPECT_EQ(printable("\xe6\x98\xbe\xe5\xad\x98"), "\xe6\x98\xbe\xe5\xad\x98");
  EXPECT_EQ(printable("\xe6\x98"), "??");  // cut off
  EXPECT_EQ(printable("\xff\xfe"
                      "a"),
            "??a");                             // never UTF-8
  EXPECT_EQ(printable("\xc0\xaf"), "??");       // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");  // surrogate
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m");  // C1: control sequence introducer
  EXPECT_EQ(printable("a\xe2\x80\xa8"
                      "b"),
            "a?b");  // line separator
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "cod.exe"),
            "?cod.exe");  // right-to-left override
}

TEST(Printable, ShortensBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef...");
  EXPECT_EQ(printable("\xe6\x98\xbe\xe5\xad\x98", 5), "\xe6\x98\xbe...");
  EXPECT_EQ(printable("\xe6\x98\xbe", 2), "...");
  EXPECT_LE(printable(std::string(1'000'000, 'x')).size(), 63u);
}

RC_GTEST_PROP(Printable, IsAlwaysValidAndShort, (const std::string& text)) {
  const std::string out = printable(text, 20);
  RC_ASSERT(out.size() <= 23u);
  RC_ASSERT(find_invalid_utf8(out) == std::string_view::npos);
  for (char c : out) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace
}  // namespace vram
