#include "report/console.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/text.h"

namespace vram {
namespace {

constexpr std::array<std::string_view, 8> kEighths = {"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
constexpr std::array<std::string_view, 8> kLevels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kAsciiLevels = "_.:-=+*#";

int width_of(std::string_view text) { return static_cast<int>(display_width(text)); }

std::string spaces(int n) { return std::string(static_cast<size_t>(std::max(n, 0)), ' '); }

std::string repeat(std::string_view piece, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += piece;
  return out;
}

std::string_view escape(Tone tone) {
  switch (tone) {
    case Tone::plain:
      return "";
    case Tone::strong:
      return "\033[1m";
    case Tone::dim:
      return "\033[2m";
    case Tone::good:
      return "\033[32m";
    case Tone::bad:
      return "\033[31m";
    case Tone::warn:
      return "\033[33m";
    case Tone::accent:
      return "\033[36m";
  }
  return "";
}

// The smallest piece of text that is never broken.
struct Atom {
  std::string text;
  int width = 0;
  bool space_before = false;
};

// Punctuation that may not begin a line, and that may not end one (the short form of the Chinese typesetting rules).
bool closes(utf8proc_int32_t c) {
  switch (c) {
    case 0x3001:
    case 0x3002:
    case 0xFF0C:
    case 0xFF1A:
    case 0xFF1B:
    case 0xFF01:
    case 0xFF1F:
    case 0xFF09:
    case 0x300B:
    case 0x300D:
    case 0x300F:
    case 0x3011:
    case 0x201D:
    case 0x2019:
    case 0xFF05:
    case 0x2026:
    case ',':
    case '.':
    case ':':
    case ';':
    case '!':
    case '?':
    case ')':
    case ']':
    case '%':
      return true;
    default:
      return false;
  }
}

bool opens(utf8proc_int32_t c) {
  switch (c) {
    case 0xFF08:
    case 0x300A:
    case 0x300C:
    case 0x300E:
    case 0x3010:
    case 0x201C:
    case 0x2018:
    case '(':
    case '[':
      return true;
    default:
      return false;
  }
}

std::vector<Atom> atoms_of(std::string_view text) {
  std::vector<Atom> out;
  bool space = false;
  bool joined = false;  // the next character continues the last atom
  for (size_t i = 0; i < text.size();) {
    utf8proc_int32_t code = 0;
    auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + i,
                              static_cast<utf8proc_ssize_t>(text.size() - i), &code);
    if (n <= 0) {
      n = 1;
      code = 0xFFFD;
    }
    const std::string_view piece = text.substr(i, static_cast<size_t>(n));
    i += static_cast<size_t>(n);
    if (code == ' ' || code == '\n' || code == '\t') {
      space = true;
      joined = false;
      continue;
    }
    const int columns = width_of(piece);
    const bool wide = columns == 2;
    // A wide character begins an atom of its own, unless punctuation binds it to its neighbour.
    if (joined && !out.empty() && !space && (!wide || closes(code) || columns == 0)) {
      out.back().text += piece;
      out.back().width += columns;
    } else if (joined && !out.empty() && !space && opens(code)) {
      out.push_back({std::string(piece), columns, false});
    } else if (!out.empty() && !space && closes(code)) {
      out.back().text += piece;
      out.back().width += columns;
    } else {
      out.push_back({std::string(piece), columns, space && !out.empty()});
    }
    space = false;
    joined = !wide || opens(code);
    if (wide && opens(code)) {
      // The opening mark takes the next character with it, wide or not.
      if (i < text.size() && text[i] != ' ') {
        utf8proc_int32_t next = 0;
        const auto m = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + i,
                                        static_cast<utf8proc_ssize_t>(text.size() - i), &next);
        if (m > 0) {
          const std::string_view follower = text.substr(i, static_cast<size_t>(m));
          out.back().text += follower;
          out.back().width += width_of(follower);
          i += static_cast<size_t>(m);
          joined = width_of(follower) != 2;
        }
      }
    }
  }
  return out;
}

std::string fill(const std::vector<Atom>& atoms, int width, int first, int rest) {
  std::string out;
  std::string line = spaces(first);
  int used = first;
  bool fresh = true;
  for (const Atom& a : atoms) {
    const int gap = a.space_before && !fresh ? 1 : 0;
    if (!fresh && used + gap + a.width > width) {
      out += line + '\n';
      line = spaces(rest);
      used = rest;
      fresh = true;
    }
    if (!fresh && gap == 1) {
      line += ' ';
      ++used;
    }
    line += a.text;
    used += a.width;
    fresh = false;
  }
  return out + line + '\n';
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::string trimmed_line(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line + '\n';
}

}  // namespace

std::string paint(const Style& style, Tone tone, std::string_view text) {
  if (!style.color || tone == Tone::plain || text.empty()) return std::string(text);
  return std::string(escape(tone)) + std::string(text) + "\033[0m";
}

std::string_view separator(const Style& style) { return style.unicode ? " · " : " | "; }

std::string to_ascii(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 36> kMap = {
      {{"·", "*"},     {"×", "x"},  {"→", "->"},     {"…", "..."}, {"–", "-"}, {"—", "-"}, {"−", "-"}, {"±", "+/-"},
       {"≤", "<="},    {"≥", ">="}, {"≈", "~"},      {"▶", ">"},   {"░", "."}, {"─", "-"}, {"▏", "|"}, {"▎", "|"},
       {"▍", "|"},     {"▌", "#"},  {"▋", "#"},      {"▊", "#"},   {"▉", "#"}, {"█", "#"}, {"▁", "_"}, {"▂", "."},
       {"▃", ":"},     {"▄", "-"},  {"▅", "="},      {"▆", "+"},   {"▇", "*"}, {"▲", "^"}, {"▼", "v"}, {"²", "^2"},
       {"⌈", "ceil("}, {"⌉", ")"},  {"⌊", "floor("}, {"⌋", ")"}}};
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      out += text[i++];
      continue;
    }
    const auto found = std::find_if(
        kMap.begin(), kMap.end(), [&](const auto& entry) { return text.substr(i, entry.first.size()) == entry.first; });
    if (found == kMap.end()) {
      out += text[i++];
    } else {
      out += found->second;
      i += found->first.size();
    }
  }
  return out;
}

