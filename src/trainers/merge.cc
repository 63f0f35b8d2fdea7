#include "trainers/merge.h"

#include <algorithm>
#include <cmath>

namespace ridgeline::trainers {

double Merged(double first, double other, OfRanks how) {
  if (std::isnan(first) || how == OfRanks::kFirst) return first;
  if (std::isnan(other)) return other;
  return how == OfRanks::kLargest ? std::max(first, other) : std::min(first, other);
}

StepValues MergeRanks(const StepValues& first, const StepValues& other, OfRanks how) {
  if (first.values.empty() || other.values.empty()) return first.values.empty() ? other : first;
  StepValues merged;
  const bool by_step = !first.steps.empty() && !other.steps.empty();
  if (!by_step) {
    const StepValues& longer = first.values.size() >= other.values.size() ? first : other;
    merged = longer;
    const size_t both = std::min(first.values.size(), other.values.size());
    for (size_t i = 0; i < both; ++i) merged.values[i] = Merged(first.values[i], other.values[i], how);
    return merged;
  }
  const auto add = [&](int64_t step, double value) {
    merged.steps.push_back(step);
    merged.values.push_back(value);
  };
  size_t i = 0;
  size_t j = 0;
  while (i < first.steps.size() || j < other.steps.size()) {
    if (j == other.steps.size() || (i < first.steps.size() && first.steps[i] < other.steps[j])) {
      add(first.steps[i], first.values[i]);
      ++i;
    } else if (i == first.steps.size() || other.steps[j] < first.steps[i]) {
      add(other.steps[j], other.values[j]);
      ++j;
    } else {
      add(first.steps[i], Merged(first.values[i], other.values[j], how));
      ++i;
      ++j;
    }
  }
  return merged;
}

}  // namespace ridgeline::trainers
