#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>

#include "base/embedded.h"
#include "base/error.h"
#include "formats/formats.h"
#include "machine/machine.h"

namespace vram::embedded {
extern const File devices[];
}

namespace vram {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

// Names are compared without case, separators and the maker's name: "NVIDIA GeForce RTX 4090" is "rtx4090".
std::string folded(std::string_view name) {
  std::string out;
  for (char c : name.substr(0, 100)) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  constexpr std::string_view makers[] = {"nvidia", "amd",     "intel",    "google", "apple", "huawei",
                                         "aws",    "geforce", "instinct", "tesla",  "radeon"};
  for (bool again = true; again;) {
    again = false;
    for (std::string_view maker : makers) {
      if (out.size() > maker.size() && out.compare(0, maker.size(), maker) == 0) {
        out.erase(0, maker.size());
        again = true;
      }
    }
  }
  return out;
}

Bytes from_gib(double gib) { return static_cast<Bytes>(std::llround(gib * static_cast<double>(kGiB))); }

std::string number_text(double value) { return fmt::format("{:g}", value); }

// A pair [low, high] of positive reals; absent where the row has none.
std::optional<std::pair<double, double>> range_of(const Fields& row, std::string_view name, double limit) {
  const Document* list = row.find({name});
  if (!list) return std::nullopt;
  const std::string accepted = fmt::format("[low, high] with 0 < low <= high <= {:g}", limit);
  if (!list->is_array() || list->array().size() != 2) row.refuse(name, "is no pair", accepted);
  double v[2];
  for (size_t i = 0; i < 2; ++i) {
    if (!list->array()[i].is_number()) row.refuse(name, "holds no number", accepted);
    v[i] = list->array()[i].number();
  }
  if (!(v[0] > 0 && v[0] <= v[1] && v[1] <= limit)) row.refuse(name, "is out of range or order", accepted);
  return std::pair(v[0], v[1]);
}

void refuse_unused(const Fields& fields, const std::vector<std::string_view>& known) {
  if (fields.unused().empty()) return;
  const std::string name = fields.unused().front();
  const Document* value = fields.document().find(name);
  throw InputError({.file = fields.file(),
                    .line = value ? value->line() : fields.document().line(),
                    .field = fields.prefix() + name,
                    .problem = "is no field of a device",
                    .near_miss = near_miss(name, known)});
}

void scale(std::optional<double>& slot, const Fields& row, std::string_view name, double factor, double limit) {
  if (const auto v = row.real({name}, 0, limit)) slot = *v * factor;
}

const std::vector<std::string_view>& device_fields() {
  static const std::vector<std::string_view> names = {"id",
                                                      "vendor",
                                                      "name",
                                                      "aliases",
                                                      "short",
                                                      "driver_names",
                                                      "arch",
                                                      "memory_gb",
                                                      "sold_bytes",
                                                      "watts",
                                                      "compute_capability",
                                                      "memory_type",
                                                      "driver_mib",
                                                      "process_gib",
                                                      "bandwidth_gb",
                                                      "l2_mib",
                                                      "compute_units",
                                                      "smem_kib",
                                                      "tflops",
                                                      "bf16",
                                                      "scale_up",
                                                      "scale_up_cards",
                                                      "cards_per_node",
                                                      "per_package",
                                                      "host_link",
                                                      "rent_usd",
                                                      "source",
                                                      "verified",
                                                      "notes"};
  return names;
}

void read_flops(Device& d, const Fields& row) {
  const std::optional<Fields> tflops = row.object({"tflops"});
  if (!tflops) return;
  constexpr double limit = 1e6;
  scale(d.flops_fp32, *tflops, "fp32", kTera, limit);
  scale(d.flops_tf32, *tflops, "tf32", kTera, limit);
  scale(d.flops_bf16, *tflops, "bf16", kTera, limit);
  scale(d.flops_fp8, *tflops, "fp8", kTera, limit);
  scale(d.flops_fp4, *tflops, "fp4", kTera, limit);
  scale(d.flops_int8, *tflops, "int8", kTera, limit);
  refuse_unused(*tflops, {"fp32", "tf32", "bf16", "fp8", "fp4", "int8"});
}

void read_memory(Device& d, const Fields& row) {
  if (const auto gb = row.real({"memory_gb"}, 0.1, 1e5)) {
    d.marketing_text = number_text(*gb) + " GB";
    d.marketing_bytes = from_gib(*gb);
  }
  if (const auto sold = row.integer({"sold_bytes"}, {1, int64_t{1} << 47})) d.marketing_bytes = *sold;
  if (d.marketing_bytes == 0) row.refuse("memory_gb", "is missing");
  if (const auto mib = row.integer({"driver_mib"}, {1, int64_t{1} << 27})) d.driver_bytes = *mib * kMiB;
  if (d.driver_bytes && *d.driver_bytes > d.marketing_bytes) row.refuse("driver_mib", "exceeds memory_gb x 2^30");
  if (const auto gib = range_of(row, "process_gib", 1e5)) {
    // Published totals are rounded to 0.01 GiB; a process never sees more than the driver has.
    const Bytes most = d.driver_bytes.value_or(d.marketing_bytes);
    constexpr Bytes rounding = kGiB / 100;
    if (from_gib(gib->second) > most + rounding) row.refuse("process_gib", "exceeds what the driver reports");
    d.process_bytes_low = std::min(from_gib(gib->first), most);
    d.process_bytes_high = std::min(from_gib(gib->second), most);
  }
  d.memory_type = row.string_or({"memory_type"}, d.memory_type);
  d.unified_memory = d.memory_type.find("unified") != std::string::npos;
  scale(d.bandwidth, row, "bandwidth_gb", kGiga, 1e6);
  if (const auto l2 = row.real({"l2_mib"}, 0, 1e5)) d.l2_bytes = static_cast<Bytes>(*l2 * static_cast<double>(kMiB));
  if (const auto smem = row.integer({"smem_kib"}, {0, 1 << 20})) d.smem_bytes_per_unit = *smem * kKiB;
}

void read_links(Device& d, const Fields& row, const Constants& constants) {
  if (const auto up = row.object({"scale_up"})) {
    Link link;
    link.kind = up->required_string({"kind"});
    const auto gb = up->real({"gb"}, 0.001, 1e6);
    if (!gb) up->refuse("gb", "is missing", "GB/s, one direction, a device");
    link.bytes_per_second = *gb * kGiga;
    refuse_unused(*up, {"kind", "gb"});
    d.scale_up = link;
  }
  d.scale_up_cards = row.integer_or({"scale_up_cards"}, d.scale_up_cards, {0, 1'000'000});
  d.cards_per_node = row.integer_or({"cards_per_node"}, d.cards_per_node, {1, 1'000'000});
  d.per_package = row.integer_or({"per_package"}, d.per_package, {1, 64});
  if (const auto text = row.string({"host_link"})) {
    d.host_link_text = *text;
    d.host_link = host_link_of(*text, constants);
  }
}

// Lays the row's fields over `d`, which is a known device or a fresh one.
void read_device(Device& d, const Fields& row, const Constants& constants) {
  d.vendor = row.string_or({"vendor"}, d.vendor);
  d.name = row.string_or({"name"}, d.name);
  if (folded(d.name).empty()) row.refuse("name", "is missing");
  if (auto list = row.strings({"aliases"})) d.aliases = std::move(*list);
  if (auto list = row.strings({"short"})) d.short_names = std::move(*list);
  if (auto list = row.strings({"driver_names"})) d.driver_names = std::move(*list);
  d.arch = row.string_or({"arch"}, d.arch);
  d.compute_capability = row.string_or({"compute_capability"}, d.compute_capability);
  if (const auto units = row.integer({"compute_units"}, {1, 1 << 20})) d.compute_units = *units;
  d.has_bf16 = row.boolean_or({"bf16"}, d.has_bf16);
  read_memory(d, row);
  read_flops(d, row);
  read_links(d, row, constants);
  scale(d.watts, row, "watts", 1, 1e6);
  if (const auto rent = range_of(row, "rent_usd", 1e6)) {
    d.rent_low = rent->first;
    d.rent_high = rent->second;
  }
  d.source = row.string_or({"source"}, d.source);
  if (d.source.empty()) row.refuse("source", "is missing", "where the figures are from");
  if (auto list = row.strings({"verified"})) d.verified = std::move(*list);
  d.notes = row.string_or({"notes"}, d.notes);
  refuse_unused(row, device_fields());
}

void read_rows(std::vector<Device>& rows, std::string_view toml, const std::string& file, const Constants& constants) {
  const Document document = parse_toml(toml, file);
  const Fields top(document, file);
  const Document* list = top.find({"device"});
  if (!list || !list->is_array()) top.refuse("device", "is missing", "[[device]] tables");
  refuse_unused(top, {"device"});
  std::vector<std::string> seen;
  for (const Document& item : list->array()) {
    const Fields row(item, file);
    const std::string id = row.required_string({"id"});
    if (folded(id).empty()) row.refuse("id", "is no name");
    if (std::find(seen.begin(), seen.end(), id) != seen.end()) row.refuse("id", "appears twice");
    seen.push_back(id);
    const auto known = std::find_if(rows.begin(), rows.end(), [&](const Device& d) { return d.id == id; });
    if (known != rows.end()) {
      read_device(*known, row, constants);
    } else {
      Device fresh;
      fresh.id = id;
      read_device(fresh, row, constants);
      rows.push_back(std::move(fresh));
    }
  }
}

}  // namespace

