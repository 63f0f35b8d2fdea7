#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "completion/completion.h"

namespace ridgeline::completion {
namespace {

// Quotes keep the words together. The words are plain names, so the shell expands nothing in them.
std::string Words(const std::vector<std::string>& words) {
  return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", Join(words, " "));
}

// The bash code that completes a value.
std::string BashWords(const Completed& value) {
  switch (value.kind) {
    case Completed::Kind::kAnything:
      return ":";
    case Completed::Kind::kWords:
      return Words(value.words);
    case Completed::Kind::kFiles:
      return value.words.empty() ? "_ridgeline_any_file" : "_ridgeline_files " + Join(value.words, " ");
    case Completed::Kind::kFolders:
      return "_ridgeline_dirs";
  }
  return ":";
}

// Completes a value after an option that takes one, option names after a dash, and positional arguments elsewhere.
std::string Cases(const CompletedCommand& command) {
  std::string values;
  std::vector<std::string> flags;
  for (const CompletedOption& option : command.options) {
    flags.insert(flags.end(), option.flags.begin(), option.flags.end());
    if (option.takes_value) {
      values += fmt::format("        {}) {}; return ;;\n", Join(option.flags, "|"), BashWords(option.value));
    }
  }
  std::string argument = BashWords(command.argument);
  if (!command.commands.empty()) {
    std::vector<std::string> names;
    for (const CompletedCommand& inner : command.commands) names.push_back(inner.name);
    argument = Words(names);
  }
  return fmt::format(
      "      case \"$previous\" in\n{}      esac\n"
      "      case \"$word\" in -*) {} ;; *) {} ;; esac\n",
      values, Words(flags), argument);
}

// The cases of a command, preceded by those of its subcommands.
std::string CommandCases(const CompletedCommand& command, const std::string& before) {
  std::string cases;
  const std::string path = before + command.name;
  for (const CompletedCommand& inner : command.commands) cases += CommandCases(inner, path + " ");
  return cases + fmt::format("    '{} '*)\n{}      ;;\n", path, Cases(command));
}

}  // namespace

std::string BashCompletion(const CompletedPrograms& programs) {
  std::vector<std::string> first;
  std::string cases;
  for (const CompletedCommand& command : programs.ridgeline.commands) {
    first.push_back(command.name);
    cases += CommandCases(command, "");
  }
  first.insert(first.end(), {"--help", "--version"});
  return fmt::format(
      R"(# Completion of ridgeline and ridgeline-train for bash. To load it in every shell, put this in ~/.bashrc:
#   source <(ridgeline completion bash)
_ridgeline_files() {{
  local IFS=$'\n' extension
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -d -- "$word"))
  for extension; do COMPREPLY+=($(compgen -f -X "!*.$extension" -- "$word")); done
}}
_ridgeline_any_file() {{
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$word"))
}}
_ridgeline_dirs() {{
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -d -- "$word"))
}}
_ridgeline() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} at=$COMP_CWORD name=
  # An '@' ends a word of bash, and the name of a release has one: torchtitan@0.2.
  if ((at > 2)) && [[ $word == @ ]]; then
    at=$((at - 1)) name=${{COMP_WORDS[COMP_CWORD-1]}}@ word=
  elif ((at > 3)) && [[ ${{COMP_WORDS[at-1]}} == @ ]]; then
    at=$((at - 2)) name=${{COMP_WORDS[COMP_CWORD-2]}}@
  fi
  word=$name$word
  local previous=${{COMP_WORDS[at-1]}}
  COMPREPLY=()
  if ((at == 1)); then
    {}
    return
  fi
  # The words before the one that is typed, each with a space after it.
  local before="${{COMP_WORDS[*]:1:at-1}} "
  _ridgeline_words
  [[ $name ]] && COMPREPLY=("${{COMPREPLY[@]#"$name"}}")
  true
}}
_ridgeline_words() {{
  case "$before" in
{}  esac
}}
_ridgeline_train() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
{}}}
complete -F _ridgeline ridgeline
complete -F _ridgeline_train ridgeline-train
)",
      Words(first), cases, Cases(programs.train));
}

}  // namespace ridgeline::completion
