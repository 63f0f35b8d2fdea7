// How certain a median of repeated measurements is, and so which differences are significant. Deterministic: the same
// numbers give the same result on every machine and at every call.
//
// The standard error comes from a bootstrap. With several runs, whole runs are drawn with replacement, because values
// of one run are more alike than values of two. With a single run, circular blocks of 2 n^(1/3) - 1 neighbouring values
// are drawn (Politis and Romano, 1992), which keeps the correlation of neighbours. The standard error is the standard
// deviation of the logarithms of the drawn medians. Few blocks make it too small by sqrt(1 - 1 / blocks), which is
// corrected, and uncertain, for which Student's t widens the interval. A comparison of two medians has Welch's degrees
// of freedom. tests/stats measures how often such intervals hold the true value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ridgeline::stats {

// The median of at least one value. Reorders the values.
double MedianOf(std::span<double> values);

// A standard deviation that outliers hardly change: 1.4826 times the median distance from the median (Hampel, 1974).
// 0 for no values.
double RobustSigma(std::span<const double> values);

// A median, or a ratio of two medians. Its error is that of the logarithm, in which a ratio is a difference.
struct Estimate {
  double value = 0;           // in the values' unit
  double standard_error = 0;  // of the value's natural logarithm
  double freedom = 0;         // degrees of freedom of the standard error; at least 1
};

// The median of all values of the runs, each in the order of measurement. Nothing if there are fewer than four values,
// or a value is not positive.
std::optional<Estimate> EstimateMedian(std::span<const std::vector<double>> runs);

Estimate Ratio(const Estimate& of, const Estimate& to);

// The 95 % interval goes from value / factor to value * factor; the factor is at least 1. A ratio differs significantly
// from 1 if it is above the factor or below its inverse.
double Factor(const Estimate& estimate);

// How many repeats in all would bring the factor down to `wanted` (above 1), if they vary as these do.
int64_t RepeatsFor(const Estimate& estimate, int64_t repeats, double wanted);

}  // namespace ridgeline::stats
