#include "engine/train/trainer.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/ops/gemm.h"
#include "engine/step/program.h"
#include "engine/step/timeline.h"
#include "engine/step/training_state.h"
#include "engine/train/checkpoint_files.h"
#include "engine/train/data.h"
#include "engine/train/environment.h"
#include "engine/train/history.h"
#include "engine/train/model_state.h"
#include "engine/train/ranks.h"
#include "engine/train/weights_folder.h"
#include "run/consistency.h"
#include "run/parallelism.h"
#include "run/result.h"
#include "run/spec.h"
#include "run/step_figures.h"

namespace ridgeline::engine {
namespace {

std::vector<OpProfile> Profile(const Trace& trace, std::span<const int64_t> call_ns, int64_t steps) {
  std::map<std::string, OpProfile> by_name;
  for (size_t i = 0; i < trace.calls().size(); ++i) {
    const OpCall& call = trace.calls()[i];
    OpProfile& entry = by_name[call.op->name];
    entry.name = call.op->name;
    entry.calls += 1;
    entry.ns += call_ns[i] / steps;
    entry.flops += call.cost.flops;
    entry.bytes += call.bytes();
  }
  std::vector<OpProfile> profile;
  for (auto& [name, entry] : by_name) profile.push_back(std::move(entry));
  std::sort(profile.begin(), profile.end(), [](const OpProfile& a, const OpProfile& b) { return a.ns > b.ns; });
  return profile;
}

// A folder or a volume that the run needs has failed. The infrastructure is at fault, not the run.
class StorageFault final : public Error {
 public:
  explicit StorageFault(const Error& error) : Error(error) {}
};

// Turns infrastructure errors of `use` into storage faults.
template <typename Use>
auto OfStorage(const Use& use) {
  try {
    return use();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInfrastructure) throw;
    throw StorageFault(error);
  }
}

// One run, from the state in its checkpoint files to its end.
class Training {
 public:
  Training(const StepProgram& program, Communicator& communicator, TrainingDevice& device, const TrainOptions& options,
           TrainOutcome& outcome)
      : program_(program),
        communicator_(communicator),
        device_(device),
        spec_(program.spec),
        options_(options),
        outcome_(outcome),
        result_(outcome.result),
        planned_(StepsOf(spec_)),
        total_(planned_),
        data_(program.tensors.ids.defined() ? OfStorage([&] { return MakeTokenSource(spec_, program.rank); })
                                            : nullptr),
        executor_(device.MakeExecutor(program, communicator)),
        model_(program, *executor_),
        state_(program, *executor_, communicator) {
    result_.emulated = std::ranges::any_of(program.trace.calls(), [&](const OpCall& call) {
      return IsEmulated(call) || (call.cost.flops > 0 && !executor_->Multiplies(call.cost.format));
    });
  }

