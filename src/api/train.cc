#include "api/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "stacks/stacks.h"
#include "training/step.h"

namespace vram {
namespace {

Rules rules_for(const Job& job, const Knowledge& knowledge) {
  return stack_rules(job.stack.value_or("generic"), knowledge.constants());
}

// The schedule of the plan before: jobs that differ in one field mostly run the same one.
struct LastShape {
  std::optional<std::array<int64_t, 4>> of;
  ScheduleShape shape;

  const ScheduleShape& get(const Plan& plan) {
    const std::array<int64_t, 4> wanted{static_cast<int64_t>(plan.schedule), plan.pp, plan.vpp, plan.micro_batches};
    if (of != wanted) {
      shape = schedule_shape(plan.schedule, plan.pp, plan.vpp, plan.micro_batches);
      of = wanted;
    }
    return shape;
  }
};

std::vector<Bytes> peaks_of(const Model& model, const Plan& plan, const Overheads& over, LastShape& last) {
  std::vector<Bytes> peaks(static_cast<size_t>(plan.pp));
  compose(step_tables(model, plan, over), last.get(plan), peaks.data());
  return peaks;
}

StateBytes sum_states(const Model& model, const Plan& plan, int64_t rank, Bytes* host) {
  StateBytes out;
  for (const State<Fast>& s : model_states<Fast>(model, plan, rank_counts(model, plan, rank))) {
    const Bytes b = s.storage.bytes.value();
    if (host && s.storage.tier != Tier::device) *host = checked_add(*host, b);
    switch (s.storage.category) {
      case Category::gradients:
        out.gradients = checked_add(out.gradients, b);
        break;
      case Category::optimizer:
        out.optimizer = checked_add(out.optimizer, b);
        break;
      case Category::adapters:
        out.adapters = checked_add(out.adapters, b);
        break;
      default:
        out.weights = checked_add(out.weights, b);
        break;
    }
  }
  return out;
}

// A whole replica: nothing is sharded or offloaded.
StateBytes whole_states(const Model& model, Plan plan) {
  plan.tp = plan.cp = plan.pp = plan.vpp = plan.ep = plan.etp = plan.dp = plan.shard_group = 1;
  plan.zero = 0;
  return sum_states(model, plan, 0, nullptr);
}

// QLoRA quantizes the base to NF4 unless the checkpoint is quantized already.
Model as_trained(const Model& model, const Plan& plan) {
  if (plan.task != Task::qlora || model.quantization) return model;
  return with_planned_quantization(model, "nf4");
}

// Host memory of a card of the rank that keeps most there.
struct HostNeed {
  Bytes bytes = 0;
  int64_t rank = 0;
  Bytes all = 0;  // over all cards
};
HostNeed host_need(const Model& model, const Plan& plan) {
  HostNeed out;
  if (!plan.offload_optimizer && !plan.offload_gradients && !plan.offload_parameters) return out;
  for (int64_t r = 0; r < plan.pp; ++r) {
    Bytes host = 0;
    sum_states(model, plan, r, &host);
    out.all = checked_add(out.all, checked_mul(host, plan.cards() / plan.pp));
    if (host > out.bytes) out.bytes = host, out.rank = r;
  }
  return out;
}

TrainPeak peak_of(const Model& model, const Machine* machine, const Job& job, const Rules& rules,
                  const Constants& constants, LastShape& last) {
  const Plan plan = resolve_plan(model, machine, job, rules);
  const Overheads over = overheads(plan, machine ? &machine->device : nullptr, constants);
  const bool quantize = plan.task == Task::qlora && !model.quantization;
  const Model quantized = quantize ? as_trained(model, plan) : Model{};
  const Model& trained = quantize ? quantized : model;
  const auto peaks = peaks_of(trained, plan, over, last);
  return {*std::max_element(peaks.begin(), peaks.end()), host_need(trained, plan).bytes};
}

// The peak of the same job with one field said otherwise; nothing where that is not a valid job.
std::optional<Bytes> peak_with(const Model& model, const Machine* machine, const Job& job, const Knowledge& knowledge,
                               LastShape& last) {
  try {
    return peak_of(model, machine, job, rules_for(job, knowledge), knowledge.constants(), last).device;
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const OverflowError&) {
    return std::nullopt;
  }
}

void find_movers(TrainAnswer& a, const Job& job, const Knowledge& knowledge, const Overheads& over, LastShape& last) {
  const Machine* machine = a.machine ? &*a.machine : nullptr;
  const Bytes now = a.device.bytes;
  const auto add = [&](std::string field, std::string alternative, Bytes delta, std::string current) {
    if (delta == 0) return;
    Effect e;
    e.field = field;
    e.alternative = alternative;
    e.delta = delta;
    e.current = std::move(current);
    a.movers.push_back(std::move(e));
  };
  const auto try_field = [&](bool said, std::string field, std::string current, std::string alternative, auto change) {
    if (said) return;
    Job other = job;
    change(other);
    if (const auto peak = peak_with(a.model, machine, other, knowledge, last))
      add(std::move(field), std::move(alternative), *peak - now, std::move(current));
  };
  const Plan& p = a.plan;
  const bool walks = a.model.shape_known;
  if (walks) {
    try_field(job.recompute.has_value(), "recompute", "none", "full", [](Job& j) { j.recompute = "full"; });
    try_field(job.attention.has_value(), "attention", p.flash ? "flash" : "eager", p.flash ? "eager" : "flash",
              [&](Job& j) { j.attention = p.flash ? "eager" : "flash"; });
    try_field(job.sequence.has_value(), "sequence", with_commas(p.sequence), with_commas(2 * p.sequence),
              [&](Job& j) { j.sequence = 2 * p.sequence; });
    try_field(job.micro_batch.has_value(), "micro_batch", "1", "2", [](Job& j) { j.micro_batch = 2; });
    if (!p.textbook) {
      const std::string other = p.rules.stack == "transformers" ? "megatron" : "transformers";
      try_field(job.stack.has_value(), "stack", p.rules.stack, other, [&](Job& j) { j.stack = other; });
    }
  }
  if (p.dp * p.cp > 1) {
    const std::string stage = p.zero == 3 ? "1" : "3";
    try_field(job.zero || job.sharding, "zero", std::to_string(p.zero), stage,
              [&](Job& j) { j.zero = p.zero == 3 ? 1 : 3; });
  }
  try_field(job.precision.has_value(), "precision", std::string(precision_name(p.precision)), "bf16_pure",
            [](Job& j) { j.precision = "bf16_pure"; });
  try_field(job.optimizer.has_value(), "optimizer", "adamw", "adamw8bit", [](Job& j) { j.optimizer = "adamw8bit"; });
  if (!p.frozen() && p.precision != Precision::fp32) {
    const std::string g = p.gradient_bytes == 4 ? "bf16" : "fp32";
    try_field(job.gradient_dtype.has_value(), "gradient_dtype", p.gradient_bytes == 4 ? "fp32" : "bf16", g,
              [&](Job& j) { j.gradient_dtype = g; });
  }
  for (const auto* rows : {&over.context, &over.workspace, &over.communication}) {
    for (const Constant& row : *rows) {
      const Bytes up = row.high - row.value, down = row.value - row.low;
      if (up >= down)
        add(row.id, format_gib(row.high), up, format_gib(row.value));
      else
        add(row.id, format_gib(row.low), -down, format_gib(row.value));
    }
  }
  std::stable_sort(a.movers.begin(), a.movers.end(),
                   [](const Effect& x, const Effect& y) { return std::abs(x.delta) > std::abs(y.delta); });
}

// The level over the step, in spans of equally many events. Nothing for steps too long to unroll for a picture.
std::vector<double> timeline_of(const Program<Traced>& program) {
  constexpr int64_t kMostEvents = 400'000;
  constexpr size_t kSpans = 64;
  std::vector<Bytes> sizes;
  for (const auto& s : program.storages()) sizes.push_back(s.tier == Tier::device ? s.bytes.value() : 0);
  std::vector<Bytes> levels;
  Bytes level = 0;
  const bool whole = for_each_event<Traced>(
      program,
      [&](const Event& e) {
        level += e.allocate ? sizes[e.storage] : -sizes[e.storage];
        levels.push_back(level);
      },
      kMostEvents);
  if (!whole || levels.empty()) return {};
  std::vector<double> out(std::min(kSpans, levels.size()), 0.0);
  for (size_t i = 0; i < levels.size(); ++i) {
    double& span = out[i * out.size() / levels.size()];
    span = std::max(span, static_cast<double>(levels[i]));
  }
  return out;
}

// The textbook's figures for the same plan, for comparison line by line.
struct Textbook {
  Bytes states = 0;
  Bytes activations = 0;
};

Textbook textbook_of(const Model& model, const Plan& plan) {
  Plan t = plan;
  t.textbook = true;
  Textbook out;
  const Ledger ledger = make_ledger(step_program<Fast>(model, t, {}, 0), Tier::device);
  out.activations = ledger.of(Category::activations);
  // 16 bytes a parameter, divided as Rajbhandari et al. do it.
  const Bytes psi = ceil_div(model.counts.parameters, plan.tp * plan.pp);
  const int64_t n = plan.shard_group;
  const auto part = [&](Bytes bytes, int64_t stage) { return plan.zero >= stage ? ceil_div(bytes, n) : bytes; };
  out.states = part(2 * psi, 3) + part(2 * psi, 2) + (plan.offload_optimizer ? 0 : part(12 * psi, 1));
  return out;
}

void write_steps(TrainAnswer& a) {
  const Ledger& ledger = a.device;
  const bool compare = !a.plan.textbook && a.model.shape_known && !a.plan.frozen();
  Textbook book;
  if (compare) book = textbook_of(a.model, a.plan);
  Bytes states = 0;
  const auto group = [&](std::initializer_list<Category> categories, const char* title) {
    Bytes sum = 0;
    for (const Line& line : ledger.lines) {
      if (std::find(categories.begin(), categories.end(), line.category) == categories.end()) continue;
      WorkedStep step;
      step.title = {"train.step.line", {{"name", line.name}, {"owner", line.owner}}};
      step.expression = line.formula;
      step.count = line.count;
      step.bytes = line.bytes;
      a.steps.push_back(std::move(step));
      sum += line.bytes;
    }
    if (sum == 0) return;
    WorkedStep total;
    total.title = {title, {}};
    total.bytes = sum;
    a.steps.push_back(std::move(total));
  };
  group({Category::parameters, Category::adapters}, "train.step.weights");
  group({Category::gradients}, "train.step.gradients");
  group({Category::optimizer}, "train.step.optimizer");
  for (Category c : {Category::parameters, Category::adapters, Category::gradients, Category::optimizer})
    states += ledger.of(c);
  {
    WorkedStep total;
    total.title = {"train.step.states", {}};
    total.bytes = states;
    if (compare) {
      total.textbook = book.states;
      if (book.states != states)
        total.why = Note{a.plan.rules.gradients_from_start ? "train.why.states" : "train.why.states_late", {}};
    }
    a.steps.push_back(std::move(total));
  }
  group({Category::activations}, "train.step.activations");
  if (compare && a.steps.back().title.id == "train.step.activations") {
    a.steps.back().textbook = book.activations;
    a.steps.back().why = Note{"train.why.activations", {{"stack", a.plan.rules.stack}}};
  }
  group({Category::logits}, "train.step.logits");
  if (compare && a.steps.back().title.id == "train.step.logits") {
    a.steps.back().textbook = 0;
    a.steps.back().why = Note{"train.why.logits", {}};
  }
  group({Category::gathered, Category::communication}, "train.step.gathered");
  group({Category::workspace, Category::context}, "train.step.context");
  WorkedStep peak;
  peak.title = {"train.step.peak", {}};
  peak.bytes = ledger.bytes;
  a.steps.push_back(std::move(peak));
}

}  // namespace

TrainPeak train_peak(const Model& model, const Machine* machine, const Job& job, const Rules& rules,
                     const Constants& constants) {
  LastShape last;
  return peak_of(model, machine, job, rules, constants, last);
}

TrainAnswer answer_train(Model model, std::optional<Machine> machine, const Job& job, const Knowledge& knowledge) {
  TrainAnswer a;
  a.model = std::move(model);
  a.machine = std::move(machine);
  const Machine* m = a.machine ? &*a.machine : nullptr;
  a.plan = resolve_plan(a.model, m, job, rules_for(job, knowledge));
  a.model = as_trained(a.model, a.plan);
  if (m) {
    a.usable = m->device.usable_bytes();
    a.host_available = m->host_bytes_per_node;
  }
  const Overheads over = overheads(a.plan, m ? &m->device : nullptr, knowledge.constants());
  LastShape last;
  a.peaks = peaks_of(a.model, a.plan, over, last);
  a.worst = std::max_element(a.peaks.begin(), a.peaks.end()) - a.peaks.begin();
  for (int64_t r = 0; r < a.plan.pp; ++r) {
    a.rank_ledgers.push_back(make_ledger(step_program<Fast>(a.model, a.plan, over, r), Tier::device));
  }
  const auto program = step_program<Traced>(a.model, a.plan, over, a.worst);
  a.device = make_ledger(program, Tier::device);
  if (const HostNeed need = host_need(a.model, a.plan); need.bytes > 0) {
    a.host_all = need.all;
    a.host = make_ledger(need.rank == a.worst ? program : step_program<Traced>(a.model, a.plan, over, need.rank),
                         Tier::host);
  }
  if (!a.plan.textbook && a.model.shape_known && written_micro_batches(a.plan) == a.plan.micro_batches) {
    a.timeline = timeline_of(program);
  }
  a.states = sum_states(a.model, a.plan, a.worst, nullptr);
  a.states_all = whole_states(a.model, a.plan);
  if (a.host.bytes > 0) {
    // Every card of a node keeps its own shard there.
    a.host_needed = checked_mul(a.host.bytes, m ? m->cards_per_node : 1);
  }
  if (a.usable && *a.usable > 0) a.cards_for_states = ceil_div(a.states_all.total(), *a.usable);

  const RankCounts counts = rank_counts(a.model, a.plan, a.worst);
  a.parameters_on_rank = counts.dense.parameters + counts.expert.parameters;
  a.flops = training_flops(a.model, a.plan);
  a.traffic = step_traffic(a.model, a.plan, counts);
  a.tokens_per_step = static_cast<double>(a.plan.sequence) * static_cast<double>(a.plan.micro_batch) *
                      static_cast<double>(a.plan.micro_batches) * static_cast<double>(a.plan.dp);
  a.tokens = job.tokens;
  const Constant& mfu_row = knowledge.constants().get("mfu_permille");
  const double mfu = job.mfu.value_or(static_cast<double>(mfu_row.value) / 1000);
  a.mfu_assumed = !job.mfu;
  if (m && !m->device.memory_only && a.tokens) {
    a.time = training_time(a.flops.per_token(), *a.tokens, m->cards(), m->device, a.plan.precision, mfu, job.price);
  }
  const auto link = job.pcie                   ? job.pcie
                    : m && m->device.host_link ? std::optional<double>(m->device.host_link->bytes_per_second)
                                               : std::nullopt;
  if (a.traffic.host > 0 && link) {
    a.offload =
        offload_time(a.traffic, *link, a.flops.per_token(), m ? m->device.flops(Dtype::bf16) : std::nullopt, mfu);
  }
  a.assumptions = a.plan.assumptions;
  if (!job.stack && !a.plan.textbook && a.model.shape_known)
    a.assumptions.push_back({"train.assume.stack", {{"stack", a.plan.rules.stack}}});
  if (!a.model.shape_known) a.assumptions.push_back({"train.assume.no_shapes", {}});
  if (a.time && a.mfu_assumed)
    a.assumptions.push_back({"train.assume.mfu", {{"mfu", fmt::format("{:.3g} %", 100 * mfu)}}});
  write_steps(a);
  find_movers(a, job, knowledge, over, last);
  return a;
}

TrainAnswer answer_train(const Job& job, const Knowledge& knowledge) {
  Model model = resolve_model(job, knowledge.environment());
  std::optional<Machine> machine;
  if (!job.on.empty()) machine = resolve_machine(job, knowledge);
  return answer_train(std::move(model), std::move(machine), job, knowledge);
}

Document to_json(const Note& note) {
  Document::Object args;
  for (const auto& [name, value] : note.args) args.emplace_back(name, value);
  return Document::Object{{"id", note.id}, {"args", std::move(args)}, {"text", say(Lang::en, note)}};
}

std::string effect_text(Lang lang, const Effect& e) {
  const bool option = find_field(e.field) != nullptr;
  const std::string row = "row." + e.field.substr(0, e.field.find('.'));
  return say(lang, "train.mover",
             fmt::arg("field", option ? option_name(e.field) : std::string(text_or(lang, row, e.field))),
             fmt::arg("current", e.current), fmt::arg("alternative", e.alternative),
             fmt::arg("delta", (e.delta > 0 ? "+" : "") + format_gib(e.delta)));
}

namespace {

Document by_category_json(const Ledger& ledger) {
  Document::Object out;
  for (int c = 0; c < kCategories; ++c) {
    const Bytes b = ledger.of(static_cast<Category>(c));
    if (b != 0) out.emplace_back(std::string(category_name(static_cast<Category>(c))) + "_bytes", b);
  }
  return out;
}

// Groups down to, not including, the storages: those are the lines.
Document tree_json(const Node& node) {
  Document out{Document::Object{{"name", node.name}, {"bytes", node.bytes}}};
  Document::Array children;
  for (const Node& child : node.children) {
    if (child.count == 0) children.push_back(tree_json(child));
  }
  if (!children.empty()) out.set("children", std::move(children));
  return out;
}

}  // namespace

Document to_json(const std::vector<Instant>& when) {
  Document::Array out;
  for (const Instant& i : when)
    out.emplace_back(Document::Object{{"name", i.name}, {"round", i.round}, {"rounds", i.rounds}});
  return out;
}

Document to_json(const Ledger& ledger) {
  Document::Array lines;
  for (const Line& l : ledger.lines) {
    Document row{Document::Object{{"name", l.name},
                                  {"owner", l.owner},
                                  {"category", std::string(category_name(l.category))},
                                  {"life", std::string(life_name(l.life))},
                                  {"count", l.count},
                                  {"bytes_each", l.each},
                                  {"bytes", l.bytes},
                                  {"low_bytes", l.low},
                                  {"high_bytes", l.high}}};
    if (!l.formula.empty()) row.set("formula", l.formula);
    if (!l.constants.empty()) row.set("constants", l.constants);
    lines.push_back(std::move(row));
  }
  return Document::Object{{"tier", std::string(tier_name(ledger.tier))},
                          {"bytes", ledger.bytes},
                          {"low_bytes", ledger.low},
                          {"high_bytes", ledger.high},
                          {"when", to_json(ledger.when)},
                          {"by_category", by_category_json(ledger)},
                          {"by_module", tree_json(view(ledger, View::module))},
                          {"by_life", tree_json(view(ledger, View::life))},
                          {"lines", std::move(lines)}};
}

namespace {

Document states_json(const StateBytes& s) {
  return Document::Object{{"weights_bytes", s.weights},
                          {"gradients_bytes", s.gradients},
                          {"optimizer_bytes", s.optimizer},
                          {"adapters_bytes", s.adapters},
                          {"total_bytes", s.total()}};
}

Document plan_json(const Plan& p) {
  Document::Array offload;
  if (p.offload_optimizer) offload.emplace_back("optimizer");
  if (p.offload_gradients) offload.emplace_back("gradients");
  if (p.offload_parameters) offload.emplace_back("parameters");
  return Document::Object{{"task", std::string(task_name(p.task))},
                          {"stack", p.rules.stack},
                          {"precision", std::string(precision_name(p.precision))},
                          {"optimizer", std::string(optimizer_name(p.optimizer))},
                          {"sequence", p.sequence},
                          {"micro_batch", p.micro_batch},
                          {"micro_batches", p.micro_batches},
                          {"tensor_parallel", p.tp},
                          {"sequence_parallel", p.sequence_parallel},
                          {"context_parallel", p.cp},
                          {"pipeline_parallel", p.pp},
                          {"virtual_pipeline", p.vpp},
                          {"expert_parallel", p.ep},
                          {"expert_tensor_parallel", p.etp},
                          {"data_parallel", p.dp},
                          {"cards", p.cards()},
                          {"schedule", std::string(schedule_name(p.schedule))},
                          {"zero", p.zero},
                          {"shard_group", p.shard_group},
                          {"recompute", std::string(recompute_name(p.recompute))},
                          {"attention", p.flash ? "flash" : "eager"},
                          {"loss", std::string(loss_name(p.rules.kernels.loss))},
                          {"hidden_dropout", p.hidden_dropout},
                          {"attention_dropout", p.attention_dropout},
                          {"offload", std::move(offload)},
                          {"lora_rank", p.adapters.rank},
                          {"textbook", p.textbook},
                          {"weight_bytes_per_parameter", p.weight_bytes},
                          {"gradient_bytes_per_parameter", p.gradient_bytes + p.gradient_copy_bytes},
                          {"master_bytes_per_parameter", p.master_bytes},
                          {"moment_bytes_per_parameter", p.moment_bytes}};
}

}  // namespace

Document to_json(const TrainAnswer& a) {
  Document out{Document::Object{{"model", Document::Object{{"name", a.model.name},
                                                           {"parameters", a.model.counts.parameters},
                                                           {"active_parameters", a.model.counts.active},
                                                           {"shape_known", a.model.shape_known},
                                                           {"hypothetical", a.model.hypothetical}}}}};
  if (a.machine)
    out.set(
        "machine",
        Document::Object{{"text", a.machine->text}, {"device", a.machine->device.name}, {"cards", a.machine->cards()}});
  out.set("plan", plan_json(a.plan));
  if (a.usable) {
    out.set("fits", a.fits());
    out.set("doubtful", a.doubtful());
    out.set("usable_bytes", *a.usable);
    out.set("room_bytes", *a.usable - a.device.bytes);
  }
  out.set("peak_bytes", a.device.bytes);
  out.set("peak_low_bytes", a.device.low);
  out.set("peak_high_bytes", a.device.high);
  out.set("peak_rank", a.worst);
  Document::Array ranks;
  for (size_t r = 0; r < a.peaks.size(); ++r) {
    ranks.emplace_back(Document::Object{{"rank", static_cast<int64_t>(r)},
                                        {"peak_bytes", a.peaks[r]},
                                        {"when", to_json(a.rank_ledgers[r].when)},
                                        {"by_category", by_category_json(a.rank_ledgers[r])}});
  }
  out.set("ranks", std::move(ranks));
  out.set("states_per_card", states_json(a.states));
  out.set("states_whole_model", states_json(a.states_all));
  if (a.cards_for_states) out.set("cards_for_states", *a.cards_for_states);
  out.set("ledger", to_json(a.device));
  if (a.host.bytes > 0) {
    out.set("host_ledger", to_json(a.host));
    out.set("host_bytes_per_card", a.host.bytes);
    out.set("host_bytes_all_cards", a.host_all);
    if (a.host_needed) out.set("host_bytes_per_node", *a.host_needed);
  }
  out.set("flops", Document::Object{{"textbook_per_token", a.flops.textbook_per_token},
                                    {"matmul_per_token", a.flops.matmul_per_token},
                                    {"attention_per_token", a.flops.attention_per_token},
                                    {"recompute_per_token", a.flops.recompute_per_token},
                                    {"per_step", a.flops.per_token() * a.tokens_per_step}});
  out.set("tokens_per_step", a.tokens_per_step);
  if (a.time) {
    Document time{Document::Object{{"tokens", *a.tokens},
                                   {"flops", a.time->flops},
                                   {"peak_flops_per_second_per_card", a.time->peak_flops_per_card},
                                   {"mfu", a.time->mfu},
                                   {"seconds", a.time->seconds},
                                   {"days", a.time->seconds / 86400},
                                   {"card_hours", a.time->card_hours},
                                   {"tokens_per_second", a.time->tokens_per_second},
                                   {"dataset_bytes_2_per_token", 2 * *a.tokens},
                                   {"dataset_bytes_4_per_token", 4 * *a.tokens},
                                   {"dataset_bytes_per_second_2_per_token", 2 * a.time->tokens_per_second},
                                   {"dataset_bytes_per_second_4_per_token", 4 * a.time->tokens_per_second}}};
    if (a.time->price) time.set("price_usd", *a.time->price);
    out.set("time", std::move(time));
  }
  out.set("traffic_per_step_per_rank", Document::Object{{"data_parallel_bytes", a.traffic.data_parallel},
                                                        {"tensor_parallel_bytes", a.traffic.tensor_parallel},
                                                        {"context_parallel_bytes", a.traffic.context_parallel},
                                                        {"pipeline_parallel_bytes", a.traffic.pipeline_parallel},
                                                        {"expert_parallel_bytes", a.traffic.expert_parallel},
                                                        {"host_bytes", a.traffic.host}});
  if (a.offload) {
    Document offload{Document::Object{{"bytes_per_step", a.offload->bytes_per_step},
                                      {"seconds_one_way", a.offload->seconds_one_way},
                                      {"seconds_duplex", a.offload->seconds_duplex}}};
    if (a.offload->tokens_to_hide) offload.set("tokens_to_hide", *a.offload->tokens_to_hide);
    out.set("offload", std::move(offload));
  }
  Document::Array movers, steps, assumptions;
  for (const Effect& e : a.movers) {
    movers.emplace_back(Document::Object{{"field", e.field},
                                         {"alternative", e.alternative},
                                         {"delta_bytes", e.delta},
                                         {"text", effect_text(Lang::en, e)}});
  }
  for (const WorkedStep& s : a.steps) {
    Document row{Document::Object{{"title", say(Lang::en, s.title)}, {"bytes", s.bytes}}};
    if (!s.expression.empty()) {
      row.set("expression", s.expression);
      row.set("count", s.count);
    }
    if (s.textbook) row.set("textbook_bytes", *s.textbook);
    if (s.why) row.set("why", say(Lang::en, *s.why));
    steps.push_back(std::move(row));
  }
  for (const Note& n : a.assumptions) assumptions.emplace_back(say(Lang::en, n));
  for (const std::string& text : a.model.assumed(Lang::en)) assumptions.emplace_back(text);
  if (a.machine) {
    for (const std::string& text : a.machine->assumed(Lang::en)) assumptions.emplace_back(text);
  }
  out.set("moves_most", std::move(movers));
  out.set("steps", std::move(steps));
  out.set("assumptions", std::move(assumptions));
  return out;
}

}  // namespace vram
