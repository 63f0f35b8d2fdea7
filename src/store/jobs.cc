// The life of jobs, from intent to end.
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "ridgeline/json_fault.h"
#include "store/impl.h"
#include "store/results.h"

namespace ridgeline::store {
namespace {

constexpr std::array<std::string_view, 6> kStates = {"intent", "submitted", "running", "ended", "lost", "cancelled"};

JobRecord::State StateFromName(const std::string& name) {
  for (size_t i = 0; i < kStates.size(); ++i) {
    if (kStates[i] == name) return static_cast<JobRecord::State>(i);
  }
  throw Error(ErrorKind::kInvalidInput, "the store has a job in the unknown state '" + name + "'");
}

}  // namespace

std::map<std::string, std::string> ParseTexts(const std::string& text, const std::string& source) {
  try {
    return ParseJson(text, source).get<std::map<std::string, std::string>>();
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("{}: {}", source, JsonFault(e)), "run `ridgeline db check`");
  }
}

std::string_view JobStateName(JobRecord::State state) { return kStates[static_cast<size_t>(state)]; }

bool IsLive(JobRecord::State state) { return state <= JobRecord::State::kRunning; }

void Store::RecordIntents(std::span<const JobRecord> jobs) {
  Transact([&] {
    Database& database = impl_->database;
    Statement add_job = database.Prepare(
        "INSERT INTO jobs (key, sweep, launcher, native_id, job_dir, state, created_unix_ns, evidence, campaign, "
        "setup) "
        "VALUES (?, ?, ?, '', ?, 'intent', ?, '{}', ?, ?)");
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
      add_job.Bind(6, job.measured_as.campaign);
      add_job.Bind(7, job.measured_as.setup);
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

std::vector<JobRecord> Store::Impl::Jobs(const std::string& where, const std::string* bound) {
  Statement each = database.Prepare(fmt::format(
      "SELECT j.key, j.sweep, j.launcher, j.native_id, j.job_dir, j.state, j.created_unix_ns, j.submitted_unix_ns, "
      "j.started_unix_ns, j.ended_unix_ns, j.evidence, j.campaign, j.setup FROM jobs AS j WHERE {} ORDER BY j.number",
      where));
  if (bound != nullptr) each.Bind(1, *bound);
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
    job.measured_as = {each.Text(11), each.Text(12)};
    points.Bind(1, job.key);
    while (points.Step()) job.points.push_back({points.Text(0), points.Integer(1), points.Integer(2) != 0});
    points.Reset();
  }
  return jobs;
}

std::vector<JobRecord> Store::LiveJobs(const std::string& sweep) {
  // A CROSS JOIN keeps this order: a job has few points, a sweep has many. SQLite would begin with the many.
  return impl_->Jobs(
      fmt::format("j.state IN {} AND EXISTS (SELECT 1 FROM job_points AS jp CROSS JOIN sweep_points AS s "
                  "ON s.point_id = jp.point_id WHERE jp.job_key = j.key AND s.sweep = ?)",
                  kLive),
      &sweep);
}

std::optional<JobRecord> Store::LiveJob(const std::string& key) {
  std::vector<JobRecord> jobs = impl_->Jobs(fmt::format("j.state IN {} AND j.key = ?", kLive), &key);
  return jobs.empty() ? std::nullopt : std::optional(std::move(jobs.front()));
}

std::vector<JobRecord> Store::LiveJobs() { return impl_->Jobs(fmt::format("j.state IN {}", kLive), nullptr); }

}  // namespace ridgeline::store
