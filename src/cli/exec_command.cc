#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/trainer_output.h"
#include "node/carried.h"
#include "node/exec.h"
#include "node/ranks.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/job_line.h"
#include "ridgeline/line_file.h"
#include "ridgeline/lines_file.h"
#include "run/figures.h"
#include "run/result.h"
#include "run/sagemaker.h"
#include "session/say.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr std::chrono::seconds kProgressPause{2};
constexpr size_t kSummaryTextBytes = 400;  // of a message, and of a log's end, in a summary

struct ExecArguments {
  std::string job_file;
  std::string job_dir;
  bool print_results = false;
  std::string summary;
  std::vector<std::string> lines;
  int64_t node = 0;  // the number of this node
  std::string carry_to;
};

void PrintResult(const RunResult& result) {
  session::Say("{}  {}  {}{}{}\n", result.point_id, EndName(EndOf(result)),
               FormatDuration(result.ended_unix_ns - result.started_unix_ns), result.message.empty() ? "" : "  ",
               Disarmed(result.message));
}

// Safe to show, because people read these lines, too.
std::string EncodeLine(const RunResult& result) { return ShowJson(EncodeResult(result)); }

// The result without its long texts: all that remains if the job's log is lost.
RunResult Headline(RunResult result) {
  DropSeries(result);
  result.ranks.clear();
  result.environment.clear();
  result.message = result.message.substr(0, kSummaryTextBytes);
  result.hint = result.hint.substr(0, kSummaryTextBytes);
  for (auto& [name, text] : result.evidence) {
    if (text.size() > kSummaryTextBytes) text = text.substr(text.size() - kSummaryTextBytes);
  }
  result.evidence["headline_only"] = "its log was lost, and the series of its steps with it";
  return result;
}

// Prints the points' ends and the trainers' output, for people or as lines that a program finds again
// (ridgeline/job_line.h). Keeps as many headlines as the summary file may hold.
class PointReporter {
 public:
  explicit PointReporter(const ExecArguments& arguments) : arguments_(arguments) {
    if (arguments_.print_results) printer_ = std::jthread([this](const std::stop_token& stop) { PrintProgress(stop); });
  }

  void Began(const std::string& point_id, const fs::path& progress_file, const fs::path& log_file) {
    if (!arguments_.print_results) return;
    const std::lock_guard lock(mutex_);
    point_id_ = point_id;
    progress_file_ = progress_file;
    output_.emplace(log_file);
    PrintLine({std::string(kProgressLine), point_id, ""});
  }

  void Ended(const RunResult& result) {
    const std::lock_guard lock(mutex_);
    EndOutput();
    PrintResult(result);
    const JobLine line{std::string(kResultLine), result.point_id, EncodeLine(result)};
    if (arguments_.print_results) PrintLine(line);
    std::fflush(stdout);
    KeepLine(line);
    AddToSummary(result);
  }

  void Told(const std::string& point_id, const std::string& part) {
    const std::lock_guard lock(mutex_);
    EndOutput();
    const JobLine line{std::string(kPartLine), point_id, part};
    PrintLine(line);
    KeepLine(line);
  }

  void Had(const RunResult& result) {
    if (arguments_.print_results) Ended(result);
  }

 private:
  static void PrintLine(const JobLine& line) {
    session::Write(FormatPrintedLines(line));
    std::fflush(stdout);
  }

