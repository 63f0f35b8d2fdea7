#include "node/node_job.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/cores.h"
#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/limits.h"
#include "run/result.h"
#include "run/sagemaker.h"
#include "run/spec.h"
#include "trainers/node_part.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kNsPerSecond = 1'000'000'000;

void Remove(const fs::path& path) {
  std::error_code ec;
  fs::remove_all(path, ec);
  if (ec) throw Error(ErrorKind::kInfrastructure, fmt::format("cannot remove {}: {}", path.string(), ec.message()));
}

// The name of the folder that a point's state has where the sweep names none.
std::string FolderOfState(const JobPoint& point) {
  return point.repeat > 1 ? fmt::format("{}-repeat-{}", point.id, point.repeat) : point.id;
}

// Adds temporary files beside `file` (base/files.h) whose writer was killed before it renamed them. If the folder
// cannot be read, they stay, which harms nobody: the point has its result.
void AddTemporariesOf(const fs::path& file, std::vector<fs::path>& temporaries) {
  const std::string begin = '.' + file.filename().string() + '.';
  std::error_code ec;
  for (fs::directory_iterator at(file.parent_path(), ec), end; !ec && at != end; at.increment(ec)) {
    if (at->path().filename().string().starts_with(begin)) temporaries.push_back(at->path());
  }
}

}  // namespace

std::string NodeName() {
  for (const char* variable : {kNodeVariable, "SLURMD_NODENAME"}) {
    if (const char* name = std::getenv(variable); name != nullptr && *name != '\0') return name;
  }
  return HostName();
}

std::vector<fs::path> PathsOf(const fs::path& dir, const std::vector<RankProcess>& ranks) {
  std::vector<fs::path> paths;
  for (const RankProcess& rank : ranks) paths.push_back(dir / rank.log);
  return paths;
}

NodeJob::NodeJob(const Job& job, const Nodes& nodes, const ExecOptions& options)
    : job_(job),
      nodes_(nodes),
      options_(options),
      stop_(CancelFile(job.job_dir)),
      cores_(CoresFor(job.cpus, CoresAllowed(), OwnCoresGiven())),
      secret_(job.job_dir, nodes.rank == 0),
      container_(Container::OfThisJob(nodes)) {
  if (!job.definition.empty()) defined_.emplace(job);
  if (IsStep()) tree_ = ProcessTree(fmt::format("{}-{}", ::getpid(), clock_.UnixNs()));
}

bool NodeJob::IsStep() const {
  return (IsContained() && container_->IsStep()) ||
         (defined_ && defined_->trainer().invocation->processes == trainers::Processes::kSrun);
}

std::optional<Unfit> NodeJob::WhyUnfit(const std::vector<const JobPoint*>& points, const fs::path& job_file) const {
  std::vector<RunSpec> runs;
  for (const JobPoint* point : points) runs.push_back(SpecHere(*point));
  if (!defined_ && !IsContained()) return Preflight(job_, job_file, runs, nodes_.rank, clock_);
  Job started = job_;
  Starting start;
  try {
    start = StartOf(job_, Defined(), Contained(), runs.front(), {}, nodes_, PlaceIn("point", nodes_, 1));
    started.trainer = start.argv;
  } catch (const Error& e) {
    return Unfit{InfrastructureReason::kStart, fmt::format("its trainer cannot be started here: {}", e.message()),
                 "set such variables under launch: environment, or on the node"};
  }
  if (IsContained()) {  // this node only needs the container's starter
    started.trainer = {start.argv.front()};
    start.directory.clear();
  }
  return Preflight(started, job_file, runs, nodes_.rank, clock_, start.directory);
}

std::optional<Unfit> NodeJob::WhyTooLate(const JobPoint& point) const {
  const int64_t end_unix_s = SageMakerPlanEndUnixS();
  const int64_t left_s = end_unix_s - clock_.UnixNs() / kNsPerSecond;
  if (end_unix_s == 0 || point.time_limit_s == 0 || left_s >= point.time_limit_s) return std::nullopt;
  return Unfit{InfrastructureReason::kPreempted,
               fmt::format("its training plan takes the instances away in {} s, and the point may take {} s", left_s,
                           point.time_limit_s),
               "extend the plan, or lower time_limit"};
}

RunResult NodeJob::NotRun(const JobPoint& point, const Unfit& why) const {
  RunResult result;
  result.point_id = point.id;
  SetEnd(why.reason, result);
  result.message = why.message;
  result.hint = why.hint;
  result.started_unix_ns = clock_.UnixNs();
  return Complete(point, std::move(result));
}

