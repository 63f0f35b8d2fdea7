// What tokens a second and the times of steps in one log say of each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/reading.h"

namespace ridgeline {

// By which share a rate may differ from one that follows, as of a result's own figures (docs/trainer-contract.md).
inline constexpr double kRatesAgree = 0.05;

// By which share of it a figure may be off, as it is rounded: half of one that is printed as 0.1.
double RoundedShare(const FoundMetric& found);

// Whether it is a rate of the whole run so far, as `take: last` of it says: a mean since the start, which is no steady
// one.
bool IsMeanRate(const FoundMetric& found);

// What contradicts such a rate, `all_ranks` tokens/s: a mean is not faster than the fastest step. It may be slower than
// every step that was logged, as it has the others, too. Empty where nothing does.
std::string MeanRateAgainstTimes(const FoundMetric& rate, double all_ranks, const FoundMetric& times,
                                 int64_t tokens_per_step);

// What contradicts a rate of all ranks among `found`: one of steps differs from the step's tokens over its time,
// medians both. Empty where nothing does.
std::string RateOfAllAgainstTimes(const std::vector<FoundMetric>& found, int64_t tokens_per_step);

}  // namespace ridgeline
