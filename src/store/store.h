// The store: every sweep, point, job and result, in one SQLite file. docs/store.md describes the tables.
//
// Only the driver writes. Others may read at the same time (write-ahead log) and see whole transactions only: every
// call happens whole or not at all, and so does everything inside Transact. A process killed at any moment, or a disk
// that fills up, costs what was not committed yet and nothing else.
//
// Errors: kInvalidInput for a file that is not a store, is damaged, or is of a newer schema (the file is left as it
// was); kInfrastructure for a disk that is full or fails, a file that cannot be opened, or another process that keeps
// the store locked; kUsage for a Query that is wrong SQL or would write. Thread safety: one thread a Store.
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

namespace ridgeline {

struct SweepRecord {
  std::string name;
  std::string description;
  std::string file;  // where it was read from
  std::string text;  // the whole YAML
  int64_t created_unix_ns = 0;
  MeasurementKey measured_as = {};  // what its points are measured as now, but for the setups of some
};

struct SweepProgress {
  SweepRecord sweep;
  int64_t points = 0;
  // Of what the sweep's points are measured as now.
  int64_t ok = 0;              // the latest result is ok
  int64_t failed = 0;          // the latest result is final and not ok
  int64_t out_of_memory = 0;   // of those, for want of memory, predicted or met: an answer, and no fault
  int64_t infrastructure = 0;  // the latest result says nothing of the point but this
  int64_t live = 0;            // neither ok nor failed, and in a job that has not ended
  int64_t runs = 0;            // of all points: each has as many as it has repeats
  int64_t runs_done = 0;       // of those, whose point is finished, or that went well
  int64_t finished() const { return ok + failed; }
};

// A job as the store knows it: live (intent, submitted, running) until it is ended, lost or cancelled.
struct JobRecord {
  enum class State { kIntent, kSubmitted, kRunning, kEnded, kLost, kCancelled };
  struct Point {
    std::string id;
    int64_t attempt = 0;      // 1 for the first; the store counts
    bool has_result = false;  // this attempt is in the store
  };

  std::string key;
  std::string sweep;
  std::string launcher;
  std::string native_id;  // the scheduler's name for it; empty until submitted
  std::filesystem::path job_dir;
  State state = State::kIntent;
  int64_t created_unix_ns = 0;                  // the intent
  int64_t submitted_unix_ns = 0;                // 0: not yet
  int64_t started_unix_ns = 0;                  // what is before it is waiting in the queue; 0: not yet, or not known
  int64_t ended_unix_ns = 0;                    // 0: not yet
  std::map<std::string, std::string> evidence;  // what the scheduler said
  std::vector<Point> points;
  MeasurementKey measured_as = {};
};

std::string_view JobStateName(JobRecord::State state);  // "intent", "submitted", …
bool IsLive(JobRecord::State state);

// A result that stands until `--retry failed`, where it is of the last repeat or not ok; the others (infrastructure,
// cancelled) are run again by the next `ridgeline run`.
bool IsFinal(RunStatus status);

// One result to keep. With a job: one of the job's points and its attempt, as JobRecord has them. Without one (a point
// skipped because it is predicted not to fit): `job_key` is empty, `attempt` 0, and the store numbers it; only then is
// it said here what it is measured as.
struct NewResult {
  RunResult result;
  std::string job_key;
  int64_t attempt = 0;
  MeasurementKey measured_as = {};
};

// Finished points, and what their results say of where they came about.
struct PointOrigins {
  Facts environment;
  int64_t points = 0;
};

// A point that ended ok, and what a repeat of it took from its start to its end.
struct MeasuredPoint {
  RunSpec spec;
  int64_t duration_ns = 0;
};

// How a point ended that was measured, with which setup.
struct StandingResult {
  std::string point_id;
  std::string setup;
  RunStatus status = RunStatus::kOk;
  double steady_tokens_per_s = 0;
  std::string all_steps_ns;  // JSON, of all its repeats
  std::string sweep;         // whose job measured it; empty: none did, it was predicted not to fit
};

// Which measurements the view `runs` has.
struct RunsChoice {
  bool all = false;      // every one; else the newest of each point and setup
  std::string campaign;  // those of this one alone, all of them; empty: of any
};

// What a merge brought.
struct MergeSummary {
  int64_t sweeps = 0;
  int64_t points = 0;
  int64_t jobs = 0;
  int64_t results = 0;
  int64_t known_results = 0;  // that were here already
};

// What was let go.
struct Pruned {
  int64_t results = 0;
  int64_t jobs = 0;
};

// What was deleted.
struct Deletion {
  enum class What { kRun, kCampaign, kSweep };
  int64_t results = 0;
  int64_t jobs = 0;
  int64_t sweeps = 0;
};

// How long a reader waits, and what it may take.
struct StoreLimits {
  std::chrono::milliseconds longest_lock = std::chrono::seconds(60);     // of another process
  std::chrono::milliseconds longest_question = std::chrono::minutes(5);  // until its next row; of a Query its last
  size_t most_answer_bytes = SIZE_MAX;                                   // of a Query, in memory
  int64_t cache_bytes = int64_t{128} << 20;  // holds the indexes of 100,000 points, which are met in no order
};

class Store {
 public:
  enum class Mode {
    kReadWrite,  // made where it is missing; an older schema is brought up to date
    kReadOnly,   // must be there
  };

