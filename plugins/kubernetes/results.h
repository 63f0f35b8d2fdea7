// The logs of a Job's pods, in which they report about its points.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/remote_job.h"
#include "kubernetes/cluster.h"
#include "kubernetes/parse.h"

namespace ridgeline::kubernetes {

// The log of one pod, followed from the moment when it runs.
class PodLog {
 public:
  PodLog(Cluster& cluster, const plugin::Clock& clock, std::string path)
      : cluster_(cluster), clock_(clock), path_(std::move(path)) {}

  // Hands over the lines that have come. Opens a stream again that broke off, from the log's beginning.
  void Pump(const PodView& pod, plugin::JobOutput& to);
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