  // A folder that cannot be written costs the copy alone: the line was printed, and is in the job's folder.
  void KeepLine(const JobLine& line) const {
    for (const std::string& dir : arguments_.lines) {
      const Fd file(::open((fs::path(dir) / LinesFileName(arguments_.node)).c_str(),
                           O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
      if (file.get() < 0 || !AppendLineSynced(file.get(), FormatJobLine(line))) {
        session::SayAside("ridgeline: cannot write a line of {} to {}: {}\n", line.point_id, dir, std::strerror(errno));
      }
    }
  }

  void EndOutput() {
    point_id_.clear();
    if (output_) session::Write(output_->Next(/*ended=*/true));
    output_.reset();
  }

  void PrintProgress(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    std::string last;
    while (!wake_.wait_for(lock, stop, kProgressPause, [] { return false; }) && !stop.stop_requested()) {
      if (point_id_.empty()) continue;
      session::Write(output_->Next(/*ended=*/false));
      std::fflush(stdout);
      std::string text = ReadTail(progress_file_, kMaxProgressBytes);
      if (const size_t end = text.find('\n'); end != std::string::npos) text.resize(end);
      if (text.empty() || text == last) continue;
      PrintLine({std::string(kProgressLine), point_id_, text});
      last = text;
    }
  }

  // Overwrites the file in place, because a container's termination message is a single mounted file. It is rewritten
  // after every point, so a killed job leaves the results that it had.
  void AddToSummary(const RunResult& result) {
    if (arguments_.summary.empty()) return;
    const std::string line = FormatJobLine({std::string(kResultLine), result.point_id, EncodeLine(Headline(result))});
    if (summary_.size() + line.size() > kSummaryBytes) return;
    summary_ += line;
    OverwriteFile(arguments_.summary, summary_);
  }

  const ExecArguments& arguments_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::string point_id_;  // the point that runs now; empty if none
  fs::path progress_file_;
  std::optional<TrainerOutput> output_;  // of that point
  std::string summary_;
  std::jthread printer_;  // last member, so that it ends before the members that it uses
};

int RunJob(ExecArguments arguments) {
  UseSageMakerNodes();
  arguments.node = node::NodesFromEnvironment().rank;
  node::ExecOptions options;
  options.job_dir = arguments.job_dir.empty() ? fs::path() : fs::absolute(arguments.job_dir).lexically_normal();
  std::unique_ptr<PointReporter> reporter;
  // Created when the job begins, because its thread must not receive the signals for the job.
  const auto report = [&]() -> PointReporter& {
    if (reporter == nullptr) reporter = std::make_unique<PointReporter>(arguments);
    return *reporter;
  };
  options.on_begin = [&](const std::string& id, const fs::path& progress, const fs::path& log) {
    report().Began(id, progress, log);
  };
  if (arguments.print_results) {
    options.on_part = [&](const std::string& id, const std::string& part) { report().Told(id, part); };
  }
  options.on_result = [&](const RunResult& result) { report().Ended(result); };
  options.on_skipped = [&](const RunResult& result) { report().Had(result); };
  options.on_wait = [] {
    session::Say("another process runs this job; waiting for it to end\n");
    std::fflush(stdout);
  };
  const node::ExecSummary summary = node::ExecJobFile(arguments.job_file, options);
  session::Say("{} run, {} had a result already{}\n", summary.ran, summary.skipped,
               summary.stopped ? "; stopped before the end, run it again to continue" : "");
  if (summary.unfit) {
    session::SayAside("ridgeline: this node cannot run the job: {}\n  {}\n", summary.unfit->message,
                      summary.unfit->hint);
    WriteSageMakerFailure(fmt::format("this node cannot run the job: {}", summary.unfit->message));
  }
  return node::ExecExitCode(summary);
}

// Launchers recognize a failed folder by the exit code, so no other fault may return that code.
int Exec(const ExecArguments& arguments) {
  try {
    if (!arguments.carry_to.empty()) {
      node::CarryTo(arguments.carry_to);
      return 0;
    }
    return RunJob(arguments);
  } catch (const std::exception& e) {
    WriteSageMakerFailure(e.what());
    const auto* error = dynamic_cast<const Error*>(&e);
    if (error != nullptr && error->kind() != ErrorKind::kInternal && error->kind() != ErrorKind::kOutOfMemory) throw;
    session::SayAside("ridgeline: {}\n", e.what());
    return kExecNodeUnfit;
  }
}

}  // namespace

Action ExecCommand(CLI::App& self) {
  const auto arguments = std::make_shared<ExecArguments>();
  CLI::Option* job = self.add_option("job", arguments->job_file,
                                     "the job file that a run wrote, JOB_DIR/job.json, or a folder of its parts")
                         ->type_name("JOB.json");
  CLI::Option* carry = self.add_option("--carry-to", arguments->carry_to,
                                       "instead, copy this program into a folder, with all that it needs")
                           ->type_name("DIR")
                           ->excludes(job);
  self.callback([job, carry] {
    if (job->count() + carry->count() == 0) throw CLI::RequiredError("job");
  });
  self.add_option("--job-dir", arguments->job_dir, "the job's folder, if it is not the one that the file names")
      ->type_name("DIR");
  self.add_flag("--print-results", arguments->print_results,
                "print trainers' output, and results in lines that a launcher reads");
  self.add_option("--summary", arguments->summary, "keep the main figures of the results in this file, in 4096 bytes")
      ->type_name("FILE");
  self.add_option("--lines", arguments->lines, "also append this node's lines to DIR/lines.nodeN.log; may be repeated")
      ->type_name("DIR");
  self.footer(
      "Runs the job's points one after another, each in a process of its own with its limits of time and "
      "memory. Writes a line for each point to JOB_DIR/results.log. Points that have a result are skipped, "
      "so you can run an interrupted job again. Launchers call this command.\n\n"
      "Exit codes: 0 every point has a result, 3 the job's folder cannot be read or written, 4 no trainer "
      "can be started here, 5 something else is wrong with this node, 130 told to stop.\n\n"
      "Example:\n"
      "  ridgeline exec ridgeline-out/jobs/rl-0123abcd/job.json");
  return [arguments] { return Exec(*arguments); };
}

}  // namespace ridgeline::cli
