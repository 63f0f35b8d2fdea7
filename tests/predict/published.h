// Published figures of other frameworks (published.csv, each with its source), as steps that the clock can price.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "predict/clock.h"
#include "predict/device.h"
#include "predict/known_runs.h"

namespace ridgeline {

struct PublishedRow {
  std::string id, framework, model, gpu, precision, checkpointing, parallelism, compiled, ended, kind, source;
  int64_t gpus = 0;
  int64_t seq_length = 0;
  int64_t batch_size = 0;    // 0: not said
  int64_t global_batch = 0;  // 0: not said
  double tokens_per_s = 0;   // of a GPU; 0: not said
  double peak_bytes = 0;     // of a GPU; 0: not said
};

std::vector<PublishedRow> PublishedRows();

// Why a row is none of a dense model's that data parallelism or FSDP alone trains whole, on a described device; empty:
// it is one.
std::string OutOfScope(const PublishedRow& row);

// A row in scope, or a step of this engine that was measured.
struct PublishedStep {
  PublishedRow row;
  Device device;
  Framework framework;
  RunSpec spec;
  TracedStep traced;
  bool sets = false;  // efficiencies; else it states their error. By a hash of its id.

  // Tokens a second and GPU, predicted / published.
  double Ratio(const Efficiency& efficiency) const;

  // Those that were asked for, by what of the efficiencies counts for this step: each fit asks for many that the others
  // did.
  mutable std::map<std::array<double, 8>, double> ratios = {};
};

RunSpec SpecOfFields(const std::string& fields);  // as a sweep's defaults
PublishedStep StepOf(const PublishedRow& row);
// The rows in scope, each as a step.
std::vector<PublishedStep> PublishedSteps();

// The ten steps of this engine that an H200 ran first (bench/results/h200/gpu.csv), as rows of `ridgeline`.
std::vector<PublishedStep> MeasuredSteps();

// Those that published rows can tell: passes, links and the network bound next to nothing of them, and one is of fp4.
inline constexpr std::array<Share, 4> kSharesOfRows = {&Efficiency::products, &Efficiency::products_fp8,
                                                       &Efficiency::attention, &Efficiency::power};
// Those that steps of one GPU can.
inline constexpr std::array<Share, 4> kSharesOfOneGpu = {&Efficiency::products, &Efficiency::products_fp8,
                                                         &Efficiency::attention, &Efficiency::memory};

// The efficiencies with which these rows are predicted best: the mean of |ln(predicted / published)| is least. Found
// one after another by smaller and smaller steps, the same each time. The others stay as `from` has them.
Efficiency FittedTo(const std::vector<const PublishedStep*>& steps, const std::array<Share, 4>& shares = kSharesOfRows,
                    Efficiency from = {});

// Rows that differ in their GPUs alone, with the same batch on each: from the fewest to the most.
struct Ladder {
  std::vector<const PublishedRow*> rungs;
  std::vector<const PublishedStep*> steps;  // of its rungs; empty: they are out of the clock's scope
  bool sets = false;                        // the straggle; else it states its error

  double Published() const;  // tokens/s of a GPU on the most / on the fewest, less 1
  double Predicted(double straggle) const;
};
std::vector<Ladder> Ladders(const std::vector<PublishedRow>& rows, const std::vector<PublishedStep>& steps);
// The straggle with which the losses of these are predicted best: their mean difference is least.
double StraggleOf(const std::vector<const Ladder*>& ladders);

}  // namespace ridgeline
