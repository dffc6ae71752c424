#include "api/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string_view>

#include "base/checked.h"
#include "base/error.h"
#include "stacks/stacks.h"

namespace vram {
namespace {

constexpr int64_t kMostCards = 65'536;  // beyond this "how many cards" is no useful answer

// A way to run a training task.
struct Setting {
  int64_t zero = 0;
  bool recompute = false;
  int64_t tp = 1, pp = 1;
};

// From the least to the most intrusive. Fine-tuning shards states over all cards; pre-training cuts the model (tensor
// parallelism inside a node, then pipeline stages) and shards the optimizer.
std::vector<Setting> settings(const Model& model, const Machine& machine, const Job& job, bool pretrain, bool offload) {
  std::vector<Setting> out;
  const bool many = machine.cards() > 1;
  std::vector<bool> recomputes;
  for (bool recompute : {false, true}) {
    if (job.recompute ? recompute == (*job.recompute == "full") : model.shape_known || !recompute)
      recomputes.push_back(recompute);
  }
  const int64_t tp_said = job.tensor_parallel.value_or(0), pp_said = job.pipeline_parallel.value_or(0);
  const int64_t high = job.zero.value_or(many ? 3 : 0);
  // Offloading whole states from every card would only multiply them on the host: they are sharded first.
  const int64_t low = job.zero.value_or(pretrain && many ? 1 : offload ? high : 0);
  for (int64_t zero : pretrain || low == high ? std::vector<int64_t>{low} : std::vector<int64_t>{low, high}) {
    for (bool recompute : recomputes)
      out.push_back({zero, recompute, std::max<int64_t>(1, tp_said), std::max<int64_t>(1, pp_said)});
  }
  const int64_t most_tp = std::min<int64_t>(8, machine.cards_per_node);
  for (int64_t pp = 1; pp <= (pretrain && pp_said == 0 ? 64 : 1); pp *= 2) {
    for (int64_t tp = pp == 1 ? 2 : 1; tp <= (tp_said == 0 && model.shape_known ? most_tp : 0); tp *= 2) {
      if (machine.cards() % (tp * pp) != 0 || (pp > 1 && tp < most_tp)) continue;
      for (bool recompute : recomputes) {
        if (pretrain || recompute) out.push_back({pretrain ? low : high, recompute, tp, std::max(pp, pp_said)});
      }
    }
  }
  return out;
}

struct Aim {
  std::string id;
  std::string task;  // Job::task
  std::vector<std::string> offload;
  std::optional<std::string> stack;
};

const std::vector<Aim>& tasks() {
  static const std::vector<Aim> table = {
      {"qlora", "qlora", {}, std::nullopt},
      {"lora", "lora", {}, std::nullopt},
      {"full", "full", {}, std::nullopt},
      {"full_offload", "full", {"optimizer"}, std::nullopt},
      {"pretrain", "pretrain", {}, std::string("megatron")},
  };
  return table;
}

Job job_of(const Job& base, const Aim& task, const Setting& s) {
  Job job = base;
  job.task = task.task;
  if (!job.stack && task.stack) job.stack = task.stack;
  if (task.task == "lora" || task.task == "qlora") {
    if (!job.lora_dtype) job.lora_dtype = "bf16";
  } else {
    job.lora_rank.reset();
    job.lora_targets.clear();
    job.lora_dtype.reset();
  }
  if (job.offload.empty()) job.offload = task.offload;
  if (!job.sharding) job.zero = s.zero;
  if (s.recompute) job.recompute = "full";
  if (s.tp > 1) job.tensor_parallel = s.tp;
  if (s.pp > 1) job.pipeline_parallel = s.pp;
  return job;
}

struct Tried {
  Job job;
  Setting setting;
  TrainPeak peak;

