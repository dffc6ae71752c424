#include "ledger/ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace vram {
namespace {

TEST(Traced, PrintsTheFormulaItComputes) {
  const auto L = Traced::symbol("L", 80), n = Traced::symbol("n_kv", 8), d = Traced::symbol("d", 128),
             s = Traced::symbol("s", 32768);
  const Traced kv = Traced(2) * L * n * d * s * Traced(2);
  EXPECT_EQ(kv.value(), 10'737'418'240);
  EXPECT_EQ(kv.formula(), "2·L·n_kv·d·s·2 = 2·80·8·128·32,768·2 = 10,737,418,240");
}

TEST(Traced, BracketsSumsInProductsOnly) {
  const auto a = Traced::symbol("a", 2), b = Traced::symbol("b", 3), c = Traced::symbol("c", 4);
  EXPECT_EQ(((a + b) * c).formula(), "(a + b)·c = (2 + 3)·4 = 20");
  EXPECT_EQ((a + b * c).formula(), "a + b·c = 2 + 3·4 = 14");
  EXPECT_EQ((a - (b - c)).formula(), "a - (b - c) = 2 - (3 - 4) = 3");
  EXPECT_EQ(ceil_div(c, b).formula(), "⌈c / b⌉ = ⌈4 / 3⌉ = 2");
  EXPECT_EQ(ceil_div(a + c, b).formula(), "⌈(a + c) / b⌉ = ⌈(2 + 4) / 3⌉ = 2");
  EXPECT_EQ(ceil_div(a * c, a * b).formula(), "⌈a·c / (a·b)⌉ = ⌈2·4 / (2·3)⌉ = 2");
  EXPECT_EQ(floor_div(c, b).formula(), "⌊c / b⌋ = ⌊4 / 3⌋ = 1");
  EXPECT_EQ(max(a, b).formula(), "max(a, b) = max(2, 3) = 3");
}

TEST(Traced, RangesFollowTheConstants) {
  const Constant context{.id = "cuda_context", .value = 400, .low = 300, .high = 600, .basis = Basis::measured};
  const Traced total = Traced::symbol("x", 1000) + Traced(2) * Traced::constant(context);
  EXPECT_EQ(total.value(), 1800);
  EXPECT_EQ(total.low(), 1600);
  EXPECT_EQ(total.high(), 2200);
  EXPECT_EQ(total.constants(), "cuda_context");
  EXPECT_EQ((Traced(5000) - Traced::constant(context)).low(), 4400);
}

TEST(Numbers, OverflowIsStickyAndNamed) {
  const Fast big = Fast(int64_t{1} << 62) * Fast(4);
  EXPECT_THROW((big - big).value(), OverflowError);
  try {
    (Traced::symbol("sequence", int64_t{1} << 62) * Traced(4)).value();
    FAIL();
  } catch (const OverflowError& e) {
    EXPECT_NE(std::string(e.what()).find("sequence"), std::string::npos) << e.what();
  }
}

// A random expression over both number types at once.
struct Both {
  Fast fast;
  Traced traced;
};

TEST(Numbers, FastEqualsTraced) {
  rc::check([] {
    Both value{Fast(*rc::gen::inRange<int64_t>(0, 1000)), Traced(0)};
    value.traced = Traced::symbol("x", value.fast.value());
    const int steps = *rc::gen::inRange(1, 12);
    for (int i = 0; i < steps; ++i) {
      const int64_t operand = *rc::gen::inRange<int64_t>(1, 5000);
      const Fast f = Fast::symbol("y", operand);
      const Traced t = Traced::symbol("y", operand);
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
          value = {value.fast + f, value.traced + t};
          break;
        case 1:
          value = {value.fast * f, value.traced * t};
          break;
        case 2:
          value = {ceil_div(value.fast, f), ceil_div(value.traced, t)};
          break;
        default:
          value = {max(value.fast, f), max(value.traced, t)};
          break;
      }
    }
    RC_ASSERT(value.fast.overflowed() || value.fast.value() == value.traced.value());
  });
}

// A random well-formed program: procedures keep some of what they allocate; a mirrored procedure frees it later.
Program<Fast> random_program() {
  Program<Fast> program;
  const auto kinds = *rc::gen::inRange(1, 5);
  for (int i = 0; i < kinds; ++i) {
    program.storage({.name = "s" + std::to_string(i),
                     .owner = i % 2 ? "layers.mlp" : "layers.attention",
                     .tier = i == 3 ? Tier::host : Tier::device,
                     .bytes = Fast(*rc::gen::inRange<int64_t>(0, 100))});
  }
  const int pairs = *rc::gen::inRange(1, 4);
  std::vector<std::pair<uint32_t, int64_t>> opened;
  for (int p = 0; p < pairs; ++p) {
    const auto forward = program.procedure("forward");
    const auto backward = program.procedure("backward");
    const int count = *rc::gen::inRange(1, 4);
    for (int i = 0; i < count; ++i) {
      const auto kept = static_cast<uint32_t>(*rc::gen::inRange(0, kinds));
      const auto scratch = static_cast<uint32_t>(*rc::gen::inRange(0, kinds));
      program.allocate(forward, scratch);
      program.allocate(forward, kept);
      program.free(forward, scratch);  // the youngest of that kind: the totals are the same whichever goes
      program.allocate(backward, scratch);
      program.free(backward, kept);
      program.free(backward, scratch);
    }
    const int64_t times = *rc::gen::inRange<int64_t>(1, 6);
    program.call(Program<Fast>::main(), forward, times);
    opened.emplace_back(backward, times);
  }
  for (size_t i = opened.size(); i-- > 0;) program.call(Program<Fast>::main(), opened[i].first, opened[i].second);
  return program;
}

TEST(Programs, PeakEqualsTheUnrolledMaximumAndTheLedger) {
  rc::check([] {
    const Program<Fast> program = random_program();
    RC_ASSERT(check(program).empty());
    for (Tier tier : {Tier::device, Tier::host}) {
      Bytes level = 0, highest = 0;
      for_each_event<Fast>(program, [&](const Event& e) {
        const auto& s = program.storages()[e.storage];
        if (s.tier != tier) return;
        level += e.allocate ? s.bytes.value() : -s.bytes.value();
        highest = std::max(highest, level);
      });
      const Summary summary = summarize(program, tier);
      RC_ASSERT(summary.peak == highest);
      RC_ASSERT(summary.net == level);
      const Ledger ledger = make_ledger(program, tier);
      Bytes sum = 0;
      for (const Line& line : ledger.lines) sum += line.bytes;
      RC_ASSERT(ledger.bytes == highest);
      RC_ASSERT(sum == highest);
      for (View by : {View::category, View::module, View::life, View::storage}) {
        RC_ASSERT(check_sums(ledger, view(ledger, by)) == "");
      }
    }
  });
}

TEST(Programs, NamesTheMomentOfThePeak) {
  Program<Fast> program;
  const auto kept = program.storage({.name = "kept", .bytes = Fast(10)});
  const auto scratch = program.storage({.name = "scratch", .bytes = Fast(7)});
  const auto forward = program.procedure("forward");
  const auto layer = program.procedure("layer");
  program.call(Program<Fast>::main(), forward);
  program.call(forward, layer, 4);
  program.allocate(layer, kept);
  program.allocate(layer, scratch);
  program.free(layer, scratch);
  const Peak peak = find_peak(program, Tier::device);
  EXPECT_EQ(peak.bytes, 47);
  ASSERT_EQ(peak.when.size(), 2u);
  EXPECT_EQ(peak.when[0].name, "forward");
  EXPECT_EQ(peak.when[1].name, "layer");
  EXPECT_EQ(peak.when[1].round, 4);
  ASSERT_EQ(peak.alive.size(), 2u);
  EXPECT_EQ(peak.alive[0].count, 4);
  EXPECT_EQ(peak.alive[1].count, 1);
}

TEST(Programs, FreeingWhatIsNotAliveIsFound) {
  Program<Fast> program;
  const auto s = program.storage({.name = "never there", .bytes = Fast(1)});
  program.free(Program<Fast>::main(), s);
  EXPECT_NE(check(program).find("never there"), std::string::npos);
}

TEST(Programs, HugeRepetitionOverflowsCleanly) {
  Program<Fast> program;
  const auto s = program.storage({.name = "s", .bytes = Fast(int64_t{1} << 40)});
  const auto p = program.procedure("p");
  program.allocate(p, s);
  program.call(Program<Fast>::main(), p, int64_t{1} << 40);
  EXPECT_THROW(summarize(program, Tier::device), OverflowError);
}

}  // namespace
}  // namespace vram
