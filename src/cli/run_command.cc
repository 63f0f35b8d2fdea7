#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/quoting.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/dry_run.h"
#include "cli/options.h"
#include "cli/result_table.h"
#include "cli/temporary_folder.h"
#include "collect/rebuild.h"
#include "driver/cost.h"
#include "driver/display.h"
#include "driver/driver.h"
#include "driver/lock.h"
#include "driver/room.h"
#include "launch/check_rules.h"
#include "metrics/metrics_file.h"
#include "node/core_use.h"
#include "plan/trainer.h"
#include "predict/memory_forecast.h"
#include "rounds/rounds.h"
#include "run/gpus_here.h"
#include "session/defaults.h"
#include "session/interrupts.h"
#include "session/say.h"
#include "session/session.h"
#include "session/setup.h"
#include "sweep/expand.h"
#include "sweep/launch.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr size_t kShownBilled = 20;
constexpr double kBusyBeforeRun = 0.2;  // share of all cores that deserves a note before the run

struct RunOptions {
  std::string sweep;
  std::string db = session::kDefaultDb;
  std::string launcher;
  std::string retry;
  std::string to = session::kDefaultOutputDir;
  std::string reports;
  std::vector<fs::path> trainers;
  sweep::Given given;
  int64_t max_parallel = 0;
  bool again = false;
  bool detach = false;
  bool include_oom = false;
  bool dry_run = false;
  std::string campaign;
  std::string metrics_file;
};

// The campaign of this run's measurements: the named one; a new one if the points are to be measured again; otherwise
// the sweep's current one, so that a stopped run resumes.
std::string CampaignOf(const RunOptions& options, store::Store& store, const std::string& sweep) {
  if (!options.campaign.empty()) return options.campaign;
  if (!options.again) return store.CurrentCampaign(sweep);
  const std::string now = FormatUnixTime(SystemClock().UnixNs());
  std::string name = now;
  for (int i = 2; store.HasCampaign(name); ++i) name = fmt::format("{}-{}", now, i);
  return name;
}

// The facts that are known before the run. Elsewhere a launcher chooses the machine, and the version of another trainer
// is unknown.
Facts FactsHere(const sweep::Sweep& sweep, bool runs_here) {
  Facts facts = runs_here ? MachineFacts() : Facts();
  if (sweep.launch.trainer.empty() && sweep.trainers.all().empty()) {
    facts["version"] = kVersion;
    facts["git_commit"] = GitCommit();
  }
  return facts;
}

// The given values as options, each after a space.
std::string GivenWords(const sweep::Given& given) {
  std::string text;
  for (const std::string& each : given.set) text += " -S " + ShellWord(each);
  for (const std::string& each : given.only) text += " --only " + ShellWord(each);
  return text;
}

// The command that resumes this run.
std::string CommandLine(const RunOptions& options) {
  std::string text = "ridgeline run " + ShellWord(options.sweep);
  const auto add = [&](const char* name, const std::string& value, const std::string& standard) {
    if (value != standard) text += fmt::format(" {} {}", name, ShellWord(value));
  };
  add("--db", options.db, session::kDefaultDb);
  add("--launcher", options.launcher, "");
  add("--to", options.to, session::kDefaultOutputDir);
  add("--reports", options.reports, "");
  add("--metrics-file", options.metrics_file, "");
  if (options.include_oom) text += " --include-oom";
  for (const fs::path& folder : options.trainers) add("--trainers", folder.string(), "");
  return text + GivenWords(options.given);
}

int Unanswered(const std::string& what, const std::string& hint) {
  std::fflush(stdout);  // its lines come before this message
  session::SayAside("ridgeline: {}\n  {}\n", what, hint);
  return session::kUnansweredExit;
}

