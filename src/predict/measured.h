// Predicts how long calls take on a device from calls that `ridgeline calibrate` measured there.
//
// For each class of calls (engine/step/call_shape.h) a start-up time and a rate are fitted. The remaining dependence on
// the dimensions is interpolated: kriging (Matheron, 1963) of ln(time) over the logarithms of the dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::predict {

using CallDims = std::array<int64_t, 3>;  // as in CallShape; missing ones are 0

struct MeasuredCall {
  CallDims dims = {};
  double ns = 0;
};

// Fitting a class takes time with the third power of its number of calls.
inline constexpr size_t kMostCallsOfClass = 256;

// The calls of one class.
class CallModel {
 public:
  // `name`: that of the class. REQUIRES: at least one call, all with the same dimensions in use.
  CallModel(std::string_view name, std::vector<MeasuredCall> calls);

  struct Time {
    double ns = 0;
    double beyond = 0;  // it lies outside the measured dimensions by the factor e^beyond; 0: within
  };
  Time At(const CallDims& dims) const;

  std::span<const MeasuredCall> calls() const { return calls_; }
  size_t dims() const { return count_; }

 private:
  using Features = std::array<double, 3>;
  Features FeaturesOf(const CallDims& dims) const;
  double WorkOf(const CallDims& dims) const;
  double TrendNs(double work) const { return begin_ns_ + work * ns_per_work_; }
  void FitTrend();
  void FitResiduals();

  bool attention_ = false;
  size_t count_ = 0;  // number of dimensions
  std::vector<MeasuredCall> calls_;
  std::vector<Features> features_;
  Features least_ = {}, most_ = {};
  double begin_ns_ = 0;
  double ns_per_work_ = 0;
  std::vector<double> weights_;  // the kernel's weight at each call
};

// A step far beyond its calls was measured while something else had the machine.
inline constexpr double kLeastBias = 0.1;
inline constexpr double kMostBias = 10;

// Measurements with so many ranks on a machine's cores, or with one rank on a GPU.
struct MeasuredCalls {
  int64_t ranks = 1;
  double error = 0;    // standard deviation of ln(measured / predicted) of steps predicted from other programs
  double bias = 1;     // step time / sum of its calls' times
  double overlap = 1;  // share of a collective's time in which other calls run at full speed
  int64_t programs = 0;
  std::map<std::string, CallModel, std::less<>> classes;
};

}  // namespace ridgeline::predict
