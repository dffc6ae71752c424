#include "cli/completions.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/help.h"

namespace vram::cli {
namespace {

enum class Value : uint8_t { none, any, words, file, machine, model, devices };

// One option of one or more verbs, by all its names.
struct Entry {
  std::vector<std::string> names;  // the first is the main one; those of up to three letters are offered as well
  std::string about;
  Value value = Value::any;
  std::vector<std::string> words;
  std::vector<std::string> verbs;  // empty: all
};

// What may stand behind a verb besides options.
struct Place {
  std::string verb, about;
  Value value = Value::none;
  std::vector<std::string> words;
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

Entry entry_of(const Option& o, Lang lang) {
  Entry e{.names = {std::string(o.name)}, .about = std::string(text(lang, o.help)), .words = {}, .verbs = {}};
  if (o.value.empty()) {
    e.value = Value::none;
  } else if (o.value == "FILE") {
    e.value = Value::file;
  } else if (o.value.find('|') != std::string_view::npos) {
    e.value = Value::words;
    e.words = split(o.value, '|');
  } else if (o.name == "--compare") {
    e.value = Value::devices;
  }
  return e;
}

Entry entry_of(const Field& f, Lang lang) {
  Entry e{.names = {option_name(f.name)}, .about = std::string(f.help(lang)), .words = {}, .verbs = {}};
  for (std::string_view alias : f.aliases) e.names.push_back(option_name(alias));
  if (f.is_flag()) {
    e.value = Value::none;
  } else if (!f.choices.empty()) {
    e.value = Value::words;
    e.words.assign(f.choices.begin(), f.choices.end());
  } else if (f.name == "on") {
    e.value = Value::machine;
  } else if (f.name == "model") {
    e.value = Value::model;
  }
  for (const VerbEntry& v : verbs()) {
    if (f.of(v.verb)) e.verbs.emplace_back(v.name);
  }
  return e;
}

std::vector<Entry> all_options(Lang lang) {
  std::vector<Entry> out;
  for (const Field& f : fields()) out.push_back(entry_of(f, lang));
  for (const VerbEntry& v : verbs()) {
    for (const Option& o : v.options) {
      Entry e = entry_of(o, lang);
      const auto same = std::find_if(out.begin(), out.end(), [&](const Entry& x) { return x.names == e.names; });
      if (same != out.end()) {
        same->verbs.emplace_back(v.name);
      } else {
        e.verbs.emplace_back(v.name);
        out.push_back(std::move(e));
      }
    }
  }
  for (const Option& o : common_options()) out.push_back(entry_of(o, lang));
  return out;
}

std::vector<Place> all_places(Lang lang) {
  std::vector<Place> out;
  std::vector<std::string> names;
  for (const VerbEntry& v : verbs()) {
    Place p{.verb = std::string(v.name), .about = std::string(text(lang, v.summary)), .words = {}};
    if (v.takes_model) p.value = Value::model;
    if (v.name == "models") {
      p.value = Value::model;
      p.words = {"show", "list"};
    }
    if (v.name == "gpus") p.value = Value::devices;
    if (v.name == "completions") {
      p.value = Value::words;
      p.words.assign(shells().begin(), shells().end());
    }
    names.push_back(p.verb);
    out.push_back(std::move(p));
  }
  out.push_back({"help", std::string(text(lang, "cli.opt.help")), Value::words, std::move(names)});
  return out;
}

bool offered(const Entry& e, size_t name) { return name == 0 || e.names[name].size() <= 5; }  // "--tp", "--ctx"

bool belongs(const Entry& e, const std::string& verb) {
  return e.verbs.empty() || std::find(e.verbs.begin(), e.verbs.end(), verb) != e.verbs.end();
}

// Every spelling of an option, as a pattern of `case`.
std::string pattern(const Entry& e) {
  std::string out;
  for (const std::string& name : e.names) {
    std::string underscored = name;
    std::replace(underscored.begin() + 2, underscored.end(), '-', '_');
    out += (out.empty() ? "" : "|") + name;
    if (underscored != name) out += "|" + underscored;
  }
  return out;
}

std::string joined(const std::vector<std::string>& words, std::string_view separator = " ") {
  return fmt::format("{}", fmt::join(words, separator));
}

// In single quotes, for bash and zsh.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// "name:what it does" of zsh's _describe.
std::string described(std::string_view name, std::string_view about) {
  std::string out;
  for (const char c : name) out += c == ':' ? "\\:" : std::string(1, c);
  return quoted(out + ":" + std::string(about));
}

// What a candidate function is called with: "words fp32 bf16", "file", "machine".
std::string bash_kind(Value value, const std::vector<std::string>& words) {
  const std::string more = words.empty() ? "" : " " + joined(words);
  switch (value) {
    case Value::words:
      return "words" + more;
    case Value::file:
      return "file";
    case Value::machine:
      return "machine";
    case Value::model:
      return "model" + more;
    case Value::devices:
      return "devices";
    case Value::none:
    case Value::any:
      break;
  }
  return "any";
}

constexpr std::string_view kBash = R"sh(
_vram_candidates() {
  local cur=$1 kind=$2 head=
  shift 2
  case $kind in
    words) COMPREPLY=($(compgen -W "$*" -- "$cur")) ;;
    devices) COMPREPLY=($(compgen -W "$_vram_devices" -- "$cur")) ;;
    file)
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -- "$cur")) ;;
    model)
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -W "$* $_vram_models" -- "$cur") $(compgen -f -- "$cur")) ;;
    machine)
      if [[ $cur =~ ^([0-9]+x)+ ]]; then
        head=${BASH_REMATCH[0]}
        COMPREPLY=($(compgen -P "$head" -W "$_vram_devices" -- "${cur#"$head"}"))
      else
        compopt -o nospace 2>/dev/null
        COMPREPLY=($(compgen -W "1x 2x 4x 8x local" -- "$cur"))
      fi ;;
  esac
}