// Returns the exit code, and prints the next command if the code is not 0. A point that ran out of memory is answered:
// its memory does not suffice. Throws Error(kInfrastructure) if points have no result.
int ExitCodeOf(const driver::RunSummary& summary, const RunOptions& options, bool is_predicted) {
  const int64_t points = summary.ok + summary.failed + summary.no_result;
  if (summary.trainers_fault) {
    const std::string left =
        summary.no_result == 0 ? "" : fmt::format("{} of {} points have no result; ", summary.no_result, points);
    return Unanswered(
        fmt::format("{}it stopped when {}", left, summary.given_up),
        fmt::format("after you fix the cause: {} --retry failed. With give_up_after: 0 under launch, all points "
                    "are tried",
                    CommandLine(options)));
  }
  if (summary.no_result > 0) {
    std::string what = fmt::format("{} of {} points have no result", summary.no_result, points);
    if (!summary.given_up.empty()) what += "; it stopped when " + summary.given_up;
    if (!summary.set_aside.empty()) what += "; set aside: " + summary.set_aside;
    throw Error(
        ErrorKind::kInfrastructure, what,
        fmt::format("`ridgeline status {}{}` says what failed where; run them again with: {}", ShellWord(options.sweep),
                    options.db == session::kDefaultDb ? "" : " --db " + ShellWord(options.db), CommandLine(options)));
  }
  if (const int64_t faults = summary.failed - summary.out_of_memory; faults > 0) {
    return Unanswered(fmt::format("{} of {} points failed", faults, points),
                      fmt::format("after you fix the cause: {} --retry failed", CommandLine(options)));
  }
  if (summary.ok == 0 && points > 0) {
    return Unanswered("no point was measured: all are out of memory",
                      is_predicted
                          ? fmt::format("ridgeline plan {}{} shows what each needs", ShellWord(options.sweep),
                                        GivenWords(options.given))
                          : "let points be smaller (batch_size, seq_length, checkpointing), or give them more memory");
  }
  return 0;
}

// Shows the state of a run that its environment ended, as far as the database and the disk still allow.
void ShowWhatStands(const sweep::Sweep& sweep, store::Store& store, const std::vector<report::Report>& reports,
                    const fs::path& output_dir) {
  try {
    const store::SweepProgress progress = store.Progress(sweep.name);
    const Table table = ResultTable(store, sweep);
    session::Write("\n" + ToText(table) + BelowTable(table) + "\n");
    session::Say("{}\n", session::EndsText(progress));
    const std::vector<store::JobRecord> live = store.LiveJobs(sweep.name);
    const auto left = std::count_if(live.begin(), live.end(), [](const store::JobRecord& job) {
      return job.state != store::JobRecord::State::kIntent;
    });
    if (left > 0) {
      const bool one = left == 1;
      session::Say("{} job{} left as {}; the next run adopts {}\n", left, one ? " is" : "s are",
                   one ? "it is" : "they are", one ? "it" : "them");
    }
    session::WriteReports(reports, sweep.name, store, output_dir);
  } catch (const Error&) {
    // The error that ended the run is reported anyway.
  }
}

// Says what the sweep's jobs were billed, and what is billed now.
void SayCosts(const sweep::Sweep& sweep, store::Store& store, launch::Launcher& launcher, const std::string& campaign) {
  if (!launcher.can().bill) return;
  const driver::Costs costs = driver::CostsOf(store, rounds::CostsAreOf(sweep, campaign), sweep.price);
  for (const std::string& line : driver::CostLines(costs, sweep.price)) session::Say("{}\n", line);
  try {
    const std::vector<std::string> billed = rounds::StillBilled(sweep, launcher);
    for (size_t i = 0; i < std::min(billed.size(), kShownBilled); ++i) session::Say("still billed: {}\n", billed[i]);
    if (billed.size() > kShownBilled) session::Say("still billed: {} more\n", billed.size() - kShownBilled);
  } catch (const Error& e) {
    session::Say("what is still billed could not be asked: {}\n", e.message());
  }
}

// A failure of the environment leaves points without a result. The next run measures them.
rounds::RoundsResult RunOrSayHowToGoOn(const sweep::Sweep& sweep, const driver::DriverOptions& driver,
                                       const driver::DriverParts& parts, driver::RunDisplay& display,
                                       const std::vector<report::Report>& reports, const RunOptions& options) {
  try {
    const int64_t said = options.max_parallel > 0 ? options.max_parallel : sweep.launch.max_parallel;
    return rounds::RunInRounds(sweep, driver, parts, rounds::SearchedAtOnce(parts.launcher, said));
  } catch (const driver::Interrupted&) {
    throw;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInfrastructure) throw;
    display.Erase();
    ShowWhatStands(sweep, parts.store, reports, driver.jobs_dir.parent_path());
    SayCosts(sweep, parts.store, parts.launcher, driver.campaign);
    throw Error(
        e.kind(), e.message(),
        fmt::format("{}{}after you fix that: {}", e.hint(), e.hint().empty() ? "" : "\n  ", CommandLine(options)));
  }
}

