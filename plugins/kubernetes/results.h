// What a Job's pods say of its points, into the job's folder, as if `ridgeline exec` had run there.
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

// The files of results and parts, and the points/ of one job's folder.
class ResultFolder {
 public:
  explicit ResultFolder(const Record& record);

  // One line of a log. Lines of other jobs' points, and what is no such line, are passed over.
  void TakeLine(const std::string& line);
  // The log is read from its beginning.
  void Rewind() { log_tail_.clear(); }
  // A container's last words: headlines, for points that have nothing better.
  void TakeLastWords(const std::string& words);
  // From the same folder on a volume that this machine sees, too.
  void CopyMissing(const std::filesystem::path& job_dir);

  // A log that was lost does not say which points without a result began: all of them may have, and their folders say
  // so to whoever collects.
  void TakeOthersAsBegun();

  bool HasAll() const { return have_.size() == points_.size(); }
  // How many results are a container's last words alone.
  int64_t headlines() const { return headlines_; }
  // A trainer was started, as far as anybody heard of it.
  bool AnyBegan() const;
  const std::string& log_tail() const { return log_tail_; }

 private:
  void Keep(const std::string& point_id, const std::string& result);
  void KeepPart(const std::string& point_id, const std::string& part);

  std::filesystem::path job_dir_;
  std::set<std::string> points_;
  std::map<std::string, std::string> have_;  // the last result's hash
  std::set<std::string> parts_;              // the hashes of what pods said of theirs
  int64_t headlines_ = 0;
  std::string log_tail_;  // what was said besides
};

// The log of one pod, followed from the moment it runs.
class PodLog {
 public:
  PodLog(Cluster& cluster, const plugin::Clock& clock, std::string path)
      : cluster_(cluster), clock_(clock), path_(std::move(path)) {}

  // Hands over the lines that have come. A stream that broke off is opened again, from the log's beginning.
  void Pump(const PodView& pod, ResultFolder& to);
  // All that there will be has been handed over, or cannot be had.
  bool done() const { return done_; }
  // Why it could not be read at last; empty where it was.
  const std::string& problem() const { return problem_; }
  // The same while its container may run: a stream that broke off is no problem where the next goes on.
  std::string ProblemSoFar() const { return failures_ >= kFailuresToSay ? problem_ : ""; }

 private:
  static constexpr int kFailuresToSay = 2;  // in a row

  Cluster& cluster_;
  const plugin::Clock& clock_;
  std::string path_;
  std::unique_ptr<Stream> stream_;
  bool after_end_ = false;  // the stream was opened when the container had ended
  bool done_ = false;
  std::string problem_;
  plugin::Clock::Time not_before_;
  int tries_after_end_ = 0;
  int failures_ = 0;  // in a row
};

}  // namespace ridgeline::kubernetes