RunResult NodeJob::Complete(const JobPoint& point, RunResult result) const {
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

RunSpec NodeJob::SpecHere(const JobPoint& point) const {
  RunSpec here = SpecOfRun(point);
  if (!here.checkpoint_dir.empty()) here.checkpoint_dir = PointDir(job_.job_dir, point.id) / here.checkpoint_dir;
  UseSageMakerCheckpointDir(FolderOfState(point), here);
  return here;
}

std::vector<RankProcess> NodeJob::ProcessesOn(const Nodes& node, const RunSpec& spec) const {
  return defined_ ? defined_->ProcessesHere(spec, node, cores_.ids) : RanksHere(spec, node, cores_.ids);
}

std::vector<RankProcess> NodeJob::RanksOf(const JobPoint& point, const Nodes& node) const {
  try {
    return ProcessesOn(node, point.spec);
  } catch (const Error&) {
    return {};
  }
}

std::vector<fs::path> NodeJob::SignsOf(const JobPoint& point, const Nodes& node, const fs::path& dir) const {
  std::vector<fs::path> signs;
  if (!IsContained()) return signs;
  for (const RankProcess& rank : RanksOf(point, node)) {
    signs.insert(signs.end(), {dir / EnteredName(rank.rank), dir / BegunName(rank.rank)});
  }
  return signs;
}

std::vector<std::string> NodeJob::LogsOf(const JobPoint& point, const Nodes& node) const {
  std::vector<std::string> logs;
  for (const RankProcess& rank : RanksOf(point, node)) logs.push_back(rank.log);
  return logs;
}

void NodeJob::Prepare(const JobPoint& point, const fs::path& dir) const {
  if (nodes_.rank == 0) {
    for (const fs::path& stale : {dir / kTrainersResultName, ProgressFile(job_.job_dir, point.id)}) Remove(stale);
  }
  // Made here, so that a full disk is not mistaken for a trainer that cannot be started.
  for (const std::string& log : LogsHere(point)) {
    Remove(dir / log);
    FileWriter made(dir / log);
  }
  for (const fs::path& stale : SignsOf(point, nodes_, dir)) Remove(stale);
  WriteFile(dir / SpecName(nodes_.rank), EncodeSpec(SpecHere(point)) + "\n");
  if (IsOnSeveralNodes(point)) TakePart(dir, nodes_.rank, NodeName());
}

WatchLimits NodeJob::LimitsOf(const JobPoint& point) {
  WatchLimits limits;
  const int64_t meet_ns = MeetLimitS(job_, point) * kNsPerSecond;
  const bool first = nodes_.rank == 0;
  if (first) limits.meet_ns = meet_ns;
  if (IsContained()) limits.meet_ns += starts_.LimitNs();
  // The other nodes do not see when the ranks have met. The first node does, and when it ends its ranks, the others
  // end.
  if (point.time_limit_s > 0) limits.time_ns = point.time_limit_s * kNsPerSecond + (first ? 0 : meet_ns);
  if (first) limits.others_ns = options_.others_end_ns;
  limits.memory_bytes = job_.memory_limit_bytes;
  if (defined_ || IsContained()) limits.tree = &tree_;
  limits.grace_ns = options_.grace_ns;
  const bool saves = !SpecHere(point).checkpoint_dir.empty();
  limits.save_ns = saves ? job_.save_time_s * kNsPerSecond : options_.grace_ns;
  return limits;
}

int64_t NodeJob::LimitNs(const JobPoint& point) const {
  if (point.time_limit_s == 0) return 0;
  const int64_t limit_ns = (point.time_limit_s + MeetLimitS(job_, point)) * kNsPerSecond;
  return limit_ns + (IsContained() ? starts_.LimitNs() : 0);
}

std::vector<fs::path> NodeJob::LogsElsewhere(const JobPoint& point, const fs::path& dir) const {
  std::vector<fs::path> paths;
  Nodes other = nodes_;
  for (other.rank = 0; other.rank < nodes_.count; ++other.rank) {
    if (other.rank == nodes_.rank) continue;
    for (const fs::path& path : PathsOf(dir, defined_->ProcessesHere(point.spec, other, {}))) paths.push_back(path);
  }
  return paths;
}

Starting NodeJob::StartOfRank(const JobPoint& point, const fs::path& dir, const RankProcess& rank,
                              const std::optional<ReservedPort>& port) {
  PointPlace place = PlaceIn(dir, nodes_, port ? port->number() : 0);
  place.progress_file = ProgressFile(job_.job_dir, point.id);
  if (HasSeveralProcesses(point.spec) && !defined_) place.secret_file = secret_.File();
  Starting start = StartOf(job_, Defined(), Contained(), SpecHere(point), rank, nodes_, place);
  if (defined_) MakeDirs(place.output_dir);
  for (const auto& [name, text] : start.files) WriteFileAtomic(fs::path(place.output_dir) / name, text);
  return start;
}

void NodeJob::AddFilesOf(const JobPoint& point, const Nodes& node, bool ok, std::vector<fs::path>& files) const {
  const fs::path dir = PointDir(job_.job_dir, point.id);
  files.insert(files.end(), {dir / SpecName(node.rank), dir / ExecCheckName(node.rank), dir / PartName(node.rank)});
  AddTemporariesOf(dir / SpecName(node.rank), files);
  AddTemporariesOf(dir / PartName(node.rank), files);
  for (const fs::path& sign : SignsOf(point, node, dir)) files.push_back(sign);
  if (!ok || job_.keep_logs) return;
  for (const std::string& log : LogsOf(point, node)) files.push_back(dir / log);
}

void NodeJob::TidyUp(const JobPoint& point, RunStatus status) const {
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
  // Nobody asked for this state: it was for an interruption. SageMaker would upload it, and its bucket keep it.
  if (status != RunStatus::kInfrastructure && status != RunStatus::kCancelled) {
    const fs::path state = SageMakerCheckpointDir(FolderOfState(point), SpecHere(point).checkpoint_dir);
    if (!state.empty()) fs::remove_all(state, ignored);
  }
  ::rmdir(dir.c_str());  // fails if anything is left in it
}

}  // namespace ridgeline::node
