#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "machine/machine.h"

namespace vram {
namespace {

double gib(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(kGiB); }

TEST(Devices, EveryRowIsCompleteAndItsTotalsAreInOrder) {
  const Devices& devices = Devices::builtin();
  EXPECT_EQ(devices.all().size(), 80u);
  std::set<std::string> ids;
  for (const Device& d : devices.all()) {
    EXPECT_TRUE(ids.insert(d.id).second) << d.id;
    EXPECT_FALSE(d.name.empty()) << d.id;
    EXPECT_FALSE(d.vendor.empty()) << d.id;
    EXPECT_FALSE(d.arch.empty()) << d.id;
    EXPECT_EQ(d.source.rfind("https://", 0), 0u) << d.id;
    EXPECT_FALSE(d.marketing_text.empty()) << d.id;
    ASSERT_GT(d.marketing_bytes, kGiB) << d.id;
    const Bytes driver = d.driver_bytes.value_or(d.marketing_bytes);
    EXPECT_LE(driver, d.marketing_bytes) << d.id;
    if (d.process_bytes_low) {
      EXPECT_LE(*d.process_bytes_low, *d.process_bytes_high) << d.id;
      EXPECT_LE(*d.process_bytes_high, driver) << d.id;
      // A process sees most of a discrete card; two thirds of a shared memory at the least.
      EXPECT_GT(*d.process_bytes_low, (d.unified_memory ? 0.6 : 0.9) * static_cast<double>(driver)) << d.id;
    }
    EXPECT_GT(d.usable_bytes(), 0) << d.id;
    EXPECT_LE(d.usable_bytes(), d.marketing_bytes) << d.id;
    ASSERT_TRUE(d.bandwidth) << d.id;
    EXPECT_GT(*d.bandwidth, 50e9) << d.id;
    EXPECT_LT(*d.bandwidth, 10e12) << d.id;
    EXPECT_TRUE(d.flops_bf16 || d.flops_fp32) << d.id;
    // Halving the width at most doubles a dense rate, but for the vendor's rounding.
    if (d.flops_bf16 && d.flops_fp8) {
      EXPECT_LE(*d.flops_fp8, 2.05 * *d.flops_bf16) << d.id;
    }
    if (d.rent_low) {
      EXPECT_LE(*d.rent_low, *d.rent_high) << d.id;
    }
    if (!d.host_link_text.empty() && d.host_link_text.find('x') == 1) {
      EXPECT_TRUE(d.host_link) << d.id;
    }
    EXPECT_EQ(devices.find(d.id), &d);
    EXPECT_EQ(devices.find(d.name), &d);
    for (const std::string& alias : d.aliases) EXPECT_EQ(devices.find(alias), &d) << alias;
    for (const std::string& name : d.short_names) {
      EXPECT_EQ(devices.find(name), &d) << name;
      EXPECT_TRUE(devices.match(name).left_open) << name;
    }
  }
}

TEST(Devices, UsableIsWhatAProcessSees) {
  const Devices& devices = Devices::builtin();
  EXPECT_NEAR(gib(devices.get("A100").usable_bytes()), 79.15, 0.005);
  EXPECT_NEAR(gib(devices.get("H100").usable_bytes()), 79.10, 0.005);
  EXPECT_NEAR(gib(devices.get("4090").usable_bytes()), 23.52, 0.005);
  EXPECT_NEAR(gib(devices.get("MI250X").usable_bytes()), 63.90, 0.005);
  EXPECT_EQ(devices.get("A100").marketing_bytes, 80 * kGiB);
  EXPECT_EQ(*devices.get("A100").driver_bytes, 81920 * kMiB);
  // No published process total: the driver's; no driver's: the marketing size.
  EXPECT_EQ(devices.get("TPU-v5e").usable_bytes(), 16128 * kMiB);
  EXPECT_EQ(devices.get("B100").usable_bytes(), 192 * kGiB);
}

TEST(Devices, NamesMeetWithoutCaseSeparatorsAndMaker) {
  const Devices& devices = Devices::builtin();
  const std::pair<const char*, const char*> names[] = {{"H100", "h100-80-sxm5"},
                                                       {"h100-80g", "h100-80-sxm5"},
                                                       {"H100 80GB SXM5", "h100-80-sxm5"},
                                                       {"A100", "a100-80-sxm4"},
                                                       {"A100-80G", "a100-80-sxm4"},
                                                       {"A100-40G", "a100-40-sxm4"},
                                                       {"A100-SXM4-80GB", "a100-80-sxm4"},
                                                       {"RTX4090", "rtx-4090"},
                                                       {"4090", "rtx-4090"},
                                                       {"GeForce RTX 4090", "rtx-4090"},
                                                       {"NVIDIA GeForce RTX 4090", "rtx-4090"},
                                                       {"H200", "h200-141-sxm5"},
                                                       {"MI300X", "mi300x"},
                                                       {"AMD Instinct MI300X", "mi300x"},
                                                       {"V100", "v100-16-sxm2"},
                                                       {"T4", "t4"},
                                                       {"L40S", "l40s"},
                                                       {"B200", "b200-180-sxm"},
                                                       {"GB200", "gb200-186"},
                                                       {"7900XTX", "rx-7900xtx"},
                                                       {"v5e", "tpu-v5e"},
                                                       {"M3 Ultra", "m3-ultra"},
                                                       {"910B", "ascend-910b3"},
                                                       {"rtx_3090", "rtx-3090"}};
  for (const auto& [name, id] : names) {
    const Device* device = devices.find(name);
    ASSERT_NE(device, nullptr) << name;
    EXPECT_EQ(device->id, id) << name;
  }
  EXPECT_EQ(devices.find("H1000"), nullptr);
  EXPECT_EQ(devices.find(""), nullptr);
  EXPECT_EQ(devices.find("NVIDIA"), nullptr);
  EXPECT_FALSE(devices.match("H100-SXM").left_open);
}

TEST(Devices, UnknownNamesSayWhatIsNear) {
  try {
    Devices::builtin().get("H1000");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.fault().near_miss, "H100");
  }
}

TEST(Devices, DriverNamesWithSeveralSizesFollowTheTotal) {
  const Devices& devices = Devices::builtin();
  EXPECT_EQ(devices.find_driver_name("NVIDIA H20", 97871 * kMiB)->id, "h20-96");
  EXPECT_EQ(devices.find_driver_name("NVIDIA H20", 143771 * kMiB)->id, "h20-141");
  EXPECT_EQ(devices.find_driver_name("Tesla V100-SXM2-32GB", 32510 * kMiB)->id, "v100-32-sxm2");
  EXPECT_EQ(devices.find_driver_name("NVIDIA Something", kGiB), nullptr);
}

TEST(Devices, RidgePointOfAnA100) {
  const Device& a100 = Devices::builtin().get("A100");
  EXPECT_EQ(*a100.flops_bf16, 312e12);
  EXPECT_EQ(*a100.bandwidth, 2039e9);
  // The textbook's 2 TB/s gives 156 operations a byte; the catalogue's bandwidth gives 153.
  EXPECT_DOUBLE_EQ(*a100.flops_bf16 / 2e12, 156);
  EXPECT_NEAR(*a100.flops_bf16 / *a100.bandwidth, 153.0, 0.05);
  EXPECT_NEAR(*Devices::builtin().get("H100").flops_bf16 / *Devices::builtin().get("H100").bandwidth, 295, 0.5);
}

TEST(Devices, FromAnA100ToAnH100) {
  const Device& a100 = Devices::builtin().get("A100");
  const Device& h100 = Devices::builtin().get("H100");
  EXPECT_NEAR(*h100.flops_bf16 / *a100.flops_bf16, 3.17, 0.005);
  EXPECT_NEAR(*h100.bandwidth / *a100.bandwidth, 1.643, 0.0005);
  EXPECT_NEAR(*h100.bandwidth / 2e12, 1.68, 0.01);
  EXPECT_EQ(h100.marketing_bytes, a100.marketing_bytes);
}

TEST(Devices, RatesByDtype) {
  const Device& h100 = Devices::builtin().get("H100");
  EXPECT_EQ(h100.flops(Dtype::bf16), h100.flops(Dtype::f16));
  EXPECT_EQ(*h100.flops(Dtype::f8_e4m3), 1979e12);
  EXPECT_FALSE(h100.flops(Dtype::f4));
  EXPECT_FALSE(h100.flops(Dtype::f64));
  const Device& v100 = Devices::builtin().get("V100");
  EXPECT_FALSE(v100.flops(Dtype::bf16));
  EXPECT_EQ(*v100.flops(Dtype::f16), 125e12);
}

TEST(Devices, HostLinks) {
  const Constants& c = Constants::builtin();
  EXPECT_EQ(host_link_of("5x16", c)->kind, "PCIe 5.0 x16");
  EXPECT_NEAR(host_link_of("5x16", c)->bytes_per_second, 63.0e9, 0.05e9);
  EXPECT_NEAR(host_link_of("4x8", c)->bytes_per_second, 15.75e9, 0.01e9);
  EXPECT_EQ(host_link_of("C2C 450/dir", c)->bytes_per_second, 450e9);
  for (const char* none : {"SoC", "host", "C2C", "", "5x", "9x16", "5x32", "5xab", "C2C 1e9/dir"}) {
    EXPECT_FALSE(host_link_of(none, c)) << none;
  }
}

TEST(Devices, UserRowsChangeTheFieldsTheyNameAndAddDevices) {
  const Devices mine = Devices::builtin().with_rows_of(
      "[[device]]\nid = \"h100-80-sxm5\"\nrent_usd = [1.5, 1.5]\n"
      "[[device]]\nid = \"my-card\"\nname = \"My Card\"\naliases = [\"MC1\"]\nmemory_gb = 48\nbandwidth_gb = 1000\n"
      "tflops = { bf16 = 200 }\nsource = \"my data sheet\"\nhost_link = \"5x16\"\n",
      "mine.toml");
  EXPECT_EQ(mine.all().size(), Devices::builtin().all().size() + 1);
  EXPECT_EQ(*mine.get("H100").rent_high, 1.5);
  EXPECT_EQ(*mine.get("H100").bandwidth, 3350e9);
  EXPECT_EQ(mine.get("mc1").usable_bytes(), 48 * kGiB);
  EXPECT_NE(*Devices::builtin().get("H100").rent_high, 1.5);
}

TEST(Devices, BadUserRowsAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"[[device]]\nname = \"x\"\n", "id"},
      {"[[device]]\nid = \"x1\"\nname = \"X1\"\nsource = \"s\"\n", "memory_gb"},
      {"[[device]]\nid = \"x1\"\nname = \"X1\"\nmemory_gb = 8\n", "source"},
      {"[[device]]\nid = \"x1\"\nname = \"X1\"\nmemory_gb = -8\nsource = \"s\"\n", "memory_gb"},
      {"[[device]]\nid = \"x1\"\nname = \"X1\"\nmemory_gb = 8\ndriver_mib = 9000\nsource = \"s\"\n", "driver_mib"},
      {"[[device]]\nid = \"x1\"\nname = \"X1\"\nmemory_gb = 8\nprocess_gib = [7, 9]\nsource = \"s\"\n", "process_gib"},
      {"[[device]]\nid = \"x1\"\nname = \"X1\"\nmemory_gb = 8\nprocess_gib = [7]\nsource = \"s\"\n", "process_gib"},
      {"[[device]]\nid = \"x1\"\nname = \"X1\"\nmemory_gb = 8\nbandwith_gb = 9\nsource = \"s\"\n", "bandwidth_gb"},
      {"[[device]]\nid = \"x1\"\nname = \"H100\"\nmemory_gb = 8\nsource = \"s\"\n", "stands for both"},
      {"[[device]]\nid = \"x1\"\nname = \"X1\"\nmemory_gb = 8\ntflops = { fp16 = 3 }\nsource = \"s\"\n", "fp16"},
      {"[[device]]\nid = \"t4\"\n[[device]]\nid = \"t4\"\n", "twice"},
      {"x = 1\n", "[[device]]"},
  };
  for (const auto& [toml, says] : cases) {
    try {
      Devices::builtin().with_rows_of(toml, "mine.toml");
      ADD_FAILURE() << "accepted: " << toml;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << toml << error.what();
    }
  }
}

}  // namespace
}  // namespace vram
