#include "api/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "tiers/levels.h"

namespace vram {
namespace {

constexpr size_t kMostCompared = 8;

std::string folded(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

bool holds(const Device& d, const std::string& word) {
  const std::string wanted = folded(word);
  const auto has = [&](std::string_view text) { return folded(text).find(wanted) != std::string::npos; };
  return has(d.id) || has(d.name) || has(d.vendor) || has(d.arch) || has(d.memory_type) ||
         std::any_of(d.aliases.begin(), d.aliases.end(), has);
}

// The row names of the table of dense peaks, widest format first.
constexpr Dtype kRated[] = {Dtype::f32, Dtype::tf32, Dtype::bf16, Dtype::f16, Dtype::f8_e4m3, Dtype::f4, Dtype::i8};

std::string rate_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return "fp32";
    case Dtype::tf32:
      return "tf32";
    case Dtype::bf16:
      return "bf16";
    case Dtype::f16:
      return "fp16";
    case Dtype::f8_e4m3:
      return "fp8";
    case Dtype::f4:
      return "fp4";
    default:
      return "int8";
  }
}

std::vector<DtypeRate> rates_of(const Device& d) {
  std::vector<DtypeRate> out;
  for (Dtype dtype : kRated) {
    const std::optional<double> flops = d.flops(dtype);
    if (!flops) continue;
    DtypeRate rate{.dtype = dtype, .flops_per_second = *flops};
    if (d.bandwidth) rate.ridge_flops_per_byte = *flops / *d.bandwidth;
    out.push_back(rate);
  }
  return out;
}

// The upper part of the pyramid that `vram tiers` shows of a machine of such cards. Only what was measured is shown as
// measured; what is assumed of a level is left to the verb that counts with it.
std::vector<MemoryLevel> levels_of(const Device& d, const Constants& constants) {
  Machine machine;
  machine.device = d;
  machine.cards_per_node = d.scale_up ? 2 : 1;
  if (d.scale_up) machine.intra_node = *d.scale_up;
  std::vector<MemoryLevel> out;
  for (const Level& l : pyramid(machine, TierRows::builtin(), constants, nullptr, std::nullopt)) {
    if (l.id == "host" || l.id == "disk") continue;
    MemoryLevel level{.name = l.id, .bytes_per_second = l.rate, .detail = l.detail};
    if (l.id != "scale_up") level.bytes = l.bytes;
    if (l.measured && l.measured_basis == Basis::measured) {
      level.measured_low = l.measured->low;
      level.measured_high = l.measured->high;
      if (!l.rate) {
        level.bytes_per_second = l.measured->value;
        level.basis = Basis::measured;
      }
    }
    out.push_back(std::move(level));
  }
  // Other cards and the host are both one step from device memory: neither is below the other.
  std::optional<double> faster;
  for (MemoryLevel& level : out) {
    if (!level.bytes_per_second) continue;
    if (faster) level.step = *faster / *level.bytes_per_second;
    if (level.bytes) faster = level.bytes_per_second;
  }
  return out;
}

GpuFacts facts_of(const Device& d, bool left_open, const Constants& constants) {
  return {.device = d, .left_open = left_open, .rates = rates_of(d), .levels = levels_of(d, constants)};
}

template <class F>
void compare(GpusAnswer& answer, std::string what, F&& value_of) {
  ComparisonLine line;
  line.what = std::move(what);
  bool any = false;
  for (const GpuFacts& facts : answer.devices) {
    const std::optional<double> value = value_of(facts.device);
    any |= value.has_value();
    line.values.push_back(value);
    const std::optional<double> first = line.values.front();
    line.ratios.push_back(value && first && *first > 0 ? std::optional<double>(*value / *first) : std::nullopt);
  }
  if (any) answer.comparison.push_back(std::move(line));
}

std::optional<double> rate_of(const std::optional<Link>& link) {
  return link ? std::optional<double>(link->bytes_per_second) : std::nullopt;
}

void fill_comparison(GpusAnswer& answer) {
  compare(answer, "marketing_bytes",
          [](const Device& d) { return std::optional<double>(static_cast<double>(d.marketing_bytes)); });
  compare(answer, "usable_bytes",
          [](const Device& d) { return std::optional<double>(static_cast<double>(d.usable_bytes())); });
  compare(answer, "bandwidth_bytes_per_second", [](const Device& d) { return d.bandwidth; });
  for (Dtype dtype : kRated) {
    compare(answer, rate_name(dtype) + "_flops_per_second", [&](const Device& d) { return d.flops(dtype); });
  }
  for (Dtype dtype : kRated) {
    compare(answer, rate_name(dtype) + "_ridge_flops_per_byte", [&](const Device& d) {
      const std::optional<double> flops = d.flops(dtype);
      return flops && d.bandwidth ? std::optional<double>(*flops / *d.bandwidth) : std::nullopt;
    });
  }
  compare(answer, "scale_up_bytes_per_second", [](const Device& d) { return rate_of(d.scale_up); });
  compare(answer, "host_link_bytes_per_second", [](const Device& d) { return rate_of(d.host_link); });
  compare(answer, "watts", [](const Device& d) { return d.watts; });
  compare(answer, "rent_low_usd_per_hour", [](const Device& d) { return d.rent_low; });
  compare(answer, "rent_high_usd_per_hour", [](const Device& d) { return d.rent_high; });
}

DeviceMatch match_or_refuse(const std::string& name, std::string_view field, const Devices& devices) {
  const DeviceMatch match = devices.match(name);
  if (match.device) return match;
  throw InputError({.field = std::string(field),
                    .value = name,
                    .problem = "is no known device",
                    .accepted = "a device of 'vram gpus'",
                    .near_miss = near_miss(name, devices.names())});
}

void add_local(GpusAnswer& answer, const Environment& environment, const Devices& devices) {
  answer.asked_local = true;
  const LocalGpus found = environment.local_gpus();
  answer.local_absent_because = found.absent_because;
  for (const LocalGpu& gpu : found.gpus) {
    const Device* known = devices.find_driver_name(gpu.name, gpu.total_bytes);
    answer.local.push_back({gpu, known ? known->id : std::string()});
  }
}

// --- JSON ---

template <class T>
void set(Document& out, const char* key, const std::optional<T>& value) {
  out.set(key, value ? Document(*value) : Document());
}

Document strings(const std::vector<std::string>& list) {
  Document::Array out;
  for (const std::string& s : list) out.emplace_back(s);
  return out;
}

Document link_json(const std::optional<Link>& link) {
  if (!link) return {};
  return Document::Object{{"kind", link->kind}, {"bytes_per_second", link->bytes_per_second}};
}

Document level_json(const MemoryLevel& level) {
  Document out{Document::Object{{"name", level.name}, {"detail", level.detail}}};
  set(out, "bytes", level.bytes);
  set(out, "bytes_per_second", level.bytes_per_second);
  set(out, "measured_bytes_per_second_low", level.measured_low);
  set(out, "measured_bytes_per_second_high", level.measured_high);
  out.set("basis", std::string(basis_name(level.basis)));
  set(out, "times_slower_than_previous", level.step);
  return out;
}

Document facts_json(const GpuFacts& facts, bool full) {
  const Device& d = facts.device;
  Document out{Document::Object{{"id", d.id},
                                {"vendor", d.vendor},
                                {"name", d.name},
                                {"arch", d.arch},
                                {"compute_capability", d.compute_capability},
                                {"marketing_text", d.marketing_text},
                                {"marketing_bytes", d.marketing_bytes}}};
  set(out, "driver_bytes", d.driver_bytes);
  set(out, "process_bytes_low", d.process_bytes_low);
  set(out, "process_bytes_high", d.process_bytes_high);
  out.set("usable_bytes", d.usable_bytes());
  out.set("memory_type", d.memory_type);
  out.set("unified_memory", d.unified_memory);
  set(out, "bandwidth_bytes_per_second", d.bandwidth);
  set(out, "l2_bytes", d.l2_bytes);
  set(out, "compute_units", d.compute_units);
  set(out, "shared_memory_bytes_per_unit", d.smem_bytes_per_unit);
  for (Dtype dtype : kRated) set(out, (rate_name(dtype) + "_flops_per_second").c_str(), d.flops(dtype));
  Document::Object ridges;
  for (const DtypeRate& rate : facts.rates) {
    if (rate.ridge_flops_per_byte) ridges.emplace_back(rate_name(rate.dtype), Document(*rate.ridge_flops_per_byte));
  }
  out.set("ridge_flops_per_byte", std::move(ridges));
  out.set("scale_up", link_json(d.scale_up));
  out.set("scale_up_cards", d.scale_up_cards == 0 ? d.cards_per_node : d.scale_up_cards);
  out.set("cards_per_node", d.cards_per_node);
  out.set("host_link", link_json(d.host_link));
  set(out, "watts", d.watts);
  set(out, "rent_low_usd_per_hour", d.rent_low);
  set(out, "rent_high_usd_per_hour", d.rent_high);
  if (full) {
    Document::Array levels;
    for (const MemoryLevel& level : facts.levels) levels.push_back(level_json(level));
    out.set("levels", std::move(levels));
    out.set("aliases", strings(d.aliases));
    out.set("short_names", strings(d.short_names));
    out.set("name_left_open", facts.left_open);
  }
  out.set("source", d.source);
  out.set("verified", strings(d.verified));
  out.set("notes", d.notes);
  return out;
}

Document numbers(const std::vector<std::optional<double>>& list) {
  Document::Array out;
  for (const std::optional<double>& v : list) out.push_back(v ? Document(*v) : Document());
  return out;
}

}  // namespace

