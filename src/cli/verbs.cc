// The verbs. One row each: how it is called, what helps to understand it, and the adapter that answers.
#include "cli/verbs.h"

#include <algorithm>

#include "api/models.h"
#include "formats/formats.h"
#include "report/models.h"

namespace vram::cli {
namespace {

[[noreturn]] void unexpected(const std::string& word, std::string accepted) {
  throw InputError({.field = "unexpected word", .value = word, .accepted = std::move(accepted)});
}

Reply run_models(Request& request, const Knowledge& knowledge) {
  std::vector<std::string> words = request.words;
  const bool show = !words.empty() && words.front() == "show";
  const bool tensors = request.has("--tensors");
  if (!words.empty() && (show || words.front() == "list")) words.erase(words.begin());
  if (show || has_model(request.job)) {
    Job& job = request.job;
    if (!words.empty() && !job.model.empty()) unexpected(words.front(), "one model");
    if (!words.empty()) {
      set_field(job, *find_field("model"), words.front(), "model");
      words.erase(words.begin());
    }
    if (!words.empty()) unexpected(words.front(), "vram models show MODEL");
    const ModelAnswer answer = answer_model(job, knowledge);
    return {request.json ? write_json(to_json(answer, tensors)) : render(answer, tensors, request.style)};
  }
  if (tensors || !request.job.set.empty()) {
    throw InputError(
        {.field = tensors ? "--tensors" : "--set", .problem = "needs a model", .accepted = "vram models show MODEL"});
  }
  const ModelsAnswer answer = answer_models(words);
  return {request.json ? write_json(to_json(answer)) : render(answer, request.style)};
}

std::vector<VerbEntry> make_verbs() {
  return {
      {.verb = Verb::models,
       .name = "models",
       .summary = "cli.verb.models",
       .usage = "[WORDS...] | show MODEL [options]",
       .examples = {{"vram models show meta-llama/Llama-3.1-8B", "cli.example.models_show"},
                    {"vram models llama 70b", "cli.example.models_search"},
                    {"vram models show ./config.json --tensors", "cli.example.models_file"},
                    {"vram models show gpt2 --set n_layer=24", "cli.example.models_set"},
                    {"vram models show --layers 32 --hidden 4096 --heads 32", "cli.example.models_hand"}},
       .options = {{"--tensors", "", "cli.opt.tensors"}},
       .run = run_models},
  };
}

}  // namespace

std::span<const VerbEntry> verbs() {
  static const std::vector<VerbEntry> table = make_verbs();
  return table;
}

const VerbEntry* find_verb(std::string_view name) {
  const auto all = verbs();
  const auto found = std::find_if(all.begin(), all.end(), [&](const VerbEntry& v) { return v.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace vram::cli
