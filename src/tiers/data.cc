#include "tiers/data.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "base/embedded.h"
#include "base/error.h"
#include "formats/formats.h"

namespace vram::embedded {
extern const File tiers[];
}

namespace vram {
namespace {

constexpr double kMostGb = 1e9;

std::string folded(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

void refuse_unknown(const Fields& row) {
  const auto unused = row.unused();
  if (unused.empty()) return;
  throw InputError({.file = row.file(),
                    .line = row.document().line(),
                    .field = unused.front(),
                    .problem = "is no field of this row"});
}

Basis basis_of(const Fields& row, bool complete) {
  const std::string word = complete ? row.required_string({"basis"}) : row.string_or({"basis"}, "assumed");
  const auto basis = parse_basis(word);
  if (!basis) row.refuse("basis", "is unknown", "exact, measured, assumed");
  return *basis;
}

std::string source_of(const Fields& row, bool complete) {
  const std::string source = complete ? row.required_string({"source"}) : row.string_or({"source"}, row.file());
  if (source.empty()) row.refuse("source", "is empty", "where the number is from");
  return source;
}

// "read" of "read_gb", "low_read_gb", "high_read_gb"; GB/s.
Span span_of(const Fields& row, const std::string& name) {
  const std::string key = name.empty() ? "gb" : name + "_gb";
  const auto value = row.real({key}, 1e-6, kMostGb);
  if (!value) row.refuse(key, "is missing", "GB/s");
  Span out;
  out.value = *value * 1e9;
  out.low = row.real({"low_" + key}, 1e-6, kMostGb).value_or(*value) * 1e9;
  out.high = row.real({"high_" + key}, 1e-6, kMostGb).value_or(*value) * 1e9;
  if (out.low > out.value || out.value > out.high)
    row.refuse(key, "lies outside its low and high", "low <= value <= high");
  return out;
}

Core read_core(const Fields& row) {
  Core core;
  core.id = row.required_string({"id"});
  core.capabilities = row.strings({"capabilities"}).value_or(std::vector<std::string>{});
  if (core.capabilities.empty()) row.refuse("capabilities", "is missing", "compute capabilities of data/devices.toml");
  core.register_bytes = row.required_integer({"register_kib"}, {1, 1 << 20}) * kKiB;
  core.fp32_fma_per_clock = row.required_integer({"fp32_fma_per_clock"}, {1, 1 << 20});
  core.shared_bytes_per_clock = row.required_integer({"shared_bytes_per_clock"}, {1, 1 << 20});
  core.basis = basis_of(row, true);
  core.source = source_of(row, true);
  return core;
}

Measured read_measured(const Fields& row) {
  Measured m;
  m.level = row.required_string({"level"});
  m.devices = row.strings({"devices"}).value_or(std::vector<std::string>{});
  if (m.devices.empty()) row.refuse("devices", "is missing", "ids of data/devices.toml");
  const std::string per = row.string_or({"per"}, "card");
  if (per != "card" && per != "node") row.refuse("per", "is unknown", "card or node");
  m.per_node = per == "node";
  m.rate = span_of(row, "");
  m.what = row.required_string({"what"});
  m.basis = basis_of(row, true);
  m.source = source_of(row, true);
  return m;
}

Disk read_disk(const Fields& row, bool complete) {
  Disk disk;
  disk.id = row.required_string({"id"});
  disk.name = row.string_or({"name"}, disk.id);
  disk.read = span_of(row, "read");
  disk.write = span_of(row, "write");
  disk.bytes = static_cast<Bytes>(row.real({"tb"}, 0, 1e6).value_or(0) * 1e12);
  disk.basis = basis_of(row, complete);
  disk.source = source_of(row, complete);
  return disk;
}

Store read_store(const Fields& row, bool complete) {
  Store store;
  store.id = row.required_string({"id"});
  store.name = row.string_or({"name"}, store.id);
  store.aliases = row.strings({"aliases"}).value_or(std::vector<std::string>{});
  store.kind = row.string_or({"kind"}, "");
  const std::string per = row.string_or({"per"}, "store");
  if (per != "store" && per != "client") row.refuse("per", "is unknown", "store or client");
  store.per_client = per == "client";
  store.read = span_of(row, "read");
  store.write = span_of(row, "write");
  store.basis = basis_of(row, complete);
  store.source = source_of(row, complete);
  store.notes = row.string_or({"notes"}, "");
  return store;
}

template <class Row, class Read>
void read_list(const Fields& top, std::string_view key, std::vector<Row>& out, Read&& read) {
  const Document* list = top.find({key});
  if (!list) return;
  if (!list->is_array()) top.refuse(key, "is no list of tables");
  for (const Document& item : list->array()) {
    const Fields row(item, top.file());
    Row made = read(row);
    refuse_unknown(row);
    if constexpr (requires { made.id; }) {
      const auto same = std::find_if(out.begin(), out.end(), [&](const Row& r) { return r.id == made.id; });
      if (same != out.end()) {
        *same = std::move(made);
        continue;
      }
    }
    out.push_back(std::move(made));
  }
}

}  // namespace

const TierRows& TierRows::builtin() {
  static const TierRows loaded = [] {
    TierRows out;
    try {
      const Document document = parse_toml(embedded::tiers[0].bytes, "tiers.toml");
      const Fields top(document, "tiers.toml");
      read_list(top, "core", out.cores_, [](const Fields& row) { return read_core(row); });
      read_list(top, "measured", out.measured_, [](const Fields& row) { return read_measured(row); });
      read_list(top, "disk", out.disks_, [](const Fields& row) { return read_disk(row, true); });
      read_list(top, "store", out.stores_, [](const Fields& row) { return read_store(row, true); });
      refuse_unknown(top);
    } catch (const InputError& error) {
      throw std::logic_error(error.what());
    }
    return out;
  }();
  return loaded;
}

TierRows TierRows::with_rows_of(std::string_view toml, const std::string& file) const {
  const Document document = parse_toml(toml, file);
  const Fields top(document, file);
  TierRows out = *this;
  read_list(top, "disk", out.disks_, [](const Fields& row) { return read_disk(row, false); });
  read_list(top, "store", out.stores_, [](const Fields& row) { return read_store(row, false); });
  refuse_unknown(top);
  return out;
}

const Core* TierRows::core(std::string_view capability) const {
  for (const Core& c : cores_) {
    if (std::find(c.capabilities.begin(), c.capabilities.end(), capability) != c.capabilities.end()) return &c;
  }
  return nullptr;
}

const Measured* TierRows::measured(std::string_view level, std::string_view device) const {
  for (const Measured& m : measured_) {
    if (m.level == level && std::find(m.devices.begin(), m.devices.end(), device) != m.devices.end()) return &m;
  }
  return nullptr;
}

const Store& TierRows::store(std::string_view name, std::string_view field) const {
  const std::string wanted = folded(name);
  std::vector<std::string_view> known;
  for (const Store& s : stores_) {
    if (folded(s.id) == wanted || folded(s.name) == wanted) return s;
    known.push_back(s.id);
    for (const std::string& alias : s.aliases) {
      if (folded(alias) == wanted) return s;
      known.push_back(alias);
    }
  }
  std::string accepted;
  for (const Store& s : stores_) accepted += (accepted.empty() ? "" : ", ") + s.id;
  throw InputError({.field = std::string(field),
                    .value = std::string(name),
                    .problem = "is no known store",
                    .accepted = accepted,
                    .near_miss = near_miss(name, known)});
}

const Disk* TierRows::disk(std::string_view id) const {
  const auto found = std::find_if(disks_.begin(), disks_.end(), [&](const Disk& d) { return d.id == id; });
  return found == disks_.end() ? nullptr : &*found;
}

const Disk& TierRows::usual_disk(std::string_view host_link) const {
  // Hosts with PCIe 5 and chip-to-chip links have PCIe 5 drives; older ones have PCIe 4 at best.
  const bool new_host =
      host_link.substr(0, 2) == "5x" || host_link.substr(0, 2) == "6x" || host_link.substr(0, 3) == "C2C";
  if (const Disk* d = disk(new_host ? "4x-pcie5" : "4x-pcie4")) return *d;
  throw std::logic_error("no row of the usual disk");
}

}  // namespace vram