// Results from elsewhere can be shown even if nothing can run here.
bool HasAllResults(const fs::path& db, const std::string& name) {
  if (!fs::exists(db)) return false;
  try {
    const store::SweepProgress sweep = session::OpenStore(db, store::Store::Mode::kReadOnly).Progress(name);
    return sweep.finished() == sweep.points;
  } catch (const Error&) {
    return false;  // an older database without the sweep: opening it for writing reports that
  }
}

// Opens a cluster's launcher. Reports that it is unavailable before anything is created.
std::unique_ptr<launch::Launcher> OpenClusters(const sweep::Sweep& sweep, const RunOptions& options) {
  auto launcher = session::OpenLauncherFor(sweep, options.max_parallel, options.db);
  const launch::LauncherStatus status = launcher->Probe();
  if (!status.available && !status.retry && !HasAllResults(options.db, sweep.name)) {
    throw driver::CannotRunHere(launcher->name(), status.why);
  }
  return launcher;
}

// Asks the trainer, too, because a container may have CUDA without NVML.
bool OurTrainerHasGpus() {
  const Captured said = session::AskTrainerForGpus();
  return said.status.ok() && !said.stdout_text.empty() && !said.stdout_text.starts_with(session::kNoGpus);
}

// Opens the database, and makes the folder of the jobs. If the database is refused, no folder is left behind.
store::Store OpenForRun(const fs::path& db, const fs::path& jobs, const std::function<void(const std::string&)>& note) {
  std::vector<fs::path> made;  // the innermost first
  for (fs::path folder = jobs; !folder.empty() && !fs::exists(folder); folder = folder.parent_path()) {
    made.push_back(folder);
  }
  MakeDirs(jobs);
  try {
    return store::Store::Open(db, store::Store::Mode::kReadWrite, note);
  } catch (...) {
    std::error_code ec;
    for (const fs::path& folder : made) fs::remove(folder, ec);
    throw;
  }
}

driver::DriverOptions DriverOptionsOf(const sweep::Sweep& sweep, const RunOptions& options, store::Store& store,
                                      predict::TimeModel times) {
  driver::DriverOptions driver;
  driver.program = ProgramDir() / "ridgeline";
  driver.jobs_dir = fs::absolute(options.to) / "jobs";
  driver.max_parallel =
      options.max_parallel > 0 ? options.max_parallel : std::max<int64_t>(sweep.launch.max_parallel, 1);
  driver.runs_here = session::RunsHere(sweep);
  driver.node = session::NodeMemoryOf(sweep);
  driver.retry_failed = !options.retry.empty();
  driver.include_oom = options.include_oom;
  driver.detach = options.detach;
  driver.campaign = CampaignOf(options, store, sweep.name);
  driver.here = FactsHere(sweep, driver.runs_here);
  driver.times = std::move(times);
  return driver;
}

int DryRun(const sweep::Sweep& sweep, const RunOptions& options) {
  if (sweep.search) {
    throw Error(ErrorKind::kUsage,
                fmt::format("run: {} has a search: what runs next depends on its measurements", sweep.file.string()),
                "`ridgeline plan` shows what it would try first");
  }
  launch::CheckRules(sweep, *session::OpenLauncherFor(sweep, options.max_parallel, options.db));
  const TemporaryFolder folder("ridgeline-dry-run");
  store::Store copy = CopyOfDatabase(options.db, folder.path());
  ShowDryRun(sweep,
             DriverOptionsOf(sweep, options, copy, session::AssumedTimesOf(sweep, session::DeviceFor(sweep, "", {}))),
             copy);
  return 0;
}