Bytes Device::usable_bytes() const {
  if (process_bytes_low) return *process_bytes_low;
  return driver_bytes.value_or(marketing_bytes);
}

std::optional<double> Device::flops(Dtype dtype) const {
  switch (dtype) {
    case Dtype::f32:
      return flops_fp32;
    case Dtype::tf32:
      return flops_tf32;
    case Dtype::f16:
      return flops_bf16;
    case Dtype::bf16:
      return has_bf16 ? flops_bf16 : std::nullopt;
    case Dtype::f8_e4m3:
    case Dtype::f8_e5m2:
      return flops_fp8;
    case Dtype::f4:
      return flops_fp4;
    case Dtype::i8:
    case Dtype::u8:
      return flops_int8;
    default:
      return std::nullopt;
  }
}

std::optional<Link> host_link_of(std::string_view text, const Constants& constants) {
  if (text.size() >= 3 && std::isdigit(static_cast<unsigned char>(text[0])) && text[1] == 'x') {
    const std::string lanes_text(text.substr(2));
    if (lanes_text.size() > 2 || lanes_text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    const int lanes = std::stoi(lanes_text);
    const Constant* x16 = constants.find(fmt::format("pcie_x16_bytes_per_second.gen{}", text[0]));
    if (!x16 || lanes < 1 || lanes > 16) return std::nullopt;
    return Link{.kind = fmt::format("PCIe {}.0 x{}", text[0], lanes),
                .bytes_per_second = static_cast<double>(x16->value) * lanes / 16};
  }
  if (text.substr(0, 4) == "C2C " && text.size() > 8 && text.substr(text.size() - 4) == "/dir") {
    const std::string rate(text.substr(4, text.size() - 8));
    if (rate.find_first_not_of("0123456789") != std::string::npos || rate.size() > 6) return std::nullopt;
    return Link{.kind = "NVLink-C2C", .bytes_per_second = std::stod(rate) * kGiga};
  }
  return std::nullopt;
}

const Devices& Devices::builtin() {
  static const Devices loaded = [] {
    Devices out;
    try {
      out.rows_.reserve(100);
      read_rows(out.rows_, embedded::devices[0].bytes, "devices.toml", Constants::builtin());
      out.build_index("devices.toml");
    } catch (const InputError& error) {
      throw std::logic_error(error.what());
    }
    return out;
  }();
  return loaded;
}

Devices Devices::with_rows_of(std::string_view toml, const std::string& file) const {
  Devices out;
  out.rows_ = rows_;
  read_rows(out.rows_, toml, file, Constants::builtin());
  out.build_index(file);
  return out;
}

void Devices::build_index(const std::string& file) {
  index_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Device& d = rows_[i];
    index_.push_back({folded(d.id), i, false});
    index_.push_back({folded(d.name), i, false});
    for (const std::string& alias : d.aliases) index_.push_back({folded(alias), i, false});
    for (const std::string& name : d.short_names) index_.push_back({folded(name), i, true});
  }
  std::sort(index_.begin(), index_.end(), [](const Entry& a, const Entry& b) {
    if (a.folded != b.folded) return a.folded < b.folded;
    return a.row != b.row ? a.row < b.row : a.left_open < b.left_open;
  });
  // One device may be spelled the same way twice (id and name); two devices may not.
  for (size_t i = 1; i < index_.size(); ++i) {
    if (index_[i].folded == index_[i - 1].folded && index_[i].row != index_[i - 1].row) {
      throw InputError(
          {.file = file,
           .field = "name",
           .value = index_[i].folded,
           .problem = fmt::format("stands for both {} and {}", rows_[index_[i - 1].row].id, rows_[index_[i].row].id)});
    }
  }
}

