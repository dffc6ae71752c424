#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/error.h"
#include "machine/fake_environment.h"
#include "machine/machine.h"

namespace vram {
namespace {

Machine parsed(std::string_view text) { return parse_machine(text, Devices::builtin(), FakeEnvironment()); }

bool says(const std::vector<std::string>& clauses, const std::string& part) {
  for (const std::string& clause : clauses) {
    if (clause.find(part) != std::string::npos) return true;
  }
  return false;
}

struct Good {
  const char* text;
  const char* device;
  int64_t nodes;
  int64_t cards_per_node;
};

TEST(ParseMachine, TheFormsPeopleWrite) {
  const Good cases[] = {
      {"8xH100", "h100-80-sxm5", 1, 8},
      {"8 x H100", "h100-80-sxm5", 1, 8},
      {"8*H100", "h100-80-sxm5", 1, 8},
      {"8×H100", "h100-80-sxm5", 1, 8},
      {"8XH100", "h100-80-sxm5", 1, 8},
      {"  8xh100 ", "h100-80-sxm5", 1, 8},
      {"H100", "h100-80-sxm5", 1, 1},
      {"4xRTX4090", "rtx-4090", 1, 4},
      {"4x4090", "rtx-4090", 1, 4},
      {"4090", "rtx-4090", 1, 1},
      {"16x8xH100-80G", "h100-80-sxm5", 16, 8},
      {"2x8xA100-80G", "a100-80-sxm4", 2, 8},
      {"16 × 8 × H100", "h100-80-sxm5", 16, 8},
      {"1000xA100", "a100-80-sxm4", 125, 8},
      {"16xH100", "h100-80-sxm5", 2, 8},
      {"12xH100", "h100-80-sxm5", 1, 12},
      {"72xGB200", "gb200-186", 1, 72},
      {"144xGB200", "gb200-186", 2, 72},
      {"256xTPU-v5e", "tpu-v5e", 1, 256},
      {"7900XTX", "rx-7900xtx", 1, 1},
      {"4x7900XTX", "rx-7900xtx", 1, 4},
      {"8xMI300X", "mi300x", 1, 8},
      {"2xM3Ultra", "m3-ultra", 2, 1},
      {"1000000xH100", "h100-80-sxm5", 125000, 8},
      {"3072xA100", "a100-80-sxm4", 384, 8},
      {"3x1xT4", "t4", 3, 1},
  };
  for (const Good& c : cases) {
    const Machine m = parsed(c.text);
    EXPECT_EQ(m.device.id, c.device) << c.text;
    EXPECT_EQ(m.nodes, c.nodes) << c.text;
    EXPECT_EQ(m.cards_per_node, c.cards_per_node) << c.text;
    EXPECT_EQ(m.inter_node.has_value(), m.nodes > 1) << c.text;
    EXPECT_EQ(m.assumptions.size(), m.assumptions_zh.size()) << c.text;
    EXPECT_GE(m.intra_node.bytes_per_second, 0) << c.text;
  }
}

TEST(ParseMachine, AmountsOfMemory) {
  EXPECT_EQ(parsed("4x80GB").device.usable_bytes(), 80 * kGB);
  EXPECT_EQ(parsed("8x80GiB").device.usable_bytes(), 80 * kGiB);
  EXPECT_EQ(parsed("1x24GiB").device.usable_bytes(), 24 * kGiB);
  EXPECT_EQ(parsed("80 gb").device.usable_bytes(), 80 * kGB);
  EXPECT_EQ(parsed("4x80G").device.usable_bytes(), 80 * kGB);
  EXPECT_EQ(parsed("2x1.5TiB").device.usable_bytes(), 3 * 512 * kGiB);
  EXPECT_EQ(parsed("16x8x80GB").cards(), 128);
  const Machine m = parsed("4x80GB");
  EXPECT_TRUE(m.device.memory_only);
  EXPECT_FALSE(m.device.flops(Dtype::bf16));
  EXPECT_FALSE(m.device.bandwidth);
  EXPECT_EQ(m.intra_node.bytes_per_second, 0);
  EXPECT_TRUE(says(m.assumptions, "only the amount of memory"));
}

TEST(ParseMachine, WhatWasNotSaidIsAssumedAloud) {
  EXPECT_TRUE(says(parsed("8xH100").assumptions, "H100 taken as H100 80GB SXM5"));
  EXPECT_TRUE(says(parsed("8xA100").assumptions, "A100 taken as A100 80GB SXM4"));
  EXPECT_TRUE(parsed("8xH100-SXM").assumptions.empty());
  EXPECT_TRUE(says(parsed("1000xA100").assumptions, "1,000 cards taken as 125 nodes of 8"));
  EXPECT_TRUE(says(parsed("1000xA100").assumptions, "between nodes 200 Gb/s a card"));
  EXPECT_TRUE(says(parsed("12xH100").assumptions, "flat group"));
  EXPECT_TRUE(says(parsed("8xMI250X").assumptions, "one of the 2 devices"));
  EXPECT_TRUE(says(parsed("8xA100-PCIe").assumptions, "joins only 2 cards"));
  EXPECT_TRUE(says(parsed("8xH100").assumptions_zh, "按 H100 80GB SXM5 计"));
  // Two numbers say how the nodes look.
  EXPECT_FALSE(says(parsed("16x8xH100-SXM").assumptions, "nodes of"));
}

TEST(ParseMachine, Links) {
  const Machine node = parsed("8xH100");
  EXPECT_EQ(node.intra_node.kind, "NVLink4");
  EXPECT_EQ(node.intra_node.bytes_per_second, 450e9);
  EXPECT_FALSE(node.intra_node.assumed);
  EXPECT_FALSE(node.inter_node);
  const Machine nodes = parsed("16x8xH100");
  // 400 Gb/s are 50 GB/s.
  EXPECT_EQ(nodes.inter_node->bytes_per_second, 50e9);
  EXPECT_TRUE(nodes.inter_node->assumed);
  EXPECT_EQ(parsed("4x4090").intra_node.kind, "PCIe 4.0 x16");
  EXPECT_EQ(parsed("2x8x4090").inter_node->bytes_per_second, 200e9 / 8 / 8);
  EXPECT_EQ(parsed("2xA100-PCIe").intra_node.kind, "NVLink3");
  EXPECT_EQ(parsed("4xA100-PCIe").intra_node.kind, "PCIe 4.0 x16");
  EXPECT_EQ(parsed("12xH100").intra_node.bytes_per_second, 50e9);
  EXPECT_EQ(parsed("2x8xB300").inter_node->bytes_per_second, 100e9);
}

TEST(ParseMachine, BadTextIsRefusedWithTheFormsAndTheNearestName) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "is empty"},
      {"   ", "is empty"},
      {"0xH100", "no cards"},
      {"8x0xH100", "no cards"},
      {"-8xH100", "does not begin"},
      {"8x", "names no device"},
      {"8", "names no device"},
      {"80", "names no device"},
      {"1000001xH100", "1,000,000"},
      {"1001x1000xH100", "1,000,000"},
      {"99999999999999999999xH100", "1,000,000"},
      {"8xH1000", "Did you mean H100?"},
      {"2x2x2xH100", "unknown device"},
      {"8x8O0GB", "unknown device"},
      {"8xRTX409", "Did you mean"},
      {"8x0GB", "no card's amount"},
      {"8x99999999TB", "no card's amount"},
      {"8.5xH100", "unknown device"},
      {"H100x8", "unknown device"},
      {"xH100", "unknown device"},
      {"8xH100;rm", "unknown device"},
      {"8x80Gb/s", "unknown device"},
  };
  for (const auto& [text, part] : cases) {
    try {
      const Machine m = parsed(text);
      ADD_FAILURE() << "accepted '" << text << "' as " << m.cards() << " x " << m.device.name;
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(part), std::string::npos) << text << ": " << what;
      EXPECT_NE(what.find("16x8xA100-80G"), std::string::npos) << what;
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    }
  }
}

