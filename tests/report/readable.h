// Charts as a reader sees them.
#pragma once

#include <string>

namespace ridgeline {

// Fails the test where the <svg> is not well-formed, something leaves its frame, or one text covers another.
void ExpectReadable(const std::string& svg);

}  // namespace ridgeline
