// The file system of a file, as far as it matters: whether other machines write to it, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace ridgeline {

// The name ("NFS", "Lustre", …) of the file system with this magic number (statfs(2)'s f_type), if several machines can
// mount it. Empty: it belongs to one machine, as far as known.
std::string_view NetworkFileSystemName(uint32_t magic);

// The same for the file system of `path`, or of its nearest existing parent.
std::string_view NetworkFileSystemOf(const std::filesystem::path& path);

}  // namespace ridgeline
