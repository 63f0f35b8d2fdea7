// A point: one canonical configuration, and its name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

struct Point {
  std::string id;  // PointId(spec)
  RunSpec spec;
  std::vector<size_t> rules = {};  // the rules of its sweep's `launch:` that apply to it, in order
};

}  // namespace ridgeline
