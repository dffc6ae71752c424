#include "formats/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"

namespace vram {
namespace {

constexpr size_t kLinearSearch = 16;

std::string at_most(size_t limit) {
  return "at most " + with_commas(static_cast<int64_t>(std::min(limit, size_t{1} << 62)));
}

}  // namespace

void DocumentBuilder::limit_depth(int height, int line) const {
  const int64_t reached = static_cast<int64_t>(frames_.size()) + height;
  if (reached > limits_.depth) {
    throw InputError(
        {.file = file_, .line = line, .problem = fmt::format("is nested more than {} levels deep", limits_.depth)});
  }
}

void DocumentBuilder::charge(const Weight& weight, int line) {
  // Both sums stay far below 2^64: each addend was counted itself before, so it is within the limit.
  values_ += weight.values;
  bytes_ += weight.bytes;
  if (values_ > limits_.values) {
    throw InputError(
        {.file = file_, .line = line, .problem = "holds too many values", .accepted = at_most(limits_.values)});
  }
  if (bytes_ > limits_.bytes) {
    throw InputError(
        {.file = file_, .line = line, .problem = "grows too large", .accepted = at_most(limits_.bytes) + " bytes"});
  }
}

void DocumentBuilder::open(Document container) {
  limit_depth(1, container.line());
  charge({}, container.line());
  frames_.push_back({.container = std::move(container)});
}

void DocumentBuilder::close() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  ++frame.weight.height;
  add(std::move(frame.container), frame.weight);
}

void DocumentBuilder::key(std::string name, int line) {
  Frame& frame = frames_.back();
  const Document::Object& members = frame.container.object();
  int earlier = 0;
  if (members.size() < kLinearSearch) {
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i].first == name) earlier = frame.key_lines[i];
    }
  } else {
    if (frame.seen.empty()) {
      for (size_t i = 0; i < members.size(); ++i) frame.seen.emplace(members[i].first, frame.key_lines[i]);
    }
    const auto [found, inserted] = frame.seen.emplace(name, line);
    if (!inserted) earlier = found->second;
  }
  if (earlier > 0) {
    const std::string outer = path();
    throw InputError({.file = file_,
                      .line = line,
                      .field = outer.empty() ? name : outer + "." + name,
                      .problem = earlier == line ? fmt::format("is given twice on line {}", line)
                                                 : fmt::format("is given twice, on lines {} and {}", earlier, line)});
  }
  charge({.values = 0, .bytes = name.size()}, line);
  frame.weight.bytes += name.size();
  frame.key_lines.push_back(line);
  frame.key = std::move(name);
  frame.key_line = line;
  frame.has_key = true;
}

void DocumentBuilder::scalar(Document value) {
  const Weight weight{.values = 1, .bytes = value.is_string() ? value.string().size() : 0};
  charge(weight, value.line());
  add(std::move(value), weight);
}

void DocumentBuilder::copy(const Document& value, const Weight& weight, int line) {
  limit_depth(weight.height, line);
  charge(weight, line);
  Document same = value;
  same.set_line(line);
  add(std::move(same), weight);
}

void DocumentBuilder::add(Document value, const Weight& weight) {
  last_weight_ = weight;
  if (frames_.empty()) {
    root_ = std::move(value);
    has_root_ = true;
    return;
  }
  Frame& frame = frames_.back();
  frame.weight.values += weight.values;
  frame.weight.bytes += weight.bytes;
  frame.weight.height = std::max(frame.weight.height, weight.height);
  if (frame.container.is_object()) {
    frame.container.object().emplace_back(std::move(frame.key), std::move(value));
    frame.key.clear();
    frame.has_key = false;
  } else {
    frame.container.array().push_back(std::move(value));
  }
}

const Document& DocumentBuilder::last() const {
  if (frames_.empty()) return root_;
  const Document& parent = frames_.back().container;
  return parent.is_object() ? parent.object().back().second : parent.array().back();
}

std::string DocumentBuilder::path() const {
  std::string out;
  for (const Frame& frame : frames_) {
    if (frame.container.is_array()) {
      out += fmt::format("[{}]", frame.container.array().size());
    } else if (frame.has_key) {
      if (!out.empty()) out += '.';
      out += frame.key;
    }
  }
  return out;
}

}  // namespace vram