std::string wrap(std::string_view text, int width, int first, int rest) {
  // Kept as it is where it fits: breaking folds the spaces that set things apart.
  if (first + width_of(text) <= width && text.find_first_of("\n\t") == text.npos) {
    return spaces(first) + std::string(text) + '\n';
  }
  return fill(atoms_of(text), width, first, rest);
}

std::string paragraph(const Style& style, std::string_view text, int first, int rest) {
  return wrap(text, style.width, first, rest);
}

std::string answer_line(const Style& style, Tone tone, std::string_view text) {
  const std::string lines = wrap(text, style.width);
  if (!style.color) return lines;
  std::string out;
  for (const std::string& line : lines_of(lines)) {
    out += std::string("\033[1m") + std::string(escape(tone)) + line + "\033[0m\n";
  }
  return out;
}

std::string heading(const Style& style, std::string_view text) {
  return '\n' + paint(style, Tone::strong, text) + '\n';
}

namespace {

// Items behind `line`, which takes `used` columns already; continued lines are indented by four.
std::string flow(const Style& style, std::string line, int used, const std::vector<std::string>& items) {
  const std::string_view between = separator(style);
  std::string out;
  bool fresh = true;
  for (const std::string& item : items) {
    const int need = width_of(item);
    if (!fresh && used + 3 + need > style.width) {
      out += line + '\n';
      line = spaces(4);
      used = 4;
      fresh = true;
    }
    if (!fresh) {
      line += between;
      used += 3;
    }
    if (fresh && used + need > style.width) {
      // Longer than a line: broken at its own spaces.
      const std::vector<std::string> parts = lines_of(wrap(item, style.width, used, 6));
      line += parts.front().substr(static_cast<size_t>(used));
      for (size_t i = 1; i < parts.size(); ++i) {
        out += line + '\n';
        line = parts[i];
      }
      used = parts.size() > 1 ? width_of(line) : used + need;
    } else {
      line += item;
      used += need;
    }
    fresh = false;
  }
  return out + line + '\n';
}

}  // namespace

std::string fact_line(const Style& style, const std::vector<std::string>& items) {
  return items.empty() ? std::string() : flow(style, {}, 0, items);
}

std::string item_line(const Style& style, std::string_view title, const std::vector<std::string>& items) {
  if (items.empty()) return {};
  // The title's own punctuation decides whether a space follows: "Next:" does, a full-width colon does not.
  const bool full_width = title.size() >= 3 && title.substr(title.size() - 3) == "：";
  return flow(style, "  " + paint(style, Tone::dim, title) + (full_width ? "" : " "),
              2 + width_of(title) + (full_width ? 0 : 1), items);
}

