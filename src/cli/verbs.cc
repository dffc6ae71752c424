// The verbs. One row each: how it is called, what helps to understand it, and the adapter that answers.
#include "cli/verbs.h"

#include <algorithm>

#include "api/fit.h"
#include "api/gpus.h"
#include "api/models.h"
#include "api/serve.h"
#include "api/train.h"
#include "cli/pages.h"
#include "formats/formats.h"
#include "report/fit.h"
#include "report/gpus.h"
#include "report/models.h"
#include "report/serve.h"
#include "report/train.h"

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

Reply run_fit(Request& request, const Knowledge& knowledge) {
  if (!has_model(request.job)) {
    const LargestAnswer answer = answer_largest(request.job, knowledge);
    return {request.json ? write_json(to_json(answer)) : render(answer, request.style)};
  }
  const FitAnswer answer = answer_fit(request.job, knowledge);
  return {request.json ? write_json(to_json(answer)) : render(answer, request.style),
          answer.any() ? Exit::yes : Exit::no};
}

Reply run_train(Request& request, const Knowledge& knowledge) {
  const TrainAnswer answer = answer_train(request.job, knowledge);
  return {request.json ? write_json(to_json(answer)) : render(answer, request.style),
          answer.fits() ? Exit::yes : Exit::no};
}

Reply run_serve(Request& request, const Knowledge& knowledge) {
  const ServeAnswer answer = answer_serve(request.job, knowledge);
  return {request.json ? write_json(to_json(answer)) : render(answer, request.style), answer.exit()};
}

Reply run_gpus(Request& request, const Knowledge& knowledge) {
  GpusRequest question{.words = request.words, .compare = {}};
  const auto compare = request.options.find("--compare");
  if (compare != request.options.end()) {
    for (size_t begin = 0; begin <= compare->second.size();) {
      const size_t end = std::min(compare->second.find(',', begin), compare->second.size());
      question.compare.push_back(compare->second.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  const GpusAnswer answer = gpus(question, knowledge.environment(), knowledge.devices(), knowledge.constants());
  return {request.json ? write_json(to_json(answer)) : render_gpus(answer, request.style)};
}

std::vector<VerbEntry> make_verbs() {
  return {
      {.verb = Verb::fit,
       .name = "fit",
       .summary = "cli.verb.fit",
       .usage = "[MODEL] --on MACHINE [options]",
       .takes_model = true,
       .examples = {{"vram fit meta-llama/Llama-3.1-70B --on 8xH100", "cli.example.fit"},
                    {"vram fit ./config.json --on 1xRTX4090", "cli.example.fit_file"},
                    {"vram fit --on 1xRTX4090", "cli.example.fit_largest"}},
       .options = {},
       .run = run_fit},
      {.verb = Verb::train,
       .name = "train",
       .summary = "cli.verb.train",
       .usage = "MODEL --on MACHINE [options]",
       .takes_model = true,
       .examples = {{"vram train meta-llama/Llama-3.1-8B --on 8xH100 --stack fsdp", "cli.example.train"},
                    {"vram train meta-llama/Llama-3.1-8B --on 1xRTX4090 --task qlora", "cli.example.train_qlora"},
                    {"vram train meta-llama/Llama-3.1-70B --on 8x8xH100 --tp 8 --pp 4 --zero 1 --explain",
                     "cli.example.train_3d"},
                    {"vram train 7e9 --textbook --steps", "cli.example.train_textbook"},
                    {"vram train 70B --on 1000xA100-80G --tokens 2T --mfu 45%", "cli.example.train_days"}},
       .options = {},
       .run = run_train},
      {.verb = Verb::serve,
       .name = "serve",
       .summary = "cli.verb.serve",
       .usage = "MODEL --on MACHINE [options]",
       .takes_model = true,
       .examples = {{"vram serve meta-llama/Llama-3.1-8B --on 1xH100 --context 8k", "cli.example.serve"},
                    {"vram serve meta-llama/Llama-3.1-70B --on 8xH100 --tp 8 --kv-dtype fp8", "cli.example.serve_fp8"},
                    {"vram serve meta-llama/Llama-3.1-8B --on 1xRTX4090 --weights-dtype int4 --concurrency 16",
                     "cli.example.serve_asked"}},
       .options = {},
       .run = run_serve},
      {.verb = Verb::sheet,
       .name = "sheet",
       .summary = "cli.verb.sheet",
       .usage = "MODEL --on MACHINE [--tokens N] [options]",
       .takes_model = true,
       .examples = {{"vram sheet meta-llama/Llama-3.1-70B --on 16x8xH100 --tokens 2T", "cli.example.sheet"},
                    {"vram sheet meta-llama/Llama-3.1-8B --on 8xH100 --output sheet.html", "cli.example.sheet_html"}},
       .options = page_options(),
       .run = run_sheet},
      {.verb = Verb::diff,
       .name = "diff",
       .summary = "cli.verb.diff",
       .usage = "[train|serve] A B [options of both]",
       .takes_jobs = true,
       .examples = {{"vram diff '--zero 1' '--zero 3' --model 7B --on 8xH100", "cli.example.diff"},
                    {"vram diff today.yaml tomorrow.yaml", "cli.example.diff_files"},
                    {"vram diff job.yaml 'job.yaml --recompute full'", "cli.example.diff_over"},
                    {"vram diff serve '--kv-dtype bf16' '--kv-dtype fp8' --model meta-llama/Llama-3.1-8B --on 1xH100",
                     "cli.example.diff_serve"}},
       .options = page_options(),
       .run = run_diff},
      {.verb = Verb::tiers,
       .name = "tiers",
       .summary = "cli.verb.tiers",
       .usage = "[MODEL] --on MACHINE [options]",
       .takes_model = true,
       .examples = {{"vram tiers --on 8xH100", "cli.example.tiers"},
                    {"vram tiers meta-llama/Llama-3.1-8B --on 8xH100 --offload optimizer", "cli.example.tiers_offload"},
                    {"vram tiers --checkpoint 40TB --write 1TB/s --mtbf 3h", "cli.example.tiers_checkpoint"}},
       .options = page_options(),
       .run = run_tiers},
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
      {.verb = Verb::gpus,
       .name = "gpus",
       .summary = "cli.verb.gpus",
       .usage = "[WORDS...] [options]",
       .examples = {{"vram gpus h100 sxm", "cli.example.gpus"},
                    {"vram gpus --compare A100-80G,H100", "cli.example.gpus_compare"}},
       .options = {{"--compare", "A,B,...", "cli.opt.compare"}},
       .run = run_gpus},
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
