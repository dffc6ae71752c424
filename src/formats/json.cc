#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/builder.h"
#include "formats/formats.h"
#include "formats/input.h"

namespace vram {
namespace {

using nlohmann::json;

// Feeds the parser and lets the event handler see how far it has read: nlohmann's SAX events carry no position.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Cursor& a, const Cursor& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** reached_;
};

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

class Events final : public nlohmann::json_sax<json> {
 public:
  Events(std::string_view text, const std::string& file, const Limits& limits)
      : text_(text), file_(file), reached_(text.data()), counted_(text.data()), builder_(file, limits) {}

  const char** reached() { return &reached_; }
  Document take() { return builder_.take(); }

  bool null() override {
    Document value;
    value.set_line(line());
    builder_.scalar(std::move(value));
    return true;
  }
  bool boolean(bool value) override {
    builder_.scalar(Document(value, line()));
    return true;
  }
  bool number_integer(int64_t value) override {
    builder_.scalar(Document(value, line()));
    return true;
  }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      builder_.scalar(Document(static_cast<double>(value), line()));
    } else {
      builder_.scalar(Document(static_cast<int64_t>(value), line()));
    }
    return true;
  }
  bool number_float(double value, const std::string&) override {
    builder_.scalar(Document(value, line()));
    return true;
  }
  bool string(std::string& value) override {
    builder_.scalar(Document(std::move(value), line()));
    return true;
  }
  bool binary(json::binary_t&) override { return false; }  // only binary formats send this
  bool start_object(size_t) override {
    builder_.open_object(line());
    return true;
  }
  bool key(std::string& name) override {
    builder_.key(std::move(name), line());
    return true;
  }
  bool end_object() override {
    builder_.close();
    return true;
  }
  bool start_array(size_t) override {
    builder_.open_array(line());
    return true;
  }
  bool end_array() override {
    builder_.close();
    return true;
  }
  bool parse_error(size_t position, const std::string& last_token, const json::exception& error) override {
    refuse(position, last_token, error.what());
  }

 private:
  // The line of the last character read. A number is recognised by the character after it, which may be the newline:
  // that character stands on the number's own line, so newlines are counted up to it and without it.
  int line() {
    const char* last = reached_ > text_.data() ? reached_ - 1 : reached_;
    line_ += static_cast<int>(std::count(counted_, last, '\n'));
    counted_ = last;
    return line_;
  }

  [[noreturn]] void refuse(size_t position, const std::string& last_token, std::string_view what) const;

  std::string_view text_;
  const std::string& file_;
  const char* reached_;
  const char* counted_;
  int line_ = 1;
  DocumentBuilder builder_;
};

// The parser's own words, without its prefix and without the whole token that it read, which may be megabytes.
std::string parser_words(std::string_view what) {
  if (const size_t at = what.find(" - "); at != std::string_view::npos) what.remove_prefix(at + 3);
  std::string out(what);
  const size_t read = out.find("; last read: ");
  if (read == std::string::npos) return out;
  const size_t expected = out.rfind("; expected ");
  return out.substr(0, read) +
         (expected != std::string::npos && expected > read ? out.substr(expected) : std::string());
}

// Where the offending token starts. `position` counts the characters read, the offending one included. nlohmann's token
// text is exact for numbers and strings only; before words and punctuation it drags along what it skipped.
size_t token_start(std::string_view text, size_t position, const std::string& last_token, std::string_view what) {
  const size_t last = std::min(position > 0 ? position - 1 : 0, text.size());
  const bool exact = what.find("invalid string") != std::string_view::npos ||
                     what.find("invalid number") != std::string_view::npos ||
                     what.find("number overflow") != std::string_view::npos ||
                     what.find("unexpected string") != std::string_view::npos ||
                     what.find("unexpected number") != std::string_view::npos;
  if (exact) {
    if (position <= text.size() && last_token.size() <= position &&
        text.substr(position - last_token.size(), last_token.size()) == last_token) {
      return position - last_token.size();
    }
    return last;
  }
  // true, false and null are refused at their first wrong letter or at their end.
  size_t start = last;
  while (start > 0 && is_word(text[start - 1])) --start;
  const bool word = start < text.size() && (text[start] == 't' || text[start] == 'f' || text[start] == 'n');
  return word ? start : last;
}