  // A lock that another process holds is waited for, here and in every call; `note` is told of a wait that takes longer
  // than a moment.
  // A file that is no regular file, as a FIFO that SQLite would wait for, is refused.
  static Store Open(const std::filesystem::path& file, Mode mode,
                    std::function<void(const std::string& words)> note = {}, const StoreLimits& limits = {});
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // Runs `work` as one transaction; the calls inside it join it. An exception undoes all of it.
  void Transact(const std::function<void()>& work);

  // What a point of the sweep is measured with, where that differs from point to point.
  using SetupOfPoint = std::function<std::string(const Point&)>;

  // The sweep and its points, exactly these and in this order: an edited sweep may drop points, whose results stay.
  // `created_unix_ns` of a sweep that is there already stays. From now on its progress is that of `measured_as`, with
  // the setup that `setup_of` gives.
  void PutSweep(const SweepRecord& sweep, std::span<const Point> points, const SetupOfPoint& setup_of = {});

  std::vector<SweepProgress> Sweeps();               // newest first
  SweepProgress Progress(const std::string& sweep);  // throws Error(kUsage) for an unknown sweep
  // Measured as the sweep says now; in order. A retry asked for is not finished.
  std::vector<std::string> FinishedPoints(const std::string& sweep);
  std::vector<PointOrigins> OriginsOfFinished(const std::string& sweep);
  // The campaign that the sweep is at; the default one where it was never run.
  std::string CurrentCampaign(const std::string& sweep);
  bool HasCampaign(const std::string& name);

  // Attempts so far of the sweep's points that have had any, in whichever sweep: a point's next job makes this + 1, so
  // it belongs in a job's key.
  std::map<std::string, int64_t> Attempts(const std::string& sweep);

  // Of the sweep's points that have had some of their repeats, measured as the sweep says now, and not all: how many.
  std::map<std::string, int64_t> RepeatsSoFar(const std::string& sweep);

  // The sweep's points whose latest result, measured as the sweep says now, is final and not ok are to be run again.
  // They keep that result until they have a newer one, and stay asked for if the driver is killed before. Returns how
  // many there are.
  int64_t RetryFailed(const std::string& sweep);

  // The sweep's points whose latest result, measured as the sweep says now, is that they are predicted not to fit, each
  // with what that went by: the bytes it wants, and why it has no more (plan/memory.h's basis).
  std::map<std::string, std::string> PredictedNotToFit(const std::string& sweep);
  static std::string PredictionOf(const RunResult& skipped);  // the same of such a result
  // Such predictions do not hold any more: their points are to be run, or judged anew, as RetryFailed has it.
  void TakeBackPredictions(const std::string& sweep, const std::set<std::string>& point_ids);

  // Failures of these jobs that another attempt followed, of the same campaign and setup, were run again because a
  // person asked for it: for jobs that are put back, where nobody asks once more.
  void MarkRunAgain(std::span<const std::string> job_keys);

