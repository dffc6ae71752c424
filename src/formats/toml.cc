#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

namespace vram {
namespace {

// toml++ 3.3 asserts where hostile input gets ("[ = 1]", "a = [}"), and in release builds of some compilers takes its
// assertions for granted, which would be undefined behaviour. Here its assertions throw, in every build; except for
// those on the first character of a key and of a value, which it looks at again and reports with the line a little
// further.
constexpr void toml_assert(bool holds, std::string_view condition) {
  if (holds || condition == "is_bare_key_character(*cp) || is_string_delimiter(*cp)" ||
      condition == "is_string_delimiter(*cp) || is_bare_key_character(*cp)" ||
      condition == "!is_value_terminator(*cp)") {
    return;
  }
  throw std::logic_error("toml++: " + std::string(condition));
}

}  // namespace
}  // namespace vram

#undef NDEBUG  // else toml++ defines its assertions itself
#define TOML_ASSERT(expr) ::vram::toml_assert(static_cast<bool>(expr), #expr)
// One parser in one translation unit: no shared library to ship, and the sanitizers see it.
#undef TOML_SHARED_LIB
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "formats/builder.h"
#include "formats/formats.h"
#include "formats/input.h"

namespace vram {
namespace {

// toml++ builds its whole tree before the values can be counted one by one. TOML is what people write; far less than
// this.
constexpr size_t kTomlBytes = size_t{8} << 20;

// Checks the text before toml++ sees it. Outside strings and comments TOML is ASCII (toml++ 3.3 has undefined behaviour
// for some other characters there), and depth is bounded. Brackets make it recurse, and so do dotted keys ("a.a.a.a =
// 1") when their tables are destroyed. Only strings and comments need to be told from structure for that; the exact
// limit is held when the Document is built, so this bound may be a little loose (a point in a number counts as a
// key's).
class ShapeCheck {
 public:
  ShapeCheck(std::string_view text, const std::string& file, const Limits& limits)
      : text_(text), file_(file), most_(limits.depth + 8), most_nodes_(3 * std::min(limits.values, kTomlBytes)) {}

  void run() {
    while (at_ < text_.size()) step();
  }

 private:
  void step() {
    const char c = text_[at_];
    switch (c) {
      case '#':
        at_ = std::min(text_.find('\n', at_), text_.size());
        return;
      case '"':
      case '\'':
        skip_string(c);
        return;
      case '[':
      case '{':
        levels_ += dots_ + 1;
        open_.push_back(dots_ + 1);
        dots_ = 0;
        break;
      case ']':
      case '}':
        if (!open_.empty()) {
          levels_ -= open_.back();
          open_.pop_back();
        }
        dots_ = 0;
        break;
      case ',':
      case '\n':
        dots_ = 0;
        break;
      case '.':
        ++dots_;
        break;
      default:
        break;
    }
    if (static_cast<unsigned char>(c) >= 0x80) {
      refuse_at(file_, position_at(text_, at_), "a character that TOML allows in quotes only");
    }
    // Every value but a list's first takes one of these; a member of a table may take three ("a.b = 1.5,").
    if ((c == '=' || c == ',' || c == '.') && ++nodes_ > most_nodes_) {
      throw InputError({.file = file_, .line = position_at(text_, at_).line, .problem = "holds too many values"});
    }
    if (levels_ + dots_ > most_) {
      throw InputError({.file = file_,
                        .line = position_at(text_, at_).line,
                        .problem = fmt::format("is nested more than {} levels deep", most_ - 8)});
    }
    ++at_;
  }

  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool multi_line = text_.substr(at_, 3) == triple;
    at_ += multi_line ? 3 : 1;
    while (at_ < text_.size()) {
      if (text_[at_] == '\\' && quote == '"') {
        at_ += 2;
      } else if (multi_line && text_.substr(at_, 3) == triple) {
        at_ += 3;
        // One or two quotes may stand before the closing three: """"x""""".
        for (int more = 0; more < 2 && at_ < text_.size() && text_[at_] == quote; ++more) ++at_;
        return;
      } else if (!multi_line && (text_[at_] == quote || text_[at_] == '\n')) {
        ++at_;
        return;
      } else {
        ++at_;
      }
    }
  }

