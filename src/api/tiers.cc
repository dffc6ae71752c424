#include "api/tiers.h"

#include <algorithm>

#include "api/command.h"
#include "api/fit.h"
#include "base/error.h"

namespace vram {
namespace {

// --- offload ---------------------------------------------------------------------------------------------------------

// What a card computes a second, in tokens of its share.
std::optional<double> tokens_per_second(const TrainAnswer& a, double mfu) {
  if (!a.machine) return std::nullopt;
  const Dtype dtype = a.plan.precision == Precision::fp32 ? Dtype::tf32 : Dtype::bf16;
  auto peak = a.machine->device.flops(dtype);
  if (!peak) peak = a.machine->device.flops(Dtype::f32);
  if (!peak || a.flops.per_token() <= 0) return std::nullopt;
  return *peak * mfu / a.flops.per_token();
}

struct Rates {
  OffloadRates specified, measured;
  bool has_measured = false;
};

Rates rates_of(const std::vector<Level>& levels, const Disk& disk, const Machine& machine) {
  Rates out;
  for (const Level& l : levels) {
    if (l.id == "host_link" && l.rate) {
      out.specified.link = out.measured.link = *l.rate;
      if (l.measured && l.measured_basis == Basis::measured) {
        out.measured.link = l.measured->low;
        out.has_measured = true;
      }
    }
    if (l.id == "host" && l.measured) out.specified.host = out.measured.host = l.measured->value;
  }
  const auto cards = static_cast<double>(machine.cards_per_node);
  out.specified.disk_read = out.measured.disk_read = disk.read.value / cards;
  out.specified.disk_write = out.measured.disk_write = disk.write.value / cards;
  return out;
}

OffloadCase case_of(std::string id, const TrainAnswer& a, OffloadLoad load, const Rates& rates, double mfu) {
  OffloadCase out;
  out.id = std::move(id);
  out.load = load;
  const double tokens = a.tokens_per_step / static_cast<double>(a.plan.cards());
  const auto speed = tokens_per_second(a, mfu);
  out.bound = offload_bound(load, rates.specified, tokens, speed);
  if (rates.has_measured) out.measured = offload_bound(load, rates.measured, tokens, speed);
  out.host_bytes_per_card = a.host.bytes;
  if (a.host_available) out.host_fits = a.host_fits();
  out.device_bytes = a.device.bytes;
  out.device_fits = a.usable && a.device.bytes <= *a.usable;
  return out;
}

void fill_offload(TiersAnswer& answer, const Job& job, const Knowledge& knowledge, const Disk& disk) {
  const Rates rates = rates_of(answer.levels, disk, *answer.machine);
  if (rates.specified.link <= 0) return;
  const double mfu = job.mfu.value_or(static_cast<double>(knowledge.constants().get("mfu_permille").value) / 1000);
  const double adam = static_cast<double>(knowledge.constants().get("cpu_adam_bytes_per_parameter").value);
  const auto asked = [&](std::string_view what) {
    return std::find(job.offload.begin(), job.offload.end(), what) != job.offload.end();
  };
  // On several cards every rank updates its own share: ZeRO-2 where the weights fit beside it, else ZeRO-3.
  const auto answered = [&](std::vector<std::string> what, int64_t least) -> std::optional<TrainAnswer> {
    Job other = job;
    other.offload = std::move(what);
    const bool open = !other.zero && !other.sharding && answer.machine->cards() > 1;
    std::optional<TrainAnswer> best;
    for (int64_t stage = open ? least : 3; stage <= 3; ++stage) {
      if (open) other.zero = stage;
      try {
        const auto laid = settled(answer.training->model, *answer.machine, other, knowledge.constants());
        if (laid) best = answer_train(answer.training->model, *answer.machine, *laid, knowledge);
      } catch (const InputError&) {
        // Nothing to offload here: adapters, no optimizer.
      }
      if (best && best->device.bytes <= *best->usable) break;
    }
    return best;
  };
  if (const auto a = answered({"optimizer"}, 2)) {
    OffloadLoad load{.down_bytes = a->traffic.host_down, .up_bytes = a->traffic.host_up};
    // The optimizer's pass over its shard; gradients that come down are 2 or 4 bytes of each of its parameters.
    const double shard = a->traffic.host_down / static_cast<double>(std::max<int64_t>(1, a->plan.gradient_bytes));
    load.host_bytes = shard * adam;
    if (shard > 0) {
      OffloadCase optimizer = case_of("optimizer", *a, load, rates, mfu);
      optimizer.asked = asked("optimizer");
      answer.offload.push_back(std::move(optimizer));
      load.disk_read_bytes = load.disk_write_bytes = static_cast<double>(a->host.of(Category::optimizer));
      OffloadCase on_disk = case_of("optimizer_disk", *a, load, rates, mfu);
      on_disk.host_bytes_per_card = 0;
      on_disk.host_fits = true;
      answer.offload.push_back(std::move(on_disk));
    }
  }
  if (const auto a = answered({"optimizer", "parameters"}, 3); a && a->plan.offload_parameters) {
    OffloadLoad load{.down_bytes = a->traffic.host_down, .up_bytes = a->traffic.host_up};
    const double shard = a->traffic.host_down / static_cast<double>(std::max<int64_t>(1, a->plan.gradient_bytes));
    load.host_bytes = shard * adam;
    OffloadCase parameters = case_of("parameters", *a, load, rates, mfu);
    parameters.asked = asked("parameters");
    answer.offload.push_back(std::move(parameters));
  }
}

// --- checkpoints -----------------------------------------------------------------------------------------------------

std::vector<CheckpointKind> kinds_of(const TrainAnswer& a) {
  const StateBytes& s = a.states_all;
  const auto n = static_cast<double>(a.model.counts.parameters);
  std::vector<CheckpointKind> out;
  const auto add = [&](std::string id, Bytes bytes) {
    if (bytes > 0) out.push_back({std::move(id), static_cast<double>(bytes) / n, bytes});
  };
  if (a.plan.frozen()) {
    // The base is not saved again.
    add("training", checked_add(s.adapters, s.optimizer));
    add("weights", s.adapters);
    return out;
  }
  add("training", checked_add(s.weights, s.optimizer));
  if (a.plan.master_bytes > 0) add("optimizer", s.optimizer);
  add("weights", s.weights);
  add("resident", s.total());
  return out;
}

class Checkpoints {
 public:
  Checkpoints(TiersAnswer& answer, const Job& job, const Knowledge& knowledge)
      : a_(answer), c_(answer.checkpoint), job_(job), k_(knowledge), rows_(knowledge.tier_rows()) {}

