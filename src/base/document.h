#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace vram {

/// One value of a JSON, YAML or TOML file, with the line it stands on. Objects keep the file's order.
class Document {
 public:
  using Array = std::vector<Document>;
  using Member = std::pair<std::string, Document>;
  using Object = std::vector<Member>;

  Document() = default;
  Document(bool value, int line = 0) : value_(value), line_(line) {}
  Document(int value, int line = 0) : value_(int64_t{value}), line_(line) {}
  Document(int64_t value, int line = 0) : value_(value), line_(line) {}
  Document(double value, int line = 0) : value_(value), line_(line) {}
  Document(std::string value, int line = 0) : value_(std::move(value)), line_(line) {}
  Document(std::string_view value, int line = 0) : value_(std::string(value)), line_(line) {}
  Document(const char* value, int line = 0) : value_(std::string(value)), line_(line) {}
  Document(const void*, int = 0) = delete;  ///< a pointer would silently become a boolean
  Document(Array value, int line = 0) : value_(std::move(value)), line_(line) {}
  Document(Object value, int line = 0) : value_(std::move(value)), line_(line) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value_); }
  bool is_real() const { return std::holds_alternative<double>(value_); }
  bool is_number() const { return is_integer() || is_real(); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Preconditions: the matching is_...() holds.
  bool boolean() const { return std::get<bool>(value_); }
  int64_t integer() const { return std::get<int64_t>(value_); }
  double number() const { return is_integer() ? static_cast<double>(integer()) : std::get<double>(value_); }
  const std::string& string() const { return std::get<std::string>(value_); }
  const Array& array() const { return std::get<Array>(value_); }
  const Object& object() const { return std::get<Object>(value_); }
  Array& array() { return std::get<Array>(value_); }
  Object& object() { return std::get<Object>(value_); }

  /// The member `key` of an object; null where this is no object or has no such member.
  const Document* find(std::string_view key) const;
  /// Sets or replaces a member; turns a null document into an object. Precondition: null or an object.
  void set(std::string key, Document value);

  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

  /// "null", "true or false", "a number", "a string", "a list", "an object".
  std::string_view kind_name() const;
  /// The value on one line, for error messages (shortened by the caller).
  std::string to_text() const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
  int line_ = 0;
};

/// Whether two documents hold the same values of the same kinds in the same order; lines do not count.
bool same_values(const Document& a, const Document& b);

/// Inclusive limits of an integer field.
struct Range {
  int64_t low = 0;
  int64_t high = std::numeric_limits<int64_t>::max();
};

/// Typed reading of one object. Every refusal names file, line, field, value and what is accepted. Several names may
/// stand for one field; the first present one wins. Null members count as absent. Remembers what was read.
class Fields {
 public:
  using Names = std::initializer_list<std::string_view>;

  /// `object` must outlive this and be an object, else InputError. `prefix` ("text_config.") precedes names in errors.
  Fields(const Document& object, std::string file, std::string prefix = {});

  const Document* find(Names names) const;
  bool has(Names names) const { return find(names) != nullptr; }
  std::optional<int64_t> integer(Names names, Range range = {}) const;
  std::optional<double> real(Names names, double low, double high) const;
  std::optional<bool> boolean(Names names) const;
  std::optional<std::string> string(Names names) const;
  std::optional<std::vector<int64_t>> integers(Names names, Range range = {}) const;
  std::optional<std::vector<std::string>> strings(Names names) const;

  int64_t integer_or(Names names, int64_t fallback, Range range = {}) const {
    return integer(names, range).value_or(fallback);
  }
  bool boolean_or(Names names, bool fallback) const { return boolean(names).value_or(fallback); }
  std::string string_or(Names names, std::string fallback) const {
    auto s = string(names);
    return s ? *s : std::move(fallback);
  }
  /// InputError "is missing" where absent.
  int64_t required_integer(Names names, Range range = {}) const;
  std::string required_string(Names names) const;
  /// A nested object; nullopt where absent, InputError where it is something else.
  std::optional<Fields> object(Names names) const;

  [[noreturn]] void refuse(std::string_view name, std::string problem, std::string accepted = {}) const;

  const Document& document() const { return *document_; }
  const std::string& file() const { return file_; }
  const std::string& prefix() const { return prefix_; }
  /// Names that were read and present (without prefix), sorted.
  const std::set<std::string, std::less<>>& used() const { return used_; }
  /// Members that nobody asked for, in the file's order. Null members count as absent here as well.
  std::vector<std::string> unused() const;

 private:
  const Document* document_;
  std::string file_;
  std::string prefix_;
  mutable std::set<std::string, std::less<>> used_;
};

}  // namespace vram
