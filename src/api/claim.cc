#include "api/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

#include "api/claim_grammar.h"
#include "api/claim_slots.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "formats/formats.h"
#include "model/model.h"

namespace vram {

namespace embedded {
extern const File claims[];
}

namespace {

constexpr size_t kLongestClaim = 500;
constexpr const char* kFile = "data/claims.toml";

struct Data {
  ClaimBook book;
  Grammar grammar;
  std::map<std::string, int64_t, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> fold;
};

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> out;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) out.emplace_back();
    out.back() += c;
  }
  return out;
}

std::vector<Meaning> meanings(const std::vector<std::string>& sets) {
  std::vector<Meaning> out;
  for (const std::string& s : sets) {
    const size_t equals = s.find('=');
    if (equals == std::string::npos) throw std::logic_error("'" + s + "' sets nothing");
    out.push_back({s.substr(0, equals), s.substr(equals + 1)});
  }
  return out;
}

const Document::Array& rows_of(const Document& document, const char* key) {
  const Document* found = document.find(key);
  if (!found || !found->is_array()) throw std::logic_error(std::string("no rows ") + key);
  return found->array();
}

void require_all_used(const Fields& f) {
  if (!f.unused().empty()) throw std::logic_error("unknown key " + f.unused().front() + " in " + kFile);
}

ConceptClaim::Figure figure_of(const Document& row) {
  const Fields f(row, kFile);
  ConceptClaim::Figure figure;
  figure.name = f.required_string({"name"});
  figure.verb = f.required_string({"verb"});
  if (const Document* job = f.find({"job"})) figure.job = *job;
  figure.words = f.strings({"words"}).value_or(std::vector<std::string>{});
  figure.path = f.required_string({"path"});
  figure.unit = f.required_string({"unit"});
  require_all_used(f);
  return figure;
}

ConceptClaim concept_of(const Fields& f) {
  ConceptClaim c;
  c.id = f.required_string({"id"});
  c.verdict = f.required_string({"verdict"});
  if (c.verdict != "false" && c.verdict != "doubtful") throw std::logic_error(c.id + ": no verdict of a row");
  c.claim_en = f.required_string({"claim_en"});
  c.claim_zh = f.required_string({"claim_zh"});
  c.truth_en = f.required_string({"truth_en"});
  c.truth_zh = f.required_string({"truth_zh"});
  c.source = f.required_string({"source"});
  if (const Document* figures = f.find({"figures"})) {
    for (const Document& row : figures->array()) c.figures.push_back(figure_of(row));
  }
  return c;
}

void add_concepts(Data& data, const Document& document) {
  for (const Document& row : rows_of(document, "claim")) {
    const Fields f(row, kFile);
    ConceptClaim c = concept_of(f);
    const std::string place = std::to_string(data.book.concepts.size());
    std::vector<std::string> wrong = f.strings({"wrong"}).value_or(std::vector<std::string>{});
    const std::vector<std::string> right = f.strings({"right"}).value_or(std::vector<std::string>{});
    if (wrong.empty()) throw std::logic_error(c.id + " has no patterns");
    data.grammar.sentence(c.id, wrong, {{"row", place}});
    if (!right.empty()) data.grammar.sentence(c.id, right, {{"row", place}, {"right", "true"}});
    require_all_used(f);
    data.book.concepts.push_back(std::move(c));
  }
}

void add_sentences(Data& data, const Document& document) {
  for (const Document& row : rows_of(document, "sentence")) {
    const Fields f(row, kFile);
    ClaimForm form;
    form.id = f.required_string({"id"});
    form.kind = f.required_string({"kind"});
    form.shows_en = f.required_string({"shows_en"});
    form.shows_zh = f.required_string({"shows_zh"});
    form.example_en = f.required_string({"example_en"});
    form.example_zh = f.required_string({"example_zh"});
    data.grammar.sentence(form.id, f.strings({"is"}).value(), {{"kind", form.kind}});
    require_all_used(f);
    data.book.forms.push_back(std::move(form));
  }
}