  void Run() {
    if (!spec_.checkpoint_dir.empty()) {
      OfStorage([&] { files_.emplace(spec_.checkpoint_dir, spec_.checkpoint_keep, clock_, communicator_); });
      result_.evidence["checkpoint_dir"] = spec_.checkpoint_dir;
    }
    std::optional<SavedState> saved = FindSaved();
    WarmUp();
    if (saved) {
      model_.Initialize();
      Continue(*std::move(saved));
    } else {
      Initialize();
    }
    history_.processes.push_back(
        {history_.steps() + 1, fmt::format("{}, {} threads", result_.device, omp_get_max_threads())});
    queued_ = history_.steps();
    if (history_.steps() >= spec_.warmup_steps) BeginMeasuring();
    while (history_.steps() < total_ && result_.status == RunStatus::kOk) {
      if (MayQueue()) {
        Queue();
      } else if (queued_ > history_.steps()) {
        Take();
      } else {
        Leave();
      }
    }
    device_.EndMeasuring();
    const std::optional<int64_t> waited_ns = WaitedAStep();
    result_.loss = history_.loss;
    result_.grad_norm = history_.grad_norm;
    result_.skipped_steps = model_.SkippedSteps();
    result_.step_ns.all_ns = history_.step_ns;
    result_.memory.rss_peak_bytes = PeakRssBytes();
    std::tie(result_.memory.device_peak_bytes, result_.memory.device_peak_kind) = device_.Taken();
    device_.Describe(result_.environment);
    result_.gpu = device_.Figures();
    // A run that left before its first measured step has no such figures.
    if (auto measured = SteadySteps(spec_, history_); !measured.empty() && result_.status != RunStatus::kDiverged) {
      FillStepFigures(std::move(measured), result_);
    }
    GatherRankFigures(communicator_, waited_ns, result_);
    if (result_.status == RunStatus::kDiverged || profiled_steps_ == 0) return;
    outcome_.profile = Profile(program_.trace, executor_->call_ns(), profiled_steps_);
    Json op_ns = Json::object();
    for (const OpProfile& op : outcome_.profile) op_ns[op.name] = op.ns;
    result_.evidence["op_ns"] = DumpJson(op_ns);
    std::vector<double> call_ns;
    for (const int64_t ns : executor_->call_ns()) {
      call_ns.push_back(static_cast<double>(ns) / static_cast<double>(profiled_steps_));
    }
    outcome_.timeline = MeasuredTimeline(program_.trace, call_ns);
  }

 private:
  // Runs steps, of a model that is then thrown away, until the device's clocks have settled: what the run computes is
  // the same without them. The first of them is the cold one.
  void WarmUp() {
    if (options_.warmup_seconds <= 0) return;
    model_.Initialize();
    const int64_t begin_ns = clock_.MonotonicNs();
    int64_t queued = 0;
    int64_t taken = 0;
    for (bool over = false; !over || taken < queued;) {
      if (!over && queued - taken <= executor_->steps_ahead()) {
        QueueStep(++queued);
      } else {
        executor_->TakeScalars();
        if (++taken == 1) cold_ns_ = clock_.MonotonicNs() - begin_ns;
      }
      over = over || ToldToLeave() || AnyRankSays(Since(begin_ns) >= options_.warmup_seconds);
    }
    executor_->Clear();
  }

  double Since(int64_t begin_ns) const { return static_cast<double>(clock_.MonotonicNs() - begin_ns) * 1e-9; }

  // Whether another block of steps may follow, because too little was measured. A continued run has too few steps left
  // to decide that, so it gets none.
  bool MayMeasureOn() {
    if (options_.measured_seconds <= 0) return false;
    const bool measures = measuring_since_ns_ != 0 && saved_step_ == 0;
    if (!AnyRankSays(measures && Since(measuring_since_ns_) < options_.measured_seconds)) return false;
    total_ += spec_.steps;
    return true;
  }

  void BeginMeasuring() {
    device_.BeginMeasuring();
    measuring_since_ns_ = clock_.MonotonicNs();
    measured_from_ = history_.steps();
    waited_before_ns_ = device_.WaitedNs();
  }

  // Returns how long a measured step of this process waited for other ranks.
  std::optional<int64_t> WaitedAStep() const {
    const std::optional<int64_t> waited_ns = device_.WaitedNs();
    const int64_t steps = history_.steps() - measured_from_;
    if (!waited_ns || !waited_before_ns_ || steps == 0) return std::nullopt;
    return (*waited_ns - *waited_before_ns_) / steps;
  }

  void Note(const std::string& text) const {
    if (options_.on_note) options_.on_note(text);
  }

  // Ranks decide alike.
  bool AnyRankSays(bool yes) const {
    int64_t said = yes ? 1 : 0;
    communicator_.AllReduce(std::span(&said, 1), Reduction::kMax);
    return said != 0;
  }
  // Ranks leave after the same step: all of them once one is told to.
  bool ToldToLeave() const { return AnyRankSays(options_.told_to_leave && options_.told_to_leave()); }

