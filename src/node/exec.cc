#include "node/exec.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/folders.h"
#include "base/port.h"
#include "base/text.h"
#include "node/cgroup_peak.h"
#include "node/classify.h"
#include "node/container.h"
#include "node/core_use.h"
#include "node/defined.h"
#include "node/finished.h"
#include "node/node_job.h"
#include "node/node_reports.h"
#include "node/oom_kills.h"
#include "node/point_cores.h"
#include "node/preflight.h"
#include "node/process_tree.h"
#include "node/ranks.h"
#include "node/read_job.h"
#include "node/starting.h"
#include "node/watch.h"
#include "ridgeline/foreign_file.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/limits.h"
#include "run/consistency.h"
#include "run/job.h"
#include "run/result.h"
#include "run/results_file.h"
#include "run/spec.h"
#include "run/trainer_result.h"
#include "trainers/node_part.h"
#include "trainers/run_result.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kLookAgainNs = 100'000'000;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kPartEndsNs = 10 * kSecondNs;  // time for a node to report how its ranks ended; more than enough
constexpr int kSignalled = 128;                  // plus the signal: srun's exit code if that signal ended its task

// A launcher's locks stay open across exec and reach us. A trainer must not inherit them.
void KeepDescriptorsFromChildren() {
  ForEachEntry("/proc/self/fd", [](const fs::directory_entry& entry) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (fd > STDERR_FILENO) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  });
}

// Reads the trainer's own result of the point, or why none is acceptable.
void ReadOwnResult(const fs::path& path, const RunSpec& spec, int64_t tokens_per_step, PointEnd& end) {
  try {
    end.own = ReadTrainerResult(path, spec, "its result", tokens_per_step);
    if (end.own) return;
    end.own_problem = "it wrote no result";
    if (end.watched.status.ok()) end.own_hint = SeeTrainerContract("the trainer contract is in");
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kInfrastructure) end.storage_problem = e.message();
    end.own_problem = e.message();
    end.own_hint = e.hint();
  }
}

// Takes the job's lock. A scheduler that lost sight of a node starts the job on another one while the first still runs.
FileLock TakeTurn(const fs::path& file, const ExecOptions& options) {
  std::optional<FileLock> lock = FileLock::Try(file);
  if (!lock && options.on_wait) options.on_wait();
  SystemClock clock;
  for (; !lock; lock = FileLock::Try(file)) clock.SleepNs(kLookAgainNs);
  return *std::move(lock);
}

class JobRunner : public NodeJob {
 public:
  using NodeJob::NodeJob;

  RunResult RunPoint(const JobPoint& point) {
    const fs::path dir = PointDir(job_.job_dir, point.id);
    MakeDirs(dir);
    Prepare(point, dir);
    if (options_.on_begin) {
      const std::vector<std::string> logs = LogsHere(point);
      options_.on_begin(point.id, ProgressFile(job_.job_dir, point.id),
                        dir / (logs.empty() ? LogName(0) : logs.front()));
    }

    Begin begin{clock_.UnixNs(), clock_.MonotonicNs(), ReadCoreUse(cores_.among)};
    trainers::NodePart part{nodes_.rank, NodeName(), {}, trainers::weight::kCause, {}, /*ran=*/true};
    std::optional<Ran> ran;
    try {
      ran = RunTrainer(point, dir, begin);
      part.end = EndSoFar(point, ran->end, begin);
      part.weight = WeightOf(*ran, part.end);
      part.reading = std::move(ran->reading);
    } catch (const Error& e) {
      part.end = NotRun(point, {InfrastructureReason::kStart, e.message(), e.hint()});
      SetTimes(begin, part.end);
    }
    if (!IsOnSeveralNodes(point)) return part.end;
    TellPart(PointDir(job_.job_dir, point.id), point, part);
    return IsFirst() ? WithOthers(point, std::move(part), ran, begin) : part.end;
  }

  // Reports that this node can run none of the remaining points.
  void TellUnfit(const JobPoint& point, const RunResult& result) {
    if (IsOnSeveralNodes(point) && !IsFirst()) {
      TellPart(job_.job_dir, point, {nodes_.rank, NodeName(), result, trainers::weight::kCause, {}, /*ran=*/false});
    }
  }
  // Removes an earlier attempt's report that this node is unfit.
  void BeFit() const {
    std::error_code ignored;
    if (nodes_.count > 1) fs::remove(job_.job_dir / PartName(nodes_.rank), ignored);
  }

