#include "trainers/step_series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "stats/median.h"
#include "trainers/merge.h"

namespace ridgeline::trainers {
namespace {

constexpr double kMostNs = 4e18;  // from a moment to the first one, at most
// A time should span this many resolutions. Printed moments are off by less than one resolution, so each time is off by
// less than 1/50. The median of many is off by at most half of that: times are rounded to the two neighbours, and more
// of them to the nearer one.
constexpr double kFine = 50;
constexpr double kFewTimes = 3;  // at least, however coarse they are

bool AllHaveSteps(const std::vector<Sample>& samples) {
  return std::all_of(samples.begin(), samples.end(), [](const Sample& sample) { return sample.has_step; });
}

// Returns each rank's samples, the lowest rank's first.
std::vector<std::pair<std::string, std::vector<Sample>>> ByRank(const std::vector<Sample>& samples,
                                                                const std::vector<std::string>& ranks) {
  std::vector<std::pair<std::string, std::vector<Sample>>> streams;
  streams.reserve(ranks.size());
  for (const std::string& rank : ranks) streams.emplace_back(rank, std::vector<Sample>());
  for (const Sample& sample : samples) streams[sample.rank].second.push_back(sample);
  std::erase_if(streams, [](const auto& stream) { return stream.second.empty(); });
  std::sort(streams.begin(), streams.end(), [](const auto& a, const auto& b) { return IsLowerRank(a.first, b.first); });
  return streams;
}

// Returns the usual distance from one step to the next.
int64_t DistanceOf(const std::vector<Sample>& samples) {
  std::vector<int64_t> distances;
  for (size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].step > samples[i - 1].step) distances.push_back(samples[i].step - samples[i - 1].step);
  }
  if (distances.empty()) return 1;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

void AddTo(StepValues& pass, const Sample& sample, OfRanks how) {
  const auto at = std::lower_bound(pass.steps.begin(), pass.steps.end(), sample.step);
  const auto place = at - pass.steps.begin();
  if (at != pass.steps.end() && *at == sample.step) {
    double& value = pass.values[static_cast<size_t>(place)];
    value = Merged(value, sample.value, how);
  } else {
    pass.steps.insert(at, sample.step);
    pass.values.insert(pass.values.begin() + place, sample.value);
  }
}

// Splits a stream into parts in which steps grow. `named`: all samples are of one rank, so any smaller step starts a
// part.
std::vector<StepValues> PassesOf(const std::vector<Sample>& samples, bool named, OfRanks how) {
  std::vector<StepValues> passes;
  const int64_t back = named ? 0 : DistanceOf(samples);
  for (const Sample& sample : samples) {
    const bool anew = !passes.empty() && sample.step < passes.back().steps.back() - back;
    if (passes.empty() || anew) passes.emplace_back();
    AddTo(passes.back(), sample, how);
  }
  return passes;
}

// Removes the copies of lines that several ranks print alike. All lines have equally many copies, except the last ones
// of a run that was ended.
std::vector<Sample> WithoutTwins(const std::vector<Sample>& samples, const SeriesFacts& facts) {
  std::unordered_map<uint64_t, int64_t> counts;
  std::vector<Sample> firsts;
  for (const Sample& sample : samples) {
    if (++counts[sample.line] == 1) firsts.push_back(sample);
  }
  const int64_t copies = counts.empty() ? 0 : counts[firsts.front().line];
  const auto distinct = static_cast<int64_t>(firsts.size());
  if (copies < 2 || distinct < 2 || (distinct - 1) * (copies - 1) < 2 || copies > facts.ranks.value_or(copies)) {
    return samples;
  }
  for (const Sample& first : firsts) {
    const int64_t count = counts[first.line];
    const bool is_last = &first == &firsts.back();
    if (is_last ? count > copies : count != copies) return samples;
  }
  return firsts;
}

// Whether each pass is all that one of several ranks printed, one rank after the other.
bool AreRanks(const std::vector<StepValues>& passes, int64_t distance, const SeriesFacts& facts) {
  if (!facts.ranks || !facts.steps || std::ssize(passes) > *facts.ranks) return false;
  const std::vector<int64_t>& steps = passes.front().steps;
  const int64_t first = std::min<int64_t>(steps.front(), 1);  // its steps begin at 0, or at 1
  if (steps.back() + 1 - first < *facts.steps - distance + 1) return false;
  return std::all_of(passes.begin(), passes.end(), [&](const StepValues& pass) { return pass.steps == steps; });
}

// If a run repeats steps, only the last repetition counts.
void DropWhatWasDoneAgain(std::vector<StepValues>& passes) {
  for (size_t later = 1; later < passes.size(); ++later) {
    const int64_t from = passes[later].steps.front();
    for (size_t i = 0; i < later; ++i) {
      const auto at = std::lower_bound(passes[i].steps.begin(), passes[i].steps.end(), from) - passes[i].steps.begin();
      passes[i].steps.resize(static_cast<size_t>(at));
      passes[i].values.resize(static_cast<size_t>(at));
    }
  }
  std::erase_if(passes, [](const StepValues& pass) { return pass.steps.empty(); });
}

// Returns the parts of a log without ranks' names.
std::vector<StepValues> NamelessPasses(const std::vector<Sample>& samples, OfRanks how, const SeriesFacts& facts) {
  std::vector<StepValues> passes = PassesOf(samples, /*named=*/false, how);
  if (passes.size() < 2) return passes;
  if (AreRanks(passes, DistanceOf(samples), facts)) {
    for (size_t i = 1; i < passes.size(); ++i) passes[0] = MergeRanks(passes[0], passes[i], how);
    passes.resize(1);
    return passes;
  }
  int64_t count = 0;
  for (const StepValues& pass : passes) count += std::ssize(pass.values);
  if (facts.steps && count > *facts.steps) DropWhatWasDoneAgain(passes);
  return passes;
}

StepValues Plain(const std::vector<Sample>& samples) {
  StepValues plain;
  for (const Sample& sample : samples) plain.values.push_back(sample.value);
  return plain;
}

// Merges lines of ranks without steps by their position: the i-th lines of all ranks belong to the same moment. Lines
// without a rank's name count as another rank if there are as many. Otherwise their moments are unknown, and only the
// longer of the two counts.
Series ByPlace(const std::vector<std::pair<std::string, std::vector<Sample>>>& streams, OfRanks how) {
  StepValues named;
  StepValues plain;
  for (const auto& [rank, stream] : streams) {
    StepValues& into = rank.empty() ? plain : named;
    into = MergeRanks(into, Plain(stream), how);
  }
  const bool fit = plain.values.empty() || plain.values.size() == named.values.size();
  Series series;
  series.values = fit                                         ? MergeRanks(named, plain, how).values
                  : plain.values.size() > named.values.size() ? plain.values
                                                              : named.values;
  series.is_by_moment = fit || named.values.size() > plain.values.size();
  series.is_mixed = !fit;
  return series;
}

// Returns the parts of all ranks together. REQUIRES: all samples have steps.
std::vector<StepValues> Passes(const std::vector<std::pair<std::string, std::vector<Sample>>>& streams, OfRanks how,
                               const SeriesFacts& facts) {
  std::vector<StepValues> merged;
  for (const auto& [rank, stream] : streams) {
    const bool named = !rank.empty();
    std::vector<StepValues> passes = named ? PassesOf(stream, /*named=*/true, how) : NamelessPasses(stream, how, facts);
    merged.resize(std::max(merged.size(), passes.size()));
    for (size_t i = 0; i < passes.size(); ++i) merged[i] = MergeRanks(merged[i], passes[i], how);
  }
  int64_t count = 0;
  for (const StepValues& pass : merged) count += std::ssize(pass.values);
  if (facts.steps && count > *facts.steps) DropWhatWasDoneAgain(merged);
  return merged;
}

void Append(const StepValues& pass, Series& series) {
  series.values.insert(series.values.end(), pass.values.begin(), pass.values.end());
  series.steps.insert(series.steps.end(), pass.steps.begin(), pass.steps.end());
}

// A line's moment.
struct Moment {
  int64_t at_ns = 0;
  int64_t step = 0;
};

// Returns times from one moment to a later one that are at least `least_ns` long.
Series TimesOf(const std::vector<Moment>& moments, double least_ns) {
  Series series;
  Moment from = moments.front();
  for (const Moment& moment : moments) {
    if (moment.at_ns < from.at_ns) from = moment;  // the clock was set back
    const int64_t steps = moment.step - from.step;
    const int64_t took_ns = moment.at_ns - from.at_ns;
    if (steps <= 0 || static_cast<double>(took_ns) < least_ns) continue;
    series.values.push_back(std::round(static_cast<double>(took_ns) / static_cast<double>(steps)));
    series.steps.push_back(moment.step);
    series.covers.push_back(steps);
    from = moment;
  }
  return series;
}

Series TimesOf(const std::vector<Moment>& moments, const Timing& timing) {
  if (moments.size() < 2) return {};
  const auto finest = static_cast<double>(std::max<int64_t>(timing.resolution_ns, 1));
  Series each = TimesOf(moments, finest);
  std::vector<double> took_ns;
  for (size_t i = 0; i < each.values.size(); ++i) {
    took_ns.push_back(each.values[i] * static_cast<double>(each.covers[i]));
  }
  const double total_ns = std::accumulate(took_ns.begin(), took_ns.end(), 0.0);
  const bool all_alike =
      std::adjacent_find(each.values.begin(), each.values.end(), std::not_equal_to<>()) == each.values.end();
  if (each.values.empty() || all_alike || stats::MedianOf(took_ns) >= kFine * finest) return each;
  return TimesOf(moments, std::clamp(total_ns / kFewTimes, finest, kFine * finest));
}

// Continues a clock that starts again at midnight or at a new year.
void Unwrap(int64_t wraps_ns, std::vector<Sample>& samples) {
  double added_ns = 0;
  double before_ns = -std::numeric_limits<double>::infinity();
  const auto wraps = static_cast<double>(wraps_ns);
  for (Sample& sample : samples) {
    const double now_ns = sample.value;
    if (now_ns < before_ns - wraps / 2) added_ns += wraps;
    if (now_ns > before_ns + wraps / 2 && added_ns > 0) added_ns -= wraps;  // another rank's line, from before it
    before_ns = now_ns;
    sample.value = now_ns + added_ns;
  }
}

}  // namespace

