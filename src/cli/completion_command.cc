// The completion script is written from the commands themselves, so it knows every option they have.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "launch/launcher.h"
#include "report/report.h"
#include "run/fields.h"
#include "run/presets.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

// Single-quoted for bash: nothing inside is expanded.
std::string Quote(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool IsPlainName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

// Names that could mean something to bash are left out.
std::vector<std::string> PlainNames(const std::vector<std::string>& names) {
  std::vector<std::string> plain;
  std::copy_if(names.begin(), names.end(), std::back_inserter(plain), IsPlainName);
  return plain;
}

// What is not installed is not completed.
std::vector<std::string> LauncherNames() {
  try {
    return PlainNames(AvailableLaunchers(DataDir("plugins")));
  } catch (const std::exception&) {
    return {};
  }
}

std::vector<std::string> ReportNames() {
  try {
    std::vector<std::string> names;
    for (const fs::path& report : FindReports(ReportFolders({}))) names.push_back(report.filename().string());
    return PlainNames(names);
  } catch (const std::exception&) {
    return {};
  }
}

std::string Words(const std::vector<std::string>& words) {
  return fmt::format("COMPREPLY=($(compgen -W {} -- \"$word\"))", Quote(Join(words, " ")));
}

// The bash that completes a value of this kind; empty where any text will do.
std::string ValueAction(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (const auto open = type.find('{'), close = type.find('}'); open != std::string::npos && close > open) {
    std::string choices = type.substr(open + 1, close - open - 1);
    std::replace(choices.begin(), choices.end(), ',', ' ');
    return fmt::format("COMPREPLY=($(compgen -W {} -- \"$word\"))", Quote(choices));
  }
  if (type.starts_with("SWEEP")) return "_ridgeline_files yaml yml";
  if (type.starts_with("JOB")) return "_ridgeline_files json";
  if (type.starts_with("FILE")) return "_ridgeline_any_file";
  if (type.starts_with("DIR")) return "_ridgeline_dirs";
  if (type.starts_with("REPORT")) return Words(ReportNames());
  if (type.starts_with("LAUNCHER")) return Words(LauncherNames());
  return {};
}

std::vector<std::string> Flags(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  return flags;
}

// One command: values after options that take one, option names after a dash, else its positional's values.
std::string CommandCase(const CLI::App& command) {
  std::string values;
  std::string positional = ":";
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> own = Flags(*option);
    flags.insert(flags.end(), own.begin(), own.end());
    const std::string action = ValueAction(*option);
    if (option->get_positional() && !action.empty()) positional = action;
    if (!own.empty() && option->get_items_expected_max() > 0) {
      values += fmt::format("      {}) {}; return ;;\n", Join(own, "|"), action.empty() ? ":" : action);
    }
  }
  for (const CLI::App* inner : command.get_subcommands({})) {
    if (positional == ":") {
      std::vector<std::string> names;
      for (const CLI::App* each : command.get_subcommands({})) names.push_back(each->get_name());
      positional = Words(names);
    }
    for (const CLI::Option* option : inner->get_options()) {
      for (const std::string& flag : Flags(*option)) {
        if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.push_back(flag);
      }
    }
  }
  return fmt::format(
      "    {}\n"
      "      case \"$previous\" in\n{}      esac\n"
      "      case \"$word\" in -*) {} ;; *) {} ;; esac ;;\n",
      command.get_name() + ")", values, Words(flags), positional);
}

// ridgeline-train's flags are the RunSpec's fields.
std::string TrainerCase() {
  std::vector<std::string> flags = {"--spec", "--result", "--resume", "--verify", "--version", "--help"};
  std::string values =
      "    --spec|--result|--verify) _ridgeline_files json; return ;;\n"
      "    --resume|--checkpoint-dir) _ridgeline_dirs; return ;;\n";
  const auto add = [&](const Field& field) {
    std::string flag = "--" + std::string(field.name);
    std::replace_if(
        flag.begin(), flag.end(), [](char c) { return c == '_' || c == '.'; }, '-');
    flags.push_back(flag);
    std::string choices(field.choices);
    std::replace(choices.begin(), choices.end(), '|', ' ');
    if (field.name == "model") choices = Join(PresetNames(), " ");
    if (field.name == "checkpointing") choices = "none selective full";
    const std::string action =
        choices.empty() ? ":" : fmt::format("COMPREPLY=($(compgen -W {} -- \"$word\"))", Quote(choices));
    values += fmt::format("    {}) {}; return ;;\n", flag, action);
  };
  std::for_each(Fields().begin(), Fields().end(), add);
  std::for_each(Settings().begin(), Settings().end(), add);
  return fmt::format("  case \"$previous\" in\n{}  esac\n  {}\n", values, Words(flags));
}

std::string BashScript(const CLI::App& program) {
  std::vector<std::string> names;
  std::string cases;
  for (const CLI::App* command : program.get_subcommands({})) {
    names.push_back(command->get_name());
    cases += CommandCase(*command);
  }
  std::vector<std::string> first = names;
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
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    {}
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
}}
_ridgeline_train() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
{}}}
complete -F _ridgeline ridgeline
complete -F _ridgeline_train ridgeline-train
)",
      Words(first), cases, TrainerCase());
}

}  // namespace

Action CompletionCommand(CLI::App& self) {
  auto shell = std::make_shared<std::string>("bash");
  self.add_option("shell", *shell, "the shell; bash is the one there is")->check(CLI::IsMember({"bash"}));
  self.footer("Try it now, or put it in ~/.bashrc:\n  source <(ridgeline completion bash)");
  return [shell, &self] {
    fmt::print("{}", BashScript(*self.get_parent()));
    return 0;
  };
}

}  // namespace ridgeline
