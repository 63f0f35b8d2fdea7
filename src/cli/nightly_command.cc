// `ridgeline nightly`: measures a sweep every night, and compares it with earlier nights.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/harness.h"
#include "cli/interrupts.h"
#include "cli/nightly_accept.h"
#include "cli/nightly_install.h"
#include "cli/output.h"
#include "metrics/exposition.h"
#include "regress/gate.h"
#include "regress/nights.h"
#include "sweep/sweep.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

constexpr const char* kDefaultFolder = "nightly";
constexpr int64_t kStopDelayNs = 200'000'000;  // passes on a request to stop after this time at the latest

struct NightlyOptions {
  std::string sweep;
  std::string folder = kDefaultFolder;
  std::string launcher;
  std::vector<fs::path> trainers;
  std::string pinned;
  std::string base_build;
  std::string work_dir = ".";
  std::string alert;
  std::string at = "1:00";
  std::string to;
  AcceptOptions accept;
  bool cron = false;
  bool systemd = false;
  bool scrontab = false;
  bool kubernetes = false;
};

// The contents of a nightly folder.
struct NightlyPlaces {
  explicit NightlyPlaces(const fs::path& folder)
      : db(folder / "ridgeline.db"),
        runs(folder / "runs"),
        pages(folder / "pages"),
        nights(folder / "nights"),
        last(folder / "last"),
        metrics(folder / "nightly.prom"),
        lock(folder / "lock") {}
  fs::path db, runs, pages, nights, last, metrics, lock;
};

std::vector<Night> NightsIn(const NightlyPlaces& places) {
  std::vector<std::string> problems;
  std::vector<Night> nights = ReadNights(places.nights, &problems);
  for (const std::string& problem : problems) SayAside("warning: {}\n", problem);
  return nights;
}

// Runs this program again, in `folder`, with its output in the log. Passes on requests to stop (Interrupts).
int RunAgain(const std::vector<std::string>& arguments, const fs::path& folder, const fs::path& log) {
  std::vector<std::string> argv = {ProgramDir() / "ridgeline"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  SpawnOptions options;
  options.work_dir = folder;
  options.stdout_file = log;
  options.stderr_file = log;
  options.new_process_group = true;  // Ctrl-C reaches it through us, once
  options.die_with_parent = true;
  Child child = Child::Spawn(argv, options);
  int told = 0;
  std::optional<ExitStatus> ended;
  while (!(ended = child.WaitFor(kStopDelayNs))) {
    const int asked = Interrupts::Count();
    if (asked > told) child.Signal(asked > told + 1 ? SIGHUP : SIGTERM);  // a hangup counts as two requests
    told = asked;
  }
  const ExitStatus status = *ended;
  return status.signal != 0 ? 128 + status.signal : status.exit_code;
}

// The last message of a program in a log. Indented lines below it say what to do.
std::string LastWordOf(const fs::path& log) {
  constexpr size_t kTail = 4096;
  std::string last;
  std::istringstream lines(ReadLogTail(log, kTail));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != ' ') last = line;
  }
  return last;
}

// Names the folders with definitions, because the program may run in another folder and search another `trainers`.
std::vector<std::string> TrainersArguments(const NightlyOptions& options) {
  std::vector<fs::path> folders = options.trainers;
  if (fs::is_directory("trainers")) folders.emplace_back("trainers");
  std::vector<std::string> arguments;
  for (const fs::path& folder : folders) {
    arguments.insert(arguments.end(), {"--trainers", fs::absolute(folder).lexically_normal()});
  }
  return arguments;
}

void AddWords(const std::vector<std::string>& more, std::vector<std::string>& arguments) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

// Runs the gate on the night, and writes its results for people and for other programs.
int GateNight(const NightlyOptions& options, const NightlyPlaces& places, const Night& night) {
  const fs::path folder = places.nights / night.name;
  std::vector<std::string> gate = {
      "gate",    night.name,           "--baseline", "night-*",          "--db",      places.db,
      "--junit", folder / "gate.xml",  "--summary",  folder / "gate.md", "--metrics", folder / "gate.prom",
      "--to",    folder / "gate.json", "--records",  places.nights};
  gate.push_back("--annotations=" + (folder / "gate.annotations").string());
  if (!options.pinned.empty()) AddWords({"--pinned", options.pinned}, gate);
  if (!options.base_build.empty()) {
    AddWords({"--confirm", night.sweep, "--base-build", fs::absolute(options.base_build)}, gate);
    AddWords({"--turns", folder / "turns"}, gate);
    if (!options.launcher.empty()) AddWords({"--launcher", options.launcher}, gate);
    AddWords(TrainersArguments(options), gate);
  }
  return RunAgain(gate, options.work_dir, folder / "gate.log");
}

