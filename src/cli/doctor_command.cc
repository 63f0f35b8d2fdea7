#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/folders.h"
#include "base/process.h"
#include "base/table.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/machine_checks.h"
#include "cli/options.h"
#include "cli/temporary_folder.h"
#include "launch/check_rules.h"
#include "launch/launcher.h"
#include "plan/trainer.h"
#include "report/report.h"
#include "rounds/rounds.h"
#include "run/result.h"
#include "run/spec.h"
#include "run/trainer_result.h"
#include "session/say.h"
#include "session/session.h"
#include "store/store.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "sweep/sweep.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr size_t kNamedBilled = 5;
constexpr int64_t kTrainerPatienceNs = 60'000'000'000;

// An exception from a check becomes its finding.
Check Try(const std::string& name, const std::function<Check()>& check) {
  try {
    return check();
  } catch (const Error& e) {
    return {CheckState::kFail, name, e.message(), e.hint()};
  } catch (const std::exception& e) {
    return {CheckState::kFail, name, e.what(), ""};
  }
}

Check TrainerCheck(const fs::path& trainer) {
  if (!fs::exists(trainer)) {
    return {CheckState::kFail, "trainer", trainer.string() + " is not there", "build or install ridgeline-train"};
  }
  const Captured version = Run({trainer.string(), "--version"}, kTrainerPatienceNs);
  if (!version.status.ok()) {
    return {
        CheckState::kFail, "trainer",
        fmt::format("{} --version: {}: {}", trainer.string(), Describe(version.status), FirstLine(version.stderr_text)),
        "rebuild or reinstall it"};
  }
  return {CheckState::kOk, "trainer", FirstLine(version.stdout_text), ""};
}

// Runs a real spec through the real contract, on the device that computes nothing.
std::vector<Check> TrainerRunChecks(const fs::path& trainer) {
  const TemporaryFolder folder("ridgeline-doctor");
  std::vector<Problem> problems;
  const RunSpec spec = BuildSpec({{"model", "llama-10m"}, {"seq_length", 128}, {"device", "meta"}}, problems);
  const fs::path spec_file = folder.path() / "spec.json";
  const fs::path result_file = folder.path() / "result.json";
  WriteFileAtomic(spec_file, EncodeSpec(spec));
  const Captured ran =
      Run({trainer.string(), "--spec", spec_file.string(), "--result", result_file.string()}, kTrainerPatienceNs);
  const std::optional<RunResult> wrote = ReadTrainerResult(result_file, spec, "its result");
  if (!wrote) return {{CheckState::kFail, "engine", Describe(ran.status) + ": " + FirstLine(ran.stderr_text), ""}};
  const RunResult& result = *wrote;
  std::vector<Check> checks;
  checks.push_back(
      {result.status == RunStatus::kOk ? CheckState::kOk : CheckState::kFail, "engine",
       fmt::format("planned {} on meta: {}, {}", spec.model, StatusName(result.status),
                   result.message.empty() ? FormatBytes(result.memory.planned_peak_bytes) : result.message),
       result.hint});
  for (const auto& [name, value] : result.environment) {
    if (name.find("dnn") != std::string::npos) checks.push_back({CheckState::kOk, "library", name + " " + value, ""});
  }
  return checks;
}

// A missing GPU is no fault: programs that compute on CPUs need none.
std::vector<Check> GpuChecks() {
  const Captured said = session::AskTrainerForGpus();
  if (!said.status.ok()) {
    return {{CheckState::kWarn, "gpu", Describe(said.status) + ": " + FirstLine(said.stderr_text), ""}};
  }
  std::vector<Check> checks;
  std::istringstream lines(said.stdout_text);
  for (std::string line; std::getline(lines, line);) {
    const bool none = line.starts_with(session::kNoGpus);
    checks.push_back({none ? CheckState::kWarn : CheckState::kOk, "gpu", line,
                      none ? "points with device: cuda need one; all others run without" : ""});
  }
  return checks;
}

