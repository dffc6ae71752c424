#include "base/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "base/text.h"

namespace vram {
namespace {

// The names in "{cards:>3} of {total}"; doubled braces are literal.
std::set<std::string> placeholders(std::string_view text) {
  std::set<std::string> out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') continue;
    if (i + 1 < text.size() && text[i + 1] == '{') {
      ++i;
      continue;
    }
    const size_t end = text.find_first_of(":}", i);
    out.insert(std::string(text.substr(i + 1, end - i - 1)));
  }
  return out;
}

TEST(Messages, PlaceholdersAreRead) {
  EXPECT_EQ(placeholders("{a} of {b:>3} {{c}} {a}"), (std::set<std::string>{"a", "b"}));
}

TEST(Messages, ExistInBothLanguagesWithTheSamePlaceholders) {
  std::set<std::string_view> ids;
  for (const Message& m : all_messages()) {
    EXPECT_TRUE(ids.insert(m.id).second) << m.id << " stands twice";
    EXPECT_FALSE(m.id.empty());
    EXPECT_FALSE(m.en.empty()) << m.id;
    EXPECT_FALSE(m.zh.empty()) << m.id;
    EXPECT_EQ(find_invalid_utf8(m.zh), std::string_view::npos) << m.id;
    EXPECT_EQ(placeholders(m.en), placeholders(m.zh)) << m.id;
    for (const std::string& name : placeholders(m.en)) {
      EXPECT_TRUE(std::regex_match(name, std::regex("[a-z][a-z0-9_]*"))) << m.id << ": {" << name << "}";
    }
  }
}

TEST(Messages, UnknownIdsThrow) { EXPECT_THROW(text(Lang::en, "no.such.message"), std::logic_error); }

TEST(Messages, LanguageFromTheLocale) {
  EXPECT_EQ(lang_from_locale("zh_CN.UTF-8"), Lang::zh);
  EXPECT_EQ(lang_from_locale("zh"), Lang::zh);
  EXPECT_EQ(lang_from_locale("en_US.UTF-8"), Lang::en);
  EXPECT_EQ(lang_from_locale("C"), Lang::en);
  EXPECT_EQ(lang_from_locale("z"), Lang::en);
  EXPECT_EQ(lang_from_locale(""), Lang::en);
  EXPECT_EQ(lang_from_locale(nullptr), Lang::en);
}

// The sources of all rooms, comments removed, tests left out.
std::map<std::string, std::string> sources() {
  static const std::regex comment("//[^\n]*");
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(VRAM_SOURCE_DIR "/src")) {
    const std::string path = entry.path().string();
    const bool code = entry.path().extension() == ".cc" || entry.path().extension() == ".h";
    if (!code || path.find("_test.") != std::string::npos) continue;
    std::ostringstream bytes;
    bytes << std::ifstream(path).rdbuf();
    out[path] = std::regex_replace(bytes.str(), comment, "");
  }
  return out;
}

TEST(Messages, EveryIdInTheSourcesExists) {
  std::set<std::string, std::less<>> known;
  for (const Message& m : all_messages()) known.emplace(m.id);
  // say(lang, "id", ...), text(style.lang, "id")
  static const std::regex use("\\b(?:text|say)\\s*\\(\\s*[A-Za-z_][A-Za-z0-9_.:>()-]*\\s*,\\s*\"([^\"]*)\"\\s*([,)+])");
  const auto files = sources();
  ASSERT_GT(files.size(), 10u);
  for (const auto& file : files) {
    for (std::sregex_iterator it(file.second.begin(), file.second.end(), use), end; it != end; ++it) {
      const std::string id = (*it)[1];
      if ((*it)[2] == "+") {  // the start of an id that is put together: some message must begin so
        const auto first = known.lower_bound(id);
        EXPECT_TRUE(first != known.end() && first->compare(0, id.size(), id) == 0)
            << file.first << ": \"" << id << "\"";
      } else {
        EXPECT_TRUE(known.count(id)) << file.first << ": no message \"" << id << "\"";
      }
    }
  }
}

TEST(Messages, EveryMessageIsUsed) {
  // A literal "id", or a literal "prefix." from which ids are put together.
  static const std::regex literal("\"([a-z][a-z0-9_]*(?:\\.[a-z0-9_]+)*\\.?)\"");
  std::set<std::string, std::less<>> literals;
  for (const auto& file : sources()) {
    for (std::sregex_iterator it(file.second.begin(), file.second.end(), literal), end; it != end; ++it) {
      literals.insert((*it)[1]);
    }
  }
  const auto used = [&](std::string_view id) {
    if (literals.count(id)) return true;
    for (size_t dot = id.rfind('.'); dot != std::string_view::npos && dot > 0; dot = id.rfind('.', dot - 1)) {
      if (literals.count(id.substr(0, dot + 1))) return true;
    }
    return false;
  };
  for (const Message& m : all_messages()) EXPECT_TRUE(used(m.id)) << m.id << " is used nowhere in src";
}

}  // namespace
}  // namespace vram