  Bytes host_per_node(const Machine& machine) const { return checked_mul(peak.host, machine.cards_per_node); }
  bool fits(const Machine& machine) const {
    return peak.device <= machine.device.usable_bytes() &&
           (!machine.host_bytes_per_node || host_per_node(machine) <= *machine.host_bytes_per_node);
  }
};

// The least intrusive setting that fits, else the one that needs least.
std::optional<Tried> try_task(const Model& model, const Machine& machine, const Job& base, const Aim& task,
                              const Rules& rules, const Constants& constants) {
  std::optional<Tried> best;
  for (const Setting& s : settings(model, machine, base, task.task == "pretrain", !task.offload.empty())) {
    Tried t{job_of(base, task, s), s, {}};
    try {
      check_job(t.job);
      t.peak = train_peak(model, &machine, t.job, rules, constants);
    } catch (const InputError&) {
      continue;  // heads or layers that this setting does not divide
    } catch (const OverflowError&) {
      continue;  // so large that no machine holds it
    }
    if (t.fits(machine)) return t;
    if (!best || t.peak.device < best->peak.device) best = t;
  }
  return best;
}

Machine with_cards(const Machine& machine, int64_t cards) {
  Machine m = machine;
  const int64_t node = std::max<int64_t>(machine.cards_per_node, 8);
  if (cards <= node) {
    m.nodes = 1;
    m.cards_per_node = cards;
  } else {
    m.nodes = cards / node;
    m.cards_per_node = node;
  }
  m.text = fmt::format("{} cards", cards);
  return m;
}

struct Fewest {
  int64_t cards = 0;
  Tried tried;  // the setting that fits on them
};

// Counts of cards one would buy: 1, 2, 4, 8, then whole nodes. The need falls with the count, so halving finds the
// least.
std::optional<Fewest> fewest_cards(const Model& model, const Machine& machine, const Job& base, const Aim& task,
                                   const Rules& rules, const Constants& constants) {
  Job free = base;  // the parallel sizes were said for this machine, not for another
  free.data_parallel.reset();
  free.hybrid_shard.reset();
  free.global_batch.reset();
  std::optional<Fewest> best;
  const auto fits = [&](int64_t cards) {
    const Machine m = with_cards(machine, cards);
    const auto t = try_task(model, m, free, task, rules, constants);
    if (!t || !t->fits(m)) return false;
    if (!best || cards < best->cards) best = Fewest{cards, *t};
    return true;
  };
  const int64_t node = std::max<int64_t>(machine.cards_per_node, 8);
  for (int64_t cards = 1; cards < node; cards *= 2) {
    if (fits(cards)) return best;
  }
  int64_t high = 1;
  while (high * node <= kMostCards && !fits(high * node)) high *= 2;
  if (high * node > kMostCards) return std::nullopt;
  int64_t low = high / 2;  // does not fit (0: nothing)
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (fits(middle * node) ? high : low) = middle;
  }
  return best;
}

// The setting in words, one clause each.
std::vector<Note> setting_words(const Tried& tried) {
  const Job& job = tried.job;
  std::vector<Note> out;
  if (job.tensor_parallel.value_or(1) > 1) out.push_back({"fit.tp", {{"n", std::to_string(*job.tensor_parallel)}}});
  if (job.pipeline_parallel.value_or(1) > 1) out.push_back({"fit.pp", {{"n", std::to_string(*job.pipeline_parallel)}}});
  if (job.zero.value_or(0) > 0) out.push_back({"fit.zero", {{"n", std::to_string(*job.zero)}}});
  if (job.task == "lora" || job.task == "qlora") {
    out.push_back({"fit.rank", {{"n", std::to_string(job.lora_rank.value_or(16))}}});
  }
  if (tried.setting.recompute) out.push_back({"fit.recompute", {}});
  return out;
}

// A word that a shell passes on as it is.
std::string shell(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("-_./:=,@%+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// One option of a command.
std::string option_words(const Field& field, const Job& job) {
  const Document d = write_job(job);
  const Document* value = d.find(field.name);
  if (!value) return {};
  if (field.is_flag())
    return value->to_text() == "true" ? " " + option_name(field.name) : " " + option_name(field.name) + "=false";
  if (!value->is_array()) {
    return " " + option_name(field.name) + " " + shell(value->to_text() + (field.unit == Unit::bandwidth ? "B/s" : ""));
  }
  std::string list;
  for (const Document& word : value->array()) list += (list.empty() ? "" : ",") + word.to_text();
  return " " + option_name(field.name) + " " + shell(list);
}

// Every option of `verb` that the job sets besides its model and cards: the command then asks for this very job.
std::string options_of(const Job& job, Verb verb) {
  std::string out;
  for (const Field& f : fields()) {
    if (f.group != "model" && f.name != "on" && f.of(verb) && f.is_set(job)) out += option_words(f, job);
  }
  return out;
}

std::string model_words(const Job& job) {
  std::string out = job.model.empty() ? "" : " " + shell(job.model);
  for (const Field& f : fields()) {
    if (f.group == "model" && f.name != "model" && f.name != "set" && f.is_set(job)) out += option_words(f, job);
  }
  for (const std::string& change : job.set) out += " --set " + shell(change);
  return out;
}

FitRow train_row(const Model& model, const Machine& machine, const Job& base, const Aim& task,
                 const Constants& constants) {
  FitRow row;
  row.id = task.id;
  const Rules rules = stack_rules(base.stack ? *base.stack : task.stack.value_or("generic"), constants);
  const Bytes usable = machine.device.usable_bytes();
  const auto tried = try_task(model, machine, base, task, rules, constants);
  if (!tried) {
    row.possible = false;
    row.how.push_back({model.shape_known ? "fit.no_setting" : "fit.no_shapes", {}});
    return row;
  }
  row.job = tried->job;
  row.needed = tried->peak.device;
  row.room = usable - row.needed;
  row.host_per_node = tried->host_per_node(machine);
  row.host_lacks = machine.host_bytes_per_node && row.host_per_node > *machine.host_bytes_per_node;
  row.fits = tried->fits(machine);
  if (!row.fits) {
    // What makes it fit is more use than the setting that came nearest here.
    const auto fewest = fewest_cards(model, machine, base, task, rules, constants);
    if (fewest) {
      row.cards_needed = fewest->cards;
      row.how = setting_words(fewest->tried);
    }
  } else {
    row.how = setting_words(*tried);
  }
  if (row.host_per_node > 0) row.how.push_back({"fit.host", {{"bytes", format_gib(row.host_per_node)}}});
  Job shown = tried->job;
  if (shown.zero == rules.default_zero) shown.zero.reset();  // what the stack does anyway
  row.command =
      fmt::format("vram train{} --on {}{}", model_words(base), shell(base.on), options_of(shown, Verb::train));
  return row;
}

// "8k" for 8,192: whole multiples of 1,024 as the options take them.
std::string short_tokens(int64_t tokens) {
  return tokens >= 1024 && tokens % 1024 == 0 ? with_commas(tokens / 1024) + "k" : with_commas(tokens);
}

FitRow serve_row(const Model& model, const Machine& machine, const Job& base, const std::string& dtype,
                 const Constants& constants) {
  FitRow row;
  row.id = "serve_" + dtype;
  Job job = base;
  if (!job.weights_dtype) job.weights_dtype = dtype;
  if (!job.context) job.context = std::min<int64_t>(8192, model.max_positions > 0 ? model.max_positions : 8192);
  row.context = *job.context;
  row.job = job;
  row.command = fmt::format("vram serve{} --on {}{}", model_words(base), shell(base.on), options_of(job, Verb::serve));
  try {
    const ServeBrief a = serve_brief(model, machine, job, constants);
    row.fits = a.fits;
    row.needed = ceil_div(a.needed_bytes, a.pooled);
    row.room = a.room_bytes / a.pooled;
    row.concurrency = a.largest_concurrency;
    row.longest_context = a.longest_context;
    row.cards_used = a.parallel.replica();
    if (a.parallel.tensor > 1) row.how.push_back({"fit.tp", {{"n", std::to_string(a.parallel.tensor)}}});
    if (a.parallel.pipeline > 1) row.how.push_back({"fit.pp", {{"n", std::to_string(a.parallel.pipeline)}}});
    if (a.parallel.data > 1) row.how.push_back({"fit.replicas", {{"n", with_commas(a.parallel.data)}}});
    if (a.fits && a.concurrency_known && !a.concurrency_unlimited) {
      row.how.push_back(
          {"fit.k", {{"k", with_commas(a.largest_concurrency)}, {"context", short_tokens(*job.context)}}});
      row.how.push_back({"fit.longest", {{"tokens", short_tokens(a.longest_context)}}});
      if (!job.concurrency && a.parallel.replica() > 1 && !job.tensor_parallel && !job.pipeline_parallel) {
        Job one = job;
        one.concurrency = 1;
        row.cards_enough = serve_brief(model, machine, one, constants).parallel.replica();
        if (row.cards_enough < a.parallel.replica()) {
          row.how.push_back(
              {row.cards_enough == 1 ? "fit.one_enough" : "fit.enough", {{"n", with_commas(row.cards_enough)}}});
        }
      }
    }
    if (!a.fits) {
      for (int64_t cards = machine.cards() * 2; cards <= 1024; cards *= 2) {
        Job other = job;
        other.tensor_parallel.reset();
        other.pipeline_parallel.reset();
        other.data_parallel.reset();
        try {
          if (serve_brief(model, with_cards(machine, cards), other, constants).fits) {
            row.cards_needed = cards;
            break;
          }
        } catch (const InputError&) {
        }
      }
    }
  } catch (const InputError& e) {
    row.possible = false;
    row.how.push_back({"fit.refused", {{"why", e.what()}}});
  } catch (const OverflowError& e) {
    row.possible = false;
    row.how.push_back({"fit.refused", {{"why", e.what()}}});
  }
  return row;
}

constexpr std::string_view kServeDtypes[] = {"bf16", "fp8", "int4"};

}  // namespace

FitRow fit_row(const Model& model, const Machine& machine, const Job& base, std::string_view id,
               const Constants& constants) {
  constexpr std::string_view kServe = "serve_";
  if (id.substr(0, kServe.size()) == kServe) {
    return serve_row(model, machine, base, std::string(id.substr(kServe.size())), constants);
  }
  for (const Aim& task : tasks()) {
    if (task.id == id) return train_row(model, machine, base, task, constants);
  }
  throw std::logic_error("no row " + std::string(id));
}

bool FitAnswer::any() const {
  return std::any_of(rows.begin(), rows.end(), [](const FitRow& r) { return r.fits; });
}

std::vector<std::string> FitAnswer::assumed(Lang lang) const {
  std::vector<std::string> out = model.assumed(lang);
  if (!model.shape_known) out.push_back(std::string(text(lang, "train.assume.no_shapes")));
  const auto& more = machine.assumed(lang);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

FitAnswer answer_fit(const Job& job, const Knowledge& knowledge) {
  FitAnswer a;
  a.model = resolve_model(job, knowledge.environment());
  a.machine = resolve_machine(job, knowledge);
  a.usable = a.machine.device.usable_bytes();
  // A GPT by hand has as many positions as its job needs: training does not need serving's, nor serving training's.
  const auto without = [&](auto field) {
    if (!job.block || *job.block != "gpt" || !(job.*field)) return a.model;
    Job other = job;
    (other.*field).reset();
    return resolve_model(other, knowledge.environment());
  };
  const Model trained = without(&Job::context), served = without(&Job::sequence);
  a.sequence = job.sequence.value_or(4096);
  a.micro_batch = job.micro_batch.value_or(1);
  if (!job.sequence && trained.learned_positions && trained.max_positions > 0)
    a.sequence = std::min(a.sequence, trained.max_positions);
  Job base = job;
  base.sequence = a.sequence;
  const Constants& constants = knowledge.constants();
  for (std::string_view dtype : kServeDtypes)
    a.rows.push_back(serve_row(served, a.machine, base, std::string(dtype), constants));
  for (const Aim& task : tasks()) a.rows.push_back(train_row(trained, a.machine, base, task, constants));
  // What moves the account of full fine-tuning, in the very setting that its row shows.
  const Rules rules = stack_rules(base.stack.value_or("generic"), constants);
  if (const auto shown = try_task(trained, a.machine, base, tasks()[2], rules, constants)) {
    Job full = shown->job;
    if (!job.sequence && !trained.learned_positions) full.sequence.reset();
    a.movers = answer_train(trained, a.machine, full, knowledge).movers;
  }
  return a;
}

std::optional<Job> settled(const Model& model, const Machine& machine, const Job& job, const Constants& constants) {
  // The job's own task, stack and offload: nothing but the layout is chosen.
  const Aim aim{"", job.task.value_or("full"), job.offload, std::nullopt};
  Job base = job;
  if (!job.sequence && model.learned_positions && model.max_positions > 0)
    base.sequence = std::min<int64_t>(4096, model.max_positions);
  const Rules rules = stack_rules(job.stack.value_or("generic"), constants);
  const auto tried = try_task(model, machine, base, aim, rules, constants);
  if (!tried) return std::nullopt;
  Job out = tried->job;
  out.task = job.task;
  if (tried->setting.zero == 0 && !job.zero) out.zero.reset();
  return out;
}

LargestAnswer answer_largest(const Job& job, const Knowledge& knowledge) {
  LargestAnswer a;
  a.machine = resolve_machine(job, knowledge);
  a.usable = a.machine.device.usable_bytes();
  const Constants& constants = knowledge.constants();
  std::vector<Model> models;
  for (const CatalogueEntry& entry : Catalogue::builtin().entries())
    models.push_back(Catalogue::builtin().model(entry));
  a.tried = static_cast<int64_t>(models.size());
  std::stable_sort(models.begin(), models.end(),
                   [](const Model& x, const Model& y) { return x.counts.parameters > y.counts.parameters; });
  constexpr size_t kShown = 3;
  const auto fill = [&](std::string id, auto fits) {
    LargestRow row;
    row.id = std::move(id);
    int64_t last = 0;
    for (const Model& m : models) {
      if (row.models.size() == kShown) break;
      if (m.counts.parameters == last) continue;  // the same model under another name
      Bytes needed = 0;
      if (!fits(m, needed)) continue;
      last = m.counts.parameters;
      row.models.push_back({m.name, m.counts.parameters, needed});
    }
    a.rows.push_back(std::move(row));
  };
  for (std::string_view dtype : kServeDtypes) {
    fill("serve_" + std::string(dtype), [&](const Model& m, Bytes& needed) {
      Job serve_job = job;
      serve_job.weights_dtype = std::string(dtype);
      if (!serve_job.context) serve_job.context = std::min<int64_t>(8192, m.max_positions > 0 ? m.max_positions : 8192);
      try {
        const ServeBrief answer = serve_brief(m, a.machine, serve_job, constants);
        needed = ceil_div(answer.needed_bytes, answer.pooled);
        return answer.fits;
      } catch (const InputError&) {
        return false;
      } catch (const OverflowError&) {
        return false;
      }
    });
  }
  for (const Aim& task : tasks()) {
    const Rules rules = stack_rules(job.stack ? *job.stack : task.stack.value_or("generic"), constants);
    fill(task.id, [&](const Model& m, Bytes& needed) {
      // States alone already exceed the machine: no need to look closer.
      if (!job.usable && task.task != "qlora" && m.counts.parameters / a.machine.cards() * 2 > a.usable * 2)
        return false;
      Job base = job;
      base.sequence = job.sequence.value_or(4096);
      if (!job.sequence && m.learned_positions && m.max_positions > 0)
        base.sequence = std::min<int64_t>(4096, m.max_positions);
      try {
        const auto tried = try_task(m, a.machine, base, task, rules, constants);
        if (!tried) return false;
        needed = tried->peak.device;
        return tried->fits(a.machine);
      } catch (const InputError&) {
        return false;
      } catch (const OverflowError&) {
        return false;
      }
    });
  }
  return a;
}

Document to_json(const FitAnswer& a) {
  Document::Array rows;
  for (const FitRow& r : a.rows) {
    Document row{Document::Object{{"id", r.id}, {"possible", r.possible}, {"fits", r.fits}}};
    if (r.possible) {
      row.set("needed_bytes_per_card", r.needed);
      row.set("room_bytes", r.room);
    }
    if (r.host_per_node > 0) row.set("host_bytes_per_node", r.host_per_node);
    if (r.host_lacks) row.set("host_memory_lacks", true);
    if (!r.possible) row.set("fits", Document());
    if (r.concurrency > 0) row.set("largest_concurrency", r.concurrency);
    if (r.context > 0) row.set("context_tokens", r.context);
    if (r.longest_context > 0) row.set("longest_context_tokens", r.longest_context);
    if (r.cards_used > 0) row.set("cards_per_replica", r.cards_used);
    if (r.cards_enough > 0) row.set("cards_enough_for_one_request", r.cards_enough);
    if (r.cards_needed) row.set("cards_needed", *r.cards_needed);
    Document::Array how;
    for (const Note& n : r.how) how.emplace_back(say(Lang::en, n));
    row.set("how", std::move(how));
    row.set("command", r.command);
    rows.push_back(std::move(row));
  }
  Document::Array movers, assumptions;
  for (const Effect& e : a.movers) {
    movers.emplace_back(Document::Object{{"field", e.field},
                                         {"alternative", e.alternative},
                                         {"delta_bytes", e.delta},
                                         {"text", effect_text(Lang::en, e)}});
  }
  for (const std::string& t : a.assumed(Lang::en)) assumptions.emplace_back(t);
  return Document::Object{
      {"model",
       Document::Object{
           {"name", a.model.name}, {"parameters", a.model.counts.parameters}, {"layers", a.model.layers()}}},
      {"machine",
       Document::Object{{"text", a.machine.text}, {"device", a.machine.device.name}, {"cards", a.machine.cards()}}},
      {"usable_bytes_per_card", a.usable},
      {"sequence_tokens", a.sequence},
      {"micro_batch", a.micro_batch},
      {"rows", std::move(rows)},
      {"moves_most", std::move(movers)},
      {"assumptions", std::move(assumptions)}};
}

Document to_json(const LargestAnswer& a) {
  Document::Array rows;
  for (const LargestRow& r : a.rows) {
    Document::Array models;
    for (const auto& e : r.models) {
      models.emplace_back(
          Document::Object{{"model", e.model}, {"parameters", e.parameters}, {"needed_bytes_per_card", e.needed}});
    }
    rows.emplace_back(Document::Object{{"id", r.id}, {"models", std::move(models)}});
  }
  return Document::Object{
      {"machine",
       Document::Object{{"text", a.machine.text}, {"device", a.machine.device.name}, {"cards", a.machine.cards()}}},
      {"usable_bytes_per_card", a.usable},
      {"models_tried", a.tried},
      {"rows", std::move(rows)}};
}

}  // namespace vram
