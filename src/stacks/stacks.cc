#include "stacks/stacks.h"

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/error.h"
#include "formats/formats.h"

namespace vram {

namespace embedded {
extern const File stack_files[];
extern const size_t stack_files_count;
}  // namespace embedded

namespace {

// The folders whose rules.toml is compiled in (CMakeLists.txt), in the order of help.
constexpr std::string_view kStacks[] = {"generic", "megatron", "fsdp", "deepspeed", "transformers"};

template <class Value>
Value choice(const Fields& row, std::string_view key, std::initializer_list<std::pair<std::string_view, Value>> table) {
  const std::string word = row.required_string({key});
  std::string accepted;
  for (const auto& [name, value] : table) {
    if (name == word) return value;
    accepted += (accepted.empty() ? "" : ", ") + std::string(name);
  }
  row.refuse(key, "is not known", accepted);
}

}  // namespace

const std::vector<std::string_view>& stack_names() {
  static const std::vector<std::string_view> names(std::begin(kStacks), std::end(kStacks));
  return names;
}

Rules stack_rules(std::string_view name, const Constants& constants) {
  size_t index = 0;
  while (index < std::size(kStacks) && kStacks[index] != name) ++index;
  if (index == std::size(kStacks)) {
    throw InputError({.field = "--stack",
                      .value = std::string(name),
                      .problem = "is not known",
                      .accepted = "generic, megatron, fsdp, deepspeed, transformers",
                      .near_miss = near_miss(name, stack_names())});
  }
  const std::string file = "stacks/" + std::string(name) + "/rules.toml";
  const Document document = parse_toml(embedded::stack_files[index].bytes, file);
  const Fields top(document, file);
  const Fields about = *top.object({"stack"});
  const Document* rows = top.find({"rules"});
  const Fields row(rows->array().back(), file, "rules.");

  Rules r;
  r.stack = about.required_string({"name"});
  r.source = about.required_string({"source"});
  r.version = "from " + row.required_string({"since"});
  KernelChoice& k = r.kernels;
  k.norm_fused = choice<bool>(row, "norm", {{"fused", true}, {"python", false}});
  k.swiglu_fused = choice<bool>(row, "swiglu", {{"fused", true}, {"eager", false}});
  k.gelu_fused = choice<bool>(row, "gelu", {{"fused", true}, {"python", false}});
  k.moe_grouped = choice<bool>(row, "moe", {{"grouped", true}, {"loop", false}});
  k.moe_weighted_activation = row.boolean_or({"moe_weighted_activation"}, false);
  k.softmax_fp32 = choice<bool>(row, "softmax", {{"fp32", true}, {"native", false}});
  using Loss = KernelChoice::Loss;
  k.loss = choice<Loss>(row, "loss",
                        {{"upcast", Loss::upcast},
                         {"plain", Loss::plain},
                         {"vocab_parallel", Loss::vocab_parallel},
                         {"fused", Loss::fused}});
  k.repeat_kv = row.boolean_or({"repeat_kv"}, false);
  k.logits_kept = row.boolean_or({"logits_kept"}, false);
  r.gradient_bytes = row.integer_or({"gradient_bytes"}, 2, {2, 4});
  r.gradients_from_start = row.boolean_or({"gradients_from_start"}, true);
  r.weight_is_master = row.boolean_or({"weight_is_master"}, false);
  r.gather_bytes = row.integer_or({"gather_bytes"}, 2, {1, 4});
  r.prefetch = row.integer_or({"prefetch"}, 1, {0, 8});
  r.reduce_bytes = row.integer_or({"reduce_bytes"}, 0, {0, 4});
  r.gradients_in_buckets = row.boolean_or({"gradients_in_buckets"}, false);
  r.placeholder_bytes = row.integer_or({"placeholder_bytes"}, 0, {0, 4});
  r.vocabulary_multiple = row.integer_or({"vocabulary_multiple"}, 1, {1, 1024});
  r.step_copy_bytes = row.integer_or({"step_copy_bytes"}, 0, {0, 4});
  r.default_zero = row.integer_or({"default_zero"}, 0, {0, 3});
  r.sequence_parallel = row.boolean_or({"sequence_parallel"}, false);
  r.etp_follows_tp = row.boolean_or({"etp_follows_tp"}, false);
  r.workspace_constants = row.strings({"workspaces"}).value_or(std::vector<std::string>{});
  r.expert_workspace_constants = row.strings({"expert_workspaces"}).value_or(std::vector<std::string>{});
  for (const std::string& id : row.strings({"bucket_bytes"}).value_or(std::vector<std::string>{}))
    r.buckets.push_back(constants.get(id));
  const int64_t element = row.integer_or({"bucket_element_bytes"}, 2, {1, 4});
  for (const std::string& id : row.strings({"bucket_elements"}).value_or(std::vector<std::string>{})) {
    Constant bucket = constants.get(id);
    bucket.value = checked_mul(bucket.value, element);
    bucket.low = checked_mul(bucket.low, element);
    bucket.high = checked_mul(bucket.high, element);
    r.buckets.push_back(std::move(bucket));
  }
  return r;
}

}  // namespace vram
