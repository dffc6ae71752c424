#include "api/hub.h"

#include <gtest/gtest.h>

#include <functional>

#include "api/resolve.h"
#include "api/url.h"
#include "base/error.h"
#include "formats/safetensors.h"
#include "model/tensors.h"

namespace vram {
namespace {

TEST(Url, IsTakenApart) {
  const auto url = parse_url("HTTPS://HuggingFace.co/a/b?c=d#e");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->origin(), "https://huggingface.co:443");
  EXPECT_EQ(url->path, "/a/b?c=d");
  EXPECT_EQ(url->text(), "https://huggingface.co/a/b?c=d");
  EXPECT_EQ(parse_url("http://127.0.0.1:8080")->text(), "http://127.0.0.1:8080/");
  EXPECT_EQ(parse_url("http://[::1]:81/x")->origin(), "http://[::1]:81");
  EXPECT_EQ(parse_url("http://[::1]/x")->port, "80");
}

TEST(Url, WhatIsAmbiguousIsRefused) {
  for (const char* text :
       {"", "huggingface.co", "ftp://a/", "file:///etc/passwd", "https://", "https:///x",
        "https://huggingface.co@evil/", "https://a:b@c/", "https://a:/", "https://a:123456/", "https://a:8o/",
        "https://a\\b/", "https://a b/", "https://a\r\nb/", "https://[::1/", "https://h\xc3\xb6st/"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
}

TEST(Url, RedirectsAreRelativeToWhereTheyComeFrom) {
  const Url base = *parse_url("https://hub:444/a/b/c?d=/e");
  EXPECT_EQ(redirected(base, "/x")->text(), "https://hub:444/x");
  EXPECT_EQ(redirected(base, "x?y=https://z/")->text(), "https://hub:444/a/b/x?y=https://z/");
  EXPECT_EQ(redirected(base, "//cdn/x")->text(), "https://cdn/x");
  EXPECT_EQ(redirected(base, "http://cdn/x")->text(), "http://cdn/x");
  EXPECT_FALSE(redirected(base, ""));
  EXPECT_FALSE(redirected(base, "ftp://cdn/x"));
}

TEST(Url, OnlyThisMachineIsLoopback) {
  EXPECT_TRUE(parse_url("http://127.0.0.1/")->loopback());
  EXPECT_TRUE(parse_url("http://localhost:1/")->loopback());
  EXPECT_TRUE(parse_url("http://[::1]/")->loopback());
  EXPECT_FALSE(parse_url("http://127.0.0.1.example/")->loopback());
  EXPECT_FALSE(parse_url("http://128.0.0.1/")->loopback());
}

TEST(Url, EncodingKeepsNothingThatWouldEndAPath) {
  EXPECT_EQ(percent_encoded("refs/pr/1", false), "refs%2Fpr%2F1");
  EXPECT_EQ(percent_encoded("a b/c#d?e", true), "a%20b/c%23d%3Fe");
  EXPECT_EQ(percent_encoded("\xe4\xb8\xad", true), "%E4%B8%AD");
}

std::optional<HubId> id_of(const std::string& model, std::optional<std::string> revision = {}) {
  Job job;
  job.model = model;
  job.revision = std::move(revision);
  return hub_id(job);
}

TEST(HubIds, AreToldFromOtherNames) {
  EXPECT_EQ(id_of("org/name")->repository, "org/name");
  EXPECT_EQ(id_of("org/name")->revision, "main");
  EXPECT_EQ(id_of("org/name@refs/pr/3")->revision, "refs/pr/3");
  EXPECT_EQ(id_of("org/name", "v1.0")->revision, "v1.0");
  EXPECT_EQ(id_of("hub:org/name/sub/a.gguf")->file, "sub/a.gguf");
  EXPECT_EQ(id_of("hub:gpt2")->repository, "gpt2");
  EXPECT_EQ(id_of("hub:org/name/config.json@x")->file, "config.json");
  for (const char* text : {"name", "7B", "a/b/c", "a/b/c.json", "-a/b", "a/b.", "a/b--c", "a/..b", "a/b.git", "a/",
                           "/b", "a b/c", "a/b\n", "org/..", "a/b/c.gguf"}) {
    EXPECT_FALSE(id_of(text)) << text;
  }
}

TEST(HubIds, ImpossibleOnesAreRefusedWhereTheHubIsMeant) {
  for (const char* text : {"hub:", "hub:a/b/", "hub:a b", "hub:a/b/../c", "hub:../x", "hub:a@", "hub:a@..", "hub:a@-x",
                           "hub:a@x y", "a/b@"}) {
    EXPECT_THROW(id_of(text), InputError) << text;
  }
  EXPECT_THROW(id_of("org/name@a", "b"), InputError);
  EXPECT_THROW(id_of("org/name", "../x"), InputError);
  EXPECT_EQ(id_of("org/name@a", "a")->revision, "a");
}

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";
const char* const kLlama =
    R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "vocab_size": 100, "tie_word_embeddings": false})";

// A hub and a disk in memory.
class FakeHub : public Environment {
 public:
  std::map<std::string, std::string> variables = {{"HOME", "/home/x"}};
  mutable std::map<std::string, std::string> files;
  bool may_write = true;
  std::function<HttpReply(const HttpRequest&)> answer;
  mutable std::vector<HttpRequest> asked;

