#include "formats/json_scan.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "formats/input.h"

namespace vram {
namespace {

constexpr int kDepth = 16;

// Bytes that end the plain part of a string: the quote, the backslash and control characters.
constexpr std::array<bool, 256> kStops = [] {
  std::array<bool, 256> stops{};
  for (size_t c = 0; c < 0x20; ++c) stops[c] = true;
  stops['"'] = stops['\\'] = true;
  return stops;
}();

// The first byte that is not ASCII, eight at a time: these texts have megabytes and are ASCII nearly always.
size_t first_beyond_ascii(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_utf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

JsonScan::JsonScan(std::string_view text, const std::string& file, bool binary_file)
    : text_(text), file_(file), binary_file_(binary_file) {
  const size_t ascii = first_beyond_ascii(text);
  const size_t bad = find_invalid_utf8(text.substr(ascii));
  if (bad == std::string_view::npos) return;
  at_ = ascii + bad;
  refuse("bytes that are not UTF-8");
}

void JsonScan::refuse(std::string problem, std::string accepted) const {
  if (!binary_file_) refuse_at(file_, position_at(text_, at_), problem, std::move(accepted));
  throw InputError({.file = file_,
                    .problem = "header, byte " + std::to_string(at_) + ": " + std::move(problem),
                    .accepted = std::move(accepted)});
}

void JsonScan::space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

bool JsonScan::accept(char c) {
  space();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void JsonScan::expect(char c) {
  if (!accept(c)) refuse(at_ < text_.size() ? "is no JSON" : "the JSON ends early", std::string("'") + c + "'");
}

std::string_view JsonScan::string(std::string& scratch) {
  if (!accept('"')) refuse(at_ < text_.size() ? "is no JSON" : "the JSON ends early", "a string");
  const size_t start = at_;
  while (at_ < text_.size() && !kStops[static_cast<unsigned char>(text_[at_])]) ++at_;
  if (at_ < text_.size() && text_[at_] == '"') return text_.substr(start, at_++ - start);
  scratch.assign(text_.substr(start, at_ - start));
  for (;;) {
    if (at_ >= text_.size()) refuse("the JSON ends within a string");
    const char c = text_[at_];
    if (c == '"') {
      ++at_;
      return scratch;
    }
    if (static_cast<unsigned char>(c) < 0x20) refuse("a control character within a string");
    if (c == '\\') {
      unescape(scratch);
    } else {
      scratch += c;
      ++at_;
    }
  }
}

void JsonScan::unescape(std::string& out) {
  const auto unit = [&]() -> uint32_t {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const int digit = at_ < text_.size() ? hex_digit(text_[at_]) : -1;
      if (digit < 0) refuse("a broken escape", "four hexadecimal digits");
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    return code;
  };
  ++at_;
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  ++at_;
  switch (c) {
    case '"':
    case '\\':
    case '/':
      out += c;
      return;
    case 'b':
      out += '\b';
      return;
    case 'f':
      out += '\f';
      return;
    case 'n':
      out += '\n';
      return;
    case 'r':
      out += '\r';
      return;
    case 't':
      out += '\t';
      return;
    case 'u': {
      uint32_t code = unit();
      if (code >= 0xDC00 && code < 0xE000) refuse("half a surrogate pair");
      if (code >= 0xD800 && code < 0xDC00) {
        if (text_.substr(at_, 2) != "\\u") refuse("half a surrogate pair");
        at_ += 2;
        const uint32_t low = unit();
        if (low < 0xDC00 || low >= 0xE000) refuse("half a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
      append_utf8(code, out);
      return;
    }
    default:
      --at_;
      refuse("a broken escape");
  }
}

int64_t JsonScan::whole_number(std::string_view what) {
  space();
  const size_t start = at_;
  uint64_t value = 0;
  bool large = false;
  for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
    const auto digit = static_cast<uint64_t>(text_[at_] - '0');
    large = large || value > (static_cast<uint64_t>(INT64_MAX) - digit) / 10;
    if (!large) value = value * 10 + digit;
  }
  const char next = at_ < text_.size() ? text_[at_] : '\0';
  const bool zero_first = at_ - start > 1 && text_[start] == '0';
  if (at_ == start || zero_first || next == '.' || next == 'e' || next == 'E') {
    at_ = start;
    refuse(std::string(what) + (next == '-' ? " is negative" : " is no whole number"), "a whole number from 0 on");
  }
  if (large) {
    at_ = start;
    refuse(std::string(what) + " exceeds 2^63");
  }
  return static_cast<int64_t>(value);
}

void JsonScan::skip_number() {
  const auto digits = [&] {
    const size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == start) refuse("is no number");
    return at_ - start;
  };
  if (text_[at_] == '-') ++at_;
  const size_t first = at_;
  if (digits() > 1 && text_[first] == '0') refuse("a number with a leading zero");
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    digits();
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    digits();
  }
}

void JsonScan::skip_value(int depth) {
  if (depth > kDepth) refuse("values are nested too deeply", "at most 16 levels");
  space();
  if (at_ >= text_.size()) refuse("the JSON ends early");
  std::string scratch;
  const char c = text_[at_];
  if (c == '"') {
    string(scratch);
  } else if (accept('{')) {
    if (accept('}')) return;
    do {
      string(scratch);
      expect(':');
      skip_value(depth + 1);
    } while (accept(','));
    expect('}');
  } else if (accept('[')) {
    if (accept(']')) return;
    do skip_value(depth + 1);
    while (accept(','));
    expect(']');
  } else if (c == '-' || is_digit(c)) {
    skip_number();
  } else {
    for (std::string_view word : {"true", "false", "null"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return;
    }
    refuse("is no JSON", "a value");
  }
}

std::string_view JsonScan::value_text() {
  space();
  const size_t start = at_;
  skip_value();
  return text_.substr(start, at_ - start);
}

void JsonScan::end() {
  space();
  if (at_ < text_.size()) refuse("something follows the JSON", "nothing");
}

}  // namespace vram