std::unique_ptr<Data> load() {
  auto data = std::make_unique<Data>();
  const Document document = parse_toml(embedded::claims[0].bytes, kFile);
  for (const auto& [word, value] : document.find("numbers")->object()) data->numbers.emplace(word, value.integer());
  const Fields fold(*document.find("fold"), kFile);
  const auto from = characters(fold.required_string({"from"})), to = characters(fold.required_string({"to"}));
  if (from.size() != to.size()) throw std::logic_error("[fold] pairs no characters");
  for (size_t i = 0; i < from.size(); ++i) data->fold.emplace(from[i], to[i]);
  for (const Document& row : rows_of(document, "stand_in")) {
    const Fields f(row, kFile);
    data->book.stand_ins.push_back(
        {parse_integer(f.required_string({"size"}), Unit::count, "size"), f.required_string({"model"})});
  }
  for (const Document& row : rows_of(document, "rule")) {
    const Fields f(row, kFile);
    data->grammar.rule(f.required_string({"name"}), f.strings({"is"}).value(),
                       meanings(f.strings({"sets"}).value_or(std::vector<std::string>{})));
    require_all_used(f);
  }
  // What is said of memory in general comes first: "QLoRA fits 65B on 48 GB by offloading" is about offloading.
  add_concepts(*data, document);
  add_sentences(*data, document);
  data->grammar.close(claim_slot_names());
  return data;
}

const Data& builtin() {
  static const std::unique_ptr<Data> data = load();
  return *data;
}

bool has_chinese(std::string_view text) {
  // U+3400 .. U+9FFF begin with the bytes E3 90 .. E9 BF.
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto b = static_cast<unsigned char>(c);
    return b >= 0xE3 && b <= 0xE9;
  });
}

std::string examples(bool chinese) {
  std::string out;
  for (const ClaimForm& f : builtin().book.forms) {
    if (out.find('"') != std::string::npos) out += ", ";
    out += '"' + (chinese ? f.example_zh : f.example_en) + '"';
  }
  return out;
}

// The word at `at`, as far as a person would see one.
std::string word_at(std::string_view text, size_t at) {
  size_t end = at;
  if (end < text.size() && static_cast<unsigned char>(text[end]) >= 0x80) {
    for (int i = 0; i < 4 && end < text.size() && static_cast<unsigned char>(text[end]) >= 0xC0; ++i) {
      do ++end;
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
    }
  } else {
    while (end < text.size() && text[end] != ' ' && static_cast<unsigned char>(text[end]) < 0x80) ++end;
  }
  return std::string(text.substr(at, end - at));
}

[[noreturn]] void not_understood(std::string_view claim, std::string_view sentence, const Grammar::Result& r,
                                 const Devices& devices) {
  const Data& data = builtin();
  const bool chinese = has_chinese(claim);
  const auto form = std::find_if(data.book.forms.begin(), data.book.forms.end(),
                                 [&](const ClaimForm& f) { return f.id == r.nearest; });
  const std::string shows = [&] {
    const ClaimForm& f = form == data.book.forms.end() ? data.book.forms.front() : *form;
    return (chinese ? f.shows_zh : f.shows_en) + ", ";
  }();
  const std::string word = word_at(sentence, r.furthest);
  std::vector<std::string_view> known;
  for (const std::string& e : r.expected) {
    if (e == "<model>") {
      for (const CatalogueEntry& c : Catalogue::builtin().entries()) {
        known.push_back(c.id);
        known.insert(known.end(), c.aliases.begin(), c.aliases.end());
      }
    } else if (e == "<device>" || e == "<device_one>" || e == "<canonical>") {
      for (std::string_view name : devices.names()) known.push_back(name);
    } else if (!e.empty() && e.front() != '<') {
      known.push_back(e);
    }
  }
  // Of "4xH10" the device is what was mistyped.
  std::string wanted = word;
  const size_t x = wanted.rfind('x');
  if (x != std::string::npos && x > 0 && wanted.find_first_not_of("0123456789x") == x + 1) wanted.erase(0, x + 1);
  const std::string near = word.empty() ? std::string() : near_miss(wanted, known);
  throw InputError({.field = "claim",
                    .value = std::string(claim),
                    .problem = word.empty() ? "is not understood: something is missing at its end"
                                            : "is not understood from '" + printable(word) + "' on",
                    .accepted = shows + "for example " + examples(chinese),
                    .near_miss = near,
                    .hint = "vram check --list shows every form"});
}