  void fill(const Store* store) {
    sizes();
    failures();
    for (const Store& s : rows_.stores()) c_.stores.push_back(save_to(s));
    if (store) c_.chosen = save_to(*store);
    if (job_.write || job_.read) {
      SaveTo to = c_.chosen.value_or(SaveTo{});
      if (!c_.chosen) to.basis = Basis::exact;
      if (job_.write) to.write = {*job_.write, *job_.write, *job_.write};
      if (job_.read) to.read = {*job_.read, *job_.read, *job_.read};
      if (to.read.value == 0) to.read = to.write;
      to.source = "";
      times(to);
      c_.chosen = std::move(to);
    }
  }

 private:
  void sizes() {
    if (a_.training) c_.kinds = kinds_of(*a_.training);
    if (job_.checkpoint) {
      c_.bytes = *job_.checkpoint;
      c_.given = true;
    } else if (!c_.kinds.empty()) {
      c_.bytes = c_.kinds.front().bytes;
    }
    if (!c_.bytes || !a_.machine) return;
    c_.bytes_per_node = ceil_div(*c_.bytes, a_.machine->nodes);
    for (const Level& l : a_.levels) {
      if (l.id != "host_link" || !l.rate) continue;
      const double rate = l.measured && l.measured_basis == Basis::measured ? l.measured->low : *l.rate;
      c_.snapshot_seconds = static_cast<double>(*c_.bytes) / static_cast<double>(a_.machine->cards()) / rate;
    }
  }

  void failures() {
    if (job_.mtbf) {
      c_.mtbf = *job_.mtbf;
    } else if (a_.machine) {
      c_.mtbf =
          static_cast<double>(k_.constants().get("gpu_mtbf_seconds").value) / static_cast<double>(a_.machine->cards());
      c_.mtbf_assumed = true;
    }
    c_.restart_assumed = !job_.restart;
    c_.restart = job_.restart.value_or(static_cast<double>(k_.constants().get("restart_seconds").value));
  }

  void times(SaveTo& to) const {
    if (!c_.bytes) return;
    const auto bytes = static_cast<double>(*c_.bytes);
    if (to.write.value > 0) {
      to.write_seconds = bytes / to.write.value;
      to.write_seconds_low = bytes / to.write.high;
      to.write_seconds_high = bytes / to.write.low;
    }
    if (to.read.value > 0) to.read_seconds = bytes / to.read.value;
    if (c_.mtbf && to.write_seconds) {
      to.interval = best_interval(*c_.mtbf, *to.write_seconds, c_.restart + to.read_seconds.value_or(0));
    }
  }

