// Whether all points of a trainer have failed alike so far, over all rounds of a search.
#pragma once

#include <set>
#include <string>

namespace ridgeline::driver {

struct TrainerFaults {
  bool has_worked = false;       // a point ended well, or otherwise than the others
  std::string kind;              // how all of them failed
  std::set<std::string> points;  // point ids
};

}  // namespace ridgeline::driver
