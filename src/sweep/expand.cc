#include "sweep/expand.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "sweep/encoder.h"
#include "sweep/walk.h"

namespace ridgeline::sweep {
namespace {

// A set of hashes in one flat table. A million of them cost 32 MB, and no allocation each.
class HashSet {
 public:
  // Returns false if the hash is in the set already.
  bool Insert(const Hash128& hash) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    return Place(hash);
  }

 private:
  bool Place(const Hash128& hash) {
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash.low & mask;; i = (i + 1) & mask) {
      if (slots_[i] == hash) return false;
      if (slots_[i] == Hash128{}) {  // an all-zero hash cannot be stored; that would only let a duplicate pass
        slots_[i] = hash;
        ++size_;
        return true;
      }
    }
  }

  void Grow() {
    std::vector<Hash128> old(std::max<size_t>(1024, 2 * slots_.size()));
    std::swap(old, slots_);
    size_ = 0;
    for (const Hash128& hash : old) {
      if (hash != Hash128{}) Place(hash);
    }
  }

  std::vector<Hash128> slots_;
  size_t size_ = 0;
};

}  // namespace

Expansion ForEachPoint(const Sweep& sweep, const std::function<void(const PointView&)>& visit) {
  Expansion expansion;
  SpecEncoder encoder;
  HashSet seen;
  Walked walked;
  try {
    walked = Walk(sweep, [&](const RunSpec& spec, const std::vector<size_t>& rules) {
      const std::string_view encoded = encoder.Encode(spec);
      const Hash128 hash = Hash(encoded);
      if (!seen.Insert(hash)) {
        ++expansion.duplicates;
        return;
      }
      const std::string id = Hex(hash);
      if (!sweep.only.empty() && !sweep.only.contains(id)) return;
      ++expansion.points;
      visit({id, encoded, spec, rules});
    });
  } catch (const yaml::Fault& fault) {
    yaml::ThrowFaults(sweep.file, {fault}, kSweepHint);
  }
  if (!walked.impossible.empty()) {
    std::vector<yaml::Fault> faults;
    for (Impossible& impossible : walked.impossible) faults.push_back(std::move(impossible.fault));
    yaml::ThrowFaults(sweep.file, std::move(faults), kSweepHint);
  }
  if (!sweep.selected.empty() && walked.selected == 0) {
    yaml::ThrowFaults(sweep.file, {{sweep.selected_place, "no point of the sweep is so"}},
                      "`ridgeline plan SWEEP` lists its points");
  }
  expansion.excluded = walked.excluded;
  const auto warn_unless = [&](int64_t hits, const yaml::Place& place, const char* what) {
    if (hits > 0) return;
    expansion.warnings.push_back(yaml::FaultText(sweep.file, {place, fmt::format("this {} matches nothing", what)}));
  };
  for (size_t i = 0; i < sweep.exclude.size(); ++i) {
    warn_unless(walked.exclude_hits[i], sweep.exclude[i].place, "exclude");
  }
  for (size_t i = 0; i < sweep.rules.size(); ++i) {
    if (!sweep.rules[i].is_of_axis) warn_unless(walked.rule_hits[i], sweep.rules[i].place, "rule");
  }
  if (expansion.points == 0) {
    expansion.warnings.push_back(
        yaml::FaultText(sweep.file, {yaml::Place{}, "every combination is excluded: there are no points"}));
  }
  return expansion;
}

std::vector<Point> Expand(const Sweep& sweep, Expansion* expansion) {
  std::vector<Point> points;
  Expansion result = ForEachPoint(sweep, [&](const PointView& point) {
    points.push_back({std::string(point.id), point.spec, point.rules});
  });
  if (expansion != nullptr) *expansion = std::move(result);
  return points;
}

}  // namespace ridgeline::sweep
