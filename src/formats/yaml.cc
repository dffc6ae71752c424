#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "formats/builder.h"
#include "formats/core_scalar.h"
#include "formats/formats.h"
#include "formats/input.h"

namespace vram {
namespace {

// yaml-cpp keeps every token of an unfinished flow collection in memory (some hundred bytes each, since '[...]' could
// still turn out to be a key), before it reports the first event. So text and flow indicators are bounded up front;
// YAML files that people write are far smaller, and machines write JSON.
constexpr size_t kYamlBytes = size_t{8} << 20;
constexpr size_t kFlowIndicators = 500'000;

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

class Events final : public YAML::EventHandler {
 public:
  /// `end_line`: the 0-based line of the end marker that was appended, or -1.
  Events(const std::string& file, const Limits& limits, int end_line)
      : file_(file), end_line_(end_line), builder_(file, limits) {}

  bool has_value() const { return builder_.has_value(); }
  Document take() { return builder_.take(); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    after_end_ = end_line_ >= 0 && mark.line >= end_line_;
    if (builder_.has_value() && !after_end_) {
      refuse(mark, "a second document, or text after the first one's end", "one document a file");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // Nothing but comments stands before the end marker, or before and after an end marker of the file's own.
    if (after_end_ || (builder_.depth() == 0 && end_line_ >= 0 && mark.line >= end_line_)) return;
    if (builder_.expects_key()) refuse(mark, "a key that is null", "a word; quote 'null' to use it as a key");
    Document value;
    // An omitted value is noticed at the next token; it belongs to its key's line.
    value.set_line(builder_.key_line() > 0 ? builder_.key_line() : line(mark));
    finish_scalar(std::move(value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.expects_key()) refuse(mark, "an alias as a key", "a word");
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) refuse(mark, "an alias inside the value it stands for");
    builder_.copy(found->second.value, found->second.weight, line(mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (builder_.expects_key()) {
      if (tag == "?" && text == "<<") {
        refuse(mark, "a merge key (<<), which YAML 1.2 does not have", "the members written out");
      }
      if (tag != "?" && tag != "!" && tag != std::string(kCoreTag) + "str") refuse_tag(mark, tag);
      if (anchor != YAML::NullAnchor) refuse(mark, "an anchor on a key", "anchors on values");
      builder_.key(utf8(text), line(mark));
      return;
    }
    Document value = resolve(mark, tag, text);
    value.set_line(line(mark));
    finish_scalar(std::move(value), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (builder_.expects_key()) refuse(mark, "a list as a key, or a bracket that is never closed", "a word");
    if (tag != "?" && tag != "!" && tag != std::string(kCoreTag) + "seq") refuse_tag(mark, tag);
    builder_.open_array(line(mark));
    open_.push_back(anchor);
  }
  void OnSequenceEnd() override { finish_container(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (builder_.expects_key()) refuse(mark, "an object as a key, or a brace that is never closed", "a word");
    if (tag != "?" && tag != "!" && tag != std::string(kCoreTag) + "map") refuse_tag(mark, tag);
    builder_.open_object(line(mark));
    open_.push_back(anchor);
  }
  void OnMapEnd() override { finish_container(); }

 private:
  struct Anchored {
    Document value;
    DocumentBuilder::Weight weight;
  };

  static int line(const YAML::Mark& mark) { return mark.line + 1; }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& problem, std::string accepted = {}) const {
    refuse_at(file_, {.line = mark.line + 1, .column = mark.column + 1}, problem, std::move(accepted));
  }
  [[noreturn]] void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    refuse(mark, "tag '" + printable(tag, 40) + "' is not known",
           "plain values, !!str, !!int, !!float, !!bool or !!null");
  }

  Document resolve(const YAML::Mark& mark, const std::string& tag, const std::string& text) const {
    if (tag == "!" || tag == std::string(kCoreTag) + "str") return Document(utf8(text));
    Document value = core_scalar(text);
    if (tag != "?") {
      const std::string_view name = std::string_view(tag).substr(0, kCoreTag.size()) == kCoreTag
                                        ? std::string_view(tag).substr(kCoreTag.size())
                                        : std::string_view();
      if (name == "float" && value.is_integer()) value = Document(static_cast<double>(value.integer()));
      const bool matches = (name == "int" && value.is_integer()) || (name == "float" && value.is_real()) ||
                           (name == "bool" && value.is_bool()) || (name == "null" && value.is_null());
      if (name != "int" && name != "float" && name != "bool" && name != "null") refuse_tag(mark, tag);
      if (!matches) refuse(mark, "'" + printable(text, 40) + "' does not suit its tag !!" + std::string(name));
    }
    if (value.is_real() && !std::isfinite(value.number())) {
      refuse(mark, "'" + printable(text, 40) + "' is not a finite number", "finite numbers or null");
    }
    return value;
  }

  // yaml-cpp 0.7 turns the escapes \N and \_ into the single bytes 0x85 and 0xA0. The text itself was UTF-8, so these
  // are the only invalid bytes there can be.
  static std::string utf8(std::string_view text) {
    std::string out;
    while (true) {
      const size_t bad = find_invalid_utf8(text);
      out += text.substr(0, bad);
      if (bad == std::string_view::npos) return out;
      out += '\xC2';
      out += text[bad];
      text.remove_prefix(bad + 1);
    }
  }

  void keep(YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    builder_.charge(builder_.last_weight(), builder_.last().line());
    anchored_.insert_or_assign(anchor, Anchored{builder_.last(), builder_.last_weight()});
  }
  void finish_scalar(Document value, YAML::anchor_t anchor) {
    builder_.scalar(std::move(value));
    keep(anchor);
  }
  void finish_container() {
    builder_.close();
    const YAML::anchor_t anchor = open_.back();
    open_.pop_back();
    keep(anchor);
  }

  const std::string& file_;
  int end_line_;
  bool after_end_ = false;
  DocumentBuilder builder_;
  std::vector<YAML::anchor_t> open_;
  std::unordered_map<YAML::anchor_t, Anchored> anchored_;
};

bool allowed_control(unsigned char c) { return c == '\t' || c == '\n' || c == '\r'; }

void check_size(std::string_view text, const std::string& file, const Limits& limits) {
  if (text.size() > kYamlBytes) {
    throw InputError({.file = file,
                      .problem = fmt::format("holds {} bytes of YAML", with_commas(static_cast<int64_t>(text.size()))),
                      .accepted = fmt::format("at most {}; write larger data as JSON", with_commas(kYamlBytes))});
  }
  const size_t most = std::min(kFlowIndicators, limits.values);
  size_t indicators = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) < 0x20 && !allowed_control(static_cast<unsigned char>(c))) {
      refuse_at(file, position_at(text, i), fmt::format("control character {:#04x}", static_cast<int>(c)),
                "text; write it as an escape in double quotes");
    }
    if ((c == '[' || c == '{' || c == ',') && ++indicators > most) {
      throw InputError(
          {.file = file,
           .line = position_at(text, i).line,
           .problem = "holds too many values in brackets",
           .accepted = fmt::format("at most {}; write larger data as JSON", with_commas(static_cast<int64_t>(most)))});
    }
  }
}

}  // namespace

Document parse_yaml(std::string_view text, const std::string& file, const Limits& limits) {
  text = checked_text(text, file, limits);
  check_size(text, file, limits);
  // yaml-cpp takes the file's end behind a newline for the end of a quoted string, closed or not: a file that was cut
  // off would pass. A document end marker inside a string is an error, so one is appended.
  std::string marked(text);
  int end_line = -1;
  const size_t newline = text.rfind('\n');
  if (newline != std::string_view::npos && text.find_first_not_of(" \t\r", newline + 1) == std::string_view::npos) {
    if (newline + 1 != text.size()) marked += '\n';
    end_line = static_cast<int>(std::count(marked.begin(), marked.end(), '\n'));
    marked += "...\n";
  }
  Events events(file, limits, end_line);
  try {
    std::istringstream stream{marked};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& error) {
    if (error.mark.is_null()) throw InputError({.file = file, .problem = error.msg});
    const bool at_end = end_line >= 0 && error.mark.line >= end_line;
    const Position at = at_end ? position_at(text, text.size()) : Position{error.mark.line + 1, error.mark.column + 1};
    if (error.msg == YAML::ErrorMsg::EOF_IN_SCALAR || (at_end && error.msg == YAML::ErrorMsg::DOC_IN_SCALAR)) {
      refuse_at(file, at, "the file ends inside a quoted string; was it cut off?");
    }
    if (error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW) refuse_at(file, at, "a list is not closed with ']'");
    if (error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW) refuse_at(file, at, "an object is not closed with '}'");
    refuse_at(file, at, error.msg);
  }
  if (!events.has_value()) throw InputError({.file = file, .problem = "is empty", .accepted = "a YAML value"});
  return events.take();
}

}  // namespace vram
