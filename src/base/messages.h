#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vram {

enum class Lang : uint8_t { en, zh };

/// One sentence or label in every language. Parts to fill in are fmt's and named: "{cards} cards".
struct Message {
  std::string_view id;
  std::string_view en;
  std::string_view zh;
};

/// All messages (src/base/messages/*.def), in no particular order.
const std::vector<Message>& all_messages();

/// The text of message `id`. Unknown ids are a programming error: std::logic_error; a test finds them.
std::string_view text(Lang lang, std::string_view id);

/// The text of message `id`, or `fallback` where there is none.
std::string_view text_or(Lang lang, std::string_view id, std::string_view fallback);

/// The text with its named parts filled in: say(lang, "fit.needs", fmt::arg("cards", 16)).
template <class... Args>
std::string say(Lang lang, std::string_view id, Args&&... args) {
  return fmt::vformat(text(lang, id), fmt::make_format_args(args...));
}

/// A sentence to be said later, in whichever language: a message id and its parts filled in.
struct Note {
  std::string id;
  std::vector<std::pair<std::string, std::string>> args;
};
std::string say(Lang lang, const Note& note);

/// The language of `name` ("en", "zh", "zh_CN.UTF-8", "C"); nullptr or unknown give English.
Lang lang_from_locale(const char* name);

}  // namespace vram
