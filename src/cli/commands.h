// The commands of `ridgeline`, one file each: <name>_command.cc declares its options and returns what to run.
//
// type_name() says what an option takes. Help shows it, and shell completion follows it: SWEEP (a sweep file), REPORT
// (a report's name), TRAINER (a definition's), DEVICE (an entry's), LAUNCHER, COMMAND, FILE, DIR, JOB (a job file).
// Completion finds the choices of a CLI::IsMember by itself.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace ridgeline::cli {

// Runs after parsing; the result is the exit code. May throw Error.
using Action = std::function<int()>;

struct Command {
  std::string_view name;
  std::string_view summary;           // one line for `ridgeline --help`
  Action (*declare)(CLI::App& self);  // adds options and a worked example in the footer
};

// All commands, in the order in which `ridgeline --help` lists them.
std::span<const Command> Commands();
std::vector<std::string> CommandNames();

// Returns the command's action, or one that prints the requested help or version. Throws Error(kUsage), which names the
// nearest command or option, if one is unknown.
Action ParseCommandLine(int argc, const char* const* argv);

Action PlanCommand(CLI::App& self);
Action PredictCommand(CLI::App& self);
Action AdviseCommand(CLI::App& self);
Action RunCommand(CLI::App& self);
Action BenchCommand(CLI::App& self);
Action RenderCommand(CLI::App& self);
Action CollectCommand(CLI::App& self);
Action StatusCommand(CLI::App& self);
Action ServeCommand(CLI::App& self);
Action CancelCommand(CLI::App& self);
Action ReportCommand(CLI::App& self);
Action CompareCommand(CLI::App& self);
Action GateCommand(CLI::App& self);
Action HistoryCommand(CLI::App& self);
Action NightlyCommand(CLI::App& self);
Action QueryCommand(CLI::App& self);
Action DbCommand(CLI::App& self);
Action TrainersCommand(CLI::App& self);
Action DevicesCommand(CLI::App& self);
Action CalibrateCommand(CLI::App& self);
Action ExecCommand(CLI::App& self);
Action DoctorCommand(CLI::App& self);
Action CompletionCommand(CLI::App& self);
Action HelpCommand(CLI::App& self);
Action VersionCommand(CLI::App& self);

// Adds the options of `run` to a command that makes the sweep itself. What it returns runs the sweep of a file.
std::function<int(const std::filesystem::path& sweep)> AddRunOptions(CLI::App& self);

// "ridgeline 0.1.0".
std::string VersionLine();

}  // namespace ridgeline::cli
