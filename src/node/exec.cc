#include "node/exec.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/files.h"
#include "base/port.h"
#include "base/text.h"
#include "node/classify.h"
#include "node/core_use.h"
#include "node/finished.h"
#include "node/oom_kills.h"
#include "node/point_cores.h"
#include "node/ranks.h"
#include "node/read_job.h"
#include "node/stop_signals.h"
#include "node/watch.h"
#include "ridgeline/job_dir.h"
#include "run/job.h"
#include "run/results_file.h"
#include "run/sagemaker.h"
#include "run/spec.h"
#include "run/trainer_result.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kLookAgainNs = 100'000'000;

// A launcher's locks come to us open across exec; a trainer must not carry them on.
void KeepDescriptorsFromChildren() {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", ec)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (fd > STDERR_FILENO) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

void Remove(const fs::path& path) {
  std::error_code ec;
  fs::remove_all(path, ec);
  if (ec) throw Error(ErrorKind::kInfrastructure, fmt::format("cannot remove {}: {}", path.string(), ec.message()));
}

// The trainer's own result of the point, or why there is none to be believed.
void ReadOwnResult(const fs::path& path, const RunSpec& spec, PointEnd& end) {
  std::error_code ec;
  if (!fs::exists(path, ec)) {
    end.own_problem = "it wrote no result";
    if (end.watched.status.ok()) end.own_hint = SeeTrainerContract("what a trainer writes, and where, is said in");
    return;
  }
  try {
    end.own = ReadTrainerResult(path, spec, "its result");
  } catch (const Error& e) {
    end.own_problem = e.message();
    end.own_hint = e.hint();
  }
}

// A scheduler that lost sight of a node starts the job on another while the first still runs.
FileLock TakeTurn(const fs::path& file, const ExecOptions& options) {
  std::optional<FileLock> lock = FileLock::Try(file);
  if (!lock && options.on_wait) options.on_wait();
  SystemClock clock;
  for (; !lock; lock = FileLock::Try(file)) clock.SleepNs(kLookAgainNs);
  return *std::move(lock);
}

class JobRunner {
 public:
  JobRunner(const Job& job, const Nodes& nodes, const ExecOptions& options)
      : job_(job),
        nodes_(nodes),
        options_(options),
        stop_(CancelFile(job.job_dir)),
        cores_(CoresFor(job.cpus, CoresAllowed(), OwnCoresGiven())) {}

  bool Told() { return stop_.Reason() != StopReason::kNone; }

  // Whether anything of it runs on this node.
  bool HasPartIn(const JobPoint& point) const { return nodes_.rank == 0 || HasSeveralProcesses(point.spec); }

  RunResult RunPoint(const JobPoint& point) {
    const fs::path dir = PointDir(job_.job_dir, point.id);
    MakeDirs(dir);
    const fs::path spec = Prepare(point, dir);
    if (options_.on_begin) options_.on_begin(point.id, ProgressFile(job_.job_dir, point.id));

    const int64_t started_unix_ns = clock_.UnixNs();
    const CoreUse before = ReadCoreUse(cores_.among);
    RunResult result;
    try {
      result = Classify(job_, point, RunTrainer(point, dir, spec));
      SetCoreUse(before, ReadCoreUse(cores_.among), result, cores_.share());
    } catch (const Error& e) {  // the trainer cannot be started
      result.point_id = point.id;
      result.status = e.kind() == ErrorKind::kInvalidInput ? RunStatus::kInvalid : RunStatus::kCrashed;
      result.message = e.message();
      result.hint = e.hint();
    }
    result.repeat = point.repeat;
    result.started_unix_ns = started_unix_ns;
    result.ended_unix_ns = clock_.UnixNs();
    result.environment.try_emplace("command", Join(job_.trainer, " "));
    return result;
  }

  // Removes what the point needed while it ran, now that its result is on the disk. What it said stays where it did not
  // end well, or where the job keeps logs. What cannot be removed does no harm.
  void TidyUp(const JobPoint& point, RunStatus status) const {
    const fs::path dir = PointDir(job_.job_dir, point.id);
    const bool ok = status == RunStatus::kOk;
    std::vector<fs::path> files = {dir / SpecName(nodes_.rank)};
    if (nodes_.rank == 0) files.push_back(ProgressFile(job_.job_dir, point.id));
    if (nodes_.rank == 0 && ok) files.push_back(dir / kTrainersResultName);
    if (ok && !job_.keep_logs) {
      for (const std::string& log : LogsHere(point)) files.push_back(dir / log);
    }
    std::error_code ignored;
    for (const fs::path& file : files) fs::remove(file, ignored);
    ::rmdir(dir.c_str());  // fails where anything is left in it
  }

 private:
  std::vector<std::string> LogsHere(const JobPoint& point) const {
    std::vector<std::string> logs;
    try {
      for (const RankProcess& rank : RanksHere(point.spec, nodes_, cores_.ids)) logs.push_back(rank.log);
    } catch (const Error&) {
      // None of its ranks could be started here.
    }
    return logs;
  }

  // What an earlier attempt left must not be taken for this one's. Other nodes may share the folder.
  fs::path Prepare(const JobPoint& point, const fs::path& dir) {
    if (nodes_.rank == 0) {
      for (const fs::path& stale : {dir / kTrainersResultName, ProgressFile(job_.job_dir, point.id)}) Remove(stale);
    }
    fs::path spec = dir / SpecName(nodes_.rank);
    RunSpec here = SpecOfRun(point);
    if (!here.checkpoint_dir.empty()) here.checkpoint_dir = dir / here.checkpoint_dir;
    UseSageMakerCheckpointDir(point.repeat > 1 ? fmt::format("{}-repeat-{}", point.id, point.repeat) : point.id, here);
    WriteFile(spec, EncodeSpec(here) + "\n");
    stop_.SetContinuable(!here.checkpoint_dir.empty());
    return spec;
  }

  PointEnd RunTrainer(const JobPoint& point, const fs::path& dir, const fs::path& spec) {
    const std::vector<RankProcess> ranks = RanksHere(point.spec, nodes_, cores_.ids);
    std::vector<std::string> argv = job_.trainer;
    argv.insert(argv.end(), {"--spec", spec, "--result", dir / kTrainersResultName});

    const OomWatch oom;
    std::optional<ReservedPort> port;  // ours until the ranks have ended
    if (nodes_.count == 1 && ranks.size() > 1) port.emplace();
    std::vector<Child> children;
    try {
      for (const RankProcess& rank : ranks) children.push_back(Start(point, dir, argv, rank, port));
    } catch (const Error&) {
      EndAllChildren();
      throw;
    }
    PointEnd end;
    end.watched = Watch(children,
                        {point.time_limit_s * 1'000'000'000, job_.memory_limit_bytes, options_.grace_ns,
                         job_.save_time_s * 1'000'000'000},
                        stop_, clock_);
    EndAllChildren();
    end.oom = oom.Since();
    const RankProcess& decided = ranks[end.watched.process];
    end.rank = decided.rank;
    if (nodes_.rank == 0) {
      const RunSpec run = SpecOfRun(point);
      ReadOwnResult(dir / kTrainersResultName, run, end);
      // One repeat, run alone, has an id of its own.
      if (end.own && end.own->point_id == PointId(run)) end.own->point_id = point.id;
    } else if (end.watched.status.ok()) {
      end.own.emplace().status = RunStatus::kOk;  // as far as this node knows
    } else {
      end.own_problem = "node 0 has its result";
    }
    end.log_tail = ReadTail(dir / decided.log, kLogTailBytes);
    return end;
  }

  Child Start(const JobPoint& point, const fs::path& dir, const std::vector<std::string>& argv, const RankProcess& rank,
              const std::optional<ReservedPort>& port) const {
    Remove(dir / rank.log);
    SpawnOptions spawn;
    spawn.stdout_file = spawn.stderr_file = dir / rank.log;
    spawn.environment = rank.environment;
    // How many threads there are is the sweep's to choose; which rank of how many this is, is not.
    if (job_.environment.contains("OMP_NUM_THREADS")) spawn.environment.erase("OMP_NUM_THREADS");
    spawn.environment.insert(job_.environment.begin(), job_.environment.end());
    if (port) spawn.environment.insert({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(port->number())}});
    spawn.environment["RIDGELINE_PROGRESS"] = rank.rank == 0 ? ProgressFile(job_.job_dir, point.id).string() : "";
    if (cores_.own) {
      spawn.cpus = rank.cores;
    } else if (!rank.cores.empty()) {
      spawn.environment["RIDGELINE_CORES"] = std::to_string(rank.cores.size());
    }
    // Threads that spin between parallel regions would take the cores of other jobs.
    if (std::getenv("OMP_WAIT_POLICY") == nullptr) spawn.environment.try_emplace("OMP_WAIT_POLICY", "passive");
    spawn.new_process_group = true;
    spawn.die_with_parent = true;

    Child child = Child::Spawn(argv, spawn);
    // Where memory runs out despite every limit, the kernel should choose the trainer.
    std::ofstream("/proc/" + std::to_string(child.pid()) + "/oom_score_adj") << 1000;
    return child;
  }

  const Job& job_;
  const Nodes& nodes_;
  const ExecOptions& options_;
  const SystemClock clock_;
  StopSignals stop_;
  PointCores cores_;
};

}  // namespace

