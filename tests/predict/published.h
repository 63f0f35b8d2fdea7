// Published figures of other frameworks (published.csv, each with its source), as steps that the clock can price.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "predict/clock.h"
#include "predict/device.h"

namespace ridgeline {

struct PublishedRow {
  std::string id, framework, model, gpu, precision, checkpointing, parallelism, compiled, ended, kind, source;
  int64_t gpus = 0;
  int64_t seq_length = 0;
  int64_t batch_size = 0;    // 0: not said
  int64_t global_batch = 0;  // 0: not said
  double tokens_per_s = 0;   // of a GPU; 0: not said
};

std::vector<PublishedRow> PublishedRows();

// Why a row is none of a dense model's that data parallelism or FSDP alone trains whole, on a described device; empty:
// it is one.
std::string OutOfScope(const PublishedRow& row);

// A row in scope.
struct PublishedStep {
  PublishedRow row;
  Device device;
  Framework framework;
  StepCosts costs;
  bool sets = false;  // efficiencies; else it states their error. By a hash of its id.

  // Tokens a second and GPU, predicted / published.
  double Ratio(const Efficiency& efficiency) const;

  // Those that were asked for, by what of the efficiencies counts for this step: each fit asks for many that the others
  // did.
  mutable std::map<std::array<double, 8>, double> ratios = {};
};

PublishedStep StepOf(const PublishedRow& row);

// The efficiencies with which these rows are predicted best: the mean of |ln(predicted / published)| is least. Found
// one after another by smaller and smaller steps, the same each time.
Efficiency FittedTo(const std::vector<const PublishedStep*>& steps);

}  // namespace ridgeline
