// Writes what a Job's pods report about its points into the job's folder, as if `ridgeline exec` had run there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "kubernetes/cluster.h"
#include "kubernetes/journal.h"
#include "kubernetes/parse.h"

namespace ridgeline::kubernetes {

// The files of results and parts, and the folder points/, of one job's folder.
class ResultFolder {
 public:
  explicit ResultFolder(const Record& record);

  // Takes one line of a log. Skips lines about points of other jobs, and all other lines.
  void TakeLine(const std::string& line);
  // Must be called before a log is read again from its beginning.
  void Rewind() { log_tail_.clear(); }
  // Takes a container's last words: headlines, for points that have nothing better.
  void TakeLastWords(const std::string& words);
  // Also copies results from the same folder on a volume that this machine sees.
  void CopyMissing(const std::filesystem::path& job_dir);

  // If a log was lost, it is not known which points without a result began. All of them may have. Their folders tell
  // the collector so.
  void TakeOthersAsBegun();

  bool HasAll() const { return have_.size() == points_.size(); }
  // The number of results that are only a container's last words.
  int64_t headlines() const { return headlines_; }
  // Returns whether a trainer was started, as far as is known.
  bool AnyBegan() const;
  const std::string& log_tail() const { return log_tail_; }

 private:
  void Keep(const std::string& point_id, const std::string& result);
  void KeepPart(const std::string& point_id, const std::string& part);

  std::filesystem::path job_dir_;
  std::set<std::string> points_;
  std::map<std::string, std::string> have_;  // hash of each point's last result
  std::set<std::string> parts_;              // hashes of the parts that pods reported
  int64_t headlines_ = 0;
  std::string log_tail_;  // the end of the other output
};

// The log of one pod, followed from the moment when it runs.
class PodLog {
 public:
  PodLog(Cluster& cluster, const plugin::Clock& clock, std::string path)
      : cluster_(cluster), clock_(clock), path_(std::move(path)) {}

  // Hands over the lines that have come. Opens a stream again that broke off, from the log's beginning.
  void Pump(const PodView& pod, ResultFolder& to);
  // Returns whether the whole log has been handed over, or cannot be read.
  bool done() const { return done_; }
  // Why the log could not be read in the end; empty if it was read.
  const std::string& problem() const { return problem_; }
  // The same while its container may run. A stream that broke off is no problem if the next one goes on.
  std::string ProblemSoFar() const { return failures_ >= kFailuresToSay ? problem_ : ""; }

 private:
  static constexpr int kFailuresToSay = 2;  // in a row

  Cluster& cluster_;
  const plugin::Clock& clock_;
  std::string path_;
  std::unique_ptr<Stream> stream_;
  bool after_end_ = false;  // the container had ended when the stream was opened
  bool done_ = false;
  std::string problem_;
  plugin::Clock::Time not_before_;
  int tries_after_end_ = 0;
  int failures_ = 0;  // in a row
};

}  // namespace ridgeline::kubernetes
