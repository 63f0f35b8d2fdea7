#include "node/exec.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/port.h"
#include "base/text.h"
#include "node/cgroup_peak.h"
#include "node/classify.h"
#include "node/core_use.h"
#include "node/defined.h"
#include "node/finished.h"
#include "node/oom_kills.h"
#include "node/parts.h"
#include "node/point_cores.h"
#include "node/preflight.h"
#include "node/ranks.h"
#include "node/read_job.h"
#include "node/secret.h"
#include "node/starting.h"
#include "node/stop_signals.h"
#include "node/watch.h"
#include "ridgeline/foreign_file.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/limits.h"
#include "run/job.h"
#include "run/result.h"
#include "run/results_file.h"
#include "run/sagemaker.h"
#include "run/sense.h"
#include "run/spec.h"
#include "run/trainer_result.h"
#include "trainers/node_part.h"
#include "trainers/run_result.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kLookAgainNs = 100'000'000;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kPartEndsNs = 10 * kSecondNs;    // to say how its ranks ended; more than enough
constexpr int64_t kEndsAfterNs = 600 * kSecondNs;  // a node that no limit ends, after the first has ended well

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

// What somebody had begun to write beside `file` (base/files.h) who was killed before it had its name.
void AddTemporariesOf(const fs::path& file, std::vector<fs::path>& temporaries) {
  const std::string begin = '.' + file.filename().string() + '.';
  std::error_code ec;
  for (fs::directory_iterator at(file.parent_path(), ec), end; !ec && at != end; at.increment(ec)) {
    if (at->path().filename().string().starts_with(begin)) temporaries.push_back(at->path());
  }
}

// What the scheduler calls this node.
std::string NodeName() {
  for (const char* variable : {kNodeVariable, "SLURMD_NODENAME"}) {
    if (const char* name = std::getenv(variable); name != nullptr && *name != '\0') return name;
  }
  return HostName();
}

