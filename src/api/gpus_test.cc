#include "api/gpus.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "formats/formats.h"
#include "machine/fake_environment.h"

namespace vram {
namespace {

GpusAnswer asked(std::vector<std::string> words, std::vector<std::string> compare = {}) {
  return gpus({.words = std::move(words), .compare = std::move(compare)}, FakeEnvironment());
}

const ComparisonLine& line(const GpusAnswer& answer, std::string_view what) {
  for (const ComparisonLine& l : answer.comparison) {
    if (l.what == what) return l;
  }
  throw std::logic_error("no line " + std::string(what));
}

TEST(Gpus, AllOfThemAndThisMachine) {
  const GpusAnswer answer = asked({});
  EXPECT_EQ(answer.kind, GpusAnswer::Kind::list);
  EXPECT_EQ(answer.devices.size(), 80u);
  EXPECT_TRUE(answer.asked_local);
  EXPECT_EQ(answer.local_absent_because, "no driver");
  FakeEnvironment environment;
  environment.gpus = {.gpus = {{.name = "NVIDIA H100 80GB HBM3", .total_bytes = 81559 * kMiB}, {.name = "New GPU"}}};
  const GpusAnswer here = gpus({}, environment);
  EXPECT_EQ(here.local.at(0).device_id, "h100-80-sxm5");
  EXPECT_EQ(here.local.at(1).device_id, "");
}

TEST(Gpus, WordsFilterByVendorArchitectureAndName) {
  const GpusAnswer hopper = asked({"hopper"});
  EXPECT_EQ(hopper.kind, GpusAnswer::Kind::list);
  EXPECT_FALSE(hopper.asked_local);
  EXPECT_EQ(hopper.devices.size(), 10u);
  for (const GpuFacts& f : hopper.devices) EXPECT_EQ(f.device.arch, "Hopper");
  for (const GpuFacts& f : asked({"AMD", "cdna3"}).devices) EXPECT_EQ(f.device.arch, "CDNA3");
  EXPECT_THROW(asked({"nothing like it"}), InputError);
}

TEST(Gpus, OneDeviceInFull) {
  const GpusAnswer answer = asked({"A100"});
  ASSERT_EQ(answer.kind, GpusAnswer::Kind::one);
  const GpuFacts& a100 = answer.devices.at(0);
  EXPECT_EQ(a100.device.id, "a100-80-sxm4");
  EXPECT_TRUE(a100.left_open);
  for (const DtypeRate& rate : a100.rates) {
    if (rate.dtype == Dtype::bf16) {
      EXPECT_NEAR(*rate.ridge_flops_per_byte, 153.0, 0.05);
    }
  }
  // registers, shared memory (108 units of 128 bytes a clock of 1.41 GHz), L2 (5.4 TB/s measured), HBM 2.039 TB/s,
  // NVLink 300 GB/s, PCIe 31.5 GB/s
  ASSERT_EQ(a100.levels.size(), 6u);
  EXPECT_FALSE(a100.levels[0].step);
  EXPECT_NEAR(*a100.levels[1].bytes_per_second, 108 * 128 * 1.41e9, 1e10);
  EXPECT_NEAR(*a100.levels[2].step, 19.5 / 5.4, 1e-3);
  EXPECT_NEAR(*a100.levels[3].step, 5.4 / 2.039, 1e-9);
  EXPECT_NEAR(*a100.levels[4].step, 2039.0 / 300, 1e-9);
  EXPECT_NEAR(*a100.levels[5].step, 2039 / 31.507692307, 1e-6);
  EXPECT_LT(*a100.levels[5].measured_high, *a100.levels[5].bytes_per_second);
  EXPECT_EQ(asked({"H100", "PCIe"}).devices.at(0).device.id, "h100-80-pcie");
}

TEST(Gpus, FromAnA100ToAnH100) {
  const GpusAnswer answer = asked({}, {"A100", "H100"});
  ASSERT_EQ(answer.kind, GpusAnswer::Kind::comparison);
  EXPECT_NEAR(*line(answer, "bf16_flops_per_second").ratios.at(1), 3.17, 0.005);
  EXPECT_NEAR(*line(answer, "bandwidth_bytes_per_second").ratios.at(1), 1.643, 0.001);
  EXPECT_EQ(*line(answer, "marketing_bytes").ratios.at(1), 1.0);
  EXPECT_NEAR(*line(answer, "bf16_ridge_flops_per_byte").values.at(1), 295, 0.5);
  // An A100 has no fp8: a value for one, a ratio for neither.
  EXPECT_FALSE(line(answer, "fp8_flops_per_second").values.at(0));
  EXPECT_FALSE(line(answer, "fp8_flops_per_second").ratios.at(1));
  EXPECT_THROW(line(answer, "fp4_flops_per_second"), std::logic_error);
}

TEST(Gpus, BadNamesAreRefused) {
  EXPECT_THROW(asked({}, {"A100"}), InputError);
  EXPECT_THROW(asked({}, std::vector<std::string>(9, "A100")), InputError);
  try {
    asked({}, {"A100", "H1000"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.fault().near_miss, "H100");
  }
}

TEST(Gpus, JsonIsReadable) {
  const Document list = parse_json(write_json(to_json(asked({}))), "answer.json");
  EXPECT_EQ(list.find("devices")->array().size(), 80u);
  EXPECT_EQ(list.find("this_machine_absent_because")->string(), "no driver");
  const Document one = parse_json(write_json(to_json(asked({"H100"}))), "answer.json");
  const Document& h100 = one.find("devices")->array().at(0);
  EXPECT_EQ(h100.find("process_bytes_low")->integer(), Devices::builtin().get("H100").usable_bytes());
  EXPECT_EQ(h100.find("bf16_flops_per_second")->number(), 989e12);
  EXPECT_TRUE(h100.find("fp4_flops_per_second")->is_null());
  EXPECT_NEAR(h100.find("ridge_flops_per_byte")->find("bf16")->number(), 295.2, 0.1);
  EXPECT_EQ(h100.find("levels")->array().size(), 6u);
  const Document two = parse_json(write_json(to_json(asked({}, {"A100", "H100"}))), "answer.json");
  EXPECT_TRUE(two.find("comparison")->is_array());
}

}  // namespace
}  // namespace vram
