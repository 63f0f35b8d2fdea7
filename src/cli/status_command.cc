#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/quoting.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "driver/job_status_reader.h"
#include "driver/live_job.h"
#include "driver/lock.h"
#include "driver/progress.h"
#include "session/defaults.h"
#include "session/say.h"
#include "session/session.h"
#include "sweep/given.h"

namespace ridgeline::cli {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr std::string_view kNodeColumn = "node";
constexpr size_t kMostOfGiven = 200;  // characters

// For people: leaves out those of the columns that have the same value in every row with a value, and `node` if no row
// has one.
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

Table SweepTable(const std::vector<store::SweepProgress>& sweeps) {
  Table table{{"sweep", "campaign", "points", "ok", "failed", "out of memory", "live", "left"}, {}};
  for (const store::SweepProgress& p : sweeps) {
    table.rows.push_back({p.sweep.name, p.sweep.measured_as.campaign, p.points, p.ok, p.failed, p.out_of_memory, p.live,
                          p.points - p.finished() - p.live});
  }
  return table;
}

// A line for each sweep whose points are not those of its file alone, because of -S or --only. Without it the count of
// points would look like that of the file.
std::string GivenText(const std::vector<store::SweepProgress>& sweeps) {
  std::string text;
  for (const store::SweepProgress& p : sweeps) {
    const std::string given = sweep::GivenIn(p.sweep.text);
    if (given.empty()) continue;
    text += PrintableLine(fmt::format("{}: the points of its last run, with {}; results of other points are kept",
                                      p.sweep.name, ShortenToCodePoints(given, kMostOfGiven))) +
            "\n";
  }
  return text;
}

std::string Said(const store::JobRecord& job, const char* name) {
  const auto found = job.evidence.find(name);
  return found == job.evidence.end() ? "" : found->second;
}

std::string ProgressText(const store::JobRecord& record) {
  if (record.state == store::JobRecord::State::kSubmitted) {
    return driver::QueueText(Said(record, "pending"), std::atoll(Said(record, "expected_unix_s").c_str()));
  }
  driver::LiveJob job;
  job.record = record;
  const auto progress = driver::ParseProgress(driver::CurrentProgress(job));
  if (!progress) return {};
  return fmt::format("step {}/{}, {} tokens/s", progress->step, progress->steps, FormatCount(progress->tokens_per_s));
}

Table JobTable(const std::vector<store::JobRecord>& jobs, int64_t now_unix_ns) {
  Table table{{"job", "sweep", "campaign", "setup", "launcher", "native id", "state", "points", "age", "now"}, {}};
  for (const store::JobRecord& job : jobs) {
    int64_t done = 0;
    for (const store::JobRecord::Point& point : job.points) done += point.has_result ? 1 : 0;
    table.rows.push_back(
        {job.key, job.sweep, job.measured_as.campaign, job.measured_as.setup, job.launcher, job.native_id,
         std::string(store::JobStateName(job.state)), fmt::format("{}/{}", done, job.points.size()),
         FormatDuration(std::max<int64_t>(now_unix_ns - job.created_unix_ns, 0) / kSecondNs * kSecondNs),
         ProgressText(job)});
  }
  return table;
}

// For programs: numbers stay numbers. Includes what the job's files say about the running point.
Json JobsJson(const std::vector<store::JobRecord>& jobs, int64_t now_unix_ns) {
  Json list = Json::array();
  for (const store::JobRecord& job : jobs) {
    driver::LiveJob live;
    live.record = job;
    const auto progress = driver::ParseProgress(driver::CurrentProgress(live));
    list.push_back({{"job", job.key},
                    {"sweep", job.sweep},
                    {"campaign", job.measured_as.campaign},
                    {"setup", ParseJson(job.measured_as.setup, "a setup in the store")},
                    {"launcher", job.launcher},
                    {"native_id", job.native_id},
                    {"state", std::string(store::JobStateName(job.state))},
                    {"points", std::ssize(job.points)},
                    {"results", std::ranges::count_if(job.points, &store::JobRecord::Point::has_result)},
                    {"pending", Said(job, "pending")},
                    {"expected_unix_s", std::atoll(Said(job, "expected_unix_s").c_str())},
                    {"age_s", std::max<int64_t>(now_unix_ns - job.created_unix_ns, 0) / kSecondNs},
                    {"now", progress ? Json{{"step", progress->step},
                                            {"steps", progress->steps},
                                            {"tokens_per_s", progress->tokens_per_s}}
                                     : Json()}});
  }
  return list;
}

// Converts the table. Column names become keys such as "native_id".
Json JsonOf(Table table) {
  for (std::string& column : table.columns) std::replace(column.begin(), column.end(), ' ', '_');
  return ParseJson(ToJson(table), "a table");
}

// For programs. `given`: what was set or left out for the last run, by -S, --only or the file's own sections.
Json SweepsJson(const std::vector<store::SweepProgress>& sweeps) {
  Json list = JsonOf(SweepTable(sweeps));
  for (size_t i = 0; i < sweeps.size(); ++i) list[i]["given"] = sweep::GivenIn(sweeps[i].sweep.text);
  return list;
}

// The states of the points: those of a sweep, as it measures them now, or else all.
Table EndsTable(store::Store& store, const std::string& sweep) {
  return store.Query(fmt::format(
      "SELECT r.status || iif(r.reason = '', '', ' (' || r.reason || ')') AS \"latest result\", "
      "iif(r.reason = '', NULL, r.evidence ->> '$.node') AS node, r.campaign, r.trainer, r.cpus, "
      "json_remove(r.setup, '$.trainer', '$.cpus') AS setup, r.machine, r.version, "
      "r.device_name AS \"device\", iif(r.emulated, 'yes', 'no') AS emulated, count(*) AS points, "
      "max(r.result) AS \"newest run\" FROM runs AS r {} "
      "GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ORDER BY points DESC, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
      sweep.empty() ? ""
                    : "JOIN sweep_points AS s ON s.point_id = r.point_id JOIN sweeps AS w ON w.name = s.sweep AND "
                      "ifnull(s.setup, w.setup) = r.setup WHERE s.sweep = " +
                          SqlText(sweep)));
}

bool HasItsResults(const store::JobRecord& job) {
  return std::ranges::all_of(job.points, &store::JobRecord::Point::has_result);
}

// Everything that is shown, at one moment.
struct Snapshot {
  std::vector<store::SweepProgress> sweeps;
  Table ends;
  std::vector<store::JobRecord> jobs;
  std::optional<driver::DriverIdentity> driver;
  std::string not_asked;  // why a launcher could not be asked for its jobs

