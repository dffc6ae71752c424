#include "catalog/constant.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "base/error.h"

namespace vram {
namespace {

TEST(Constants, EveryRowSaysWhereItIsFromAndHowSureItIs) {
  const Constants& constants = Constants::builtin();
  ASSERT_GT(constants.all().size(), 80u);
  std::set<std::string> ids;
  for (const Constant& c : constants.all()) {
    EXPECT_TRUE(ids.insert(c.id).second) << c.id;
    EXPECT_GE(c.source.size(), 10u) << c.id;
    EXPECT_LE(c.low, c.value) << c.id;
    EXPECT_LE(c.value, c.high) << c.id;
    if (c.basis == Basis::exact) {
      EXPECT_EQ(c.low, c.high) << c.id;
    }
    EXPECT_FALSE(c.unit.empty()) << c.id;
    // A row named after its unit must be in it.
    if (c.id.find("_bytes_per_second") != std::string::npos) {
      EXPECT_EQ(c.unit, "bytes_per_second") << c.id;
    } else if (c.id.find("_permille") != std::string::npos) {
      EXPECT_EQ(c.unit, "permille") << c.id;
    } else if (c.id.find("_bytes") != std::string::npos && c.id.find("per_parameter") == std::string::npos) {
      EXPECT_EQ(c.unit, "bytes") << c.id;
    }
    EXPECT_EQ(constants.find(c.id), &c);
  }
}

TEST(Constants, DefaultsFollowTheirArithmetic) {
  const Constants& c = Constants::builtin();
  EXPECT_EQ(c.get("cublas_workspace_bytes.default").value, 2 * 4 * 1048576 + 8 * 16 * 1024);
  for (int gen = 3; gen <= 5; ++gen) {
    const int64_t transfers = int64_t{1'000'000'000} << gen;
    EXPECT_EQ(c.get("pcie_x16_bytes_per_second.gen" + std::to_string(gen)).value, transfers * 128 * 16 / (130 * 8));
    EXPECT_LT(c.get("pcie_x16_measured_bytes_per_second.gen" + std::to_string(gen)).high,
              c.get("pcie_x16_bytes_per_second.gen" + std::to_string(gen)).value);
  }
  // QLoRA: 4 + 8/64 + 32/(64*256) = 4.127 bits a weight.
  const double bits = static_cast<double>(c.get("nf4_bits").value) +
                      static_cast<double>(c.get("nf4_double_absmax_bits").value) / 64 +
                      static_cast<double>(c.get("nf4_double_scale_bits").value) / (64 * 256);
  EXPECT_NEAR(bits, 4.127, 0.0005);
}

TEST(Constants, KeysFallBackToTheDefaultRow) {
  const Constants& c = Constants::builtin();
  EXPECT_EQ(c.get_or_default("cuda_context_bytes", "Hopper").id, "cuda_context_bytes.hopper");
  EXPECT_EQ(c.get_or_default("inter_node_bytes_per_second", "Blackwell Ultra").id,
            "inter_node_bytes_per_second.blackwell_ultra");
  EXPECT_EQ(c.get_or_default("cuda_context_bytes", "CDNA3").id, "cuda_context_bytes.default");
  EXPECT_EQ(c.find("nothing"), nullptr);
  EXPECT_THROW(c.get("nothing"), std::logic_error);
  EXPECT_THROW(c.get_or_default("nothing", "x"), std::logic_error);
}

TEST(Constants, EveryPrefixWithKeysByArchitectureHasADefault) {
  const Constants& c = Constants::builtin();
  for (const char* prefix :
       {"cuda_context_bytes", "nccl_bytes", "cublas_workspace_bytes", "te_workspace_bytes", "kv_block_tokens",
        "inter_node_bytes_per_second", "hbm_decode_permille", "hbm_stream_permille", "matmul_peak_permille"}) {
    EXPECT_NE(c.find(std::string(prefix) + ".default"), nullptr) << prefix;
  }
}

TEST(Constants, UserRowsReplaceAndAdd) {
  const Constants& builtin = Constants::builtin();
  const Constants mine = builtin.with_rows_of(
      "[[constant]]\nid = \"cuda_context_bytes.hopper\"\nvalue = 600_000_000\n"
      "[[constant]]\nid = \"a_new_one\"\nvalue = 3\nlow = 2\nhigh = 4\nunit = \"count\"\nsource = \"my bench\"\n",
      "mine.toml");
  EXPECT_EQ(mine.all().size(), builtin.all().size() + 1);
  const Constant& hopper = mine.get("cuda_context_bytes.hopper");
  EXPECT_EQ(hopper.value, 600'000'000);
  EXPECT_EQ(hopper.low, 600'000'000);
  EXPECT_EQ(hopper.unit, "bytes");
  EXPECT_EQ(hopper.source, "mine.toml");
  EXPECT_EQ(hopper.basis, Basis::assumed);
  EXPECT_EQ(mine.get("a_new_one").high, 4);
  EXPECT_EQ(mine.get("mfu_permille").value, builtin.get("mfu_permille").value);
  EXPECT_NE(builtin.get("cuda_context_bytes.hopper").value, 600'000'000);
}

struct Bad {
  const char* toml;
  const char* says;
};

TEST(Constants, BadUserRowsAreRefusedByNameAndLine) {
  const Bad cases[] = {
      {"[[constant]]\nvalue = 1\n", "id"},
      {"[[constant]]\nid = \"x\"\nunit = \"count\"\n", "value"},
      {"[[constant]]\nid = \"x\"\nvalue = 1\n", "unit"},
      {"[[constant]]\nid = \"x\"\nvalue = 1\nunit = \"parsecs\"\n", "parsecs"},
      {"[[constant]]\nid = \"X y\"\nvalue = 1\nunit = \"count\"\n", "X y"},
      {"[[constant]]\nid = \"x\"\nvalue = 1\nunit = \"count\"\nlow = 2\nhigh = 3\n", "low <= value <= high"},
      {"[[constant]]\nid = \"x\"\nvalue = 2\nunit = \"count\"\nlow = 1\nhigh = 3\nbasis = \"exact\"\n", "exact"},
      {"[[constant]]\nid = \"x\"\nvalue = 1\nunit = \"count\"\nbasis = \"guessed\"\n", "guessed"},
      {"[[constant]]\nid = \"x\"\nvalue = 1\nunit = \"count\"\nsorce = \"a\"\n", "source"},
      {"[[constant]]\nid = \"mfu_permille\"\nvalue = 1\nunit = \"bytes\"\n", "permille"},
      {"[[constant]]\nid = \"x\"\nvalue = 1\nunit = \"count\"\n[[constant]]\nid = \"x\"\nvalue = 1\nunit = \"count\"\n",
       "twice"},
      {"value = 1\n", "[[constant]]"},
      {"[[constant]\n", "mine.toml"},
  };
  for (const Bad& bad : cases) {
    try {
      Constants::builtin().with_rows_of(bad.toml, "mine.toml");
      ADD_FAILURE() << "accepted: " << bad.toml;
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(bad.says), std::string::npos) << bad.toml << "\n" << what;
      EXPECT_NE(what.find("mine.toml"), std::string::npos) << what;
    }
  }
}

}  // namespace
}  // namespace vram