 private:
  struct Begin {
    int64_t unix_ns = 0;
    int64_t monotonic_ns = 0;
    CoreUse cores;
  };
  // How a point ended on this node.
  struct Ran {
    PointEnd end;
    std::optional<trainers::Reading> reading;  // for a trainer whose logs are read, on several nodes
  };

  // Sets the figures that belong to the node.
  RunResult EndSoFar(const JobPoint& point, const PointEnd& end, const Begin& begin) const {
    RunResult result = Classify(job_, point, end);
    SetCoreUse(begin.cores, ReadCoreUse(cores_.among), result, cores_.share());
    result = Complete(point, std::move(result));
    SetTimes(begin, result);
    return result;
  }

  void SetTimes(const Begin& begin, RunResult& result) const {
    result.started_unix_ns = begin.unix_ns;
    // Correct even if someone sets the clock meanwhile.
    result.ended_unix_ns = begin.unix_ns + (clock_.MonotonicNs() - begin.monotonic_ns);
  }

  static int WeightOf(const Ran& ran, const RunResult& result) {
    const PointEnd& end = ran.end;
    const StopReason stopped = end.watched.stopped;
    if (ran.reading && ran.reading->end && result.message == ran.reading->end->message) {
      return static_cast<int>(ran.reading->end->weight);
    }
    if (stopped == StopReason::kElsewhere || stopped == StopReason::kSaidEnd) return trainers::weight::kEnded;
    if (stopped == StopReason::kTold || stopped == StopReason::kPreempted) return trainers::weight::kStopped;
    const bool hung = stopped == StopReason::kTimeLimit || stopped == StopReason::kMeetLimit;
    if (hung || stopped == StopReason::kOthersEnded) return trainers::weight::kHung;
    if (result.status != RunStatus::kCrashed) return trainers::weight::kCause;
    if (end.own && end.own->message == result.message) return trainers::weight::kCrash;
    return end.watched.killed || end.watched.status.signal != 0 ? trainers::weight::kKilled
                                                                : trainers::weight::kCodeAlone;
  }

  // Tells this node's part to the other nodes that share the folder and, if none does, to the reader of our output.
  void TellPart(const fs::path& dir, const JobPoint& point, const trainers::NodePart& part) const {
    try {
      EndPart(dir, point.id, nodes_.rank, trainers::EncodePart(ReadTrainer(), part, kMaxJobLineBytes / 2));
    } catch (const Error&) {
      // If the disk fails, the first node reports that this part is missing.
    }
    if (!IsFirst() && options_.on_part) options_.on_part(point.id, trainers::EncodePart(ReadTrainer(), part));
  }

  // The point's result over all nodes, of which this is the first.
  RunResult WithOthers(const JobPoint& point, trainers::NodePart part, std::optional<Ran>& ran, const Begin& begin) {
    const bool ok = part.end.status == RunStatus::kOk;
    const bool is_read = part.reading.has_value();
    if (!ran) return part.end;
    // Rank 0's report of itself and others is all that can be known.
    const bool ours = IsOurTrainer(job_);
    const bool knows = ok || (ours ? ran->end.watched.stopped != StopReason::kNone || ran->end.watched.status.ok()
                                   : part.weight < trainers::weight::kCodeAlone);
    if (!is_read && knows) return part.end;
    // If a rank is lost, the remaining ranks of ridgeline-train end by themselves; those of other trainers are ended.
    const int64_t soon_ns = (ours ? options_.grace_ns : EndsOthersNs(options_.grace_ns)) + kPartEndsNs;
    const int64_t limit_ns = LimitNs(point);
    const int64_t since_ns = clock_.MonotonicNs() - begin.monotonic_ns;
    // Nodes that are told to leave are told together, and report it.
    std::optional<int64_t> told_ns;
    const auto give_up = [&] {
      if (!told_ns && Told()) told_ns = clock_.MonotonicNs();
      return told_ns && clock_.MonotonicNs() - *told_ns >= kSecondNs;
    };
    // Nodes that print their parts may not share a folder.
    PartsWait wait{soon_ns, ours ? 0 : soon_ns, ok && !options_.on_part, give_up};
    if (ok) {
      const int64_t left_ns = limit_ns > 0 ? std::max(limit_ns - since_ns, int64_t{0}) : options_.others_end_ns;
      wait.at_it_ns = std::min(left_ns, options_.others_end_ns) + soon_ns;
    }
    OtherParts others = WaitForParts(PartsOfPoint(point), part.end, wait);
    if (!others.at_it.empty() && Told() && ok) return EndedWhileOthersRan(part.end);
    if (!ok && ran->end.watched.stopped == StopReason::kNone) {
      const bool told = Told();
      // Another trainer's crash stays the result. The program that collects it asks the scheduler why the nodes were
      // stopped.
      if (ours) ran->end.watched.stopped = stop_.Reason();
      if (!others.at_it.empty() && !told) ran->end.gone_node = others.at_it.front();
      if (!others.at_it.empty() || told) {
        RunResult again = EndSoFar(point, ran->end, begin);
        again.ended_unix_ns = part.end.ended_unix_ns;
        if (EndOf(again) != EndOf(part.end)) part.weight = told ? trainers::weight::kStopped : trainers::weight::kCause;
        part.end = std::move(again);
      }
    }
    std::vector<trainers::NodePart> parts = {std::move(part)};
    for (trainers::NodePart& other : others.ended) parts.push_back(std::move(other));
    if (ok && !others.at_it.empty()) return trainers::HungElsewhere(parts.front().end, others.at_it.front());
    if (ours) return parts.front().end;
    RunResult result = trainers::ResultOfNodes(ReadTrainer(), SpecOfRun(point), nodes_.count, parts);
    const bool all = std::ssize(parts) == nodes_.count;
    if (!all && options_.on_part) {
      result.evidence[trainers::kAwaitsNodesEvidence] = EndName(EndOf(parts.front().end));
      const RunSpec spec = SpecOfRun(point);
      const std::string definition = ReadTrainer() != nullptr ? job_.definition : "";
      options_.on_part(point.id, trainers::EncodePart(ReadTrainer(), parts.front(), kMaxPartBytes, &spec, definition));
    }
    return result;
  }

