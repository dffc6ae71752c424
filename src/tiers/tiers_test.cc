#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "tiers/checkpoint.h"
#include "tiers/levels.h"
#include "tiers/offload.h"

namespace vram {
namespace {

Machine machine(const std::string& device, int64_t nodes, int64_t cards) {
  Machine m;
  m.device = Devices::builtin().get(device);
  m.nodes = nodes;
  m.cards_per_node = cards;
  if (m.device.scale_up) m.intra_node = *m.device.scale_up;
  if (nodes > 1) m.inter_node = Link{.kind = "port", .bytes_per_second = 50e9};
  return m;
}

const Level& level(const std::vector<Level>& levels, std::string_view id) {
  for (const Level& l : levels) {
    if (l.id == id) return l;
  }
  throw std::out_of_range(std::string(id));
}

std::vector<Level> levels_of(const Machine& m, const Store* store = nullptr) {
  return pyramid(m, TierRows::builtin(), Constants::builtin(), store, std::nullopt);
}

// --- intervals: published examples, computed and simulated independently -------------------------------------------

struct Published {
  double mtbf, cost, restore, young, daly, exact, efficiency;
};

TEST(Checkpoint, IntervalsOfPublishedCases) {
  for (const Published& p : {Published{11135, 3, 600, 258, 256, 256, 0.926},
                             {11135, 60, 600, 1156, 1116, 1116, 0.853},
                             {178000, 120, 900, 6536, 6456, 6456, 0.959},
                             {1824, 10, 600, 191, 184, 184, 0.647},
                             {1824, 120, 900, 662, 584, 584, 0.415}}) {
    const SaveInterval i = best_interval(p.mtbf, p.cost, p.restore);
    EXPECT_NEAR(i.young, p.young, 0.6);
    EXPECT_NEAR(i.daly, p.daly, 0.6);
    EXPECT_NEAR(i.exact, p.exact, 0.6);
    EXPECT_NEAR(i.efficiency, p.efficiency, 6e-4);
  }
}

RC_GTEST_PROP(Checkpoint, TheExactIntervalIsTheBest, ()) {
  const double mtbf = std::pow(10, *rc::gen::inRange(1, 70) / 10.0);
  const double cost = mtbf * std::pow(10, *rc::gen::inRange(-60, 10) / 10.0);
  const double restore = mtbf * *rc::gen::inRange(0, 20) / 10.0;
  const SaveInterval i = best_interval(mtbf, cost, restore);
  RC_ASSERT(i.exact > 0 && i.exact <= mtbf);
  RC_ASSERT(i.efficiency > 0 && i.efficiency < 1);
  for (double factor : {0.5, 0.9, 1.1, 2.0}) {
    RC_ASSERT(useful_share(i.exact * factor, mtbf, cost, restore) <= i.efficiency * (1 + 1e-9));
  }
  RC_ASSERT(i.efficiency_young <= i.efficiency * (1 + 1e-9));
}

// The share of useful time of one long run, event by event.
double simulated(double interval, double mtbf, double cost, double restore, uint64_t seed) {
  double useful = 0, clock = 0;
  const auto uniform = [&] {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (static_cast<double>(seed >> 11) + 0.5) / 9007199254740992.0;
  };
  for (int segment = 0; segment < 40'000; ++segment) {
    double needed = interval + cost;
    for (;;) {
      const double failure = -mtbf * std::log(uniform());
      if (failure >= needed) {
        clock += needed;
        break;
      }
      clock += failure;
      needed = restore + interval + cost;
    }
    useful += interval;
  }
  return useful / clock;
}

TEST(Checkpoint, TheShareIsThatOfASimulation) {
  EXPECT_NEAR(simulated(1116, 11135, 60, 600, 88172645463325252ULL), useful_share(1116, 11135, 60, 600), 4e-3);
  EXPECT_NEAR(simulated(584, 1824, 120, 900, 1234567891011ULL), useful_share(584, 1824, 120, 900), 8e-3);
}

// --- offload ---------------------------------------------------------------------------------------------------------

TEST(Offload, SevenBillionOverPcie5) {
  // Gradients down and weights up, 2 bytes a parameter each, at 64 GB/s; an H100 at 45 % of 989 TFLOPS computes
  // 6·7e9 operations a token.
  const double rate = 0.45 * 989e12 / (6 * 7e9);
  const OffloadBound b = offload_bound({.down_bytes = 14e9, .up_bytes = 14e9}, {.link = 64e9}, 4096, rate);
  EXPECT_DOUBLE_EQ(b.link_seconds, 0.4375);
  EXPECT_DOUBLE_EQ(b.duplex_seconds, 0.21875);
  EXPECT_EQ(std::ceil(*b.tokens_for_link), 4636);
  EXPECT_FALSE(b.link_hides);
  EXPECT_TRUE(offload_bound({.down_bytes = 14e9, .up_bytes = 14e9}, {.link = 64e9}, 4637, rate).link_hides);
}

TEST(Offload, PartsThatNobodyKnowsNeverHide) {
  const OffloadLoad load{.down_bytes = 1e9, .up_bytes = 1e9, .host_bytes = 14e9};
  const OffloadBound b = offload_bound(load, {.link = 10e9, .host = 0}, 1e9, 1000.0);
  EXPECT_TRUE(b.link_hides);
  EXPECT_FALSE(b.all_hides);
  EXPECT_FALSE(b.tokens_for_all);
  EXPECT_FALSE(offload_bound(load, {.link = 10e9, .host = 100e9}, 1e9, std::nullopt).compute_seconds);
}

TEST(Offload, DisksReadThenWrite) {
  // 70e9 parameters of 12 bytes on 48 GB/s reads and 26 GB/s writes: 17.5 + 32.3 s a step.
  const OffloadBound b = offload_bound({.disk_read_bytes = 840e9, .disk_write_bytes = 840e9},
                                       {.disk_read = 48e9, .disk_write = 26e9}, 1, 1.0);
  EXPECT_NEAR(b.disk_seconds, 17.5 + 32.3, 0.05);
}

// --- levels ----------------------------------------------------------------------------------------------------------

TEST(Levels, AnH100FromRegistersToTheStore) {
  const Store& store = TierRows::builtin().store("3FS", "store");
  const auto levels = levels_of(machine("H100", 16, 8), &store);
  // 132 units of 256 KiB of registers and 228 KiB of shared memory.
  EXPECT_EQ(level(levels, "registers").bytes, 132 * 256 * kKiB);
  EXPECT_EQ(level(levels, "shared").bytes, 132 * 228 * kKiB);
  // 67 TFLOPS are 132·128 lanes of 2 operations at 1.98 GHz; 128 bytes a clock and unit are 33.5 TB/s.
  EXPECT_NEAR(*level(levels, "shared").rate, 33.5e12, 1e9);
  EXPECT_NEAR(*level(levels, "registers").rate, 536e12, 1e9);
  EXPECT_DOUBLE_EQ(*level(levels, "device").rate, 3350e9);
  EXPECT_DOUBLE_EQ(*level(levels, "scale_up").rate, 450e9);
  EXPECT_NEAR(*level(levels, "scale_up").step, 3350.0 / 450, 1e-9);
  // PCIe 5.0 x16: 63 GB/s on paper, 55.1 measured.
  EXPECT_NEAR(*level(levels, "host_link").rate, 63e9, 0.1e9);
  EXPECT_DOUBLE_EQ(level(levels, "host_link").measured->value, 55.1e9);
  EXPECT_NEAR(*level(levels, "host_link").step, 53.2, 0.1);
  // Eight cards share the node's memory and disks, 128 the store.
  EXPECT_DOUBLE_EQ(level(levels, "host").measured->value, 330e9 / 8);
  EXPECT_DOUBLE_EQ(level(levels, "disk").measured->value, 27e9 / 8);
  // 7.26 TB/s would be 56.7 GB/s a card; its port is measured at 48.6.
  EXPECT_DOUBLE_EQ(level(levels, "store").measured->value, 389e9 / 8);
  EXPECT_DOUBLE_EQ(level(levels_of(machine("H100", 128, 8), &store), "store").measured->value, store.read.value / 1024);
  // Ports of a node are measured together.
  EXPECT_DOUBLE_EQ(level(levels, "network").measured->value, 389e9 / 8);
}

TEST(Levels, StepsAreNotTenEverywhere) {
  // L2 of an H200 is about twice its memory, the host link 76 times slower: no slogan holds.
  const auto levels = levels_of(machine("H200", 1, 8));
  EXPECT_NEAR(*level(levels, "device").step, 9.92 / 4.8, 0.1);
  EXPECT_NEAR(*level(levels, "host_link").step, 4800 / 63.0, 0.5);
}

TEST(Levels, OneCardHasNoPeersAndUnifiedMemoryNoHost) {
  const auto one = levels_of(machine("RTX4090", 1, 1));
  EXPECT_THROW(level(one, "scale_up"), std::out_of_range);
  EXPECT_THROW(level(one, "network"), std::out_of_range);
  const auto spark = levels_of(machine("DGX Spark", 1, 1));
  EXPECT_THROW(level(spark, "host"), std::out_of_range);
  EXPECT_EQ(level(spark, "disk").above, "device");
}

TEST(Levels, EveryDeviceHasOrderedLevels) {
  for (const Device& d : Devices::builtin().all()) {
    Machine m;
    m.device = d;
    m.cards_per_node = 2;
    const auto levels = levels_of(m);
    std::set<std::string> ids;
    for (const Level& l : levels) {
      EXPECT_TRUE(ids.insert(l.id).second) << d.id;
      EXPECT_TRUE(l.above.empty() || ids.count(l.above) == 1) << d.id << " " << l.id;
      if (l.rate) {
        EXPECT_GT(*l.rate, 0) << d.id << " " << l.id;
      }
      if (l.measured) {
        EXPECT_LE(l.measured->low, l.measured->value) << d.id << " " << l.id;
      }
      // Nobody measures twice what a level can do, but collectives that a switch reduces.
      if (l.rate && l.measured && l.id != "scale_up") {
        EXPECT_LT(l.measured->value, *l.rate * 1.05) << d.id << " " << l.id;
      }
    }
  }
}

// --- rows ------------------------------------------------------------------------------------------------------------

TEST(TierRows, BuiltInRowsNameKnownDevices) {
  const TierRows& rows = TierRows::builtin();
  EXPECT_GE(rows.stores().size(), 8u);
  for (const Measured& m : rows.all_measured()) {
    for (const std::string& id : m.devices) {
      const auto& all = Devices::builtin().all();
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Device& d) { return d.id == id; })) << id;
    }
  }
  for (const char* name : {"3fs", "HDFS", "s3", "Lustre", "GPFS", "storage scale"})
    EXPECT_NO_THROW(rows.store(name, "--store"));
}