// Removes what the gate of an earlier attempt wrote: readers would take it for this attempt's.
void RemoveGateForms(const fs::path& folder) {
  std::error_code ec;
  for (const char* form : {"gate.json", "gate.xml", "gate.md", "gate.prom", "gate.annotations"}) {
    fs::remove(folder / form, ec);
  }
}

// Sets the worse of the run's and the gate's ends. Points with a result count, even if others were lost.
void Conclude(Night& night, const std::vector<Night>& before, const std::vector<std::string>& run,
              const NightlyOptions& options, const NightlyPlaces& places) {
  const fs::path folder = places.nights / night.name;
  RemoveGateForms(folder);
  if (night.run_exit == ExitCode(ErrorKind::kUsage)) {
    night.exit_code = night.run_exit;
    night.words = "the sweep was refused: " + LastWordOf(folder / "run.log");
    return;
  }
  const fs::path findings = folder / "gate.json";
  int gate = GateNight(options, places, night);
  // With a base build, the gate has already measured failures again in turns.
  if (options.base_build.empty() && fs::exists(findings) && AnythingFailedOnce(ReadJsonFile(findings))) {
    std::vector<std::string> again = run;
    AddWords({"--retry", "failed"}, again);
    night.run_exit = RunAgain(again, options.work_dir, folder / "run.log");
    RemoveGateForms(folder);
    gate = GateNight(options, places, night);
  }
  const bool was_a_run = night.run_exit == 0 || night.run_exit == kUnansweredExit;
  const bool is_lost = night.run_exit == ExitCode(ErrorKind::kInfrastructure);
  if ((was_a_run || is_lost) && fs::exists(findings)) {
    const Json found = ReadJsonFile(findings);
    night.was_gated = MeasuredAnything(found);
    night.lost = LostCells(found);
    night.absent = AbsentCells(found, before);
    if (night.was_gated) night.worse = WorseCells(found);
  }
  const bool is_judged = fs::exists(findings);
  const bool is_worst = gate == GateExitCode(GateAnswer::kRegressed) && night.was_gated;
  night.exit_code = (was_a_run && is_judged) || is_worst ? gate : ExitCode(ErrorKind::kInfrastructure);
  const std::string said = LastWordOf(folder / "gate.log");
  const std::string prefix = findings.string() + ": ";
  if (!is_judged) night.words = fmt::format("the gate ended with {}: {}", gate, said);
  if (is_judged && (was_a_run || night.was_gated))
    night.words = said.substr(said.starts_with(prefix) ? prefix.size() : 0);
  if (was_a_run) return;
  night.words += fmt::format("{}the run ended with {}: {}", night.words.empty() ? "" : "; ", night.run_exit,
                             LastWordOf(folder / "run.log"));
}

// The figures of `last`, and of the nights of its sweep. A figure that is unknown is left out.
std::string MetricsOf(std::vector<Night> nights, const Night& last) {
  std::erase_if(nights, [&](const Night& night) { return !IsOfSweep(night, last.sweep_name); });
  MetricsText text(MetricsFormat::kPrometheus);
  using enum MetricsText::Kind;
  const std::optional<Night> good = LastGoodNight(nights);
  const MetricLabels labels = {{"sweep", last.sweep_name}};
  const auto gauge = [&](const char* name, const char* unit, const char* help, double value) {
    text.Begin(kGauge, name, unit, help);
    text.Add(labels, value);
  };
  const int64_t first_unix_s = nights.empty() ? last.started_unix_s : nights.front().started_unix_s;
  gauge("ridgeline_nightly_first_start_timestamp_seconds", "seconds", "When the first night began.",
        static_cast<double>(std::min(first_unix_s, last.started_unix_s)));
  gauge("ridgeline_nightly_last_start_timestamp_seconds", "seconds", "When the last night began.",
        static_cast<double>(last.started_unix_s));
  if (good) {
    gauge("ridgeline_nightly_last_success_timestamp_seconds", "seconds", "When the last good night ended.",
          static_cast<double>(good->ended_unix_s));
  }
  gauge("ridgeline_nightly_last_exit_code", "",
        "Of the last night: 0 pass, 1 regressed, 2 refused, 3 infrastructure, 4 inconclusive.", last.exit_code);
  if (last.was_gated || !last.lost.empty()) {
    gauge("ridgeline_nightly_last_lost_points", "", "Points of the last night without a result.",
          static_cast<double>(last.lost.size()));
  }
  if (last.was_gated) {
    gauge("ridgeline_nightly_last_worse_points", "", "Points of the last night that are worse than their baseline.",
          static_cast<double>(last.worse.size()));
  }
  gauge("ridgeline_nightly_last_duration_seconds", "seconds", "How long the last night took.",
        static_cast<double>(last.ended_unix_s - last.started_unix_s));
  return text.Finish();
}