  // Before submitting; `state` and `evidence` are ignored. Numbers the attempts of the jobs' points (what is in
  // `points[].attempt` is ignored). Throws Error(kUsage), recording nothing, where a point is in a live job already.
  void RecordIntents(std::span<const JobRecord> jobs);
  void MarkSubmitted(const std::string& key, const std::string& native_id, int64_t unix_ns);
  // When the job began to run; of one that was requeued, the last time.
  void MarkStarted(const std::string& key, int64_t unix_ns);
  // `unix_ns` is kept as the end where the state is not live. Collect a job's results before it is ended.
  void SetJobState(const std::string& key, JobRecord::State state, const std::map<std::string, std::string>& evidence,
                   int64_t unix_ns);

  // Jobs that have not ended and hold a point of this sweep, whichever sweep submitted them; in order of intent.
  std::vector<JobRecord> LiveJobs(const std::string& sweep);
  std::vector<JobRecord> LiveJobs();  // of every sweep
  std::optional<JobRecord> LiveJob(const std::string& key);

  // Keeps results, all in one transaction; one that is there already (same point, same attempt) is left alone, as is
  // one without a job for a point that is finished. One of a point's repeats is kept with the figures of those before
  // it, and does not stand before the last of them has come. Returns which were new, as indices into `results`.
  std::vector<size_t> AddResults(std::span<const NewResult> results);

  // The latest result of each of these points, by setup, measured for this campaign by whichever sweep, where it
  // stands.
  std::vector<StandingResult> StandingResults(const std::string& campaign, std::span<const std::string> point_ids);
  // Keeps results that nobody ran, predicted or published, of these points, which need be no sweep's. An earlier one of
  // the same point, provenance and `predicted_as` goes: a prediction that is made again is another.
  void PutPredictions(std::span<const Point> points, std::span<const RunResult> results,
                      const MeasurementKey& predicted_as);

  // What the latest points took that ended ok on this launcher, of any sweep: `most` of them at most, the oldest first.
  std::vector<MeasuredPoint> MeasuredPoints(const std::string& launcher, int64_t most);

  // Takes in every measurement of another store, which is left as it is, with its lineage; what is here already is
  // known again, so merging twice changes nothing. A sweep of the same name stays as it is here. Needs room for a copy
  // beside this file. Throws Error(kUsage) where the other has live jobs, Error(kInvalidInput) where it is damaged or
  // newer.
  MergeSummary Merge(const std::filesystem::path& other);

  // Copies the store to a new file, as it is at one moment, whoever writes it meanwhile. The copy is whole, or is not
  // there. Throws Error(kUsage) where a file of that name is there.
  void Backup(const std::filesystem::path& to);

  // Lets measurements go that ended before this time, but the latest of each point and setup and the last attempt at
  // each point; and jobs of which nothing is left.
  Pruned Prune(int64_t before_unix_ns);

  // Forgets a run (its number, or "POINT.ENDED": its point and when it ended), a campaign, or a sweep with its points
  // that no other sweep has. Attempts are not numbered anew, so that no later job takes a forgotten one's key. With
  // `dry_run` all of it stays, and what would go is counted. Throws Error(kUsage) where nothing is called so, or a job
  // of it lives.
  Deletion Delete(Deletion::What what, const std::string& name, bool dry_run);

  // Gives the file's unused room back. Needs as much again beside it meanwhile; throws Error(kInfrastructure).
  void Vacuum();

  // The whole store as SQL that makes it again, as it is at one moment, in pieces.
  void WriteSql(const std::function<void(const std::string& text)>& write);

  // What the view `runs` is for this Store's queries from now on; in the file, and to every other, it stays as it is.
  void ChooseRuns(const RunsChoice& choice);

  // One SELECT (or EXPLAIN, VALUES, WITH). Anything that writes, attaches another file or sets a pragma is refused,
  // whatever the Store's mode. `texts` are the values of its :parameters; one that is not given is NULL.
  Table Query(const std::string& sql, const std::map<std::string, std::string>& texts = {});

  // What is wrong with the store, one sentence each; empty: nothing. Reads all of it.
  std::vector<std::string> Check();

 private:
  struct Impl;
  int64_t DropEmptyJobs();  // that have ended, and of which nothing is left but the last attempt at a point
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ridgeline
