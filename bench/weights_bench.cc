// Headers of weight files: what reading and understanding them takes, without the file system.
#include <benchmark/benchmark.h>

#include "formats/safetensors.h"
#include "formats/weight_files_test.h"
#include "model/weights/table.h"
#include "model/weights/weights.h"

namespace {

using namespace vram;

std::string upper(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

// DeepSeek-V3 as published: 91 thousand tensors in 163 files, 700 GB.
struct Sharded {
  Model config;
  std::vector<std::string> files;
  std::vector<int64_t> sizes;
  std::string index;
};

const Sharded& sharded() {
  static const Sharded made = [] {
    Sharded s;
    const Catalogue& catalogue = Catalogue::builtin();
    s.config = catalogue.model(*catalogue.find("deepseek-ai/DeepSeek-V3"));
    std::vector<made::SafetensorsHeader> headers(163);
    s.index = "{\n  \"metadata\": {\n    \"total_size\": 1\n  },\n  \"weight_map\": {\n";
    int64_t n = 0;
    for_each_tensor(s.config, [&](const std::string& name, const Tensor& t, int64_t, int64_t) {
      const auto file = static_cast<size_t>(n++ * 163 / s.config.counts.tensors);
      headers[file].add(name, upper(dtype_name(t.dtype)), t.shape, t.stored_bytes);
      s.index += fmt::format("    \"{}\": \"model-{:05}-of-000163.safetensors\",\n", name, file + 1);
    });
    s.index.resize(s.index.size() - 2);
    s.index += "\n  }\n}\n";
    for (const auto& h : headers) {
      s.files.push_back(h.file_start());
      s.sizes.push_back(static_cast<int64_t>(s.files.back().size()) + h.data_bytes());
    }
    return s;
  }();
  return made;
}

FileTensors read_shards(const Sharded& s) {
  FileTensors out;
  for (size_t f = 0; f < s.files.size(); ++f) {
    read_safetensors(MemoryBytes(fmt::format("model-{:05}-of-000163.safetensors", f + 1), s.files[f], s.sizes[f]), out);
  }
  return out;
}

void headers_of_91_thousand_tensors(benchmark::State& state) {
  const Sharded& s = sharded();
  for (auto _ : state) benchmark::DoNotOptimize(read_shards(s).bytes());
  state.counters["tensors"] = static_cast<double>(s.config.counts.tensors);
}
BENCHMARK(headers_of_91_thousand_tensors)->Unit(benchmark::kMillisecond);

void index_of_163_shards(benchmark::State& state) {
  const Sharded& s = sharded();
  const FileTensors tensors = read_shards(s);
  for (auto _ : state) {
    const ShardIndex index = parse_shard_index(s.index, "index");
    check_against_index(index, tensors, "index");
  }
}
BENCHMARK(index_of_163_shards)->Unit(benchmark::kMillisecond);

void table_of_91_thousand_tensors(benchmark::State& state) {
  const FileTensors tensors = read_shards(sharded());
  for (auto _ : state) benchmark::DoNotOptimize(arch::TensorTable(tensors).cells().size());
}
BENCHMARK(table_of_91_thousand_tensors)->Unit(benchmark::kMillisecond);

void model_of_91_thousand_tensors(benchmark::State& state) {
  const Sharded& s = sharded();
  const FileTensors tensors = read_shards(s);
  for (auto _ : state) benchmark::DoNotOptimize(model_with_weights(s.config, tensors));
}
BENCHMARK(model_of_91_thousand_tensors)->Unit(benchmark::kMillisecond);

void gguf_of_1086_tensors_and_a_vocabulary(benchmark::State& state) {
  made::GgufWriter w;
  for (made::RealList& list : made::real_lists(VRAM_SOURCE_DIR)) {
    if (list.name.rfind("DeepSeek", 0) == 0) w = list.writer;
  }
  const std::pair<const char*, int> keys[] = {{"block_count", 61},
                                              {"embedding_length", 7168},
                                              {"context_length", 163840},
                                              {"attention.head_count", 128},
                                              {"attention.head_count_kv", 1},
                                              {"attention.key_length_mla", 192},
                                              {"attention.value_length_mla", 128},
                                              {"attention.kv_lora_rank", 512},
                                              {"expert_count", 256},
                                              {"expert_used_count", 8}};
  w.text("general.architecture", "deepseek2");
  for (const auto& [key, value] : keys) w.u32(fmt::format("deepseek2.{}", key), static_cast<uint64_t>(value));
  w.texts("tokenizer.ggml.tokens", 129'280, "a word").texts("tokenizer.ggml.merges", 127'741, "two words");
  const std::string header = w.header();
  const int64_t size = w.size();
  for (auto _ : state) {
    FileTensors tensors;
    const GgufMetadata meta = read_gguf(MemoryBytes("m.gguf", header, size), tensors);
    benchmark::DoNotOptimize(model_from_gguf(meta, tensors, "m.gguf", "m"));
  }
}
BENCHMARK(gguf_of_1086_tensors_and_a_vocabulary)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
