#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "completion/completion.h"

namespace ridgeline::completion {
namespace {

// Text for _arguments within single quotes. Brackets and colons would end it.
std::string Text(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      quoted += std::string("\\") + c;
    } else {
      quoted += c;
    }
  }
  return quoted;
}

// The action of _arguments that completes a value.
std::string ZshAction(const Completed& value) {
  switch (value.kind) {
    case Completed::Kind::kAnything:
      return " ";
    case Completed::Kind::kWords:
      return fmt::format("({})", Join(value.words, " "));
    case Completed::Kind::kFiles:
      return value.words.empty() ? "_files" : fmt::format("_files -g \"*.({})\"", Join(value.words, "|"));
    case Completed::Kind::kFolders:
      return "_files -/";
  }
  return " ";
}

// One line of _arguments for each spelling of an option. Each spelling excludes the others.
std::string OptionLines(const CompletedOption& option) {
  std::string lines;
  for (const std::string& flag : option.flags) {
    lines += fmt::format(" \\\n    '({}){}[{}]{}'", Join(option.flags, " "), flag, Text(option.help),
                         option.takes_value ? ": :" + ZshAction(option.value) : "");
  }
  return lines;
}

// The function of a command, preceded by those of its subcommands.
std::string Functions(const CompletedCommand& command, const std::string& name) {
  std::string lines;
  for (const CompletedOption& option : command.options) lines += OptionLines(option);
  if (command.commands.empty()) {
    return fmt::format("{}() {{\n  _arguments{} \\\n    '*: :{}'\n}}\n", name, lines, ZshAction(command.argument));
  }
  std::string functions;
  std::string commands;
  std::string cases;
  for (const CompletedCommand& inner : command.commands) {
    functions += Functions(inner, fmt::format("{}_{}", name, inner.name));
    commands += fmt::format("    '{}:{}'\n", inner.name, Text(inner.help));
    cases += fmt::format("    {0}) {1}_{0} ;;\n", inner.name, name);
  }
  return functions + fmt::format(
                         "{}() {{\n"
                         "  local curcontext=$curcontext state\n"
                         "  local -a line commands=(\n{}  )\n"
                         "  local -A opt_args\n"
                         "  _arguments -C{} \\\n    '1: :->command' '*:: :->rest' && return\n"
                         "  if [[ $state == command ]]; then\n"
                         "    _describe -t commands command commands\n"
                         "    return\n"
                         "  fi\n"
                         "  case $line[1] in\n{}  esac\n"
                         "}}\n",
                         name, commands, lines, cases);
}

}  // namespace

std::string ZshCompletion(const CompletedPrograms& programs) {
  return fmt::format(
      R"(#compdef ridgeline ridgeline-train
# Completion of ridgeline and ridgeline-train for zsh: a file _ridgeline in a folder of $fpath, or in ~/.zshrc, after
# compinit:
#   source <(ridgeline completion zsh)
{}{}_ridgeline() {{
  case $service in
    ridgeline-train) _ridgeline_train_program ;;
    *) _ridgeline_program ;;
  esac
}}
if [[ $funcstack[1] == _ridgeline ]]; then
  _ridgeline "$@"
else
  compdef _ridgeline ridgeline ridgeline-train
fi
)",
      Functions(programs.ridgeline, "_ridgeline_program"), Functions(programs.train, "_ridgeline_train_program"));
}

}  // namespace ridgeline::completion
