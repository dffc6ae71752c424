#include "formats/gguf.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "formats/weight_files_test.h"

namespace vram {
namespace {

using made::GgufWriter;

std::string refusal(const std::string& bytes, int64_t size = -1) {
  FileTensors out;
  try {
    read_gguf(MemoryBytes("f", bytes, size), out);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}
std::string refusal(const GgufWriter& w) { return refusal(w.header(), w.size()); }

GgufWriter small() {
  GgufWriter w;
  w.text("general.architecture", "llama").u32("llama.block_count", 2);
  return w;
}

TEST(Gguf, ReadsEveryVersionAndByteOrder) {
  for (uint32_t version : {1u, 2u, 3u}) {
    for (bool big : {false, true}) {
      GgufWriter w(version, big);
      w.text("general.architecture", "llama").u32("a", 7).boolean("b", true).u32s("c", {1, 2, 3});
      w.raw("d", 6, w.number(0x3fc00000, 4)).raw("e", 12, w.number(0x4004000000000000, 8));
      w.raw("f", 1, w.number(0xff, 1)).raw("g", 11, w.number(~uint64_t{4}, 8)).raw("h", 10, w.number(~uint64_t{0}, 8));
      w.texts("tokens", 1000, "token").text("template", std::string(5000, 'x'));
      w.tensor("x", {256, 3}, "Q4_K", 432).tensor("y", {5}, "F32", 20).tensor("z", {}, "F16", 2);
      FileTensors out;
      const std::string header = w.header();
      const GgufMetadata meta = read_gguf(MemoryBytes("f", header, w.size()), out);
      EXPECT_EQ(meta.version, version);
      EXPECT_EQ(meta.big_endian, big);
      EXPECT_EQ(meta.find("general.architecture")->string(), "llama");
      EXPECT_EQ(meta.find("a")->integer(), 7);
      EXPECT_EQ(meta.find("b")->boolean(), true);
      EXPECT_EQ(meta.find("c")->array()[2].integer(), 3);
      EXPECT_EQ(meta.length("c"), 3);
      EXPECT_EQ(meta.find("d")->number(), 1.5);
      EXPECT_EQ(meta.find("e")->number(), 2.5);
      EXPECT_EQ(meta.find("f")->integer(), -1);
      EXPECT_EQ(meta.find("g")->integer(), -5);
      EXPECT_TRUE(meta.find("h")->is_real());
      EXPECT_EQ(meta.find("tokens"), nullptr);
      EXPECT_EQ(meta.length("tokens"), 1000);
      EXPECT_EQ(meta.length("template"), 5000);
      EXPECT_EQ(meta.length("absent"), -1);
      ASSERT_EQ(out.tensors().size(), 3u);
      const FileTensor* x = out.find("x");
      EXPECT_EQ(x->bytes, 432);
      EXPECT_EQ(out.shape(*x)[0], 3);
      EXPECT_EQ(out.shape(*x)[1], 256);
      EXPECT_EQ(out.find("z")->bytes, 2);
      EXPECT_EQ(out.bytes(), 454);
    }
  }
}

// Bits per weight as the formats' authors give them; of the types with scales a row, for a row of 4,096.
TEST(Gguf, KnowsEveryTensorType) {
  const std::pair<const char*, double> published[] = {{"F32", 32},
                                                      {"F16", 16},
                                                      {"BF16", 16},
                                                      {"Q4_0", 4.5},
                                                      {"Q4_1", 5},
                                                      {"Q5_0", 5.5},
                                                      {"Q5_1", 6},
                                                      {"Q8_0", 8.5},
                                                      {"Q8_1", 9},
                                                      {"Q2_K", 2.625},
                                                      {"Q3_K", 3.4375},
                                                      {"Q4_K", 4.5},
                                                      {"Q5_K", 5.5},
                                                      {"Q6_K", 6.5625},
                                                      {"Q8_K", 9.125},
                                                      {"IQ2_XXS", 2.0625},
                                                      {"IQ2_XS", 2.3125},
                                                      {"IQ3_XXS", 3.0625},
                                                      {"IQ1_S", 1.5625},
                                                      {"IQ4_NL", 4.5},
                                                      {"IQ3_S", 3.4375},
                                                      {"IQ2_S", 2.5625},
                                                      {"IQ4_XS", 4.25},
                                                      {"IQ1_M", 1.75},
                                                      {"TQ1_0", 1.6875},
                                                      {"TQ2_0", 2.0625},
                                                      {"MXFP4", 4.25},
                                                      {"NVFP4", 4.5},
                                                      {"Q1_0", 1.125},
                                                      {"Q2_0", 2.25},
                                                      {"IQ2_K", 2.375},
                                                      {"IQ3_K", 3.4375},
                                                      {"IQ4_K", 4.5},
                                                      {"IQ5_K", 5.5},
                                                      {"IQ6_K", 6.625},
                                                      {"Q6_0", 6.5},
                                                      {"IQ2_KS", 2.1875 + 16.0 / 4096},
                                                      {"IQ3_KS", 3.1875 + 16.0 / 4096},
                                                      {"IQ4_KS", 4.25 + 32.0 / 4096},
                                                      {"IQ5_KS", 5.25 + 32.0 / 4096},
                                                      {"IQ4_KSS", 4 + 32.0 / 4096},
                                                      {"IQ2_KL", 2.6875 + 16.0 / 4096},
                                                      {"IQ1_KT", 1.75 + 32.0 / 4096},
                                                      {"IQ2_KT", 2.125 + 32.0 / 4096},
                                                      {"IQ3_KT", 3.125 + 32.0 / 4096},
                                                      {"IQ4_KT", 4 + 32.0 / 4096},
                                                      {"IQ1_BN", 1.625 + 16.0 / 4096},
                                                      {"IQ2_BN", 2 + 32.0 / 4096},
                                                      {"IQ4_K_R4", 4.5},
                                                      {"Q4_0_R8", 4.5},
                                                      {"IQ4_KS_R4", 4.25 + 32.0 / 4096},
                                                      {"I64", 64},
                                                      {"F64", 64}};
  for (const auto& [name, bits] : published) {
    const Encoding* e = gguf_encoding(name);
    ASSERT_NE(e, nullptr) << name;
    EXPECT_DOUBLE_EQ(8.0 * static_cast<double>(encoded_bytes(*e, 3, 4096)) / (3 * 4096), bits) << name;
  }
  EXPECT_EQ(gguf_encoding("q4_k"), gguf_encoding(12));
  for (uint32_t removed : {4u, 5u, 31u, 32u, 33u, 37u, 38u, 43u, 400u, ~0u}) EXPECT_EQ(gguf_encoding(removed), nullptr);
  for (const auto& [id, encoding] : gguf_encodings()) EXPECT_EQ(gguf_encoding(id), encoding);
}

// Headers of real models, rebuilt from their published tensor lists: as large as the files, sizes to the last byte.
TEST(Gguf, RealTensorListsComeOutExact) {
  const auto lists = made::real_lists(VRAM_SOURCE_DIR);
  EXPECT_EQ(lists.size(), 12u);
  for (const made::RealList& list : lists) {
    FileTensors out;
    const std::string header = list.writer.header();
    read_gguf(MemoryBytes(list.name, header, list.writer.size()), out);
    int64_t sum = 0, numbers = 0;
    for (const FileTensor& t : out.tensors()) {
      sum += t.bytes;
      numbers += out.elements(t);
    }
    EXPECT_EQ(static_cast<int64_t>(out.tensors().size()), list.tensors) << list.name;
    EXPECT_EQ(sum, list.bytes) << list.name;
    EXPECT_EQ(out.bytes(), list.bytes) << list.name;
    EXPECT_EQ(numbers, list.elements) << list.name;
    EXPECT_NE(refusal(header, list.writer.size() - 64), "(accepted)") << list.name;
  }
}

TEST(Gguf, RefusesBrokenFilesInOneLine) {
  const auto with = [](auto&& change) {
    GgufWriter w = small();
    change(w);
    return refusal(w);
  };
  const auto patched = [](size_t at, const std::string& bytes) {
    GgufWriter w = small();
    w.tensor("t", {32}, "F32", 128);
    std::string header = w.header();
    return refusal(header.replace(at, bytes.size(), bytes), w.size());
  };
  const std::pair<std::string, std::string> cases[] = {
      {refusal(""), "f: does not begin as a GGUF file does"},
      {refusal("GGU"), "does not begin as a GGUF file does"},
      {refusal("FUGG"), "does not begin as a GGUF file does"},
      {refusal("GGUF"), "ends within its header, at byte 4"},
      {refusal("GGUF\x03"), "ends within its header"},
      {refusal("ggml0123456789"), "is a model file from before GGUF"},
      {refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1073741824\n"),
       "is a Git LFS pointer, not the weights (of 1.00 GiB)"},
      {refusal("<!doctype html>"), "is an HTML page"},
      {patched(4, made::little(0, 4)), "version 0; accepted: versions 1 to 3"},
      {patched(4, made::little(4, 4)), "version 4"},
      {patched(8, made::little(~uint64_t{0}, 8)), "claims more tensors than the file can hold"},
      {patched(8, made::little(1'000'000'000, 8)), "claims more tensors than the file can hold"},
      {patched(16, made::little(~uint64_t{0}, 8)), "claims more metadata than the file can hold"},
      {patched(16, made::little(3, 8)), ""},
      {refusal(GgufWriter().header(), 24), "(accepted)"},
      {with([](GgufWriter& w) { w.u32("", 1); }), "has a metadata key without a name"},
      {with([](GgufWriter& w) { w.u32(std::string(65'536, 'k'), 1); }), "has a metadata key of 65,536 bytes"},
      {with([](GgufWriter& w) { w.u32("a\xc3\xa9", 1); }), "is no key; accepted: printable ASCII"},
      {with([](GgufWriter& w) { w.u32("a b", 1); }), "is no key"},
      {with([](GgufWriter& w) { w.u32("llama.block_count", 2); }), "key 'llama.block_count' stands there twice"},
      {with([](GgufWriter& w) { w.raw("k", 13, "x"); }), "key 'k' has the unknown type 13; accepted: 0 to 12"},
      {with([](GgufWriter& w) { w.raw("k", 7, "\x02"); }), "key 'k' is a bool of value 2; accepted: 0 or 1"},
      {with([](GgufWriter& w) { w.raw("k", 8, made::little(1'000'000, 8)); }), "has a string longer than the file"},
      {with([](GgufWriter& w) { w.raw("k", 8, made::little(~uint64_t{0}, 8)); }), "has a string longer than the file"},
      {with([](GgufWriter& w) { w.raw("k", 9, made::little(9, 4) + made::little(1, 8)); }), "is an array of arrays"},
      {with([](GgufWriter& w) { w.raw("k", 9, made::little(99, 4) + made::little(1, 8)); }), "the unknown type 99"},
      {with([](GgufWriter& w) { w.raw("k", 9, made::little(4, 4) + made::little(uint64_t{1} << 62, 8)); }),
       "has more entries than the file can hold"},
      {with([](GgufWriter& w) { w.raw("k", 9, made::little(8, 4) + made::little(uint64_t{1} << 61, 8)); }),
       "has more entries than the file can hold"},
      {with([](GgufWriter& w) { w.raw("k", 9, made::little(8, 4) + made::little(1, 8) + made::little(99, 8)); }),
       "has a string longer than the file"},
      {with([](GgufWriter& w) { w.u32("general.alignment", 0); }),
       "'general.alignment' is 0; accepted: a power of two"},
      {with([](GgufWriter& w) { w.u32("general.alignment", 24); }), "is 24; accepted: a power of two"},
      {with([](GgufWriter& w) { w.u32("general.alignment", 1u << 31); }), "is 2147483648"},
      {with([](GgufWriter& w) { w.u16("general.alignment", 32); }), "is of type u16; accepted: u32"},
      {with([](GgufWriter& w) { w.tensor(std::string(64, 'n'), {1}, "F32", 4); }),
       "has a tensor name that is too long"},
      {with([](GgufWriter& w) { w.tensor("", {1}, "F32", 4); }), "has a tensor without a name"},
      {with([](GgufWriter& w) { w.tensor("\xff", {1}, "F32", 4); }), "has a name that is not UTF-8"},
      {with([](GgufWriter& w) { w.tensor("t", {1}, "F32", 4).tensor("t", {1}, "F32", 4); }),
       "tensor 't' stands there twice"},
      {with([](GgufWriter& w) {
         w.tensor("t", {1, 1, 1, 1, 1}, "F32", 4);
       }),
       "has 5 dimensions; accepted: at most 4"},
      {with([](GgufWriter& w) { w.tensor("t", {-1}, "F32", 4); }), "has a dimension beyond 2^63"},
      {with([](GgufWriter& w) {
         w.tensor("t", {int64_t{1} << 40, int64_t{1} << 40}, "F32", 4);
       }),
       "exceeds 2^63 bytes"},
      {with([](GgufWriter& w) { w.tensor("t", {int64_t{1} << 62}, "F32", 4); }), "exceeds 2^63 bytes"},
      {with([](GgufWriter& w) {
         w.tensor("a", {int64_t{1} << 60}, "F32", int64_t{1} << 62);
         w.tensor("b", {int64_t{1} << 60}, "F32", 0);
       }),
       "makes the sizes exceed 2^63 bytes"},
      {with([](GgufWriter& w) { w.tensor("t", {1}, 43, 4); }), "tensor 't' is of the unknown type 43"},
      {with([](GgufWriter& w) { w.tensor("t", {32}, 31, 18); }), "tensor 't' is of the removed type 31"},
      {with([](GgufWriter& w) { w.tensor("t", {100}, "Q4_K", 144); }),
       "has rows of 100 numbers, which Q4_K does not store; accepted: a multiple of 256"},
      {with([](GgufWriter& w) { w.tensor("t", {1}, 0, 4, 16); }), "begins at byte 16; accepted: a multiple of 32"},
      {with([](GgufWriter& w) { w.tensor("t", {1}, 0, 4, 64); }), "begins at byte 64 of the data; accepted: 0, where"},
      {with([](GgufWriter& w) { w.tensor("t", {16}, 0, 64).tensor("u", {1}, 0, 4, 32); }),
       "tensor 'u' begins at byte 32 of the data; accepted: 64"},
  };
  for (const auto& [line, expected] : cases) {
    EXPECT_NE(line.find(expected), std::string::npos) << line << "\n wanted: " << expected;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
  // The header may be cut anywhere: each time the file is too short, never anything worse.
  GgufWriter w = small();
  w.u32s("array", {1, 2}).tensor("t", {32}, "F32", 128);
  const std::string whole = w.header() + std::string(128, '\0');
  EXPECT_EQ(refusal(whole), "(accepted)");
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusal(whole.substr(0, n)), "(accepted)") << n;
}

TEST(Gguf, AlignmentIsTheFilesOwn) {
  GgufWriter w;
  w.alignment = 64;
  w.u32("general.alignment", 64).tensor("a", {1}, "F32", 4).tensor("b", {1}, "F32", 4);
  EXPECT_EQ(refusal(w), "(accepted)");
  w = GgufWriter();
  w.u32("general.alignment", 64).tensor("a", {1}, "F32", 4).tensor("b", {1}, "F32", 4);
  EXPECT_NE(refusal(w).find("accepted: a multiple of 64"), std::string::npos);
}

std::string split_refusal(const std::vector<GgufWriter>& writers) {
  std::vector<std::string> headers;
  std::vector<std::unique_ptr<ByteSource>> files;
  headers.reserve(writers.size());
  for (const GgufWriter& w : writers) {
    headers.push_back(w.header());
    files.push_back(std::make_unique<MemoryBytes>("f" + std::to_string(files.size() + 1), headers.back(), w.size()));
  }
  FileTensors out;
  try {
    const GgufMetadata meta = read_gguf_split(files, out);
    return fmt::format("{} tensors, {} bytes, {}", out.tensors().size(), out.bytes(),
                       meta.find("general.architecture") ? "architecture" : "none");
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Gguf, SplitFilesBelongTogether) {
  const auto shard = [](int no, int count, int tensors, const char* name) {
    GgufWriter w;
    if (no == 0) w.text("general.architecture", "llama");
    w.u16("split.no", no).u16("split.count", count).i32("split.tensors.count", tensors);
    w.tensor(name, {8}, "F32", 32);
    return w;
  };
  EXPECT_EQ(split_refusal({shard(0, 2, 2, "a"), shard(1, 2, 2, "b")}), "2 tensors, 64 bytes, architecture");
  EXPECT_EQ(split_refusal({shard(0, 3, 2, "a"), shard(1, 3, 2, "b")}), "f1: key 'split.count' is 3; there are 2 files");
  EXPECT_EQ(split_refusal({shard(0, 2, 2, "a"), shard(0, 2, 2, "b")}), "f2: key 'split.no' is 0, as in another file");
  EXPECT_EQ(split_refusal({shard(0, 2, 2, "a"), shard(7, 2, 2, "b")}),
            "f2: key 'split.no' is missing or out of range; accepted: 0 to 1");
  EXPECT_EQ(split_refusal({shard(0, 2, 3, "a"), shard(1, 2, 3, "b")}),
            "f1: key 'split.tensors.count' is 3; the 2 files hold 2");
  EXPECT_EQ(split_refusal({shard(0, 2, 2, "a"), shard(1, 2, 2, "a")}), "f2: tensor 'a' is in f1 as well");
  EXPECT_EQ(split_refusal({small(), shard(1, 2, 2, "a")}), "f1: key 'split.count' is missing");

  EXPECT_EQ(gguf_shard("Kimi-K2-Q4-00002-of-00013.gguf").number, 2);
  EXPECT_EQ(gguf_shard("Kimi-K2-Q4-00002-of-00013.gguf").count, 13);
  EXPECT_EQ(gguf_shard_name(gguf_shard("m-00002-of-00013.gguf"), 13), "m-00013-of-00013.gguf");
  for (const char* other : {"m.gguf", "m-00003-of-00002.gguf", "m-0001-of-0002.gguf", "m-00000-of-00002.gguf",
                            "-00001-of-00002.gguf", "m-00001-of-00002.bin", "m-0000x-of-00002.gguf"}) {
    EXPECT_EQ(gguf_shard(other).count, 0) << other;
  }
}

}  // namespace
}  // namespace vram