void Events::refuse(size_t position, const std::string& last_token, std::string_view what) const {
  const size_t start = token_start(text_, position, last_token, what);
  const Position at = position_at(text_, start);

  if (what.find("number overflow") != std::string_view::npos) {
    refuse_at(file_, at, "number '" + printable(last_token, 40) + "' is too large", "finite numbers");
  }
  if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw InputError({.file = file_, .problem = "is empty", .accepted = "a JSON value"});
  }
  const size_t next = text_.find_first_not_of(" \t\r\n", start);
  if (start >= text_.size() || next == std::string_view::npos) {
    std::string problem = "ends before its value is complete; was it cut off?";
    if (builder_.depth() > 0) {
      problem = fmt::format("the file ends inside the {} that starts on line {}; was it cut off?",
                            builder_.innermost().is_object() ? "object" : "list", builder_.innermost().line());
    }
    refuse_at(file_, at, problem);
  }

  size_t word_end = start;
  while (word_end < text_.size() && (is_word(text_[word_end]) || (word_end == start && text_[word_end] == '-')))
    ++word_end;
  const std::string_view word = text_.substr(start, word_end - start);
  const char c = text_[start];
  if (word == "NaN" || word == "Infinity" || word == "-Infinity" || word == "nan" || word == "inf" || word == "-inf") {
    refuse_at(file_, at, "'" + std::string(word) + "' is not a finite number", "finite numbers or null");
  }
  if (word == "True" || word == "False" || word == "None") {
    refuse_at(file_, at, "'" + std::string(word) + "' is Python, not JSON", "true, false or null");
  }
  if (c == '\'') refuse_at(file_, at, "a string in single quotes", "double quotes");
  if (c == '#' || (c == '/' && start + 1 < text_.size() && (text_[start + 1] == '/' || text_[start + 1] == '*'))) {
    refuse_at(file_, at, "a comment, which JSON does not have");
  }
  const size_t before = start == 0 ? std::string_view::npos : text_.find_last_not_of(" \t\r\n", start - 1);
  if ((c == '}' || c == ']') && before != std::string_view::npos && text_[before] == ',') {
    refuse_at(file_, at, fmt::format("a comma before '{}'", c), "commas between values only");
  }
  if (builder_.depth() == 0 && builder_.has_value()) refuse_at(file_, at, "more text after the JSON value");
  if (!word.empty() && what.find("invalid literal") != std::string_view::npos) {
    refuse_at(file_, at, "unknown word '" + printable(word, 40) + "'",
              "true, false, null, a number or a string in double quotes");
  }
  if (what.find("invalid literal") != std::string_view::npos) {
    const size_t end = std::min(text_.find_first_of(" \t\r\n,]}:", start), text_.size());
    refuse_at(file_, at, "unexpected '" + printable(text_.substr(start, end - start), 40) + "'", "a JSON value");
  }
  refuse_at(file_, at, parser_words(what));
}

// Writes null over Infinity and -Infinity outside strings, padded so that every position stays what it was.
void null_infinities(std::string& text) {
  constexpr std::string_view kWord = "Infinity";
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i;
    if (in_string || c != 'I' || text.compare(i, kWord.size(), kWord) != 0) continue;
    const size_t end = i + kWord.size();
    if ((i > 0 && is_word(text[i - 1])) || (end < text.size() && is_word(text[end]))) continue;
    const size_t start = i > 0 && text[i - 1] == '-' ? i - 1 : i;
    text.replace(start, end - start, "null" + std::string(end - start - 4, ' '));
    i = end - 1;
  }
}

}  // namespace

Document parse_json(std::string_view text, const std::string& file, const Limits& limits) {
  text = checked_text(text, file, limits);
  std::string without;
  if (limits.infinity_is_null && text.find("Infinity") != std::string_view::npos) {
    without = text;
    null_infinities(without);
    text = without;
  }
  Events events(text, file, limits);
  json::sax_parse(Cursor(text.data(), events.reached()), Cursor(text.data() + text.size(), events.reached()), &events);
  return events.take();
}

}  // namespace vram