TEST(ParseMachine, NoTextCrashesIt) {
  rc::check("any text is a machine or one InputError", [] {
    const std::string alphabet = "0123456789xX* \xC3\x97HhAaGgBbi-.T/";
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
    try {
      const Machine m = parsed(text);
      RC_ASSERT(m.cards() >= 1);
      RC_ASSERT(m.cards() <= 1'000'000);
      RC_ASSERT(m.device.usable_bytes() > 0);
    } catch (const InputError& error) {
      RC_ASSERT(std::string(error.what()).find('\n') == std::string::npos);
    }
  });
}

LocalGpu gpu(const std::string& name, Bytes total, Bytes used = 0) {
  return {.name = name, .total_bytes = total, .used_bytes = used, .free_bytes = total - used, .driver = "550.1"};
}

TEST(LocalMachine, IsTheCatalogueRowWithTheDriversTotal) {
  FakeEnvironment environment;
  environment.gpus = {.gpus = {gpu("NVIDIA A10", 24564 * kMiB), gpu("NVIDIA A10", 24564 * kMiB, 3 * kGiB)}};
  const Machine m = parse_machine("local", Devices::builtin(), environment);
  EXPECT_EQ(m.device.id, "a10");
  EXPECT_EQ(m.cards(), 2);
  // ECC is off on this card: the driver reports more than the catalogue's 23,028 MiB, a process sees as much more.
  EXPECT_EQ(*m.device.driver_bytes, 24564 * kMiB);
  EXPECT_EQ(m.device.usable_bytes(), Devices::builtin().get("a10").usable_bytes() + (24564 - 23028) * kMiB);
  EXPECT_TRUE(says(m.assumptions, "3.00 GiB of a card is in use"));
}

