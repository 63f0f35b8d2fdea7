// `ridgeline render`: writes what a launcher would submit as files, for a person to submit.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "base/quoting.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "driver/counting_line.h"
#include "driver/live_job.h"
#include "launch/check_rules.h"
#include "plan/plan.h"
#include "plan/show.h"
#include "predict/memory_forecast.h"
#include "run/results_file.h"
#include "session/defaults.h"
#include "session/say.h"
#include "session/session.h"
#include "session/setup.h"
#include "sweep/launch.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

struct RenderArguments {
  std::string sweep;
  std::string launcher;
  std::string to;
  std::vector<fs::path> trainers;
  sweep::Given given;
};

// Puts the file or the folder into a command such as "sbatch FILE".
std::string Fill(std::string command, const std::string& word, const fs::path& path) {
  if (const size_t at = command.find(word); at != std::string::npos) command.replace(at, word.size(), path.string());
  return command;
}

// Writes the results of points that cannot fit into a folder like a job's, so that they are collected like any other.
void KeepSkipped(const plan::Plan& plan, const fs::path& jobs_dir) {
  if (plan.skipped.empty()) return;
  const fs::path folder = jobs_dir / "predicted";
  MakeDirs(folder);
  ResultsWriter results(folder);
  for (RunResult result : plan.skipped) {
    result.ended_unix_ns = SystemClock().UnixNs();
    results.Append(result);
  }
}

// The jobs of all repeats. Each repeat is a run of its own, in its own jobs: first those of the first repeat, which
// `first` has, then those of the second, and so on.
std::vector<Job> JobsOfAllRepeats(const sweep::Sweep& sweep, const std::vector<Point>& points, const plan::Plan& first,
                                  plan::PlanOptions options) {
  std::vector<Job> jobs = first.jobs;
  std::vector<Point> left = points;
  for (int64_t had = 1;; ++had) {
    std::erase_if(left, [&](const Point& point) { return point.spec.repeats <= had; });
    if (left.empty()) return jobs;
    for (const Point& point : left) options.attempts[point.id] = options.repeats[point.id] = had;
    plan::Plan plan = session::PlanWithProgress(sweep, left, options, predict::PredictMemory);
    std::move(plan.jobs.begin(), plan.jobs.end(), std::back_inserter(jobs));
  }
}

void WriteJobs(const std::vector<Job>& jobs) {
  driver::CountingLine line("writing jobs:");
  size_t points = 0;
  for (const Job& job : jobs) points += job.points.size();
  size_t done = 0;
  for (const Job& job : jobs) {
    driver::WriteJob(job);
    line.At(done += job.points.size(), points);
  }
}