  std::optional<SavedState> FindSaved() const {
    if (!options_.resume.empty()) return OpenSaved(options_.resume);
    if (!files_) return std::nullopt;
    return files_->Newest([&](const std::string& text) { Note(text); });
  }

  void Initialize() {
    if (spec_.init_from == "seed") return model_.Initialize();
    const auto folder = OfStorage([&] { return WeightsFolder(spec_.init_from, program_); });
    model_.Initialize(
        [&](size_t p, int64_t first, std::span<float> to) { OfStorage([&] { folder.Read(p, first, to); }); });
    Note(fmt::format("starting from the weights in {}", spec_.init_from));
  }

  void Continue(SavedState saved) {
    Load(saved, spec_, state_);
    history_ = std::move(saved.manifest.history);
    saved_step_ = history_.steps();
    result_.evidence["resumed_from_step"] = std::to_string(saved_step_);
    Note(fmt::format("continuing after step {} of {}, from {}", saved_step_, total_, saved.folder.string()));
  }

  bool SavesBehind(int64_t step) const {
    return files_ && (step % spec_.checkpoint_every_steps == 0 || step == total_);
  }

  // The host runs ahead of a device that allows it, so that the device never waits. But a save needs the state after
  // exactly one step, and no step starts once the process was told to leave.
  bool MayQueue() {
    const int64_t ahead = queued_ - history_.steps();
    if (leaving_ || ahead > executor_->steps_ahead()) return false;
    if (queued_ == total_ && !MayMeasureOn()) return false;
    if (ahead > 0 && SavesBehind(queued_)) return false;
    leaving_ = ToldToLeave();
    return !leaving_;
  }

  void Queue() {
    const int64_t step = ++queued_;
    if (options_.profile && step > spec_.warmup_steps && profiled_steps_++ == 0) executor_->EnableTiming();
    begun_ns_.push_back(clock_.MonotonicNs());
    QueueStep(step);
  }

  void QueueStep(int64_t step) {
    if (data_) {
      const auto tokens = static_cast<size_t>(program_.tokens_per_step());
      ids_.resize(tokens);
      targets_.resize(tokens);
      data_->Fill(step, ids_, targets_);
      executor_->Write<int32_t>(program_.tensors.ids, 0, ids_);
      executor_->Write<int32_t>(program_.tensors.targets, 0, targets_);
    }
    executor_->Step({step, LearningRate(spec_, std::min(step, planned_), planned_), static_cast<uint64_t>(spec_.seed)});
    std::vector<Tensor> scalars = {program_.tensors.loss};
    if (program_.grad_norm.defined()) scalars.push_back(program_.grad_norm);
    executor_->QueueScalars(scalars);
  }

  // Takes the oldest queued step. Its time begins when the step before it ended, or when it started itself if that was
  // later. For steps queued behind each other, the device says when one ended, because the host may see it late.
  void Take() {
    const auto [scalars, since_last_ns] = executor_->TakeScalars();
    const int64_t now_ns = clock_.MonotonicNs();
    const int64_t begun_ns = begun_ns_.front();
    int64_t step_ns = since_last_ns && begun_ns < taken_ns_ ? *since_last_ns : now_ns - std::max(taken_ns_, begun_ns);
    if (history_.steps() == 0 && cold_ns_ != 0) step_ns = cold_ns_;  // of the first step that this process ran
    taken_ns_ = now_ns;
    begun_ns_.pop_front();
    const double loss = MeanOverRanks(scalars[0], communicator_);
    history_.step_ns.push_back(step_ns);
    history_.loss.push_back(loss);
    if (scalars.size() > 1) history_.grad_norm.push_back(scalars[1]);
    const int64_t step = history_.steps();
    if (step == spec_.warmup_steps) BeginMeasuring();
    if (options_.on_step) {
      options_.on_step({step, total_, step_ns, loss,
                        static_cast<double>(result_.tokens_per_step) / (static_cast<double>(step_ns) * 1e-9)});
    }
    if (!std::isfinite(loss)) {
      result_.status = RunStatus::kDiverged;
      result_.message = fmt::format("the loss became {} at step {} of {}", loss, step, total_);
      result_.hint = "lower learning_rate, set grad_clip, or use a wider precision";
      result_.evidence["step"] = std::to_string(step);
    } else if (SavesBehind(step)) {
      Save();
    }
  }

