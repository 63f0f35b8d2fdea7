// `ridgeline collect`: results of jobs that a person submitted, into the database.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/harness.h"
#include "cli/result_table.h"
#include "collect/collect.h"
#include "driver/lock.h"
#include "sweep/expand.h"
#include "sweep/launch.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

int CollectFolder(const fs::path& dir, const std::string& db, const std::string& campaign,
                  const std::string& own_reports) {
  const fs::path file = dir / kRenderedSweep;
  if (!fs::exists(file)) {
    throw Error(ErrorKind::kUsage, fmt::format("{} was not written by `ridgeline render`", dir.string()),
                fmt::format("it has no {}", kRenderedSweep));
  }
  const Sweep sweep = LoadSweep(file);
  const std::vector<Report> reports = ReportsOf(sweep, own_reports);
  const std::vector<Point> points = Expand(sweep);
  const DriverLock lock = DriverLock::Take(db, sweep.name);
  Store store = Store::Open(db, Store::Mode::kReadWrite);
  const MeasurementKey key{campaign.empty() ? store.CurrentCampaign(sweep.name) : campaign, SetupOf(sweep.launch)};
  const auto setup_of = [&](const Point& point) { return SetupOf(LaunchOf(sweep, point)); };
  store.PutSweep({sweep.name, sweep.description, file.string(), sweep.text, SystemClock().UnixNs(), key}, points,
                 setup_of);
  MeasuredAs measured_as;
  for (const Point& point : points) measured_as.emplace(point.id, MeasurementKey{key.campaign, setup_of(point)});

  int64_t added = 0;
  for (const FolderCollection& found :
       {CollectJobFolders(store, dir / "jobs", measured_as), CollectLogs(store, dir, measured_as)}) {
    for (const std::string& problem : found.problems) fmt::print(stderr, "warning: {}\n", problem);
    added += found.added;
  }
  fmt::print("{} new result{}\n\n{}\n", added, added == 1 ? "" : "s", ToText(ResultTable(store, sweep)));
  WriteReports(reports, sweep.name, store, dir);
  const SweepProgress progress = store.Progress(sweep.name);
  fmt::print("{}\n", EndsText(progress.ok, progress.failed, progress.points - progress.finished()));
  return 0;
}

}  // namespace

Action CollectCommand(CLI::App& self) {
  struct Options {
    std::string dir;
    std::string db = kDefaultDb;
    std::string campaign;
    std::string reports;
  };
  const auto options = std::make_shared<Options>();
  self.add_option("dir", options->dir, "the folder `ridgeline render` wrote")->required()->type_name("DIR");
  self.add_option("--db", options->db, "the database that results are kept in")
      ->capture_default_str()
      ->type_name("FILE");
  AddCampaignOption(self, options->campaign,
                    "what these results are measurements for; default: the one the sweep is at");
  AddReportsOption(self, options->reports);
  self.footer(
      "Takes what results there are by now, and says what is missing; run it again as you like. At the end the "
      "sweep's\n"
      "reports are written into the folder.\n\n"
      "Results of pods are in their logs: save those as DIR/….log before.\n\n"
      "  ridgeline collect demo\n"
      "  kubectl logs --selector=ridgeline.dev/sweep=demo --tail=-1 >demo/pods.log && ridgeline collect demo");
  return [options] {
    return CollectFolder(fs::absolute(options->dir).lexically_normal(), options->db, options->campaign,
                         options->reports);
  };
}

}  // namespace ridgeline
