#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "launch/exec.h"
#include "run/result.h"

namespace ridgeline {
namespace {

constexpr int kInterruptedExit = 130;

void PrintResult(const RunResult& result) {
  fmt::print("{}  {}  {}{}{}\n", result.point_id, StatusName(result.status),
             FormatDuration(result.ended_unix_ns - result.started_unix_ns), result.message.empty() ? "" : "  ",
             result.message);
  std::fflush(stdout);
}

int Exec(const std::string& job_file) {
  ExecOptions options;
  options.on_result = PrintResult;
  options.on_wait = [] {
    fmt::print("another process runs this job; waiting for it to end\n");
    std::fflush(stdout);
  };
  const ExecSummary summary = ExecJobFile(job_file, options);
  fmt::print("{} run, {} had a result already{}\n", summary.ran, summary.skipped,
             summary.stopped ? "; stopped before the end, run it again to continue" : "");
  return summary.stopped ? kInterruptedExit : 0;
}

}  // namespace

Action ExecCommand(CLI::App& self) {
  const auto job_file = std::make_shared<std::string>();
  self.add_option("job", *job_file, "the job file a run wrote: JOB_DIR/job.json")->required()->type_name("JOB.json");
  self.footer(
      "Runs the job's points one after another, each in a process of its own, with its time and memory limits,\n"
      "and writes JOB_DIR/results/POINT.json for each. Points that have a result are skipped, so an interrupted\n"
      "job is continued by running it again. Launchers call this; by hand:\n\n"
      "  ridgeline exec ridgeline-out/jobs/rl-0123abcd/job.json");
  return [job_file] { return Exec(*job_file); };
}

}  // namespace ridgeline
