#include "cli/dry_run.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/show_commands.h"
#include "driver/planner.h"
#include "driver/sweep_points.h"
#include "plan/largest.h"
#include "plan/plan.h"
#include "plan/show.h"
#include "predict/memory_forecast.h"
#include "rounds/rounds.h"
#include "session/say.h"
#include "session/session.h"
#include "session/setup.h"

namespace ridgeline::cli {
namespace fs = std::filesystem;

store::Store CopyOfDatabase(const fs::path& db, const fs::path& folder) {
  const fs::path copy = folder / "ridgeline.db";
  if (fs::exists(db)) session::OpenStore(db, store::Store::Mode::kReadOnly).Backup(copy);
  return session::OpenStore(copy, store::Store::Mode::kReadWrite);
}

void ShowDryRun(sweep::Sweep sweep, const driver::DriverOptions& options, store::Store& copy) {
  if (sweep::HasLargestBatch(sweep)) {
    plan::UseLargestBatches(sweep, {}, predict::PredictMemory,
                            rounds::EndedForMemoryIn(copy, options.campaign, options.trainer));
  }
  const driver::SweepPoints points(sweep, options.jobs_dir.parent_path(), options.campaign);
  copy.PutSweep({sweep.name, sweep.description, sweep.file.string(), sweep.text, SystemClock().UnixNs(), points.key()},
                points.all(), [&](const Point& point) { return points.KeyOf(point).setup; });
  if (options.retry_failed) copy.RetryFailed(sweep.name);

  const std::vector<std::string> finished = copy.FinishedPoints(sweep.name);
  std::set<std::string> taken(finished.begin(), finished.end());
  for (const auto& [id, by] : copy.PredictedNotToFit(sweep.name)) taken.erase(id);  // they are judged again
  const size_t have_results = taken.size();
  for (const store::JobRecord& job : copy.LiveJobs(sweep.name)) {
    for (const store::JobRecord::Point& point : job.points) {
      if (points.Find(point.id) != nullptr) taken.insert(point.id);
    }
  }
  const size_t in_jobs = taken.size() - have_results;
  std::vector<Point> to_do;
  std::ranges::copy_if(points.all(), std::back_inserter(to_do),
                       [&](const Point& point) { return !taken.contains(point.id); });

  plan::PlanOptions plan_options = driver::PlanOptionsOf(options);
  plan_options.times = options.times;
  plan_options.repeats = copy.RepeatsSoFar(sweep.name);
  const plan::Plan plan = session::PlanWithProgress(sweep, to_do, plan_options, predict::PredictMemory);
  for (const Job& job : plan.jobs) {
    for (const JobPoint& point : job.points) sweep.only.insert(point.id);
  }
  if (!sweep.only.empty()) {
    if (const std::string setup = session::SetupScript(sweep); !setup.empty()) session::Write(setup + "\n");
    ShowCommands(sweep, {});
  }
  for (const std::string& warning : plan.warnings) session::SayAside("warning: {}\n", warning);

  std::vector<std::string> others;
  if (have_results > 0) others.push_back(fmt::format("{} measured already", have_results));
  if (in_jobs > 0) others.push_back(fmt::format("{} in jobs that have not ended", in_jobs));
  if (!plan.skipped.empty()) {
    others.push_back(fmt::format("{} predicted not to fit ({})", plan.skipped.size(), plan::OutOfMemoryWhy(plan)));
  }
  session::SayAside("nothing was started; {1} of {0} would run on {2}{3}{4}\n",
                    CountOf(std::ssize(points.all()), "point"), sweep.only.size(), sweep.launch.launcher,
                    others.empty() ? "" : "; ", Join(others, ", "));
  for (const std::string& line : plan::JobLines(sweep, plan)) session::SayAside("{}\n", line);
}

}  // namespace ridgeline::cli
