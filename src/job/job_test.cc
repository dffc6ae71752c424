#include "job/job.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "base/error.h"
#include "base/units.h"

namespace vram {
namespace {

using Slot = Field::Slot;

const Field& field(std::string_view name) {
  const Field* f = find_field(name);
  if (!f) throw std::logic_error(std::string(name));
  return *f;
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

std::string refusal(std::string_view name, std::string_view value) {
  return refusal([&] {
    Job job;
    set_field(job, field(name), value, option_name(name));
  });
}

// A word that the field accepts, and what it holds afterwards.
std::string sample(const Field& f) {
  if (f.is_flag()) return "true";
  if (!f.choices.empty()) return std::string(f.choices.back());
  if (f.name == "set") return "kv_heads=8";
  if (f.unit == Unit::bandwidth) return "64GB/s";
  if (f.is_number()) return f.high <= 1 ? "0.5" : f.high <= 3 ? "2" : "4";
  return "word";
}

Job random_job() {
  Job job;
  for (const Field& f : fields()) {
    if (!*rc::gen::arbitrary<bool>()) continue;
    if (const auto* s = std::get_if<std::string Job::*>(&f.slot)) {
      job.** s = "x" + *rc::gen::container<std::string>(rc::gen::inRange('!', '~'));
    } else if (const auto* v = std::get_if<std::vector<std::string> Job::*>(&f.slot)) {
      const int n = *rc::gen::inRange(1, 4);
      for (int i = 0; i < n; ++i) {
        (job.**v).push_back(f.name == "set"     ? "field_" + std::to_string(i) + "=[1,2]"
                            : f.choices.empty() ? "q_proj"
                                                : std::string(*rc::gen::elementOf(f.choices)));
      }
    } else if (const auto* b = std::get_if<bool Job::*>(&f.slot)) {
      job.** b = true;
    } else if (const auto* o = std::get_if<std::optional<std::string> Job::*>(&f.slot)) {
      job.** o = std::string(*rc::gen::elementOf(f.choices));
    } else if (const auto* i = std::get_if<std::optional<int64_t> Job::*>(&f.slot)) {
      job.** i = *rc::gen::inRange<int64_t>(static_cast<int64_t>(f.low), static_cast<int64_t>(f.high) + 1);
    } else if (const auto* d = std::get_if<std::optional<double> Job::*>(&f.slot)) {
      job.** d = f.low + (f.high - f.low) * (*rc::gen::inRange(0, 1001) / 1000.0);
    } else {
      job.*std::get<std::optional<bool> Job::*>(f.slot) = *rc::gen::arbitrary<bool>();
    }
  }
  return job;
}

bool equal(const Job& a, const Job& b) {
  for (const Field& f : fields()) {
    const bool same = std::visit([&](auto member) { return a.*member == b.*member; }, f.slot);
    if (!same) return false;
  }
  return true;
}

RC_GTEST_PROP(JobFile, ReadsBackWhatWasWritten, ()) {
  const Job job = random_job();
  Job read;
  read_job(read, write_job(job), "job.yaml");
  RC_ASSERT(equal(job, read));
}

TEST(FieldTable, CoversEveryMemberOfJob) {
  // Job is all data members of the field table: their sizes leave no room for one that the table forgot.
  std::set<std::pair<size_t, size_t>> places;
  const Job job;
  size_t covered = 0;
  for (const Field& f : fields()) {
    const auto [offset, size] = std::visit(
        [&](auto member) {
          return std::pair<size_t, size_t>(
              reinterpret_cast<const char*>(&(job.*member)) - reinterpret_cast<const char*>(&job), sizeof(job.*member));
        },
        f.slot);
    EXPECT_TRUE(places.emplace(offset, size).second) << f.name << " shares its member";
    covered += size;
  }
  size_t end = 0;
  for (const auto& [offset, size] : places) {
    EXPECT_LT(offset - end, alignof(std::max_align_t)) << "a member before offset " << offset << " has no row";
    end = offset + size;
  }
  EXPECT_LT(sizeof(Job) - end, alignof(std::max_align_t));
  EXPECT_GT(covered, sizeof(Job) / 2);
}

TEST(FieldTable, IsComplete) {
  std::set<std::string> names;
  for (const Field& f : fields()) {
    EXPECT_TRUE(names.insert(std::string(f.name)).second) << f.name;
    for (std::string_view a : f.aliases) EXPECT_TRUE(names.insert(std::string(a)).second) << a;
    EXPECT_FALSE(f.help_en.empty()) << f.name;
    EXPECT_FALSE(f.help_zh.empty()) << f.name;
    EXPECT_NE(f.help_en, f.help_zh) << f.name;
    EXPECT_NE(f.verbs, 0u) << f.name;
    EXPECT_LT(f.low, f.high) << f.name;
    const auto groups = field_groups();
    EXPECT_NE(std::find(groups.begin(), groups.end(), f.group), groups.end()) << f.name;
    for (const auto& s : f.synonyms) {
      EXPECT_NE(std::find(f.choices.begin(), f.choices.end(), s.second), f.choices.end()) << f.name << " " << s.first;
    }
  }
}

TEST(FieldTable, FallbacksThatAreValuesAreInRange) {
  for (const Field& f : fields()) {
    const bool number = f.is_number() && !f.fallback.empty() && std::isdigit(static_cast<unsigned char>(f.fallback[0]));
    const bool choice = std::find(f.choices.begin(), f.choices.end(), f.fallback) != f.choices.end();
    if (!number && !choice) continue;
    Job job;
    EXPECT_NO_THROW(set_field(job, f, f.fallback, f.name)) << f.name;
  }
}

TEST(FieldTable, EveryFieldIsSetByEveryName) {
  for (const Field& f : fields()) {
    std::vector<std::string> names = {std::string(f.name), option_name(f.name).substr(2)};
    for (std::string_view a : f.aliases) names.emplace_back(a);
    for (const std::string& name : names) {
      const Field* found = find_field(name);
      ASSERT_EQ(found, &f) << name;
      Job job;
      ASSERT_FALSE(f.is_set(job));
      set_field(job, *found, sample(f), name);
      EXPECT_TRUE(f.is_set(job)) << name;
      Job from_file;
      read_job(from_file, Document::Object{{name, Document(sample(f), 1)}}, "job.yaml");
      EXPECT_TRUE(equal(job, from_file)) << name;
    }
  }
  EXPECT_EQ(find_field("no_such_field"), nullptr);
}

TEST(SetField, UnderstandsUnitsAndSynonyms) {
  Job job;
  set_field(job, field("seq"), "32k", "--seq");
  EXPECT_EQ(job.sequence, 32768);
  set_field(job, field("params"), "7B", "--params");
  EXPECT_EQ(job.params, 7'000'000'000);
  set_field(job, field("usable"), "80GB", "--usable");
  EXPECT_EQ(job.usable, 80 * kGB);
  set_field(job, field("mfu"), "45%", "--mfu");
  EXPECT_DOUBLE_EQ(*job.mfu, 0.45);
  set_field(job, field("optimizer"), "AdamW-8bit", "--optimizer");
  EXPECT_EQ(job.optimizer, "adamw8bit");
  set_field(job, field("gradient_checkpointing"), "true", "--gradient-checkpointing");
  EXPECT_EQ(job.recompute, "full");
  set_field(job, field("offload"), "optim,params", "--offload");
  EXPECT_EQ(job.offload, (std::vector<std::string>{"optimizer", "parameters"}));
  set_field(job, field("set"), "kv_heads=8,layer_types=[\"full\",\"sliding\"]", "--set");
  EXPECT_EQ(job.set, (std::vector<std::string>{"kv_heads=8", "layer_types=[\"full\",\"sliding\"]"}));
}

TEST(SetField, RefusesBadValuesInOneLine) {
  EXPECT_EQ(refusal("tensor_parallel", "0"),
            "--tensor-parallel '0' is out of range; accepted: a whole number, from 1 to 1,000,000");
  EXPECT_EQ(refusal("mfu", "45"),
            "--mfu '45' is more than the whole; say 45% or 0.45; accepted: a share such as 45% or "
            "0.45, from 0.0001 to 1");
  EXPECT_EQ(
      refusal("optimizer", "adamv"),
      "--optimizer 'adamv' is not known here; accepted: adamw, adamw8bit, sgd, sgd_momentum, adafactor, lion, muon or "
      "none. Did you mean adamw?");
  EXPECT_EQ(refusal("set", "kv_heads"),
            "--set 'kv_heads' is no change of a field; accepted: FIELD=VALUE, such as kv_heads=8");
  const std::pair<const char*, const char*> bad[] = {{"tp", "-1"},
                                                     {"tp", "1.5"},
                                                     {"tp", "eight"},
                                                     {"tp", ""},
                                                     {"tp", "1e30"},
                                                     {"tp", "nan"},
                                                     {"tp", "inf"},
                                                     {"tp", "0x8"},
                                                     {"tp", "8 cards"},
                                                     {"sequence", "0"},
                                                     {"sequence", "32q"},
                                                     {"sequence", "2000000000"},
                                                     {"params", "0"},
                                                     {"params", "1e16"},
                                                     {"usable", "80Gb"},
                                                     {"usable",
                                                      "80"
                                                      "XiB"},
                                                     {"pcie", "64GB"},
                                                     {"pcie", "64"},
                                                     {"mfu", "145%"},
                                                     {"mfu", "0"},
                                                     {"mfu", "101"},
                                                     {"dropout", "-0.1"},
                                                     {"zero", "4"},
                                                     {"precision", "bf17"},
                                                     {"precision", ""},
                                                     {"offload", "optimizer,,"},
                                                     {"offload", "discs"},
                                                     {"textbook", "maybe"},
                                                     {"model", ""},
                                                     {"model", "a\nb"},
                                                     {"model", "   "},
                                                     {"lora_rank", "0"},
                                                     {"price", "-3"},
                                                     {"tokens", "2X"},
                                                     {"set", "=8"},
                                                     {"set", "a="},
                                                     {"gpu_memory_utilization", "1.1"},
                                                     {"reserve_ratio", "2000%"},
                                                     {"kv_block", "0"},
                                                     {"layers", "100001"},
                                                     {"heads", "999999999999999999999999"}};
  for (const auto& [name, value] : bad) {
    const std::string line = refusal(name, value);
    EXPECT_NE(line, "accepted") << name << " " << value;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    EXPECT_EQ(line.rfind(option_name(name), 0), 0u) << line;
  }
  EXPECT_NE(refusal("model", std::string(5000, 'x')), "accepted");
}

TEST(SetField, LeavesTheJobAloneWhereItRefuses) {
  Job job;
  set_field(job, field("offload"), "optimizer", "--offload");
  EXPECT_THROW(set_field(job, field("offload"), "gradients,discs", "--offload"), InputError);
  EXPECT_EQ(job.offload, (std::vector<std::string>{"optimizer"}));
}

Job read(const Document& d) {
  Job job;
  read_job(job, d, "job.yaml");
  return job;
}

TEST(JobFile, TakesGroupsAndFlatKeys) {
  const Job job = read(Document::Object{
      {"model",
       Document::Object{{"model", "meta-llama/Llama-3.1-8B"}, {"set", Document::Object{{"kv_heads", int64_t{4}}}}}},
      {"machine", "8xH100"},
      {"training", Document::Object{{"tp", int64_t{2}}, {"seq", "32k"}, {"recompute", true}, {"offload", "optimizer"}}},
      {"serving", Document::Object{{"kv-cache-dtype", "fp8_e4m3"}, {"reserve", "4GiB"}, {"tp", Document()}}},
      {"mfu", 0.4}});
  EXPECT_EQ(job.model, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(job.set, (std::vector<std::string>{"kv_heads=4"}));
  EXPECT_EQ(job.on, "8xH100");
  EXPECT_EQ(job.tensor_parallel, 2);
  EXPECT_EQ(job.sequence, 32768);
  EXPECT_EQ(job.recompute, "full");
  EXPECT_EQ(job.kv_dtype, "fp8");
  EXPECT_EQ(job.reserve, 4 * kGiB);
  EXPECT_EQ(job.mfu, 0.4);
}

TEST(JobFile, RefusesWithFileAndLine) {
  const auto why = [](Document d) { return refusal([&] { read(d); }); };
  EXPECT_EQ(why(Document::Object{{"tensor_paralel", Document(int64_t{2}, 7)}}),
            "job.yaml:7: tensor_paralel is not a key of a job file. Did you mean tensor_parallel?");
  EXPECT_EQ(
      why(Document::Object{{"training", Document::Object{{"mfu", Document("45", 3)}}}}),
      "job.yaml:3: training.mfu '45' is more than the whole; say 45% or 0.45; accepted: a share such as 45% or 0.45, "
      "from 0.0001 to 1");
  EXPECT_EQ(why(Document::Object{{"tp", Document(int64_t{2}, 1)}, {"tensor_parallel", Document(int64_t{4}, 2)}}),
            "job.yaml:2: tensor_parallel '4' is given twice (also as tp)");
  EXPECT_EQ(why(Document::Object{{"tp", Document(Document::Array{int64_t{2}}, 4)}}),
            "job.yaml:4: tp '[2]' is a list; accepted: a whole number, from 1 to 1,000,000");
  EXPECT_EQ(
      why(Document::Object{{"model", Document(int64_t{7}, 2)}}),
      "job.yaml:2: model '7' is a number; accepted: catalogue id or alias, config.json, model directory, hub id such "
      "as org/name, or a size such as 7B");
  EXPECT_EQ(why(Document(Document::Array{}, 1)), "job.yaml:1: '[]' a job file is an object of fields, not a list");
  EXPECT_NE(why(Document::Object{{"training", Document::Object{{"training", Document::Object{}}}}}), "accepted");
  EXPECT_NE(why(Document::Object{{"tp", Document(1.5)}}), "accepted");
  EXPECT_NE(why(Document::Object{{"tp", Document(int64_t{-1})}}), "accepted");
  EXPECT_NE(why(Document::Object{{"tp", Document(1e30)}}), "accepted");
  EXPECT_NE(why(Document::Object{{"tp", Document(true)}}), "accepted");
  EXPECT_NE(why(Document::Object{{"mfu", Document(std::numeric_limits<double>::quiet_NaN())}}), "accepted");
  EXPECT_NE(why(Document::Object{{"offload", Document(Document::Array{int64_t{1}})}}), "accepted");
  EXPECT_NE(why(Document::Object{{"set", Document(Document::Object{{"a", Document(Document::Object{})}})}}),
            "accepted");
}

TEST(JobFile, ChangesNothingWhereItRefuses) {
  Job job;
  job.tensor_parallel = 8;
  EXPECT_THROW(read_job(job, Document::Object{{"tp", Document(int64_t{2})}, {"pp", Document("x")}}, "job.yaml"),
               InputError);
  EXPECT_EQ(job.tensor_parallel, 8);
  EXPECT_FALSE(job.pipeline_parallel.has_value());
}

std::string contradiction(std::vector<std::pair<const char*, const char*>> settings) {
  return refusal([&] {
    Job job;
    for (const auto& [name, value] : settings) set_field(job, field(name), value, name);
    check_job(job);
  });
}

TEST(CheckJob, FindsContradictions) {
  EXPECT_EQ(contradiction({{"schedule", "interleaved"}, {"pp", "4"}}),
            "--schedule 'interleaved' needs --virtual-pipeline of 2 or more");
  EXPECT_EQ(contradiction({{"zero", "2"}, {"sharding", "zero3"}}),
            "--zero '2' contradicts --sharding zero3; accepted: zero2 with this stage");
  EXPECT_EQ(contradiction({{"gbs", "100"}, {"mbs", "2"}, {"dp", "8"}, {"ga", "4"}}),
            "--global-batch '100' is not micro-batch 2 x data-parallel 8 x gradient accumulation 4 = 64; accepted: 64");
  const std::vector<std::vector<std::pair<const char*, const char*>>> bad = {
      {{"vpp", "2"}},
      {{"vpp", "2"}, {"pp", "4"}, {"schedule", "1f1b"}},
      {{"zero", "0"}, {"sharding", "fsdp"}},
      {{"hybrid_shard", "8"}, {"zero", "0"}},
      {{"hybrid_shard", "8"}, {"dp", "12"}},
      {{"heads", "32"}, {"kv_heads", "5"}},
      {{"hidden", "4097"}, {"heads", "32"}},
      {{"experts", "8"}, {"top_k", "9"}},
      {{"experts", "8"}, {"ep", "3"}},
      {{"precision", "fp32"}, {"master_weights", "true"}},
      {{"precision", "fp32"}, {"gradient_dtype", "bf16"}},
      {{"precision", "bf16_pure"}, {"master_weights", "1"}},
      {{"optimizer", "none"}, {"offload", "optimizer"}},
      {{"task", "full"}, {"lora_rank", "8"}},
      {{"task", "pretrain"}, {"lora_targets", "all"}},
      {{"gbs", "10"}, {"mbs", "4"}},
      {{"reserve", "1GiB"}, {"reserve_ratio", "20%"}},
      {{"reserve", "1GiB"}, {"reserve_total", "8GiB"}}};
  for (const auto& settings : bad) EXPECT_NE(contradiction(settings), "accepted") << settings[0].first;
  EXPECT_EQ(contradiction({{"vpp", "2"}, {"pp", "4"}, {"schedule", "interleaved"}}), "accepted");
  EXPECT_EQ(contradiction({{"zero", "3"}, {"sharding", "fsdp"}, {"hybrid_shard", "8"}, {"dp", "16"}}), "accepted");
  EXPECT_EQ(contradiction({{"gbs", "64"}, {"mbs", "2"}, {"dp", "8"}, {"ga", "4"}}), "accepted");
  EXPECT_EQ(contradiction({{"hidden", "4097"}, {"heads", "32"}, {"head_dim", "128"}}), "accepted");
  EXPECT_EQ(contradiction({}), "accepted");
}

TEST(Schema, NamesEveryFieldAndAlias) {
  const Document schema = job_schema(Lang::en);
  const Document* properties = schema.find("properties");
  const Document* definitions = schema.find("$defs");
  ASSERT_TRUE(properties && definitions);
  for (const Field& f : fields()) {
    const Document* d = definitions->find(f.name);
    ASSERT_TRUE(d) << f.name;
    EXPECT_NE(d->find("description")->string().find(f.help_en), std::string::npos);
    EXPECT_TRUE(properties->find(f.name)) << f.name;
    for (std::string_view a : f.aliases) EXPECT_TRUE(properties->find(a)) << a;
  }
  EXPECT_NE(job_schema(Lang::zh).find("$defs")->find("zero")->find("description")->string(),
            definitions->find("zero")->find("description")->string());
}

}  // namespace
}  // namespace vram
