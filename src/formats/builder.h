#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/document.h"
#include "formats/formats.h"

namespace vram {

/// Puts a Document together from the events of any parser and holds the limits while it does so: depth, number of
/// values, bytes of strings, no key twice in one object. Every refusal is an InputError with the line.
class DocumentBuilder {
 public:
  /// What a finished value costs; an alias costs the value it stands for once more.
  struct Weight {
    size_t values = 1;
    size_t bytes = 0;  ///< of its strings and keys
    int height = 0;    ///< containers on the longest way down; 0 for a scalar
  };

  DocumentBuilder(std::string file, const Limits& limits) : file_(std::move(file)), limits_(limits) {}

  void open_object(int line) { open(Document(Document::Object(), line)); }
  void open_array(int line) { open(Document(Document::Array(), line)); }
  void close();
  /// Precondition: expects_key().
  void key(std::string name, int line);
  /// A scalar, its line set.
  void scalar(Document value);
  /// A copy of a finished value (an alias).
  void copy(const Document& value, const Weight& weight, int line);
  /// Counts a copy that is kept outside the document (an anchored value) against the limits.
  void charge(const Weight& weight, int line);

  bool expects_key() const {
    return !frames_.empty() && frames_.back().container.is_object() && !frames_.back().has_key;
  }
  /// The value that was finished last, inside its parent. Precondition: there is one.
  const Document& last() const;
  const Weight& last_weight() const { return last_weight_; }
  bool has_value() const { return has_root_; }
  size_t depth() const { return frames_.size(); }
  /// The innermost open container. Precondition: depth() > 0.
  const Document& innermost() const { return frames_.back().container; }
  /// The line of the pending key, else 0.
  int key_line() const { return !frames_.empty() && frames_.back().has_key ? frames_.back().key_line : 0; }
  /// "a.b[3].c": where the value comes that is read next.
  std::string path() const;

  Document take() { return std::move(root_); }

 private:
  struct Frame {
    Document container;
    std::vector<int> key_lines = {};
    std::unordered_map<std::string, int> seen = {};  // filled once an object is too large for a linear search
    std::string key = {};
    int key_line = 0;
    bool has_key = false;
    Weight weight = {};
  };

  void open(Document container);
  void add(Document value, const Weight& weight);
  void limit_depth(int height, int line) const;

  std::string file_;
  Limits limits_;
  std::vector<Frame> frames_;
  Document root_;
  bool has_root_ = false;
  Weight last_weight_;
  size_t values_ = 0;
  size_t bytes_ = 0;
};

}  // namespace vram
