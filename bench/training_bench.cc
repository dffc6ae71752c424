// Memory of one dense training configuration: composed from prepared tables, cold, and as a full ledger.
#include <benchmark/benchmark.h>

#include "model/model.h"
#include "stacks/stacks.h"
#include "training/step.h"

namespace {

using namespace vram;

const Model& dense() {
  static const Model model = Catalogue::builtin().model(*Catalogue::builtin().find("meta-llama/Llama-3.1-405B"));
  return model;
}

Plan plan_of(const Model& model, int64_t virtual_pipeline) {
  Job job;
  job.tensor_parallel = 8;
  job.pipeline_parallel = 16;
  if (virtual_pipeline > 1) job.virtual_pipeline = virtual_pipeline;
  job.data_parallel = 4;
  job.gradient_accumulation = 64;
  job.sequence = 8192;
  job.zero = 1;
  return resolve_plan(model, nullptr, job, stack_rules("megatron", Constants::builtin()));
}

void compose_prepared(benchmark::State& state) {
  const Plan plan = plan_of(dense(), 1);
  const StepTables tables = step_tables(dense(), plan, {});
  const ScheduleShape shape = schedule_shape(plan.schedule, plan.pp, plan.vpp, plan.micro_batches);
  Bytes peaks[16];
  for (auto _ : state) {
    compose(tables, shape, peaks);
    benchmark::DoNotOptimize(peaks);
  }
}
BENCHMARK(compose_prepared);

void compose_cold(benchmark::State& state) {
  const Plan plan = plan_of(dense(), 1);
  // The shape depends on the schedule alone and is shared by a search; everything about model and plan is made anew.
  const ScheduleShape shape = schedule_shape(plan.schedule, plan.pp, plan.vpp, plan.micro_batches);
  Bytes peaks[16];
  for (auto _ : state) {
    const StepTables tables = step_tables(dense(), plan, {});
    compose(tables, shape, peaks);
    benchmark::DoNotOptimize(peaks);
  }
}
BENCHMARK(compose_cold);

void schedule_tables(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(schedule_shape(Schedule::one_f_one_b, 16, 1, 64));
}
BENCHMARK(schedule_tables);

void full_ledger_of_one_rank(benchmark::State& state) {
  const Plan plan = plan_of(dense(), 1);
  for (auto _ : state) benchmark::DoNotOptimize(make_ledger(step_program<Fast>(dense(), plan, {}, 0), Tier::device));
}
BENCHMARK(full_ledger_of_one_rank);

void parameter_table_of_a_trillion(benchmark::State& state) {
  const Catalogue& catalogue = Catalogue::builtin();
  const CatalogueEntry* entry = catalogue.find("moonshotai/Kimi-K2-Instruct");
  if (!entry) {
    state.SkipWithError("no such model");
    return;
  }
  const Document config = catalogue.config(*entry);
  for (auto _ : state) benchmark::DoNotOptimize(model_from_config(config, "config.json", "model"));
}
BENCHMARK(parameter_table_of_a_trillion);

void every_tensor_of_a_trillion(benchmark::State& state) {
  const Catalogue& catalogue = Catalogue::builtin();
  const CatalogueEntry* entry = catalogue.find("moonshotai/Kimi-K2-Instruct");
  if (!entry) {
    state.SkipWithError("no such model");
    return;
  }
  const Model model = catalogue.model(*entry);
  for (auto _ : state) {
    int64_t n = 0;
    for_each_tensor(model, [&n](const std::string&, const Tensor&, int64_t, int64_t) { ++n; });
    benchmark::DoNotOptimize(n);
  }
}
BENCHMARK(every_tensor_of_a_trillion);

}  // namespace

BENCHMARK_MAIN();
