#include "engine/train/calibrate.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/version.h"
#include "engine/comm/collective.h"
#include "engine/step/budget.h"
#include "engine/step/call_shape.h"
#include "engine/step/program.h"
#include "engine/train/calibration_programs.h"
#include "engine/train/data.h"
#include "engine/train/environment.h"
#include "engine/train/model_state.h"
#include "engine/train/ranks.h"
#include "run/spec.h"

namespace ridgeline::engine {
namespace {

constexpr int64_t kFewestSteps = 3;  // in a round, besides an executor's first step
constexpr int64_t kMostSteps = 7;
constexpr int64_t kFewestPrograms = 8;  // have a turn however little time there is

int64_t MedianOf(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A program, and its measurements.
struct Measured {
  std::string_view kind;
  StepProgram program;
  int64_t first_ns = 0;                       // the very first step
  std::vector<int64_t> step_ns;               // of the other steps
  std::vector<std::vector<int64_t>> call_ns;  // by call, of the same steps or of others
};

class Calibration {
 public:
  Calibration(const RunSpec& base, const DeviceCalibrationOptions& options)
      : base_(base),
        options_(options),
        communicator_(ConnectRanks(base)),
        device_(OpenDevice(base, options.open_cuda, options.device)) {}

  Json Run() {
    const int64_t begin_ns = clock_.MonotonicNs();
    Choose();
    const auto turns = static_cast<int64_t>(chosen_.size()) * options_.rounds;
    int64_t turn = 0;
    for (int64_t round = 0; round < options_.rounds; ++round) {
      for (Measured& measured : chosen_) {
        const double left_s = options_.budget_s - static_cast<double>(clock_.MonotonicNs() - begin_ns) * 1e-9;
        const bool needed = turn < kFewestPrograms;
        if (needed || Agreed(left_s <= 0 ? 1 : 0) == 0) Take(measured, left_s / static_cast<double>(turns - turn));
        if (options_.on_progress) options_.on_progress(++turn, turns);
      }
    }
    return Document(static_cast<double>(clock_.MonotonicNs() - begin_ns) * 1e-9);
  }

 private:
  // Returns the largest value of all ranks.
  int64_t Agreed(int64_t value) {
    communicator_->AllReduce(std::span(&value, 1), Reduction::kMax);
    return value;
  }

  void Add(std::string_view kind, StepProgram program) {
    const int64_t room = device_->AvailableSlabBytes() / communicator_->ranks_here();
    if (Agreed(program.layout.slab_bytes > room ? 1 : 0) != 0) return;
    chosen_.push_back({kind, std::move(program), 0, {}, {}});
  }

  void Choose() {
    const bool alone = communicator_->world() == 1;
    // Each rank has a GPU of its own, so one of them speaks for all. The cores of a machine are shared.
    const bool own = alone || base_.device == "cpu";
    if (!alone) {
      Add(ProbeName(Probe::kCollectives), ProbeProgram(Probe::kCollectives, base_, options_.small));
      for (const RunSpec& spec : CalibrationRankSteps(base_, options_.small)) {
        Add("step", BuildStep(spec, false, communicator_->rank()));
      }
    }
    if (!own) return;
    for (const Probe probe : {Probe::kCopy, Probe::kLaunch})
      Add(ProbeName(probe), ProbeProgram(probe, base_, options_.small));
    for (const RunSpec& spec : CalibrationSteps(base_, options_.small)) Add("step", BuildStep(spec));
  }

  // Gives the program a turn of so many seconds.
  void Take(Measured& measured, double budget_s) {
    const StepProgram& program = measured.program;
    const bool trains = measured.kind == "step";
    const std::unique_ptr<Executor> executor = device_->MakeExecutor(program, *communicator_);
    std::unique_ptr<TokenSource> data;
    if (trains) {
      ModelState(program, *executor).Initialize();
      // Sets fp16's scale as if it had been found: a step that overflows updates nothing, and so is too quick.
      if (program.tensors.loss_scale.defined()) executor->Write<float>(program.tensors.loss_scale, 0, {{1.0F}});
      if (program.tensors.ids.defined()) data = MakeTokenSource(program.spec, program.rank);
    }
    int64_t step = 0;
    const auto one = [&] {
      communicator_->Barrier();
      const int64_t begin_ns = clock_.MonotonicNs();
      Step(program, ++step, data.get(), *executor);
      return clock_.MonotonicNs() - begin_ns;
    };
    const int64_t first_ns = one();
    if (measured.first_ns == 0) measured.first_ns = first_ns;
    const int64_t probe_ns = one();
    const double steps = budget_s * 1e9 / static_cast<double>(std::max<int64_t>(probe_ns, 1)) - 2;
    // GPUs replay a step as a graph, which has no times of its calls.
    const bool apart = base_.device == "cuda";
    const int64_t count = Agreed(static_cast<int64_t>(
        std::clamp(steps / (apart ? 2 : 1), static_cast<double>(kFewestSteps), static_cast<double>(kMostSteps))));
    if (apart) {
      for (int64_t i = 0; i < count; ++i) measured.step_ns.push_back(one());
    }
    measured.call_ns.resize(program.trace.calls().size());
    for (int64_t i = 0; i < count; ++i) {
      executor->EnableTiming();
      const int64_t step_ns = one();
      if (!apart) measured.step_ns.push_back(step_ns);
      for (size_t call = 0; call < measured.call_ns.size(); ++call) {
        measured.call_ns[call].push_back(executor->call_ns()[call]);
      }
    }
  }

  // Runs a step as the trainer does.
  void Step(const StepProgram& program, int64_t step, TokenSource* data, Executor& executor) {
    if (data != nullptr) {
      ids_.resize(static_cast<size_t>(program.tokens_per_step()));
      targets_.resize(ids_.size());
      data->Fill(step, ids_, targets_);
      executor.Write<int32_t>(program.tensors.ids, 0, ids_);
      executor.Write<int32_t>(program.tensors.targets, 0, targets_);
    }
    executor.Step({step, program.spec.learning_rate, static_cast<uint64_t>(program.spec.seed)});
    const Tensor& awaited = program.tensors.loss.defined() ? program.tensors.loss : Anything(program.trace);
    executor.QueueScalars(std::span(&awaited, 1));
    const std::vector<float> scalars = executor.TakeScalars().values;
    if (program.spec.ranks > 1) MeanOverRanks(scalars[0], *communicator_);
  }

  // Returns a tensor to wait for, if a program has no loss.
  static const Tensor& Anything(const Trace& trace) {
    return *std::ranges::find_if(trace.calls().back().tensors(), &Tensor::defined);
  }

  // The calls of one class and dimensions.
  struct Tally {
    CallShape shape;
    std::string_view format;
    double flops = 0, bytes = 0;  // of one call
    int64_t calls = 0;            // per step
    std::vector<int64_t> ns;      // the median of each of them
  };

  static Json CallsOf(const Measured& measured) {
    std::map<std::pair<std::string, std::array<int64_t, 3>>, Tally> tallies;
    const std::vector<OpCall>& calls = measured.program.trace.calls();
    for (size_t i = 0; i < calls.size() && !measured.call_ns.empty(); ++i) {
      const OpCall& call = calls[i];
      if (call.op->kind == OpKind::kLanding) continue;
      // Inside a step, the other ranks' pace and this rank's own calls decide how long a collective is waited for.
      const bool is_collective = MovesBetweenRanks(call.op->kind);
      if (is_collective && measured.kind == "step") continue;
      const CallShape shape = CallShapeOf(call);
      Tally& tally = tallies[{ClassName(shape.of), shape.dims}];
      tally.shape = shape;
      tally.format = MathFormatName(MultipliedFormat(call));
      tally.flops = call.cost.flops;
      tally.bytes = call.bytes() + ScratchBytes(call);
      tally.calls += 1;
      int64_t ns = MedianOf(measured.call_ns[i]);
      if (is_collective && i + 1 < calls.size() && calls[i + 1].op->kind == OpKind::kLanding) {
        ns += MedianOf(measured.call_ns[i + 1]);
      }
      tally.ns.push_back(ns);
    }
    Json list = Json::array();
    for (auto& [key, tally] : tallies) {
      double sum_ns = 0;
      for (const int64_t ns : tally.ns) sum_ns += static_cast<double>(ns);
      Json dims = Json::array();
      for (size_t i = 0; i < DimsOf(tally.shape.of); ++i) dims.push_back(tally.shape.dims[i]);
      list.push_back({{"class", key.first},
                      {"dims", std::move(dims)},
                      {"format", tally.format},
                      {"flops", tally.flops},
                      {"bytes", tally.bytes},
                      {"calls", tally.calls},
                      {"ns", std::max(1.0, sum_ns / static_cast<double>(tally.calls))}});
    }
    return list;
  }

  Json Document(double seconds) const {
    Json programs = Json::array();
    int64_t left_out = 0;
    for (const Measured& measured : chosen_) {
      if (measured.step_ns.empty()) {
        ++left_out;
        continue;
      }
      programs.push_back({{"kind", measured.kind},
                          {"spec", measured.kind == "step" ? Json::parse(EncodeSpec(measured.program.spec)) : Json()},
                          {"first_ns", measured.first_ns},
                          {"step_ns", MedianOf(measured.step_ns)},
                          {"steps", measured.step_ns.size()},
                          {"calls", CallsOf(measured)}});
    }
    return {{"version", kCalibrationVersion},
            {"device", device_->name()},
            {"kind", base_.device},
            {"gpu", base_.gpu},
            {"ranks", communicator_->world()},
            {"threads", omp_get_max_threads()},
            {"memory_bytes", device_->AvailableSlabBytes()},
            {"trainer", std::string(kVersion)},
            {"commit", std::string(GitCommit())},
            {"seconds", seconds},
            {"left_out", left_out},
            {"programs", std::move(programs)}};
  }

  const RunSpec base_;
  const DeviceCalibrationOptions& options_;
  SystemClock clock_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<TrainingDevice> device_;
  std::vector<Measured> chosen_;
  std::vector<int32_t> ids_, targets_;  // of a step
};

}  // namespace

Json CalibrateDevice(const RunSpec& base, const DeviceCalibrationOptions& options) {
  return Calibration(base, options).Run();
}

}  // namespace ridgeline::engine
