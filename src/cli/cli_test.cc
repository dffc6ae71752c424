#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/run.h"

namespace vram::cli {
namespace {

class Memory : public Environment {
 public:
  mutable std::map<std::string, std::string> files;
  std::map<std::string, std::string> variables;

  std::string read_file(const std::string& path, size_t limit) const override {
    const auto found = files.find(path);
    if (found == files.end()) throw UnavailableError(path + " can't be read");
    if (found->second.size() > limit) throw InputError({.file = path, .problem = "is too large"});
    return found->second;
  }
  bool is_file(const std::string& path) const override { return files.count(path) > 0; }
  bool is_directory(const std::string&) const override { return false; }
  std::vector<std::string> list(const std::string&) const override { return {}; }
  void write_file(const std::string& path, const std::string& bytes) const override { files[path] = bytes; }
  std::optional<std::string> variable(const std::string& name) const override {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  LocalGpus local_gpus() const override { return {.gpus = {}, .absent_because = "none in a test"}; }
};

std::string sample(const Field& f) {
  if (!f.choices.empty()) return std::string(f.choices.front());
  if (f.name == "set") return "kv_heads=8";
  if (f.unit == Unit::bandwidth) return "64GB/s";
  if (f.is_number()) return f.high <= 1 ? "0.5" : f.high <= 3 ? "2" : "4";
  return "word";
}

TEST(CommandLine, EveryVerbTakesItsFieldsByEveryName) {
  for (const VerbEntry& verb : verbs()) {
    for (const Field& f : fields()) {
      if (!f.of(verb.verb)) continue;
      std::vector<std::string_view> names = f.aliases;
      names.push_back(f.name);
      for (std::string_view name : names) {
        for (std::string option : {"--" + std::string(name), option_name(name)}) {
          if (f.is_flag()) {
            const CommandLine on = parse_command_line({std::string(verb.name), option});
            ASSERT_EQ(on.settings.size(), 1u) << option;
            EXPECT_EQ(on.settings[0].value, "true") << option;
            EXPECT_EQ(parse_command_line({std::string(verb.name), option + "=false"}).settings[0].value, "false")
                << option;
            continue;
          }
          const std::string value = sample(f);
          for (const CommandLine& line : {parse_command_line({std::string(verb.name), option, value}),
                                          parse_command_line({option, value, std::string(verb.name)}),
                                          parse_command_line({std::string(verb.name), option + "=" + value})}) {
            ASSERT_EQ(line.verb, &verb) << option;
            ASSERT_EQ(line.settings.size(), 1u) << option;
            EXPECT_EQ(line.settings[0].field, &f) << option;
            EXPECT_EQ(line.settings[0].value, value) << option;
          }
        }
      }
      if (f.is_flag()) {
        const std::string no = "--no-" + option_name(f.name).substr(2);
        EXPECT_EQ(parse_command_line({std::string(verb.name), no}).settings[0].value, "false") << no;
      }
    }
  }
}

TEST(CommandLine, ListsGatherAndTheLastValueCounts) {
  const CommandLine line =
      parse_command_line({"models", "--set", "a=1", "show", "--layers=2", "--set=b=2,c=3", "x", "--layers", "4"});
  ASSERT_EQ(line.settings.size(), 2u);
  EXPECT_EQ(line.settings[0].value, "a=1,b=2,c=3");
  EXPECT_EQ(line.settings[1].value, "4");
  EXPECT_EQ(line.request.words, (std::vector<std::string>{"show", "x"}));
}

TEST(CommandLine, ValuesMayBeginWithADash) {
  const CommandLine line = parse_command_line({"models", "--layers", "-1"});
  EXPECT_EQ(line.settings[0].value, "-1");
}

TEST(Verbs, AreDescribed) {
  for (const VerbEntry& v : verbs()) {
    EXPECT_EQ(find_verb(v.name), &v);
    EXPECT_NE(v.run, nullptr);
    EXPECT_FALSE(v.examples.empty()) << v.name;
    for (const Example& e : v.examples) {
      EXPECT_EQ(e.command.substr(0, 6 + v.name.size()), "vram " + std::string(v.name) + " ") << e.command;
    }
    for (Lang lang : {Lang::en, Lang::zh}) {
      Style style;
      style.lang = lang;
      const std::string text = help(style, v);  // throws where a message is missing
      for (const Option& o : common_options())
        EXPECT_NE(text.find(o.name), std::string::npos) << v.name << " " << o.name;
      for (const Field& f : fields()) {
        if (!f.of(v.verb)) continue;
        EXPECT_NE(text.find("  " + option_name(f.name)), std::string::npos) << v.name << " " << f.name;
      }
      for (const Example& e : v.examples) EXPECT_NE(text.find(e.command), std::string::npos) << e.command;
    }
  }
}

TEST(Run, NeverThrows) {
  const Memory memory;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"--"},
                                             {"-"},
                                             {""},
                                             {"--="},
                                             {"-="},
                                             {"models", "--="},
                                             {"models", "---"},
                                             {"models", "--set"},
                                             {"help", "help"},
                                             {"models", "--layers=="},
                                             {"models", "show", "--", "-x"},
                                             {"--job"},
                                             {"models", "--json=3"},
                                             {"-h"},
                                             {"-V"},
                                             {"models", "--rows", "x", "--rows", "y"}}) {
    const Outcome o = run(words, memory, {});
    EXPECT_TRUE(o.status == 0 || o.status == 2 || o.status == 3) << (words.empty() ? "" : words.back()) << o.error;
    EXPECT_EQ(o.status >= 2, !o.error.empty());
  }
}

TEST(Run, ColoursAndWidthFollowTheTerminal) {
  Memory memory;
  const auto coloured = [&](const Terminal& t, std::vector<std::string> words = {}) {
    return run(words, memory, t).output.find('\033') != std::string::npos;
  };
  EXPECT_TRUE(coloured({true, 100}));
  EXPECT_FALSE(coloured({false, 0}));
  EXPECT_TRUE(coloured({false, 0}, {"--color", "always"}));
  EXPECT_FALSE(coloured({true, 100}, {"--color=never"}));
  memory.variables["NO_COLOR"] = "";
  EXPECT_TRUE(coloured({true, 100}));
  memory.variables["NO_COLOR"] = "1";
  EXPECT_FALSE(coloured({true, 100}));
  EXPECT_TRUE(coloured({true, 100}, {"--color", "always"}));
}

TEST(Run, SpeaksTheLanguageOfTheLocale) {
  Memory memory;
  const std::string english = run({}, memory, {}).output;
  memory.variables["LANG"] = "zh_CN.UTF-8";
  const std::string chinese = run({}, memory, {}).output;
  EXPECT_NE(english, chinese);
  EXPECT_EQ(run({"--lang", "en"}, memory, {}).output, english);
  memory.variables["LC_ALL"] = "C.UTF-8";
  EXPECT_EQ(run({}, memory, {}).output, english);
}

}  // namespace
}  // namespace vram::cli
