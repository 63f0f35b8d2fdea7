// Times of calls as they were measured on a device, for the clock: which measurement counts for a step, and what of it
// lies beyond what was measured.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "engine/step/call_shape.h"
#include "predict/device.h"

namespace ridgeline {

class MeasuredRates {
 public:
  // The device has some, and outlives it.
  MeasuredRates(const Device& device, int64_t ranks);

  struct Time {
    double s = 0;
    double beyond = 0;  // CallModel::Time::beyond
  };
  // Nothing where no call of the class was measured.
  std::optional<Time> Of(const CallShape& shape);

  // Of the measurement that counts.
  double error() const { return counts_->error; }
  double bias() const { return counts_->bias; }
  double overlap() const { return counts_->overlap; }

 private:
  struct Key {
    CallClass of;
    CallDims dims;
    bool operator==(const Key&) const = default;
  };
  struct HashOfKey {
    size_t operator()(const Key& key) const;
  };
  const CallModel* ModelOf(const CallClass& of);
  std::optional<Time> Compute(const CallShape& shape);

  const Device& device_;
  const MeasuredCalls* counts_ = nullptr;
  double slower_ = 1;  // where more ranks share the cores than any that were measured
  std::unordered_map<CallClass, const CallModel*, HashOfClass> models_;
  std::unordered_map<Key, std::optional<Time>, HashOfKey> times_;  // layers repeat
};

}  // namespace ridgeline
