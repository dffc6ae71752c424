#include "api/command.h"

#include <fmt/format.h>

#include <cmath>
#include <variant>

namespace vram {
namespace {

std::string shell(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string number_text(double value, Unit unit) {
  // As people write them: 2T of tokens in all; other whole numbers in full.
  if (unit == Unit::count) {
    for (const auto& [size, suffix] : {std::pair(1e12, "T"), std::pair(1e9, "B"), std::pair(1e6, "M")}) {
      if (value >= size && std::fmod(value, size / 1000) == 0) return fmt::format("{:.12g}{}", value / size, suffix);
    }
  }
  if (value >= 1 && value < 1e15 && value == static_cast<double>(static_cast<int64_t>(value)))
    return fmt::format("{}", static_cast<int64_t>(value));
  return fmt::format("{:.12g}", value);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

}  // namespace

std::string field_text(const Field& field, const Job& job) {
  if (!field.is_set(job)) return {};
  return std::visit(
      [&](auto slot) -> std::string {
        const auto& value = job.*slot;
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          return value;
        } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          return joined(value);
        } else if constexpr (std::is_same_v<Value, bool>) {
          return value ? "true" : "false";
        } else if constexpr (std::is_same_v<Value, std::optional<std::string>>) {
          return *value;
        } else if constexpr (std::is_same_v<Value, std::optional<bool>>) {
          return *value ? "true" : "false";
        } else {
          return number_text(static_cast<double>(*value), field.unit);
        }
      },
      field.slot);
}

void copy_field(const Field& field, const Job& from, Job& to) {
  std::visit([&](auto slot) { to.*slot = from.*slot; }, field.slot);
}

std::string command_line(Verb verb, const std::string& name, const Job& job) {
  std::string out = "vram " + name;
  if (!job.model.empty()) out += " " + shell(job.model);
  for (const Field& f : fields()) {
    if (!f.of(verb) || f.name == "model" || !f.is_set(job)) continue;
    if (f.is_flag() && field_text(f, job) == "true") {
      out += " " + option_name(f.name);
    } else if (f.name == "set") {
      for (const std::string& change : job.set) out += " --set " + shell(change);
    } else {
      out += " " + option_name(f.name) + " " + shell(field_text(f, job));
    }
  }
  return out;
}

}  // namespace vram
