#include <algorithm>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/json.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "driver/live_job.h"
#include "driver/lock.h"
#include "driver/progress.h"

namespace ridgeline {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr std::string_view kNodeColumn = "node";

// For people: without those of the columns that say the same in every row that says anything, and without `node` where
// none says one.
std::string ShownText(Table table, std::initializer_list<const char*> where_it_differs) {
  for (const char* name : where_it_differs) {
    const auto at = std::find(table.columns.begin(), table.columns.end(), name) - table.columns.begin();
    std::set<std::string> said;
    for (const auto& row : table.rows) said.insert(CellText(row[at]));
    said.erase("");
    if (said.size() > (name == kNodeColumn ? 0U : 1U)) continue;
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
  }
  return ToText(table);
}

Table SweepTable(const std::vector<SweepProgress>& sweeps) {
  Table table{{"sweep", "campaign", "points", "ok", "failed", "out of memory", "live", "left"}, {}};
  for (const SweepProgress& p : sweeps) {
    table.rows.push_back({p.sweep.name, p.sweep.measured_as.campaign, p.points, p.ok, p.failed, p.out_of_memory, p.live,
                          p.points - p.finished() - p.live});
  }
  return table;
}

std::string ProgressText(const JobRecord& record) {
  LiveJob job;
  job.record = record;
  const auto progress = ParseProgress(CurrentProgress(job));
  if (!progress) return {};
  return fmt::format("step {}/{}, {} tokens/s", progress->step, progress->steps, FormatCount(progress->tokens_per_s));
}

Table JobTable(const std::vector<JobRecord>& jobs, int64_t now_unix_ns) {
  Table table{{"job", "sweep", "campaign", "setup", "launcher", "native id", "state", "points", "age", "now"}, {}};
  for (const JobRecord& job : jobs) {
    int64_t done = 0;
    for (const JobRecord::Point& point : job.points) done += point.has_result ? 1 : 0;
    table.rows.push_back(
        {job.key, job.sweep, job.measured_as.campaign, job.measured_as.setup, job.launcher, job.native_id,
         std::string(JobStateName(job.state)), fmt::format("{}/{}", done, job.points.size()),
         FormatDuration(std::max<int64_t>(now_unix_ns - job.created_unix_ns, 0) / kSecondNs * kSecondNs),
         ProgressText(job)});
  }
  return table;
}

// For programs: numbers as such, and what the job's files tell of the point that runs.
Json JobsJson(const std::vector<JobRecord>& jobs, int64_t now_unix_ns) {
  Json list = Json::array();
  for (const JobRecord& job : jobs) {
    LiveJob live;
    live.record = job;
    const auto progress = ParseProgress(CurrentProgress(live));
    list.push_back({{"job", job.key},
                    {"sweep", job.sweep},
                    {"campaign", job.measured_as.campaign},
                    {"setup", ParseJson(job.measured_as.setup, "a setup in the store")},
                    {"launcher", job.launcher},
                    {"native_id", job.native_id},
                    {"state", std::string(JobStateName(job.state))},
                    {"points", std::ssize(job.points)},
                    {"results", std::ranges::count_if(job.points, &JobRecord::Point::has_result)},
                    {"age_s", std::max<int64_t>(now_unix_ns - job.created_unix_ns, 0) / kSecondNs},
                    {"now", progress ? Json{{"step", progress->step},
                                            {"steps", progress->steps},
                                            {"tokens_per_s", progress->tokens_per_s}}
                                     : Json()}});
  }
  return list;
}

// Its columns named as a program takes them: "native_id".
Json JsonOf(Table table) {
  for (std::string& column : table.columns) std::replace(column.begin(), column.end(), ' ', '_');
  return ParseJson(ToJson(table), "a table");
}

// How the points stand: of a sweep, measured as it says now; else all.
Table EndsTable(Store& store, const std::string& sweep) {
  return store.Query(fmt::format(
      "SELECT r.status || iif(r.reason = '', '', ' (' || r.reason || ')') AS \"latest result\", "
      "iif(r.reason = '', NULL, r.evidence ->> '$.node') AS node, r.campaign, r.trainer, r.cpus, r.machine, r.version, "
      "r.device_name AS \"device\", iif(r.emulated, 'yes', 'no') AS emulated, count(*) AS points FROM runs AS r {} "
      "GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 ORDER BY points DESC, 1, 2, 3, 4, 5, 6, 7, 8, 9",
      sweep.empty() ? ""
                    : "JOIN sweep_points AS s ON s.point_id = r.point_id JOIN sweeps AS w ON w.name = s.sweep AND "
                      "ifnull(s.setup, w.setup) = r.setup WHERE s.sweep = " +
                          SqlText(sweep)));
}

int Status(const std::string& sweep, const std::string& db, const std::string& format) {
  Store store = Store::Open(db, Store::Mode::kReadOnly);
  const std::string name = sweep.empty() ? "" : SweepName(store, sweep);
  const std::vector<SweepProgress> sweeps = sweep.empty() ? store.Sweeps() : std::vector{store.Progress(name)};
  const Table ends = EndsTable(store, name);
  const std::vector<JobRecord> jobs = sweep.empty() ? store.LiveJobs() : store.LiveJobs(name);
  const auto driver = RunningDriver(db);
  if (format == "json") {
    fmt::print("{}\n", DumpJson({{"sweeps", JsonOf(SweepTable(sweeps))},
                                 {"latest_results", JsonOf(ends)},
                                 {"jobs", JobsJson(jobs, SystemClock().UnixNs())},
                                 {"driver", driver ? Json{{"pid", driver->pid}, {"sweep", driver->sweep}} : Json()}}));
    return 0;
  }
  if (sweeps.empty()) {
    fmt::print("no sweeps yet: ridgeline run SWEEP\n");
    return 0;
  }
  fmt::print("{}\n", ToText(SweepTable(sweeps)));
  if (!ends.rows.empty())
    fmt::print("{}\n",
               ShownText(ends, {"node", "campaign", "trainer", "cpus", "machine", "version", "device", "emulated"}));
  if (!jobs.empty()) {
    fmt::print("{}\n", ShownText(JobTable(jobs, SystemClock().UnixNs()), {"campaign", "setup"}));
  }
  if (driver) {
    fmt::print("process {} is at work on {}\n", driver->pid, PrintableLine(driver->sweep));
  } else if (!jobs.empty()) {
    fmt::print("nobody is at work on these jobs: `ridgeline run` goes on with them, `ridgeline cancel` ends them\n");
  }
  return 0;
}

}  // namespace

Action StatusCommand(CLI::App& self) {
  struct Options {
    std::string sweep;
    std::string db = kDefaultDb;
    std::string format = "text";
  };
  const auto options = std::make_shared<Options>();
  self.add_option("sweep", options->sweep, "only this sweep: its name, or its file")->type_name("SWEEP");
  self.add_option("--db", options->db, "the database that results are kept in")
      ->capture_default_str()
      ->type_name("FILE");
  AddFormatOption(self, options->format, {"text", "json"});
  self.footer(
      "Shows every sweep of a database, how its points ended, and the jobs that live, while a run is at work too.\n"
      "Results and jobs of several campaigns, trainers, cores, machines, versions or devices are shown apart, and\n"
      "emulated results too; a column that says the same in every row is left out.\n\n"
      "  ridgeline status\n"
      "  ridgeline status sweeps/demo.yaml\n"
      "  ridgeline status -o json | jq .jobs");
  return [options] { return Status(options->sweep, options->db, options->format); };
}

}  // namespace ridgeline
