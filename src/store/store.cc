#include "store/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "run/result.h"
#include "run/spec.h"
#include "store/check.h"
#include "store/impl.h"
#include "store/points.h"
#include "store/repeats.h"
#include "store/results.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/views.h"

namespace ridgeline::store {
namespace {

// The points of sweeps, each with its latest result measured as the sweep says now, if there is one.
constexpr std::string_view kSweepPoints =
    "FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep LEFT JOIN results AS r ON r.point_id = s.point_id AND "
    "r.attempt = (SELECT max(attempt) FROM results WHERE point_id = s.point_id AND setup = ifnull(s.setup, w.setup) "
    "AND campaign = w.campaign)";

void SyncFile(const std::filesystem::path& path) {
  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) ThrowErrno("cannot write " + path.string());
}

}  // namespace

bool IsFinal(RunStatus status) { return status != RunStatus::kInfrastructure && status != RunStatus::kCancelled; }

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::Open(const std::filesystem::path& file, Mode mode, std::function<void(const std::string& words)> note,
                  const StoreLimits& limits) {
  if (std::filesystem::is_directory(file)) {
    throw Error(ErrorKind::kUsage, file.string() + " is a folder, not a database", "name a file with --db");
  }
  if (mode == Mode::kReadOnly && !std::filesystem::exists(file)) {
    throw Error(ErrorKind::kUsage, "there is no database " + file.string(),
                "`ridgeline run SWEEP` makes one; --db names another");
  }
  const bool writing = mode == Mode::kReadWrite;
  auto impl =
      std::make_unique<Impl>(Impl{Database(file, writing ? Database::Access::kReadWrite : Database::Access::kReadOnly,
                                           Patience{.give_up_after = limits.longest_lock,
                                                    .note = std::move(note),
                                                    .longest_look = limits.longest_question,
                                                    .most_answer_bytes = limits.most_answer_bytes})});
  if (writing) {
    Migrate(impl->database, Migrations());
    impl->database.ChooseJournal();
  } else {
    if (const std::optional<SchemaGap> gap = GapOf(impl->database, Migrations())) {
      if (gap->version == 0 || std::filesystem::file_size(file) > limits.most_copied_bytes) {
        RefuseGap(impl->database, *gap);
      }
      impl->database.MoveToMemory();
      Migrate(impl->database, Migrations());
    }
    // A query's intermediate results go into its answer, which is held in memory too.
    impl->database.Execute("PRAGMA temp_store = MEMORY");
    ShadowOtherViews(impl->database);
  }
  impl->database.Execute(fmt::format("PRAGMA cache_size = -{}", limits.cache_bytes >> 10));
  return Store(std::move(impl));
}

void Store::Transact(const std::function<void()>& work) {
  if (impl_->depth > 0) return work();
  impl_->database.Begin();
  ++impl_->depth;
  try {
    work();
    impl_->database.Commit();
    --impl_->depth;
  } catch (...) {
    --impl_->depth;
    impl_->database.Rollback();
    throw;
  }
}

void Store::PutSweep(const SweepRecord& sweep, std::span<const Point> points, const SetupOfPoint& setup_of) {
  Transact([&] {
    Database& database = impl_->database;
    Statement put = database.Prepare(
        "INSERT INTO sweeps (name, description, file, text, created_unix_ns, campaign, setup) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET description = excluded.description, "
        "file = excluded.file, text = excluded.text, campaign = excluded.campaign, setup = excluded.setup");
    put.Bind(1, sweep.name);
    put.Bind(2, sweep.description);
    put.Bind(3, sweep.file);
    put.Bind(4, sweep.text);
    put.Bind(5, sweep.created_unix_ns);
    put.Bind(6, sweep.measured_as.campaign);
    put.Bind(7, sweep.measured_as.setup);
    put.Run();

    PointWriter add_point(database);
    Statement clear = database.Prepare("DELETE FROM sweep_points WHERE sweep = ?");
    Statement link = database.Prepare("INSERT INTO sweep_points (sweep, ordinal, point_id, setup) VALUES (?, ?, ?, ?)");
    clear.Bind(1, sweep.name);
    clear.Run();
    link.Bind(1, sweep.name);
    int64_t ordinal = 0;
    for (const Point& point : points) {
      add_point.Write(point);
      link.Bind(2, ordinal++);
      link.Bind(3, point.id);
      const std::string setup = setup_of ? setup_of(point) : sweep.measured_as.setup;
      setup == sweep.measured_as.setup ? link.BindNull(4) : link.Bind(4, setup);
      link.Run();
    }
  });
}