TEST(LocalMachine, UnknownGpusHaveMemoryOnly) {
  FakeEnvironment environment;
  environment.gpus = {.gpus = {gpu("NVIDIA X9000", 50 * kGiB)}};
  const Machine m = parse_machine("LOCAL", Devices::builtin(), environment);
  EXPECT_TRUE(m.device.memory_only);
  EXPECT_EQ(m.device.usable_bytes(), 50 * kGiB);
  EXPECT_TRUE(says(m.assumptions, "X9000 is not in the catalogue"));
}

TEST(LocalMachine, MixedGpusAreNamedAndNoneIsUnavailable) {
  FakeEnvironment environment;
  environment.gpus = {.gpus = {gpu("NVIDIA A10", kGiB), gpu("Tesla T4", kGiB), gpu("NVIDIA A10", kGiB)}};
  try {
    parse_machine("local", Devices::builtin(), environment);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("2 x NVIDIA A10, 1 x Tesla T4"), std::string::npos) << error.what();
  }
  environment.gpus = {.gpus = {}, .absent_because = "libnvidia-ml.so.1 is not installed"};
  try {
    parse_machine("local", Devices::builtin(), environment);
    FAIL();
  } catch (const UnavailableError& error) {
    EXPECT_NE(std::string(error.what()).find("libnvidia-ml.so.1 is not installed"), std::string::npos);
  }
}

TEST(MachineFile, SaysMoreThanAName) {
  FakeEnvironment environment;
  environment.files["cluster.yaml"] =
      "device: H100\nnodes: 4\ncards_per_node: 6\ninter_node: 200Gb/s\n"
      "intra_node: {kind: NVLink4, rate: 300GB/s}\nhost_memory: 2TB\nusable: 78GiB\n";
  const Machine m = parse_machine("cluster.yaml", Devices::builtin(), environment);
  EXPECT_EQ(m.device.id, "h100-80-sxm5");
  EXPECT_EQ(m.cards(), 24);
  EXPECT_EQ(m.inter_node->bytes_per_second, 25e9);
  EXPECT_FALSE(m.inter_node->assumed);
  EXPECT_EQ(m.intra_node.bytes_per_second, 300e9);
  EXPECT_EQ(*m.host_bytes_per_node, 2000 * kGB);
  EXPECT_EQ(m.device.usable_bytes(), 78 * kGiB);
  environment.files["m.toml"] = "device = \"80GB\"\ncards_per_node = 4\nhost_memory = 1000000000\n";
  EXPECT_EQ(parse_machine("m.toml", Devices::builtin(), environment).cards(), 4);
  environment.files["lab"] = "{\"device\": \"4090\"}";
  EXPECT_EQ(parse_machine("lab", Devices::builtin(), environment).cards(), 8);
}

TEST(MachineFile, BadFilesAreRefusedByFileLineAndField) {
  const std::pair<const char*, const char*> cases[] = {
      {"nodes: 4\n", "device"},
      {"device: H1000\n", "Did you mean H100?"},
      {"device: H100\nnodes: 0\n", "nodes"},
      {"device: H100\nnodes: 1000000\ncards_per_node: 8\n", "1,000,000"},
      {"device: H100\ncards: 8\n", "cards_per_node"},
      {"device: H100\nusable: 81GiB\n", "exceeds"},
      {"device: H100\nusable: 0\n", "usable"},
      {"device: H100\ninter_node: 50GB\n", "inter_node"},
      {"device: H100\ninter_node: {kind: IB}\n", "rate"},
      {"device: H100\ninter_node: {kind: IB, rate: 50GB/s, x: 1}\n", "x"},
      {"device: H100\nhost_memory: [1]\n", "host_memory"},
      {"- 1\n", "m.yaml"},
      {"device: [\n", "m.yaml"},
  };
  for (const auto& [yaml, part] : cases) {
    FakeEnvironment environment;
    environment.files["m.yaml"] = yaml;
    try {
      parse_machine("m.yaml", Devices::builtin(), environment);
      ADD_FAILURE() << "accepted: " << yaml;
    } catch (const InputError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(part), std::string::npos) << yaml << ": " << what;
      EXPECT_NE(what.find("m.yaml"), std::string::npos) << what;
    }
  }
  EXPECT_THROW(parsed("absent.yaml"), UnavailableError);
}

}  // namespace
}  // namespace vram
