#include "node/defined.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/text.h"
#include "node/feed_log.h"
#include "node/process_tree.h"
#include "ridgeline/foreign_file.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/limits.h"
#include "run/consistency.h"
#include "run/spec.h"
#include "run/step_figures.h"
#include "trainers/json_values.h"
#include "trainers/reading.h"

namespace ridgeline::node {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kReadOnBytes = 16 << 20;        // of a log per look
constexpr int64_t kLeastPauseNs = 1'000'000'000;  // between samples of memory
constexpr int64_t kMostShare = 100;               // limits sampling to one part in so many of the time

std::shared_ptr<const trainers::Trainer> DefinitionOf(const Job& job) {
  const std::string name = job.points.empty() ? "trainer" : job.points.front().spec.trainer;
  return std::make_shared<const trainers::Trainer>(trainers::ParseTrainer(job.definition, name + ".yaml"));
}

trainers::LogSource SourceOf(const fs::path& log) {
  return [log](const std::function<void(std::string_view)>& feed) {
    FeedLog(log, 0, std::numeric_limits<int64_t>::max(), feed);
  };
}

// The exit code, if it is the trainer's own. A trainer that had done its steps would have ended well. One that we ended
// because of its log had not ended by itself.
std::optional<int> ExitCodeOf(const Watched& watched) {
  if (watched.stopped == StopReason::kStepsDone) return 0;
  const bool ended = watched.stopped == StopReason::kSaidEnd || watched.stopped == StopReason::kElsewhere ||
                     watched.stopped == StopReason::kOthersEnded;
  if (ended || watched.status.signal != 0) return std::nullopt;
  return watched.status.exit_code;
}

bool IsEmptyFolder(const fs::path& folder) {
  std::error_code ec;
  return folder.empty() || fs::is_empty(folder, ec) || ec;
}

// The trainer's series that count steps.
std::vector<const trainers::Metric*> CountedOf(const trainers::Trainer& trainer) {
  std::vector<const trainers::Metric*> series;
  if (trainer.result != trainers::Trainer::Result::kPatterns) return series;
  for (const trainers::Metric& metric : trainer.metrics) {
    const std::string_view name = metric.figure->name;
    const bool counts = name == "step_time" || name == "loss" || name == "tokens_per_s";
    if (counts && trainers::IsSeries(metric.take)) series.push_back(&metric);
  }
  return series;
}

int64_t RanksPerNode(const RunSpec& spec, const Nodes& nodes) {
  return std::max<int64_t>(ProcessesOf(spec) / nodes.count, 1);
}

}  // namespace

DefinedTrainer::DefinedTrainer(const Job& job) : DefinedTrainer(job, DefinitionOf(job)) {}

DefinedTrainer::DefinedTrainer(const Job& job, std::shared_ptr<const trainers::Trainer> trainer)
    : job_(job), trainer_(std::move(trainer)), environment_(OwnEnvironment()) {
  if (!trainer_->invocation) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("the definition of trainer {} has no command", trainer_->name));
  }
  for (const auto& [name, value] : job.environment) environment_[name] = value;
}

bool DefinedTrainer::RunsOnFirstNodeAlone() const {
  return trainer_->invocation->processes == trainers::Processes::kOne ||
         trainer_->invocation->processes == trainers::Processes::kSrun;
}

std::vector<RankProcess> DefinedTrainer::ProcessesHere(const RunSpec& spec, const Nodes& nodes,
                                                       const std::vector<int>& cores) const {
  std::vector<RankProcess> ranks = RanksHere(spec, nodes, cores);
  if (trainer_->invocation->processes == trainers::Processes::kOurs || ranks.empty()) return ranks;
  if (RunsOnFirstNodeAlone() && nodes.rank > 0) return {};
  // One process for all ranks, which assigns the ranks itself.
  RankProcess one;
  one.rank = ranks.front().rank;
  one.log = ranks.front().log;
  one.cores = cores;
  const size_t share = cores.size() / ranks.size();
  if (share > 0) one.environment["OMP_NUM_THREADS"] = std::to_string(share);
  return {one};
}