_vram() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb= word kind i
  COMPREPLY=()
  # bash takes --option=value apart.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ " $_vram_verbs " == *" $word "* ]]; then
      verb=$word
      break
    fi
  done
  if [[ $prev == --* ]] && kind=$(_vram_value "$prev"); then
    _vram_candidates "$cur" $kind
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$(_vram_options "$verb")" -- "$cur"))
  elif [[ -z $verb ]]; then
    COMPREPLY=($(compgen -W "$_vram_verbs" -- "$cur"))
  else
    _vram_candidates "$cur" $(_vram_place "$verb")
  fi
}

complete -F _vram vram
)sh";

std::string bash(Lang lang, const std::vector<std::string>& models, const std::vector<std::string>& devices) {
  const std::vector<Entry> options = all_options(lang);
  const std::vector<Place> places = all_places(lang);
  std::string names, by_verb, values, of_verb;
  for (const Place& p : places) {
    names += (names.empty() ? "" : " ") + p.verb;
    std::vector<std::string> offers;
    for (const Entry& e : options) {
      if (p.verb == "help" || !belongs(e, p.verb)) continue;
      for (size_t i = 0; i < e.names.size(); ++i) {
        if (offered(e, i)) offers.push_back(e.names[i]);
      }
    }
    if (!offers.empty()) by_verb += fmt::format("    {}) echo {} ;;\n", p.verb, quoted(joined(offers)));
    of_verb += fmt::format("    {}) echo {} ;;\n", p.verb, quoted(bash_kind(p.value, p.words)));
  }
  std::vector<std::string> common;
  for (const Entry& e : options) {
    if (e.verbs.empty()) common.push_back(e.names.front());
    if (e.value != Value::none) {
      values += fmt::format("    {}) echo {} ;;\n", pattern(e), quoted(bash_kind(e.value, e.words)));
    }
  }
  return "# Completions of vram for bash.\n_vram_verbs=" + quoted(names) + "\n_vram_models=" + quoted(joined(models)) +
         "\n_vram_devices=" + quoted(joined(devices)) + "\n\n_vram_options() {\n  case $1 in\n" + by_verb +
         "    *) echo " + quoted(joined(common)) + " ;;\n  esac\n}\n\n_vram_value() {\n  case $1 in\n" + values +
         "    *) return 1 ;;\n  esac\n}\n\n_vram_place() {\n  case $1 in\n" + of_verb + "  esac\n}\n" +
         std::string(kBash);
}

std::string zsh_action(Value value, const std::vector<std::string>& words) {
  switch (value) {
    case Value::words:
      return "compadd -- " + joined(words);
    case Value::file:
      return "_files";
    case Value::machine:
      return "_vram_machine";
    case Value::model:
      return (words.empty() ? "" : "compadd -- " + joined(words) + "; ") + "compadd -a _vram_models; _files";
    case Value::devices:
      return "compadd -a _vram_devices";
    case Value::none:
    case Value::any:
      break;
  }
  return ":";
}

constexpr std::string_view kZsh = R"sh(
_vram_machine() {
  if [[ $PREFIX =~ '^([0-9]+x)+' ]]; then
    compset -P '([0-9]##x)##'
    compadd -a _vram_devices
  else
    compadd -S '' -- 1x 2x 4x 8x
    compadd -- local
  fi
}

_vram() {
  setopt localoptions extendedglob
  local cur=${words[CURRENT]} prev=${words[CURRENT-1]} verb= word
  for word in ${words[2,CURRENT-1]}; do
    if (( ${_vram_verbs[(I)${word}:*]} )); then
      verb=$word
      break
    fi
  done
  if [[ $cur == --*=* ]]; then
    prev=${cur%%=*}
    compset -P '*='
  fi
  if [[ $prev == --* ]] && _vram_value $prev; then
    return
  fi
  if [[ $cur == -* ]]; then
    local -a options
    _vram_options $verb
    _describe -o option options
  elif [[ -z $verb ]]; then
    _describe verb _vram_verbs
  else
    _vram_place $verb
  fi
}