[[noreturn]] void refuse(std::string_view claim, std::string problem, std::string accepted = {}) {
  throw InputError({.field = "claim",
                    .value = std::string(claim),
                    .problem = std::move(problem),
                    .accepted = std::move(accepted),
                    .hint = "vram check --list shows every form"});
}

// A claim may name a task twice ("fine-tuned with LoRA"): the more special one counts where they agree.
void add_task(Claim& c, const std::string& task) {
  static const std::vector<std::string> general_first = {"run", "serve", "tune", "full", "pretrain", "lora", "qlora"};
  const auto rank = [&](const std::string& t) {
    return std::find(general_first.begin(), general_first.end(), t) - general_first.begin();
  };
  if (c.task.empty() || c.task == "run") {
    if (task != "run" || c.task.empty()) c.task = task;
    return;
  }
  if (task == "run" || task == c.task) return;
  if ((c.task == "serve") != (task == "serve")) refuse(c.text, "says both inference and training");
  if (c.task != "qlora" && task != "qlora" && c.task != "lora" && task != "lora" && c.task != "tune" &&
      task != "tune") {
    // "train from scratch" says train as well.
    c.task = "pretrain";
    return;
  }
  if (rank(task) > rank(c.task)) c.task = task;
}

template <class T>
void set_once(const Claim& c, std::optional<T>& field, T value, const char* what) {
  if (field && *field != value) refuse(c.text, std::string("says two things about ") + what);
  field = std::move(value);
}

void set_word(const Claim& c, std::string& field, const std::string& value, const char* what) {
  if (!field.empty() && field != value) refuse(c.text, std::string("says two things about ") + what);
  field = value;
}

void add_meaning(Claim& c, const Meaning& m) {
  const auto number = [&] { return static_cast<int64_t>(std::stoll(m.value)); };
  if (m.key == "kind") {
    c.kind = m.value == "amount" ? Claim::Kind::amount : Claim::Kind::capacity;
  } else if (m.key == "row") {
    c.kind = Claim::Kind::concept_row;
    c.row = static_cast<size_t>(number());
  } else if (m.key == "right") {
    c.right = true;
  } else if (m.key == "model") {
    c.size_only = m.value.rfind("size:", 0) == 0;
    set_word(c, c.model, m.value.substr(m.value.find(':') + 1), "the model");
  } else if (m.key == "negated") {
    c.negated = !c.negated;
  } else if (m.key == "need") {
    const Need need = m.value == "only" ? Need::only : Need::at_least;
    if (c.need != Need::none && c.need != need) refuse(c.text, "says both at least and at most");
    c.need = need;
  } else if (m.key == "canonical") {
    std::string rest = m.value;
    std::vector<int64_t> counts;
    for (size_t x = rest.find('x');
         x != std::string::npos && counts.size() < 2 && rest.find_first_not_of("0123456789") == x; x = rest.find('x')) {
      counts.push_back(std::stoll(rest.substr(0, x)));
      rest.erase(0, x + 1);
    }
    if (counts.size() == 2) c.nodes = counts.front();
    c.count = counts.back();
    c.device = rest;
  } else if (m.key == "nodes") {
    c.nodes = number();
  } else if (m.key == "count") {
    c.count = number();
  } else if (m.key == "device" || m.key == "device_one" || m.key == "memory") {
    set_word(c, c.device, m.value, "the cards");
  } else if (m.key == "task") {
    add_task(c, m.value);
  } else if (m.key == "offload") {
    if (!c.offload.empty() && c.offload != "no" && m.value == "yes") return;
    if (c.offload == "yes" && m.value != "no") c.offload.clear();
    set_word(c, c.offload, m.value, "offload");
  } else if (m.key == "bits") {
    if (c.bits == "any") c.bits.clear();
    if (m.value == "any" && !c.bits.empty()) return;
    set_word(c, c.bits, m.value, "the precision");
  } else if (m.key == "optimizer") {
    set_once(c, c.optimizer, m.value, "the optimizer");
  } else if (m.key == "recompute") {
    set_once(c, c.recompute, m.value, "recomputation");
  } else if (m.key == "tokens" || m.key == "tokens_k") {
    set_once(c, c.context, number(), "the context");
  } else if (m.key == "users") {
    set_once(c, c.users, number(), "the requests");
  } else if (m.key == "zero") {
    set_once(c, c.zero, number(), "ZeRO");
  } else if (m.key == "micro_batch") {
    set_once(c, c.micro_batch, number(), "the micro-batch");
  } else if (m.key == "quantity") {
    set_word(c, c.quantity, m.value, "what is counted");
  } else if (m.key == "amount") {
    set_word(c, c.amount_text, m.value, "the amount");
  } else if (m.key == "times") {
    set_once(c, c.times, decimal_to_double(m.value), "the ratio");
  } else if (m.key != "number" && m.key != "decimal") {
    throw std::logic_error("no meaning '" + m.key + "'");
  }
}

