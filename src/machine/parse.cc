#include "machine/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"

namespace vram {
namespace {

constexpr int64_t kMostCards = 1'000'000;
constexpr Bytes kMostBytes = Bytes{1} << 50;
constexpr std::string_view kAccepted =
    "8xH100, 16x8xA100-80G (nodes x cards), 4x80GB (memory only), RTX4090, local, or a machine file (.yaml, .json, "
    ".toml)";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out;
  for (char c : text) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// People write "8 x H100", "8*H100" and, in Chinese text, "8×H100".
std::string with_plain_times(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '*') {
      out += 'x';
    } else if (text.compare(i, 2, "\xC3\x97") == 0) {
      out += 'x';
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// "80GB" or "1.5 TiB": digits, then a unit. Absent where the text has another shape.
std::optional<Bytes> memory_amount(std::string_view text) {
  size_t i = 0;
  while (i < text.size() && (is_digit(text[i]) || text[i] == '.')) ++i;
  if (i == 0 || i == text.size()) return std::nullopt;
  std::string_view unit = trimmed(text.substr(i));
  struct Spelling {
    std::string_view folded, canonical;
  };
  constexpr std::array<Spelling, 8> units = {{{"gb", "GB"},
                                              {"g", "GB"},
                                              {"gib", "GiB"},
                                              {"tb", "TB"},
                                              {"t", "TB"},
                                              {"tib", "TiB"},
                                              {"mb", "MB"},
                                              {"mib", "MiB"}}};
  const std::string wanted = lower(unit);
  for (const Spelling& s : units) {
    if (s.folded != wanted) continue;
    try {
      return parse_integer(std::string(text.substr(0, i)) + std::string(s.canonical), Unit::bytes, "machine");
    } catch (const InputError&) {
      refuse_machine(text, "is no card's amount of memory");
    }
  }
  return std::nullopt;
}

bool has_file_ending(std::string_view text) {
  const std::string low = lower(text);
  for (std::string_view ending : {".yaml", ".yml", ".json", ".toml"}) {
    if (low.size() > ending.size() && low.compare(low.size() - ending.size(), ending.size(), ending) == 0) return true;
  }
  return false;
}

/// Cuts "16 x " off the front of `text`. Absent where it doesn't begin with a count.
std::optional<int64_t> take_count(std::string_view& text, std::string_view whole) {
  size_t i = 0;
  while (i < text.size() && is_digit(text[i])) ++i;
  if (i == 0) return std::nullopt;
  size_t j = i;
  while (j < text.size() && text[j] == ' ') ++j;
  if (j == text.size() || (text[j] != 'x' && text[j] != 'X')) return std::nullopt;
  if (i > 9) refuse_machine(whole, "has more cards than 1,000,000");
  const int64_t count = std::stoll(std::string(text.substr(0, i)));
  text = trimmed(text.substr(j + 1));
  return count;
}

void spread_over_nodes(Machine& m, int64_t cards) {
  const int64_t per_node = m.device.cards_per_node;
  m.nodes = 1;
  m.cards_per_node = cards;
  if (cards <= per_node) return;
  if (cards % per_node == 0) {
    m.nodes = cards / per_node;
    m.cards_per_node = per_node;
    assume(m, "machine.assume.nodes", fmt::arg("cards", with_commas(cards)), fmt::arg("nodes", with_commas(m.nodes)),
           fmt::arg("per_node", with_commas(per_node)));
  } else {
    assume(m, "machine.assume.flat", fmt::arg("cards", with_commas(cards)),
           fmt::arg("per_node", with_commas(per_node)));
  }
}

Machine machine_of_counts(const std::vector<int64_t>& counts, NamedDevice named, std::string_view name,
                          const Constants& constants) {
  Machine m;
  m.device = std::move(*named.device);
  assume_device(m, name, named.left_open);
  if (counts.size() == 2) {
    m.nodes = counts[0];
    m.cards_per_node = counts[1];
  } else {
    spread_over_nodes(m, counts.empty() ? 1 : counts[0]);
  }
  complete_links(m, constants);
  return m;
}

Link inter_node_link(const Device& device, const Constants& constants, const Constant*& row) {
  // A node whose cards share a switch is sold with a network card a device; a box of PCIe cards is not.
  const bool fabric = device.scale_up && device.scale_up_cards == 0;
  row = fabric ? &constants.get_or_default("inter_node_bytes_per_second", device.arch)
               : &constants.get("inter_node_bytes_per_second.pcie_card");
  const double rate = static_cast<double>(row->value);
  return {.kind = fmt::format("{:g} Gb/s a card (assumed)", rate * 8 / 1e9), .bytes_per_second = rate, .assumed = true};
}

void assume_inter_node(Machine& m, const Constant& row) {
  const auto gbits = [](int64_t bytes) { return fmt::format("{:g}", static_cast<double>(bytes) * 8 / 1e9); };
  assume(m, "machine.assume.inter_node", fmt::arg("rate", gbits(row.value)), fmt::arg("low", gbits(row.low)),
         fmt::arg("high", gbits(row.high)));
}

}  // namespace

void refuse_machine(std::string_view text, std::string problem, std::string near) {
  throw InputError({.field = "machine",
                    .value = std::string(text),
                    .problem = std::move(problem),
                    .accepted = std::string(kAccepted),
                    .near_miss = std::move(near)});
}

NamedDevice device_or_memory(std::string_view text, const Devices& devices) {
  const std::string_view name = trimmed(text);
  const DeviceMatch match = devices.match(name);
  if (match.device) return {*match.device, match.left_open};
  const std::optional<Bytes> bytes = memory_amount(name);
  if (!bytes) return {};
  if (*bytes < kMiB || *bytes > kMostBytes) refuse_machine(text, "is no card's amount of memory");
  Device d;
  d.id = std::string(name);
  d.name = std::string(name);
  d.marketing_text = std::string(name);
  d.marketing_bytes = *bytes;
  d.source = "as written";
  d.memory_only = true;
  return {std::move(d), false};
}

void assume_device(Machine& m, std::string_view written, bool left_open) {
  if (left_open) {
    assume(m, "machine.assume.short", fmt::arg("name", printable(written)), fmt::arg("device", m.device.name));
  }
  if (m.device.per_package > 1) assume(m, "machine.assume.package", fmt::arg("count", m.device.per_package));
  if (m.device.memory_only) assume(m, "machine.assume.memory_only");
}

void complete_links(Machine& m, const Constants& constants) {
  const Device& d = m.device;
  if (d.memory_only) return;
  if (m.intra_node.kind.empty()) {
    const bool bridged = d.scale_up_cards > 0 && m.cards_per_node > d.scale_up_cards;
    if (d.scale_up && !bridged) {
      m.intra_node = *d.scale_up;
    } else if (d.host_link) {
      m.intra_node = *d.host_link;
      if (bridged && d.scale_up) {
        assume(m, "machine.assume.bridge", fmt::arg("link", d.scale_up->kind), fmt::arg("cards", d.scale_up_cards),
               fmt::arg("per_node", m.cards_per_node), fmt::arg("host", d.host_link->kind));
      }
    }
  }
  const bool flat = m.nodes == 1 && m.cards_per_node > d.cards_per_node;
  if (m.nodes > 1 && !m.inter_node) {
    const Constant* row = nullptr;
    m.inter_node = inter_node_link(d, constants, row);
    assume_inter_node(m, *row);
  } else if (flat) {
    const Constant* row = nullptr;
    const Link between = inter_node_link(d, constants, row);
    if (m.intra_node.kind.empty() || between.bytes_per_second < m.intra_node.bytes_per_second) {
      m.intra_node = between;
      assume_inter_node(m, *row);
    }
  }
}

Machine parse_machine(std::string_view text, const Devices& devices, const Environment& environment,
                      const Constants& constants) {
  const std::string_view whole = trimmed(text);
  if (whole.empty()) refuse_machine(text, "is empty");
  if (lower(whole) == "local") return local_machine(devices, environment, constants);
  if (has_file_ending(whole)) return machine_of_file(std::string(whole), devices, environment, constants);
  if (whole.size() > 200) refuse_machine(whole, "is too long");
  if (whole.front() == '-' || whole.front() == '+') refuse_machine(whole, "does not begin with a count or a device");

  const std::string plain = with_plain_times(whole);
  std::string_view rest = trimmed(plain);
  std::vector<int64_t> counts;
  // Devices come first: "7900XTX" is no count of anything.
  NamedDevice named = device_or_memory(rest, devices);
  while (!named.device && counts.size() < 2) {
    const std::optional<int64_t> count = take_count(rest, whole);
    if (!count) break;
    if (*count == 0) refuse_machine(whole, "has no cards");
    if (*count > kMostCards) refuse_machine(whole, "has more cards than 1,000,000");
    counts.push_back(*count);
    named = device_or_memory(rest, devices);
  }
  if (!named.device) {
    // A path may have any ending; a name that is also a device stays a device.
    if (environment.is_file(std::string(whole))) {
      return machine_of_file(std::string(whole), devices, environment, constants);
    }
    if (rest.empty() || std::all_of(rest.begin(), rest.end(), is_digit)) refuse_machine(whole, "names no device");
    refuse_machine(whole, "names the unknown device '" + printable(rest) + "'", near_miss(rest, devices.names()));
  }
  if (counts.size() == 2 && counts[0] * counts[1] > kMostCards) {
    refuse_machine(whole, "has more cards than 1,000,000");
  }
  Machine m = machine_of_counts(counts, std::move(named), rest, constants);
  m.text = std::string(whole);
  return m;
}

}  // namespace vram