int Run(const RunOptions& options) {
  const sweep::Sweep sweep = session::LoadSweepFor(options.sweep, options.launcher, options.trainers, options.given);
  // Reports a wrong name before the sweep runs.
  const std::vector<report::Report> reports = session::ReportsOf(sweep, options.reports);
  if (sweep.text.find("cuda") != std::string::npos) {  // otherwise no point has device: cuda
    const std::vector<Point> points = sweep::Expand(sweep);
    if (session::RunsHere(sweep)) {
      const GpusHere here = FindGpusHere();
      if (!here.names.empty() || !OurTrainerHasGpus()) plan::RequireGpusHere(sweep, points, here);
    }
    if (const std::string why = plan::WhyNoCudaTrainer(sweep, points); !why.empty()) {
      throw Error(ErrorKind::kInfrastructure, why, plan::kGetCudaTrainer);
    }
  }
  if (options.dry_run) return DryRun(sweep, options);
  // Everything that can be refused comes before the first file.
  const std::unique_ptr<launch::Launcher> launcher =
      session::RunsHere(sweep) ? session::OpenLauncherFor(sweep, options.max_parallel, options.db)
                               : OpenClusters(sweep, options);
  launch::CheckRules(sweep, *launcher);
  if (sweep.price.max_usd > 0) driver::DearestUsd(sweep, sweep::Expand(sweep), *launcher);  // throws
  const session::Interrupts interrupts;
  predict::TimeModel times = session::AssumedTimesOf(sweep, session::DeviceFor(sweep, "", {}));

  const driver::DriverLock lock = driver::DriverLock::Take(options.db, sweep.name);
  driver::RunDisplay display(stdout, driver::DisplayOptions(stdout, sweep.name));
  const fs::path output_dir = fs::absolute(options.to);
  store::Store store =
      OpenForRun(options.db, output_dir / "jobs", [&](const std::string& words) { display.Note(words); });
  collect::KeepSweep(output_dir, sweep);
  if (sweep.search) collect::KeepSweep(output_dir, rounds::SweepOfTurns(sweep));

  driver::DriverOptions driver = DriverOptionsOf(sweep, options, store, std::move(times));
  if (launcher->can().bill) driver.predicted_usd = session::PredictedUsd(sweep, store);

  SystemClock clock;
  if (const std::string other = session::OtherFileOf(store, sweep); !other.empty()) display.Note("warning: " + other);
  if (driver.campaign != kDefaultCampaign) display.Note(fmt::format("campaign {}", driver.campaign));
  if (const double others = driver.runs_here ? node::OthersShareNow(clock) : 0; others > kBusyBeforeRun) {
    display.Note(
        fmt::format("this machine is busy: others take {:.0f} % of its cores' time now; what they take while a "
                    "point runs is kept with its figures",
                    100 * others));
  }
  std::optional<metrics::MetricsFile> metrics;
  if (!options.metrics_file.empty()) metrics.emplace(options.metrics_file, options.db, store, clock, display);
  driver::RunObserver& observer = metrics ? static_cast<driver::RunObserver&>(*metrics) : display;
  const auto [summary, answer] = RunOrSayHowToGoOn(
      sweep, driver,
      {store, *launcher, clock, predict::PredictMemory, observer, session::Interrupts::Count,
       [&] { session::RunSetup(sweep, output_dir, [&](const std::string& words) { display.Note(words); }); }},
      display, reports, options);
  metrics.reset();
  display.Erase();

  if (summary.left) {
    const bool one = summary.live_jobs == 1;
    session::Say("{}: {}; {} job{} by {}\n", options.detach ? "detached" : "left",
                 session::EndsText(store.Progress(sweep.name)), summary.live_jobs, one ? " goes on" : "s go on",
                 one ? "itself" : "themselves");
    session::Say("to follow, collect and run what is left: {}\n", CommandLine(options));
    session::Say("to look: ridgeline status {0} --db {1} --watch\nto end them: ridgeline cancel {0} --db {1}\n",
                 ShellWord(options.sweep), ShellWord(options.db));
    return summary.interrupted ? session::kInterruptedExit : 0;
  }
  if (summary.interrupted) {
    session::Say("interrupted: {}\n", session::EndsText(store.Progress(sweep.name)));
    SayCosts(sweep, store, *launcher, driver.campaign);
    if (summary.live_jobs > 0) {
      session::Say("{} told to end, but the end was not seen: the next run finds out how {} ended\n",
                   summary.live_jobs == 1 ? "1 job was" : fmt::format("{} jobs were", summary.live_jobs),
                   summary.live_jobs == 1 ? "it" : "they");
    }
    session::Say("to continue: {}\n", CommandLine(options));
    return session::kInterruptedExit;
  }
  const Table table = ResultTable(store, sweep);
  session::Write("\n" + ToText(table) + BelowTable(table) + "\n");
  session::WriteReports(reports, sweep.name, store, output_dir);
  session::Say("{}\n", session::EndsText(store.Progress(sweep.name)));
  for (const std::string& line : answer) session::Say("{}\n", line);
  SayCosts(sweep, store, *launcher, driver.campaign);
  return ExitCodeOf(summary, options, plan::IsOurTrainer(sweep.launch));
}

}  // namespace

