#include "engine/cli/print_budget.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/step/budget.h"
#include "engine/step/program.h"
#include "run/gpus.h"
#include "run/names.h"

namespace ridgeline::engine {
namespace {

double Ms(double ns) { return ns / 1e6; }

void PrintPart(std::string_view part, const std::vector<BudgetLine>& lines) {
  double ns = 0;
  for (const BudgetLine& line : lines) {
    if (line.part == part) ns += line.floor_ns;
  }
  fmt::print("{:<77} {:>9.3f} ms\n", part.empty() ? "not in the budget" : part, Ms(ns));
  for (const BudgetLine& line : lines) {
    if (line.part != part) continue;
    fmt::print("  {:<27} {:<9} {:>6} {:>9.3f} {:>10.3f} {:>9.3f} {:>9.3f}   {}\n", line.op, PhaseName(line.phase),
               line.calls, line.bytes / 1e9, line.scratch_bytes / 1e9, line.flops / 1e12, Ms(line.floor_ns),
               line.reason);
  }
}

DeviceSpeed DescribedSpeed(std::string_view gpu) {
  const std::optional<DeviceSpeed> speed = SpeedOf(gpu);
  if (speed) return *speed;
  std::vector<std::string> known;
  for (const Gpu& other : Gpus()) {
    if (SpeedOf(other.name)) known.emplace_back(other.name);
  }
  throw Error(ErrorKind::kUsage, fmt::format("--budget does not know how fast gpu: {} is", gpu),
              "it knows that of " + Join(known, ", "));
}

}  // namespace

void PrintBudget(RunSpec spec) {
  if (spec.gpu == "none") spec.gpu = "h200";
  const DeviceSpeed speed = DescribedSpeed(spec.gpu);
  const StepProgram program = BuildStep(spec);
  const std::vector<BudgetLine> lines = Budget(program.trace, speed);
  fmt::print(
      "{} {} batch {} x {}, checkpointing {}: the least time of a step on one {} as described, {:.1f} TB/s and\n"
      "{:.0f} TFLOP/s of products in 16 bits. An H200 took 1.02 to 1.17 times it; what goes to other ranks is not in "
      "it.\n",
      spec.model, spec.precision, spec.batch_size, spec.seq_length, spec.checkpointing, FindGpu(spec.gpu)->product,
      speed.bytes / 1e12, speed.flops / 1e12);
  fmt::print("  {:<27} {:<9} {:>6} {:>9} {:>10} {:>9} {:>9}\n", "op", "phase", "calls", "GB", "scratch GB", "TFLOP",
             "ms");
  double ns = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == 0 || lines[i].part != lines[i - 1].part) PrintPart(lines[i].part, lines);
    ns += lines[i].floor_ns;
  }
  fmt::print("{:<77} {:>9.3f} ms\n", "step", Ms(ns));
  const Peak peak = PeakOf(program.trace, speed);
  // Tensor-parallel ranks have the same tokens, so this is the rate of one GPU.
  fmt::print("{:.0f} tokens/s; {:.1f}% of {:.0f} TFLOP/s in {}, as its maker says (model FLOPs, causal)\n",
             static_cast<double>(program.tokens_per_step()) / static_cast<double>(spec.tensor_parallel) / ns * 1e9,
             100 * CountFlops(program).model_causal / ns * 1e9 / peak.flops, peak.flops / 1e12, peak.format);
}

}  // namespace ridgeline::engine
