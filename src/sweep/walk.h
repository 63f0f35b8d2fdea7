// The walk over a sweep's grid: exclude, include, canonical specs. Expand() adds identity.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ridgeline/run.h"
#include "sweep/sweep.h"
#include "yaml/yaml.h"

namespace ridgeline {

// A spec that nothing can run.
struct Impossible {
  Fault fault;             // at the value at fault
  bool attributed = true;  // every value that it comes from was written in the file; else it may follow from another
};

struct Walked {
  int64_t excluded = 0;
  std::vector<int64_t> exclude_hits;   // one an exclude
  std::vector<int64_t> rule_hits;      // one a rule of `launch`
  std::vector<Impossible> impossible;  // one a place and message; of very many, the first
  int64_t impossible_points = 0;
};

// Is given the canonical, checked spec of a point, and the rules that hold of it, as indices into the sweep's.
using VisitSpec = std::function<void(const RunSpec&, const std::vector<size_t>& rules)>;

// Visits every point, duplicates included, in order. Throws Fault where there are more than kMaxCombinations, or where
// to hold conditions against them takes too long.
Walked Walk(const Sweep& sweep, const VisitSpec& visit);

// What helps where a sweep is at fault.
inline constexpr char kSweepHint[] = "`ridgeline plan --fields` lists every field and its values";

}  // namespace ridgeline
