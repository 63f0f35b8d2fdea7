// Where a person's own files of ours lie, as the XDG Base Directory Specification has it. Nothing where the environment
// names neither the folder nor a home: a relative path in it does not count.
#pragma once

#include <filesystem>
#include <optional>

namespace ridgeline {

std::optional<std::filesystem::path> ConfigFolder();  // $XDG_CONFIG_HOME/ridgeline, else ~/.config/ridgeline
std::optional<std::filesystem::path> CacheFolder();   // $XDG_CACHE_HOME/ridgeline, else ~/.cache/ridgeline

}  // namespace ridgeline
