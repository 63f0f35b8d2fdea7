#include "nightly/night.h"

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "base/table.h"
#include "base/text.h"
#include "gate/judge.h"
#include "gate/night_records.h"
#include "nightly/metrics.h"
#include "regress/gate.h"
#include "regress/gate_forms.h"
#include "regress/nights.h"
#include "session/error_file.h"
#include "session/interrupts.h"
#include "session/say.h"
#include "session/session.h"
#include "sweep/sweep.h"

namespace ridgeline::nightly {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kStopDelayNs = 200'000'000;  // passes on a request to stop after this time at the latest

int64_t NowUnixS() { return SystemClock().UnixNs() / 1'000'000'000; }

// How a command of `ridgeline` ended.
struct Ended {
  int exit_code = 0;
  std::string why;  // the message of its error, if it ended with one
};

// Runs this program again, with its output in the log. Passes on requests to stop (Interrupts).
Ended RunAgain(const std::vector<std::string>& arguments, const fs::path& log) {
  std::vector<std::string> argv = {ProgramDir() / "ridgeline"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const fs::path error = log.string() + ".error";
  std::error_code ec;
  fs::remove(error, ec);
  SpawnOptions options;
  options.stdout_file = log;
  options.stderr_file = log;
  options.environment[session::kErrorFileVariable] = error;
  options.new_process_group = true;  // Ctrl-C reaches it through us, once
  options.die_with_parent = true;
  Child child = Child::Spawn(argv, options);
  int told = 0;
  std::optional<ExitStatus> status;
  while (!(status = child.WaitFor(kStopDelayNs))) {
    const int asked = session::Interrupts::Count();
    if (asked > told) child.Signal(asked > told + 1 ? SIGHUP : SIGTERM);  // a hangup counts as two requests
    told = asked;
  }
  Ended ended{status->signal != 0 ? 128 + status->signal : status->exit_code, {}};
  if (fs::exists(error)) ended.why = ReadJsonFile(error).value("message", "");
  fs::remove(error, ec);
  return ended;
}

void AddWords(const std::vector<std::string>& more, std::vector<std::string>& arguments) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

// Runs, judges and records one night.
class NightAtWork {
 public:
  NightAtWork(const NightOptions& options, const NightlyPlaces& places, regress::Night& night)
      : options_(options), places_(places), night_(night), folder_(places.nights / night.name) {
    run_ = {"run", options_.sweep, "--db", places_.db, "--campaign", night_.name, "--to", places_.runs};
    if (!options_.launcher.empty()) AddWords({"--launcher", options_.launcher}, run_);
    for (const fs::path& trainers : options_.trainers) AddWords({"--trainers", trainers}, run_);
  }

  // Sets the worse of the run's and the gate's ends. Points with a result count, even if others were lost. Leaves the
  // night unfinished if it was interrupted.
  void Work(const std::vector<regress::Night>& before) {
    RemoveGateForms();
    Run();
    if (session::Interrupts::Count() > 0) return;
    if (night_.run_exit == ExitCode(ErrorKind::kUsage)) {
      night_.exit_code = night_.run_exit;
      night_.words = "the sweep was refused: " + run_why_;
      return;
    }
    Judge();
    // With a base build, the gate has already measured failures again in turns.
    if (options_.base_build.empty() && findings_ && regress::AnythingFailedOnce(*findings_) &&
        session::Interrupts::Count() == 0) {
      AddWords({"--retry", "failed"}, run_);
      Run();
      RemoveGateForms();
      if (session::Interrupts::Count() == 0) Judge();
    }
    Conclude(before);
  }

  void Report() const {
    if (!fs::exists(places_.db)) return;
    std::vector<std::string> report = {"report", "all", "--db", places_.db, "--to", places_.pages};
    if (findings_) AddWords({"--input", folder_ / "gate.json"}, report);
    RunAgain(report, log());
  }

  fs::path log() const { return folder_ / "run.log"; }

 private:
  void Run() {
    Ended ended = RunAgain(run_, log());
    night_.run_exit = ended.exit_code;
    run_why_ = std::move(ended.why);
  }

  // Judges the night, and writes the findings for people and for other programs. A gate that cannot decide has a reason
  // instead. A fault of ours must not lose the night's record.
  void Judge() {
    findings_.reset();
    gate_why_.clear();
    try {
      const std::optional<regress::Gate> gate = gate::JudgeHead(Request());
      if (!gate) return;
      gate::WriteGateFiles(*gate, {.junit = folder_ / "gate.xml",
                                   .summary = folder_ / "gate.md",
                                   .comment = {},
                                   .metrics = folder_ / "gate.prom",
                                   .annotations = folder_ / "gate.annotations"});
      const std::string text = regress::GateJson(*gate);
      WriteFileAtomic(folder_ / "gate.json", text);
      findings_ = ParseJson(text, "gate.json");
      gate_exit_ = regress::GateExitCode(gate->answer);
      gate_why_ = regress::GateConclusion(*gate);
    } catch (const Error& e) {
      gate_exit_ = ExitCode(e.kind());
      gate_why_ = e.message();
    } catch (const std::exception& e) {
      gate_exit_ = ExitCode(ErrorKind::kInternal);
      gate_why_ = e.what();
    }
  }

  gate::GateRequest Request() const {
    gate::GateRequest request;
    request.head = night_.name;
    request.baseline = "night-*";
    request.pinned = options_.pinned;
    request.records = places_.nights;
    request.db = places_.db;
    if (options_.base_build.empty()) return request;
    request.confirm.sweep = options_.sweep;
    request.confirm.base_build = options_.base_build;
    request.confirm.turns = folder_ / "turns";
    request.confirm.launcher = options_.launcher;
    request.confirm.trainers = options_.trainers;
    return request;
  }

  // Removes what the gate of an earlier attempt wrote: readers would take it for this attempt's.
  void RemoveGateForms() const {
    std::error_code ec;
    for (const char* form : {"gate.json", "gate.xml", "gate.md", "gate.prom", "gate.annotations"}) {
      fs::remove(folder_ / form, ec);
    }
  }

  void Conclude(const std::vector<regress::Night>& before) {
    const bool was_a_run = night_.run_exit == 0 || night_.run_exit == session::kUnansweredExit;
    const bool is_lost = night_.run_exit == ExitCode(ErrorKind::kInfrastructure);
    if ((was_a_run || is_lost) && findings_) {
      night_.was_gated = regress::MeasuredAnything(*findings_);
      night_.lost = regress::LostCells(*findings_);
      night_.absent = regress::AbsentCells(*findings_, before);
      if (night_.was_gated) night_.worse = regress::WorseCells(*findings_);
    }
    const bool is_judged = findings_.has_value();
    const bool is_worst =
        is_judged && gate_exit_ == regress::GateExitCode(regress::GateAnswer::kRegressed) && night_.was_gated;
    night_.exit_code = (was_a_run && is_judged) || is_worst ? gate_exit_ : ExitCode(ErrorKind::kInfrastructure);
    if (!is_judged) night_.words = fmt::format("the gate ended with {}: {}", gate_exit_, gate_why_);
    if (is_judged && (was_a_run || night_.was_gated)) night_.words = gate_why_;
    if (was_a_run) return;
    night_.words += fmt::format("{}the run ended with {}{}{}", night_.words.empty() ? "" : "; ", night_.run_exit,
                                run_why_.empty() ? "" : ": ", run_why_);
  }

  const NightOptions& options_;
  const NightlyPlaces& places_;
  regress::Night& night_;
  const fs::path folder_;
  std::vector<std::string> run_;  // the arguments of the run
  std::string run_why_;           // why the run ended with an error; empty: it did not
  std::optional<Json> findings_;  // the gate's; nothing if it could not decide
  int gate_exit_ = 0;
  std::string gate_why_;  // what the gate concluded, or why it could not
};

// A sweep that cannot be read has no name. Then it is that of the night before, otherwise its file's.
std::string SweepNameOf(const NightOptions& options, const std::vector<regress::Night>& nights) {
  try {
    return session::LoadSweepFor(options.sweep, options.launcher, options.trainers).name;
  } catch (const Error&) {
    if (!nights.empty()) return nights.back().sweep_name;
    return options.sweep.stem();
  }
}

// Runs the user's alert program, and tells it the night, its outcome and its files.
void Alert(const NightOptions& options, const regress::Night& night, const fs::path& folder) {
  if (options.alert.empty() || night.exit_code == 0) return;
  try {
    const ExitStatus status =
        Child::Spawn({options.alert.string(), night.name, regress::NightAnswer(night), folder}).Wait();
    if (!status.ok()) session::SayAside("nightly: {}: {}\n", options.alert.string(), Describe(status));
  } catch (const Error& e) {
    session::SayAside("nightly: {}\n", e.message());
  }
}

// Makes a link to the folder of the night that began last, so that programs find its files without its name. On a file
// system without links, the night still counts.
void LinkLast(const regress::Night& night, const NightlyPlaces& places) {
  const fs::path made = places.last.string() + ".part";
  std::error_code ec;
  fs::remove(made, ec);
  fs::create_directory_symlink(places.nights.filename() / night.name, made, ec);
  if (!ec) fs::rename(made, places.last, ec);
  if (ec) session::SayAside("warning: {} cannot be made a link to the night: {}\n", places.last.string(), ec.message());
}

}  // namespace

NightOptions NightOptions::Anywhere() const {
  const auto absolute = [](const fs::path& path) {
    return path.empty() ? path : fs::absolute(path).lexically_normal();
  };
  NightOptions there = *this;
  there.sweep = absolute(sweep);
  there.folder = absolute(folder);
  there.base_build = absolute(base_build);
  there.work_dir = fs::canonical(work_dir);
  if (alert.has_parent_path()) there.alert = absolute(alert);
  if (fs::is_directory("trainers")) there.trainers.emplace_back("trainers");
  for (fs::path& folder_of_trainers : there.trainers) folder_of_trainers = absolute(folder_of_trainers);
  return there;
}

NightlyPlaces::NightlyPlaces(const fs::path& folder)
    : db(folder / "ridgeline.db"),
      runs(folder / "runs"),
      pages(folder / "pages"),
      nights(folder / "nights"),
      last(folder / "last"),
      metrics(folder / "nightly.prom"),
      lock(folder / "lock") {}

int RunNight(const NightOptions& given) {
  const NightOptions options = given.Anywhere();
  const NightlyPlaces places(options.folder);
  MakeDirs(options.folder);
  const std::optional<FileLock> lock = FileLock::Try(places.lock);
  if (!lock) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("nightly: another night is at work in {}", options.folder.string()),
                "it ends by itself; `ridgeline nightly status` says how far it is");
  }
  fs::current_path(options.work_dir);
  const std::vector<regress::Night> before = gate::NightsIn(places.nights);
  regress::Night night;
  night.sweep = options.sweep;
  night.sweep_name = SweepNameOf(options, before);
  night.name = regress::NightAt(before, night.sweep_name, SystemClock().UnixNs());
  night.started_unix_s = NowUnixS();
  regress::WriteNight(night, places.nights);
  LinkLast(night, places);
  NightAtWork work(options, places, night);
  session::Say("{}: {} runs; its log is {}\n", night.name, night.sweep, work.log().string());
  {
    const session::Interrupts interrupts;
    work.Work(before);
    if (session::Interrupts::Count() == 0) work.Report();
    if (session::Interrupts::Count() > 0) {
      session::SayAside("interrupted; to resume the night, run the same command on the same day\n");
      return session::kInterruptedExit;
    }
  }
  night.ended_unix_s = NowUnixS();
  regress::WriteNight(night, places.nights);
  WriteFileAtomic(places.metrics, NightlyMetrics(gate::NightsIn(places.nights), night));
  session::Say("{}: {}: {}\n", night.name, regress::NightAnswer(night), regress::NightWords(night));
  Alert(options, night, places.nights / night.name);
  return night.exit_code;
}

