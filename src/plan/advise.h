// What to run of a model on a described device, computed: whether it fits, with which batch, checkpointing and
// precision it is quickest, what bounds it, and what more GPUs or memory would change. Memory is planned, times are
// predicted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predict/clock.h"
#include "predict/device.h"
#include "ridgeline/run.h"
#include "run/presets.h"

namespace ridgeline {

struct AdviceAbout {
  const Preset* model = nullptr;
  int64_t ranks = 1;  // data-parallel, with shard: full where they are several
  int64_t seq_length = 0;
};

struct AdvisedPoint {
  RunSpec spec;
  int64_t peak_bytes = 0;  // of a GPU
  StepForecast step;
  bool fits = false;
};

struct Advice {
  struct Sentence {
    std::string topic;  // "fit", "checkpointing", "batch", "precision", "bound", "GPUs", "memory", "cost"
    std::string text;
    std::string basis;  // "planned", "predicted, extrapolated"
  };
  std::vector<Sentence> sentences;
  std::vector<AdvisedPoint> fitting;  // of all that were tried, the quickest first; empty: nothing fits
};

// Tries each format that the device multiplies, each policy, and batches of powers of two until they no longer fit.
Advice Advise(const AdviceAbout& about, const Device& device);

}  // namespace ridgeline
