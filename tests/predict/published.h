// Published figures of other frameworks (published.csv, each with its source), as steps that the step model can price.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "predict/device.h"
#include "predict/known_runs.h"
#include "predict/step_model.h"

namespace ridgeline::predict {

struct PublishedRow {
  std::string id, framework, model, gpu, precision, checkpointing, parallelism, compiled, ended, kind, source;
  int64_t gpus = 0;
  int64_t seq_length = 0;
  int64_t batch_size = 0;    // 0: not stated
  int64_t global_batch = 0;  // 0: not stated
  double tokens_per_s = 0;   // of one GPU; 0: not stated
  double peak_bytes = 0;     // of one GPU; 0: not stated
};

std::vector<PublishedRow> PublishedRows();

// Why a row is out of scope: rows in scope are of a dense model that only data parallelism or FSDP trains whole, on a
// described device. Empty: it is in scope.
std::string OutOfScope(const PublishedRow& row);

// A row in scope, or a measured step of this engine.
struct PublishedStep {
  PublishedRow row;
  Device device;
  Framework framework;
  RunSpec spec;
  TracedStep traced;
  bool sets = false;  // whether it sets efficiencies or states their error, by a hash of its id

  // Tokens a second of one GPU, predicted / published.
  double Ratio(const Efficiency& efficiency) const;

  // Cache of computed ratios, keyed by the efficiencies that count for this step: fits ask for many ratios repeatedly.
  mutable std::map<std::array<double, 8>, double> ratios = {};
};

RunSpec SpecOfFields(const std::string& fields);  // as a sweep's defaults
PublishedStep StepOf(const PublishedRow& row);
// The rows in scope, each as a step.
std::vector<PublishedStep> PublishedSteps();

// The ten steps of this engine that an H200 ran first (bench/results/h200/gpu.csv), as rows of `ridgeline`.
std::vector<PublishedStep> MeasuredSteps();

// The shares that published rows can determine. Passes, links and the network limit almost none of them, and one is of
// fp4.
inline constexpr std::array<Share, 4> kSharesOfRows = {&Efficiency::products, &Efficiency::products_fp8,
                                                       &Efficiency::attention, &Efficiency::power};
// The shares that steps of one GPU can determine.
inline constexpr std::array<Share, 4> kSharesOfOneGpu = {&Efficiency::products, &Efficiency::products_fp8,
                                                         &Efficiency::attention, &Efficiency::memory};

// The efficiencies that predict these rows best: the mean of |ln(predicted / published)| is smallest. The search
// changes one after another by ever smaller steps, in the same way each time. The others keep the values of `from`.
Efficiency FittedTo(const std::vector<const PublishedStep*>& steps, const std::array<Share, 4>& shares = kSharesOfRows,
                    Efficiency from = {});

// Rows that differ only in their number of GPUs, with the same batch on each: from the fewest to the most.
struct Ladder {
  std::vector<const PublishedRow*> rungs;
  std::vector<const PublishedStep*> steps;  // of its rungs; empty: the rungs are out of the step model's scope
  bool sets = false;                        // whether it sets the straggle or states its error

  double Published() const;  // tokens/s of one GPU on the most / on the fewest, less 1
  double Predicted(double straggle) const;
};
std::vector<Ladder> Ladders(const std::vector<PublishedRow>& rows, const std::vector<PublishedStep>& steps);
// The straggle that predicts the losses of these best: their mean difference is smallest.
double StraggleOf(const std::vector<const Ladder*>& ladders);

}  // namespace ridgeline::predict
