// The store: every sweep, point, job and result, in one SQLite file. docs/store.md describes the tables.
//
// Only the driver writes. Others may read at the same time (write-ahead log), and see whole transactions only. Every
// call happens whole or not at all, and so does everything inside Transact. If a process is killed at any moment, or a
// disk fills up, only what was not committed is lost.
//
// Errors: kInvalidInput if a file is not a store, is damaged, or has a newer schema (the file is left as it was);
// kInfrastructure if a disk is full or fails, a file cannot be opened, or another process keeps the store locked;
// kUsage if a Query is wrong SQL or would write. Thread safety: one thread for each Store.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "ridgeline/run.h"
#include "run/measurement.h"
#include "run/point.h"

namespace ridgeline::store {

struct SweepRecord {
  std::string name;
  std::string description;
  std::string file;  // the file that the sweep was read from
  std::string text;  // the whole YAML
  int64_t created_unix_ns = 0;
  MeasurementKey measured_as = {};  // how its points are measured now, except for points with setups of their own
};

struct SweepProgress {
  SweepRecord sweep;
  int64_t points = 0;
  // The counts are of results measured as the sweep says now.
  int64_t ok = 0;              // the latest result is ok
  int64_t failed = 0;          // the latest result is final and not ok
  int64_t out_of_memory = 0;   // failed points that ran out of memory, predicted or met: an answer, not a fault
  int64_t infrastructure = 0;  // the latest result says nothing about the point, only that the infrastructure failed
  int64_t live = 0;            // neither ok nor failed, and in a job that has not ended
  int64_t runs = 0;            // of all points: each has as many as its repeats
  int64_t runs_done = 0;       // runs of finished points, and runs that ended well
  int64_t finished() const { return ok + failed; }
};

// A job as the store has it. It is live (intent, submitted, running) until it ends, is lost or is cancelled.
struct JobRecord {
  enum class State { kIntent, kSubmitted, kRunning, kEnded, kLost, kCancelled };
  struct Point {
    std::string id;
    int64_t attempt = 0;      // 1 for the first; the store counts
    bool has_result = false;  // this attempt's result is in the store
  };

  std::string key;
  std::string sweep;
  std::string launcher;
  std::string native_id;  // the scheduler's name for it; empty until submitted
  std::filesystem::path job_dir;
  State state = State::kIntent;
  int64_t created_unix_ns = 0;                  // time of the intent
  int64_t submitted_unix_ns = 0;                // 0: not yet
  int64_t started_unix_ns = 0;                  // the job waited in the queue before; 0: not yet, or not known
  int64_t ended_unix_ns = 0;                    // 0: not yet
  std::map<std::string, std::string> evidence;  // what the scheduler reported
  std::vector<Point> points;
  MeasurementKey measured_as = {};
};

std::string_view JobStateName(JobRecord::State state);  // "intent", "submitted", …
bool IsLive(JobRecord::State state);

// Returns whether a result with this status stands. A result that is not ok stands until `--retry failed`; an ok result
// must be of the last repeat. The next `ridgeline run` runs the others (infrastructure, cancelled) again.
bool IsFinal(RunStatus status);

// One result to keep. With a job: one of the job's points and its attempt, as in JobRecord. Without a job (a point that
// is skipped because it is predicted not to fit): `job_key` is empty, `attempt` is 0, and the store numbers it. Only
// then `measured_as` is used.
struct NewResult {
  RunResult result;
  std::string job_key;
  int64_t attempt = 0;
  MeasurementKey measured_as = {};
};

// Finished points, and the facts of their results' environment.
struct PointOrigins {
  Facts environment;
  int64_t points = 0;
};

// A point that ended ok, and how long one repeat of it took.
struct MeasuredPoint {
  RunSpec spec;
  int64_t duration_ns = 0;
};

// How a measured point ended, and with which setup.
struct StandingResult {
  std::string point_id;
  std::string setup;
  RunStatus status = RunStatus::kOk;
  double steady_tokens_per_s = 0;
  std::string all_steps_ns;  // JSON, of all its repeats
  std::string sweep;         // the sweep whose job measured it; empty: no job did, it was predicted not to fit
};

// Which measurements the view `runs` has.
struct RunsChoice {
  bool all = false;      // every measurement; else the newest of each point and setup
  std::string campaign;  // all measurements of this campaign alone; empty: of any
};

// What a merge added.
struct MergeSummary {
  int64_t sweeps = 0;
  int64_t points = 0;
  int64_t jobs = 0;
  int64_t results = 0;
  int64_t known_results = 0;  // that were here already
};

// What Prune removed.
struct Pruned {
  int64_t results = 0;
  int64_t jobs = 0;
};

// What Delete removed.
struct Deletion {
  enum class What { kRun, kCampaign, kSweep };
  int64_t results = 0;
  int64_t jobs = 0;
  int64_t sweeps = 0;
};

// How long a reader waits, and how much memory it may use.
struct StoreLimits {
  std::chrono::milliseconds longest_lock = std::chrono::seconds(60);  // of another process
  // Time of a core that a question may take: until its next row, or for a Query until its last.
  std::chrono::milliseconds longest_question = std::chrono::minutes(5);
  size_t most_answer_bytes = SIZE_MAX;  // of a Query, in memory
  // A reader takes a file of an older schema into memory, and brings it up to date there, if the file is no larger.
  uintmax_t most_copied_bytes = uintmax_t{256} << 20;
  int64_t cache_bytes = int64_t{128} << 20;  // holds the indexes of 100,000 points, which are looked up in no order
};

class Store {
 public:
  enum class Mode {
    kReadWrite,  // makes a missing file, and brings an older schema up to date
    kReadOnly,   // the file must exist, and stays as it is
  };

