#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/document.h"
#include "base/messages.h"
#include "base/units.h"

namespace vram {

/// A question in the users' words: the model, the machine, and how to train or serve. Unset fields take the default of
/// the stack, the engine or the field table when they are resolved. The field table below is the only list of names.
struct Job {
  // --- the model ---
  std::string model;                    ///< catalogue id, alias, config.json, directory, hub id, or a size: "7B"
  std::optional<std::string> revision;  ///< of a model of the hub: branch, tag or commit
  bool offline = false;                 ///< ask no hub: only what is on this machine
  bool refresh = false;                 ///< ask the hub although the model is on this machine
  std::vector<std::string> set;         ///< "kv_heads=8": changes that make the model hypothetical
  std::optional<int64_t> params, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, experts, experts_per_token;
  std::optional<std::string> block;  ///< gpt | llama: the block of a model described by hand
  // --- the machine ---
  std::string on;                    ///< "8xH100", "16x8xH100-80G", "4x80GB", "local"
  std::optional<Bytes> usable;       ///< bytes a process can use per card, overriding the catalogue
  std::optional<Bytes> host_memory;  ///< per node
  std::optional<double> pcie;        ///< bytes a second, one direction, per card
  std::optional<double> price;       ///< USD per card-hour
  // --- training ---
  std::optional<std::string> task;            ///< pretrain | full | lora | qlora
  std::optional<std::string> stack;           ///< megatron | fsdp | deepspeed | transformers
  std::optional<std::string> precision;       ///< fp32 | bf16 | fp16 | bf16_pure | fp8
  std::optional<std::string> gradient_dtype;  ///< fp32 | bf16 | both
  std::optional<std::string> moment_dtype;    ///< fp32 | bf16 | fp16: of the optimizer's moments
  std::optional<bool> master_weights;
  std::optional<std::string> optimizer;  ///< adamw | adamw8bit | sgd | sgd_momentum | adafactor | lion | muon | none
  std::optional<int64_t> sequence, micro_batch, global_batch, gradient_accumulation;
  std::optional<int64_t> tensor_parallel, context_parallel, pipeline_parallel, virtual_pipeline, expert_parallel,
      expert_tensor_parallel, data_parallel;
  std::optional<bool> sequence_parallel;
  std::optional<std::string> schedule;   ///< 1f1b | interleaved | gpipe
  std::optional<int64_t> zero;           ///< 0 .. 3
  std::optional<std::string> sharding;   ///< ddp | zero1 | zero2 | zero3 | fsdp | distributed_optimizer
  std::optional<int64_t> hybrid_shard;   ///< devices of one shard group
  std::optional<std::string> recompute;  ///< none | selective | full
  std::optional<std::string> attention;  ///< flash | eager
  std::optional<std::string> loss;       ///< upcast | plain | vocab_parallel | vocab_parallel_compiled | fused
  std::optional<double> dropout;
  std::vector<std::string> offload;  ///< optimizer, gradients, parameters
  std::optional<int64_t> lora_rank;
  std::vector<std::string> lora_targets;  ///< attention, mlp, all, or projection names
  std::optional<std::string> lora_dtype;  ///< fp32 | bf16
  std::optional<double> tokens;           ///< to train on, in all
  std::optional<double> mfu;
  // --- serving ---
  std::optional<std::string> weights_dtype;  ///< bf16 | fp8 | int8 | int4 | checkpoint
  std::optional<std::string> kv_dtype;       ///< bf16 | fp16 | fp8 | int8 | int4 | fp32
  std::optional<Bytes> weights;              ///< bytes of the weights in all, overriding the table
  std::optional<int64_t> context;            ///< tokens of one request, prompt and output
  std::optional<int64_t> concurrency;        ///< requests asked for
  std::optional<double> gpu_memory_utilization;
  std::optional<Bytes> reserve;         ///< per card, for runtime and activations
  std::optional<Bytes> reserve_total;   ///< over all cards
  std::optional<double> reserve_ratio;  ///< share of the weights
  std::optional<int64_t> kv_block;      ///< tokens of one KV block
  // --- storage: checkpoints and data ---
  std::optional<Bytes> checkpoint;    ///< bytes of one, overriding what the model's states make
  std::optional<std::string> store;   ///< a row of data/tiers.toml: "3fs", "s3"
  std::optional<double> write, read;  ///< of the whole job against its store, bytes a second
  std::optional<double> mtbf;         ///< seconds between failures of the whole job
  std::optional<double> restart;      ///< seconds to notice a failure and start again, without the load
  // --- how the account is made ---
  bool textbook = false;  ///< the well-known formulas instead of the modelled framework
};

enum class Verb : uint32_t {
  fit = 1,
  train = 2,
  serve = 4,
  models = 8,
  gpus = 16,
  check = 32,
  sheet = 64,
  diff = 128,
  tiers = 256
};

/// One row of the field table. Options, job files, JSON schema, man page and completions are made from it.
struct Field {
  using Slot =
      std::variant<std::string Job::*, std::vector<std::string> Job::*, bool Job::*, std::optional<std::string> Job::*,
                   std::optional<int64_t> Job::*, std::optional<double> Job::*, std::optional<bool> Job::*>;
  std::string_view name;                  ///< "tensor_parallel": job-file key; the option is --tensor-parallel
  std::vector<std::string_view> aliases;  ///< "tp": further option names and job-file keys
  std::string_view group;                 ///< "model", "machine", "training", "serving", "storage", "account"
  Slot slot;
  Unit unit = Unit::none;
  double low = 0, high = 9e18;            ///< inclusive, for numbers
  std::vector<std::string_view> choices;  ///< for words; empty where any word will do
  std::vector<std::pair<std::string_view, std::string_view>>
      synonyms;               ///< other spellings of choices: {"adam", "adamw"}
  uint32_t verbs = 0;         ///< or of Verb
  std::string_view fallback;  ///< default as shown in help: "1", "the device's"
  std::string_view help_en, help_zh;

