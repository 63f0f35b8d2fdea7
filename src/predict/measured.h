// How long calls take on a device by calls that were measured there: what `ridgeline calibrate` wrote of it.
//
// Of the calls of one class (engine/step/call_shape.h) a beginning and a rate are fitted, and what the dimensions
// change of that is interpolated between the measured ones: kriging (Matheron, 1963) of the logarithm of the time over
// the logarithms of the dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

using CallDims = std::array<int64_t, 3>;  // as CallShape has them; what is not there is 0

struct MeasuredCall {
  CallDims dims = {};
  double ns = 0;
};

// What is fitted to the calls of a class takes the third power of their number.
inline constexpr size_t kMostCallsOfClass = 256;

// The calls of one class.
class CallModel {
 public:
  // `name`: the class's. At least one call, each with as many dimensions and no others.
  CallModel(std::string_view name, std::vector<MeasuredCall> calls);

  struct Time {
    double ns = 0;
    double beyond = 0;  // how far outside of the measured dimensions it lies: e^beyond times; 0: between them
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
  size_t count_ = 0;  // of dimensions
  std::vector<MeasuredCall> calls_;
  std::vector<Features> features_;
  Features least_ = {}, most_ = {};
  double begin_ns_ = 0;
  double ns_per_work_ = 0;
  std::vector<double> weights_;  // of the kernel around each call
};

// What was measured of as many ranks as share a machine's cores, or of one on a GPU.
struct MeasuredCalls {
  int64_t ranks = 1;
  double error = 0;  // standard deviation of ln(measured / predicted), of steps that were predicted from other programs
  double bias = 1;   // what a step takes, by what its calls do
  double overlap = 1;  // the part of a collective's time in which calls go on as if it were not there
  int64_t programs = 0;
  std::map<std::string, CallModel, std::less<>> classes;
};

}  // namespace ridgeline