std::vector<SweepProgress> Store::Sweeps() {
  std::vector<std::string> names;
  Statement each = impl_->database.Prepare("SELECT name FROM sweeps ORDER BY created_unix_ns DESC, name");
  while (each.Step()) names.push_back(each.Text(0));
  std::vector<SweepProgress> sweeps;
  sweeps.reserve(names.size());
  for (const std::string& name : names) sweeps.push_back(Progress(name));
  return sweeps;
}

SweepProgress Store::Progress(const std::string& sweep) {
  Statement named = impl_->database.Prepare(
      "SELECT name, description, file, text, created_unix_ns, campaign, setup FROM sweeps WHERE name = ?");
  named.Bind(1, sweep);
  if (!named.Step()) {
    throw Error(ErrorKind::kUsage, fmt::format("{} has no sweep '{}'", impl_->database.file(), sweep),
                "`ridgeline status` lists the sweeps");
  }
  SweepProgress progress;
  progress.sweep = {named.Text(0), named.Text(1),    named.Text(2),
                    named.Text(3), named.Integer(4), {named.Text(5), named.Text(6)}};
  Statement counts = impl_->database.Prepare(
      fmt::format("SELECT count(*), sum(stands AND status = 'ok'), sum(stands AND status <> 'ok'), "
                  "sum(stands AND status IN ('oom_device', 'oom_host', 'skipped_predicted_oom')), "
                  "sum(NOT stands AND live), sum(NOT stands AND NOT live AND status = 'infrastructure'), sum(repeats), "
                  "sum(iif(stands, repeats, iif(status = 'ok', repeat, 0))) "
                  "FROM (SELECT r.status, r.repeat, (SELECT repeats FROM points WHERE id = s.point_id) AS repeats, "
                  "ifnull({}, 0) AS stands, EXISTS "
                  "(SELECT 1 FROM job_points AS jp JOIN jobs AS j ON j.key = jp.job_key "
                  "WHERE jp.point_id = s.point_id AND j.campaign = w.campaign AND j.setup = ifnull(s.setup, w.setup) "
                  "AND j.state IN {}) "
                  "AS live {} WHERE s.sweep = ?)",
                  StandsSql(), kLive, kSweepPoints));
  counts.Bind(1, sweep);
  counts.Step();
  progress.points = counts.Integer(0);
  progress.ok = counts.Integer(1);
  progress.failed = counts.Integer(2);
  progress.out_of_memory = counts.Integer(3);
  progress.live = counts.Integer(4);
  progress.infrastructure = counts.Integer(5);
  progress.runs = counts.Integer(6);
  progress.runs_done = counts.Integer(7);
  return progress;
}

std::vector<std::string> Store::FinishedPoints(const std::string& sweep) {
  Statement each = impl_->database.Prepare(
      fmt::format("SELECT s.point_id {} WHERE s.sweep = ? AND {} ORDER BY s.ordinal", kSweepPoints, StandsSql()));
  each.Bind(1, sweep);
  std::vector<std::string> ids;
  while (each.Step()) ids.push_back(each.Text(0));
  return ids;
}

std::vector<PointOrigins> Store::OriginsOfFinished(const std::string& sweep) {
  Statement each = impl_->database.Prepare(
      fmt::format("SELECT e.environment, n FROM (SELECT r.environment_id, count(*) AS n {} WHERE s.sweep = ? AND {} "
                  "GROUP BY r.environment_id) JOIN environments AS e ON e.id = environment_id",
                  kSweepPoints, StandsSql()));
  each.Bind(1, sweep);
  std::vector<PointOrigins> origins;
  while (each.Step()) origins.push_back({ParseTexts(each.Text(0), "an environment"), each.Integer(1)});
  return origins;
}

std::string Store::CurrentCampaign(const std::string& sweep) {
  Statement named = impl_->database.Prepare("SELECT campaign FROM sweeps WHERE name = ?");
  named.Bind(1, sweep);
  return named.Step() ? named.Text(0) : kDefaultCampaign;
}

bool Store::HasCampaign(const std::string& name) {
  Statement any = impl_->database.Prepare(
      "SELECT EXISTS (SELECT 1 FROM sweeps WHERE campaign = ?1) OR EXISTS (SELECT 1 FROM jobs WHERE campaign = ?1) OR "
      "EXISTS (SELECT 1 FROM results WHERE campaign = ?1)");
  any.Bind(1, name);
  any.Step();
  return any.Integer(0) != 0;
}

std::vector<StandingResult> Store::StandingResults(const std::string& campaign,
                                                   std::span<const std::string> point_ids) {
  Statement each = impl_->database.Prepare(
      fmt::format("SELECT r.setup, r.status, ifnull(r.steady_tokens_per_s, 0), r.all_steps_ns, ifnull(j.sweep, '') "
                  "FROM results AS r "
                  "LEFT JOIN jobs AS j ON j.key = r.job_key WHERE r.point_id = ?1 AND r.campaign = ?2 AND {} AND "
                  "r.attempt = (SELECT max(attempt) FROM results WHERE point_id = r.point_id AND setup = r.setup AND "
                  "campaign = r.campaign)",
                  StandsSql()));
  std::vector<StandingResult> results;
  for (const std::string& id : point_ids) {
    each.Bind(1, id);
    each.Bind(2, campaign);
    while (each.Step()) {
      results.push_back({id, each.Text(0), StatusFromName(each.Text(1)), each.Number(2), each.Text(3), each.Text(4)});
    }
    each.Reset();
  }
  return results;
}