  std::string_view help(Lang lang) const { return lang == Lang::zh ? help_zh : help_en; }
  bool of(Verb verb) const { return (verbs & static_cast<uint32_t>(verb)) != 0; }
  bool is_flag() const;  ///< true or false
  bool is_list() const;
  bool is_number() const;
  bool is_set(const Job& job) const;  ///< differs from an empty job
  std::string accepted() const;       ///< "a whole number from 1 to 1,000,000", "bf16, fp16 or fp32"
};

/// The field table, in the order of help.
std::span<const Field> fields();
/// The groups of the table, in order: "model", "machine", "training", "serving", "storage", "account".
std::span<const std::string_view> field_groups();
/// By name or alias (dashes and underscores are one, case does not matter); null where unknown.
const Field* find_field(std::string_view name);
/// "--tensor-parallel": how a field is written on the command line.
std::string option_name(std::string_view field_name);

/// Sets one field from text, as a command line gives it. `shown` is the name for errors ("--tp" or "tensor_parallel").
/// Lists are replaced by the comma-separated words of `value`; commas inside brackets or quotes do not separate.
void set_field(Job& job, const Field& field, std::string_view value, std::string_view shown);

/// Reads a job file's document over `job`: flat, or with the members of a group in an object of the group's name.
/// Unknown keys, keys given twice (also by an alias) and wrong types are refused with file, line and a near miss.
void read_job(Job& job, const Document& document, const std::string& file);
/// The fields that are set, as a document for --save; read_job of it gives the same job.
Document write_job(const Job& job);
/// Refuses what contradicts itself whatever the model and the machine are. InputError names the option.
void check_job(const Job& job);
/// JSON schema (draft 2020-12) of a job file, made from the field table.
Document job_schema(Lang lang);

}  // namespace vram