ExecSummary ExecJobFile(const fs::path& job_file, const ExecOptions& options) {
  const Job job = ReadJob(job_file, options.job_dir);
  const Nodes nodes = NodesFromEnvironment();
  MakeDirs(job.job_dir);
  const FileLock lock = TakeTurn(job.job_dir / ExecLockName(nodes.rank), options);
  KeepDescriptorsFromChildren();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);  // nobody reading what we print is no reason to stop

  ExecSummary summary;
  JobRunner runner(job, nodes, options);
  Finished finished(job.job_dir);
  const auto had = [&](const RunResult& result) {
    ++summary.skipped;
    if (options.on_skipped) options.on_skipped(result);
  };
  std::optional<ResultsWriter> results;
  if (nodes.rank == 0) results.emplace(job.job_dir);
  finished.Look(had);
  std::error_code ec;
  if (fs::exists(ResultsDir(job.job_dir), ec)) {
    for (const JobPoint& point : job.points) finished.LookForFile(point.id, had);
  }
  for (const JobPoint& point : job.points) {
    if (nodes.rank != 0) finished.Look(had);  // node 0 may be through with it
    if (const std::optional<RunStatus> end = finished.End(point.id)) {
      runner.TidyUp(point, *end);  // its runner may have been killed before
      continue;
    }
    if (!runner.HasPartIn(point)) continue;
    if (runner.Told()) break;
    const RunResult result = runner.RunPoint(point);
    ++summary.ran;
    if (results) results->Append(result);  // other nodes' say nothing: node 0 knows what became of it
    runner.TidyUp(point, result.status);
    if (results && options.on_result) options.on_result(result);
  }
  summary.stopped = runner.Told();
  return summary;
}

}  // namespace ridgeline
