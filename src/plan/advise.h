// What to run of a model on a described device, computed: whether it fits; of what can be split, multiplied, computed
// again and batched the quickest way, the cheapest and the one with the least memory; what bounds it; days and dollars;
// and what more GPUs, other ones, more memory or other state would change. Memory is planned, times are predicted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/configurations.h"

namespace ridgeline {

struct AdviceAbout {
  TrainedModel trained;
  int64_t ranks = 1;      // data-parallel; with a budget what it is to pay for
  double tokens = 0;      // to train on
  double budget_usd = 0;  // for that; 0: the ranks are given
};

struct Advice {
  struct Sentence {
    // "fit", "remedy", "budget", "fastest", "checkpointing", "shard", "batch", "bound", "state", "GPUs", "machine",
    // "memory", "tokens"
    std::string topic;
    std::string text;
    std::string basis;  // "planned", "predicted, extrapolated", "estimated as …"
  };
  std::vector<Sentence> sentences;
  int64_t ranks = 1;  // that it is of
  // All that fits, the quickest first; its memory is asked of the first. Empty: nothing fits.
  std::vector<AdvisedPoint> fitting;
  std::optional<AdvisedPoint> cheapest;  // of fewer machines, too; nothing without a price
  std::optional<AdvisedPoint> smallest;  // with the least memory
};

// `others`: devices that the same model is tried on. Throws Error(kInvalidInput) for a model that no step is known of,
// and for a budget on a device without a price.
Advice Advise(const AdviceAbout& about, const Device& device, const Framework& framework = {},
              const std::vector<Device>& others = {});

// A sweep that measures the best of what fits, and what is near it. `trainer`: a definition's name, or ours.
std::string SweepOfAdvice(const Advice& advice, const AdviceAbout& about, const Device& device,
                          const std::string& trainer);

}  // namespace ridgeline
