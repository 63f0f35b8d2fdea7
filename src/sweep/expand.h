// A sweep's points: canonical, each once, in the order of the grid (the last axis changes fastest), followed by the
// points that `include` makes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ridgeline/run.h"
#include "run/point.h"
#include "sweep/sweep.h"

namespace ridgeline::sweep {

// The most combinations that are made: those of the grid before `exclude`, with the repetitions and additions of
// `include`. So a mistake in a range does not run for days.
inline constexpr int64_t kMaxCombinations = 10'000'000;

struct Expansion {
  int64_t points = 0;
  int64_t excluded = 0;               // combinations that `exclude` or `only` dropped
  int64_t duplicates = 0;             // combinations that equal an earlier point
  std::vector<std::string> warnings;  // "file:line:column: this exclude matches nothing"
};

// One point, valid only during the call.
struct PointView {
  std::string_view id;
  std::string_view encoded;  // EncodePoint(spec)
  const RunSpec& spec;
  const std::vector<size_t>& rules;  // as in Point
};

// Calls `visit` for each point, and holds 16 to 32 bytes for each. Throws one Error(kInvalidInput) that lists all
// impossible points (a shape or a combination that nothing can run), at the places of the values at fault. Points that
// were visited before are void then.
Expansion ForEachPoint(const Sweep& sweep, const std::function<void(const PointView&)>& visit);

// The same, as a list. `expansion` may be null.
std::vector<Point> Expand(const Sweep& sweep, Expansion* expansion = nullptr);

}  // namespace ridgeline::sweep
