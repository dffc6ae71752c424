#include <gtest/gtest.h>

#include "formats/formats.h"
#include "vram/vram.h"

namespace vram {
namespace {

Document ask(const std::string& request) { return parse_json(call_json(request), "reply"); }

TEST(Call, AnswersAsTheCommandDoes) {
  const Document fits = ask(R"({"verb": "train", "job": {"params": 7e9, "on": "1x141GB"}})");
  EXPECT_EQ(fits.find("status")->integer(), 0);
  EXPECT_EQ(fits.find("answer")->find("peak_bytes")->integer(), 112'000'000'000);
  const Document no = ask(R"({"verb": "train", "job": {"params": "7B", "on": "1x80GB"}})");
  EXPECT_EQ(no.find("status")->integer(), 1);
  EXPECT_EQ(ask(R"({"verb": "gpus", "compare": ["A100", "H100"]})").find("status")->integer(), 0);
  EXPECT_EQ(ask(R"({"verb": "models", "job": {"model": "gpt2"}})").find("status")->integer(), 0);
}

TEST(Call, SaysWhatIsWrong) {
  struct Bad {
    const char* request;
    const char* expected;
  };
  for (const Bad& bad :
       {Bad{"", "empty"}, Bad{"[]", "object"}, Bad{R"({"job": {}})", "verb is missing"},
        Bad{R"({"verb": "trian"})", "Did you mean train?"}, Bad{R"({"verb": "train", "jbo": {}})", "jbo"},
        Bad{R"({"verb": "train", "job": {"params": 7e9, "tensor_paralel": 2}})", "tensor_parallel"},
        Bad{R"({"verb": "train", "job": {"model": "7B", "on": "8xH1000"}})", "H1000"}}) {
    const Document reply = ask(bad.request);
    EXPECT_EQ(reply.find("status")->integer(), 2) << bad.request;
    EXPECT_NE(reply.find("error")->string().find(bad.expected), std::string::npos) << reply.find("error")->string();
  }
}

}  // namespace
}  // namespace vram
