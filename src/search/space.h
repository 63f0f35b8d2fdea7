// What a search chooses from: the points of a sweep, each with what it is predicted to give and to need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plan/memory.h"
#include "plan/plan.h"
#include "predict/device.h"
#include "run/point.h"
#include "sweep/sweep.h"

namespace ridgeline {

// More than these nobody measures a good part of; memory is predicted of each.
inline constexpr int64_t kMostSearched = 20'000;

struct SearchPoint {
  Point point;
  std::string label;        // its values on the axes that are searched: "batch_size=8 checkpointing=none"
  double tokens_per_s = 0;  // steady, of all ranks, predicted; 0 where only what fits is asked
  double worth = 1;         // objective = tokens/s x this; of `fit`: the objective
  bool fits = true;         // by the predicted memory, as far as it is known what there is
  double share = 0;  // of its memory that it needs, or bytes where nobody knows what there is: what needs as much
                     // as one that ran out of it would, too
  std::vector<double> levels = {};  // its value's place on each axis: of numbers above 0, in doublings
};

// One search: of the points that differ on searched axes alone.
struct SearchSpace {
  std::string label;  // what is the same for all: "model=llama-25m"; empty where every axis is searched
  std::vector<SearchPoint> points;
  std::vector<bool> ordered;  // axis by axis: of numbers, so that neighbours are alike
  double spread = 0;          // standard deviation of the logarithm of predicted over measured
  bool knows_level = false;   // false: predictions tell points apart, and nobody knows how far they are off in all
  std::string basis;          // what times are predicted by, in words: "h100, extrapolated"
};

class SpaceMaker {
 public:
  // `node`: what memory points have; where it names a device, times are that one's, too. `devices`: folders where
  // another's description is looked for (DeviceFolders).
  // `frameworks`: by which points of other trainers are estimated; may be empty.
  SpaceMaker(NodeMemory node, Forecaster forecaster, std::vector<std::filesystem::path> devices,
             std::shared_ptr<const Frameworks> frameworks = {})
      : node_(std::move(node)),
        forecaster_(std::move(forecaster)),
        devices_(std::move(devices)),
        frameworks_(std::move(frameworks)) {}

  // The spaces of the sweep, in the order of their first points; what is predicted once is remembered. REQUIRES: it has
  // a `search`. Throws Error(kInvalidInput) at its place where there is nothing to search or too much, or what is asked
  // needs a device or a price that nothing says.
  std::vector<SearchSpace> Make(const Sweep& sweep);

 private:
  struct Prediction {
    double step_ns = 0;
    double spread = 0;
    bool calibrated = false;
    bool knows_level = false;
  };

  const Device* DeviceOf(const Sweep& sweep, const RunSpec& spec);
  Prediction PredictionOf(const Sweep& sweep, const Point& point, const Launch& launch, const Device* device,
                          const Framework* framework);
  SearchPoint PointOf(const Sweep& sweep, const Point& point, SearchSpace& space);
  const MemoryForecast& MemoryOf(const Point& point);

  const NodeMemory node_;
  const Forecaster forecaster_;
  const std::vector<std::filesystem::path> devices_;
  const std::shared_ptr<const Frameworks> frameworks_;
  std::map<std::string, Device> known_devices_;
  std::map<std::string, MemoryForecast> known_memory_;
  std::map<std::string, Prediction> known_steps_;
};

}  // namespace ridgeline