  std::string read_file(const std::string& path, size_t) const override {
    const auto found = files.find(path);
    if (found == files.end()) throw UnavailableError(path + ": no such file");
    return found->second;
  }
  bool is_file(const std::string& path) const override { return files.count(path) != 0; }
  bool is_directory(const std::string&) const override { return false; }
  std::vector<std::string> list(const std::string&) const override { return {}; }
  void write_file(const std::string& path, const std::string& bytes) const override {
    if (!may_write) throw UnavailableError(path + ": cannot write");
    files[path] = bytes;
  }
  void make_directories(const std::string&) const override {}
  std::optional<std::string> variable(const std::string& name) const override {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  LocalGpus local_gpus() const override { return {}; }
  std::vector<HttpReply> http_get(const std::vector<HttpRequest>& requests) const override {
    std::vector<HttpReply> out;
    for (const HttpRequest& r : requests) {
      asked.push_back(r);
      out.push_back(answer(r));
    }
    return out;
  }
};

HttpReply reply_of(int status, std::string body, std::vector<std::pair<std::string, std::string>> headers = {}) {
  HttpReply r;
  r.status = status;
  r.body = std::move(body);
  r.headers = std::move(headers);
  return r;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

HttpReply usual_answer(const HttpRequest& r) {
  if (has(r.url, "/api/models/")) {
    return reply_of(200, R"({"sha": ")" + kCommit + R"(", "siblings": [{"rfilename": "config.json"}]})");
  }
  return reply_of(200, kLlama, {{"x-repo-commit", kCommit}});
}

bool sends_token(const HttpRequest& r) {
  for (const std::string& h : r.headers) {
    if (has(h, "Authorization")) return true;
  }
  return false;
}

Job job_of(const std::string& model) {
  Job job;
  job.model = model;
  return job;
}

TEST(Hub, AModelIsFetchedOnceAndThenReadFromTheCache) {
  FakeHub hub;
  hub.answer = usual_answer;
  const Model first = resolve_model(job_of("org/name"), hub);
  EXPECT_EQ(first.name, "org/name");
  EXPECT_EQ(first.origin, "hub 01234567");
  EXPECT_EQ(first.source, "https://huggingface.co/org/name/tree/" + kCommit);
  EXPECT_EQ(hub.asked.size(), 2U);
  const Model second = resolve_model(job_of("org/name"), hub);
  EXPECT_EQ(hub.asked.size(), 2U);
  EXPECT_EQ(second.counts.parameters, first.counts.parameters);
  Job again = job_of("org/name");
  again.refresh = true;
  resolve_model(again, hub);
  EXPECT_EQ(hub.asked.size(), 4U);
  // A damaged entry counts as absent.
  for (auto& [path, bytes] : hub.files) {
    if (has(path, "config.json")) bytes.back() = ' ';
  }
  resolve_model(job_of("org/name"), hub);
  EXPECT_EQ(hub.asked.size(), 6U);
}

TEST(Hub, TheCatalogueWinsUnlessTheHubIsMeant) {
  FakeHub hub;
  hub.answer = usual_answer;
  EXPECT_EQ(resolve_model(job_of("meta-llama/Llama-3.1-8B"), hub).origin, "catalogue");
  EXPECT_TRUE(hub.asked.empty());
  EXPECT_EQ(resolve_model(job_of("hub:meta-llama/Llama-3.1-8B"), hub).origin, "hub 01234567");
  Job tagged = job_of("meta-llama/Llama-3.1-8B");
  tagged.revision = kCommit;
  EXPECT_EQ(resolve_model(tagged, hub).origin, "hub 01234567");
  tagged.model = "7B";
  EXPECT_THROW(resolve_model(tagged, hub), InputError);
}

TEST(Hub, TheTokenGoesToTheEndpointAlone) {
  FakeHub hub;
  hub.variables["HF_TOKEN"] = "hf_secret";
  hub.answer = [](const HttpRequest& r) {
    if (has(r.url, "https://cdn/")) return reply_of(307, "", {{"location", "https://huggingface.co/back"}});
    if (has(r.url, "/back")) return reply_of(200, kLlama);
    if (has(r.url, "/api/")) return usual_answer(r);
    if (has(r.url, "/resolve/")) return reply_of(302, "", {{"location", "/renamed"}, {"x-repo-commit", kCommit}});
    return reply_of(302, "", {{"location", "https://cdn/x"}});
  };
  EXPECT_EQ(resolve_model(job_of("org/name"), hub).family, "llama");
  ASSERT_EQ(hub.asked.size(), 5U);
  EXPECT_TRUE(sends_token(hub.asked[0]));
  EXPECT_TRUE(sends_token(hub.asked[1]));
  EXPECT_TRUE(sends_token(hub.asked[2]));   // /renamed, still the endpoint
  EXPECT_FALSE(sends_token(hub.asked[3]));  // the other host
  EXPECT_FALSE(sends_token(hub.asked[4]));  // and not again behind it

  // Plain http carries it only within this machine.
  FakeHub plain;
  plain.variables["HF_TOKEN"] = "hf_secret";
  plain.variables["HF_ENDPOINT"] = "http://mirror.example";
  plain.answer = usual_answer;
  resolve_model(job_of("org/name"), plain);
  EXPECT_FALSE(sends_token(plain.asked.front()));
  plain.variables["HF_TOKEN"] = "two\r\nlines";
  EXPECT_THROW(resolve_model(job_of("org/other"), plain), InputError);
}

std::string refusal(const FakeHub& hub, const std::string& model = "org/name") {
  try {
    resolve_model(job_of(model), hub);
  } catch (const UnavailableError& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(Hub, RedirectsToPlainHttpAreNotFollowed) {
  FakeHub hub;
  for (const auto& [location, why] :
       std::vector<std::pair<std::string, std::string>>{{"http://huggingface.co/x", "plain http"},
                                                        {"ftp://x/", "without a usable address"},
                                                        {"/x", "in a circle"}}) {
    hub.answer = [location = location](const HttpRequest&) { return reply_of(302, "", {{"location", location}}); };
    EXPECT_TRUE(has(refusal(hub), why)) << refusal(hub);
  }
  hub.variables["HF_ENDPOINT"] = "http://mirror.example";
  hub.answer = [](const HttpRequest&) { return reply_of(302, "", {{"location", "http://login.example/"}}); };
  EXPECT_TRUE(has(refusal(hub), "another host, login.example")) << refusal(hub);
}

TEST(Hub, ACacheThatCannotBeWrittenIsSaidOnce) {
  FakeHub hub;
  hub.answer = usual_answer;
  hub.may_write = false;
  const Model model = resolve_model(job_of("org/name"), hub);
  ASSERT_EQ(model.assumed(Lang::en).size(), model.assumed(Lang::zh).size());
  int said = 0;
  for (const std::string& line : model.assumed(Lang::en)) said += has(line, "could not be kept") ? 1 : 0;
  EXPECT_EQ(said, 1);
}

TEST(Hub, HeadersAreReadInRangesThatGrow) {
  FakeHub hub;
  std::string weights(3'000'000, 'x');
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<char>('a' + i % 23);
  hub.answer = [&](const HttpRequest& r) {
    if (has(r.url, "/api/models/")) {
      return reply_of(200, R"({"sha": ")" + kCommit + R"(", "siblings": [{"rfilename": "a.gguf"}]})");
    }
    const size_t dash = r.range.find('-');
    if (dash == std::string::npos) return reply_of(404, "", {{"x-error-code", "EntryNotFound"}});
    const size_t first = std::stoul(r.range.substr(0, dash));
    const size_t last = std::min(std::stoul(r.range.substr(dash + 1)), weights.size() - 1);
    return reply_of(206, weights.substr(first, last - first + 1),
                    {{"content-range", "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
                                           std::to_string(weights.size())}});
  };
  const Job job = job_of("hub:org/name/a.gguf");
  {
    const HubFiles files(*hub_id(job), job, hub);
    const std::string path = files.directory() + "/a.gguf";
    EXPECT_EQ(files.list(files.directory()), std::vector<std::string>{"a.gguf"});
    EXPECT_EQ(files.file_size(path), 3'000'000);
    for (size_t at = 0; at < weights.size(); at += 50'000) {
      ASSERT_EQ(files.read_range(path, static_cast<int64_t>(at), 50'000), weights.substr(at, 50'000)) << at;
    }
    EXPECT_EQ(files.read_range(path, 2'999'999, 10), weights.substr(2'999'999));
    EXPECT_EQ(files.read_range(path, 3'000'000, 10), "");
    EXPECT_EQ(files.read_range(path, std::numeric_limits<int64_t>::max(), 10), "");
    // The list, then 128 KiB, 128 KiB, 256 KiB, ...: doubling.
    EXPECT_LE(hub.asked.size(), 8U);
  }
  const size_t before = hub.asked.size();
  const HubFiles again(*hub_id(job), job, hub);
  EXPECT_EQ(again.read_range(again.directory() + "/a.gguf", 1'000'000, 1000), weights.substr(1'000'000, 1000));
  EXPECT_EQ(hub.asked.size(), before);
}

std::string safetensors_file(const std::string& tensor, size_t padding) {
  std::string header = R"({")" + tensor + R"(": {"dtype": "BF16", "shape": [1000, 300], "data_offsets": [0, 600000]}})";
  header += std::string(padding, ' ');
  std::string out;
  for (size_t i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + header + std::string(600'000, 'w');
}

TEST(Hub, HeadersOfAllShardsTakeOneRound) {
  FakeHub hub;
  std::map<std::string, std::string> shards;
  for (const char* name : {"a", "b", "c"}) {
    const std::string number = std::to_string(shards.size() + 1);
    // The header of the second is longer than the first read.
    shards["model-0000" + number + "-of-00003.safetensors"] = safetensors_file(name, *name == 'b' ? 200'000 : 0);
  }
  hub.answer = [&](const HttpRequest& r) {
    if (has(r.url, "/api/models/")) {
      std::string names;
      for (const auto& [name, bytes] : shards) names += R"({"rfilename": ")" + name + R"("}, )";
      return reply_of(200, R"({"sha": ")" + kCommit + R"(", "siblings": [)" + names + R"({"rfilename": "x"}]})");
    }
    for (const auto& [name, bytes] : shards) {
      const size_t dash = r.range.find('-');
      if (!has(r.url, name) || dash == std::string::npos) continue;
      const size_t first = std::stoul(r.range.substr(0, dash));
      const size_t last = std::min(std::stoul(r.range.substr(dash + 1)), bytes.size() - 1);
      return reply_of(206, bytes.substr(first, last - first + 1),
                      {{"content-range", "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
                                             std::to_string(bytes.size())}});
    }
    return reply_of(404, "", {{"x-error-code", "EntryNotFound"}});
  };
  Job job = job_of("org/name");
  const auto read = [&] {
    const HubFiles files(*hub_id(job), job, hub);
    FileTensors tensors;
    for (const auto& [name, bytes] : shards) {
      const FileBytes source(files, files.directory() + "/" + name);
      EXPECT_EQ(source.size(), static_cast<int64_t>(bytes.size()));
      read_safetensors(source, tensors);
    }
    return tensors.tensors().size();
  };
  EXPECT_EQ(read(), 3U);
  // The list, the config that is not there, three beginnings, and the rest of the long header.
  EXPECT_EQ(hub.asked.size(), 6U);
  size_t kept = 0;
  for (const auto& [path, bytes] : hub.files) kept += bytes.size();
  EXPECT_LT(kept, 210'000U);  // headers, no weights
  job.offline = true;
  EXPECT_EQ(read(), 3U);
  EXPECT_EQ(hub.asked.size(), 6U);
}

}  // namespace
}  // namespace vram