GpusAnswer gpus(const GpusRequest& request, const Environment& environment, const Devices& devices,
                const Constants& constants) {
  GpusAnswer answer;
  answer.words = request.words;
  answer.known = static_cast<int64_t>(devices.all().size());
  if (!request.compare.empty()) {
    answer.kind = GpusAnswer::Kind::comparison;
    if (request.compare.size() < 2 || request.compare.size() > kMostCompared) {
      throw InputError({.field = "--compare",
                        .value = request.compare.front(),
                        .problem = "needs two to eight devices",
                        .accepted = "names separated by commas, such as A100,H100"});
    }
    for (const std::string& name : request.compare) {
      const DeviceMatch match = match_or_refuse(name, "--compare", devices);
      answer.devices.push_back(facts_of(*match.device, match.left_open, constants));
    }
    fill_comparison(answer);
    return answer;
  }
  std::string joined;
  for (const std::string& word : request.words) joined += (joined.empty() ? "" : " ") + word;
  if (!joined.empty()) {
    const DeviceMatch match = devices.match(joined);
    if (match.device) {
      answer.kind = GpusAnswer::Kind::one;
      answer.devices.push_back(facts_of(*match.device, match.left_open, constants));
      return answer;
    }
  }
  for (const Device& d : devices.all()) {
    const bool wanted = std::all_of(request.words.begin(), request.words.end(),
                                    [&](const std::string& word) { return holds(d, word); });
    if (wanted) answer.devices.push_back(facts_of(d, false, constants));
  }
  if (answer.devices.empty()) match_or_refuse(joined, "device", devices);
  if (request.words.empty()) add_local(answer, environment, devices);
  return answer;
}