int RenderSweep(const RenderArguments& options) {
  const sweep::Sweep sweep = session::LoadSweepFor(options.sweep, options.launcher, options.trainers, options.given);
  if (sweep.search) {
    throw Error(ErrorKind::kUsage,
                fmt::format("render: {} has a search, which depends on earlier measurements", sweep.file.string()),
                "`ridgeline run` runs it; without `search:` all of its points are rendered");
  }
  const fs::path dir = fs::absolute(options.to).lexically_normal();
  std::vector<Point> points = sweep::Expand(sweep);
  for (Point& point : points)
    plan::PlaceCheckpointFiles(point, dir, {kDefaultCampaign, SetupOf(sweep::LaunchOf(sweep, point))});
  const auto launcher = session::OpenLauncherFor(sweep, 0, dir / "ridgeline.db");
  launch::CheckRules(sweep, *launcher);

  plan::PlanOptions plan_options;
  plan_options.node = session::NodeMemoryOf(sweep);
  plan_options.jobs_dir = dir / "jobs";
  plan_options.times = session::AssumedTimesOf(sweep, session::DeviceFor(sweep, "", {}));
  const plan::Plan plan = session::PlanWithProgress(sweep, points, plan_options, predict::PredictMemory);
  const std::vector<Job> of_all_repeats = JobsOfAllRepeats(sweep, points, plan, plan_options);
  std::vector<launch::LaunchJob> jobs;
  for (const Job& job : of_all_repeats) jobs.push_back(launch::ToLaunchJob(job, ProgramDir() / "ridgeline"));
  WriteJobs(of_all_repeats);
  KeepSkipped(plan, dir / "jobs");
  const launch::Rendered rendered = launcher->Render(jobs);

  WriteFileAtomic(dir / session::kRenderedSweep, sweep.text);
  sweep.trainers.Keep(dir / session::kRenderedTrainers);
  // Private, because a file may be a Secret of Kubernetes.
  for (const launch::LaunchFile& file : rendered.files) WritePrivateFile(dir / file.name, file.content);
  session::Say("{}: {} in {} and {}\n", dir.string(), CountOf(std::ssize(points), "point"),
               CountOf(std::ssize(jobs), "job"), CountOf(std::ssize(rendered.files), "file"));
  if (!plan.skipped.empty()) {
    session::Say(
        "{} predicted not to fit ({}), so in no job: `ridgeline plan` shows what they need; `ridgeline collect` "
        "records that as their result\n",
        plan.skipped.size() == 1 ? "1 point is" : fmt::format("{} points are", plan.skipped.size()),
        plan::OutOfMemoryWhy(plan));
  }
  if (rendered.files.empty()) return 0;
  for (const std::string& line : rendered.asks) session::Say("jobs ask for {}\n", PrintableLine(line));
  if (const std::string setup = session::SetupScript(sweep); !setup.empty()) {
    const fs::path script = dir / "setup" / "setup.sh";  // apart from the files to submit, which may be scripts too
    MakeDirs(script.parent_path());
    WriteFileAtomic(script, setup);
    session::Say("first, once:  sh {}\n", ShellWord(script.string()));
  }
  if (!rendered.fetch.empty()) session::Say("when they have ended:  {}\n", Fill(rendered.fetch, "DIR", dir));
  session::Say("when they have ended:  ridgeline collect {}\n", ShellWord(dir.string()));
  const std::string first = (dir / rendered.files.front().name).string();
  const bool one_by_one = rendered.files.size() > 1 && rendered.submit.find("FILE") != std::string::npos;
  const std::string all = fmt::format("{}/*{}", ShellWord(dir.string()), fs::path(first).extension().string());
  session::Say("submit all:  {}\n",
               one_by_one ? fmt::format("for file in {}; do {}; done", all, Fill(rendered.submit, "FILE", "\"$file\""))
                          : Fill(Fill(rendered.submit, "FILE", ShellWord(first)), "DIR", ShellWord(dir.string())));
  return 0;
}

}  // namespace

Action RenderCommand(CLI::App& self) {
  const auto options = std::make_shared<RenderArguments>();
  self.add_option("sweep", options->sweep, "the sweep file")->required()->type_name("SWEEP");
  self.add_option("--launcher", options->launcher, "which launcher's files (default: the sweep's, else local)")
      ->type_name("LAUNCHER");
  AddToOption(self, options->to, "DIR", "the folder for the files, the jobs and their results")->required();
  AddTrainersOption(self, options->trainers);
  AddGivenOptions(self, options->given);
  self.footer(
      "Writes what the launcher would submit for all points of the sweep: sbatch scripts, manifests or a "
      "shell script, and the job files that they run. Nothing is started, and no database is touched. "
      "Submit the files by hand, from any machine that sees the folder. If you submit a job again, it runs "
      "only what has no result yet.\n\n"
      "Examples:\n"
      "  ridgeline render sweeps/demo.yaml --launcher slurm --to demo\n"
      "  for file in demo/*.sbatch; do sbatch \"$file\"; done\n"
      "  ridgeline collect demo");
  return [options] { return RenderSweep(*options); };
}

}  // namespace ridgeline::cli