// A sweep that cannot be read has no name. Then it is that of the night before, otherwise its file's.
std::string SweepNameOf(const NightlyOptions& options, const std::vector<Night>& nights) {
  try {
    return LoadSweepFor(options.sweep, options.launcher, options.trainers).name;
  } catch (const Error&) {
    if (!nights.empty() && !nights.back().sweep_name.empty()) return nights.back().sweep_name;
    return fs::path(options.sweep).stem();
  }
}

// Runs the user's alert program, and tells it the night, its outcome and its files.
void Alert(const NightlyOptions& options, const Night& night, const fs::path& folder) {
  if (options.alert.empty() || night.exit_code == 0) return;
  try {
    const ExitStatus status = Child::Spawn({options.alert, night.name, NightAnswer(night), folder}).Wait();
    if (!status.ok()) SayAside("nightly: {}: {}\n", options.alert, Describe(status));
  } catch (const Error& e) {
    SayAside("nightly: {}\n", e.message());
  }
}

// Makes a link to the folder of the night that began last, so that programs find its files without its name. On a file
// system without links, the night still counts.
void LinkLast(const Night& night, const NightlyPlaces& places) {
  const fs::path made = places.last.string() + ".part";
  std::error_code ec;
  fs::remove(made, ec);
  fs::create_directory_symlink(places.nights.filename() / night.name, made, ec);
  if (!ec) fs::rename(made, places.last, ec);
  if (ec) SayAside("warning: {} cannot be made a link to the night: {}\n", places.last.string(), ec.message());
}

int64_t NowUnixS() { return SystemClock().UnixNs() / 1'000'000'000; }

int RunNight(const NightlyOptions& options) {
  const fs::path root = fs::absolute(options.folder).lexically_normal();
  const NightlyPlaces places(root);
  MakeDirs(root);
  const std::optional<FileLock> lock = FileLock::Try(places.lock);
  if (!lock) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("nightly: another night is at work in {}", root.string()),
                "it ends by itself; `ridgeline nightly status` says how far it is");
  }
  const std::vector<Night> before = NightsIn(places);
  Night night;
  night.sweep = fs::absolute(options.sweep).lexically_normal();
  night.sweep_name = SweepNameOf(options, before);
  night.name = NightAt(before, night.sweep_name, SystemClock().UnixNs());
  night.started_unix_s = NowUnixS();
  WriteNight(night, places.nights);
  LinkLast(night, places);
  const fs::path folder = places.nights / night.name;
  Say("{}: {} runs; its log is {}\n", night.name, night.sweep, (folder / "run.log").string());
  std::vector<std::string> run = {"run", night.sweep, "--db", places.db, "--campaign", night.name, "--to", places.runs};
  if (!options.launcher.empty()) AddWords({"--launcher", options.launcher}, run);
  AddWords(TrainersArguments(options), run);
  {
    const Interrupts interrupts;
    night.run_exit = RunAgain(run, options.work_dir, folder / "run.log");
    Conclude(night, before, run, options, places);
    if (fs::exists(places.db)) {
      std::vector<std::string> report = {"report", "all", "--db", places.db, "--to", places.pages};
      if (fs::exists(folder / "gate.json")) report.insert(report.end(), {"--input", folder / "gate.json"});
      RunAgain(report, options.work_dir, folder / "run.log");
    }
    if (Interrupts::Count() > 0) {
      SayAside("interrupted; to resume the night, run the same command on the same day\n");
      return kInterruptedExit;
    }
  }
  night.ended_unix_s = NowUnixS();
  WriteNight(night, places.nights);
  WriteFileAtomic(places.metrics, MetricsOf(NightsIn(places), night));
  Say("{}: {}: {}\n", night.name, NightAnswer(night), NightWords(night));
  Alert(options, night, folder);
  return night.exit_code;
}

