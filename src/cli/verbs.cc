// The verbs. One row each: how it is called, what helps to understand it, and the adapter that answers.
#include "cli/verbs.h"

#include <algorithm>
#include <cctype>

#include "api/check.h"
#include "api/fit.h"
#include "api/gpus.h"
#include "api/models.h"
#include "api/serve.h"
#include "api/train.h"
#include "cli/completions.h"
#include "cli/man.h"
#include "cli/pages.h"
#include "formats/formats.h"
#include "report/check.h"
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

Reply run_check(Request& request, const Knowledge& knowledge) {
  if (request.has("--list")) {
    if (!request.words.empty()) unexpected(request.words.front(), "--list alone");
    const ClaimBook& book = ClaimBook::builtin();
    return {request.json ? write_json(to_json(book)) : render(book, request.style)};
  }
  // A claim may come without quotes.
  std::string claim;
  for (const std::string& word : request.words) claim += (claim.empty() ? "" : " ") + word;
  const CheckAnswer answer = answer_check(claim, knowledge);
  return {request.json ? write_json(to_json(answer)) : render(answer, request.style), answer.exit()};
}

Reply run_man(Request& request, const Knowledge&) {
  if (!request.words.empty()) unexpected(request.words.front(), "vram man [--lang en|zh]");
  const std::string page = manual(request.style);
  return {request.json ? write_json(Document::Object{{"roff", page}}) : page};
}

Reply run_completions(Request& request, const Knowledge& knowledge) {
  const std::vector<std::string>& words = request.words;
  const std::string accepted = "bash, zsh or fish";
  if (words.empty()) throw InputError({.field = "the shell", .problem = "is missing", .accepted = accepted});
  if (words.size() > 1) unexpected(words[1], "one shell");
  if (std::find(shells().begin(), shells().end(), words.front()) == shells().end()) {
    throw InputError({.field = "shell",
                      .value = words.front(),
                      .problem = "is not known",
                      .accepted = accepted,
                      .near_miss = near_miss(words.front(), shells())});
  }
  std::vector<std::string> models, devices;
  for (const ModelSummary& m : answer_models({}).models) models.push_back(m.id);
  const auto offer = [&](std::string name) {
    // A name is found without its spaces, too. Long ones are drivers' names, which nobody types.
    name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
    const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    });
    if (plain && name.size() > 1 && name.size() <= 20 && knowledge.devices().find(name)) devices.push_back(name);
  };
  for (std::string_view name : knowledge.devices().names()) {
    offer(std::string(name));
    // "GeForce RTX 4090" is typed RTX4090.
    offer(std::string(name.substr(name.find(' ') == std::string_view::npos ? 0 : name.find(' ') + 1)));
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  const std::string script = completions(words.front(), request.style.lang, models, devices);
  return {request.json ? write_json(Document::Object{{"shell", words.front()}, {"script", script}}) : script};
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
      {.verb = Verb::check,
       .name = "check",
       .summary = "cli.verb.check",
       .usage = "\"CLAIM\" | --list [options]",
       .examples = {{"vram check \"70B trains on 4x80GB\"", "cli.example.check"},
                    {"vram check \"8xA100-80G serves Llama-3.1-70B at 32k for 64 users\"", "cli.example.check_serve"},
                    {"vram check \"4 张 80GB 能训练 175B\"", "cli.example.check_zh"},
                    {"vram check \"The KV cache grows with the square of the context\"", "cli.example.check_truth"}},
       .options = {{"--list", "", "cli.opt.list"}},
       .run = run_check},
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
      {.verb = Verb{},
       .name = "man",
       .summary = "cli.verb.man",
       .usage = "[--lang en|zh]",
       .setup = true,
       .examples = {{"vram man > vram.1", "cli.example.man"}},
       .options = {},
       .run = run_man},
      {.verb = Verb{},
       .name = "completions",
       .summary = "cli.verb.completions",
       .usage = "bash|zsh|fish",
       .setup = true,
       .examples = {{"vram completions bash > ~/.local/share/bash-completion/completions/vram",
                     "cli.example.completions_bash"},
                    {"vram completions zsh > ~/.zfunc/_vram", "cli.example.completions_zsh"},
                    {"vram completions fish > ~/.config/fish/completions/vram.fish", "cli.example.completions_fish"}},
       .options = {},
       .run = run_completions},
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
