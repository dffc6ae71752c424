#include "api/sheet.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/command.h"
#include "api/fit.h"

namespace vram {
namespace {

// What the settled job says beyond the job, as options.
std::vector<std::string> options_added(const Job& job, const Job& settled) {
  std::vector<std::string> out;
  for (const Field& f : fields()) {
    const std::string now = field_text(f, settled);
    if (f.of(Verb::train) && !now.empty() && now != field_text(f, job)) out.push_back(option_name(f.name) + " " + now);
  }
  return out;
}

// Degrees of parallelism mean other things to a service; those of the job are training's.
Job service_of(const Job& job) {
  Job out = job;
  out.tensor_parallel.reset();
  out.pipeline_parallel.reset();
  out.expert_parallel.reset();
  out.data_parallel.reset();
  return out;
}

std::optional<Cost> cost_of(const TrainAnswer& a, const Job& job) {
  if (!a.time || !a.machine) return std::nullopt;
  const Device& d = a.machine->device;
  Cost cost;
  if (job.price) {
    cost.price_low = cost.price_high = *job.price;
    cost.given = true;
  } else if (d.rent_low && d.rent_high) {
    cost.price_low = *d.rent_low;
    cost.price_high = *d.rent_high;
  } else {
    return std::nullopt;
  }
  cost.low = a.time->card_hours * cost.price_low;
  cost.high = a.time->card_hours * cost.price_high;
  return cost;
}

}  // namespace

std::vector<std::string> SheetAnswer::assumed(Lang lang) const {
  std::vector<std::string> out;
  const auto add = [&](std::string text) {
    if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(std::move(text));
  };
  if (!chosen.empty()) {
    std::string options;
    for (const std::string& o : chosen) options += (options.empty() ? "" : " ") + o;
    add(say(lang, "sheet.assume.layout", fmt::arg("options", options)));
  }
  if (tokens_assumed) add(say(lang, "sheet.assume.tokens", fmt::arg("tokens", format_count(*training.tokens))));
  if (cost && !cost->given) {
    add(say(lang, "sheet.assume.price", fmt::arg("low", format_number(cost->price_low, 2)),
            fmt::arg("high", format_number(cost->price_high, 2))));
  }
  for (const Note& n : training.assumptions) add(say(lang, n));
  for (const Remark& r : serving.plan.remarks) add(remark_text(lang, r));
  for (const std::string& t : training.model.assumed(lang)) add(t);
  for (const std::string& t : serving.machine.assumed(lang)) add(t);
  return out;
}

SheetAnswer answer_sheet(const Job& job, const Knowledge& knowledge) {
  SheetAnswer a;
  const Model model = resolve_model(job, knowledge.environment());
  const Machine machine = resolve_machine(job, knowledge);
  // Where no layout is valid, `train` says why.
  Job training = settled(model, machine, job, knowledge.constants()).value_or(job);
  a.chosen = options_added(job, training);
  if (!job.tokens) {
    const Constant& row = knowledge.constants().get("training_tokens_per_parameter");
    training.tokens = static_cast<double>(model.counts.parameters) * static_cast<double>(row.value);
    a.tokens_assumed = true;
  }
  a.training = answer_train(model, machine, training, knowledge);
  const Job service = service_of(job);
  a.serving = serve(model, machine, service, knowledge.constants());
  a.cost = cost_of(a.training, job);
  a.train_command = command_line(Verb::train, "train", training) + " --steps";
  a.serve_command = command_line(Verb::serve, "serve", service) + " --steps";
  return a;
}

Document to_json(const SheetAnswer& a) {
  Document out{Document::Object{{"fits", a.fits()},
                                {"training_fits", a.training.fits()},
                                {"serving_fits", a.serving.fits},
                                {"tokens", *a.training.tokens},
                                {"tokens_assumed", a.tokens_assumed}}};
  Document::Array chosen, assumptions;
  for (const std::string& o : a.chosen) chosen.emplace_back(o);
  out.set("layout_chosen", std::move(chosen));
  if (a.cost) {
    out.set("cost", Document::Object{{"usd_low", a.cost->low},
                                     {"usd_high", a.cost->high},
                                     {"usd_per_card_hour_low", a.cost->price_low},
                                     {"usd_per_card_hour_high", a.cost->price_high},
                                     {"price_given", a.cost->given}});
  }
  out.set("training", to_json(a.training));
  out.set("serving", to_json(a.serving));
  for (const std::string& t : a.assumed(Lang::en)) assumptions.emplace_back(t);
  out.set("assumptions", std::move(assumptions));
  out.set("train_command", a.train_command);
  out.set("serve_command", a.serve_command);
  return out;
}

}  // namespace vram