std::function<int(const fs::path& sweep)> AddRunOptions(CLI::App& self) {
  const auto options = std::make_shared<RunOptions>();
  self.add_option("--db", options->db, "the results database")->capture_default_str()->type_name("FILE");
  self.add_option("--launcher", options->launcher, "where jobs run (default: the sweep's launcher, else local)")
      ->type_name("LAUNCHER");
  self.add_option("--retry", options->retry, "run points again that have a failed result")
      ->check(CLI::IsMember({"failed"}));
  CLI::Option* again = self.add_flag("--again", options->again, "measure all points once more, as a new campaign");
  AddCampaignOption(self, options->campaign,
                    "a name for these measurements, such as a night (default: the sweep's current one)")
      ->excludes(again);
  self.add_flag("--detach", options->detach, "submit the jobs to the queue and exit; the next run follows them");
  self.add_flag("--dry-run", options->dry_run, "print the commands of the points that would run, and start nothing");
  self.add_flag("--include-oom", options->include_oom, "also run points that are predicted not to fit");
  self.add_option("--max-parallel", options->max_parallel,
                  "most jobs at once (default: the sweep's, else 1, so that none disturbs another)")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000}))
      ->type_name("N");
  self.add_option("--metrics-file", options->metrics_file,
                  "keep this .prom file up to date for Prometheus' textfile collector")
      ->type_name("FILE")
      ->check([](const std::string& file) {
        return fs::path(file).extension() == ".prom" ? "" : file + " must end in .prom: the collector reads no other";
      });
  AddToOption(self, options->to, "DIR", "the folder for jobs (specs, logs, results) and reports");
  AddReportsOption(self, options->reports);
  AddTrainersOption(self, options->trainers);
  AddGivenOptions(self, options->given);
  GroupOptions(self, "Which points",
               {"-S", "--only", "--retry", "--again", "--campaign", "--include-oom", "--trainers"});
  GroupOptions(self, "How they run", {"--launcher", "--max-parallel", "--detach", "--dry-run"});
  GroupOptions(self, "Files", {"--db", "--to", "--reports", "--metrics-file"});
  return [options](const fs::path& sweep) {
    options->sweep = sweep;
    try {
      return Run(*options);
    } catch (const driver::Interrupted&) {
      session::Say("interrupted; to continue: {}\n", CommandLine(*options));
      return session::kInterruptedExit;
    }
  };
}

Action RunCommand(CLI::App& self) {
  const auto sweep = std::make_shared<std::string>();
  self.add_option("sweep", *sweep, "the sweep file")->required()->type_name("SWEEP");
  const auto run = AddRunOptions(self);
  self.footer(
      "Skips points that have a result, whichever sweep measured them. A point counts as measured only with"
      " the same trainer, cores, nodes, GPUs and environment. To measure again, give --again or another "
      "--campaign. Points that cannot fit in memory are recorded and not started, unless you give "
      "--include-oom.\n\n"
      "Interrupt (Ctrl-C) and run again as you like: a stopped or killed run is continued. Ctrl-C ends the "
      "jobs. If the terminal closes (SIGHUP), the jobs go on. At the end the sweep's reports are written "
      "into the output folder. A report is a folder in --reports, beside the sweep's file, in "
      "~/.config/ridgeline/reports or in the installation.\n\n"
      "A sweep with `search:` runs only points that could be the best, given predictions and measurements "
      "so far. Each comes with its reason, and the end shows the best with its interval and what was not "
      "tried. If `batch_size: max` runs out of memory, smaller batches take its place (docs/sweeps.md).\n\n"
      "Exit codes: 0 every point has an answer (out of memory is one), 1 some points failed by their own "
      "fault (crashed, invalid, diverged, timeout) or none was measured, 2 the sweep is wrong, 3 some "
      "points have no result because the infrastructure failed or they were cancelled (the next run "
      "measures them), 130 interrupted.\n\n"
      "Examples:\n"
      "  ridgeline run sweeps/demo.yaml\n"
      "  ridgeline run sweeps/demo.yaml --retry failed --to /data/demo\n"
      "  ridgeline run sweeps/demo.yaml --again\n"
      "  ridgeline run sweeps/demo.yaml -S seq_length=128 --only batch_size=1 --dry-run");
  return [sweep, run] { return run(*sweep); };
}

}  // namespace ridgeline::cli
