#include "collect/rebuild.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/folders.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "collect/collect.h"
#include "collect/passed_over.h"
#include "run/job.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "sweep/profile.h"

namespace ridgeline::collect {
namespace {
namespace fs = std::filesystem;

fs::path KeptSweep(const fs::path& output_dir, const std::string& name) {
  return output_dir / "sweeps" / ((sweep::IsPlainName(name) ? name : Hex(Hash(name))) + ".yaml");
}

class Rebuild {
 public:
  Rebuild(store::Store& store, const fs::path& output_dir, const std::string& campaign, int64_t now_unix_ns)
      : store_(store), output_dir_(output_dir), campaign_(campaign), now_unix_ns_(now_unix_ns) {}

  Rebuilt Run() {
    ReadJobs();
    for (const store::SweepProgress& progress : store_.Sweeps())
      known_sweeps_.emplace(progress.sweep.name, progress.sweep);
    known_jobs_ = Keys("SELECT key FROM jobs");
    unanswered_jobs_ = Keys(
        "SELECT DISTINCT r.job_key FROM results AS r JOIN jobs AS j ON j.key = r.job_key "
        "WHERE r.status IN ('infrastructure', 'cancelled') AND j.state NOT IN ('intent', 'submitted', 'running')");
    std::map<std::string, std::vector<const Job*>> by_sweep;
    for (const Job& job : jobs_) by_sweep[job.sweep].push_back(&job);
    for (const auto& [name, jobs] : by_sweep) {
      rebuilt_.sweeps.push_back(name);
      if (std::any_of(jobs.begin(), jobs.end(), [&](const Job* job) { return !known_jobs_.contains(job->key); })) {
        PutSweep(name, jobs);
      }
    }
    for (const store::JobRecord& job : store_.LiveJobs()) {
      for (const store::JobRecord::Point& point : job.points) live_points_.insert(point.id);
    }
    for (const Job& job : jobs_) {
      for (const JobPoint& point : job.points) last_job_of_[point.id] = &job;
    }
    for (const Job& job : jobs_) {
      if (!known_jobs_.contains(job.key)) {
        Add(job);
      } else if (unanswered_jobs_.contains(job.key)) {
        TakeWhatCame(job);
      }
    }
    TakeOfLiveJobs();
    store_.MarkRunAgain(added_);
    return std::move(rebuilt_);
  }

 private:
  std::unordered_set<std::string> Keys(const std::string& sql) {
    std::unordered_set<std::string> keys;
    for (const auto& row : store_.Query(sql).rows) keys.insert(CellText(row.at(0)));
    return keys;
  }

  void ReadJobs() {
    int64_t without_campaign = 0;
    PassedOver others;
    ForEachEntry(output_dir_ / "jobs", [&](const fs::directory_entry& folder) {
      const fs::path file = JobFile(folder.path());
      try {
        std::optional<Job> read = ReadJobFile(folder.path());
        if (!read) return others.Add(folder.path().filename().string());
        Job& job = *read;
        for (const JobPoint& point : job.points) {
          if (PointId(point.spec) == point.id) continue;
          throw Error(ErrorKind::kInvalidInput,
                      fmt::format("{}: the id of the point {} is not that of its spec", file.string(), point.id));
        }
        job.job_dir = folder.path();
        if (job.created_unix_ns == 0) job.created_unix_ns = ModifiedUnixNs(file);
        if (job.campaign.empty()) {
          ++without_campaign;
          job.campaign = campaign_.empty() ? kDefaultCampaign : campaign_;
        }
        jobs_.push_back(std::move(job));
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kInvalidInput) throw;
        rebuilt_.problems.push_back(e.message());
      }
    });
    if (!others.empty()) {
      rebuilt_.problems.push_back(fmt::format("{} has {}", (output_dir_ / "jobs").string(),
                                              others.Words("entry without a job's file, which was not read",
                                                           "entries without a job's file, which were not read")));
    }
    std::sort(jobs_.begin(), jobs_.end(), [](const Job& a, const Job& b) {
      return std::tie(a.created_unix_ns, a.key) < std::tie(b.created_unix_ns, b.key);
    });
    if (without_campaign > 0 && campaign_.empty()) {
      rebuilt_.problems.push_back(fmt::format("{} without a campaign: taken for `{}`, unless --campaign names another",
                                              CountOf(without_campaign, "job"), kDefaultCampaign));
    }
  }