  // Waits for a lock that another process holds, here and in every call. Reports a wait longer than a moment to `note`.
  // Refuses a file that is not regular, such as a FIFO, on which SQLite would wait.
  static Store Open(const std::filesystem::path& file, Mode mode,
                    std::function<void(const std::string& words)> note = {}, const StoreLimits& limits = {});
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // Runs `work` as one transaction, which the calls inside it join. An exception undoes all of it.
  void Transact(const std::function<void()>& work);

  // The setup of a point, for sweeps in which it differs from point to point.
  using SetupOfPoint = std::function<std::string(const Point&)>;

  // Records the sweep and its points, exactly these and in this order. An edited sweep may drop points, whose results
  // stay. An existing sweep keeps its `created_unix_ns`. From now on its progress counts results of `measured_as`, with
  // the setup that `setup_of` gives.
  void PutSweep(const SweepRecord& sweep, std::span<const Point> points, const SetupOfPoint& setup_of = {});

  std::vector<SweepProgress> Sweeps();               // newest first
  SweepProgress Progress(const std::string& sweep);  // throws Error(kUsage) for an unknown sweep
  // Points measured as the sweep says now, in order. A point with a requested retry is not finished.
  std::vector<std::string> FinishedPoints(const std::string& sweep);
  std::vector<PointOrigins> OriginsOfFinished(const std::string& sweep);
  // The sweep's current campaign; the default campaign if it was never run.
  std::string CurrentCampaign(const std::string& sweep);
  bool HasCampaign(const std::string& name);

  // The number of attempts of the sweep's points, over all sweeps, without points that have had none. A point's next
  // job makes attempt + 1, so the number belongs in a job's key.
  std::map<std::string, int64_t> Attempts(const std::string& sweep);

  // For the sweep's points that have some but not all of their repeats, measured as the sweep says now: how many they
  // have.
  std::map<std::string, int64_t> RepeatsSoFar(const std::string& sweep);

  // Requests new runs of the sweep's points whose latest result, measured as the sweep says now, is final and not ok.
  // Such a point keeps that result until it has a newer one. The request survives if the driver is killed. Returns the
  // number of such points.
  int64_t RetryFailed(const std::string& sweep);

  // The sweep's points whose latest result, measured as the sweep says now, is a prediction that they do not fit. Each
  // comes with the basis of that: the bytes it wants, and why it has no more (plan/memory_limit.h's basis).
  std::map<std::string, std::string> PredictedNotToFit(const std::string& sweep);
  static std::string PredictionOf(const RunResult& skipped);  // the same for such a result
  // Withdraws such predictions. Their points are run or judged again, as with RetryFailed.
  void TakeBackPredictions(const std::string& sweep, const std::set<std::string>& point_ids);

  // Marks failures of these jobs that another attempt followed, with the same campaign and setup, as run again on
  // request. Is for jobs that are restored, for which nobody repeats the request.
  void MarkRunAgain(std::span<const std::string> job_keys);

