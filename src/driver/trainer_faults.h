// Whether a trainer has done anything yet but fail alike: of all rounds of a search together.
#pragma once

#include <set>
#include <string>

namespace ridgeline {

struct TrainerFaults {
  bool has_worked = false;       // a point ended well, or otherwise than all the others
  std::string kind;              // what all of them failed of
  std::set<std::string> points;  // their ids
};

}  // namespace ridgeline