// The trainer's own result of the point, or why there is none to be believed.
void ReadOwnResult(const fs::path& path, const RunSpec& spec, int64_t tokens_per_step, PointEnd& end) {
  try {
    end.own = ReadTrainerResult(path, spec, "its result", tokens_per_step);
    if (end.own) return;
    end.own_problem = "it wrote no result";
    if (end.watched.status.ok()) end.own_hint = SeeTrainerContract("what a trainer writes, and where, is said in");
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kInfrastructure) end.storage_problem = e.message();
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
        cores_(CoresFor(job.cpus, CoresAllowed(), OwnCoresGiven())),
        secret_(job.job_dir, nodes.rank == 0) {
    if (!job.definition.empty()) defined_.emplace(job);
  }

  bool Told() { return stop_.Reason() != StopReason::kNone; }

  bool IsOnSeveralNodes(const JobPoint& point) const {
    return nodes_.count > 1 && HasSeveralProcesses(point.spec) && !(defined_ && defined_->RunsOnFirstNodeAlone());
  }
  // Whether anything of it runs on this node.
  bool HasPartIn(const JobPoint& point) const { return nodes_.rank == 0 || IsOnSeveralNodes(point); }
  bool IsFirst() const { return nodes_.rank == 0; }

  // What keeps this node from running these points.
  std::optional<Unfit> WhyUnfit(const std::vector<const JobPoint*>& points, const fs::path& job_file) const {
    std::vector<RunSpec> runs;
    for (const JobPoint* point : points) runs.push_back(SpecHere(*point));
    if (!defined_) return Preflight(job_, job_file, runs, nodes_.rank, clock_);
    Job started = job_;
    Invoked invoked;
    try {
      invoked = StartOf(job_, &*defined_, runs.front(), {}, nodes_, PlaceIn("point", nodes_, 1));
      started.trainer = invoked.argv;
    } catch (const Error& e) {
      return Unfit{InfrastructureReason::kStart, fmt::format("its trainer cannot be started here: {}", e.message()),
                   "set such variables under launch: environment, or on the node"};
    }
    return Preflight(started, job_file, runs, nodes_.rank, clock_, invoked.directory);
  }

  RunResult NotRun(const JobPoint& point, const Unfit& why) const {
    RunResult result;
    result.point_id = point.id;
    SetEnd(why.reason, result);
    result.message = why.message;
    result.hint = why.hint;
    result.started_unix_ns = clock_.UnixNs();
    return Complete(point, std::move(result));
  }

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
    NodePart part{nodes_.rank, NodeName(), {}, weight::kCause, {}, /*ran=*/true};
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

  // Of a node that can run none of the points that are left.
  void TellUnfit(const JobPoint& point, const RunResult& result) {
    if (IsOnSeveralNodes(point) && !IsFirst()) {
      TellPart(job_.job_dir, point, {nodes_.rank, NodeName(), result, weight::kCause, {}, /*ran=*/false});
    }
  }
  // What an earlier attempt said of this node.
  void BeFit() const {
    std::error_code ignored;
    if (nodes_.count > 1) fs::remove(job_.job_dir / PartName(nodes_.rank), ignored);
  }

  // Removes what the point needed while it ran, now that its result is on the disk. What it said stays where it did not
  // end well, or where the job keeps logs. What cannot be removed does no harm. The first node does it for those that
  // have ended their part, too; who ends it later does so itself.
  void TidyUp(const JobPoint& point, RunStatus status) const {
    const fs::path dir = PointDir(job_.job_dir, point.id);
    const bool ok = status == RunStatus::kOk;
    std::vector<fs::path> files;
    AddFilesOf(point, nodes_, ok, files);
    if (IsFirst() && IsOnSeveralNodes(point)) {
      for (Nodes other = nodes_; ++other.rank < nodes_.count;) {
        if (HasEndedPart(dir, other.rank)) AddFilesOf(point, other, ok, files);
      }
    }
    files.push_back(ProgressFile(job_.job_dir, point.id));
    if (IsFirst()) {
      AddTemporariesOf(dir / kTrainersResultName, files);
      if (ok) files.push_back(dir / kTrainersResultName);
    }
    std::error_code ignored;
    for (const fs::path& file : files) fs::remove(file, ignored);
    if (defined_ && IsFirst() && ok && !job_.keep_logs) fs::remove_all(dir / kOutputName, ignored);
    ::rmdir(dir.c_str());  // fails where anything is left in it
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
    std::optional<Reading> reading;  // of a trainer whose logs are read, on several nodes
  };

  void AddFilesOf(const JobPoint& point, const Nodes& node, bool ok, std::vector<fs::path>& files) const {
    const fs::path dir = PointDir(job_.job_dir, point.id);
    files.insert(files.end(), {dir / SpecName(node.rank), dir / ExecCheckName(node.rank), dir / PartName(node.rank)});
    AddTemporariesOf(dir / SpecName(node.rank), files);
    AddTemporariesOf(dir / PartName(node.rank), files);
    if (!ok || job_.keep_logs) return;
    for (const std::string& log : LogsOf(point, node)) files.push_back(dir / log);
  }

  // It sets the figures that are the node's own.
  RunResult EndSoFar(const JobPoint& point, const PointEnd& end, const Begin& begin) const {
    RunResult result = Classify(job_, point, end);
    SetCoreUse(begin.cores, ReadCoreUse(cores_.among), result, cores_.share());
    result = Complete(point, std::move(result));
    SetTimes(begin, result);
    return result;
  }

  void SetTimes(const Begin& begin, RunResult& result) const {
    result.started_unix_ns = begin.unix_ns;
    result.ended_unix_ns = begin.unix_ns + (clock_.MonotonicNs() - begin.monotonic_ns);  // whoever sets the clock
  }

  // Whether the trainer's logs are read for its figures.
  const Trainer* ReadTrainer() const { return defined_ && !defined_->KeepsContract() ? &defined_->trainer() : nullptr; }
  PartsOf PartsOfPoint(const JobPoint& point) const { return {job_.job_dir, point.id, nodes_.count, ReadTrainer()}; }

  static int WeightOf(const Ran& ran, const RunResult& result) {
    const PointEnd& end = ran.end;
    const StopReason stopped = end.watched.stopped;
    if (ran.reading && ran.reading->end && result.message == ran.reading->end->message) {
      return static_cast<int>(ran.reading->end->weight);
    }
    if (stopped == StopReason::kElsewhere || stopped == StopReason::kSaidEnd) return weight::kEnded;
    if (stopped == StopReason::kTold || stopped == StopReason::kPreempted) return weight::kStopped;
    if (stopped == StopReason::kTimeLimit || stopped == StopReason::kMeetLimit) return weight::kHung;
    if (result.status != RunStatus::kCrashed) return weight::kCause;
    if (end.own && end.own->message == result.message) return weight::kCrash;
    return end.watched.killed || end.watched.status.signal != 0 ? weight::kKilled : weight::kCodeAlone;
  }

  // To the other nodes that share the folder, and, where nobody does, to whoever sees what we print.
  void TellPart(const fs::path& dir, const JobPoint& point, const NodePart& part) const {
    try {
      EndPart(dir, point.id, nodes_.rank, EncodePart(ReadTrainer(), part, kMaxJobLineBytes / 2));
    } catch (const Error&) {
      // Where the disk fails, the first node says that this part is missing.
    }
    if (!IsFirst() && options_.on_part) options_.on_part(point.id, EncodePart(ReadTrainer(), part));
  }

  // What the point came to on all nodes, of which this is the first.
  RunResult WithOthers(const JobPoint& point, NodePart part, std::optional<Ran>& ran, const Begin& begin) {
    const bool ok = part.end.status == RunStatus::kOk;
    const bool is_read = part.reading.has_value();
    if (!ran) return part.end;
    // What rank 0 says of itself and others is as much as there is to know.
    const bool ours = IsOurTrainer(job_);
    const bool knows = ok || (ours ? ran->end.watched.stopped != StopReason::kNone || ran->end.watched.status.ok()
                                   : part.weight < weight::kCodeAlone);
    if (!is_read && knows) return part.end;
    // Where a rank is lost, those of ridgeline-train that are left end, and others are ended.
    const int64_t soon_ns = (ours ? options_.grace_ns : EndsOthersNs(options_.grace_ns)) + kPartEndsNs;
    const int64_t limit_ns = LimitNs(point);
    const int64_t since_ns = clock_.MonotonicNs() - begin.monotonic_ns;
    // Those who are told to leave are told on all nodes, and say so.
    std::optional<int64_t> told_ns;
    const auto give_up = [&] {
      if (!told_ns && Told()) told_ns = clock_.MonotonicNs();
      return told_ns && clock_.MonotonicNs() - *told_ns >= kSecondNs;
    };
    // Who prints what it has to say may share no folder.
    PartsWait wait{soon_ns, ours ? 0 : soon_ns, ok && !options_.on_part, give_up};
    if (ok) wait.at_it_ns = limit_ns > 0 ? std::max(limit_ns - since_ns, int64_t{0}) + soon_ns : kEndsAfterNs;
    OtherParts others = WaitForParts(PartsOfPoint(point), part.end, wait);
    if (!others.at_it.empty() && Told() && ok) return EndedWhileOthersRan(part.end);
    if (!ok && ran->end.watched.stopped == StopReason::kNone) {
      const bool told = Told();
      // What another trainer crashed of stays, and whoever collects asks the scheduler why they were told.
      if (ours) ran->end.watched.stopped = stop_.Reason();
      if (!others.at_it.empty() && !told) ran->end.gone_node = others.at_it.front();
      if (!others.at_it.empty() || told) {
        RunResult again = EndSoFar(point, ran->end, begin);
        again.ended_unix_ns = part.end.ended_unix_ns;
        if (EndOf(again) != EndOf(part.end)) part.weight = told ? weight::kStopped : weight::kCause;
        part.end = std::move(again);
      }
    }
    std::vector<NodePart> parts = {std::move(part)};
    for (NodePart& other : others.ended) parts.push_back(std::move(other));
    if (ok && !others.at_it.empty()) return Hung(parts.front().end, others.at_it.front());
    if (ours) return parts.front().end;
    RunResult result = ResultOfNodes(ReadTrainer(), SpecOfRun(point), nodes_.count, parts);
    const bool all = std::ssize(parts) == nodes_.count;
    if (!all && options_.on_part) {
      result.evidence[kAwaitsNodesEvidence] = EndName(EndOf(parts.front().end));
      const RunSpec spec = SpecOfRun(point);
      const std::string definition = ReadTrainer() != nullptr ? job_.definition : "";
      options_.on_part(point.id, EncodePart(ReadTrainer(), parts.front(), kMaxPartBytes, &spec, definition));
    }
    return result;
  }

  // Within which all nodes must have ended; 0: there is no limit.
  int64_t LimitNs(const JobPoint& point) const {
    return point.time_limit_s > 0 ? (point.time_limit_s + MeetLimitS(job_, point)) * kSecondNs : 0;
  }

  RunResult EndedWhileOthersRan(RunResult result) {
    const bool cancelled = stop_.Reason() == StopReason::kTold;
    SetEnd(cancelled ? RunEnd(RunStatus::kCancelled) : RunEnd(InfrastructureReason::kPreempted), result);
    result.message = "told to leave while other nodes were still at the point";
    return result;
  }

  static RunResult Hung(RunResult result, const std::string& node) {
    SetEnd(InfrastructureReason::kNode, result);
    result.message =
        fmt::format("the first node has ended well; {} is gone, or hangs: it has not ended its part", node);
    result.hint = "see what became of that node";
    result.evidence["node"] = node;
    return result;
  }

  // What is the same whatever became of the point.
  RunResult Complete(const JobPoint& point, RunResult result) const {
    result.repeat = point.repeat;
    result.ended_unix_ns = clock_.UnixNs();
    result.environment.try_emplace("command", ShortenToBytes(Join(job_.trainer, " "), kMaxTextBytes));
    for (std::string* text : {&result.message, &result.hint}) *text = ShortenToBytes(*text, kMaxTextBytes);
    if (result.status == RunStatus::kInfrastructure) result.evidence.try_emplace("node", NodeName());
    if (nodes_.count > 1 && HasSeveralProcesses(point.spec)) {
      result.evidence[kNodesEvidence] = std::to_string(nodes_.count);
    }
    return result;
  }

  // What its trainer is given.
  RunSpec SpecHere(const JobPoint& point) const {
    RunSpec here = SpecOfRun(point);
    if (!here.checkpoint_dir.empty()) here.checkpoint_dir = PointDir(job_.job_dir, point.id) / here.checkpoint_dir;
    UseSageMakerCheckpointDir(point.repeat > 1 ? fmt::format("{}-repeat-{}", point.id, point.repeat) : point.id, here);
    return here;
  }

  std::vector<RankProcess> ProcessesOn(const Nodes& node, const RunSpec& spec) const {
    return defined_ ? defined_->ProcessesHere(spec, node, cores_.ids) : RanksHere(spec, node, cores_.ids);
  }

  std::vector<std::string> LogsHere(const JobPoint& point) const { return LogsOf(point, nodes_); }
  std::vector<std::string> LogsOf(const JobPoint& point, const Nodes& node) const {
    std::vector<std::string> logs;
    try {
      for (const RankProcess& rank : ProcessesOn(node, point.spec)) logs.push_back(rank.log);
    } catch (const Error&) {
      // None of its ranks could be started here.
    }
    return logs;
  }

  // What an earlier attempt left must not be taken for this one's. Other nodes may share the folder.
  void Prepare(const JobPoint& point, const fs::path& dir) {
    if (nodes_.rank == 0) {
      for (const fs::path& stale : {dir / kTrainersResultName, ProgressFile(job_.job_dir, point.id)}) Remove(stale);
    }
    // Made here, so that a disk without room is not taken for a trainer that cannot be started.
    for (const std::string& log : LogsHere(point)) {
      Remove(dir / log);
      FileWriter made(dir / log);
    }
    WriteFile(dir / SpecName(nodes_.rank), EncodeSpec(SpecHere(point)) + "\n");
    if (IsOnSeveralNodes(point)) TakePart(dir, nodes_.rank, NodeName());
  }

  WatchLimits LimitsOf(const JobPoint& point) const {
    WatchLimits limits;
    const int64_t meet_ns = MeetLimitS(job_, point) * kSecondNs;
    const bool first = nodes_.rank == 0;
    if (first) limits.meet_ns = meet_ns;
    // Another node does not see when the ranks have met. The first does, and when it ends its ranks, the others end.
    if (point.time_limit_s > 0) limits.time_ns = point.time_limit_s * kSecondNs + (first ? 0 : meet_ns);
    limits.memory_bytes = job_.memory_limit_bytes;
    limits.of_descendants = defined_.has_value();
    limits.grace_ns = options_.grace_ns;
    const bool saves = !SpecHere(point).checkpoint_dir.empty();
    limits.save_ns = saves ? job_.save_time_s * kSecondNs : options_.grace_ns;
    return limits;
  }

  Ran RunTrainer(const JobPoint& point, const fs::path& dir, const Begin& begin) {
    const std::vector<RankProcess> ranks = ProcessesOn(nodes_, point.spec);
    const OomWatch oom;
    std::optional<CgroupPeak> cgroup_peak;
    if (defined_) cgroup_peak.emplace();
    std::optional<ReservedPort> port;                                         // ours until the ranks have ended
    if (nodes_.count == 1 && (defined_ || ranks.size() > 1)) port.emplace();  // torchrun needs one for one rank, too
    std::vector<Child> children;
    const int64_t begin_ns = clock_.MonotonicNs();
    Invoked invoked;  // of a defined trainer, the first process of it here
    try {
      for (const RankProcess& rank : ranks) {
        Invoked one = InvokedFor(point, dir, rank, port);
        children.push_back(Start(dir, one, rank));
        if (children.size() == 1) invoked = std::move(one);
      }
    } catch (const Error&) {
      EndAllChildren();
      throw;
    }
    Ran ran;
    PointEnd& end = ran.end;
    // Rank 0 of ridgeline-train says how far it is as soon as the ranks have met.
    const auto has_begun = [&] {
      std::error_code ec;
      return fs::file_size(ProgressFile(job_.job_dir, point.id), ec) > 0 && !ec;
    };
    const RunSpec here = SpecHere(point);
    std::optional<RunFollower> follower;
    if (const Trainer* trainer = ReadTrainer()) {
      follower.emplace(*trainer, here, dir / ranks.front().log, ProgressFile(job_.job_dir, point.id), IsFirst(),
                       clock_);
    }
    std::optional<HangWatch> hang;
    if (const Trainer* trainer = ReadTrainer()) {
      hang.emplace(*trainer, here, PathsOf(dir, ranks), LogsElsewhere(point, dir), options_.hang_ns, clock_);
    }
    std::optional<OthersWatch> others;
    if (IsOnSeveralNodes(point)) {
      others.emplace(PartsOfPoint(point), nodes_.rank, begin.unix_ns, options_.grace_ns, clock_);
    }
    std::function<StopReason()> look;
    if (hang || others) {
      look = [&] {
        if (follower) follower->Look();
        const StopReason hangs = hang ? hang->Look() : StopReason::kNone;
        return hangs != StopReason::kNone || !others ? hangs : others->Look();
      };
    }
    end.watched = Watch(children, LimitsOf(point), stop_, clock_, has_begun, look);
    const int64_t life_ns = clock_.MonotonicNs() - begin_ns;
    if (hang && end.watched.stopped == StopReason::kTimeLimit) end.watched.stopped = hang->AtTimeLimit();
    EndAllChildren();
    end.oom = oom.Since();
    const int64_t cgroup_peak_bytes = cgroup_peak ? cgroup_peak->Bytes() : 0;
    const RankProcess& decided = ranks[end.watched.process];
    end.rank = decided.rank;
    if (follower) {
      ReadLogs(point, dir, ranks, invoked, *follower, cgroup_peak_bytes, life_ns, ran);
    } else if (nodes_.rank == 0) {
      const RunSpec run = SpecOfRun(point);
      ReadOwnResult(dir / kTrainersResultName, run, defined_ ? TokensAStep(defined_->trainer(), run) : 0, end);
      // One repeat, run alone, has an id of its own.
      if (end.own && end.own->point_id == PointId(run)) end.own->point_id = point.id;
    } else if (end.watched.status.ok()) {
      end.own.emplace().status = RunStatus::kOk;  // as far as this node knows
    } else {
      end.own_problem = "node 0 has its result";
    }
    // A trainer that could not write ends as if it had crashed.
    if (!end.own && end.watched.stopped == StopReason::kNone) {
      if (const auto unfit = CheckFolder(dir, ExecCheckName(nodes_.rank))) end.storage_problem = unfit->message;
    }
    end.log_tail = ReadTail(dir / decided.log, kLogTailBytes);
    return ran;
  }

  static std::vector<fs::path> PathsOf(const fs::path& dir, const std::vector<RankProcess>& ranks) {
    std::vector<fs::path> paths;
    for (const RankProcess& rank : ranks) paths.push_back(dir / rank.log);
    return paths;
  }

  // Of a defined trainer's processes on other nodes, where these share the folder.
  std::vector<fs::path> LogsElsewhere(const JobPoint& point, const fs::path& dir) const {
    std::vector<fs::path> paths;
    Nodes other = nodes_;
    for (other.rank = 0; other.rank < nodes_.count; ++other.rank) {
      if (other.rank == nodes_.rank) continue;
      for (const fs::path& path : PathsOf(dir, defined_->ProcessesHere(point.spec, other, {}))) paths.push_back(path);
    }
    return paths;
  }

  // A defined trainer's result, which is made of what it printed: of a point on several nodes, its end here alone.
  void ReadLogs(const JobPoint& point, const fs::path& dir, const std::vector<RankProcess>& ranks,
                const Invoked& invoked, RunFollower& seen, int64_t cgroup_peak_bytes, int64_t life_ns, Ran& ran) const {
    PointEnd& end = ran.end;
    const RunSpec run = SpecOfRun(point);
    Reading reading = defined_->Read(run, PathsOf(dir, ranks), end.watched, invoked, seen.FinishArrivals());
    end.own_is_read = true;
    const bool ended_by_itself = end.watched.status.signal == 0 && end.watched.stopped == StopReason::kNone;
    if (reading.end || ended_by_itself) {
      end.own = IsOnSeveralNodes(point) ? EndAlone(reading) : ResultOf(defined_->trainer(), reading, run, life_ns);
      DefinedTrainer::AddFacts(run, invoked, *end.own);
    }
    if (IsOnSeveralNodes(point)) ran.reading = std::move(reading);
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
    if (cgroup_peak_bytes > 0) {
      end.own->evidence["memory_at_most"] = std::to_string(cgroup_peak_bytes);
      end.own->evidence["memory_at_most_from"] = "its cgroup's peak, with its page cache";
    }
    if (memory.device_peak_bytes == 0 && seen.device_peak_bytes() > 0) {
      memory.device_peak_bytes = seen.device_peak_bytes();
      memory.device_peak_kind = kOfNvml;
      end.own->evidence["device_memory_from"] = "its processes, as NVML says";
    }
  }

  // What one of its processes is started with, its files written.
  Invoked InvokedFor(const JobPoint& point, const fs::path& dir, const RankProcess& rank,
                     const std::optional<ReservedPort>& port) {
    PointPlace place = PlaceIn(dir, nodes_, port ? port->number() : 0);
    place.progress_file = ProgressFile(job_.job_dir, point.id);
    if (HasSeveralProcesses(point.spec) && !defined_) place.secret_file = secret_.File();
    Invoked invoked = StartOf(job_, defined_ ? &*defined_ : nullptr, SpecHere(point), rank, nodes_, place);
    if (defined_) MakeDirs(place.output_dir);
    for (const auto& [name, text] : invoked.files) WriteFileAtomic(fs::path(place.output_dir) / name, text);
    return invoked;
  }

  Child Start(const fs::path& dir, const Invoked& invoked, const RankProcess& rank) const {
    SpawnOptions spawn;
    spawn.stdout_file = spawn.stderr_file = fs::absolute(dir / rank.log);
    spawn.work_dir = invoked.directory;
    spawn.environment = invoked.environment;
    if (cores_.own) {
      spawn.cpus = rank.cores;
    } else if (!rank.cores.empty()) {
      spawn.environment["RIDGELINE_CORES"] = std::to_string(rank.cores.size());
    }
    spawn.environment.merge(WaitingOfThreads(cores_.own, spawn.environment));
    spawn.new_process_group = true;
    spawn.die_with_parent = true;

    Child child = Child::Spawn(invoked.argv, spawn);
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
  RanksSecret secret_;
  std::optional<DefinedTrainer> defined_;
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
  ::signal(SIGPIPE, SIG_IGN);  // nobody reading what we print is no reason to stop

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
  std::error_code ec;
  if (fs::exists(ResultsDir(job.job_dir), ec)) {
    for (const JobPoint& point : job.points) finished.LookForFile(point.id, had);
  }
  const auto is_left = [&](const JobPoint& point) {
    return !finished.End(point.id) && !finished.IsOver(point.id) && runner.HasPartIn(point);
  };
  // Points that another node than the first is through with, and how they ended here: what they left is the first's to
  // read, until their result is there.
  std::vector<std::pair<const JobPoint*, RunStatus>> left_there;
  const auto tidy_up_left = [&](bool at_end) {
    // Who prints what it has to say may share no folder. Where it does, the first node may not have begun yet.
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
    if (nodes.rank != 0) finished.Look(had);  // node 0 may be through with it
    if (const std::optional<RunStatus> end = finished.End(point.id)) {
      runner.TidyUp(point, *end);  // its runner may have been killed before
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
    const RunResult result = summary.unfit ? runner.NotRun(point, *summary.unfit) : runner.RunPoint(point);
    if (summary.unfit) runner.TellUnfit(point, result);
    if (!summary.unfit) ++summary.ran;
    if (!results) {  // node 0 knows what became of it
      left_there.emplace_back(&point, result.status);
      tidy_up_left(false);
      continue;
    }
    results->Append(result);
    // What this node knows of one that awaits others was told.
    const auto awaits = result.evidence.find(kAwaitsNodesEvidence);
    const bool ok = awaits != result.evidence.end() && awaits->second == EndName(RunStatus::kOk);
    runner.TidyUp(point, ok ? RunStatus::kOk : result.status);
    if (options.on_result) options.on_result(result);
  }
  tidy_up_left(true);
  summary.stopped = runner.Told();
  return summary;
}

}  // namespace ridgeline