  // A running job may lack results that are still to come.
  bool HasJobsThatRun() const {
    return std::ranges::any_of(
        jobs, [](const store::JobRecord& job) { return store::IsLive(job.state) && !HasItsResults(job); });
  }
  bool GoesOn() const { return driver.has_value() || HasJobsThatRun(); }
};

class Looking {
 public:
  Looking(std::string sweep, std::string db) : sweep_(std::move(sweep)), db_(std::move(db)) {}

  Snapshot Look() {
    store::Store store = session::OpenStore(db_, store::Store::Mode::kReadOnly);
    const std::string name = sweep_.empty() ? "" : session::SweepName(store, sweep_);
    Snapshot seen;
    seen.sweeps = sweep_.empty() ? store.Sweeps() : std::vector{store.Progress(name)};
    seen.ends = EndsTable(store, name);
    seen.jobs = sweep_.empty() ? store.LiveJobs() : store.LiveJobs(name);
    seen.driver = driver::RunningDriver(db_);
    // A running driver asks the launcher itself, and stores the answers.
    if (!seen.driver) seen.not_asked = onlooker_.Look(seen.jobs);
    for (store::JobRecord& job : seen.jobs) driver::TakeResults(job);
    return seen;
  }

  int64_t UnixNs() const { return clock_.UnixNs(); }
  void Wait() { clock_.SleepNs(kSecondNs); }

