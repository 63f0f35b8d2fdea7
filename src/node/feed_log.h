// A log that grows, read on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace ridgeline {

// Hands on in parts what a log has from `begin` on, until that is `most_bytes` or a part more; says how much it was.
// Nothing of a file that is no log any more.
int64_t FeedLog(const std::filesystem::path& log, int64_t begin, int64_t most_bytes,
                const std::function<void(std::string_view)>& feed);

}  // namespace ridgeline
