// A sweep's points: canonical, each once, in the order of the grid (the last axis changes fastest), then the points
// that `include` makes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"
#include "run/point.h"
#include "sweep/sweep.h"

namespace ridgeline {

// The most combinations that are made: those of the grid, before `exclude`, repeated and added to by `include`. A slip
// in a range must not run for days.
inline constexpr int64_t kMaxCombinations = 10'000'000;

struct Expansion {
  int64_t points = 0;
  int64_t excluded = 0;               // combinations dropped by `exclude`
  int64_t duplicates = 0;             // combinations that were a point already
  std::vector<std::string> warnings;  // "file:line:column: this exclude matches nothing"
};

// One point, valid during the call only.
struct PointView {
  std::string_view id;
  std::string_view encoded;  // EncodePoint(spec)
  const RunSpec& spec;
  const std::vector<size_t>& rules;  // as Point has them
};

// Hands over one point after another, holding 16 to 32 bytes a point. Impossible points (a shape or a combination that
// nothing can run) throw one Error(kInvalidInput) that lists them all, at the place of the value at fault; what was
// handed over before is void then.
Expansion ForEachPoint(const Sweep& sweep, const std::function<void(const PointView&)>& visit);

// The same, kept. `expansion` may be null.
std::vector<Point> Expand(const Sweep& sweep, Expansion* expansion = nullptr);

}  // namespace ridgeline
