#include "cli/sides.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace vram::cli {
namespace {

class Files : public Environment {
 public:
  std::map<std::string, std::string> files;

  std::string read_file(const std::string& path, size_t) const override {
    const auto found = files.find(path);
    if (found == files.end()) throw UnavailableError(path + " can't be read");
    return found->second;
  }
  bool is_file(const std::string& path) const override { return files.count(path) > 0; }
  bool is_directory(const std::string&) const override { return false; }
  std::vector<std::string> list(const std::string&) const override { return {}; }
  void write_file(const std::string& path, const std::string&) const override { throw UnavailableError(path); }
  std::optional<std::string> variable(const std::string&) const override { return std::nullopt; }
  LocalGpus local_gpus() const override { return {}; }
};

using Words = std::vector<std::string>;

TEST(ShellWords, AreCutAsAShellDoes) {
  EXPECT_EQ(shell_words("  a  b\tc ", "A"), (Words{"a", "b", "c"}));
  EXPECT_EQ(shell_words("'a b' \"c \\\" d\" e\\ f ''", "A"), (Words{"a b", "c \" d", "e f", ""}));
  EXPECT_EQ(shell_words("a'b'c", "A"), (Words{"abc"}));
  EXPECT_EQ(shell_words("", "A"), Words{});
  EXPECT_THROW(shell_words("'a", "A"), InputError);
}

class Sides : public ::testing::Test {
 protected:
  Side read(const std::string& word, const Job& common = {}) { return read_side(word, "A", common, environment); }
  Files environment;
};

TEST_F(Sides, AFileAndWhatIsLaidOverIt) {
  environment.files["job.yaml"] = "model: 7B\non: 8xH100\nzero: 1\nsequence: 2048\n";
  EXPECT_EQ(read("job.yaml").job.zero, 1);
  EXPECT_FALSE(read("job.yaml").of);
  // The file, then what holds for both, then the options of this side.
  Job common;
  common.zero = 2;
  common.on = "16xH100";
  EXPECT_EQ(read("job.yaml", common).job.zero, 2);
  const Job job = read("job.yaml --zero 3", common).job;
  EXPECT_EQ(job.zero, 3);
  EXPECT_EQ(job.on, "16xH100");
  EXPECT_EQ(job.sequence, 2048);
  EXPECT_EQ(job.model, "7B");
  EXPECT_EQ(read("--job job.yaml --zero 3").job.sequence, 2048);
}

TEST_F(Sides, WordsAsBehindTheCommand) {
  const Side side = read("vram serve meta-llama/Llama-3.1-8B --on 1xH100 --set 'kv_heads=4' --textbook true");
  EXPECT_EQ(side.of, DiffOf::serve);
  EXPECT_EQ(side.job.model, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(side.job.set, Words{"kv_heads=4"});
  EXPECT_TRUE(side.job.textbook);
}

TEST_F(Sides, AModelsConfigurationIsAModel) {
  environment.files["config.json"] = R"({"model_type": "llama", "hidden_size": 64})";
  environment.files["my job.json"] = R"({"model": "7B", "zero": 3})";
  EXPECT_EQ(read("config.json").job.model, "config.json");
  EXPECT_EQ(read("my job.json").job.zero, 3);
}

TEST_F(Sides, RefusalsNameTheSide) {
  for (const char* word : {"7B 13B --zero 1", "--zero 9 x", "--jsn 1", "7B --json", "7B --save x.yaml", "  ",
                           "vram train", "absent.yaml --zero 1", "'7B"}) {
    try {
      read(word);
      ADD_FAILURE() << word;
    } catch (const InputError& e) {
      EXPECT_EQ(std::string(e.what()).rfind("A", 0), 0u) << e.what();
    } catch (const UnavailableError&) {
      EXPECT_EQ(std::string(word), "absent.yaml --zero 1");
    }
  }
}

}  // namespace
}  // namespace vram::cli
