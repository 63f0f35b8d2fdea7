#include "cli/commands.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/help_form.h"
#include "base/text.h"
#include "base/version.h"
#include "session/say.h"

namespace ridgeline::cli {
namespace {

constexpr std::array kCommands = {
    Command{"plan", "show a sweep's points, their predicted memory, and whether they fit", PlanCommand},
    Command{"predict", "predict a sweep's step times on a described device, and what bounds them", PredictCommand},
    Command{"advise", "recommend configurations of a model for a described device", AdviseCommand},
    Command{"run", "run a sweep's points that have no result yet, then report", RunCommand},
    Command{"bench", "run combinations of values from the command line, without a sweep file", BenchCommand},
    Command{"render", "write what a launcher would submit, for you to submit by hand", RenderCommand},
    Command{"collect", "collect results of jobs submitted by hand, or rebuild a lost database", CollectCommand},
    Command{"status", "show sweeps, how their points ended, and what runs now", StatusCommand},
    Command{"serve", "serve live runs, results and reports as web pages, and metrics to Prometheus", ServeCommand},
    Command{"cancel", "cancel a sweep's queued and running jobs", CancelCommand},
    Command{"report", "render a report of the results as HTML, CSV, Markdown or JSON", ReportCommand},
    Command{"compare", "compare two campaigns, commits or databases, point by point", CompareCommand},
    Command{"gate", "check a night or a commit for regressions against its baseline", GateCommand},
    Command{"history", "show each point's step time over commits, and where it changed", HistoryCommand},
    Command{"nightly", "run a sweep every night, and compare it with earlier nights", NightlyCommand},
    Command{"query", "query the results with SQL", QueryCommand},
    Command{"db", "check, back up, export, prune or merge the results database", DbCommand},
    Command{"trainers", "list, show, try and check definitions of other trainers", TrainersCommand},
    Command{"devices", "list the described GPUs and machines, or show one with its sources", DevicesCommand},
    Command{"calibrate", "measure this machine, so that `predict` describes it", CalibrateCommand},
    Command{"exec", "run one job file on this node; launchers call this", ExecCommand},
    Command{"doctor", "check the installation, the launchers and this machine", DoctorCommand},
    Command{"completion", "print a completion script for bash, zsh or fish", CompletionCommand},
    Command{"help", "explain a command", HelpCommand},
    Command{"version", "print the version", VersionCommand},
};

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

[[noreturn]] void ThrowUsage(const CLI::App& app, const CLI::App* command, const CLI::ParseError& e) {
  const std::string program = command == nullptr ? "ridgeline" : "ridgeline " + command->get_name();
  std::string message = PrintableLine(e.what());
  std::string guess;
  if (const std::vector<std::string> extras = app.remaining(true);
      dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr && !extras.empty()) {
    const std::string name = extras.front().substr(0, extras.front().find('='));
    message = fmt::format("'{}' was not expected", PrintableLine(extras.front()));
    guess = name.starts_with('-') ? DidYouMean(name, OptionNames(command == nullptr ? app : *command)) : "";
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("{}{}{}", command == nullptr ? "" : command->get_name() + ": ", message, guess),
              fmt::format("see {} --help", program));
}

// Where the pages of this installation are; begin with the tutorial.
std::string DocsPlace() {
  const auto docs = FindDataDir("docs");
  return docs ? (*docs / "tutorial.md").string() + " and the pages beside it" : "docs/tutorial.md of the sources";
}

}  // namespace

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  names.reserve(kCommands.size());
  for (const Command& command : kCommands) names.emplace_back(command.name);
  return names;
}

std::span<const Command> Commands() { return kCommands; }

std::string VersionLine() { return "ridgeline " + std::string(kVersion); }

Action ParseCommandLine(int argc, const char* const* argv) {
  // Shared because an action may read it (completion does), and actions are copied.
  const auto owner = std::make_shared<CLI::App>(
      "Ridgeline measures how fast, and in how much memory, large language models train.", "ridgeline");
  CLI::App& app = *owner;
  app.set_version_flag("--version", VersionLine(), "print the version");
  app.footer(
      "A first run:\n"
      "  ridgeline plan sweeps/demo.yaml      what would run, and whether it fits\n"
      "  ridgeline run sweeps/demo.yaml       run it; interrupt and rerun as you like\n"
      "  ridgeline report activation-checkpointing --to report.html\n\n"
      "Documentation: " +
      DocsPlace() +
      "\n\n"
      "In all commands, -o FORMAT is the form of the output, and --to PATH the file or the folder that is "
      "written. Without -o, the ending of the file decides the form.\n\n"
      "Exit codes: 0 done, 1 points failed, or a regression, 2 usage or bad input, 3 "
      "infrastructure, 4 inconclusive, 130 interrupted. Every command has its own --help.");
  app.formatter(HelpForm());
  app.require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, Action>> declared;
  for (const Command& command : kCommands) {
    CLI::App* self = app.add_subcommand(std::string(command.name), std::string(command.summary));
    declared.emplace_back(self, command.declare(*self));
  }

  // Checked first, because CLI11 would take an unknown command for a stray argument.
  const std::vector<std::string> names = CommandNames();
  if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    throw Error(ErrorKind::kUsage, fmt::format("there is no command '{}'{}", argv[1], DidYouMean(argv[1], names)),
                "see ridgeline --help");
  }
  const auto chosen = [&]() -> const std::pair<CLI::App*, Action>* {
    for (const auto& entry : declared) {
      if (entry.first->parsed()) return &entry;
    }
    return nullptr;
  };
  const auto print = [](std::string text, int exit_code) {
    return [text = std::move(text), exit_code] {
      session::Write(text);
      return exit_code;
    };
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return print(app.help(), 0);
  } catch (const CLI::CallForVersion& e) {
    return print(std::string(e.what()) + "\n", 0);
  } catch (const CLI::ParseError& e) {
    ThrowUsage(app, chosen() == nullptr ? nullptr : chosen()->first, e);
  }
  if (chosen() == nullptr) return print(app.help(), ExitCode(ErrorKind::kUsage));
  return [owner, action = chosen()->second] { return action(); };
}

}  // namespace ridgeline::cli