  // A run that cannot save goes on, because its computation is not lost by that.
  void Save() {
    const int64_t begin_ns = clock_.MonotonicNs();
    try {
      files_->Save(state_, {history_.steps(), spec_, history_, {}});
      saved_step_ = history_.steps();
      ++saves_;
      save_ns_ += clock_.MonotonicNs() - begin_ns;
      result_.evidence["checkpoint_step"] = std::to_string(saved_step_);
      result_.evidence["checkpoint_saves"] = std::to_string(saves_);
      result_.evidence["checkpoint_save_ns"] = std::to_string(save_ns_);
      result_.evidence.erase("checkpoint_error");
    } catch (const Error& error) {
      result_.evidence["checkpoint_error"] = error.message();
      Note(fmt::format("the state after step {} was not saved: {}", history_.steps(), error.message()));
    }
  }

  void Leave() {
    const int64_t step = history_.steps();
    if (files_ && saved_step_ != step) Save();
    SetEnd(InfrastructureReason::kPreempted, result_);
    result_.message = fmt::format("told to leave after step {} of {}", step, total_);
    if (!files_) {
      result_.message += "; nothing was saved, since no checkpoint.dir is set";
      result_.hint = "set checkpoint.dir to make an interrupted run continuable";
    } else if (saved_step_ == step) {
      result_.message += step == 0 ? "; there was nothing to save" : fmt::format("; saved in {}", spec_.checkpoint_dir);
      result_.hint = "run it again to continue";
    } else {
      result_.message += fmt::format("; not saved: {}", result_.evidence["checkpoint_error"]);
      result_.hint = saved_step_ > 0 ? fmt::format("run again it continues after step {}", saved_step_)
                                     : "if you run it again, it starts from the beginning";
    }
  }

  const StepProgram& program_;
  Communicator& communicator_;
  TrainingDevice& device_;
  const RunSpec& spec_;
  const TrainOptions& options_;
  TrainOutcome& outcome_;
  RunResult& result_;
  const int64_t planned_;  // the spec's steps
  int64_t total_;          // those, and what more is measured
  SystemClock clock_;
  std::unique_ptr<TokenSource> data_;
  std::vector<int32_t> ids_, targets_;  // of a step
  std::unique_ptr<Executor> executor_;
  ModelState model_;
  TrainingState state_;
  std::optional<CheckpointDir> files_;
  History history_;               // of the steps taken so far
  int64_t queued_ = 0;            // the last started step
  std::deque<int64_t> begun_ns_;  // start times of the steps not taken yet
  int64_t taken_ns_ = 0;          // when the last step was taken
  bool leaving_ = false;
  int64_t cold_ns_ = 0;                      // the first step of the warm-up; 0: there was none
  int64_t measuring_since_ns_ = 0;           // 0: not yet
  int64_t measured_from_ = 0;                // the steps before the measured ones
  std::optional<int64_t> waited_before_ns_;  // in them, for other ranks; nothing before they begin
  int64_t saved_step_ = 0;                   // of the newest checkpoint files that hold our state; 0: none
  int64_t saves_ = 0;
  int64_t save_ns_ = 0;
  int64_t profiled_steps_ = 0;
};

// Whether the GPU failed, is missing or is not the requested one; and no rank was lost.
bool IsOfDevice(const Error& error, const RunSpec& spec, const Communicator* communicator) {
  return spec.device == "cuda" && error.kind() == ErrorKind::kInfrastructure && communicator != nullptr &&
         !communicator->Loss();
}

}  // namespace

