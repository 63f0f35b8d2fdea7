#include "engine/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>
#include <span>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/comm/collective.h"
#include "engine/comm/collective_queue.h"
#include "engine/device/cpu/executor.h"
#include "engine/ops/attention.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/embedding.h"
#include "engine/ops/gemm.h"
#include "engine/ops/loss.h"
#include "engine/ops/norm.h"
#include "engine/ops/optimizer.h"
#include "engine/train/data.h"
#include "engine/train/environment.h"
#include "engine/train/model_state.h"
#include "engine/train/program.h"
#include "engine/train/ranks.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

void Summarize(const RunSpec& spec, RunResult& result) {
  std::vector<int64_t> measured(result.step_ns.all_ns.begin() + spec.warmup_steps, result.step_ns.all_ns.end());
  std::sort(measured.begin(), measured.end());
  const size_t n = measured.size();
  result.step_ns.median_ns = n % 2 == 1 ? measured[n / 2] : (measured[n / 2 - 1] + measured[n / 2]) / 2;
  result.step_ns.p95_ns = measured[static_cast<size_t>(std::ceil(0.95 * static_cast<double>(n))) - 1];
  double mean = 0;
  for (const int64_t ns : measured) mean += static_cast<double>(ns) / static_cast<double>(n);
  double variance = 0;
  for (const int64_t ns : measured) {
    variance += (static_cast<double>(ns) - mean) * (static_cast<double>(ns) - mean) / static_cast<double>(n);
  }
  result.step_ns.cv = mean > 0 ? std::sqrt(variance) / mean : 0;

  int64_t all_ns = 0;
  for (const int64_t ns : result.step_ns.all_ns) all_ns += ns;
  const auto tokens = static_cast<double>(result.tokens_per_step);
  result.throughput.steady_tokens_per_s = tokens / (static_cast<double>(result.step_ns.median_ns) * 1e-9);
  result.throughput.cold_tokens_per_s =
      tokens * static_cast<double>(result.step_ns.all_ns.size()) / (static_cast<double>(all_ns) * 1e-9);
}

std::vector<OpProfile> Profile(const Trace& trace, std::span<const int64_t> call_ns, int64_t steps) {
  std::map<std::string, OpProfile> by_name;
  for (size_t i = 0; i < trace.calls().size(); ++i) {
    const OpCall& call = trace.calls()[i];
    OpProfile& entry = by_name[call.op->name];
    entry.name = call.op->name;
    entry.calls += 1;
    entry.ns += call_ns[i] / steps;
    entry.flops += call.cost.flops;
    entry.bytes += call.cost.bytes;
  }
  std::vector<OpProfile> profile;
  for (auto& [name, entry] : by_name) profile.push_back(std::move(entry));
  std::sort(profile.begin(), profile.end(), [](const OpProfile& a, const OpProfile& b) { return a.ns > b.ns; });
  return profile;
}

