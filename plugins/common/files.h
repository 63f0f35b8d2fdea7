// Small files of a launcher's own.
#pragma once

#include <filesystem>
#include <functional>
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
// Hands over the lines of a file that end, without their ends; none where there is no regular file. What is longer than
// any line of a job (job_line.h) is passed over.
void ReadLines(const std::filesystem::path& path, const std::function<void(std::string_view line)>& take);
// Appends a line, which ends in a line end, to a file that is made where it is missing: on the disk when it returns. A
// line that an earlier writer was killed at stays a line of its own. Throws Failure.
void AppendLineSynced(const std::filesystem::path& path, std::string_view line);
// Throws Failure.
void MakeDirs(const std::filesystem::path& path);
void Remove(const std::filesystem::path& path);

}  // namespace ridgeline::plugin
