#include "engine/cli/print_budget.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/step/budget.h"
#include "engine/step/program.h"

namespace ridgeline {
namespace {

std::string_view NameOf(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kRecompute:
      return "recompute";
    case Phase::kBackward:
      return "backward";
    case Phase::kOptimizer:
      return "optimizer";
  }
  return "";
}

double Ms(double ns) { return ns / 1e6; }

void PrintPart(std::string_view part, const std::vector<BudgetLine>& lines) {
  double ns = 0;
  for (const BudgetLine& line : lines) {
    if (line.part == part) ns += line.floor_ns;
  }
  fmt::print("{:<71} {:>9.3f} ms\n", part.empty() ? "not in the budget" : part, Ms(ns));
  for (const BudgetLine& line : lines) {
    if (line.part != part) continue;
    fmt::print("  {:<21} {:<9} {:>6} {:>9.3f} {:>10.3f} {:>9.3f} {:>9.3f}   {}\n", line.op, NameOf(line.phase),
               line.calls, line.bytes / 1e9, line.scratch_bytes / 1e9, line.flops / 1e12, Ms(line.floor_ns),
               line.reason);
  }
}

}  // namespace

void PrintBudget(RunSpec spec) {
  if (spec.gpu == "none") spec.gpu = "h200";
  if (spec.gpu != "h200") {
    throw Error(ErrorKind::kUsage,
                fmt::format("--budget knows how fast an h200 is described to be, and no {}", spec.gpu),
                "leave gpu out, or say h200");
  }
  const StepProgram program = BuildStep(spec);
  const DeviceSpeed speed;
  const std::vector<BudgetLine> lines = Budget(program.trace, speed);
  fmt::print(
      "{} {} batch {} x {}, checkpointing {}: the least time of a step on an H200 as described, {:.1f} TB/s and\n"
      "{:.0f} TFLOP/s of products in 16 bits. No GPU has run it; what goes to other ranks is not in the times.\n",
      spec.model, spec.precision, spec.batch_size, spec.seq_length, spec.checkpointing, speed.bytes / 1e12,
      speed.flops / 1e12);
  fmt::print("  {:<21} {:<9} {:>6} {:>9} {:>10} {:>9} {:>9}\n", "op", "phase", "calls", "GB", "scratch GB", "TFLOP",
             "ms");
  double ns = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == 0 || lines[i].part != lines[i - 1].part) PrintPart(lines[i].part, lines);
    ns += lines[i].floor_ns;
  }
  fmt::print("{:<71} {:>9.3f} ms\n", "step", Ms(ns));
  fmt::print("{:.0f} tokens/s; {:.1f}% of {:.0f} TFLOP/s (model FLOPs, causal)\n",
             static_cast<double>(program.tokens_per_step()) / ns * 1e9,
             100 * CountFlops(program).model_causal / ns * 1e9 / speed.peak_flops, speed.peak_flops / 1e12);
}

}  // namespace ridgeline
