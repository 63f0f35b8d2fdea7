// The points that a search chooses from, each with its predicted objective and memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plan/memory_limit.h"
#include "plan/plan.h"
#include "predict/device.h"
#include "run/point.h"
#include "sweep/sweep.h"

namespace ridgeline::search {

// The most points of a search. Memory is predicted for each, and nobody measures a good part of more.
inline constexpr int64_t kMostSearched = 20'000;

struct SearchPoint {
  Point point;
  std::string label;        // its values on the searched axes: "batch_size=8, checkpointing=none"
  double tokens_per_s = 0;  // predicted, steady, of all ranks; 0 for the objective `fit`
  double worth = 1;         // objective = tokens/s * worth; for `fit`: the objective itself
  bool fits = true;         // by predicted memory; true if the available memory is not known
  double share = 0;  // needed share of the available memory, or needed bytes if that is not known. If a point runs out
                     // of memory, so do all with as large a share
  std::vector<double> levels = {};  // its place on each axis; of positive numbers, their log2
};

// One search, over points that differ only on the searched axes.
struct SearchSpace {
  std::string label;  // the values of the other axes: "model=llama-25m"; empty if all axes are searched
  std::vector<SearchPoint> points;
  std::vector<bool> ordered;  // per axis: it has numbers, so neighbours are similar
  double spread = 0;          // standard deviation of ln(predicted / measured)
  bool knows_level = false;   // false: predictions only rank points; their common factor is unknown
  std::string basis;          // how times are predicted, in words: "h100, extrapolated"
};

class SpaceMaker {
 public:
  // `node`: the memory of points; if it names a device, times are that device's, too. `devices`: folders with device
  // descriptions (DeviceFolders). `frameworks`: for the estimates of other trainers' points; may be empty.
  SpaceMaker(plan::NodeMemory node, plan::Forecaster forecaster, std::vector<std::filesystem::path> devices,
             std::shared_ptr<const predict::Frameworks> frameworks = {})
      : node_(std::move(node)),
        forecaster_(std::move(forecaster)),
        devices_(std::move(devices)),
        frameworks_(std::move(frameworks)) {}

  // Returns the spaces of the sweep, in the order of their first points. Remembers predictions. REQUIRES: the sweep has
  // a `search`. Throws Error(kInvalidInput) at its place if there are no points or too many, or if the objective needs
  // a device or a price that is not given.
  std::vector<SearchSpace> Make(const sweep::Sweep& sweep);

 private:
  struct Prediction {
    double step_ns = 0;
    double spread = 0;
    bool calibrated = false;
    bool knows_level = false;
  };

  const predict::Device* DeviceOf(const sweep::Sweep& sweep, const RunSpec& spec);
  Prediction PredictionOf(const sweep::Sweep& sweep, const Point& point, const sweep::Launch& launch,
                          const predict::Device* device, const predict::Framework* framework);
  SearchPoint PointOf(const sweep::Sweep& sweep, const Point& point, SearchSpace& space);
  const predict::MemoryForecast& MemoryOf(const Point& point);

  const plan::NodeMemory node_;
  const plan::Forecaster forecaster_;
  const std::vector<std::filesystem::path> devices_;
  const std::shared_ptr<const predict::Frameworks> frameworks_;
  std::map<std::string, predict::Device> known_devices_;
  std::map<std::string, predict::MemoryForecast> known_memory_;
  std::map<std::string, Prediction> known_steps_;
};

}  // namespace ridgeline::search
