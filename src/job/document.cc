// Job files: documents to jobs and back, and their JSON schema.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <variant>

#include "base/error.h"
#include "job/set.h"

namespace vram {
namespace {

// Every key that a job file may hold, for near misses.
std::vector<std::string_view> known_keys() {
  std::vector<std::string_view> out(field_groups().begin(), field_groups().end());
  for (const Field& f : fields()) {
    out.push_back(f.name);
    for (std::string_view a : f.aliases) out.push_back(a);
  }
  return out;
}

bool is_group(std::string_view key) {
  const auto groups = field_groups();
  return std::find(groups.begin(), groups.end(), key) != groups.end();
}

class Reader {
 public:
  Reader(Job& job, const std::string& file) : job_(job), file_(file) {}

  void object(const Document& document, const std::string& group) {
    for (const Document::Member& m : document.object()) member(m.first, m.second, group);
  }

 private:
  void member(const std::string& key, const Document& value, const std::string& group) {
    const std::string shown = group.empty() ? key : group + "." + key;
    const Place place{.file = file_, .line = value.line(), .shown = shown};
    if (group.empty() && is_group(key) && value.is_object()) {
      object(value, key);
      return;
    }
    const Field* field = find_field(key);
    // serving has parallel ways and training has sequences, but a group takes any field: the names are unique.
    if (!field) {
      throw InputError({.file = file_,
                        .line = value.line(),
                        .field = printable(shown),
                        .value = {},
                        .problem = "is not a key of a job file",
                        .accepted = {},
                        .near_miss = near_miss(key, known_keys())});
    }
    // `tensor_parallel: null` is how some writers say "not set".
    if (value.is_null()) return;
    const auto [previous, fresh] = seen_.emplace(field->name, shown);
    if (!fresh) {
      throw InputError({.file = file_,
                        .line = value.line(),
                        .field = shown,
                        .value = value.to_text(),
                        .problem = "is given twice (also as " + previous->second + ")"});
    }
    assign(*field, value, place);
  }

  void assign(const Field& field, const Document& value, const Place& place) {
    if (value.is_string()) {
      // An item of a list in a file is one word, but a string may hold several, as on the command line.
      set_from_text(job_, field, value.string(), place);
    } else if (value.is_number() && field.is_number()) {
      set_from_number(job_, field, value, place);
    } else if (value.is_array() && field.is_list()) {
      std::vector<std::string> words;
      for (const Document& d : value.array()) {
        if (!d.is_string()) wrong_kind(field, d, place, "an item is");
        words.push_back(d.string());
      }
      set_from_words(job_, field, words, place);
    } else if (value.is_object() && field.name == "set") {
      std::vector<std::string> words;
      for (const Document::Member& m : value.object()) {
        if (m.second.is_object() || m.second.is_array() || m.second.is_null())
          wrong_kind(field, m.second, place, "a value is");
        words.push_back(m.first + "=" + m.second.to_text());
      }
      set_from_words(job_, field, words, place);
    } else if ((value.is_bool() || value.is_integer()) &&
               (field.is_flag() || (!field.choices.empty() && !field.is_list()))) {
      // `recompute: true` and `sequence_parallel: 1`; words without such a synonym refuse it themselves.
      set_from_text(job_, field, value.to_text(), place);
    } else {
      wrong_kind(field, value, place, "is");
    }
  }

  [[noreturn]] void wrong_kind(const Field& field, const Document& value, const Place& place, std::string_view is) {
    throw InputError({.file = file_,
                      .line = value.line() > 0 ? value.line() : place.line,
                      .field = place.shown,
                      .value = value.to_text(),
                      .problem = fmt::format("{} {}", is, value.kind_name()),
                      .accepted = field.accepted()});
  }