DeviceMatch Devices::match(std::string_view name) const {
  const std::string wanted = folded(name);
  if (wanted.empty()) return {};
  const auto at = std::lower_bound(index_.begin(), index_.end(), wanted,
                                   [](const Entry& e, const std::string& w) { return e.folded < w; });
  if (at == index_.end() || at->folded != wanted) return {};
  return {&rows_[at->row], at->left_open};
}

std::vector<std::string_view> Devices::names() const {
  std::vector<std::string_view> out;
  for (const Device& d : rows_) {
    for (const std::string& name : d.short_names) out.push_back(name);
    out.push_back(d.id);
    out.push_back(d.name);
    for (const std::string& name : d.aliases) out.push_back(name);
  }
  return out;
}

const Device& Devices::get(std::string_view name) const {
  if (const Device* device = find(name)) return *device;
  throw InputError({.field = "device",
                    .value = std::string(name),
                    .problem = "is unknown",
                    .accepted = "a device of 'vram gpus'",
                    .near_miss = near_miss(name, names())});
}

const Device* Devices::find_driver_name(std::string_view name, Bytes driver_bytes) const {
  const std::string wanted = folded(name);
  const Device* best = nullptr;
  Bytes best_distance = 0;
  for (const Device& d : rows_) {
    const bool named = std::any_of(d.driver_names.begin(), d.driver_names.end(),
                                   [&](const std::string& n) { return folded(n) == wanted; });
    if (!named) continue;
    const Bytes distance = std::abs(d.driver_bytes.value_or(d.marketing_bytes) - driver_bytes);
    if (!best || distance < best_distance) {
      best = &d;
      best_distance = distance;
    }
  }
  return best ? best : find(name);
}

}  // namespace vram
