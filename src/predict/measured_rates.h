// Measured times of calls, for the step model: chooses the measurement that counts for a step, and says how far a call
// lies outside the measured range.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "engine/step/call_shape.h"
#include "predict/device.h"

namespace ridgeline::predict {

class MeasuredRates {
 public:
  // REQUIRES: the device has measured calls and outlives this object.
  MeasuredRates(const Device& device, int64_t ranks);

  struct Time {
    double s = 0;
    double beyond = 0;  // CallModel::Time::beyond
  };
  // Nothing if no call of the class was measured.
  std::optional<Time> Of(const engine::CallShape& shape);

  // Figures of the chosen measurement.
  double error() const { return counts_->error; }
  double bias() const { return counts_->bias; }
  double overlap() const { return counts_->overlap; }

 private:
  struct Key {
    engine::CallClass of;
    CallDims dims;
    bool operator==(const Key&) const = default;
  };
  struct HashOfKey {
    size_t operator()(const Key& key) const;
  };
  const CallModel* ModelOf(const engine::CallClass& of);
  std::optional<Time> Compute(const engine::CallShape& shape);

  const Device& device_;
  const MeasuredCalls* counts_ = nullptr;
  double slower_ = 1;  // above 1 if more ranks share the cores than were measured
  std::unordered_map<engine::CallClass, const CallModel*, engine::HashOfClass> models_;
  std::unordered_map<Key, std::optional<Time>, HashOfKey> times_;  // layers repeat
};

}  // namespace ridgeline::predict