  // Must be called before submitting. Ignores `state` and `evidence`. Numbers the attempts of the jobs' points and
  // ignores `points[].attempt`. Throws Error(kUsage) and records nothing if a point is in a live job already.
  void RecordIntents(std::span<const JobRecord> jobs);
  void MarkSubmitted(const std::string& key, const std::string& native_id, int64_t unix_ns);
  // Records when the job began to run; for a requeued job, the last time.
  void MarkStarted(const std::string& key, int64_t unix_ns);
  // If the state is not live, keeps `unix_ns` as the end. Collect a job's results before you end it.
  void SetJobState(const std::string& key, JobRecord::State state, const std::map<std::string, std::string>& evidence,
                   int64_t unix_ns);

  // Jobs that have not ended and hold a point of this sweep, whichever sweep submitted them, in order of intent.
  std::vector<JobRecord> LiveJobs(const std::string& sweep);
  std::vector<JobRecord> LiveJobs();  // of every sweep
  std::optional<JobRecord> LiveJob(const std::string& key);

  // Keeps results, all in one transaction. Skips a result that exists already (same point, same attempt), and one
  // without a job whose point is finished. A repeat is kept with the figures of the earlier ones, and stands only when
  // the last repeat has come. Returns the indices of the new ones in `results`.
  std::vector<size_t> AddResults(std::span<const NewResult> results);

  // The latest result of each of these points, for each setup, measured for this campaign by any sweep, if it stands.
  std::vector<StandingResult> StandingResults(const std::string& campaign, std::span<const std::string> point_ids);
  // Keeps results that nobody ran, predicted or published, of these points, which need not belong to a sweep. Replaces
  // an earlier one of the same point, provenance and `predicted_as`.
  void PutPredictions(std::span<const Point> points, std::span<const RunResult> results,
                      const MeasurementKey& predicted_as);

  // The durations of the latest points, of any sweep, that ended ok on this launcher: at most `most` points, the oldest
  // first.
  std::vector<MeasuredPoint> MeasuredPoints(const std::string& launcher, int64_t most);

  // Adds every measurement of another store, with its lineage, and leaves that store unchanged. Recognizes what is here
  // already, so merging twice changes nothing. A sweep of the same name stays as it is here. Needs disk space for a
  // copy beside this file. Throws Error(kUsage) if the other store has live jobs, Error(kInvalidInput) if it is damaged
  // or newer.
  MergeSummary Merge(const std::filesystem::path& other);

  // Copies the store to a new file, as of one moment, even if others write to it meanwhile. The copy is whole or does
  // not exist. Throws Error(kUsage) if a file of that name exists.
  void Backup(const std::filesystem::path& to);

  // Removes measurements that ended before this time, except the latest of each point and setup and the last attempt at
  // each point. Then removes jobs of which nothing is left.
  Pruned Prune(int64_t before_unix_ns);

  // Deletes a run (its number, or "POINT.ENDED": its point and when it ended), a campaign, or a sweep with its points
  // that no other sweep has. Attempts keep their numbers, so no later job gets the key of a deleted one. With
  // `dry_run`, only counts what would be deleted. Throws Error(kUsage) if nothing has this name, or one of its jobs is
  // live.
  Deletion Delete(Deletion::What what, const std::string& name, bool dry_run);

  // Frees the file's unused space. Needs as much again beside it meanwhile. Throws Error(kInfrastructure).
  void Vacuum();

  // Writes the whole store, as of one moment, in pieces, as SQL that makes it again.
  void WriteSql(const std::function<void(const std::string& text)>& write);

  // Chooses the view `runs` for this Store's queries from now on. The file and all other readers keep theirs.
  void ChooseRuns(const RunsChoice& choice);

  // Runs one SELECT (or EXPLAIN, VALUES, WITH). Refuses anything that writes, attaches another file or sets a pragma,
  // whatever the Store's mode. `texts` are the values of its :parameters; a missing one is NULL.
  Table Query(const std::string& sql, const std::map<std::string, std::string>& texts = {});

  // Returns the store's problems, one sentence each; empty if there are none. Reads the whole store.
  std::vector<std::string> Check();

 private:
  struct Impl;
  int64_t DropEmptyJobs();  // ended jobs of which at most the last attempt at a point is left
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ridgeline::store
