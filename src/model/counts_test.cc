// Exact parameter counts against published ones.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/formats.h"
#include "model/model.h"

namespace vram {
namespace {

struct Row {
  Document row;
  std::string name;
};

std::vector<Row> truth_rows() {
  std::ifstream in(std::string(VRAM_SOURCE_DIR) + "/data/truth/parameters.jsonl");
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    Document row = parse_json(line, "parameters.jsonl");
    std::string name = row.find("model")->find("name")->string();
    rows.push_back({std::move(row), std::move(name)});
  }
  return rows;
}

int64_t extra_elements(const Document& row) {
  int64_t sum = 0;
  const Document* given = row.find("given");
  const Document* extra = given ? given->find("extra_elements") : nullptr;
  if (!extra) return 0;
  for (const auto& member : extra->object()) sum += member.second.integer();
  return sum;
}

TEST(Counts, EqualEveryPublishedRow) {
  const std::vector<Row> rows = truth_rows();
  ASSERT_EQ(rows.size(), 134u);
  for (const Row& r : rows) {
    SCOPED_TRACE(r.name);
    Model m;
    ASSERT_NO_THROW(m = model_from_config(*r.row.find("model")->find("config"), r.name, r.name));
    EXPECT_TRUE(m.family_known);
    for (const Document& measured : r.row.find("measured")->array()) {
      const std::string quantity = measured.find("quantity")->string();
      const int64_t value = measured.find("value")->integer();
      if (quantity == "parameters") {
        EXPECT_EQ(m.counts.parameters, value);
      }
      if (quantity == "mtp_parameters") {
        EXPECT_EQ(m.counts.mtp, value);
      }
      if (quantity == "vision_parameters") {
        EXPECT_EQ(m.counts.vision, value);
      }
      if (quantity == "stored_elements") {
        EXPECT_EQ(m.counts.parameters + m.counts.mtp + extra_elements(r.row), value);
      }
    }
  }
}

enum Quantity { kParameters, kStored };
struct Published {
  const char* id;
  Quantity quantity;
  int64_t value;
};

// Counts published on the models' pages, of catalogue entries that the rows above do not cover.
constexpr Published kPublished[] = {
    {"meta-llama/Llama-3.1-8B", kParameters, 8'030'261'248},
    {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", kParameters, 1'100'048'384},
    {"HuggingFaceTB/SmolLM-1.7B", kParameters, 1'711'376'384},
    {"HuggingFaceTB/SmolLM2-135M", kParameters, 134'515'008},
    {"deepseek-ai/deepseek-coder-6.7b-base", kParameters, 6'740'512'768},
    {"ibm-granite/granite-3.3-8b-instruct", kParameters, 8'170'864'640},
    {"allenai/OLMo-1B-hf", kParameters, 1'176'764'416},
    {"allenai/OLMo-2-1124-13B", kParameters, 13'716'198'400},
    {"Qwen/Qwen2.5-1.5B", kParameters, 1'543'714'304},
    {"Qwen/Qwen2.5-7B", kParameters, 7'615'616'512},
    {"Qwen/Qwen2.5-14B", kParameters, 14'770'033'664},
    {"Qwen/Qwen2.5-72B", kParameters, 72'706'203'648},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", kParameters, 1'777'088'000},
    {"Qwen/Qwen1.5-1.8B-Chat", kParameters, 1'836'828'672},
    {"Qwen/Qwen3-32B", kParameters, 32'762'123'264},
    {"Qwen/Qwen3.5-122B-A10B", kStored, 125'086'497'008},
    {"Qwen/Qwen3-VL-32B-Instruct", kParameters, 33'357'390'064},
    {"Qwen/Qwen2.5-VL-32B-Instruct", kParameters, 33'452'718'336},
    {"Qwen/Qwen2-VL-72B-Instruct", kParameters, 73'405'560'320},
    {"google/gemma-2b", kParameters, 2'506'172'416},
    {"google/gemma-7b", kParameters, 8'537'680'896},
    {"google/gemma-3-270m", kParameters, 268'098'176},
    {"google/gemma-3-12b-it", kParameters, 12'187'325'040},
    {"moonshotai/Kimi-K2-Instruct", kParameters, 1'026'408'232'448},
    {"moonshotai/Kimi-Linear-48B-A3B-Instruct", kParameters, 49'122'681'728},
    {"zai-org/GLM-4-9B-0414", kParameters, 9'400'279'040},
    {"zai-org/GLM-4.7-Flash", kParameters, 29'943'393'920},
    {"zai-org/GLM-4.7-Flash", kStored, 31'221'488'576},
    {"zai-org/GLM-5.2", kStored, 753'329'940'480},
    {"deepseek-ai/DeepSeek-V3.2", kStored, 685'396'921'376},
    {"openai/gpt-oss-20b", kParameters, 20'914'757'184},
    {"openai/gpt-oss-20b", kStored, 21'511'953'984},
    {"openai/gpt-oss-120b", kStored, 120'412'337'472},
    {"openai-community/gpt2-medium", kStored, 379'988'992},
    {"openai-community/gpt2-xl", kParameters, 1'557'611'200},
    {"EleutherAI/pythia-1.4b", kStored, 1'515'311'488},
    {"EleutherAI/pythia-6.9b", kStored, 6'991'520'256},
    {"EleutherAI/gpt-neox-20b", kParameters, 20'554'567'680},
    {"bigscience/bloom", kParameters, 176'247'271'424},
    {"bigscience/bloom-1b1", kParameters, 1'065'314'304},
    {"bigscience/bloom-7b1", kParameters, 7'069'016'064},
    {"tiiuae/falcon-180B-chat", kStored, 179'522'565'120},
    {"tiiuae/falcon-7b", kParameters, 6'921'720'704},
    {"tiiuae/falcon-7b", kStored, 7'217'189'760},
    {"tiiuae/falcon-rw-1b", kParameters, 1'311'625'216},
    {"mosaicml/mpt-7b", kParameters, 6'649'286'656},
    {"stabilityai/stablelm-3b-4e1t", kParameters, 2'795'443'200},
    {"CohereLabs/aya-23-8B", kParameters, 8'028'033'024},
    {"google-t5/t5-small", kParameters, 60'506'624},
    {"openai/whisper-large-v3", kParameters, 1'543'490'560},
    {"nvidia/Nemotron-H-56B-Base-8K", kParameters, 56'324'350'464},
    {"nvidia/Llama-3_3-Nemotron-Super-49B-v1", kParameters, 49'867'145'216},
    {"mistralai/Ministral-8B-Instruct-2410", kParameters, 8'019'808'256},
    {"llava-hf/llava-1.5-7b-hf", kParameters, 7'063'427'072},
    {"meta-llama/Llama-3.2-11B-Vision", kParameters, 10'670'220'835},
    {"microsoft/Phi-3.5-vision-instruct", kParameters, 4'146'621'440},
    {"allenai/Molmo-7B-D-0924-bnb-nf4", kParameters, 8'021'025'280},
    {"huggyllama/llama-7b", kParameters, 6'738'415'616},
};

TEST(Counts, OfTheCatalogueEqualPublishedOnes) {
  for (const Published& p : kPublished) {
    SCOPED_TRACE(p.id);
    const CatalogueEntry* entry = Catalogue::builtin().find(p.id);
    ASSERT_NE(entry, nullptr);
    const Model m = Catalogue::builtin().model(*entry);
    EXPECT_EQ(p.quantity == kParameters ? m.counts.parameters : m.counts.stored_elements, p.value);
  }
}

TEST(Counts, PublishedFilesOfTheRowsAreWholeWithoutBeingTold) {
  // Where the row's only extras are known by the model's name, or none, the file's numbers come out unaided.
  int checked = 0;
  for (const Row& r : truth_rows()) {
    const Document* given = r.row.find("given");
    const Document* extra = given ? given->find("extra_elements") : nullptr;
    if (extra && extra->find("fp8_scales")) continue;  // these configs lack their quantization_config
    const Model m = model_from_config(*r.row.find("model")->find("config"), r.name, r.name);
    for (const Document& measured : r.row.find("measured")->array()) {
      if (measured.find("quantity")->string() != "stored_elements") continue;
      EXPECT_EQ(m.counts.stored_elements, measured.find("value")->integer()) << r.name;
      ++checked;
    }
  }
  EXPECT_GE(checked, 20);
}

TEST(Counts, ActiveParametersOfExpertModels) {
  const auto active = [](const char* name) {
    return Catalogue::builtin().model(*Catalogue::builtin().find(name)).counts.active;
  };
  // 8 of 128 experts of three 4096 x 1536 matrices on each of 94 layers.
  EXPECT_EQ(active("Qwen/Qwen3-235B-A22B"), 235'093'634'560 - int64_t{94} * 120 * 3 * 4096 * 1536);
  EXPECT_NEAR(static_cast<double>(active("deepseek-v3")), 37.55e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(active("gpt-oss-120b")), 5.71e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(active("mixtral-8x7b")), 12.88e9, 0.01e9);
  EXPECT_EQ(active("llama-3.1-8b"), 8'030'261'248);
}

}  // namespace
}  // namespace vram