  // The sweep as it ran on `launcher`, from the text in the store or the kept text. Returns nothing if the text is
  // missing or no longer valid.
  std::optional<sweep::Sweep> SweepAsRun(const std::string& name, const std::string& launcher) {
    const auto known = known_sweeps_.find(name);
    if (known != known_sweeps_.end() && known->second.text.empty()) return std::nullopt;
    const fs::path file = KeptSweep(output_dir_, name);
    std::error_code ec;
    if (known == known_sweeps_.end() && !fs::exists(file, ec)) {
      rebuilt_.problems.push_back(fmt::format("the text of the sweep {} is not in {}: its points are those of its jobs",
                                              name, (output_dir_ / "sweeps").string()));
      return std::nullopt;
    }
    try {
      sweep::Sweep sweep = known == known_sweeps_.end() ? sweep::LoadSweep(file)
                                                        : sweep::ParseSweep(known->second.text, known->second.file);
      if (!launcher.empty()) sweep.launch.launcher = launcher;
      sweep::UseProfiles(sweep);
      return sweep;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInvalidInput) throw;
      rebuilt_.problems.push_back(
          fmt::format("the sweep {} cannot be read any more: its points are those of its jobs: {}", name, e.message()));
      return std::nullopt;
    }
  }

  void PutSweep(const std::string& name, const std::vector<const Job*>& jobs) {
    std::vector<Point> of_jobs;
    std::map<std::string, std::string> setups;
    for (const Job* job : jobs) {
      for (const JobPoint& point : job->points) {
        if (setups.insert_or_assign(point.id, job->setup).second) of_jobs.push_back({point.id, point.spec});
      }
    }
    store::SweepRecord record;
    record.name = name;
    record.created_unix_ns = jobs.front()->created_unix_ns;
    record.measured_as = {jobs.back()->campaign, jobs.back()->setup};
    const std::optional<sweep::Sweep> sweep = SweepAsRun(name, jobs.back()->launcher);
    const auto known = known_sweeps_.find(name);
    if (known != known_sweeps_.end()) {
      record = known->second;
    } else if (sweep) {
      record.description = sweep->description;
      record.file = sweep->file.string();
      record.text = sweep->text;
      record.measured_as.setup = SetupOf(sweep->launch);
    }
    // First with all points of its jobs, because the sweep may have been edited and now have other points.
    store_.PutSweep(record, of_jobs);
    const auto setup_of_job = [&](const Point& point) { return setups.at(point.id); };
    const auto setup_of_sweep = [&](const Point& point) { return SetupOf(sweep::LaunchOf(*sweep, point)); };
    // Only the jobs know what a search chose, and which value `batch_size: max` got.
    if (sweep && !sweep->search && !sweep::HasLargestBatch(*sweep)) {
      store_.PutSweep(record, sweep::Expand(*sweep), setup_of_sweep);
    } else {
      store_.PutSweep(record, of_jobs, setup_of_job);
    }
  }

  void Add(const Job& job) {
    if (std::ranges::any_of(job.points, [&](const JobPoint& point) { return live_points_.contains(point.id); })) {
      rebuilt_.problems.push_back(
          fmt::format("{} has points that are in a live job of the database: collect again when that has ended",
                      job.job_dir.string()));
      return;
    }
    store::JobRecord record;
    record.key = job.key;
    record.sweep = job.sweep;
    record.launcher = job.launcher;
    record.job_dir = job.job_dir;
    record.created_unix_ns = job.created_unix_ns;
    record.measured_as = {job.campaign, job.setup};
    for (const JobPoint& point : job.points) record.points.push_back({point.id});
    store_.RecordIntents({&record, 1});
    added_.push_back(job.key);
    ++rebuilt_.jobs;
    // With the attempt numbers that the store gave.
    const store::JobRecord counted = store_.LiveJob(job.key).value();
    const int64_t results = Take({counted, store::JobRecord::State::kRunning, {}});
    rebuilt_.results += results;
    const int64_t ended_unix_ns = ModifiedUnixNs(ResultsFile(job.job_dir));
    if (results == std::ssize(job.points)) {
      store_.SetJobState(job.key, store::JobRecord::State::kEnded, {},
                         ended_unix_ns > 0 ? ended_unix_ns : now_unix_ns_);
      return;
    }
    const store::JobRecord left = store_.LiveJob(job.key).value();
    if (MayStillRun(job, left)) {
      ++rebuilt_.live;
      for (const JobPoint& point : job.points) live_points_.insert(point.id);
      return;
    }
    Take({left,
          store::JobRecord::State::kLost,
          {{"reason", "its database was lost before all of its results were there"}}});
  }

