// The trainer: one RunSpec in, one RunResult out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/step/timeline.h"
#include "engine/train/training_device.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// Returns the learning rate of a step (counting from 1) of `total`: linear warm-up, then constant or a cosine down to
// learning_rate_min (Loshchilov & Hutter, "SGDR", 2017).
double LearningRate(const RunSpec& spec, int64_t step, int64_t total);

struct StepReport {
  int64_t step = 0;  // counts from 1
  int64_t total = 0;
  int64_t step_ns = 0;
  double loss = 0;
  double tokens_per_s = 0;  // of this step, over all ranks
};

struct TrainOptions {
  std::vector<std::string> command_line;
  std::function<void(int64_t total)> on_begin;      // before its steps, when its ranks have met; may be empty
  std::function<void(const StepReport&)> on_step;   // after every step; may be empty
  std::function<void(const std::string&)> on_note;  // anything else worth a line; may be empty
  // Checkpoint files to continue from, as a person named them; empty: the newest complete ones in the spec's
  // checkpoint_dir.
  std::filesystem::path resume;
  // Asked between steps: true once the process was told to leave. Then the state is saved, and the end is `preempted`.
  std::function<bool()> told_to_leave;
  bool profile = false;
  // How long steps are run, and thrown away, before the run begins; and how long is measured at least, in blocks of the
  // spec's steps. On a GPU the spec's settings, by which clocks settle.
  double warmup_seconds = 0;
  double measured_seconds = 0;
  DeviceMaker open_cuda;  // empty: this program has no CUDA device
  DeviceOptions device;
};

// One op's share of the measured steps, for --profile.
struct OpProfile {
  std::string name;
  int64_t calls = 0;  // per step
  int64_t ns = 0;     // per step
  double flops = 0;   // per step
  double bytes = 0;   // per step
};

struct TrainOutcome {
  RunResult result;
  std::vector<OpProfile> profile;  // sorted by time; empty unless asked for
  Timeline timeline;               // the mean of the measured steps; empty unless the profile was asked for
};

// Trains and measures, as the rank that the environment gives this process. Every rank returns the same loss series,
// and rank 0 the figures of all. Never throws for a run's possible ends: a spec that cannot run, too little memory,
// checkpoint files of another run and a loss that stops being finite are results, with evidence. `device: meta` only
// plans, and says predicted. A continued run has the whole loss series, and says where it continued.
TrainOutcome Train(const RunSpec& spec, const TrainOptions& options);

}  // namespace ridgeline::engine
