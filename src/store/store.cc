#include "store/store.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "run/result.h"
#include "run/spec.h"
#include "store/check.h"
#include "store/results.h"
#include "store/schema.h"
#include "store/sqlite.h"

namespace ridgeline {
namespace {

constexpr std::array<std::string_view, 6> kStates = {"intent", "submitted", "running", "ended", "lost", "cancelled"};
constexpr std::string_view kLive = "('intent', 'submitted', 'running')";

// A point of a sweep, with its latest result where it has one.
constexpr std::string_view kSweepPoints =
    "FROM sweep_points AS s LEFT JOIN results AS r ON r.point_id = s.point_id AND "
    "r.attempt = (SELECT max(attempt) FROM results WHERE point_id = s.point_id)";

// SQL that is true where r is a result that stands.
std::string Stands() {
  std::string statuses;
  for (const std::string& name : StatusNames()) {
    if (!IsFinal(StatusFromName(name))) continue;
    statuses += (statuses.empty() ? "'" : ", '") + name + "'";
  }
  return fmt::format("(r.retry = 0 AND r.status IN ({}))", statuses);
}

JobRecord::State StateFromName(const std::string& name) {
  for (size_t i = 0; i < kStates.size(); ++i) {
    if (kStates[i] == name) return static_cast<JobRecord::State>(i);
  }
  throw Error(ErrorKind::kInvalidInput, "the store has a job in the unknown state '" + name + "'");
}

std::map<std::string, std::string> ParseTexts(const std::string& text, const std::string& source) {
  try {
    return ParseJson(text, source).get<std::map<std::string, std::string>>();
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("{}: {}", source, e.what()), "run `ridgeline db check`");
  }
}

}  // namespace

std::string_view JobStateName(JobRecord::State state) { return kStates[static_cast<size_t>(state)]; }

bool IsLive(JobRecord::State state) { return state <= JobRecord::State::kRunning; }

bool IsFinal(RunStatus status) {
  switch (status) {
    case RunStatus::kPreempted:
    case RunStatus::kNodeFailed:
    case RunStatus::kCancelled:
    case RunStatus::kLost:
      return false;
    default:
      return true;
  }
}

struct Store::Impl {
  Database database;
  int depth = 0;  // of Transact

