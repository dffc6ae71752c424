#include "base/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace vram {

const Document* Document::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& m : object()) {
    if (m.first == key) return &m.second;
  }
  return nullptr;
}

void Document::set(std::string key, Document value) {
  if (is_null()) value_ = Object{};
  for (Member& m : object()) {
    if (m.first == key) {
      m.second = std::move(value);
      return;
    }
  }
  object().emplace_back(std::move(key), std::move(value));
}

std::string_view Document::kind_name() const {
  switch (value_.index()) {
    case 0:
      return "null";
    case 1:
      return "true or false";
    case 2:
    case 3:
      return "a number";
    case 4:
      return "a string";
    case 5:
      return "a list";
    default:
      return "an object";
  }
}

std::string Document::to_text() const {
  if (is_null()) return "null";
  if (is_bool()) return boolean() ? "true" : "false";
  if (is_integer()) return fmt::format("{}", integer());
  if (is_real()) return fmt::format("{}", number());
  if (is_string()) return string();
  if (is_array()) {
    std::string out = "[";
    for (const Document& d : array()) {
      if (out.size() > 80) break;
      if (out.size() > 1) out += ", ";
      out += d.to_text();
    }
    return out + "]";
  }
  return "{...}";
}

bool same_values(const Document& a, const Document& b) {
  if (a.is_array() && b.is_array()) {
    return std::equal(a.array().begin(), a.array().end(), b.array().begin(), b.array().end(), same_values);
  }
  if (a.is_object() && b.is_object()) {
    return std::equal(a.object().begin(), a.object().end(), b.object().begin(), b.object().end(),
                      [](const Document::Member& x, const Document::Member& y) {
                        return x.first == y.first && same_values(x.second, y.second);
                      });
  }
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  if (a.is_bool() || b.is_bool()) return a.is_bool() && b.is_bool() && a.boolean() == b.boolean();
  if (a.is_string() || b.is_string()) return a.is_string() && b.is_string() && a.string() == b.string();
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  return a.is_real() && b.is_real() && a.number() == b.number();
}

Fields::Fields(const Document& object, std::string file, std::string prefix)
    : document_(&object), file_(std::move(file)), prefix_(std::move(prefix)) {
  if (!object.is_object()) {
    throw InputError({.file = file_,
                      .line = object.line(),
                      .field = prefix_.empty() ? std::string() : prefix_.substr(0, prefix_.size() - 1),
                      .value = object.to_text(),
                      .problem = fmt::format("is {}", object.kind_name()),
                      .accepted = "an object"});
  }
}

const Document* Fields::find(Names names) const {
  for (std::string_view name : names) {
    const Document* d = document_->find(name);
    if (d && !d->is_null()) {
      used_.emplace(name);
      return d;
    }
  }
  return nullptr;
}

void Fields::refuse(std::string_view name, std::string problem, std::string accepted) const {
  const Document* d = document_->find(name);
  throw InputError({.file = file_,
                    .line = d ? d->line() : document_->line(),
                    .field = prefix_ + std::string(name),
                    .value = d ? d->to_text() : std::string(),
                    .problem = std::move(problem),
                    .accepted = std::move(accepted)});
}

namespace {

// The name under which a field was found, for errors.
std::string_view present(const Document& object, Fields::Names names) {
  for (std::string_view name : names) {
    const Document* d = object.find(name);
    if (d && !d->is_null()) return name;
  }
  return *names.begin();
}

std::string range_text(Range r) {
  if (r.high == std::numeric_limits<int64_t>::max()) return fmt::format("a whole number from {}", r.low);
  return fmt::format("a whole number from {} to {}", r.low, r.high);
}

// 4096.0 is written by some tools for 4096.
std::optional<int64_t> whole(const Document& d) {
  if (d.is_integer()) return d.integer();
  if (d.is_real() && std::abs(d.number()) < 9e15 && d.number() == std::floor(d.number())) {
    return static_cast<int64_t>(d.number());
  }
  return std::nullopt;
}

std::string not_whole(const Document& d) {
  if (!d.is_real()) return fmt::format("is {}", d.kind_name());
  return d.number() == std::floor(d.number()) ? "is out of range" : "is not a whole number";
}

[[noreturn]] void refuse_item(const Fields& fields, std::string_view name, size_t index, const Document& item,
                              std::string problem, std::string accepted) {
  throw InputError({.file = fields.file(),
                    .line = item.line(),
                    .field = fmt::format("{}{}[{}]", fields.prefix(), name, index),
                    .value = item.to_text(),
                    .problem = std::move(problem),
                    .accepted = std::move(accepted)});
}

}  // namespace

