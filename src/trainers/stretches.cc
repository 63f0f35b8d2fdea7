#include "trainers/stretches.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace ridgeline::trainers {
namespace {

constexpr int64_t kMostSteps = 1'000'000'000'000;  // a larger step number is not believed

}  // namespace

std::vector<Stretch> StretchesOf(const std::vector<double>& values, const std::vector<int64_t>& numbers,
                                 int64_t total) {
  std::map<int64_t, double> by_number;  // the later value if a step occurs twice
  for (size_t i = 0; i < values.size(); ++i) {
    if (numbers[i] >= 0 && numbers[i] <= kMostSteps) by_number[numbers[i]] = values[i];
  }
  if (by_number.empty()) return {};
  std::vector<int64_t> gaps;
  for (auto it = std::next(by_number.begin()); it != by_number.end(); ++it) {
    gaps.push_back(it->first - std::prev(it)->first);
  }
  std::nth_element(gaps.begin(), gaps.begin() + std::ssize(gaps) / 2, gaps.end());
  const int64_t first = by_number.begin()->first;
  // A single value may cover all steps up to it.
  const int64_t usual = gaps.empty() ? std::clamp<int64_t>(first, 1, total) : gaps[gaps.size() / 2];
  // Finds whether it counts steps from 0 or from 1: 0, 10, 20 or 9, 19, 29 count from 0.
  const bool from_zero =
      first == 0 || (usual > 1 && !gaps.empty() && (first + 1) % usual == 0 && by_number.rbegin()->first < total);
  int64_t shift = from_zero ? 1 : 0;
  // It continues the count of the run that its weights came from.
  if (by_number.rbegin()->first + shift > total) shift = -std::max<int64_t>(first - usual, 0);
  std::vector<Stretch> stretches;
  int64_t before = 0;
  for (const auto& [number, value] : by_number) {
    Stretch& stretch = stretches.emplace_back();
    stretch.value = value;
    stretch.last = number + shift;
    const bool is_first = stretches.size() == 1;
    stretch.steps = std::clamp<int64_t>(usual, 1, is_first ? stretch.last : stretch.last - before);
    stretch.after = stretch.last - stretch.steps;
    // A program that logs the first step and then every n-th may include the first step in the second mean, too.
    if (stretches.size() == 2 && before == 1) stretch.after = stretch.steps > 1 ? 0 : stretch.after;
    before = stretch.last;
  }
  return stretches;
}

std::vector<Stretch> StretchesOf(const std::vector<double>& values, const std::vector<int64_t>& numbers,
                                 const std::vector<int64_t>& covers) {
  std::vector<Stretch> stretches;
  for (size_t i = 0; i < values.size(); ++i) {
    if (numbers[i] < 0 || numbers[i] > kMostSteps || covers[i] < 1 || covers[i] > kMostSteps) continue;
    stretches.push_back({values[i], numbers[i] - covers[i], numbers[i], covers[i]});
  }
  return stretches;
}

std::vector<Stretch> StretchesOf(const std::vector<double>& values, int64_t total, bool did_all, int64_t writers) {
  std::vector<Stretch> stretches;
  const int64_t count = std::ssize(values);
  const double each = did_all ? std::max(static_cast<double>(total * writers) / static_cast<double>(count), 1.0) : 1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t turn = i / writers;
    stretches.push_back({values[static_cast<size_t>(i)], static_cast<int64_t>(static_cast<double>(turn) * each),
                         static_cast<int64_t>(static_cast<double>(turn + 1) * each), 1});
  }
  if (did_all && count == 1) stretches.front().steps = total;
  return stretches;
}

}  // namespace ridgeline::trainers
