// Walks over a sweep's grid: exclude, include, canonical specs. Expand() adds identity.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ridgeline/run.h"
#include "sweep/sweep.h"
#include "yaml/yaml.h"

namespace ridgeline::sweep {

// A spec that nothing can run.
struct Impossible {
  yaml::Fault fault;  // at the value that is wrong
  // Every value that it comes from was written in the file; else it may follow from another fault.
  bool attributed = true;
};

struct Walked {
  int64_t excluded = 0;                // by `exclude` or `only`
  int64_t selected = 0;                // points that `only` keeps
  std::vector<int64_t> exclude_hits;   // one for each exclude
  std::vector<int64_t> rule_hits;      // one for each rule of `launch`
  std::vector<Impossible> impossible;  // one for each place and message; only the first of very many
  int64_t impossible_points = 0;
};

// Gets the canonical, checked spec of a point, and its rules as indices into the sweep's rules.
using VisitSpec = std::function<void(const RunSpec&, const std::vector<size_t>& rules)>;

// Visits every point, including duplicates, in order. Throws Fault if there are more than kMaxCombinations, or if
// comparing them with conditions would take too long.
Walked Walk(const Sweep& sweep, const VisitSpec& visit);

// The hint for faulty sweeps.
inline constexpr char kSweepHint[] = "`ridgeline plan --fields` lists every field and its values";

}  // namespace ridgeline::sweep