  Job& job_;
  const std::string& file_;
  std::map<std::string_view, std::string> seen_;
};

Document::Object describe(const Field& field, Lang lang) {
  Document::Object out;
  std::string help(field.help(lang));
  if (!field.fallback.empty()) help += fmt::format(" [{}]", field.fallback);
  out.emplace_back("description", help);
  const auto choices = [&] {
    Document::Array list;
    for (std::string_view c : field.choices) list.emplace_back(std::string(c));
    for (const auto& s : field.synonyms) list.emplace_back(std::string(s.first));
    return list;
  };
  if (field.is_flag()) {
    out.emplace_back("type", "boolean");
  } else if (field.is_list()) {
    Document::Object item{{"type", "string"}};
    if (!field.choices.empty()) item.emplace_back("enum", choices());
    Document::Object list{{"type", "array"}, {"items", std::move(item)}};
    Document::Array either{std::move(list), Document::Object{{"type", "string"}}};
    if (field.name == "set") either.emplace_back(Document::Object{{"type", "object"}});
    out.emplace_back("anyOf", std::move(either));
  } else if (field.is_number()) {
    const bool whole = std::holds_alternative<std::optional<int64_t> Job::*>(field.slot);
    Document::Object number{{"type", whole ? "integer" : "number"}, {"minimum", field.low}, {"maximum", field.high}};
    out.emplace_back("anyOf", Document::Array{std::move(number), Document::Object{{"type", "string"}}});
  } else if (!field.choices.empty()) {
    out.emplace_back("enum", choices());
  } else {
    out.emplace_back("type", "string");
  }
  return out;
}

}  // namespace

void read_job(Job& job, const Document& document, const std::string& file) {
  if (!document.is_object()) {
    throw InputError({.file = file,
                      .line = document.line(),
                      .value = document.to_text(),
                      .problem = fmt::format("a job file is an object of fields, not {}", document.kind_name())});
  }
  Job read = job;
  Reader(read, file).object(document, {});
  job = std::move(read);
}

Document write_job(const Job& job) {
  Document out{Document::Object{}};
  for (const Field& f : fields()) {
    if (!f.is_set(job)) continue;
    std::string key(f.name);
    if (const auto* s = std::get_if<std::string Job::*>(&f.slot)) {
      out.set(key, job.**s);
    } else if (const auto* v = std::get_if<std::vector<std::string> Job::*>(&f.slot)) {
      Document::Array list;
      for (const std::string& word : job.**v) list.emplace_back(word);
      out.set(key, std::move(list));
    } else if (const auto* b = std::get_if<bool Job::*>(&f.slot)) {
      out.set(key, job.**b);
    } else if (const auto* o = std::get_if<std::optional<std::string> Job::*>(&f.slot)) {
      out.set(key, *(job.**o));
    } else if (const auto* i = std::get_if<std::optional<int64_t> Job::*>(&f.slot)) {
      out.set(key, *(job.**i));
    } else if (const auto* d = std::get_if<std::optional<double> Job::*>(&f.slot)) {
      out.set(key, *(job.**d));
    } else {
      out.set(key, *(job.*std::get<std::optional<bool> Job::*>(f.slot)));
    }
  }
  return out;
}

Document job_schema(Lang lang) {
  const auto reference = [](std::string_view name) {
    return Document(Document::Object{{"$ref", "#/$defs/" + std::string(name)}});
  };
  Document definitions{Document::Object{}};
  Document properties{Document::Object{}};
  std::map<std::string, Document> groups;
  for (const Field& f : fields()) {
    definitions.set(std::string(f.name), describe(f, lang));
    properties.set(std::string(f.name), reference(f.name));
    for (std::string_view a : f.aliases) properties.set(std::string(a), reference(f.name));
  }
  for (std::string_view g : field_groups()) {
    Document members{Document::Object{}};
    for (const Field& f : fields()) {
      members.set(std::string(f.name), reference(f.name));
      for (std::string_view a : f.aliases) members.set(std::string(a), reference(f.name));
    }
    Document group{
        Document::Object{{"type", "object"}, {"additionalProperties", false}, {"properties", std::move(members)}}};
    const std::string name(g);
    // A group may share its name with a field: `model: ...` is a name or an object.
    if (const Document* taken = properties.find(name)) {
      properties.set(name, Document::Object{{"anyOf", Document::Array{*taken, std::move(group)}}});
    } else {
      properties.set(name, std::move(group));
    }
  }
  return Document::Object{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                          {"title", "VRAM Ledger job"},
                          {"type", "object"},
                          {"additionalProperties", false},
                          {"properties", std::move(properties)},
                          {"$defs", std::move(definitions)}};
}

}  // namespace vram