  RunResult EndedWhileOthersRan(RunResult result) {
    const bool cancelled = stop_.Reason() == StopReason::kTold;
    SetEnd(cancelled ? RunEnd(RunStatus::kCancelled) : RunEnd(InfrastructureReason::kPreempted), result);
    result.message = "told to leave while other nodes were still at the point";
    return result;
  }

  Ran RunTrainer(const JobPoint& point, const fs::path& dir, const Begin& begin) {
    const std::vector<RankProcess> ranks = ProcessesHere(point);
    const OomWatch oom;
    std::optional<CgroupPeak> cgroup_peak;
    if (Defined() != nullptr && !IsStep()) cgroup_peak.emplace();  // a step has its own cgroup
    std::optional<ReservedPort> port;                              // reserved until the ranks have ended
    if (nodes_.count == 1 && (Defined() != nullptr || ranks.size() > 1))
      port.emplace();  // torchrun needs a port even for one rank
    std::vector<Child> children;
    const int64_t begin_ns = clock_.MonotonicNs();
    Starting invoked;  // for a defined trainer, its first process here
    WrittenFile file;
    try {
      for (const RankProcess& rank : ranks) {
        Starting one = StartOfRank(point, dir, rank, port);
        if (children.empty()) file = WrittenFile(one.directory, one.result);
        children.push_back(Start(dir, one, rank));
        if (children.size() == 1) invoked = std::move(one);
      }
    } catch (const Error&) {
      tree_.End();
      throw;
    }
    Ran ran;
    PointEnd& end = ran.end;
    // Rank 0 of ridgeline-train reports its progress as soon as the ranks have met.
    int64_t entered_ns = 0;  // when all of their containers had started
    const auto has_begun = [&] {
      std::error_code ec;
      if (IsContained() && entered_ns == 0) {
        if (NotInContainer(dir, ranks)) return false;
        entered_ns = clock_.MonotonicNs();
      }
      if (IsContained() && (nodes_.rank > 0 || MeetLimitS(job_, point) == 0)) return true;
      return fs::file_size(ProgressFile(job_.job_dir, point.id), ec) > 0 && !ec;
    };
    const RunSpec here = SpecHere(point);
    std::optional<RunFollower> follower;
    if (const trainers::Trainer* trainer = ReadTrainer()) {
      follower.emplace(*trainer, here, dir / ranks.front().log, ProgressFile(job_.job_dir, point.id), IsFirst(), tree_,
                       clock_);
    }
    std::optional<HangWatch> hang;
    if (const trainers::Trainer* trainer = ReadTrainer()) {
      hang.emplace(
          *trainer, here, PathsOf(dir, ranks), LogsElsewhere(point, dir), options_.hang, clock_,
          [this] { return tree_.WrittenBytes(); },
          WatchesStart(point) ? [this] { return tree_.UsedNs(); } : std::function<std::optional<int64_t>()>());
    }
    std::optional<OthersWatch> others;
    if (IsOnSeveralNodes(point)) {
      others.emplace(PartsOfPoint(point), nodes_.rank, begin.unix_ns,
                     OthersPatience{options_.grace_ns, options_.others_end_ns}, clock_);
    }
    std::function<StopReason()> look;
    if (hang || others) {
      look = [&] {
        if (follower) follower->Look();
        if (hang && IsContained() && entered_ns == 0) hang->NotBegun();
        const StopReason hangs = hang ? hang->Look() : StopReason::kNone;
        return hangs != StopReason::kNone || !others ? hangs : others->Look();
      };
    }
    const WatchLimits limits = LimitsOf(point);
    end.watched = Watch(children, limits, stop_, clock_, has_begun, look);
    if (IsContained()) starts_.Took((entered_ns > 0 ? entered_ns : clock_.MonotonicNs()) - begin_ns);
    const bool late = end.watched.stopped == StopReason::kMeetLimit && IsContained() && entered_ns == 0;
    if (late) end.watched.process = NotInContainer(dir, ranks).value_or(end.watched.process);
    const int64_t life_ns = clock_.MonotonicNs() - begin_ns;
    if (hang && end.watched.stopped == StopReason::kTimeLimit) end.watched.stopped = hang->AtTimeLimit();
    if (!tree_.End()) {
      throw Error(ErrorKind::kInfrastructure,
                  "cannot read /proc, so processes that the trainer left may still run beside the next point",
                  "too many files are open, or memory is short: raise `ulimit -n`, or look for what holds them");
    }
    end.oom = oom.Since();
    end.log_tail = ReadLogTail(dir / ranks[end.watched.process].log, kLogTailBytes);
    LookIntoStep(end);
    if (IsContained() && entered_ns == 0 && (late || end.watched.stopped == StopReason::kNone)) {
      end.not_begun = WhyNotInContainer(dir, ranks[end.watched.process].rank, late ? limits.meet_ns : 0, end);
    }
    const int64_t cgroup_peak_bytes = cgroup_peak ? cgroup_peak->Bytes() : 0;
    const RankProcess& decided = ranks[end.watched.process];
    end.rank = decided.rank;
    if (follower) {
      ReadLogs(point, dir, ranks, invoked, file, *follower, cgroup_peak_bytes, life_ns, ran);
    } else if (nodes_.rank == 0) {
      const RunSpec run = SpecOfRun(point);
      ReadOwnResult(dir / kTrainersResultName, run,
                    Defined() != nullptr ? trainers::TokensAStep(Defined()->trainer(), run) : 0, end);
      // A repeat that is run alone has an id of its own.
      if (end.own && end.own->point_id == PointId(run)) end.own->point_id = point.id;
    } else if (end.watched.status.ok()) {
      end.own.emplace().status = RunStatus::kOk;  // as far as this node knows
      end.own_is_end_alone = true;
    } else {
      end.own_problem = "node 0 has its result";
    }
    // A trainer that could not write ends like one that crashed.
    if (!end.own && end.watched.stopped == StopReason::kNone) {
      if (const auto unfit = CheckFolder(dir, ExecCheckName(nodes_.rank))) end.storage_problem = unfit->message;
    }
    return ran;
  }

