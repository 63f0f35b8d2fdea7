// `ridgeline collect`: adds results of jobs that a person submitted to the database.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/folders.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/result_table.h"
#include "collect/collect.h"
#include "collect/rebuild.h"
#include "driver/lock.h"
#include "plan/largest.h"
#include "predict/memory_forecast.h"
#include "run/job.h"
#include "session/defaults.h"
#include "session/say.h"
#include "session/session.h"
#include "sweep/expand.h"
#include "sweep/launch.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

void WarnOfProblems(const std::vector<std::string>& problems) {
  constexpr size_t kMostShown = 50;
  for (size_t i = 0; i < std::min(problems.size(), kMostShown); ++i) session::SayAside("warning: {}\n", problems[i]);
  if (problems.size() > kMostShown)
    session::SayAside("warning: and {} more like these\n", problems.size() - kMostShown);
}

// Collects the output folder of `ridgeline run`.
int CollectRun(const fs::path& dir, const std::string& db, const std::string& campaign) {
  const driver::DriverLock lock = driver::DriverLock::Take(db, "collect");
  store::Store store = session::OpenStore(db, store::Store::Mode::kReadWrite);
  const collect::Rebuilt rebuilt = collect::RebuildFrom(store, dir, campaign, SystemClock().UnixNs());
  WarnOfProblems(rebuilt.problems);
  session::Say("{}: {} and {} that {} did not have\n", dir.string(), CountOf(rebuilt.jobs, "job"),
               CountOf(rebuilt.results, "result"), db);
  if (rebuilt.live > 0) {
    session::Say("{} may still run: the next `ridgeline run` continues {}, `ridgeline cancel` ends {}\n",
                 CountOf(rebuilt.live, "job"), rebuilt.live == 1 ? "it" : "them", rebuilt.live == 1 ? "it" : "them");
  }
  for (const std::string& name : rebuilt.sweeps) {
    const store::SweepProgress progress = store.Progress(name);
    session::Say("{}: {}: {}\n", name, CountOf(progress.points, "point"), session::EndsText(progress));
  }
  return 0;
}

// By point id, the setup under which its job says that it was measured.
std::map<std::string, std::string> SetupsOfJobs(const fs::path& jobs_dir) {
  std::map<std::string, std::string> setups;
  ForEachEntry(jobs_dir, [&](const fs::directory_entry& folder) {
    try {
      const std::optional<Job> job = ReadJobFile(folder.path());
      if (!job) return;
      for (const JobPoint& point : job->points) setups.emplace(point.id, job->setup);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInvalidInput) throw;
      WarnOfProblems({e.message()});
    }
  });
  return setups;
}

// Collects jobs that `ridgeline render` wrote and a person submitted.
int CollectRendered(const fs::path& dir, const std::string& db, const std::string& campaign,
                    const std::string& own_reports) {
  const fs::path file = dir / session::kRenderedSweep;
  sweep::Sweep sweep = sweep::LoadSweep(file, {dir / session::kRenderedTrainers});
  plan::UseLargestBatches(sweep, {}, predict::PredictMemory);
  const std::vector<report::Report> reports = session::ReportsOf(sweep, own_reports);
  const std::vector<Point> points = sweep::Expand(sweep);
  const driver::DriverLock lock = driver::DriverLock::Take(db, sweep.name);
  store::Store store = session::OpenStore(db, store::Store::Mode::kReadWrite);
  const MeasurementKey key{campaign.empty() ? store.CurrentCampaign(sweep.name) : campaign, SetupOf(sweep.launch)};
  // A point that cannot fit is in no job, so its setup comes from the sweep.
  const std::map<std::string, std::string> setups = SetupsOfJobs(dir / "jobs");
  const auto setup_of = [&](const Point& point) {
    const auto said = setups.find(point.id);
    return said == setups.end() ? SetupOf(sweep::LaunchOf(sweep, point)) : said->second;
  };
  store.PutSweep({sweep.name, sweep.description, file.string(), sweep.text, SystemClock().UnixNs(), key}, points,
                 setup_of);
  collect::MeasuredAs measured_as;
  for (const Point& point : points) measured_as.emplace(point.id, MeasurementKey{key.campaign, setup_of(point)});

  int64_t added = 0;
  for (const collect::FolderCollection& found :
       {collect::CollectJobFolders(store, dir / "jobs", measured_as), collect::CollectLogs(store, dir, measured_as)}) {
    WarnOfProblems(found.problems);
    added += found.added;
  }
  session::Say("{}\n\n", CountOf(added, "new result"));
  const Table table = ResultTable(store, sweep);
  session::Write(ToText(table) + BelowTable(table) + "\n");
  session::WriteReports(reports, sweep.name, store, dir);
  session::Say("{}\n", session::EndsText(store.Progress(sweep.name)));
  return 0;
}

int CollectFolder(const fs::path& dir, const std::string& db, const std::string& campaign,
                  const std::string& own_reports) {
  if (fs::exists(dir / session::kRenderedSweep)) return CollectRendered(dir, db, campaign, own_reports);
  if (fs::is_directory(dir / "jobs")) return CollectRun(dir, db, campaign);
  throw Error(ErrorKind::kUsage,
              fmt::format("{} was written neither by `ridgeline render` nor by `ridgeline run`", dir.string()),
              "it has no folder `jobs`");
}

}  // namespace

Action CollectCommand(CLI::App& self) {
  struct Options {
    std::string dir;
    std::string db = session::kDefaultDb;
    std::string campaign;
    std::string reports;
  };
  const auto options = std::make_shared<Options>();
  self.add_option("dir", options->dir,
                  "the folder that `ridgeline render` wrote, or the output folder of `ridgeline run`")
      ->required()
      ->type_name("DIR");
  self.add_option("--db", options->db, "the results database")->capture_default_str()->type_name("FILE");
  AddCampaignOption(self, options->campaign,
                    "a name for these results (default: the sweep's current one, or that of the jobs)");
  AddReportsOption(self, options->reports);
  self.footer(
      "From the folder of `render`: takes the results that are there by now, and says what is missing. Call"
      " it as often as you like. It also writes the sweep's reports into the folder.\n\n"
      "From the folder of `run`: makes a lost database again, with its sweeps, points, jobs, campaigns and "
      "results. Nothing is taken twice. The next `ridgeline run` adds predicted failures, and follows jobs "
      "that still run.\n\n"
      "The results of pods are in their logs. Save these as DIR/NAME.log first.\n\n"
      "Examples:\n"
      "  ridgeline collect demo\n"
      "  ridgeline collect ridgeline-out\n"
      "  kubectl logs --selector=ridgeline.dev/sweep=demo --tail=-1 >demo/pods.log\n"
      "  ridgeline collect demo");
  return [options] {
    return CollectFolder(fs::absolute(options->dir).lexically_normal(), options->db, options->campaign,
                         options->reports);
  };
}

}  // namespace ridgeline::cli
