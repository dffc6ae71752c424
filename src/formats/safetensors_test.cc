#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "formats/weight_files_test.h"

namespace vram {
namespace {

using made::little;
using made::safetensors;

std::string refusal(const std::string& bytes, int64_t size = -1) {
  FileTensors out;
  try {
    read_safetensors(MemoryBytes("f", bytes, size), out);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

// One tensor with the given entry, and `data` bytes.
std::string one(const std::string& entry, size_t data) { return safetensors("{\"a\":" + entry + "}", data); }

TEST(Safetensors, ReadsNamesShapesAndBytes) {
  const std::string bytes =
      safetensors(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[],"data_offsets":[12,16]},)"
                  R"("a\u00e9\ud83d\ude00":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
                  R"("z":{"dtype":"F64","shape":[0,4],"data_offsets":[12,12]}}   )",
                  16);
  FileTensors out;
  read_safetensors(MemoryBytes("f", bytes), out);
  ASSERT_EQ(out.tensors().size(), 3u);
  EXPECT_EQ(out.bytes(), 16);
  EXPECT_EQ(out.tensors()[0].name, "b");
  EXPECT_EQ(out.elements(out.tensors()[0]), 1);
  const FileTensor* a = out.find("a\xc3\xa9\xf0\x9f\x98\x80");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->encoding->name, "BF16");
  EXPECT_EQ(std::vector<int64_t>(out.shape(*a).begin(), out.shape(*a).end()), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(out.find("z")->bytes, 0);
  EXPECT_EQ(out.find("nothing"), nullptr);
  EXPECT_EQ(refusal(safetensors("{}")), "(accepted)");
}

TEST(Safetensors, KnowsEveryDtype) {
  // Bits of one number, of the format's published list.
  const std::pair<const char*, int> bits[] = {
      {"BOOL", 8},        {"U8", 8},          {"I8", 8},      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
      {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},        {"F32", 32},    {"F64", 64},    {"I64", 64},    {"U64", 64},
      {"C64", 64},        {"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (const auto& [name, each] : bits) {
    const int n = 8 * each / 8;  // 8 numbers fill whole bytes for each of them
    EXPECT_EQ(refusal(one(fmt::format(R"({{"dtype":"{}","shape":[2,4],"data_offsets":[0,{}]}})", name, n), n)),
              "(accepted)")
        << name;
    EXPECT_NE(refusal(one(fmt::format(R"({{"dtype":"{}","shape":[2,4],"data_offsets":[0,{}]}})", name, n + 1), n + 1)),
              "(accepted)")
        << name;
  }
}

TEST(Safetensors, TouchesOnlyTheHeader) {
  class Counting : public MemoryBytes {
   public:
    using MemoryBytes::MemoryBytes;
    mutable int64_t furthest = 0;
    std::string read(int64_t offset, size_t length) const override {
      furthest = std::max(furthest, offset + static_cast<int64_t>(length));
      return MemoryBytes::read(offset, length);
    }
  };
  made::SafetensorsHeader header;
  for (int i = 0; i < 100; ++i) header.add(fmt::format("t{}", i), "F32", {int64_t{1} << 28}, int64_t{1} << 30);
  const std::string start = header.file_start();
  const Counting file("f", start, static_cast<int64_t>(start.size()) + header.data_bytes());
  FileTensors out;
  read_safetensors(file, out);
  EXPECT_EQ(out.bytes(), int64_t{100} << 30);
  EXPECT_EQ(file.furthest, static_cast<int64_t>(start.size()));
}

TEST(Safetensors, RefusesBrokenFilesInOneLine) {
  const std::string good = R"({"dtype":"F16","shape":[2,2],"data_offsets":[0,8]})";
  struct Case {
    std::string bytes;
    std::string expected;  // part of the line
  };
  const Case cases[] = {
      {"", "f: holds 0 bytes, too few for a safetensors file"},
      {"1234567", "f: holds 7 bytes"},
      {little(100'000'001, 8) + "{}", "claims a header of 100000001 bytes; accepted: at most 100,000,000 bytes"},
      {little(~uint64_t{0}, 8) + "{}", "claims a header of 18446744073709551615 bytes"},
      {little(3, 8) + "{}", "claims a header of 3 bytes, and only 2 follow"},
      {little(0, 8), "does not begin with '{'"},
      {little(1, 8) + "x", "does not begin with '{'"},
      {safetensors(" {}"), "does not begin with '{'"},
      {safetensors("{"), "header, byte 1: the JSON ends early"},
      {safetensors("{\"a\":"), "the JSON ends early"},
      {safetensors("{\"a\""), "the JSON ends early"},
      {safetensors("{\xff}"), "header, byte 1: bytes that are not UTF-8"},
      {safetensors("{}x"), "header, byte 2: something follows the JSON"},
      {safetensors("{} []"), "something follows the JSON"},
      {safetensors("{\"a\":1}"), "is no JSON; accepted: '{'"},
      {safetensors("{\"a\":{}}"), "accepted: a string"},
      {safetensors("{\"a\n\":" + good + "}", 8), "a control character within a string"},
      {safetensors("{\"a\\x\":" + good + "}", 8), "a broken escape"},
      {safetensors("{\"\\ud800\":" + good + "}", 8), "half a surrogate pair"},
      {safetensors("{\"\":" + good + "}", 8), "has no name"},
      {safetensors("{\"a\":" + good + ",}", 8), "accepted: a string"},
      {safetensors("{\"a\":" + good + "}", 9), "goes on for 1 bytes after its last tensor"},
      {safetensors("{\"a\":" + good + "}", 7), "ends 1 bytes before its last tensor does (an unfinished download?)"},
      {safetensors("{}", 4), "goes on for 4 bytes"},
      {one(R"({"dtype":"F16","shape":[2,3],"data_offsets":[0,8]})", 8),
       "tensor 'a' has data_offsets of 8 bytes; shape [2, 3] of F16 takes 12"},
      {one(R"({"dtype":"F16","shape":[2,2],"data_offsets":[8,0]})", 8), "run backwards"},
      {one(R"({"dtype":"Q4","shape":[2,2],"data_offsets":[0,8]})", 8), "has the unknown dtype 'Q4'; accepted: BF16"},
      {one(R"({"dtype":"F16","shape":[2,-2],"data_offsets":[0,8]})", 8), "a dimension is negative"},
      {one(R"({"dtype":"F16","shape":[2,2.0],"data_offsets":[0,8]})", 8), "a dimension is no whole number"},
      {one(R"({"dtype":"F16","shape":[2,2e0],"data_offsets":[0,8]})", 8), "a dimension is no whole number"},
      {one(R"({"dtype":"F16","shape":[02,2],"data_offsets":[0,8]})", 8), "a dimension is no whole number"},
      {one(R"({"dtype":"F16","shape":"2,2","data_offsets":[0,8]})", 8), "accepted: '['"},
      {one(R"({"dtype":"F16","shape":[2,2],"data_offsets":[0,8,9]})", 8), "accepted: ']'"},
      {one(R"({"dtype":"F16","shape":[2,2],"data_offsets":[0,-8]})", 8), "a data offset is negative"},
      {one(R"({"dtype":"F16","shape":[2,2],"data_offsets":[0,18446744073709551615]})", 8),
       "a data offset exceeds 2^63"},
      {one(R"({"dtype":"F16","shape":[2,2]})", 8), "tensor 'a' has no data_offsets"},
      {one(R"({"shape":[2,2],"data_offsets":[0,8]})", 8), "tensor 'a' has no dtype"},
      {one(R"({"dtype":"F16","data_offsets":[0,8]})", 8), "tensor 'a' has no shape"},
      {one(R"({"dtype":"F16","dtype":"F16","shape":[2,2],"data_offsets":[0,8]})", 8), "has dtype twice"},
      {one(R"({"dtype":"F16","shape":[2,2],"data_offsets":[0,8],"x":[[[[[1]]]]]})", 8), "unknown field 'x'"},
      {one(R"({"dtype":"F16","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,2]})", 2),
       "too many dimensions; accepted: at most 16"},
      // The product overflows; the product fits and its bytes do not; a zero at the end does not help.
      {one(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0), "exceeds 2^63 bytes"},
      {one(R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})", 0), "exceeds 2^63 bytes"},
      {one(R"({"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]})", 0), "exceeds 2^63 bytes"},
      {one(R"({"dtype":"F4","shape":[3],"data_offsets":[0,1]})", 1), "fills no whole bytes; accepted: a multiple of 2"},
      {one(R"({"dtype":"F6_E2M3","shape":[2],"data_offsets":[0,2]})", 2), "fills no whole bytes"},
      {safetensors("{\"a\":" + good + ",\"a\":" + R"({"dtype":"F16","shape":[2,2],"data_offsets":[8,16]}})", 16),
       "tensor 'a' stands there twice"},
      {safetensors("{\"a\":" + good + ",\"\\u0061\":" + R"({"dtype":"F16","shape":[2,2],"data_offsets":[8,16]}})", 16),
       "tensor 'a' stands there twice"},
      {safetensors("{\"a\":" + good + ",\"b\":" + good + "}", 8), "overlaps a tensor that ends at 8"},
      {safetensors("{\"a\":" + good + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[9,10]}})", 10),
       "tensor 'b' begins at byte 9 of the data: a hole of 1 bytes is before it"},
      {one(R"({"dtype":"U8","shape":[1],"data_offsets":[1,2]})", 2), "a hole of 1 bytes"},
      {safetensors(R"({"__metadata__":{"a":1}})"), "accepted: a string"},
      {safetensors(R"({"__metadata__":{"a":"x","a":"y"}})"), "__metadata__ 'a' stands there twice"},
      {safetensors(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__ stands there twice"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 4976698672\n",
       "f: is a Git LFS pointer, not the weights (of 4.63 GiB); fetch them with 'git lfs pull'"},
      {"<!DOCTYPE html><html></html>", "is an HTML page"},
      {"PK\x03\x04 and more of it", "is a PyTorch checkpoint"},
      {std::string("\x80\x02}q\x01X\x03\x00\x00", 9) + "0123456789", "is a PyTorch checkpoint"},
      {"GGUF\x03" + std::string(40, '\0'), "is a GGUF file"},
      {R"({"metadata": {}, "weight_map": {}})", "is JSON text"},
  };
  for (const Case& c : cases) {
    const std::string line = refusal(c.bytes);
    EXPECT_NE(line.find(c.expected), std::string::npos) << line << "\n wanted: " << c.expected;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

TEST(Safetensors, ManyTensorsOverTheSameBytesAreRefused) {
  std::string header = "{";
  for (int i = 0; i < 1000; ++i) {
    header += fmt::format(R"({}"t{}":{{"dtype":"U8","shape":[1000],"data_offsets":[0,1000]}})", i ? "," : "", i);
  }
  EXPECT_NE(refusal(safetensors(header + "}", 1000)).find("overlaps"), std::string::npos);
}

TEST(ShardIndex, NamesFilesAndTensors) {
  const std::string text =
      R"({"metadata": {"total_size": 24, "note": [1, {"x": null}]}, "weight_map": {"a": "m-1.safetensors", )"
      R"("b": "m-2.safetensors", "c\u0041": "m-1.safetensors"}})";
  const ShardIndex index = parse_shard_index(text, "i");
  EXPECT_EQ(index.files, (std::vector<std::string>{"m-1.safetensors", "m-2.safetensors"}));
  EXPECT_EQ(index.total_size, 24);
  EXPECT_EQ(index.names, (std::vector<std::string_view>{"a", "b", "cA"}));
  EXPECT_EQ(index.file_of, (std::vector<uint16_t>{0, 1, 0}));
  EXPECT_EQ(parse_shard_index(R"({"metadata": {"total_size": 24.0}, "weight_map": {}})", "i").total_size, 24);
}

TEST(ShardIndex, IsHeldAgainstItsFiles) {
  const auto checked = [](const std::string& text, const std::vector<std::string>& headers) -> std::string {
    try {
      const ShardIndex index = parse_shard_index(text, "i");
      FileTensors out;
      for (size_t f = 0; f < headers.size(); ++f) {
        std::string name = "m-" + std::to_string(f + 1);
        read_safetensors(MemoryBytes(name, safetensors(headers[f], 1)), out);
      }
      check_against_index(index, out, "i");
    } catch (const InputError& error) {
      return error.what();
    }
    return "(accepted)";
  };
  const auto header = [](const char* name) {
    return fmt::format(R"({{"{}":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}})", name);
  };
  const std::string good = R"({"weight_map":{"a":"m-1","b":"m-2"}})";
  EXPECT_EQ(checked(good, {header("a"), header("b")}), "(accepted)");
  EXPECT_EQ(checked(good, {header("b"), header("a")}), "i: tensor 'a' is not in m-1, where the index has it");
  EXPECT_EQ(checked(good, {header("a"), header("c")}), "i: tensor 'b' is not in m-2, where the index has it");
  EXPECT_EQ(checked(good, {header("a"), header("a")}), "m-2: tensor 'a' is in m-1 as well");
  EXPECT_EQ(checked(R"({"weight_map":{"a":"m-1"}})", {header("a"), header("b")}).substr(0, 20), "i: tensor 'b' is in ");
  EXPECT_EQ(checked(R"({"weight_map":{"a":"m-1","a":"m-1","b":"m-2"}})", {header("a"), header("b")}),
            "i: tensor 'a' stands there twice");
  EXPECT_NE(checked(R"({"weight_map":{"a":"../m-1"}})", {}).find("is no plain file name"), std::string::npos);
  EXPECT_NE(checked(R"({"weight_map":{"a":""}})", {}).find("is no plain file name"), std::string::npos);
  EXPECT_NE(checked(R"({"weight_map":{"a":1}})", {}).find("accepted: a string"), std::string::npos);
  EXPECT_NE(checked(R"({"weight_map":{}, "weight_map":{}})", {}).find("twice"), std::string::npos);
  EXPECT_NE(checked(R"({"metadata":{}})", {}).find("has no weight_map"), std::string::npos);
  EXPECT_NE(checked("{\"metadata\":\n{\"a\": nope}}", {}).find("i:2: column 7"), std::string::npos);
  EXPECT_NE(checked("version https://git-lfs.github.com/spec/v1\n", {}).find("Git LFS pointer"), std::string::npos);
}

}  // namespace
}  // namespace vram
