// How far a median of repeated measurements can be trusted, and so which differences are none. Numbers in, numbers out:
// the same on every machine and at every call.
//
// The uncertainty is a bootstrap's. Where there are several runs, whole runs are drawn with replacement, since values
// of one run have more in common than those of two. Of a single run, circular blocks of neighbouring values are drawn
// (Politis and Romano, 1992), of 2 n^(1/3) - 1 values, which keeps what neighbours share. The spread of the drawn
// medians' logarithms is their standard error; few blocks make it too small by sqrt(1 - 1 / blocks), which is put
// right, and uncertain, for which Student's t has the factor, with Welch's degrees of freedom where two medians are
// compared.
// tests/stats says how often such intervals hold what is true.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ridgeline {

// Of at least one value; reorders them.
double MedianOf(std::span<double> values);

// The standard deviation of values that are normal but for some far out: 1.4826 times the median distance from their
// median (Hampel, 1974). 0 of none.
double RobustSigma(std::span<const double> values);

// A median, or a ratio of two. On the scale of logarithms, where a ratio is a difference.
struct Estimate {
  double value = 0;           // in the values' unit
  double standard_error = 0;  // of the value's natural logarithm
  double freedom = 0;         // degrees of freedom of the standard error; at least 1
};

// Of all values of the runs, each in the order it came. Nothing where there is too little to say how they vary (fewer
// than four values), or a value is not positive.
std::optional<Estimate> EstimateMedian(std::span<const std::vector<double>> runs);

Estimate Ratio(const Estimate& of, const Estimate& to);

// What the value is multiplied with and divided by for the ends of its interval of 95 %: at least 1. A ratio is told
// from 1 where it is larger than this factor, or smaller than its inverse.
double Factor(const Estimate& estimate);

// How many repeats, instead of these, would bring the factor down to `wanted` (above 1), if they varied as these did.
int64_t RepeatsFor(const Estimate& estimate, int64_t repeats, double wanted);

}  // namespace ridgeline