std::optional<int64_t> Fields::integer(Names names, Range range) const {
  const Document* d = find(names);
  if (!d) return std::nullopt;
  const std::string_view name = present(*document_, names);
  const auto value = whole(*d);
  if (!value) refuse(name, not_whole(*d), range_text(range));
  if (*value < range.low || *value > range.high) refuse(name, "is out of range", range_text(range));
  return value;
}

std::optional<double> Fields::real(Names names, double low, double high) const {
  const Document* d = find(names);
  if (!d) return std::nullopt;
  const std::string_view name = present(*document_, names);
  const std::string accepted = fmt::format("a number from {} to {}", low, high);
  if (!d->is_number()) refuse(name, fmt::format("is {}", d->kind_name()), accepted);
  const double v = d->number();
  if (!(v >= low && v <= high)) refuse(name, "is out of range", accepted);
  return v;
}

std::optional<bool> Fields::boolean(Names names) const {
  const Document* d = find(names);
  if (!d) return std::nullopt;
  if (d->is_bool()) return d->boolean();
  if (d->is_integer() && (d->integer() == 0 || d->integer() == 1)) return d->integer() == 1;
  refuse(present(*document_, names), fmt::format("is {}", d->kind_name()), "true or false");
}

std::optional<std::string> Fields::string(Names names) const {
  const Document* d = find(names);
  if (!d) return std::nullopt;
  if (!d->is_string()) refuse(present(*document_, names), fmt::format("is {}", d->kind_name()), "a string");
  return d->string();
}

std::optional<std::vector<int64_t>> Fields::integers(Names names, Range range) const {
  const Document* d = find(names);
  if (!d) return std::nullopt;
  const std::string_view name = present(*document_, names);
  if (!d->is_array()) refuse(name, fmt::format("is {}", d->kind_name()), "a list of whole numbers");
  std::vector<int64_t> out;
  for (const Document& item : d->array()) {
    const auto value = whole(item);
    if (!value) refuse_item(*this, name, out.size(), item, not_whole(item), range_text(range));
    if (*value < range.low || *value > range.high) {
      refuse_item(*this, name, out.size(), item, "is out of range", range_text(range));
    }
    out.push_back(*value);
  }
  return out;
}

std::optional<std::vector<std::string>> Fields::strings(Names names) const {
  const Document* d = find(names);
  if (!d) return std::nullopt;
  const std::string_view name = present(*document_, names);
  if (!d->is_array()) refuse(name, fmt::format("is {}", d->kind_name()), "a list of strings");
  std::vector<std::string> out;
  for (const Document& item : d->array()) {
    if (!item.is_string()) {
      refuse_item(*this, name, out.size(), item, fmt::format("is {}", item.kind_name()), "a list of strings");
    }
    out.push_back(item.string());
  }
  return out;
}

int64_t Fields::required_integer(Names names, Range range) const {
  const auto value = integer(names, range);
  if (!value) {
    throw InputError({.file = file_,
                      .line = document_->line(),
                      .field = prefix_ + std::string(*names.begin()),
                      .problem = "is missing",
                      .accepted = range_text(range)});
  }
  return *value;
}

std::string Fields::required_string(Names names) const {
  auto value = string(names);
  if (!value) {
    throw InputError({.file = file_,
                      .line = document_->line(),
                      .field = prefix_ + std::string(*names.begin()),
                      .problem = "is missing",
                      .accepted = "a string"});
  }
  return *value;
}

std::optional<Fields> Fields::object(Names names) const {
  const Document* d = find(names);
  if (!d) return std::nullopt;
  const std::string_view name = present(*document_, names);
  return Fields(*d, file_, prefix_ + std::string(name) + ".");
}

std::vector<std::string> Fields::unused() const {
  std::vector<std::string> out;
  for (const auto& member : document_->object()) {
    if (!member.second.is_null() && !used_.count(member.first)) out.push_back(member.first);
  }
  return out;
}

}  // namespace vram