  SaveTo save_to(const Store& store) const {
    const double clients = store.per_client && a_.machine ? static_cast<double>(a_.machine->nodes) : 1;
    const auto all = [&](const Span& s) { return Span{s.value * clients, s.low * clients, s.high * clients}; };
    SaveTo to{
        .id = store.id, .name = store.name, .kind = store.kind, .write = all(store.write), .read = all(store.read)};
    to.basis = store.basis;
    to.source = store.source;
    if (const auto limit = a_.machine ? link_limit(a_.levels) : std::nullopt) {
      const double most = *limit * static_cast<double>(a_.machine->cards());
      to.link_bound = to.write.value > most;
      for (Span* s : {&to.write, &to.read}) {
        *s = {std::min(s->value, most), std::min(s->low, most), std::min(s->high, most)};
      }
    }
    times(to);
    return to;
  }

  TiersAnswer& a_;
  CheckpointAnswer& c_;
  const Job& job_;
  const Knowledge& k_;
  const TierRows& rows_;
};

// --- JSON ------------------------------------------------------------------------------------------------------------

template <class T>
Document maybe(const std::optional<T>& value) {
  return value ? Document(*value) : Document();
}

Document span_json(const std::optional<Span>& span) {
  if (!span) return {};
  return Document::Object{{"value", span->value}, {"low", span->low}, {"high", span->high}};
}

Document level_json(const Level& l) {
  return Document::Object{
      {"id", l.id},
      {"above", l.above.empty() ? Document() : Document(l.above)},
      {"scope", l.scope},
      {"bytes", maybe(l.bytes)},
      {"bytes_per_second_per_card", maybe(l.rate)},
      {"measured_bytes_per_second_per_card", span_json(l.measured)},
      {"measured_basis", l.measured ? Document(std::string(basis_name(l.measured_basis))) : Document()},
      {"measured_how", l.what},
      {"measured_source", l.source},
      {"detail", l.detail},
      {"times_slower", maybe(l.step)},
      {"times_slower_measured", maybe(l.measured_step)}};
}

Document bound_json(const OffloadBound& b) {
  return Document::Object{{"link_seconds", b.link_seconds},
                          {"link_seconds_duplex", b.duplex_seconds},
                          {"host_seconds", b.host_seconds},
                          {"disk_seconds", b.disk_seconds},
                          {"compute_seconds", maybe(b.compute_seconds)},
                          {"tokens_to_hide_link", maybe(b.tokens_for_link)},
                          {"tokens_to_hide_all", maybe(b.tokens_for_all)},
                          {"link_hides", b.link_hides},
                          {"all_hides", b.all_hides}};
}

Document case_json(const OffloadCase& c) {
  return Document::Object{{"id", c.id},
                          {"asked", c.asked},
                          {"down_bytes_per_step", c.load.down_bytes},
                          {"up_bytes_per_step", c.load.up_bytes},
                          {"host_traffic_bytes_per_step", c.load.host_bytes},
                          {"disk_read_bytes_per_step", c.load.disk_read_bytes},
                          {"disk_write_bytes_per_step", c.load.disk_write_bytes},
                          {"at_specified_link", bound_json(c.bound)},
                          {"at_measured_link", c.measured ? bound_json(*c.measured) : Document()},
                          {"host_bytes_per_card", c.host_bytes_per_card},
                          {"host_fits", maybe(c.host_fits)},
                          {"device_peak_bytes", c.device_bytes},
                          {"device_fits", c.device_fits}};
}

Document interval_json(const std::optional<SaveInterval>& i) {
  if (!i) return {};
  return Document::Object{{"restore_seconds", i->restore}, {"young_seconds", i->young},
                          {"daly_seconds", i->daly},       {"best_seconds", i->exact},
                          {"useful_share", i->efficiency}, {"useful_share_at_young", i->efficiency_young}};
}

Document save_json(const SaveTo& s) {
  return Document::Object{{"id", s.id},
                          {"name", s.name},
                          {"write_bytes_per_second", span_json(s.write)},
                          {"read_bytes_per_second", span_json(s.read)},
                          {"link_bound", s.link_bound},
                          {"write_seconds", maybe(s.write_seconds)},
                          {"write_seconds_low", maybe(s.write_seconds_low)},
                          {"write_seconds_high", maybe(s.write_seconds_high)},
                          {"read_seconds", maybe(s.read_seconds)},
                          {"interval", interval_json(s.interval)},
                          {"basis", std::string(basis_name(s.basis))},
                          {"source", s.source}};
}

Document checkpoint_json(const CheckpointAnswer& c) {
  Document::Array kinds, stores;
  for (const CheckpointKind& k : c.kinds) {
    kinds.emplace_back(
        Document::Object{{"id", k.id}, {"bytes_per_parameter", k.bytes_per_parameter}, {"bytes", k.bytes}});
  }
  for (const SaveTo& s : c.stores) stores.push_back(save_json(s));
  return Document::Object{{"bytes", maybe(c.bytes)},
                          {"given", c.given},
                          {"kinds", std::move(kinds)},
                          {"bytes_per_node", maybe(c.bytes_per_node)},
                          {"snapshot_seconds", maybe(c.snapshot_seconds)},
                          {"mtbf_seconds", maybe(c.mtbf)},
                          {"mtbf_assumed", c.mtbf_assumed},
                          {"restart_seconds", c.restart},
                          {"restart_assumed", c.restart_assumed},
                          {"chosen", c.chosen ? save_json(*c.chosen) : Document()},
                          {"stores", std::move(stores)}};
}

}  // namespace

Exit TiersAnswer::exit() const {
  for (const OffloadCase& c : offload) {
    if (c.asked && (!c.bound.all_hides || !c.device_fits || !c.host_fits.value_or(true))) return Exit::no;
  }
  return Exit::yes;
}

TiersAnswer answer_tiers(const Job& job, const Knowledge& knowledge) {
  TiersAnswer a;
  const TierRows& rows = knowledge.tier_rows();
  const Store* store = job.store ? &rows.store(*job.store, "--store") : nullptr;
  if (!job.on.empty()) {
    a.machine = resolve_machine(job, knowledge);
    a.levels = pyramid(*a.machine, rows, knowledge.constants(), store, job.pcie);
  }
  if (has_model(job)) {
    Model model = resolve_model(job, knowledge.environment());
    Job laid = job;
    if (a.machine) {
      laid = settled(model, *a.machine, job, knowledge.constants()).value_or(job);
      for (const Field& f : fields()) {
        const std::string now = field_text(f, laid);
        if (f.of(Verb::train) && now != field_text(f, job)) a.layout.push_back(option_name(f.name) + " " + now);
      }
    }
    a.training = answer_train(std::move(model), a.machine, laid, knowledge);
    if (a.machine) fill_offload(a, job, knowledge, rows.usual_disk(a.machine->device.host_link_text));
  }
  Checkpoints(a, job, knowledge).fill(store);
  if (job.tokens) {
    DatasetAnswer data{.tokens = *job.tokens, .bytes_2 = 2 * *job.tokens, .bytes_4 = 4 * *job.tokens};
    if (a.training && a.training->time) data.tokens_per_second = a.training->time->tokens_per_second;
    if (a.checkpoint.chosen && a.checkpoint.chosen->read.value > 0) {
      data.store_bytes_per_second = a.checkpoint.chosen->read.value;
    }
    a.dataset = data;
  }
  return a;
}

Document to_json(const TiersAnswer& a) {
  Document::Array levels, offload, layout;
  for (const Level& l : a.levels) levels.push_back(level_json(l));
  for (const OffloadCase& c : a.offload) offload.push_back(case_json(c));
  for (const std::string& o : a.layout) layout.emplace_back(o);
  Document out{Document::Object{}};
  if (a.machine) {
    out.set("machine", Document::Object{{"text", a.machine->text},
                                        {"device", a.machine->device.name},
                                        {"nodes", a.machine->nodes},
                                        {"cards", a.machine->cards()}});
  }
  out.set("levels", std::move(levels));
  if (a.training) {
    const TrainAnswer& t = *a.training;
    out.set("model", Document::Object{{"name", t.model.name}, {"parameters", t.model.counts.parameters}});
    out.set("layout_chosen", std::move(layout));
    out.set("tokens_per_step", t.tokens_per_step);
    out.set("tokens_per_step_per_card", t.tokens_per_step / static_cast<double>(t.plan.cards()));
  }
  out.set("offload", std::move(offload));
  out.set("checkpoint", checkpoint_json(a.checkpoint));
  if (a.dataset) {
    const DatasetAnswer& d = *a.dataset;
    const auto rate = [&](double bytes) {
      return d.tokens_per_second ? Document(bytes * *d.tokens_per_second) : Document();
    };
    out.set("dataset", Document::Object{{"tokens", d.tokens},
                                        {"bytes_2_per_token", d.bytes_2},
                                        {"bytes_4_per_token", d.bytes_4},
                                        {"tokens_per_second", maybe(d.tokens_per_second)},
                                        {"bytes_per_second_2_per_token", rate(2)},
                                        {"bytes_per_second_4_per_token", rate(4)},
                                        {"store_bytes_per_second", maybe(d.store_bytes_per_second)}});
  }
  return out;
}

}  // namespace vram