 private:
  const std::string sweep_;
  const std::string db_;
  SystemClock clock_;
  driver::JobStatusReader onlooker_{
      db_, clock_, [this](const store::JobRecord& job) {
        const store::SweepRecord sweep =
            session::OpenStore(db_, store::Store::Mode::kReadOnly).Progress(job.sweep).sweep;
        return session::OpenLauncherOf(sweep, job.launcher, db_);
      }};
};

std::string TextOf(const Snapshot& seen, int64_t now_unix_ns) {
  if (seen.sweeps.empty()) return "no sweeps yet: ridgeline run SWEEP\n";
  std::string text = ToText(SweepTable(seen.sweeps)) + GivenText(seen.sweeps) + "\n";
  if (!seen.ends.rows.empty()) {
    text += ShownText(seen.ends,
                      {"node", "campaign", "trainer", "cpus", "setup", "machine", "version", "device", "emulated"}) +
            "\n";
  }
  if (!seen.jobs.empty()) text += ShownText(JobTable(seen.jobs, now_unix_ns), {"campaign", "setup"}) + "\n";
  text += seen.not_asked;
  if (seen.driver) {
    const std::string where = seen.driver->is_here() ? "" : " on " + PrintableLine(seen.driver->host);
    text += fmt::format("process {}{} is at work on {}\n", seen.driver->pid, where, PrintableLine(seen.driver->sweep));
  } else if (seen.HasJobsThatRun()) {
    text += "no run follows these jobs: `ridgeline run` continues them, `ridgeline cancel` ends them\n";
  } else if (!seen.jobs.empty()) {
    text += std::ranges::all_of(seen.jobs, HasItsResults)
                ? "these jobs have their results: `ridgeline run` collects them\n"
                : "these jobs have ended: `ridgeline run` collects what they left\n";
  }
  return text;
}

// Watches without owning anything, so watchers may come and go.
int Watch(const std::string& sweep, const std::string& db) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  Looking looking(sweep, db);
  std::string last;
  for (;;) {
    const Snapshot seen = looking.Look();
    // If the output is no terminal, the jobs' age alone is no news.
    std::string mark = TextOf(seen, terminal ? looking.UnixNs() : 0);
    if (mark != last) session::Write(terminal ? "\x1b[H\x1b[2J" + mark : TextOf(seen, looking.UnixNs()));
    last = std::move(mark);
    if (!seen.GoesOn()) return 0;
    looking.Wait();
  }
}

int Status(const std::string& sweep, const std::string& db, const std::string& format) {
  Looking looking(sweep, db);
  const Snapshot seen = looking.Look();
  if (format != "json") {
    session::Write(TextOf(seen, looking.UnixNs()));
    return 0;
  }
  session::WriteAside(seen.not_asked);
  session::Write(ShowJson({{"sweeps", SweepsJson(seen.sweeps)},
                           {"latest_results", JsonOf(seen.ends)},
                           {"jobs", JobsJson(seen.jobs, looking.UnixNs())},
                           {"driver", seen.driver ? Json{{"pid", seen.driver->pid},
                                                         {"sweep", seen.driver->sweep},
                                                         {"host", seen.driver->host},
                                                         {"user", seen.driver->user}}
                                                  : Json()}}) +
                 "\n");
  return 0;
}

}  // namespace

Action StatusCommand(CLI::App& self) {
  struct Options {
    std::string sweep;
    std::string db = session::kDefaultDb;
    std::string format = "text";
    bool watch = false;
  };
  const auto options = std::make_shared<Options>();
  self.add_option("sweep", options->sweep, "only this sweep, by its name or file")->type_name("SWEEP");
  self.add_option("--db", options->db, "the results database")->capture_default_str()->type_name("FILE");
  CLI::Option* format = AddFormatOption(self, options->format, {"text", "json"});
  self.add_flag("--watch", options->watch, "refresh until no run is at work and every job has its results")
      ->excludes(format);
  self.footer(
      "Shows every sweep of a database, how its points ended, and its live jobs, also while a run is at "
      "work. Results of several campaigns, trainers, machines, versions or devices are shown apart, and "
      "emulated results too. A column that is the same in every row is left out. If no run follows the jobs"
      " in a scheduler's queue, the scheduler is asked why they wait and when they may start. That changes "
      "nothing.\n\n"
      "Examples:\n"
      "  ridgeline status\n"
      "  ridgeline status --watch\n"
      "  ridgeline status sweeps/demo.yaml\n"
      "  ridgeline status -o json | jq .jobs");
  return [options] {
    return options->watch ? Watch(options->sweep, options->db) : Status(options->sweep, options->db, options->format);
  };
}

}  // namespace ridgeline::cli