int ShowNights(const NightlyOptions& options) {
  const NightlyPlaces places(options.folder);
  const std::vector<Night> nights = NightsIn(places);
  if (nights.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("nightly: there is no night in {} yet", options.folder),
                "`ridgeline nightly run SWEEP --dir DIR` is one; `ridgeline nightly install` has one every night");
  }
  Table table{{"night", "began", "took", "answer", "details"}, {}};
  for (const Night& night : nights) {
    const std::string took =
        night.is_over()
            ? FormatDuration(1'000'000'000 * std::max<int64_t>(1, night.ended_unix_s - night.started_unix_s))
            : "";
    table.rows.push_back({night.name, FormatUnixTime(1'000'000'000 * night.started_unix_s), took, NightAnswer(night),
                          NightWords(night) + (night.accepted.empty() ? "" : "; " + AcceptedWords(night))});
  }
  Write(ToText(table) + "\n");
  const std::optional<Night> good = LastGoodNight(nights);
  if (!good) {
    Say("There was no good night yet.\n");
  } else {
    Say("The last good night was {}, {} ago.\n", good->name,
        FormatDuration(1'000'000'000 * std::max<int64_t>(1, NowUnixS() - good->ended_unix_s)));
  }
  return 0;
}

int Install(const NightlyOptions& options) {
  if (options.cron + options.systemd + options.scrontab + options.kubernetes != 1) {
    throw Error(ErrorKind::kUsage, "nightly: install needs a scheduler",
                "say --cron, --systemd, --scrontab or --kubernetes");
  }
  const fs::path file = fs::absolute(options.sweep).lexically_normal();
  NightlySchedule schedule;
  SetTimeOfDay(options.at, schedule);
  schedule.name = LoadSweepFor(file, options.launcher, options.trainers).name;
  schedule.sweep_text = ReadFile(file);
  schedule.command = {ProgramDir() / "ridgeline",
                      "nightly",
                      "run",
                      file,
                      "--dir",
                      fs::absolute(options.folder).lexically_normal(),
                      "--work-dir",
                      fs::canonical(options.work_dir)};
  if (!options.launcher.empty()) AddWords({"--launcher", options.launcher}, schedule.command);
  AddWords(TrainersArguments(options), schedule.command);
  if (!options.pinned.empty()) AddWords({"--pinned", options.pinned}, schedule.command);
  if (!options.base_build.empty()) AddWords({"--base-build", fs::absolute(options.base_build)}, schedule.command);
  if (!options.alert.empty()) {
    // A program without a folder is searched along PATH.
    const bool is_path = options.alert.find('/') != std::string::npos;
    AddWords({"--alert", is_path ? fs::absolute(options.alert).lexically_normal().string() : options.alert},
             schedule.command);
  }
  if (options.systemd) {
    const SystemdUnits units = SystemdText(schedule);
    if (options.to.empty()) {
      Write(units.service + "\n" + units.timer);
      return 0;
    }
    MakeDirs(options.to);
    WriteFileAtomic(fs::path(options.to) / "ridgeline-nightly.service", units.service);
    WriteFileAtomic(fs::path(options.to) / "ridgeline-nightly.timer", units.timer);
    Say("{}: ridgeline-nightly.service, ridgeline-nightly.timer\n", options.to);
    return 0;
  }
  const std::string text = options.cron ? CronText(schedule)
                           : options.scrontab
                               ? ScrontabText(schedule)
                               : KubernetesText(schedule, ReadFile(DataDir("kubernetes") / "nightly.yaml"));
  if (options.to.empty()) {
    Write(text);
    return 0;
  }
  WriteFileAtomic(options.to, text);
  Say("{}: a night of {} every day at {}\n", options.to, schedule.name, options.at);
  return 0;
}

void AddFolderOption(CLI::App& command, NightlyOptions& options) {
  command.add_option("--dir", options.folder, "the folder for the database, the nights and the pages")
      ->capture_default_str()
      ->type_name("DIR");
}

void AddNightOptions(CLI::App& command, NightlyOptions& options) {
  command.add_option("sweep", options.sweep, "the sweep's file")->required()->type_name("SWEEP");
  AddFolderOption(command, options);
  command.add_option("--launcher", options.launcher, "where jobs run (default: the sweep's launcher)")
      ->type_name("NAME");
  AddTrainersOption(command, options.trainers);
  command.add_option("--pinned", options.pinned, "a campaign or commit that stays the baseline, to detect slow creep")
      ->type_name("BASE");
  command
      .add_option("--base-build", options.base_build,
                  "a folder with older programs; suspects are measured again in turns with them")
      ->type_name("DIR");
  command.add_option("--work-dir", options.work_dir, "the folder in which the sweep runs; default: this one")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  command
      .add_option("--alert", options.alert,
                  "a program to start after a bad night, with the night's name, verdict and folder")
      ->type_name("PROGRAM");
}

}  // namespace

Action NightlyCommand(CLI::App& self) {
  const auto options = std::make_shared<NightlyOptions>();
  self.require_subcommand(1);
  CLI::App* run = self.add_subcommand("run", "run a sweep for tonight, check it with the gate, and render the reports");
  AddNightOptions(*run, *options);
  run->get_option("--base-build")->check(CLI::ExistingDirectory);
  run->footer(
      "Runs the sweep as a campaign of its own, night-DATE, compares it with earlier nights, and renders "
      "every report into DIR/pages. DIR/nights/NAME has its logs and the gate's output, and "
      "DIR/nightly.prom has metrics. To resume a night that was interrupted, or that the infrastructure "
      "cost, run the command again on the same day.\n\n"
      "Exit codes: 0 pass, 1 regressed, 2 the sweep was refused, 3 infrastructure, 4 inconclusive.\n\n"
      "Example:\n"
      "  ridgeline nightly run sweeps/nightly.yaml --dir /srv/nightly \\\n"
      "    --alert /usr/local/bin/page-me");
  CLI::App* status = self.add_subcommand("status", "show the nights, and when the last good one was");
  AddFolderOption(*status, *options);
  status->footer(
      "Example:\n"
      "  ridgeline nightly status --dir /srv/nightly");
  CLI::App* accept = self.add_subcommand("accept", "accept what a night found worse");
  accept->add_option("night", options->accept.night, "the night, as `nightly status` names it")
      ->required()
      ->type_name("NIGHT");
  CLI::Option* all = accept->add_flag("--all", options->accept.all, "every point that the night found worse");
  accept->add_option("--point", options->accept.points, "one point, as the gate names it; repeatable")
      ->excludes(all)
      ->allow_extra_args(false)
      ->type_name("NAME");
  accept->add_option("--reason", options->accept.reason, "why, in one line; the gate shows it")->type_name("TEXT");
  accept->add_option("--author", options->accept.author, "who accepts it (default: git's user.name, else the login)")
      ->type_name("NAME");
  accept->add_flag("--undo", options->accept.undo, "take an acceptance back");
  AddFolderOption(*accept, *options);
  accept->footer(
      "A regression is in no baseline, and every night reports it until it is fixed. If you accept it, "
      "earlier measurements count as if they had the change, and so does the base build. Later nights are "
      "red only if they are worse than that. The gate shows the change beside the point, with the reason "
      "and the author. --undo takes it back for later nights, for all points or those of --point.\n\n"
      "Examples:\n"
      "  ridgeline nightly accept night-2026-02-01 --point batch_size=2 \\\n"
      "    --reason 'checks for NaN in each step'\n"
      "  ridgeline nightly accept night-2026-02-01 --all --reason 'new driver'");
  CLI::App* install = self.add_subcommand("install", "print what makes a scheduler run it every night");
  AddNightOptions(*install, *options);
  install->add_flag("--cron", options->cron, "for crontab");
  install->add_flag("--systemd", options->systemd, "a user's service and timer");
  install->add_flag("--scrontab", options->scrontab, "for Slurm's scrontab");
  install->add_flag("--kubernetes", options->kubernetes, "a CronJob with what it needs");
  install->add_option("--at", options->at, "the time of day; in UTC for systemd and Kubernetes")
      ->capture_default_str()
      ->type_name("H:MM");
  AddToOption(*install, options->to, "FILE", "the file to write, or the folder for --systemd (default: print it)");
  install->footer(
      "Changes nothing by itself. Read what it writes, and install that.\n\n"
      "Example:\n"
      "  ridgeline nightly install sweeps/nightly.yaml --dir /srv/nightly --cron");
  self.footer(
      "Example:\n"
      "  ridgeline nightly run sweeps/nightly.yaml");
  return [options, run, status, accept] {
    if (run->parsed()) return RunNight(*options);
    if (accept->parsed()) return AcceptNight(options->accept, NightlyPlaces(options->folder).nights, options->folder);
    return status->parsed() ? ShowNights(*options) : Install(*options);
  };
}

}  // namespace ridgeline
