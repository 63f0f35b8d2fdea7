// Holds rates (tokens/s) and step times of one log against each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/reading.h"

namespace ridgeline::trainers {

// Relative difference allowed between two rates, as for a result's own figures (docs/trainer-contract.md).
inline constexpr double kRatesAgree = 0.05;

// Relative rounding error of a printed figure: one half for 0.1.
double RoundedShare(const FoundMetric& found);

// Whether it is a mean rate since the start of the run, as with `take: last`. Such a rate is not steady.
bool IsMeanRate(const FoundMetric& found);

// Why a mean rate of `all_ranks` tokens/s contradicts the step times, in words: it is faster than the fastest step. It
// may be slower than every logged step, because it includes the others. Empty if there is no contradiction.
std::string MeanRateAgainstTimes(const FoundMetric& rate, double all_ranks, const FoundMetric& times,
                                 int64_t tokens_per_step);

// Why a rate of all ranks among `found` contradicts the step times, in words: its median differs from tokens per step /
// median step time. Empty if there is no contradiction.
std::string RateOfAllAgainstTimes(const std::vector<FoundMetric>& found, int64_t tokens_per_step);

}  // namespace ridgeline::trainers
