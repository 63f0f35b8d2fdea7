#include "driver/live_job.h"

#include <charconv>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "collect/job_ends.h"
#include "run/results_file.h"

namespace ridgeline::driver {
namespace fs = std::filesystem;

namespace {

void SayWhichItIs(const store::JobRecord& record, Job& job) {
  job.campaign = record.measured_as.campaign;
  job.launcher = record.launcher;
  job.created_unix_ns = record.created_unix_ns;
}

}  // namespace

LiveJob OpenJob(Job job, const std::string& launcher, const MeasurementKey& measured_as,
                const std::map<std::string, int64_t>& attempts, int64_t unix_ns) {
  LiveJob live;
  store::JobRecord& record = live.record;
  record.key = job.key;
  record.sweep = job.sweep;
  record.launcher = launcher;
  record.job_dir = job.job_dir;
  record.created_unix_ns = unix_ns;
  record.measured_as = measured_as;
  for (const JobPoint& point : job.points) {
    const auto had = attempts.find(point.id);
    record.points.push_back({point.id, had == attempts.end() ? 1 : had->second + 1, false});
  }
  SayWhichItIs(record, job);
  live.to_submit = std::move(job);
  return live;
}

LiveJob AdoptJob(store::JobRecord record, const JobOf& job_of) {
  LiveJob job;
  job.may_exist = true;
  if (record.state == store::JobRecord::State::kIntent) job.to_submit = JobOfIntent(record, job_of);
  if (job.to_submit) WriteJob(*job.to_submit);
  if (const auto why = record.evidence.find(kWithdrawn); why != record.evidence.end()) job.withdrawn = why->second;
  if (const auto nodes = record.evidence.find(kKeptOff); nodes != record.evidence.end()) job.kept_off = nodes->second;
  if (const auto how = record.evidence.find(collect::said::kGangEnded); how != record.evidence.end()) {
    job.gang_ended = how->second;
  }
  const auto awaiting = record.evidence.find(kAwaiting);
  if (const auto since = record.evidence.find(kAwaitingSince);
      since != record.evidence.end() && awaiting != record.evidence.end()) {
    const std::string& text = since->second;
    std::from_chars(text.data(), text.data() + text.size(), job.awaiting_since_unix_ns);
    job.awaiting = job.results.awaiting = awaiting->second;
  }
  job.record = std::move(record);
  return job;
}

void WriteJob(const Job& job) {
  MakeDirs(job.job_dir);
  fs::remove(CancelFile(job.job_dir));
  WriteFile(JobFile(job), JobText(job));
  // Makes the file now. A client of a network file system remembers for up to a minute that a file is missing, and
  // would then miss results.
  ResultsWriter{job.job_dir};
}

std::optional<Job> JobOfIntent(const store::JobRecord& record, const JobOf& job_of) {
  try {
    if (std::optional<Job> job = ReadJobFile(record.job_dir)) return job;
  } catch (const Error&) {
    // The file was written whole, so it was damaged later. The job is made again.
  }
  std::optional<Job> made;
  for (const store::JobRecord::Point& point : record.points) {
    std::optional<Job> one = job_of(point.id);
    if (!one) return std::nullopt;
    if (made) {
      made->points.push_back(std::move(one->points.front()));
    } else {
      made = std::move(one);
    }
  }
  if (!made) return std::nullopt;
  made->key = record.key;
  made->sweep = record.sweep;
  made->job_dir = record.job_dir;
  SayWhichItIs(record, *made);
  return made;
}

void TakeResults(store::JobRecord& job) {
  std::set<std::string> ids;
  try {
    ResultsReader(job.job_dir).ReadNew([&](const JobLine& line) { return ids.insert(line.point_id), true; });
  } catch (const Error&) {
    return;  // the collector reports it
  }
  for (store::JobRecord::Point& point : job.points) point.has_result = point.has_result || ids.contains(point.id);
}

std::string CurrentProgress(LiveJob& job) {
  const auto& points = job.record.points;
  while (job.current < points.size() && points[job.current].has_result) ++job.current;
  if (job.current == points.size()) return {};
  return ReadTail(ProgressFile(job.record.job_dir, points[job.current].id), kMaxProgressBytes);
}

}  // namespace ridgeline::driver