int ShowNights(const fs::path& folder) {
  const NightlyPlaces places(folder);
  const std::vector<regress::Night> nights = gate::NightsIn(places.nights);
  if (nights.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("nightly: there is no night in {} yet", folder.string()),
                "`ridgeline nightly run SWEEP --dir DIR` is one; `ridgeline nightly install` has one every night");
  }
  Table table{{"night", "began", "took", "answer", "details"}, {}};
  for (const regress::Night& night : nights) {
    const std::string took =
        night.is_over()
            ? FormatDuration(1'000'000'000 * std::max<int64_t>(1, night.ended_unix_s - night.started_unix_s))
            : "";
    table.rows.push_back(
        {night.name, FormatUnixTime(1'000'000'000 * night.started_unix_s), took, regress::NightAnswer(night),
         regress::NightWords(night) + (night.accepted.empty() ? "" : "; " + regress::AcceptedWords(night))});
  }
  session::Write(ToText(table) + "\n");
  const std::optional<regress::Night> good = regress::LastGoodNight(nights);
  if (!good) {
    session::Say("There was no good night yet.\n");
  } else {
    session::Say("The last good night was {}, {} ago.\n", good->name,
                 FormatDuration(1'000'000'000 * std::max<int64_t>(1, NowUnixS() - good->ended_unix_s)));
  }
  return 0;
}

}  // namespace ridgeline::nightly
