// A point: one canonical configuration, and its name.
#pragma once

#include <string>

#include "ridgeline/run.h"

namespace ridgeline {

struct Point {
  std::string id;  // PointId(spec)
  RunSpec spec;
};

}  // namespace ridgeline
