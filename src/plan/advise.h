// What to run of a model on a described device, computed: whether it fits, with which batch, checkpointing and
// precision it is quickest, what bounds it, and what more GPUs or memory, or other state, would change. Memory is
// planned, times are predicted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "predict/clock.h"
#include "predict/device.h"
#include "ridgeline/run.h"

namespace ridgeline {

struct AdviceAbout {
  Json model;                            // a spec's fields that say which model: {"model": "llama-8b"}, or a shape
  int64_t ranks = 1;                     // data-parallel, with shard: full where they are several
  int64_t seq_length = 0;                // tokens
  std::string state_precision = "fp32";  // of master weights and moments
  double grad_clip = 1;                  // the largest norm of gradients; 0: none
};

struct AdvisedPoint {
  RunSpec spec;
  int64_t peak_bytes = 0;  // of a GPU
  StepForecast step;
  bool fits = false;
};

struct Advice {
  struct Sentence {
    std::string
        topic;  // "fit", "remedy", "quickest", "checkpointing", "batch", "bound", "state", "GPUs", "memory", "cost"
    std::string text;
    std::string basis;  // "planned", "predicted, extrapolated"
  };
  std::vector<Sentence> sentences;
  std::vector<AdvisedPoint> fitting;  // of all that were tried, the quickest first; empty: nothing fits
};

// Tries each format that the device multiplies, each policy, and batches: powers of two that fit, and the largest that
// does. Throws Error(kInvalidInput) for a model that no step is known of.
Advice Advise(const AdviceAbout& about, const Device& device);

}  // namespace ridgeline
