// Which file system a file lies on, as far as it matters: whether other machines write to it too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace ridgeline {

// "NFS", "Lustre", …: what a file system of this magic number (statfs(2)'s f_type) is called, where several machines
// can have it mounted. Empty: it is of one machine, as far as is known.
std::string_view NetworkFileSystemName(uint32_t magic);

// The same for the file system of `path`, or of the nearest folder above it that is there.
std::string_view NetworkFileSystemOf(const std::filesystem::path& path);

}  // namespace ridgeline
