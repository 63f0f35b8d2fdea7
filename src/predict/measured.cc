#include "predict/measured.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "stats/cholesky.h"

namespace ridgeline::predict {
namespace {

// kRange: the correlation length of differences from the trend, in e-folds of the dimensions. kNoise: the share of
// their variance that is taken for noise.
constexpr double kRange = 4;
constexpr double kNoise = 0.03;
// Rows twice as long change the time less than twice as many rows.
constexpr double kColumnsWeight = 0.5;

// The Matérn kernel that is once differentiable.
double Kernel(double distance) {
  const double scaled = std::sqrt(3.0) * distance / kRange;
  return (1 + scaled) * std::exp(-scaled);
}

double Distance(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  const double x = a[0] - b[0];
  const double y = a[1] - b[1];
  const double z = a[2] - b[2];
  return std::sqrt(x * x + y * y + z * z);
}

}  // namespace

CallModel::CallModel(std::string_view name, std::vector<MeasuredCall> calls)
    : attention_(name.starts_with("attention")), calls_(std::move(calls)) {
  const CallDims& first = calls_.front().dims;
  count_ = static_cast<size_t>(std::ranges::count_if(first, [](int64_t dim) { return dim > 0; }));
  least_.fill(std::numeric_limits<double>::infinity());
  most_.fill(-std::numeric_limits<double>::infinity());
  for (const MeasuredCall& call : calls_) {
    const Features& features = features_.emplace_back(FeaturesOf(call.dims));
    for (size_t i = 0; i < features.size(); ++i) {
      least_[i] = std::min(least_[i], features[i]);
      most_[i] = std::max(most_[i], features[i]);
    }
  }
  FitTrend();
  FitResiduals();
}

CallModel::Features CallModel::FeaturesOf(const CallDims& dims) const {
  Features features = {};
  for (size_t i = 0; i < count_; ++i) features[i] = std::log(static_cast<double>(std::max<int64_t>(dims[i], 1)));
  if (count_ == 2) features[1] *= kColumnsWeight;
  return features;
}

double CallModel::WorkOf(const CallDims& dims) const {
  const auto a = static_cast<double>(dims[0]);
  if (count_ < 3) return a;
  const double all = a * static_cast<double>(dims[1]) * static_cast<double>(dims[2]);
  return attention_ ? all * static_cast<double>(dims[1]) : all;
}

// Tries start-up times that are shares of the shortest call. For each it fits the rate that minimizes the squared
// error of the logarithms. Takes the best of these.
void CallModel::FitTrend() {
  double shortest = std::numeric_limits<double>::infinity();
  for (const MeasuredCall& call : calls_) shortest = std::min(shortest, call.ns);
  double best = std::numeric_limits<double>::infinity();
  for (const double share : {0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97}) {
    const double begin = share * shortest;
    double rate = 0;  // its logarithm; starts as if all time beyond `begin` were work
    for (const MeasuredCall& call : calls_) {
      rate += std::log((call.ns - begin) / WorkOf(call.dims)) / static_cast<double>(calls_.size());
    }
    double error = 0;
    for (int round = 0; round < 8; ++round) {  // Gauss-Newton
      double gradient = 0;
      double curvature = 1e-12;
      error = 0;
      for (const MeasuredCall& call : calls_) {
        const double work = WorkOf(call.dims) * std::exp(rate);
        const double residual = std::log(call.ns / (begin + work));
        const double slope = work / (begin + work);
        gradient += residual * slope;
        curvature += slope * slope;
        error += residual * residual;
      }
      rate += std::clamp(gradient / curvature, -2.0, 2.0);
    }
    if (error < best) {
      best = error;
      begin_ns_ = begin;
      ns_per_work_ = std::exp(rate);
    }
  }
}

void CallModel::FitResiduals() {
  const size_t n = calls_.size();
  std::vector<double> covariance(n * n);
  std::vector<double> residuals(n);
  for (size_t i = 0; i < n; ++i) {
    residuals[i] = std::log(calls_[i].ns / TrendNs(WorkOf(calls_[i].dims)));
    for (size_t j = 0; j < n; ++j) covariance[i * n + j] = Kernel(Distance(features_[i], features_[j]));
    covariance[i * n + i] += kNoise;
  }
  const stats::Cholesky cholesky(std::move(covariance), n);
  cholesky.SolveLower(residuals);
  cholesky.SolveUpper(residuals);
  weights_ = std::move(residuals);
}

CallModel::Time CallModel::At(const CallDims& dims) const {
  const Features features = FeaturesOf(dims);
  double residual = 0;
  for (size_t i = 0; i < weights_.size(); ++i) residual += weights_[i] * Kernel(Distance(features, features_[i]));
  double beyond = 0;
  for (size_t i = 0; i < count_; ++i) {
    const double outside = std::max({0.0, least_[i] - features[i], features[i] - most_[i]});
    beyond += outside * outside;
  }
  return {TrendNs(WorkOf(dims)) * std::exp(residual), std::sqrt(beyond)};
}

}  // namespace ridgeline::predict
