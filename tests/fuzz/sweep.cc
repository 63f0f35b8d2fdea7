// A sweep's file is read whole, or refused with the place of each mistake. A small sweep is expanded, too. Each of its
// points is the same after it is written and read again.
#include "tests/fuzz/fuzz.h"

#include "base/json.h"
#include "run/spec.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::fuzz {
namespace {

constexpr double kFewCombinations = 200;

double Combinations(const sweep::Sweep& sweep) {
  double count = 1;
  for (const sweep::AxisGroup& group : sweep.groups) count *= static_cast<double>(group.front().size());
  for (const sweep::Include& include : sweep.include) {
    for (const sweep::Axis& axis : include.additions) count *= 1 + static_cast<double>(axis.size());
  }
  return count;
}

}  // namespace
}  // namespace ridgeline::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  fuzz::Takes([&] {
    const sweep::Sweep sweep = sweep::ParseSweep(fuzz::TextOf(data, size), "sweep.yaml");
    fuzz::Require(!sweep.name.empty() && sweep.name.find('\n') == std::string::npos, "a name is one line");
    if (fuzz::Combinations(sweep) > fuzz::kFewCombinations) return;
    for (const Point& point : sweep::Expand(sweep)) {
      const std::string text = EncodePoint(point.spec);
      fuzz::Require(EncodePoint(DecodeSpec(ParseJson(text, "a point"), "a point")) == text,
                    "a point is read as written");
      fuzz::Require(PointId(point.spec) == point.id, "a point's id is that of its text");
    }
  });
  return 0;
}