std::map<std::string, int64_t> Store::Attempts(const std::string& sweep) {
  Statement each = impl_->database.Prepare(
      "SELECT * FROM (SELECT s.point_id, max("
      "ifnull((SELECT max(attempt) FROM results WHERE point_id = s.point_id), 0),"
      "ifnull((SELECT max(attempt) FROM job_points WHERE point_id = s.point_id), 0)) AS attempts "
      "FROM sweep_points AS s WHERE s.sweep = ?) WHERE attempts > 0");
  each.Bind(1, sweep);
  std::map<std::string, int64_t> attempts;
  while (each.Step()) attempts.emplace(each.Text(0), each.Integer(1));
  return attempts;
}

std::map<std::string, int64_t> Store::RepeatsSoFar(const std::string& sweep) {
  Statement each = impl_->database.Prepare(
      "SELECT s.point_id, max(r.repeat) FROM sweep_points AS s JOIN sweeps AS w ON w.name = s.sweep JOIN results AS r "
      "ON r.point_id = s.point_id AND r.setup = ifnull(s.setup, w.setup) AND r.campaign = w.campaign "
      "JOIN points AS p ON p.id = s.point_id WHERE s.sweep = ? AND r.status = 'ok' AND r.repeat > 0 "
      "GROUP BY s.point_id HAVING max(r.repeat) < p.repeats");
  each.Bind(1, sweep);
  std::map<std::string, int64_t> repeats;
  while (each.Step()) repeats.emplace(each.Text(0), each.Integer(1));
  return repeats;
}

int64_t Store::RetryFailed(const std::string& sweep) {
  int64_t retried = 0;
  Transact([&] {
    Statement mark =
        impl_->database.Prepare(fmt::format("UPDATE results SET retry = 1 WHERE number IN "
                                            "(SELECT r.number {} WHERE s.sweep = ? AND r.status <> 'ok' AND {})",
                                            kSweepPoints, StandsSql()));
    mark.Bind(1, sweep);
    mark.Run();
    retried = impl_->database.Changes();
  });
  return retried;
}

std::map<std::string, std::string> Store::PredictedNotToFit(const std::string& sweep) {
  Statement each = impl_->database.Prepare(fmt::format(
      "SELECT s.point_id, ifnull(r.evidence ->> '$.wanted_bytes', '') || ' ' || "
      "ifnull(r.evidence ->> '$.basis', '') {} WHERE s.sweep = ? AND r.status = 'skipped_predicted_oom' AND {}",
      kSweepPoints, StandsSql()));
  each.Bind(1, sweep);
  std::map<std::string, std::string> points;
  while (each.Step()) points.emplace(each.Text(0), each.Text(1));
  return points;
}

std::string Store::PredictionOf(const RunResult& skipped) {
  const auto said = [&](const char* name) {
    const auto found = skipped.evidence.find(name);
    return found == skipped.evidence.end() ? "" : found->second;
  };
  return said("wanted_bytes") + " " + said("basis");
}

void Store::TakeBackPredictions(const std::string& sweep, const std::set<std::string>& point_ids) {
  Transact([&] {
    Statement mark = impl_->database.Prepare(
        fmt::format("UPDATE results SET retry = 1 WHERE number IN (SELECT r.number {} WHERE s.sweep = ? AND "
                    "s.point_id = ? AND r.status = 'skipped_predicted_oom' AND {})",
                    kSweepPoints, StandsSql()));
    mark.Bind(1, sweep);
    for (const std::string& id : point_ids) {
      mark.Bind(2, id);
      mark.Run();
    }
  });
}