trainers::ProcessPlace DefinedTrainer::PlaceOf(const RunSpec& spec, const RankProcess& process, const Nodes& nodes,
                                               const PointPlace& point) const {
  trainers::ProcessPlace place;
  place.nodes = nodes.count;
  place.node_rank = nodes.rank;
  place.ranks_per_node = RanksPerNode(spec, nodes);
  place.gpus_per_node = job_.gpus > 0 ? job_.gpus : spec.device == "cuda" ? place.ranks_per_node : 0;
  place.rank = process.rank;
  place.local_rank = process.rank % place.ranks_per_node;
  place.master_addr = point.master_addr;
  place.master_port = point.master_port;
  place.output_dir = point.output_dir;
  place.checkpoint_dir = spec.checkpoint_dir;
  place.spec_file = point.spec_file;
  place.result_file = point.result_file;
  place.environment = environment_;
  place.is_shown = point.is_shown;
  place.resumes = point.is_shown ? point.resumes : !IsEmptyFolder(spec.checkpoint_dir);
  return place;
}

trainers::Invoked DefinedTrainer::InvokedFor(const RunSpec& spec, const RankProcess& process, const Nodes& nodes,
                                             const PointPlace& place) const {
  return trainers::Invoke(*trainer_->invocation, spec, PlaceOf(spec, process, nodes, place));
}

std::vector<std::string> DefinedTrainer::Srun(const RunSpec& spec, const Nodes& nodes) const {
  if (trainer_->invocation->processes != trainers::Processes::kSrun) return {};
  // Within exec's own step, whose processors the ranks get.
  std::vector<std::string> whole = {"srun",
                                    "--overlap",
                                    "--mem=0",  // all that the job has
                                    "--kill-on-bad-exit=1",
                                    fmt::format("--nodes={}", nodes.count),
                                    fmt::format("--ntasks={}", ProcessesOf(spec)),
                                    fmt::format("--ntasks-per-node={}", RanksPerNode(spec, nodes))};
  if (job_.cpus > 0) {
    whole.push_back(fmt::format("--cpus-per-task={}", std::max<int64_t>(job_.cpus / RanksPerNode(spec, nodes), 1)));
  }
  return whole;
}

trainers::Reading DefinedTrainer::Read(const RunSpec& spec, const std::vector<fs::path>& logs, const Watched& watched,
                                       const WrittenFile& file, const trainers::Arrivals* arrivals) const {
  const std::optional<int> exit_code = ExitCodeOf(watched);
  trainers::ReadingOptions options = trainers::OptionsFor(*trainer_, spec);
  std::optional<Json> document = file.Read();  // for all of them, read once
  trainers::Reading all;
  std::vector<std::optional<trainers::LogEnd>> ends(1);  // the end of the process that decided, then the others'
  for (size_t i = 0; i < logs.size(); ++i) {
    const bool decided = i == watched.process;
    options.arrivals = i == 0 ? arrivals : nullptr;
    options.exit_code = decided ? exit_code : std::nullopt;
    trainers::Reading reading =
        trainers::ReadLog(*trainer_, SourceOf(logs[i]), options, std::exchange(document, std::nullopt));
    if (decided) {
      ends.front() = reading.end;
    } else {
      ends.push_back(reading.end);
    }
    all = i == 0 ? std::move(reading) : trainers::MergeReadings(*trainer_, std::move(all), reading, options);
  }
  all.end = exit_code == 0 ? ends.front() : trainers::FirstCause(ends);
  if (!all.end && watched.status.signal != 0 && watched.stopped == StopReason::kNone) {
    all.end = trainers::EndOfSignal(watched.status.signal);
  }
  if (file.IsOld())
    all.notes.emplace_back("its file was there before it started, and it wrote none: nothing is read of it");
  return all;
}