void check_capacity(Claim& c) {
  if (c.model.empty()) refuse(c.text, "names no model", "a catalogue id such as Llama-3.1-70B, or a size such as 70B");
  if (c.device.empty()) refuse(c.text, "names no cards", "cards such as 8xH100, 4x80GB or \"one 4090\"");
  if (c.count == 0) c.count = 1;
  const bool training =
      c.task == "full" || c.task == "pretrain" || c.task == "tune" || c.task == "lora" || c.task == "qlora";
  if (training && c.users) refuse(c.text, "asks for users of a training job");
  if (!training && !c.offload.empty()) {
    if (!c.task.empty()) refuse(c.text, "speaks of offload, which is known here of training only");
    c.task = "full";
  }
  if (!training && (c.optimizer || c.zero || c.micro_batch || c.recompute) && c.task != "full") {
    if (!c.task.empty()) refuse(c.text, "names a setting of training for inference");
    c.task = "full";
  }
  if (c.users && c.task.empty()) c.task = "serve";
  if (c.bits == "fp32" && !training) refuse(c.text, "asks for inference in 32 bits", "bf16, fp8, int8 or 4-bit");
  if (training && (c.bits == "int4" || c.bits == "int8" || c.bits == "any")) {
    if (c.task == "lora" || (c.task == "qlora" && c.bits != "int8")) {
      if (c.bits == "int8") refuse(c.text, "asks for LoRA on 8-bit weights", "LoRA, or QLoRA (4-bit)");
      c.task = "qlora";
      c.bits.clear();
    } else if (c.task == "tune" && c.bits == "int4") {
      c.task = "qlora";
      c.bits.clear();
    } else {
      refuse(c.text, "trains weights that are quantized", "QLoRA, or training in bf16, fp16, fp8 or fp32");
    }
  }
  if (c.task == "qlora" && c.bits == "bf16") c.bits.clear();
}

}  // namespace

std::string Claim::machine() const {
  return nodes > 0 ? fmt::format("{}x{}x{}", nodes, count, device) : fmt::format("{}x{}", count, device);
}

const ClaimBook& ClaimBook::builtin() { return vram::builtin().book; }

Claim parse_claim(std::string_view text, const Devices& devices) {
  Claim c;
  c.text = std::string(text);
  if (text.size() > kLongestClaim) refuse(text.substr(0, 60), "is too long", "one sentence");
  if (find_invalid_utf8(text) != std::string_view::npos) refuse(text, "is no UTF-8");
  const Data& data = builtin();
  for (size_t i = 0; i < data.book.concepts.size(); ++i) {
    if (data.book.concepts[i].id != text) continue;
    c.kind = Claim::Kind::concept_row;
    c.row = i;
    c.text = data.book.concepts[i].claim_en;
    return c;
  }
  const std::string sentence = normal_sentence(text, data.fold);
  if (sentence.empty()) refuse(text, "is empty", "a sentence, for example " + examples(false));
  const Slots slots = claim_slots(devices, data.numbers);
  const Grammar::Result r = data.grammar.parse(sentence, slots);
  if (r.sentence.empty()) not_understood(text, sentence, r, devices);
  for (const Meaning& m : r.meanings) add_meaning(c, m);
  if (c.kind == Claim::Kind::capacity) check_capacity(c);
  if (r.sentence == "model_needs_machine" && c.need == Need::none) c.need = Need::plain;
  return c;
}

}  // namespace vram