  std::string_view text_;
  const std::string& file_;
  int most_;
  size_t most_nodes_;
  size_t nodes_ = 0;
  size_t at_ = 0;
  int dots_ = 0;
  int levels_ = 0;
  std::vector<int> open_;
};

int line_of(const toml::source_region& region) { return static_cast<int>(region.begin.line); }

class Converter {
 public:
  Converter(const std::string& file, const Limits& limits) : file_(file), builder_(file, limits) {}

  void add(const toml::node& node) {
    const int line = line_of(node.source());
    switch (node.type()) {
      case toml::node_type::table:
        add_table(*node.as_table(), std::max(line, 1));
        return;
      case toml::node_type::array:
        builder_.open_array(line);
        for (const toml::node& item : *node.as_array()) add(item);
        builder_.close();
        return;
      case toml::node_type::string:
        builder_.scalar(Document(**node.as_string(), line));
        return;
      case toml::node_type::integer:
        builder_.scalar(Document(**node.as_integer(), line));
        return;
      case toml::node_type::boolean:
        builder_.scalar(Document(**node.as_boolean(), line));
        return;
      case toml::node_type::floating_point: {
        const double value = **node.as_floating_point();
        if (!std::isfinite(value)) {
          throw InputError({.file = file_,
                            .line = line,
                            .field = builder_.path(),
                            .value = std::isnan(value) ? "nan" : (value < 0 ? "-inf" : "inf"),
                            .problem = "is not a finite number",
                            .accepted = "finite numbers"});
        }
        builder_.scalar(Document(value, line));
        return;
      }
      case toml::node_type::date:
        add_text(**node.as_date(), line);
        return;
      case toml::node_type::time:
        add_text(**node.as_time(), line);
        return;
      case toml::node_type::date_time:
        add_text(**node.as_date_time(), line);
        return;
      case toml::node_type::none:
        break;
    }
  }

  Document take() { return builder_.take(); }

 private:
  // toml++ sorts its tables by name; the file's order is restored from the keys' places.
  void add_table(const toml::table& table, int line) {
    std::vector<std::pair<const toml::key*, const toml::node*>> members;
    members.reserve(table.size());
    for (auto it = table.cbegin(); it != table.cend(); ++it) members.emplace_back(&it->first, &it->second);
    std::stable_sort(members.begin(), members.end(),
                     [](const auto& a, const auto& b) { return a.first->source().begin < b.first->source().begin; });
    builder_.open_object(line);
    for (const auto& member : members) {
      builder_.key(std::string(member.first->str()), line_of(member.first->source()));
      add(*member.second);
    }
    builder_.close();
  }

  template <class Time>
  void add_text(const Time& value, int line) {
    std::ostringstream out;
    out << value;
    builder_.scalar(Document(out.str(), line));
  }

  const std::string& file_;
  DocumentBuilder builder_;
};

}  // namespace

Document parse_toml(std::string_view text, const std::string& file, const Limits& limits) {
  text = checked_text(text, file, limits);
  if (text.size() > kTomlBytes) {
    throw InputError({.file = file,
                      .problem = fmt::format("holds {} bytes of TOML", with_commas(static_cast<int64_t>(text.size()))),
                      .accepted = fmt::format("at most {}; write larger data as JSON", with_commas(kTomlBytes))});
  }
  ShapeCheck(text, file, limits).run();
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    std::string_view words = error.description();
    constexpr std::string_view kPrefix = "Error while ";
    if (words.substr(0, kPrefix.size()) == kPrefix) words.remove_prefix(kPrefix.size());
    refuse_at(file, {.line = static_cast<int>(at.line), .column = static_cast<int>(at.column)}, std::string(words));
  } catch (const std::logic_error& error) {
    throw InputError({.file = file, .problem = "is not valid TOML (" + std::string(error.what()) + ")"});
  }
  Converter converter(file, limits);
  converter.add(table);
  return converter.take();
}

}  // namespace vram