  // The first node judges for all, because its ranks print the steps. Processes that a program itself starts elsewhere
  // cannot be seen from here.
  bool WatchesStart(const JobPoint& point) const {
    if (!IsFirst() || !HasSeveralProcesses(point.spec) || MeetLimitS(job_, point) > 0 || Defined() == nullptr)
      return false;
    return IsStep() || !IsOnSeveralNodes(point) || !Defined()->RunsOnFirstNodeAlone();
  }

  // Reads all that is known about a trainer that another program started for us.
  void LookIntoStep(PointEnd& end) const {
    if (!IsStep()) return;
    Watched& watched = end.watched;
    ExitStatus& status = watched.status;
    if (status.exit_code > kSignalled && status.exit_code <= kSignalled + SIGRTMAX) {
      status = {0, status.exit_code - kSignalled, 0};
    }
    // These figures are srun's, not the trainer's.
    status.rss_peak_bytes = watched.rss_peak_bytes = watched.rank_rss_peak_bytes = 0;
    if (watched.killed && SaysKilledForMemory(end.log_tail)) end.oom = {1, true};
  }

  // The first of `ranks` whose trainer has not yet started in its container.
  static std::optional<size_t> NotInContainer(const fs::path& dir, const std::vector<RankProcess>& ranks) {
    std::error_code ec;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (!fs::exists(dir / BegunName(ranks[i].rank), ec)) return i;
    }
    return std::nullopt;
  }

  // Returns nothing if that rank's trainer was started.
  static std::optional<Unfit> WhyNotInContainer(const fs::path& dir, int64_t rank, int64_t late_ns,
                                                const PointEnd& end) {
    std::error_code ec;
    if (fs::exists(dir / BegunName(rank), ec)) return std::nullopt;
    return WhyNotBegun(end.log_tail, fs::exists(dir / EnteredName(rank), ec), late_ns);
  }

  // Makes a defined trainer's result from its output. For a point on several nodes, only its end on this node.
  void ReadLogs(const JobPoint& point, const fs::path& dir, const std::vector<RankProcess>& ranks,
                const trainers::Invoked& invoked, const WrittenFile& file, RunFollower& seen, int64_t cgroup_peak_bytes,
                int64_t life_ns, Ran& ran) const {
    PointEnd& end = ran.end;
    const RunSpec run = SpecOfRun(point);
    trainers::Reading reading = Defined()->Read(run, PathsOf(dir, ranks), end.watched, file, seen.FinishArrivals());
    end.own_is_read = true;
    end.own_is_end_alone = IsOnSeveralNodes(point);
    const bool ended_by_itself = end.watched.status.signal == 0 && end.watched.stopped == StopReason::kNone;
    if (reading.end || ended_by_itself) {
      end.own = end.own_is_end_alone ? trainers::EndAlone(reading)
                                     : trainers::ResultOf(Defined()->trainer(), reading, run, life_ns);
      DefinedTrainer::AddFacts(run, invoked, *end.own);
    }
    if (end.own_is_end_alone) ran.reading = std::move(reading);
    if (!end.own) {
      end.own_problem = "its log says nothing of its end";
      return;
    }
    end.own->point_id = point.id;
    MemoryFigures& memory = end.own->memory;
    if (memory.rss_peak_bytes == 0) {
      memory.rss_peak_bytes = std::max(seen.peak_bytes(), end.watched.rank_rss_peak_bytes);
      end.own->evidence["memory_from"] = "its processes";
    }
    // A cgroup counts no page that another one loaded, such as a library's, so it may hold less than its processes.
    if (cgroup_peak_bytes > 0 && cgroup_peak_bytes >= memory.rss_peak_bytes) {
      end.own->evidence["memory_at_most"] = std::to_string(cgroup_peak_bytes);
      end.own->evidence["memory_at_most_from"] = "its cgroup's peak, with its page cache";
    }
    if (memory.device_peak_bytes == 0 && seen.device_peak_bytes() > 0) {
      memory.device_peak_bytes = seen.device_peak_bytes();
      memory.device_peak_kind = kOfNvml;
      end.own->evidence["device_memory_from"] = "its processes, as NVML says";
    }
  }

  Child Start(const fs::path& dir, const Starting& start, const RankProcess& rank) const {
    SpawnOptions spawn;
    spawn.stdout_file = spawn.stderr_file = fs::absolute(dir / rank.log);
    if (!IsContained()) spawn.work_dir = start.directory;
    spawn.environment = start.environment;
    if (cores_.own) {
      spawn.cpus = rank.cores;
    } else if (!rank.cores.empty()) {
      spawn.environment["RIDGELINE_CORES"] = std::to_string(rank.cores.size());
    }
    spawn.environment.merge(WaitingOfThreads(cores_.own, spawn.environment));
    if (!tree_.mark().empty()) spawn.environment[kMarkVariable] = tree_.mark();
    spawn.new_process_group = true;
    spawn.die_with_parent = true;

    Child child = Child::Spawn(IsContained() ? InContainer(dir, start, rank, spawn.environment) : start.argv, spawn);
    // If memory runs out despite every limit, the kernel should choose the trainer.
    std::ofstream("/proc/" + std::to_string(child.pid()) + "/oom_score_adj") << 1000;
    return child;
  }

  // The command inside the container, after the words that start the container.
  static std::vector<std::string> InContainer(const fs::path& dir, const Starting& start, const RankProcess& rank,
                                              const std::map<std::string, std::string>& environment) {
    const auto inside = start.argv.begin() + static_cast<std::ptrdiff_t>(start.starter_words);
    std::vector<std::string> command(start.argv.begin(), inside);
    const fs::path whole = fs::absolute(dir);
    const std::vector<std::string> entering =
        Container::Command({std::vector<std::string>(inside, start.argv.end()), environment, start.directory,
                            whole / EnteredName(rank.rank), whole / BegunName(rank.rank)});
    command.insert(command.end(), entering.begin(), entering.end());
    return command;
  }
};

}  // namespace

