#include "api/resolve.h"

#include <gtest/gtest.h>

#include <map>

#include "api/models.h"
#include "base/error.h"
#include "base/units.h"

namespace vram {
namespace {

class Memory : public Environment {
 public:
  std::map<std::string, std::string> files;
  std::string read_file(const std::string& path, size_t) const override {
    const auto found = files.find(path);
    if (found == files.end()) throw UnavailableError(path + " can't be read");
    return found->second;
  }
  bool is_file(const std::string& path) const override { return files.count(path) > 0; }
  bool is_directory(const std::string& path) const override {
    const std::string folder = path.back() == '/' ? path : path + "/";
    const auto next = files.lower_bound(folder);
    return next != files.end() && next->first.rfind(folder, 0) == 0;
  }
  std::vector<std::string> list(const std::string&) const override { return {}; }
  void write_file(const std::string&, const std::string&) const override { throw UnavailableError("read only"); }
  std::optional<std::string> variable(const std::string&) const override { return std::nullopt; }
  LocalGpus local_gpus() const override { return {.gpus = {}, .absent_because = "none in a test"}; }
};

constexpr const char* kTiny =
    R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "tie_word_embeddings": false})";
constexpr int64_t kTinyParameters = 2 * 1000 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64) + 64;

std::string refusal(const Job& job, const Environment& environment = Memory()) {
  try {
    resolve_model(job, environment);
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(ResolveModel, ReadsFilesAndDirectories) {
  Memory memory;
  memory.files["tiny/config.json"] = kTiny;
  for (const char* name : {"tiny", "tiny/", "./tiny", "tiny/config.json"}) {
    Memory at = memory;
    at.files["./tiny/config.json"] = kTiny;
    Job job;
    job.model = name;
    const Model model = resolve_model(job, at);
    EXPECT_EQ(model.counts.parameters, kTinyParameters) << name;
    EXPECT_EQ(model.name, "tiny") << name;
  }
  Job job;
  job.model = "tiny";
  job.set = {"num_hidden_layers=4"};
  const Model changed = resolve_model(job, memory);
  EXPECT_TRUE(changed.hypothetical);
  EXPECT_EQ(changed.layers(), 4);
}

TEST(ResolveModel, PrefersTheCatalogueUnlessWrittenAsAPath) {
  Memory memory;
  memory.files["gpt2/config.json"] = kTiny;
  memory.files["./gpt2/config.json"] = kTiny;
  Job job;
  job.model = "gpt2";
  EXPECT_EQ(resolve_model(job, memory).origin, "catalogue");
  job.model = "./gpt2";
  EXPECT_EQ(resolve_model(job, memory).counts.parameters, kTinyParameters);
}

TEST(ResolveModel, TakesSizes) {
  for (const auto& [name, size] :
       std::map<std::string, int64_t>{{"7B", 7'000'000'000}, {"1.5T", 1'500'000'000'000}, {"350M", 350'000'000}}) {
    Job job;
    job.model = name;
    const Model model = resolve_model(job, Memory());
    EXPECT_EQ(model.counts.parameters, size);
    EXPECT_FALSE(model.shape_known);
  }
  Job job;
  job.params = 7'000'000'000;
  EXPECT_EQ(resolve_model(job, Memory()).counts.parameters, 7'000'000'000);
}

TEST(ResolveModel, DescribesByHand) {
  Job job;
  job.layers = 32;
  job.hidden = 4096;
  job.heads = 32;
  job.kv_heads = 8;
  const Model model = resolve_model(job, Memory());
  EXPECT_EQ(model.layers(), 32);
  EXPECT_EQ(model.layer(0).attention.cache_elements_per_token(), 2 * 8 * 128);
  EXPECT_FALSE(model.assumptions.empty());
}

TEST(ResolveModel, MeetsSizeAndShapeInTheMlp) {
  Job job;
  job.model = "7e9";
  job.layers = 32;
  job.hidden = 4096;
  job.heads = 32;
  const Model fitted = resolve_model(job, Memory());
  EXPECT_EQ(fitted.counts.parameters, 7'000'000'000);
  EXPECT_EQ(fitted.layer(0).attention.cache_elements_per_token(), 2 * 32 * 128);
  int64_t sum = 0;
  for (const TensorGroup& g : fitted.tensors) {
    for (const Tensor& t : g.tensors) {
      if (t.learned) sum += g.times() * t.experts * t.elements();
    }
  }
  EXPECT_EQ(sum, 7'000'000'000);
  job.model = "1e9";
  EXPECT_NE(refusal(job).find("is less than"), std::string::npos);
  job.ffn = 11008;
  job.vocab = 32000;
  EXPECT_NE(refusal(job).find("contradicts the layers, which hold 6,738,415,616"), std::string::npos);
  job.model = "7B";
  EXPECT_EQ(resolve_model(job, Memory()).counts.parameters, 6'738'415'616);
}

TEST(ResolveModel, Refuses) {
  Job job;
  EXPECT_NE(refusal(job).find("MODEL is missing"), std::string::npos);
  job.model = "llama-3.1-70";
  EXPECT_EQ(refusal(job),
            "unknown model 'llama-3.1-70'. Did you mean meta-llama/Llama-3.1-70B? (vram models lists all)");
  job.model = "7B";
  job.params = 8;
  EXPECT_EQ(refusal(job), "--params '8' contradicts the model '7B'");
  job = {};
  job.model = "gpt2";
  job.layers = 3;
  EXPECT_NE(refusal(job).find("--layers describes a model by hand"), std::string::npos);
  job = {};
  job.model = "7B";
  job.set = {"layers=3"};
  EXPECT_NE(refusal(job).find("only a size"), std::string::npos);
}

TEST(ResolveMachine, LaysTheJobOverTheDevice) {
  const Memory memory;
  const Knowledge knowledge(memory);
  Job job;
  job.on = "8xH100";
  job.usable = 70 * kGiB;
  job.host_memory = 512 * kGiB;
  job.pcie = 64e9;
  job.price = 2.5;
  const Machine machine = resolve_machine(job, knowledge);
  EXPECT_EQ(machine.cards(), 8);
  EXPECT_EQ(machine.device.usable_bytes(), 70 * kGiB);
  EXPECT_EQ(machine.host_bytes_per_node, 512 * kGiB);
  EXPECT_EQ(machine.device.host_link->bytes_per_second, 64e9);
  EXPECT_EQ(machine.device.rent_low, 2.5);
  job.usable = 90 * kGiB;
  EXPECT_THROW(resolve_machine(job, knowledge), InputError);
  EXPECT_THROW(resolve_machine(Job{}, knowledge), InputError);
}

TEST(Knowledge, TakesRowsOfEitherKind) {
  Memory memory;
  memory.files["c.toml"] = "[[constant]]\nid = \"mine\"\nvalue = 3\nunit = \"count\"\n";
  memory.files["both.toml"] = "[[constant]]\nid = \"mine\"\nvalue = 3\n[[device]]\nid = \"x\"\n";
  memory.files["none.toml"] = "x = 1\n";
  Knowledge knowledge(memory);
  knowledge.add_rows("c.toml");
  EXPECT_EQ(knowledge.constants().get("mine").value, 3);
  EXPECT_THROW(knowledge.add_rows("both.toml"), InputError);
  EXPECT_THROW(knowledge.add_rows("none.toml"), InputError);
  EXPECT_THROW(knowledge.add_rows("missing.toml"), UnavailableError);
}

// Every view of the parameters adds up to the same total, for every model of the catalogue.
TEST(ModelAnswer, ViewsSumToTheCounts) {
  const Memory memory;
  const Knowledge knowledge(memory);
  for (const CatalogueEntry& entry : Catalogue::builtin().entries()) {
    Job job;
    job.model = entry.id;
    const ModelAnswer answer = answer_model(job, knowledge);
    const auto sum = [](const std::vector<ParameterGroup>& groups) {
      int64_t n = 0;
      for (const ParameterGroup& g : groups) n += g.parameters;
      return n;
    };
    const Counts& c = answer.model.counts;
    EXPECT_EQ(sum(answer.by_role), c.parameters + c.mtp) << entry.id;
    EXPECT_EQ(sum(answer.by_module), c.parameters + c.mtp) << entry.id;
    EXPECT_EQ(sum(answer.by_part), c.parameters + c.mtp) << entry.id;
    int64_t layers = 0;
    for (const LayerGroup& g : answer.layers) layers += g.count;
    EXPECT_EQ(layers, answer.model.layers()) << entry.id;
  }
}

TEST(ModelsAnswer, SearchesIdsAliasesAndFamilies) {
  const ModelsAnswer all = answer_models({});
  EXPECT_EQ(all.known, static_cast<int64_t>(all.models.size()));
  const ModelsAnswer some = answer_models({"LLAMA", "70b"});
  EXPECT_FALSE(some.models.empty());
  EXPECT_LT(some.models.size(), all.models.size());
  EXPECT_TRUE(answer_models({"no such model"}).models.empty());
}

}  // namespace
}  // namespace vram
