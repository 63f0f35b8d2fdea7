// Checks pages as a reader sees them.
#pragma once

#include <cstddef>
#include <string>

namespace ridgeline::report {

// Fails the test where the <svg> is not well-formed, something leaves its frame, or one text covers another.
void ExpectReadable(const std::string& svg);

// The number of words in a sentence.
size_t Words(const std::string& text);

}  // namespace ridgeline::report
