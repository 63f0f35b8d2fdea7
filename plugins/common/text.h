// Texts for people, as schedulers and services take them.
#pragma once

#include <cstddef>
#include <string>

namespace ridgeline::plugin {

// At most the first `most` bytes of the text, in one line of valid UTF-8: spaces in place of control characters, and
// U+FFFD in place of what is no UTF-8.
std::string OneLine(const std::string& text, size_t most);

}  // namespace ridgeline::plugin
