// Computes what to run of a model on a described device. Says whether it fits. Finds the quickest, the cheapest and the
// smallest way to split, multiply, recompute and batch. Also says what bounds it, how many days and dollars it takes,
// and what more GPUs, other GPUs, more memory or other state would change. Memory is planned, and times are predicted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/configurations.h"

namespace ridgeline::plan {

struct AdviceAbout {
  TrainedModel trained;
  int64_t ranks = 1;      // data-parallel ranks; with a budget, the ranks that it is to pay for
  double tokens = 0;      // number of tokens to train on
  double budget_usd = 0;  // for that training; 0: the ranks are given
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
  int64_t ranks = 1;  // number of ranks that it is about
  // Everything that fits, the quickest first. Only the first has its memory. Empty: nothing fits.
  std::vector<AdvisedPoint> fitting;
  std::optional<AdvisedPoint> cheapest;  // also among fewer machines; nothing without a price
  std::optional<AdvisedPoint> smallest;  // the point with the least memory
};

// `others`: devices on which the same model is tried. Throws Error(kInvalidInput) for a model whose step is not known,
// and for a budget on a device without a price.
Advice Advise(const AdviceAbout& about, const predict::Device& device, const predict::Framework& framework = {},
              const std::vector<predict::Device>& others = {});

// Returns a sweep that measures the best of what fits, and what is near it. `trainer`: a definition's name, or ours.
// `fields`: what else its points say, such as values without which the trainer refuses them.
std::string SweepOfAdvice(const Advice& advice, const AdviceAbout& about, const predict::Device& device,
                          const std::string& trainer, const Json& fields = Json::object());

}  // namespace ridgeline::plan