std::string moves_most_line(const Style& style, const std::vector<std::string>& items) {
  return item_line(style, text(style.lang, "report.moves_most"), items);
}

std::string next_line(const Style& style, const std::vector<std::string>& commands) {
  return item_line(style, text(style.lang, "report.next"), commands);
}

std::string gib_with_range(Bytes value, Bytes low, Bytes high, int digits) {
  const std::string shown = format_gib(value, digits);
  if (low >= high) return shown;
  // Ends in the unit of the value, so that the three can be compared; the unit is printed once.
  const double scale = std::abs(value) >= kGiB / 10 ? kGiB : kMiB;
  const std::string unit = std::abs(value) >= kGiB / 10 ? " GiB" : " MiB";
  const std::string middle = format_number(static_cast<double>(value) / scale, digits);
  const std::string left = format_number(static_cast<double>(low) / scale, digits);
  const std::string right = format_number(static_cast<double>(high) / scale, digits);
  if (left == right) return shown;
  return middle + unit + " (" + left + "-" + right + ")";
}

std::string bar(const Style& style, double value, double limit, int columns, Track track) {
  const int room = std::max(columns, 2) - 1;
  if (!(value > 0) || !(limit > 0)) {
    return track == Track::shown && limit > 0 ? repeat(style.unicode ? "░" : ".", room) + ' ' : spaces(room + 1);
  }
  if (value > limit) return repeat(style.unicode ? "█" : "#", room) + (style.unicode ? "▶" : ">");
  const double share = value / limit;
  std::string out;
  int used = 0;
  if (style.unicode) {
    const int eighths = std::max(1, static_cast<int>(std::lround(share * room * 8)));
    out = repeat(kEighths[7], eighths / 8);
    used = eighths / 8;
    if (eighths % 8 != 0) {
      out += kEighths[static_cast<size_t>(eighths % 8 - 1)];
      ++used;
    }
  } else {
    used = std::max(1, static_cast<int>(std::lround(share * room)));
    out = repeat("#", used);
  }
  const std::string_view empty = track == Track::none ? " " : style.unicode ? "░" : ".";
  return out + repeat(empty, room - used) + ' ';
}

std::string sparkline(const Style& style, std::span<const double> values, double low, double high, int columns) {
  if (values.empty() || columns <= 0) return {};
  const size_t n = std::min(values.size(), static_cast<size_t>(columns));
  std::string out;
  for (size_t i = 0; i < n; ++i) {
    const size_t begin = i * values.size() / n;
    const size_t end = std::max(begin + 1, (i + 1) * values.size() / n);
    const double top = *std::max_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                         values.begin() + static_cast<std::ptrdiff_t>(end));
    const double share = high > low ? std::clamp((top - low) / (high - low), 0.0, 1.0) : 0.0;
    const size_t level = std::min<size_t>(7, static_cast<size_t>(share * 8));
    if (style.unicode) {
      out += kLevels[level];
    } else {
      out += kAsciiLevels[level];
    }
  }
  return out;
}

Table& Table::row(std::vector<Cell> cells) {
  if (cells.size() > columns_.size()) throw std::logic_error("a table row has more cells than columns");
  cells.resize(columns_.size());
  rows_.push_back({Kind::cells, std::move(cells)});
  return *this;
}

Table& Table::rule() {
  rows_.push_back({Kind::rule, {}});
  return *this;
}

Table& Table::note(std::string text) {
  rows_.push_back({Kind::note, {Cell(std::move(text))}});
  return *this;
}

