// A job's results file (ridgeline/job_dir.h): the program that runs the job writes it, and others read it while it
// grows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/files.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/job_line.h"
#include "ridgeline/run.h"

namespace ridgeline {

// Appends results. One process at a time writes a file: exec holds the job's lock.
class ResultsWriter {
 public:
  // Creates the file if it is missing. Throws Error(kInfrastructure), which names the file, if it cannot be written or
  // is not a regular file.
  explicit ResultsWriter(const std::filesystem::path& job_dir);

  // The result is on the disk when this returns. The broken end that a killed writer left stays a line of its own.
  // Omits the series of steps if they make the line longer than any reader accepts. Throws Error(kInfrastructure), also
  // if the file is no longer there.
  void Append(const RunResult& result);

 private:
  std::filesystem::path path_;
  Fd fd_;
};

// Reads a results file, from where it last stopped.
class ResultsReader {
 public:
  // `offset`: where an earlier reader of the file stopped.
  explicit ResultsReader(const std::filesystem::path& job_dir, int64_t offset = 0)
      : path_(ResultsFile(job_dir)), offset_(offset) {}

  const std::filesystem::path& path() const { return path_; }
  int64_t offset() const { return offset_; }  // in bytes: the first unread line
  int64_t broken() const { return broken_; }  // number of cut or damaged lines so far

  // Passes on the complete result lines that are new since the last call, until `take` returns false because it has
  // enough for now. Returns whether it passed on all of them. Passes on none if there is no file. Skips anything that
  // is no line. Memory is bounded by one line. Throws an Error that names the file: kInvalidInput if it is not a
  // regular file or is longer than any job's, kInfrastructure if it cannot be read.
  bool ReadNew(const std::function<bool(JobLine line)>& take);

 private:
  std::filesystem::path path_;
  int64_t offset_;
  int64_t broken_ = 0;
};

// Passes on the `part` lines that pods printed (ridgeline/job_dir.h), from byte `offset` on, and advances it. Passes on
// none if there is no file. Throws as ReadNew.
void ReadPartLines(const std::filesystem::path& job_dir, int64_t& offset,
                   const std::function<void(JobLine line)>& take);

// Passes on the result and part lines that `ridgeline exec --print-results` printed, among anything else in a log.
// `kubectl logs --prefix` puts each line's source before it. Passes on none if there is no file. Throws as ReadNew.
void ReadPrintedLines(const std::filesystem::path& log, const std::function<void(JobLine line)>& take);

}  // namespace ridgeline
