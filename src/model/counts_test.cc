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

}  // namespace
}  // namespace vram
