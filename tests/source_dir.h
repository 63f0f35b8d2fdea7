// Where the project's sources lie, of which tests read data.
#pragma once

#include <cstdlib>
#include <string>

namespace ridgeline {

// $RIDGELINE_SOURCES, where tests run on another machine than they were built on (bench/gpu.sh takes along what they
// read there), else the folder that they were built from.
inline std::string SourceDir() {
  const char* elsewhere = std::getenv("RIDGELINE_SOURCES");
  return elsewhere == nullptr ? RIDGELINE_SOURCE_DIR : elsewhere;
}

}  // namespace ridgeline
