// Small files of a launcher's own.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "ridgeline/foreign_file.h"
#include "ridgeline/limits.h"

namespace ridgeline::plugin {

// A file that others may have made (ridgeline/foreign_file.h), empty where none is there. Throws Failure where it is no
// regular file, longer than that, or cannot be read.
std::string ReadText(const std::filesystem::path& path, size_t max_bytes = kMaxRecordBytes,
                     ForeignFile::Links links = ForeignFile::Links::kRefused);
// The end of such a log; empty where there is none. Where it cannot be read, a line in brackets says why.
std::string ReadTextTail(const std::filesystem::path& path, size_t max_bytes = kLogTailBytes);
// Old bytes or new ones for whoever reads, whenever we are killed. Throws Failure.
void WriteText(const std::filesystem::path& path, std::string_view text);
// The same, on the disk when it returns.
void WriteTextSynced(const std::filesystem::path& path, std::string_view text);
// Hands over the lines of such a file that end, without their ends; none where there is no regular file, or one longer
// than any job's. What is longer than any line of a job (job_line.h) is passed over. Throws Failure where the system
// does not let it be read.
void ReadLines(const std::filesystem::path& path, const std::function<void(std::string_view line)>& take);
// Appends a line, which ends in a line end, to a file that is made where it is missing: on the disk when it returns. A
// line that an earlier writer was killed at stays a line of its own. Throws Failure.
void AppendLineSynced(const std::filesystem::path& path, std::string_view line);
// Throws Failure.
void MakeDirs(const std::filesystem::path& path);
void Remove(const std::filesystem::path& path);

}  // namespace ridgeline::plugin