Check StoreCheck() {
  const TemporaryFolder folder("ridgeline-doctor");
  store::Store store = session::OpenStore(folder.path() / "doctor.db", store::Store::Mode::kReadWrite);
  return {CheckState::kOk, "sqlite", CellText(store.Query("SELECT sqlite_version()").rows.at(0).at(0)), ""};
}

std::vector<Check> LauncherChecks(const fs::path& plugins) {
  std::vector<Check> checks;
  const TemporaryFolder folder("ridgeline-doctor");
  for (const std::string& name : launch::AvailableLaunchers(plugins)) {
    checks.push_back(Try("launcher", [&]() -> Check {
      const auto launcher = launch::LoadLauncher(name, Json{{"launcher", name}}, folder.path() / name, plugins);
      const launch::LauncherStatus status = launcher->Probe();
      if (status.available) return {CheckState::kOk, "launcher", name + ": " + status.description, ""};
      return {CheckState::kWarn, "launcher", name + ": " + status.why, "other launchers work all the same"};
    }));
  }
  if (checks.empty()) {
    checks.push_back({CheckState::kFail, "launcher", "none in " + plugins.string(), "reinstall Ridgeline"});
  }
  return checks;
}

// Checks the sweep's launcher with everything that the points request.
Check SweepsLauncherCheck(const fs::path& file, const std::vector<fs::path>& trainers) {
  const sweep::Sweep sweep = session::LoadSweepFor(file, "", trainers);
  const TemporaryFolder folder("ridgeline-doctor");
  const auto launcher = session::OpenLauncherFor(sweep, 0, folder.path() / "doctor.db");
  launch::CheckRules(sweep, *launcher);
  const launch::LauncherStatus status = launcher->Probe();
  const std::string as = fmt::format("{} as {} has it: ", launcher->name(), file.string());
  if (const std::string why = plan::WhyNoCudaTrainer(sweep, sweep::Expand(sweep)); !why.empty()) {
    return {CheckState::kFail, "launcher", as + why, plan::kGetCudaTrainer};
  }
  if (status.available) {
    launch::CheckWithScheduler(sweep, *launcher);
    std::vector<std::string> billed = rounds::StillBilled(sweep, *launcher);
    const std::string count = CountOf(std::ssize(billed), "item");
    billed.resize(std::min(billed.size(), kNamedBilled));
    return {CheckState::kOk, "launcher", as + status.description,
            billed.empty() ? "" : fmt::format("this sweep is still billed for {}: {}", count, Join(billed, "; "))};
  }
  return {CheckState::kFail, "launcher", as + status.why, "no job of this sweep can be submitted from here"};
}

std::vector<Check> ReportChecks() {
  DataDir("reports");  // only the installed ones: others may be the user's own
  std::vector<Check> checks;
  std::vector<std::string> names;
  for (const fs::path& folder : report::FindReports(report::ReportFolders({}))) {
    Check check = Try("report", [&]() -> Check {
      return {CheckState::kOk, report::LoadReportFolder(folder).name, "", ""};
    });
    if (check.state == CheckState::kOk) {
      names.push_back(check.name);
    } else {
      checks.push_back(std::move(check));
    }
  }
  checks.insert(checks.begin(), names.empty() ? Check{CheckState::kFail, "reports", "none", "reinstall Ridgeline"}
                                              : Check{CheckState::kOk, "reports", Join(names, ", "), ""});
  return checks;
}

std::vector<Check> SweepChecks() {
  const fs::path folder = DataDir("sweeps");
  std::vector<Check> checks;
  int64_t sweeps = 0;
  ForEachEntry(folder, [&](const fs::directory_entry& entry) {
    if (entry.path().extension() != ".yaml") return;
    Check check = Try("sweep", [&]() -> Check {
      return {CheckState::kOk, sweep::LoadSweep(entry.path()).name, "", ""};
    });
    if (check.state == CheckState::kOk) {
      ++sweeps;
    } else {
      checks.push_back(std::move(check));
    }
  });
  checks.insert(checks.begin(), {CheckState::kOk, "sweeps", fmt::format("{} in {}", sweeps, folder.string()), ""});
  return checks;
}

