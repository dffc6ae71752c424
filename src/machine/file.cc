#include <fmt/format.h>

#include "base/error.h"
#include "formats/formats.h"
#include "machine/parse.h"

namespace vram {
namespace {

constexpr size_t kMostFileBytes = 1 << 20;
constexpr int64_t kMostCards = 1'000'000;

// A quantity as text with a unit ("2TB", "400Gb/s") or, for bytes, a whole number.
double quantity(const Fields& fields, std::string_view name, Unit unit) {
  const Document* value = fields.find({name});
  if (value->is_integer() && unit == Unit::bytes) return static_cast<double>(*fields.integer({name}, {1}));
  if (!value->is_string()) fields.refuse(name, fmt::format("is {}", value->kind_name()), std::string(unit_help(unit)));
  try {
    return parse_quantity(value->string(), unit, name);
  } catch (const InputError& error) {
    fields.refuse(name, error.fault().problem, error.fault().accepted);
  }
}

std::optional<Bytes> bytes_of(const Fields& fields, std::string_view name) {
  if (!fields.has({name})) return std::nullopt;
  const double value = quantity(fields, name, Unit::bytes);
  if (value < 1) fields.refuse(name, "is zero", std::string(unit_help(Unit::bytes)));
  return static_cast<Bytes>(value);
}

void refuse_unused(const Fields& fields, const std::vector<std::string_view>& known) {
  if (fields.unused().empty()) return;
  const std::string name = fields.unused().front();
  const Document* value = fields.document().find(name);
  std::string accepted;
  for (std::string_view k : known) accepted += (accepted.empty() ? "" : ", ") + std::string(k);
  throw InputError({.file = fields.file(),
                    .line = value ? value->line() : fields.document().line(),
                    .field = fields.prefix() + name,
                    .problem = "is no field of a machine file",
                    .accepted = accepted,
                    .near_miss = near_miss(name, known)});
}

// "450GB/s", or {kind: ..., rate: ...}.
std::optional<Link> link_of(const Fields& fields, std::string_view name) {
  const Document* value = fields.find({name});
  if (!value) return std::nullopt;
  Link link;
  if (value->is_object()) {
    const std::optional<Fields> parts = fields.object({name});
    link.kind = parts->string_or({"kind"}, "as stated");
    if (!parts->has({"rate"})) parts->refuse("rate", "is missing", std::string(unit_help(Unit::bandwidth)));
    link.bytes_per_second = quantity(*parts, "rate", Unit::bandwidth);
    refuse_unused(*parts, {"kind", "rate"});
  } else {
    link.kind = "as stated";
    link.bytes_per_second = quantity(fields, name, Unit::bandwidth);
  }
  if (!(link.bytes_per_second > 0)) fields.refuse(name, "is zero", std::string(unit_help(Unit::bandwidth)));
  return link;
}

}  // namespace

Machine machine_of_file(const std::string& path, const Devices& devices, const Environment& environment,
                        const Constants& constants) {
  const Document document = parse_by_name(environment.read_file(path, kMostFileBytes), path);
  const Fields fields(document, path);
  Machine m;
  m.text = path;
  const std::string name = fields.required_string({"device"});
  NamedDevice named = device_or_memory(name, devices);
  if (!named.device) {
    throw InputError({.file = path,
                      .line = fields.find({"device"})->line(),
                      .field = "device",
                      .value = name,
                      .problem = "is unknown",
                      .accepted = "a device of 'vram gpus', or an amount of memory such as 80GB",
                      .near_miss = near_miss(name, devices.names())});
  }
  m.device = std::move(*named.device);
  assume_device(m, name, named.left_open);
  m.nodes = fields.integer_or({"nodes"}, 1, {1, kMostCards});
  if (const auto cards = fields.integer({"cards_per_node"}, {1, kMostCards})) {
    m.cards_per_node = *cards;
  } else {
    m.cards_per_node = m.device.cards_per_node;
    assume(m, "machine.assume.per_node", fmt::arg("per_node", m.cards_per_node));
  }
  if (m.nodes * m.cards_per_node > kMostCards) fields.refuse("nodes", "times cards_per_node exceeds 1,000,000 cards");
  // What the file calls a node is one: no second guess about flat groups.
  m.device.cards_per_node = m.cards_per_node;
  if (const auto link = link_of(fields, "intra_node")) m.intra_node = *link;
  m.inter_node = link_of(fields, "inter_node");
  m.host_bytes_per_node = bytes_of(fields, "host_memory");
  if (const auto usable = bytes_of(fields, "usable")) {
    if (*usable > m.device.marketing_bytes) {
      fields.refuse("usable", "exceeds the device's " + format_gib(m.device.marketing_bytes));
    }
    m.device.process_bytes_low = *usable;
    m.device.process_bytes_high = *usable;
  }
  refuse_unused(fields, {"device", "nodes", "cards_per_node", "intra_node", "inter_node", "host_memory", "usable"});
  complete_links(m, constants);
  return m;
}

}  // namespace vram