  std::vector<JobRecord> Jobs(const std::string& where, const std::string* sweep);
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::Open(const std::filesystem::path& file, Mode mode) {
  if (std::filesystem::is_directory(file)) {
    throw Error(ErrorKind::kUsage, file.string() + " is a folder, not a database", "name a file with --db");
  }
  if (mode == Mode::kReadOnly && !std::filesystem::exists(file)) {
    throw Error(ErrorKind::kUsage, "there is no database " + file.string(),
                "`ridgeline run SWEEP` makes one; --db names another");
  }
  const bool writing = mode == Mode::kReadWrite;
  auto impl = std::make_unique<Impl>(
      Impl{Database(file, writing ? Database::Access::kReadWrite : Database::Access::kReadOnly)});
  if (writing) {
    Migrate(impl->database, Migrations());
    // Not FULL: after a power cut the last commits may be missing, and the jobs' own files have what they held.
    // A cache that holds the indexes of 100,000 points, which are met in no order.
    impl->database.Execute("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -131072");
  } else {
    RequireSchema(impl->database, Migrations());
  }
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

void Store::PutSweep(const SweepRecord& sweep, std::span<const Point> points) {
  Transact([&] {
    Database& database = impl_->database;
    Statement put = database.Prepare(
        "INSERT INTO sweeps (name, description, file, text, created_unix_ns) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (name) DO UPDATE SET description = excluded.description, file = excluded.file, "
        "text = excluded.text");
    put.Bind(1, sweep.name);
    put.Bind(2, sweep.description);
    put.Bind(3, sweep.file);
    put.Bind(4, sweep.text);
    put.Bind(5, sweep.created_unix_ns);
    put.Run();

    std::string columns;
    std::string values;
    for (const Field& field : Fields()) {
      columns += fmt::format(", {}", field.name);
      values += ", ?";
    }
    Statement known = database.Prepare("SELECT 1 FROM points WHERE id = ?");
    Statement add = database.Prepare(fmt::format("INSERT INTO points (id, spec{}) VALUES (?, ?{})", columns, values));
    Statement clear = database.Prepare("DELETE FROM sweep_points WHERE sweep = ?");
    Statement link = database.Prepare("INSERT INTO sweep_points (sweep, ordinal, point_id) VALUES (?, ?, ?)");
    clear.Bind(1, sweep.name);
    clear.Run();
    link.Bind(1, sweep.name);
    int64_t ordinal = 0;
    for (const Point& point : points) {
      known.Bind(1, point.id);
      const bool is_known = known.Step();
      known.Reset();
      if (!is_known) {
        add.Bind(1, point.id);
        add.Bind(2, EncodePoint(point.spec));
        int index = 3;
        for (const Field& field : Fields()) {
          std::visit(
              [&](auto member) {
                const auto& value = point.spec.*member;
                if constexpr (std::is_same_v<std::decay_t<decltype(value)>, bool>) {
                  add.Bind(index, static_cast<int64_t>(value));
                } else {
                  add.Bind(index, value);
                }
              },
              field.member);
          ++index;
        }
        add.Run();
      }
      link.Bind(2, ordinal++);
      link.Bind(3, point.id);
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
  Statement named =
      impl_->database.Prepare("SELECT name, description, file, text, created_unix_ns FROM sweeps WHERE name = ?");
  named.Bind(1, sweep);
  if (!named.Step()) {
    throw Error(ErrorKind::kUsage, fmt::format("{} has no sweep '{}'", impl_->database.file(), sweep),
                "`ridgeline status` lists the sweeps");
  }
  SweepProgress progress;
  progress.sweep = {named.Text(0), named.Text(1), named.Text(2), named.Text(3), named.Integer(4)};
  Statement counts = impl_->database.Prepare(
      fmt::format("SELECT count(*), sum(stands AND status = 'ok'), sum(stands AND status <> 'ok'), "
                  "sum(NOT stands AND live) FROM (SELECT r.status, ifnull({}, 0) AS stands, EXISTS "
                  "(SELECT 1 FROM job_points AS jp JOIN jobs AS j ON j.key = jp.job_key "
                  "WHERE jp.point_id = s.point_id AND j.state IN {}) AS live {} WHERE s.sweep = ?)",
                  Stands(), kLive, kSweepPoints));
  counts.Bind(1, sweep);
  counts.Step();
  progress.points = counts.Integer(0);
  progress.ok = counts.Integer(1);
  progress.failed = counts.Integer(2);
  progress.live = counts.Integer(3);
  return progress;
}

std::vector<std::string> Store::FinishedPoints(const std::string& sweep) {
  Statement each = impl_->database.Prepare(
      fmt::format("SELECT s.point_id {} WHERE s.sweep = ? AND {} ORDER BY s.ordinal", kSweepPoints, Stands()));
  each.Bind(1, sweep);
  std::vector<std::string> ids;
  while (each.Step()) ids.push_back(each.Text(0));
  return ids;
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

int64_t Store::RetryFailed(const std::string& sweep) {
  int64_t retried = 0;
  Transact([&] {
    Statement mark =
        impl_->database.Prepare(fmt::format("UPDATE results SET retry = 1 WHERE number IN "
                                            "(SELECT r.number {} WHERE s.sweep = ? AND r.status <> 'ok' AND {})",
                                            kSweepPoints, Stands()));
    mark.Bind(1, sweep);
    mark.Run();
    retried = impl_->database.Changes();
  });
  return retried;
}

void Store::RecordIntents(std::span<const JobRecord> jobs) {
  Transact([&] {
    Database& database = impl_->database;
    Statement add_job = database.Prepare(
        "INSERT INTO jobs (key, sweep, launcher, native_id, job_dir, state, created_unix_ns, evidence) "
        "VALUES (?, ?, ?, '', ?, 'intent', ?, '{}')");
    Statement live =
        database.Prepare(fmt::format("SELECT j.key FROM job_points AS jp JOIN jobs AS j ON j.key = jp.job_key "
                                     "WHERE jp.point_id = ? AND j.state IN {}",
                                     kLive));
    Statement add_point = database.Prepare(
        "INSERT INTO job_points (job_key, ordinal, point_id, attempt) VALUES (?1, ?2, ?3, 1 + max("
        "ifnull((SELECT max(attempt) FROM results WHERE point_id = ?3), 0),"
        "ifnull((SELECT max(attempt) FROM job_points WHERE point_id = ?3), 0)))");
    for (const JobRecord& job : jobs) {
      add_job.Bind(1, job.key);
      add_job.Bind(2, job.sweep);
      add_job.Bind(3, job.launcher);
      add_job.Bind(4, job.job_dir.string());
      add_job.Bind(5, job.created_unix_ns);
      add_job.Run();
      int64_t ordinal = 0;
      for (const JobRecord::Point& point : job.points) {
        live.Bind(1, point.id);
        if (live.Step()) {
          throw Error(ErrorKind::kUsage, fmt::format("point {} is in the live job {} already", point.id, live.Text(0)),
                      "another `ridgeline run` may be at work on this database: let it end, or `ridgeline cancel` it");
        }
        live.Reset();
        add_point.Bind(1, job.key);
        add_point.Bind(2, ordinal++);
        add_point.Bind(3, point.id);
        add_point.Run();
      }
    }
  });
}

void Store::MarkSubmitted(const std::string& key, const std::string& native_id, int64_t unix_ns) {
  Transact([&] {
    Statement mark = impl_->database.Prepare(
        "UPDATE jobs SET state = 'submitted', native_id = ?, submitted_unix_ns = ? WHERE key = ?");
    mark.Bind(1, native_id);
    mark.Bind(2, unix_ns);
    mark.Bind(3, key);
    mark.Run();
  });
}

void Store::MarkStarted(const std::string& key, int64_t unix_ns) {
  Transact([&] {
    Statement mark = impl_->database.Prepare("UPDATE jobs SET started_unix_ns = ? WHERE key = ?");
    mark.Bind(1, unix_ns);
    mark.Bind(2, key);
    mark.Run();
  });
}

void Store::SetJobState(const std::string& key, JobRecord::State state,
                        const std::map<std::string, std::string>& evidence, int64_t unix_ns) {
  Transact([&] {
    Statement set = impl_->database.Prepare("UPDATE jobs SET state = ?, evidence = ?, ended_unix_ns = ? WHERE key = ?");
    set.Bind(1, JobStateName(state));
    set.Bind(2, DumpTexts(evidence));
    IsLive(state) ? set.BindNull(3) : set.Bind(3, unix_ns);
    set.Bind(4, key);
    set.Run();
  });
}

std::vector<JobRecord> Store::Impl::Jobs(const std::string& where, const std::string* sweep) {
  Statement each = database.Prepare(fmt::format(
      "SELECT j.key, j.sweep, j.launcher, j.native_id, j.job_dir, j.state, j.created_unix_ns, j.submitted_unix_ns, "
      "j.started_unix_ns, j.ended_unix_ns, j.evidence FROM jobs AS j WHERE {} ORDER BY j.number",
      where));
  if (sweep != nullptr) each.Bind(1, *sweep);
  Statement points = database.Prepare(
      "SELECT jp.point_id, jp.attempt, EXISTS (SELECT 1 FROM results AS r WHERE r.point_id = jp.point_id AND "
      "r.attempt = jp.attempt) FROM job_points AS jp WHERE jp.job_key = ? ORDER BY jp.ordinal");
  std::vector<JobRecord> jobs;
  while (each.Step()) {
    JobRecord& job = jobs.emplace_back();
    job.key = each.Text(0);
    job.sweep = each.Text(1);
    job.launcher = each.Text(2);
    job.native_id = each.Text(3);
    job.job_dir = each.Text(4);
    job.state = StateFromName(each.Text(5));
    job.created_unix_ns = each.Integer(6);
    job.submitted_unix_ns = each.Integer(7);
    job.started_unix_ns = each.Integer(8);
    job.ended_unix_ns = each.Integer(9);
    job.evidence = ParseTexts(each.Text(10), "the evidence of job " + job.key);
    points.Bind(1, job.key);
    while (points.Step()) job.points.push_back({points.Text(0), points.Integer(1), points.Integer(2) != 0});
    points.Reset();
  }
  return jobs;
}

std::vector<JobRecord> Store::LiveJobs(const std::string& sweep) {
  return impl_->Jobs(fmt::format("j.state IN {} AND EXISTS (SELECT 1 FROM job_points AS jp JOIN sweep_points AS s "
                                 "ON s.point_id = jp.point_id WHERE jp.job_key = j.key AND s.sweep = ?)",
                                 kLive),
                     &sweep);
}

std::vector<JobRecord> Store::LiveJobs() { return impl_->Jobs(fmt::format("j.state IN {}", kLive), nullptr); }

std::vector<size_t> Store::AddResults(std::span<const NewResult> results) {
  std::vector<size_t> added;
  if (results.empty()) return added;
  Transact([&] {
    ResultWriter writer(impl_->database);
    Statement latest =
        impl_->database.Prepare(fmt::format("SELECT r.attempt, {} FROM latest AS r WHERE r.point_id = ?", Stands()));
    for (size_t i = 0; i < results.size(); ++i) {
      const NewResult& item = results[i];
      int64_t attempt = item.attempt;
      if (item.job_key.empty()) {
        latest.Bind(1, item.result.point_id);
        const bool any = latest.Step();
        const bool finished = any && latest.Integer(1) != 0;
        attempt = any ? latest.Integer(0) + 1 : 1;
        latest.Reset();
        if (finished) continue;
      }
      if (writer.Write(item.result, item.job_key, attempt)) added.push_back(i);
    }
  });
  return added;
}

std::vector<MeasuredPoint> Store::MeasuredPoints(const std::string& launcher, int64_t most) {
  Statement each = impl_->database.Prepare(
      "SELECT p.spec, r.ended_unix_ns - r.started_unix_ns AS duration_ns FROM results AS r "
      "JOIN jobs AS j ON j.key = r.job_key JOIN points AS p ON p.id = r.point_id "
      "WHERE r.status = 'ok' AND j.launcher = ? AND duration_ns > 0 ORDER BY r.number DESC LIMIT ?");
  each.Bind(1, launcher);
  each.Bind(2, most);
  std::vector<MeasuredPoint> points;
  while (each.Step()) points.push_back({DecodeSpec(ParseJson(each.Text(0), "a point"), "a point"), each.Integer(1)});
  std::reverse(points.begin(), points.end());
  return points;
}

Table Store::Query(const std::string& sql, const std::map<std::string, std::string>& texts) {
  return impl_->database.Select(sql, texts);
}

std::vector<std::string> Store::Check() { return CheckStore(impl_->database); }

}  // namespace ridgeline
