// Collects what a job leaves: its pods' output goes into its folder as it comes, and at last its end into the journal.
#pragma once

#include <map>
#include <string>

#include "common/clock.h"
#include "kubernetes/cluster.h"
#include "kubernetes/journal.h"
#include "kubernetes/judge.h"
#include "kubernetes/observe.h"
#include "kubernetes/results.h"

namespace ridgeline::kubernetes {

class Collector {
 public:
  // `output_path`: this machine's path of the folder that jobs write into; empty: it has none.
  Collector(Cluster& cluster, Journal& journal, const plugin::Clock& clock, std::string output_path);

  // Must be called before the jobs of a poll are collected.
  void BeginPoll();

  // Takes what has come since. A job that is judged to have ended counts as running while its pods may have more to
  // say. At the end, its results, as far as available, are in its folder, and after that its end is on the disk
  // (record.ended). Throws Failure.
  plugin::JobState Collect(Record& record, const Observation& seen, Judgement judgement);

 private:
  // A job that has not ended.
  struct Live {
    plugin::JobOutput output;
    std::map<std::string, PodLog> logs;  // by KeyOf the pod
    plugin::LastOutput last_output;
  };

  Live& LiveOf(const Record& record);
  void TakeLogs(const Pods& pods, Live& live);
  static bool MayHaveMoreToSay(const Observation& seen, Live& live);
  plugin::JobState WriteEnd(Record& record, const Observation& seen, Live& live, plugin::JobState end);

  Cluster& cluster_;
  Journal& journal_;
  const plugin::Clock& clock_;
  std::string output_path_;
  std::map<std::string, Live> live_;  // by key
  // Limits for waiting in this poll for logs that may come any moment.
  int looks_left_ = 0;
  plugin::Clock::Time poll_until_;
};

}  // namespace ridgeline::kubernetes
