// A launcher's own small files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "ridgeline/foreign_file.h"
#include "ridgeline/limits.h"

namespace ridgeline::plugin {

// Reads a file that others may have made (ridgeline/foreign_file.h); empty if there is none. Throws Failure if it is
// not a regular file, is longer than `max_bytes`, or cannot be read.
std::string ReadText(const std::filesystem::path& path, size_t max_bytes = kMaxRecordBytes,
                     ForeignFile::Links links = ForeignFile::Links::kRefused);
// Reads the end of such a log; empty if there is none. If it cannot be read, returns a line in brackets that says why.
std::string ReadTextTail(const std::filesystem::path& path, size_t max_bytes = kLogTailBytes);
// Writes a file. Readers see the old bytes or the new ones, even if we are killed. Throws Failure.
void WriteText(const std::filesystem::path& path, std::string_view text);
// The same. The file is on the disk when it returns.
void WriteTextSynced(const std::filesystem::path& path, std::string_view text);
// Calls `take` for each complete line of such a file, without its line end. Does nothing if the file is not regular, or
// longer than any job's file. Skips lines longer than any line of a job (job_line.h). Throws Failure if the system
// cannot read it.
void ReadLines(const std::filesystem::path& path, const std::function<void(std::string_view line)>& take);
// Appends a line, which ends in a line end, to a file, and makes the file if it is missing. The line is on the disk
// when it returns. A line that a killed writer left unfinished stays a line of its own. Throws Failure.
void AppendLineSynced(const std::filesystem::path& path, std::string_view line);
// These throw Failure.
void MakeDirs(const std::filesystem::path& path);
void Remove(const std::filesystem::path& path);

}  // namespace ridgeline::plugin