if [[ $funcstack[1] == _vram ]]; then
  _vram "$@"
else
  compdef _vram vram
fi
)sh";

std::string zsh(Lang lang, const std::vector<std::string>& models, const std::vector<std::string>& devices) {
  const std::vector<Entry> options = all_options(lang);
  std::string names, by_verb, values, of_verb;
  for (const Place& p : all_places(lang)) {
    names += "  " + described(p.verb, p.about) + "\n";
    std::string offers;
    for (const Entry& e : options) {
      if (p.verb == "help" || e.verbs.empty() || !belongs(e, p.verb)) continue;
      for (size_t i = 0; i < e.names.size(); ++i) {
        if (offered(e, i)) offers += "      " + described(e.names[i], e.about) + "\n";
      }
    }
    if (!offers.empty()) by_verb += fmt::format("    {}) options+=(\n{}    ) ;;\n", p.verb, offers);
    of_verb += fmt::format("    {}) {} ;;\n", p.verb, zsh_action(p.value, p.words));
  }
  std::string common;
  for (const Entry& e : options) {
    if (e.verbs.empty()) common += "    " + described(e.names.front(), e.about) + "\n";
    if (e.value != Value::none) values += fmt::format("    {}) {} ;;\n", pattern(e), zsh_action(e.value, e.words));
  }
  return "#compdef vram\n# Completions of vram for zsh.\n\ntypeset -ga _vram_verbs _vram_models "
         "_vram_devices\n_vram_verbs=(\n" +
         names + ")\n_vram_models=(" + joined(models) + ")\n_vram_devices=(" + joined(devices) +
         ")\n\n_vram_options() {\n  options=(\n" + common + "  )\n  case $1 in\n" + by_verb +
         "  esac\n}\n\n_vram_value() {\n  case $1 in\n" + values +
         "    *) return 1 ;;\n  esac\n  return 0\n}\n\n_vram_place() {\n  case $1 in\n" + of_verb + "  esac\n}\n" +
         std::string(kZsh);
}

constexpr std::string_view kFish = R"sh(
function __vram_machines
    set -l word (string replace -r '^--[a-z_-]+=' '' -- (commandline -ct))
    set -l head (string match -r '^(?:[0-9]+x)+' -- $word)
    if test -n "$head"
        for device in $__vram_devices
            echo $head$device
        end
    else
        printf '%s\n' 1x 2x 4x 8x local
    end
end

complete -c vram -f
)sh";

std::string fish_value(const Entry& e) {
  switch (e.value) {
    case Value::none:
      return "";
    case Value::file:
      return " -r -F";
    case Value::words:
      return " -x -a " + fish_quoted(joined(e.words));
    case Value::machine:
      return " -x -a '(__vram_machines)'";
    case Value::model:
      return " -r -F -a '$__vram_models'";
    case Value::devices:
      return " -x -a '$__vram_devices'";
    case Value::any:
      break;
  }
  return " -x";
}

std::string fish(Lang lang, const std::vector<std::string>& models, const std::vector<std::string>& devices) {
  std::string out = "# Completions of vram for fish.\nset -g __vram_models " + joined(models) +
                    "\nset -g __vram_devices " + joined(devices) + "\n" + std::string(kFish);
  for (const Place& p : all_places(lang)) {
    const std::string seen = "complete -c vram -n '__fish_seen_subcommand_from " + p.verb + "'";
    out += "complete -c vram -n __fish_use_subcommand -a " + p.verb + " -d " + fish_quoted(p.about) + "\n";
    if (!p.words.empty()) out += seen + " -a " + fish_quoted(joined(p.words)) + "\n";
    if (p.value == Value::model) out += seen + " -F -a '$__vram_models'\n";
    if (p.value == Value::devices) out += seen + " -a '$__vram_devices'\n";
  }
  for (const Entry& e : all_options(lang)) {
    out += "complete -c vram";
    if (!e.verbs.empty()) out += " -n '__fish_seen_subcommand_from " + joined(e.verbs) + "'";
    for (size_t i = 0; i < e.names.size(); ++i) {
      if (offered(e, i)) out += " -l " + e.names[i].substr(2);
    }
    out += fish_value(e) + " -d " + fish_quoted(e.about) + "\n";
  }
  return out;
}

}  // namespace

const std::vector<std::string_view>& shells() {
  static const std::vector<std::string_view> names = {"bash", "zsh", "fish"};
  return names;
}

std::string completions(std::string_view shell, Lang lang, const std::vector<std::string>& models,
                        const std::vector<std::string>& devices) {
  if (shell == "bash") return bash(lang, models, devices);
  return shell == "zsh" ? zsh(lang, models, devices) : fish(lang, models, devices);
}

}  // namespace vram::cli
