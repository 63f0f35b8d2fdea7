// A job's results file (ridgeline/job_dir.h): written by whoever runs the job, read by others as it grows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/files.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/job_line.h"
#include "ridgeline/run.h"

namespace ridgeline {

// Appends results. One at a time writes a file: exec holds the job's lock.
class ResultsWriter {
 public:
  // Makes the file where it is missing. Throws Error(kInfrastructure) naming the file where it cannot be written or is
  // not a regular file.
  explicit ResultsWriter(const std::filesystem::path& job_dir);

  // On the disk when it returns; what an earlier writer was killed at stays a line of its own. Without the series of
  // its steps where these make a longer line than any reader takes. Throws Error(kInfrastructure), also where the file
  // is not there any more.
  void Append(const RunResult& result);

 private:
  std::filesystem::path path_;
  Fd fd_;
};

// Reads a results file, from where it stopped the last time.
class ResultsReader {
 public:
  // `offset`: where an earlier reader of the file stopped.
  explicit ResultsReader(const std::filesystem::path& job_dir, int64_t offset = 0)
      : path_(ResultsFile(job_dir)), offset_(offset) {}

  const std::filesystem::path& path() const { return path_; }
  int64_t offset() const { return offset_; }  // in bytes, of the first line that is not read yet
  int64_t broken() const { return broken_; }  // lines so far that were cut or damaged

  // Hands over the result lines that have come whole since it was last asked, until `take` says false: that was enough
  // for now. Returns whether it has handed over all of them. None where there is no file. What is no line is passed
  // over. Memory is bounded by one line. Throws an Error naming the file: kInvalidInput where it is not a regular file
  // or longer than any job's, kInfrastructure where it cannot be read.
  bool ReadNew(const std::function<bool(JobLine line)>& take);

 private:
  std::filesystem::path path_;
  int64_t offset_;
  int64_t broken_ = 0;
};

// Hands over the `part` lines that pods told (ridgeline/job_dir.h), from byte `offset` on, which moves along. None
// where there is no file; throws as ReadNew does.
void ReadPartLines(const std::filesystem::path& job_dir, int64_t& offset,
                   const std::function<void(JobLine line)>& take);

// Hands over the result and part lines of what `ridgeline exec --print-results` printed, among whatever else a log
// holds. `kubectl logs --prefix` says before each line whose it is. None where there is no file; throws as ReadNew
// does.
void ReadPrintedLines(const std::filesystem::path& log, const std::function<void(JobLine line)>& take);

}  // namespace ridgeline