int ExecExitCode(const ExecSummary& summary) {
  if (summary.stopped) return kExecInterrupted;
  if (!summary.unfit) return kExecDone;
  switch (summary.unfit->reason) {
    case InfrastructureReason::kStorage:
      return kExecNoStorage;
    case InfrastructureReason::kStart:
      return kExecCannotStart;
    default:
      return kExecNodeUnfit;
  }
}

ExecSummary ExecJobFile(const fs::path& job_file, const ExecOptions& options) {
  const Job job = ReadJob(job_file, options.job_dir);
  const Nodes nodes = NodesFromEnvironment();
  MakeDirs(job.job_dir);
  const FileLock lock = TakeTurn(job.job_dir / ExecLockName(nodes.rank), options);
  KeepDescriptorsFromChildren();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);  // our output losing its reader is no reason to stop

  ExecSummary summary;
  JobRunner runner(job, nodes, options);
  runner.BeFit();
  bool checked = false;
  Finished finished(job.job_dir);
  const auto had = [&](const RunResult& result) {
    ++summary.skipped;
    if (options.on_skipped) options.on_skipped(result);
  };
  std::optional<ResultsWriter> results;
  if (nodes.rank == 0) results.emplace(job.job_dir);
  finished.Look(had);
  const auto is_left = [&](const JobPoint& point) {
    return !finished.End(point.id) && !finished.IsOver(point.id) && runner.HasPartIn(point);
  };
  // Points that this node, which is not the first, has finished, and how they ended here. The first node may read what
  // they left until their result exists.
  std::vector<std::pair<const JobPoint*, RunStatus>> left_there;
  const auto tidy_up_left = [&](bool at_end) {
    // Nodes that print their parts may not share a folder. If they do, the first node may not have begun yet.
    const bool shares_folder =
        !options.on_part || ForeignFile(ResultsFile(job.job_dir)).state() == ForeignFile::State::kOpen;
    if (!left_there.empty() && shares_folder) finished.Look([](const RunResult&) {});
    const JobPoint* const last = left_there.empty() || at_end ? nullptr : left_there.back().first;
    std::erase_if(left_there, [&](const auto& left) {
      const auto& [point, status] = left;
      const std::optional<RunStatus> end = finished.LastEnd(point->id);
      if (!end && (shares_folder || point == last)) return at_end;
      runner.TidyUp(*point, end.value_or(status));
      return true;
    });
  };
  for (const JobPoint& point : job.points) {
    if (nodes.rank != 0) finished.Look(had);  // node 0 may have finished it
    if (const std::optional<RunStatus> end = finished.End(point.id)) {
      runner.TidyUp(point, *end);  // its runner may have been killed earlier
      continue;
    }
    if (!is_left(point)) continue;
    if (runner.Told()) break;
    if (!std::exchange(checked, true)) {
      std::vector<const JobPoint*> left;
      for (const JobPoint& other : job.points) {
        if (is_left(other)) left.push_back(&other);
      }
      summary.unfit = runner.WhyUnfit(left, job_file);
    }
    std::optional<Unfit> unfit = summary.unfit;
    if (!unfit) unfit = runner.WhyTooLate(point);
    const RunResult result = unfit ? runner.NotRun(point, *unfit) : runner.RunPoint(point);
    if (unfit) runner.TellUnfit(point, result);
    if (!unfit) ++summary.ran;
    if (!results) {  // node 0 knows how it ended
      left_there.emplace_back(&point, result.status);
      tidy_up_left(false);
      continue;
    }
    results->Append(result);
    // For a point that awaits other nodes, this node's part was already reported.
    const auto awaits = result.evidence.find(trainers::kAwaitsNodesEvidence);
    const bool ok = awaits != result.evidence.end() && awaits->second == EndName(RunStatus::kOk);
    runner.TidyUp(point, ok ? RunStatus::kOk : result.status);
    if (options.on_result) options.on_result(result);
  }
  tidy_up_left(true);
  summary.stopped = runner.Told();
  return summary;
}

}  // namespace ridgeline::node