void DefinedTrainer::AddFacts(const RunSpec& spec, const trainers::Invoked& invoked, RunResult& result) {
  for (const auto& [fact, value] : MachineFacts()) result.environment.try_emplace(fact, value);
  result.environment["command"] = ShortenToBytes(Join(invoked.argv, " "), kMaxTextBytes);
  if (spec.device == "cpu") result.device = CpuName(result.environment);
}

RunFollower::RunFollower(const trainers::Trainer& trainer, const RunSpec& spec, fs::path log, fs::path progress,
                         bool first, ProcessTree& tree, const Clock& clock, const Nvml& (*load)())
    : metrics_(CountedOf(trainer)),
      spec_(spec),
      tokens_per_step_(static_cast<double>(TokensAStep(trainer, spec))),
      log_(std::move(log)),
      progress_(std::move(progress)),
      says_steps_(first),
      tree_(tree),
      clock_(clock),
      lines_([this](int64_t, std::string_view line) {
        metrics_.Line(line, lines_.is_cut(), [this](const trainers::LineValue& said) { Value(said); });
      }) {
  if (spec.device == "cuda") device_memory_.emplace(load);
  for (const trainers::Metric* metric : CountedOf(trainer)) counted_.push_back({metric, std::nullopt, 0});
  if (trainers::TimesArrivals(trainer)) growth_.emplace(log_, clock);
}

const trainers::Arrivals* RunFollower::FinishArrivals() { return growth_ ? &growth_->Finish() : nullptr; }

void RunFollower::Look() {
  if (!counted_.empty()) ReadOn();
  if (clock_.MonotonicNs() < next_sample_ns_) return;
  tree_.LookForMarked();  // takes no time from the trainer
  const int64_t begin_ns = clock_.MonotonicNs();
  peak_bytes_ = std::max(peak_bytes_, tree_.ProportionalBytes().value_or(0));
  if (device_memory_) device_peak_bytes_ = std::max(device_peak_bytes_, device_memory_->MostHeldOfOne(tree_));
  const int64_t end_ns = clock_.MonotonicNs();
  // Rare, because the kernel counts all pages of a process meanwhile, and the process then waits for new ones.
  next_sample_ns_ = end_ns + std::max(kLeastPauseNs, kMostShare * (end_ns - begin_ns));
}

void RunFollower::ReadOn() {
  read_bytes_ += FeedLog(log_, read_bytes_, kReadOnBytes, [&](std::string_view bytes) { lines_.Feed(bytes); });
  if (steps_done_ == steps_said_) return;
  says_steps_ = says_steps_ || ForeignFile(progress_).state() == ForeignFile::State::kMissing;
  if (!says_steps_) return;
  steps_said_ = steps_done_;
  const int64_t steps = StepsOf(spec_);
  try {
    WriteFileAtomic(progress_, fmt::format("{} {} {:.6g}\n", std::min(steps_done_, steps), steps, tokens_per_s_));
  } catch (const Error&) {
    // If the disk fails, the point's end reports it.
  }
}

void RunFollower::Value(const trainers::LineValue& said) {
  Counted& counted = counted_[said.metric];
  if (!counted.rank) counted.rank = said.rank;
  if (*counted.rank != said.rank) return;
  const auto step = trainers::StepOf(said.step);
  steps_done_ = std::max(steps_done_, step ? *step : ++counted.values);
  const trainers::Metric& metric = *counted.metric;
  const bool is_time =
      metric.figure->name == "step_time" && metric.take == trainers::Take::kSeries && said.unit.empty();
  const auto value = is_time ? trainers::ReadAmount(said.value, *metric.unit) : std::nullopt;
  if (!value || *value <= 0 || !metric.factors.empty()) return;
  tokens_per_s_ = tokens_per_step_ / (*value * 1e-9);
}

}  // namespace ridgeline::node
