#include "base/messages.h"

#include <fmt/args.h>

#include <stdexcept>
#include <unordered_map>

namespace vram {

const std::vector<Message>& all_messages() {
  static const std::vector<Message> messages = {
#define VRAM_MESSAGE(id, en, zh) {id, en, zh},
#include "base/messages/check.def"
#include "base/messages/cli.def"
#include "base/messages/diff.def"
#include "base/messages/fit.def"
#include "base/messages/hub.def"
#include "base/messages/job.def"
#include "base/messages/machine.def"
#include "base/messages/man.def"
#include "base/messages/model.def"
#include "base/messages/report.def"
#include "base/messages/serving.def"
#include "base/messages/sheet.def"
#include "base/messages/storage.def"
#include "base/messages/tiers.def"
#include "base/messages/training.def"
#include "base/messages/units.def"
#include "base/messages/weights.def"
#undef VRAM_MESSAGE
  };
  return messages;
}

namespace {

const Message* find_message(std::string_view id) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const Message*> map;
    for (const Message& m : all_messages()) map.emplace(m.id, &m);
    return map;
  }();
  const auto found = index.find(id);
  return found == index.end() ? nullptr : found->second;
}

std::string_view in(Lang lang, const Message& message) { return lang == Lang::zh ? message.zh : message.en; }

}  // namespace

std::string_view text(Lang lang, std::string_view id) {
  const Message* message = find_message(id);
  if (!message) throw std::logic_error("no message '" + std::string(id) + "'");
  return in(lang, *message);
}

std::string_view text_or(Lang lang, std::string_view id, std::string_view fallback) {
  const Message* message = find_message(id);
  return message ? in(lang, *message) : fallback;
}

std::string say(Lang lang, const Note& note) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const auto& [name, value] : note.args) store.push_back(fmt::arg(name.c_str(), value));
  return fmt::vformat(text(lang, note.id), store);
}

Lang lang_from_locale(const char* name) {
  if (!name) return Lang::en;
  return std::string_view(name).substr(0, 2) == "zh" ? Lang::zh : Lang::en;
}

}  // namespace vram
