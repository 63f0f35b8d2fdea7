// The completion scripts are generated from the commands themselves, so they include every option.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/user_folders.h"
#include "cli/commands.h"
#include "completion/completion.h"
#include "launch/launcher.h"
#include "predict/device.h"
#include "report/report.h"
#include "run/fields.h"
#include "run/presets.h"
#include "session/say.h"
#include "trainers/find.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

bool IsPlainName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '@';
  });
}

// Leaves out names that could have a meaning for a shell.
completion::Completed PlainWords(const std::vector<std::string>& names) {
  completion::Completed words{completion::Completed::Kind::kWords, {}};
  std::copy_if(names.begin(), names.end(), std::back_inserter(words.words), IsPlainName);
  return words;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
  }
  return parts;
}

// Only launchers that are installed are completed.
std::vector<std::string> LauncherNames() {
  try {
    return launch::AvailableLaunchers(DataDir("plugins"));
  } catch (const std::exception&) {
    return {};
  }
}

std::vector<std::string> ReportNames() {
  try {
    std::vector<std::string> names;
    for (const fs::path& report : report::FindReports(report::ReportFolders({})))
      names.push_back(report.filename().string());
    return names;
  } catch (const std::exception&) {
    return {};
  }
}

std::vector<std::string> TrainerNames() {
  try {
    std::vector<std::string> names;
    for (const fs::path& trainer : trainers::FindTrainers(trainers::TrainerFolders({})))
      names.push_back(trainer.stem().string());
    return names;
  } catch (const std::exception&) {
    return {};
  }
}

std::vector<std::string> DeviceNames() {
  try {
    std::vector<std::string> names;
    for (const fs::path& device : predict::DeviceFiles(predict::DeviceFolders({})))
      names.push_back(device.stem().string());
    return names;
  } catch (const std::exception&) {
    return {};
  }
}

// Follows the type names of commands.h.
completion::Completed ValueOf(const CLI::Option& option) {
  using enum completion::Completed::Kind;
  const std::string type = option.get_type_name();
  if (const auto open = type.find('{'), close = type.find('}'); open != std::string::npos && close > open) {
    return PlainWords(Split(type.substr(open + 1, close - open - 1), ','));
  }
  if (type.starts_with("SWEEP")) return {kFiles, {"yaml", "yml"}};
  if (type.starts_with("JOB")) return {kFiles, {"json"}};
  if (type.starts_with("FILE")) return {kFiles, {}};
  if (type.starts_with("DIR")) return {kFolders, {}};
  if (type.starts_with("REPORT")) return PlainWords(ReportNames());
  if (type.starts_with("TRAINER")) return PlainWords(TrainerNames());
  if (type.starts_with("DEVICE")) return PlainWords(DeviceNames());
  if (type.starts_with("LAUNCHER")) return PlainWords(LauncherNames());
  if (type.starts_with("COMMAND")) return PlainWords(CommandNames());
  return {};
}

// The first part of a help text, because a shell has one line for it.
std::string InShort(const std::string& help) { return help.substr(0, help.find_first_of(";\n")); }

completion::CompletedCommand CommandOf(const CLI::App& app) {
  completion::CompletedCommand command{app.get_name(), InShort(app.get_description()), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      command.argument = ValueOf(*option);
      continue;
    }
    completion::CompletedOption completed{
        {}, InShort(option->get_description()), option->get_items_expected_max() > 0, {}};
    for (const std::string& name : option->get_lnames()) completed.flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) completed.flags.push_back("-" + name);
    if (completed.takes_value) completed.value = ValueOf(*option);
    command.options.push_back(std::move(completed));
  }
  for (const CLI::App* inner : app.get_subcommands({})) command.commands.push_back(CommandOf(*inner));
  return command;
}

// The flags of our trainer are the RunSpec's fields.
completion::CompletedCommand OurTrainer() {
  using enum completion::Completed::Kind;
  completion::CompletedCommand trainer{"ridgeline-train", "train one configuration", {}, {}, {}};
  trainer.options = {
      {{"--spec"}, "the run to do, as a file", true, {kFiles, {"json"}}},
      {{"--result"}, "the file for its result", true, {kFiles, {"json"}}},
      {{"--resume"}, "go on from the checkpoint files of this folder", true, {kFolders, {}}},
      {{"--verify"}, "check a result again", true, {kFiles, {"json"}}},
      {{"--version"}, "print the version", false, {}},
      {{"--help"}, "print the answer", false, {}},
  };
  const auto add = [&](const Field& field) {
    if (field.Has(Field::kOfHarness)) return;
    const std::string flag = field.flag();
    completion::Completed value;
    if (!field.choices.empty()) value = PlainWords(ChoicesOf(field));
    if (field.name == "model") value = PlainWords(OurPresetNames());
    if (field.name == "checkpointing") value = PlainWords({"none", "selective", "full"});
    if (flag == "--checkpoint-dir") value = {kFolders, {}};
    trainer.options.push_back({{flag}, InShort(std::string(field.help)), true, value});
  };
  std::for_each(Fields().begin(), Fields().end(), add);
  std::for_each(Settings().begin(), Settings().end(), add);
  return trainer;
}

}  // namespace

Action CompletionCommand(CLI::App& self) {
  auto shell = std::make_shared<std::string>();
  self.add_option("shell", *shell, "the shell to complete in")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  self.footer(
      "Prints the script. `make install` puts the scripts of all three shells where the shells look for "
      "them. To try one now, run the line for your shell. To keep it, add that line to ~/.bashrc, to "
      "~/.zshrc (after compinit) or to ~/.config/fish/config.fish.\n\n"
      "Examples:\n"
      "  source <(ridgeline completion bash)\n"
      "  source <(ridgeline completion zsh)\n"
      "  ridgeline completion fish | source");
  return [shell, &self] {
    const completion::CompletedPrograms programs{CommandOf(*self.get_parent()), OurTrainer()};
    session::Write(*shell == "bash"  ? completion::BashCompletion(programs)
                   : *shell == "zsh" ? completion::ZshCompletion(programs)
                                     : completion::FishCompletion(programs));
    return 0;
  };
}

}  // namespace ridgeline::cli
