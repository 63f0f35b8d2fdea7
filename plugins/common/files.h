// Small files of a launcher's own.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ridgeline/job_dir.h"

namespace ridgeline::plugin {

// Empty where the file is not there.
std::string ReadText(const std::filesystem::path& path);
std::string ReadTextTail(const std::filesystem::path& path, size_t max_bytes = kLogTailBytes);
// Old bytes or new ones for whoever reads, whenever we are killed. Throws Failure.
void WriteText(const std::filesystem::path& path, std::string_view text);
// The same, on the disk when it returns.
void WriteTextSynced(const std::filesystem::path& path, std::string_view text);
// Throws Failure.
void MakeDirs(const std::filesystem::path& path);
void Remove(const std::filesystem::path& path);

}  // namespace ridgeline::plugin