Document to_json(const GpusAnswer& answer) {
  Document out;
  const bool full = answer.kind != GpusAnswer::Kind::list;
  Document::Array devices;
  for (const GpuFacts& facts : answer.devices) devices.push_back(facts_json(facts, full));
  out.set("known_devices", answer.known);
  out.set("devices", std::move(devices));
  if (answer.kind == GpusAnswer::Kind::comparison) {
    Document::Array lines;
    for (const ComparisonLine& line : answer.comparison) {
      lines.emplace_back(
          Document::Object{{"what", line.what}, {"values", numbers(line.values)}, {"ratios", numbers(line.ratios)}});
    }
    out.set("comparison", std::move(lines));
  }
  if (answer.asked_local) {
    Document::Array local;
    for (const LocalFacts& facts : answer.local) {
      local.emplace_back(Document::Object{{"name", facts.gpu.name},
                                          {"device", facts.device_id.empty() ? Document() : Document(facts.device_id)},
                                          {"total_bytes", facts.gpu.total_bytes},
                                          {"used_bytes", facts.gpu.used_bytes},
                                          {"free_bytes", facts.gpu.free_bytes},
                                          {"driver", facts.gpu.driver}});
    }
    out.set("this_machine", std::move(local));
    out.set("this_machine_absent_because",
            answer.local_absent_because.empty() ? Document() : Document(answer.local_absent_because));
  }
  return out;
}

}  // namespace vram
