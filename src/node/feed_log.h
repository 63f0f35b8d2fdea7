// Continues to read a growing log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace ridgeline::node {

// Passes on a log's bytes from `begin` on, in parts, until that is at least `most_bytes`. Returns the number of bytes.
// Passes on nothing if the file is no longer a log.
int64_t FeedLog(const std::filesystem::path& log, int64_t begin, int64_t most_bytes,
                const std::function<void(std::string_view)>& feed);

}  // namespace ridgeline::node