// Trains on the CPU and fills in what was measured.
void RunSteps(const StepProgram& program, Communicator& communicator, const TrainOptions& options,
              TrainOutcome& outcome) {
  const RunSpec& spec = program.spec;
  RunResult& result = outcome.result;
  const std::unique_ptr<TokenSource> data =
      program.tensors.ids.defined() ? MakeTokenSource(spec, program.rank) : nullptr;
  CheckRanksFit(program.layout.slab_bytes, communicator);
  CollectiveQueue collectives(communicator);
  CpuExecutor executor(program.trace, program.layout, CpuKernels(), &collectives);
  ModelState model(program, executor);
  model.Initialize();

  const SystemClock clock;
  const int64_t total = spec.warmup_steps + spec.steps * spec.repeats;
  const auto tokens = static_cast<size_t>(program.tokens_per_step());
  for (int64_t step = 1; step <= total; ++step) {
    if (options.profile && step == spec.warmup_steps + 1) executor.EnableTiming();
    const int64_t begin_ns = clock.MonotonicNs();
    if (data) {
      data->Fill(step, {executor.Data<int32_t>(program.tensors.ids), tokens},
                 {executor.Data<int32_t>(program.tensors.targets), tokens});
    }
    executor.Step({step, LearningRate(spec, step, total), static_cast<uint64_t>(spec.seed)});
    const double loss = MeanOverRanks(model.Loss(), communicator);
    const int64_t step_ns = clock.MonotonicNs() - begin_ns;
    result.step_ns.all_ns.push_back(step_ns);
    result.loss.push_back(loss);
    if (program.grad_norm.defined()) result.grad_norm.push_back(model.GradNorm());
    if (options.on_step) {
      options.on_step({step, total, step_ns, loss,
                       static_cast<double>(result.tokens_per_step) / (static_cast<double>(step_ns) * 1e-9)});
    }
    if (!std::isfinite(loss)) {
      result.status = RunStatus::kDiverged;
      result.message = fmt::format("the loss became {} at step {} of {}", loss, step, total);
      result.hint = "lower learning_rate, set grad_clip, or use a wider precision";
      result.evidence["step"] = std::to_string(step);
      break;
    }
  }
  result.memory.rss_peak_bytes = PeakRssBytes();
  GatherRankFigures(communicator, result);
  if (result.status == RunStatus::kDiverged) return;
  Summarize(spec, result);
  if (options.profile) {
    outcome.profile = Profile(program.trace, executor.call_ns(), spec.steps * spec.repeats);
  }
}

}  // namespace

const CpuKernelTable& CpuKernels() {
  static const CpuKernelTable table = [] {
    CpuKernelTable t;
    AddGemmCpu(t);
    AddAttentionCpu(t);
    AddNormCpu(t);
    AddElementwiseCpu(t);
    AddEmbeddingCpu(t);
    AddLossCpu(t);
    AddOptimizerCpu(t);
    AddCollectivesCpu(t);
    return t;
  }();
  return table;
}

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
  result.communicator = spec.communicator;
  result.device = spec.device == "meta" ? "meta" : CpuName();
  result.environment = DescribeEnvironment(options.command_line);
  const auto end = [&](RunStatus status, const Error& error) {
    result.status = status;
    result.message = error.message();
    result.hint = error.hint();
  };
  int64_t planned_bytes = 0;
  std::unique_ptr<Communicator> communicator;
  try {
    communicator = ConnectRanks(spec);
    const StepProgram program = BuildStep(spec, false, communicator->rank());
    planned_bytes = program.layout.slab_bytes;
    result.status = RunStatus::kOk;
    result.tokens_per_step = program.tokens_per_step() * spec.ranks;
    for (const Parameter& parameter : program.shape.parameters) result.parameters += parameter.elements();
    result.memory.planned_peak_bytes = planned_bytes;
    result.memory.by_category = program.layout.by_category;
    result.flops = CountFlops(program);
    if (spec.device == "meta") {
      result.provenance = Provenance::kPredicted;
    } else {
      RunSteps(program, *communicator, options, outcome);
    }
  } catch (const Error& error) {
    if (communicator) communicator->Abandon(error);
    if (error.kind() == ErrorKind::kOutOfMemory) {
      end(RunStatus::kOomHost, error);
      result.evidence["wanted_bytes"] = std::to_string(planned_bytes);
      result.evidence["available_bytes"] = std::to_string(AvailableBytes());
    } else if (error.kind() == ErrorKind::kInvalidInput || error.kind() == ErrorKind::kUsage) {
      end(RunStatus::kInvalid, error);
    } else {
      end(RunStatus::kCrashed, error);
    }
  } catch (const std::bad_alloc&) {
    const Error error(ErrorKind::kOutOfMemory, "memory ran out outside the plan");
    if (communicator) communicator->Abandon(error);
    end(RunStatus::kOomHost, error);
    result.evidence["wanted_bytes"] = std::to_string(planned_bytes);
    result.evidence["available_bytes"] = std::to_string(AvailableBytes());
  }
  result.ended_unix_ns = clock.UnixNs();
  return outcome;
}

}  // namespace ridgeline
