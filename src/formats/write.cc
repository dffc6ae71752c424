#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "formats/core_scalar.h"
#include "formats/formats.h"

namespace vram {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// A string in double quotes, as both JSON and YAML read it: control characters, line separators and the byte order mark
// are escaped; invalid UTF-8 (a file name, an argument) becomes U+FFFD so that the output stays valid.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t valid = std::min(find_invalid_utf8(text), text.size());
    for (size_t i = 0; i < valid; ++i) {
      const unsigned char c = static_cast<unsigned char>(text[i]);
      const std::string_view three = text.substr(i, 3);
      switch (c) {
        case '"':
          out += "\\\"";
          continue;
        case '\\':
          out += "\\\\";
          continue;
        case '\n':
          out += "\\n";
          continue;
        case '\r':
          out += "\\r";
          continue;
        case '\t':
          out += "\\t";
          continue;
        default:
          break;
      }
      if (c < 0x20 || c == 0x7f) {
        out += fmt::format("\\u{:04x}", c);
      } else if (c == 0xC2 && i + 1 < valid && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
        out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[++i]));  // C1 controls, U+0085 among them
      } else if (three == "\xe2\x80\xa8" || three == "\xe2\x80\xa9" || three == "\xef\xbb\xbf") {
        out += three == "\xe2\x80\xa8" ? "\\u2028" : three == "\xe2\x80\xa9" ? "\\u2029" : "\\ufeff";
        i += 2;
      } else {
        out += static_cast<char>(c);
      }
    }
    if (valid == text.size()) break;
    out += kReplacement;
    text.remove_prefix(valid + 1);
  }
  return out + '"';
}

// Shortest text that reads back as the same double, with a point, so that it stays a real for every reader (YAML 1.1
// wants the point even before an exponent). Neither format has a portable infinity: null.
std::string real_text(double value) {
  if (!std::isfinite(value)) return "null";
  std::string out = fmt::format("{}", value);
  if (out.find('.') != std::string::npos) return out;
  const size_t exponent = out.find('e');
  out.insert(exponent == std::string::npos ? out.size() : exponent, ".0");
  return out;
}

template <class Text>
std::string scalar_text(const Document& d, Text string_text) {
  if (d.is_null()) return "null";
  if (d.is_bool()) return d.boolean() ? "true" : "false";
  if (d.is_integer()) return fmt::format("{}", d.integer());
  if (d.is_real()) return real_text(d.number());
  return string_text(d.string());
}

bool is_container(const Document& d) { return d.is_array() || d.is_object(); }
bool is_empty(const Document& d) { return d.is_array() ? d.array().empty() : d.object().empty(); }

void json(std::string& out, const Document& d, size_t indent) {
  if (!is_container(d)) {
    out += scalar_text(d, quoted);
    return;
  }
  if (is_empty(d)) {
    out += d.is_array() ? "[]" : "{}";
    return;
  }
  const std::string margin(indent + 2, ' ');
  std::string_view separator = "\n";
  out += d.is_array() ? '[' : '{';
  const auto item = [&](const Document& value, const std::string* key) {
    out += separator;
    separator = ",\n";
    out += margin;
    if (key) out += quoted(*key) + ": ";
    json(out, value, indent + 2);
  };
  if (d.is_array()) {
    for (const Document& value : d.array()) item(value, nullptr);
  } else {
    for (const Document::Member& member : d.object()) item(member.second, &member.first);
  }
  out += '\n';
  out.append(indent, ' ');
  out += d.is_array() ? ']' : '}';
}

// Words that YAML 1.1 readers take for booleans; quoted so that every reader gets a string.
bool is_old_boolean(std::string_view text) {
  std::string lower;
  for (char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower == "y" || lower == "n" || lower == "yes" || lower == "no" || lower == "on" || lower == "off";
}

// Plain only where nothing can be misread: words of letters, digits and a few marks, begun by a letter.
bool is_plain(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || text.size() > 200 || !letter(text[0]) || text.back() == ' ') return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool word = letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '/' || c == '+';
    if (!word && !(c == ' ' && text[i - 1] != ' ')) return false;
  }
  return core_scalar(text).is_string() && !is_old_boolean(text);
}

std::string yaml_string(const std::string& text) { return is_plain(text) ? text : quoted(text); }

// Writes `d` with the cursor behind "key:" or "-" or at the start of a line; `indent` is where its own lines begin.
void yaml(std::string& out, const Document& d, size_t indent, bool line_begun);

void yaml_key(std::string& out, const std::string& key) {
  const std::string text = yaml_string(key);
  // An implicit key ends within 1024 characters (YAML 1.2, section 7.4); longer ones are written with '?'.
  if (text.size() <= 1000) {
    out += text + ":";
  } else {
    out += "? " + text + "\n";
  }
}

void yaml_value(std::string& out, const Document& value, size_t indent) {
  if (!is_container(value) || is_empty(value)) {
    out += ' ';
    yaml(out, value, indent, true);
  } else {
    out += '\n';
    yaml(out, value, indent, false);
  }
}

void yaml(std::string& out, const Document& d, size_t indent, bool line_begun) {
  if (!is_container(d) || is_empty(d)) {
    out += is_container(d) ? (d.is_array() ? "[]" : "{}") : scalar_text(d, yaml_string);
    out += '\n';
    return;
  }
  const auto margin = [&] {
    if (!line_begun) out.append(indent, ' ');
    line_begun = false;
  };
  if (d.is_array()) {
    for (const Document& value : d.array()) {
      margin();
      out += "- ";
      yaml(out, value, indent + 2, true);
    }
    return;
  }
  for (const Document::Member& member : d.object()) {
    margin();
    yaml_key(out, member.first);
    if (out.back() == '\n') {
      out.append(indent, ' ');
      out += ':';
    }
    yaml_value(out, member.second, indent + 2);
  }
}

}  // namespace

std::string write_json(const Document& document) {
  std::string out;
  json(out, document, 0);
  return out + '\n';
}

std::string write_yaml(const Document& document) {
  std::string out;
  yaml(out, document, 0, false);
  return out;
}

}  // namespace vram