void Append(std::vector<Check>& checks, const std::string& name, const std::function<std::vector<Check>()>& more) {
  try {
    for (Check& check : more()) checks.push_back(std::move(check));
  } catch (const Error& e) {
    checks.push_back({CheckState::kFail, name, e.message(), e.hint()});
  } catch (const std::exception& e) {
    checks.push_back({CheckState::kFail, name, e.what(), ""});
  }
}

std::string_view StateName(CheckState state) {
  return state == CheckState::kOk ? "ok" : state == CheckState::kWarn ? "warn" : "FAIL";
}

// Joins a program's output lines into one.
std::string InOneLine(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? std::string("; ") : std::string(1, c);
  return line;
}

void PrintText(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    session::Say("{:<4}  {:<10} {}\n", StateName(check.state), check.name, InOneLine(check.detail));
    if (!check.advice.empty()) session::Say("                 -> {}\n", InOneLine(check.advice));
  }
}

void PrintJson(const std::vector<Check>& checks) {
  Table table{{"state", "check", "detail", "advice"}, {}};
  for (const Check& check : checks) {
    table.rows.push_back({std::string(StateName(check.state)), check.name, check.detail, check.advice});
  }
  session::Write(ToJson(table));
}

// `sweep`: empty if no sweep is checked.
int Doctor(const std::string& sweep, const std::vector<fs::path>& trainers, const std::string& format) {
  std::vector<Check> checks = {{CheckState::kOk, "ridgeline", fmt::format("{}, commit {}", kVersion, GitCommit()), ""}};
  Append(checks, "machine", [] { return MachineChecks("/"); });
  checks.push_back(DiskCheck(fs::current_path()));
  const fs::path trainer = ProgramDir() / "ridgeline-train";
  checks.push_back(Try("trainer", [&] { return TrainerCheck(trainer); }));
  if (checks.back().state == CheckState::kOk) {
    Append(checks, "engine", [&] { return TrainerRunChecks(trainer); });
    Append(checks, "gpu", [&] { return GpuChecks(); });
  }
  checks.push_back(Try("sqlite", StoreCheck));
  Append(checks, "launcher", [] { return LauncherChecks(DataDir("plugins")); });
  if (!sweep.empty()) checks.push_back(Try("launcher", [&] { return SweepsLauncherCheck(sweep, trainers); }));
  Append(checks, "reports", ReportChecks);
  Append(checks, "sweeps", SweepChecks);

  format == "json" ? PrintJson(checks) : PrintText(checks);
  const bool failed =
      std::any_of(checks.begin(), checks.end(), [](const Check& check) { return check.state == CheckState::kFail; });
  return failed ? ExitCode(ErrorKind::kInfrastructure) : 0;
}

}  // namespace

Action DoctorCommand(CLI::App& self) {
  struct Options {
    std::string sweep;
    std::vector<fs::path> trainers;
    std::string format = "text";
  };
  const auto options = std::make_shared<Options>();
  self.add_option("sweep", options->sweep, "also check this sweep's launcher, with what its points ask for")
      ->type_name("SWEEP");
  AddTrainersOption(self, options->trainers);
  AddFormatOption(self, options->format, {"text", "json"});
  self.footer(
      "Prints a line for each check: ok, warn (works, but could be better) or FAIL, with what to do about "
      "it.\n\n"
      "Exit codes: 0 no check failed, 3 one failed.\n\n"
      "Examples:\n"
      "  ridgeline doctor\n"
      "  ridgeline doctor sweeps/scaling.yaml\n"
      "  ridgeline doctor -o json");
  return [options] { return Doctor(options->sweep, options->trainers, options->format); };
}

}  // namespace ridgeline::cli