std::vector<size_t> Store::AddResults(std::span<const NewResult> results) {
  std::vector<size_t> added;
  if (results.empty()) return added;
  Transact([&] {
    ResultWriter writer(impl_->database);
    EarlierRepeats repeats(impl_->database);
    Statement latest = impl_->database.Prepare(
        fmt::format("SELECT ifnull((SELECT max(attempt) FROM results WHERE point_id = ?1), 0), EXISTS "
                    "(SELECT 1 FROM results AS r WHERE r.point_id = ?1 AND {} AND r.attempt = (SELECT max(attempt) "
                    "FROM results WHERE point_id = ?1 AND campaign = ?2 AND setup = ?3)) OR EXISTS (SELECT 1 FROM "
                    "results WHERE point_id = ?1 AND campaign = ?2 AND setup = ?3 AND repeat > 0 AND "
                    "started_unix_ns = ?4 AND ended_unix_ns = ?5)",
                    StandsSql()));
    Statement key_of_job = impl_->database.Prepare("SELECT campaign, setup FROM jobs WHERE key = ?");
    for (size_t i = 0; i < results.size(); ++i) {
      const NewResult& item = results[i];
      MeasurementKey measured_as = item.measured_as;
      int64_t attempt = item.attempt;
      if (item.job_key.empty()) {
        latest.Bind(1, item.result.point_id);
        latest.Bind(2, measured_as.campaign);
        latest.Bind(3, measured_as.setup);
        latest.Bind(4, item.result.started_unix_ns);
        latest.Bind(5, item.result.ended_unix_ns);
        latest.Step();
        const bool known = latest.Integer(1) != 0;
        attempt = latest.Integer(0) + 1;
        latest.Reset();
        if (known) continue;
      } else {
        key_of_job.Bind(1, item.job_key);
        if (key_of_job.Step()) measured_as = {key_of_job.Text(0), key_of_job.Text(1)};
        key_of_job.Reset();
      }
      if (item.result.status != RunStatus::kOk || item.result.repeat == 0) {
        if (writer.Write(item.result, item.job_key, attempt, measured_as)) added.push_back(i);
        continue;
      }
      RunResult with_earlier = item.result;
      const bool more = repeats.AddTo(with_earlier, measured_as);
      if (writer.Write(with_earlier, item.job_key, attempt, measured_as, more)) added.push_back(i);
    }
  });
  return added;
}

std::vector<MeasuredPoint> Store::MeasuredPoints(const std::string& launcher, int64_t most) {
  Statement each = impl_->database.Prepare(
      "SELECT p.spec, (r.ended_unix_ns - r.started_unix_ns) / iif(r.repeat > 0, 1, p.repeats) AS duration_ns FROM "
      "results AS r "
      "JOIN jobs AS j ON j.key = r.job_key JOIN points AS p ON p.id = r.point_id "
      "WHERE r.status = 'ok' AND j.launcher = ? AND duration_ns > 0 ORDER BY r.number DESC LIMIT ?");
  each.Bind(1, launcher);
  each.Bind(2, most);
  std::vector<MeasuredPoint> points;
  while (each.Step()) points.push_back({DecodeSpec(ParseJson(each.Text(0), "a point"), "a point"), each.Integer(1)});
  std::reverse(points.begin(), points.end());
  return points;
}

void Store::MarkRunAgain(std::span<const std::string> job_keys) {
  Transact([&] {
    Statement mark = impl_->database.Prepare(fmt::format(
        "UPDATE results AS r SET retry = 1 WHERE r.job_key = ? AND r.status <> 'ok' AND {} AND EXISTS "
        "(SELECT 1 FROM results AS later WHERE later.point_id = r.point_id AND later.campaign = r.campaign AND "
        "later.setup = r.setup AND later.attempt > r.attempt)",
        StandsSql()));
    for (const std::string& key : job_keys) {
      mark.Bind(1, key);
      mark.Run();
    }
  });
}

void Store::Backup(const std::filesystem::path& to) {
  if (std::filesystem::exists(to)) {
    throw Error(ErrorKind::kUsage, to.string() + " is there already", "name a file that is not there, or remove it");
  }
  const std::filesystem::path part = to.string() + ".part";
  std::filesystem::remove(part);
  try {
    Statement copy = impl_->database.Prepare("VACUUM INTO ?");
    copy.Bind(1, part.string());
    copy.Run();
    SyncFile(part);
    std::filesystem::rename(part, to);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw;
  }
  SyncFolder(std::filesystem::absolute(to).parent_path());
}

void Store::ChooseRuns(const RunsChoice& choice) {
  // A temporary view takes precedence over one of the same name in the file. A view takes no parameters.
  Database& database = impl_->database;
  database.Execute("DROP VIEW IF EXISTS temp.runs");
  if (!choice.campaign.empty()) {
    Statement quote = database.Prepare("SELECT quote(?)");
    quote.Bind(1, choice.campaign);
    quote.Step();
    database.Execute("CREATE TEMP VIEW runs AS SELECT * FROM main.measurements WHERE campaign = " + quote.Text(0));
  } else if (choice.all) {
    database.Execute("CREATE TEMP VIEW runs AS SELECT * FROM main.measurements");
  }
}

Table Store::Query(const std::string& sql, const std::map<std::string, std::string>& texts) {
  return impl_->database.Select(sql, texts);
}

std::vector<std::string> Store::Check() { return CheckStore(impl_->database); }

}  // namespace ridgeline::store