  // A point is in one live job at a time, so a job that shares one with a later job has ended.
  bool MayStillRun(const Job& job, const store::JobRecord& left) {
    if (job.launcher.empty() || fs::exists(CancelFile(job.job_dir))) return false;
    return std::ranges::all_of(job.points, [&](const JobPoint& point) { return last_job_of_.at(point.id) == &job; }) &&
           std::any_of(left.points.begin(), left.points.end(), [&](const store::JobRecord::Point& point) {
             return !point.has_result && IsOf(job.sweep, point.id);
           });
  }

  // The sweep may have been edited since.
  bool IsOf(const std::string& sweep, const std::string& point_id) {
    const Table points = store_.Query("SELECT 1 FROM sweep_points WHERE sweep = :sweep AND point_id = :point",
                                      {{"sweep", sweep}, {"point", point_id}});
    return !points.rows.empty();
  }

  int64_t Take(const JobToCollect& from) { return std::ssize(Collect(store_, {&from, 1}, now_unix_ns_)); }

  void TakeWhatCame(const Job& job) {
    MeasuredAs points;
    for (const JobPoint& point : job.points) points.emplace(point.id, MeasurementKey{job.campaign, job.setup});
    FolderCollection found;
    CollectJobFolder(store_, job.job_dir, points, found);
    rebuilt_.results += found.added;
    std::move(found.problems.begin(), found.problems.end(), std::back_inserter(rebuilt_.problems));
  }

  void TakeOfLiveJobs() {
    std::set<std::string_view> here;
    for (const Job& job : jobs_) here.insert(job.key);
    for (const store::JobRecord& job : store_.LiveJobs()) {
      if (!here.contains(job.key)) continue;
      rebuilt_.results += Take({job, job.state, {}});
      if (job.state == store::JobRecord::State::kIntent) EndWhereDone(job.key);
    }
  }

  // Ends a job that an earlier rebuild left as an intent and that has all results now.
  void EndWhereDone(const std::string& key) {
    const store::JobRecord job = store_.LiveJob(key).value();
    if (!std::ranges::all_of(job.points, &store::JobRecord::Point::has_result)) return;
    store_.SetJobState(key, store::JobRecord::State::kEnded, {}, ModifiedUnixNs(ResultsFile(job.job_dir)));
  }

  store::Store& store_;
  const fs::path& output_dir_;
  const std::string& campaign_;
  int64_t now_unix_ns_;
  std::vector<Job> jobs_;
  std::unordered_map<std::string_view, const Job*> last_job_of_;  // by point; pointers into jobs_
  std::unordered_set<std::string> live_points_;                   // points of live jobs
  std::map<std::string, store::SweepRecord> known_sweeps_;
  std::unordered_set<std::string> known_jobs_;       // keys
  std::unordered_set<std::string> unanswered_jobs_;  // keys of ended jobs that left a point without a result
  std::vector<std::string> added_;                   // keys
  Rebuilt rebuilt_;
};

}  // namespace

void KeepSweep(const fs::path& output_dir, const sweep::Sweep& sweep) {
  const fs::path file = KeptSweep(output_dir, sweep.name);
  MakeDirs(file.parent_path());
  WriteFileAtomic(file, sweep.text);
  sweep.trainers.Keep(file.parent_path() / "trainers");
}

Rebuilt RebuildFrom(store::Store& store, const fs::path& output_dir, const std::string& campaign, int64_t now_unix_ns) {
  Rebuilt rebuilt;
  store.Transact([&] { rebuilt = Rebuild(store, output_dir, campaign, now_unix_ns).Run(); });
  return rebuilt;
}

}  // namespace ridgeline::collect