TEST(TierRows, UnknownStoresAreRefusedWithANearMiss) {
  try {
    TierRows::builtin().store("lustr", "--store");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_EQ(e.fault().near_miss, "lustre");
  }
}

TEST(TierRows, RowsOfTheUser) {
  const TierRows mine = TierRows::builtin().with_rows_of(
      "[[store]]\nid = \"mine\"\nread_gb = 5\nwrite_gb = 2\nper = \"client\"\n[[store]]\nid = \"nas\"\nread_gb = "
      "1\nwrite_gb = 1\n",
      "my.toml");
  EXPECT_TRUE(mine.store("mine", "store").per_client);
  EXPECT_EQ(mine.store("mine", "store").write.high, 2e9);
  EXPECT_EQ(mine.store("nas", "store").read.value, 1e9);
  EXPECT_EQ(mine.stores().size(), TierRows::builtin().stores().size() + 1);
  for (const char* bad :
       {"[[store]]\nid = \"x\"\nread_gb = 1\n", "[[store]]\nid = \"x\"\nread_gb = -1\nwrite_gb = 1\n",
        "[[store]]\nid = \"x\"\nread_gb = 5\nlow_read_gb = 6\nwrite_gb = 1\n",
        "[[store]]\nid = \"x\"\nread_gb = 1\nwrite_gb = 1\nper = \"rack\"\n",
        "[[store]]\nid = \"x\"\nread_gb = 1\nwrite_gb = 1\nfoo = 1\n", "[[shelf]]\nid = \"x\"\n", "[store\n"}) {
    EXPECT_THROW(TierRows::builtin().with_rows_of(bad, "my.toml"), InputError) << bad;
  }
}

}  // namespace
}  // namespace vram