double LearningRate(const RunSpec& spec, int64_t step, int64_t total) {
  if (step <= spec.lr_warmup_steps) {
    return spec.learning_rate * static_cast<double>(step) / static_cast<double>(spec.lr_warmup_steps);
  }
  if (spec.schedule == "constant" || total <= spec.lr_warmup_steps) return spec.learning_rate;
  const double done =
      static_cast<double>(step - spec.lr_warmup_steps) / static_cast<double>(total - spec.lr_warmup_steps);
  return spec.learning_rate_min +
         0.5 * (spec.learning_rate - spec.learning_rate_min) * (1 + std::cos(std::numbers::pi * done));
}

TrainOutcome Train(const RunSpec& spec, const TrainOptions& options) {
  const SystemClock clock;
  TrainOutcome outcome;
  RunResult& result = outcome.result;
  result.point_id = PointId(spec);
  result.started_unix_ns = clock.UnixNs();
  const int64_t begin_ns = clock.MonotonicNs();
  result.communicator = spec.communicator;
  result.device = spec.device == "cpu" ? CpuName() : spec.device;
  result.environment = DescribeEnvironment(options.command_line);
  const auto end = [&](const RunEnd& how, const Error& error) {
    SetEnd(how, result);
    result.message = error.message();
    result.hint = error.hint();
  };
  int64_t planned_bytes = 0;
  bool ran = false;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<TrainingDevice> device;
  const auto end_for_memory = [&](const Error& error, const TrainingDevice& memory) {
    end(memory.out_of_memory(), error);
    result.evidence["wanted_bytes"] = std::to_string(planned_bytes);
    result.evidence["available_bytes"] = std::to_string(memory.AvailableSlabBytes());
  };
  try {
    communicator = ConnectRanks(spec);
    if (options.on_begin) options.on_begin(StepsOf(spec));
    const StepProgram program = BuildStep(spec, false, communicator->rank());
    planned_bytes = program.layout.slab_bytes;
    result.status = RunStatus::kOk;
    result.tokens_per_step = program.tokens_per_step() * DataParallelRanks(spec);
    for (const Parameter& parameter : program.shape.parameters) result.parameters += parameter.elements();
    result.memory.planned_peak_bytes = planned_bytes;
    result.memory.by_category = program.layout.by_category;
    result.flops = CountFlops(program);
    if (spec.device == "meta") {
      result.provenance = Provenance::kPredicted;
    } else {
      device = OpenDevice(spec, options.open_cuda, options.device);
      result.device = device->name();
      Training(program, *communicator, *device, options, outcome).Run();
      ran = true;
    }
  } catch (const StorageFault& error) {
    if (communicator) communicator->Abandon(error);
    end(InfrastructureReason::kStorage, error);
  } catch (const Error& error) {
    if (communicator) communicator->Abandon(error);
    if (error.kind() == ErrorKind::kOutOfMemory) {
      end_for_memory(error, device ? *device : *MakeCpuDevice());
    } else if (IsOfDevice(error, spec, communicator.get())) {
      end(InfrastructureReason::kNode, error);
    } else if (error.kind() == ErrorKind::kInvalidInput || error.kind() == ErrorKind::kUsage) {
      end(RunStatus::kInvalid, error);
    } else {
      end(RunStatus::kCrashed, error);
    }
  } catch (const std::bad_alloc&) {
    const Error error(ErrorKind::kOutOfMemory, "memory ran out outside the plan");
    if (communicator) communicator->Abandon(error);
    end_for_memory(error, *MakeCpuDevice());
  }
  if (device && !ran) result.gpu = device->Figures();
  if (result.status == RunStatus::kOomDevice && result.gpu.others_bytes) {
    result.evidence["others_bytes"] = std::to_string(*result.gpu.others_bytes);
  }
  result.ended_unix_ns = result.started_unix_ns + (clock.MonotonicNs() - begin_ns);  // safe from changes of the clock
  return outcome;
}

}  // namespace ridgeline::engine