std::string Table::render(const Style& style) const {
  constexpr int kGap = 2;
  std::vector<int> widths;
  bool titled = false;
  for (const Column& c : columns_) {
    widths.push_back(width_of(c.title));
    titled = titled || !c.title.empty();
  }
  for (const Row& r : rows_) {
    for (size_t i = 0; i < r.cells.size() && r.kind == Kind::cells; ++i) {
      widths[i] = std::max(widths[i], width_of(r.cells[i].text));
    }
  }
  int total = indent_ + kGap * (static_cast<int>(columns_.size()) - 1);
  for (int w : widths) total += w;
  // Only the last left-aligned column holds prose; it gives way.
  int flexible = -1;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].align == Align::left) flexible = static_cast<int>(i);
  }
  if (total > style.width && flexible >= 0) {
    int& w = widths[static_cast<size_t>(flexible)];
    const int shrunk =
        std::max({w - (total - style.width), 10, width_of(columns_[static_cast<size_t>(flexible)].title)});
    total -= w - std::min(w, shrunk);
    w = std::min(w, shrunk);
  }

  auto put = [&](const std::vector<Cell>& cells, Tone all) {
    std::vector<std::string> wrapped;
    if (flexible >= 0) {
      const auto f = static_cast<size_t>(flexible);
      if (width_of(cells[f].text) > widths[f]) {
        wrapped = lines_of(wrap(cells[f].text, widths[f]));
      } else {
        wrapped = {cells[f].text};
      }
    }
    std::string out;
    for (size_t line = 0; line == 0 || line < wrapped.size(); ++line) {
      std::string row = spaces(indent_);
      for (size_t i = 0; i < cells.size(); ++i) {
        if (i > 0) row += spaces(kGap);
        std::string text;
        if (static_cast<int>(i) == flexible) {
          text = wrapped[line];
        } else if (line == 0) {
          text = cells[i].text;
        }
        const int gap = widths[i] - width_of(text);
        const std::string painted = paint(style, cells[i].tone == Tone::plain ? all : cells[i].tone, text);
        row += columns_[i].align == Align::right ? spaces(gap) + painted : painted + spaces(gap);
      }
      out += trimmed_line(std::move(row));
    }
    return out;
  };

  std::string out;
  if (titled) {
    std::vector<Cell> titles;
    for (const Column& c : columns_) titles.emplace_back(c.title);
    out += put(titles, Tone::dim);
  }
  for (const Row& r : rows_) {
    switch (r.kind) {
      case Kind::cells:
        out += put(r.cells, Tone::plain);
        break;
      case Kind::rule:
        out += spaces(indent_) + repeat(style.unicode ? "─" : "-", std::min(total, style.width) - indent_) + '\n';
        break;
      case Kind::note: {
        const int at = indent_ + (columns_.size() > 1 ? widths[0] + kGap : 0);
        for (const std::string& line : lines_of(wrap(r.cells[0].text, style.width, at, at + 2))) {
          out += paint(style, Tone::dim, line) + '\n';
        }
        break;
      }
    }
  }
  return out;
}

std::string tree(const Style& style, std::span<const TreeLine> lines, double limit, int bar_columns) {
  int label = 0;
  int amount = 0;
  for (const TreeLine& l : lines) {
    label = std::max(label, 2 * l.depth + width_of(l.label));
    amount = std::max(amount, width_of(l.amount));
  }
  const int bar_at = 2 + label + 2;
  const int note_at = bar_at + bar_columns + 1 + amount + 3;
  std::string out;
  for (const TreeLine& l : lines) {
    if (l.rule_above) {
      out += spaces(bar_at) + repeat(style.unicode ? "─" : "-", bar_columns + 1 + amount) + '\n';
    }
    const std::string name = spaces(2 * l.depth) + l.label;
    std::string line = "  " + paint(style, l.tone, name) + spaces(label - width_of(name)) + "  ";
    line += l.value < 0 ? spaces(bar_columns)
                        : paint(style, Tone::accent, bar(style, l.value, limit, bar_columns, Track::none));
    line += ' ' + spaces(amount - width_of(l.amount)) + paint(style, l.tone, l.amount);
    if (!l.note.empty()) {
      // A narrow terminal leaves no column for notes: they go under the line.
      if (style.width - note_at >= 16) {
        const std::vector<std::string> parts = lines_of(wrap(l.note, style.width - note_at));
        line += "   " + parts[0];
        for (size_t i = 1; i < parts.size(); ++i) {
          out += trimmed_line(std::move(line));
          line = spaces(note_at) + parts[i];
        }
      } else {
        out += trimmed_line(std::move(line));
        line = wrap(l.note, style.width, bar_at, bar_at);
        line.pop_back();
      }
    }
    out += trimmed_line(std::move(line));
    if (!style.explain) continue;
    for (const std::string& e : l.explanation) {
      for (const std::string& part : lines_of(wrap(e, style.width, 4 + 2 * l.depth, 6 + 2 * l.depth))) {
        out += paint(style, Tone::dim, part) + '\n';
      }
    }
  }
  return out;
}

}  // namespace vram