bool IsLowerRank(const std::string& a, const std::string& b) {
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (is_number(a) && is_number(b) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

Series SeriesOf(const std::vector<Sample>& samples, const std::vector<std::string>& ranks, OfRanks how,
                const SeriesFacts& facts) {
  Series series;
  if (samples.empty()) return series;
  const auto streams = ByRank(samples, ranks);
  if (AllHaveSteps(samples)) {
    for (const StepValues& pass : Passes(streams, how, facts)) Append(pass, series);
    return series;
  }
  if (streams.size() > 1 || !streams[0].first.empty()) return ByPlace(streams, how);
  const std::vector<Sample> lines = WithoutTwins(samples, facts);
  series.values = Plain(lines).values;
  series.is_by_moment = lines.size() < samples.size();
  return series;
}

void DropOtherBars(int64_t steps, std::vector<Sample>& samples) {
  if (std::none_of(samples.begin(), samples.end(), [&](const Sample& sample) { return sample.of == steps; })) return;
  std::erase_if(samples, [&](const Sample& sample) { return sample.of != 0 && sample.of != steps; });
}

std::vector<Sample> OfMicroSteps(std::vector<Sample> samples, int64_t micro, const SeriesFacts& facts) {
  if (samples.empty() || micro < 2) return samples;
  const bool by_step = AllHaveSteps(samples);
  std::unordered_map<uint32_t, int64_t> lines;  // by rank
  int64_t last = 0;
  for (Sample& sample : samples) {
    if (!by_step) sample.step = ++lines[sample.rank];
    last = std::max(last, sample.step);
  }
  const bool counts_micro = facts.steps && last > *facts.steps;
  if (!by_step && !counts_micro) return samples;
  const auto lowest = [](const Sample& a, const Sample& b) { return a.step < b.step; };
  const int64_t first = std::min<int64_t>(std::min_element(samples.begin(), samples.end(), lowest)->step, 1);
  std::unordered_map<uint32_t, std::pair<size_t, int64_t>>
      open;  // by rank: the place of its step, and the step's lines so far
  std::vector<Sample> steps;
  for (Sample& sample : samples) {
    if (counts_micro) sample.step = (sample.step - first) / micro + 1;
    const auto [it, is_new] = open.try_emplace(sample.rank, steps.size(), 0);
    auto& [place, count] = it->second;
    if (!is_new && steps[place].step == sample.step) {
      steps[place].value += (sample.value - steps[place].value) / static_cast<double>(++count);
      continue;
    }
    place = steps.size();
    count = 1;
    steps.push_back(sample);
    steps.back().has_step = by_step;
  }
  return steps;
}

Series SumsOf(const std::vector<Sample>& samples) {
  std::map<int64_t, std::map<uint32_t, double>> steps;
  std::set<uint32_t> ranks;
  for (const Sample& sample : samples) {
    steps[sample.step][sample.rank] = sample.value;
    ranks.insert(sample.rank);
  }
  Series series;
  for (const auto& [step, values] : steps) {
    if (values.size() != ranks.size()) continue;
    series.steps.push_back(step);
    series.values.push_back(std::accumulate(values.begin(), values.end(), 0.0,
                                            [](double sum, const auto& rank) { return sum + rank.second; }));
  }
  return series;
}

Series IntervalsOf(std::vector<Sample> samples, const std::vector<std::string>& ranks, const SeriesFacts& facts,
                   const Timing& timing) {
  if (samples.empty()) return {};
  if (timing.wraps_ns > 0) Unwrap(timing.wraps_ns, samples);
  auto streams = ByRank(samples, ranks);
  const bool named = !streams[0].first.empty();
  std::vector<Sample> stream = std::move(streams[0].second);
  if (!AllHaveSteps(stream)) {
    if (!named) stream = WithoutTwins(stream, facts);
    int64_t step = 0;
    for (Sample& sample : stream) sample.step = step += timing.every;
    const bool fits =
        !facts.steps || (step <= *facts.steps && (!facts.ended_well || step + timing.every > *facts.steps));
    if (!fits) return {};
  }
  Series series;
  for (const StepValues& pass : PassesOf(stream, named, OfRanks::kFirst)) {
    std::vector<Moment> moments;
    for (size_t i = 0; i < pass.values.size(); ++i) {
      if (std::abs(pass.values[i]) > kMostNs) continue;
      moments.push_back({static_cast<int64_t>(pass.values[i]), pass.steps[i]});
    }
    const Series times = TimesOf(moments, timing);
    Append({times.values, times.steps}, series);
    series.covers.insert(series.covers.end(), times.covers.begin(), times.covers.end());
  }
  return series;
}

}  // namespace ridgeline::trainers
