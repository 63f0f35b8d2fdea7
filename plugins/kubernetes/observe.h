// What the API server says of our Jobs: told of every change, and put into one value a job when that is asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/clock.h"
#include "kubernetes/cluster.h"
#include "kubernetes/journal.h"
#include "kubernetes/parse.h"
#include "kubernetes/pods.h"
#include "kubernetes/wait.h"
#include "kubernetes/watch.h"

namespace ridgeline::kubernetes {

// One job at one moment. Together with its record it is all that is judged.
struct Observation {
  enum class Presence {
    kUnasked,  // it was never created, or its end is written down: nothing but `runs` is looked at
    kUnheard,  // the server has it, or may have it, and has not told us of it yet
    kThere,
    kGone,  // the server has no Job of this uid
  };
  Presence presence = Presence::kUnasked;
  JobView job;        // kThere; kGone: as it was when it was removed, and without a name where nobody saw that
  Pods pods;          // the first of each index. What replaces one is not waited for, unless the Job was suspended
  bool runs = false;  // any pod of it, what replaces one too
  Stage stage = Stage::kNoPod;
  plugin::Clock::Duration stage_for{};  // without a break
  int64_t waiting_for_s = 0;            // since it was submitted, or ran, or was suspended, last
  std::string refusal;                  // why it lacks a pod, in the server's words; empty: it has said nothing so far
  std::map<std::string, PodEvent> events;  // the last of a pod that has its node and no container, by the pod's name
  std::string no_namespace;                // kGone: why its namespace is no place for Jobs; empty: it is
  int64_t unix_s = 0;                      // when it was looked at
};

class Observer {
 public:
  // `store`: whose Jobs they are.
  Observer(Cluster& cluster, const plugin::Clock& clock, const std::string& store);

  // Takes in what the server has said since. Throws Failure: kNotNow where it does not answer.
  void Refresh();
  // The server is asked of a Job that it does not speak of, and of one that does not start. Throws Failure.
  Observation Look(const Record& record);
  // Of a job whose end is written down: only what still runs of it matters from now on.
  void SetEnded(const std::string& key);

  // All that the server has of this store, by name.
  const std::map<std::string, JobView>& jobs() const { return jobs_; }

 private:
  // What is remembered of a job between two looks.
  struct Followed {
    Pods pods;
    std::set<std::string> left_behind;  // pods that ended as their Job was suspended
    std::set<std::string> asked_of;     // pods that were taken away: whether the Job is suspended was asked
    Stage stage = Stage::kNoPod;
    plugin::Clock::Time stage_since;
    int64_t waits_since_unix_s = 0;  // 0: since it was submitted
    std::map<std::string, PodEvent> events;
    std::optional<plugin::Clock::Time> events_asked;
  };

  void Keep(PodView pod);
  bool Runs(const std::string& key, int64_t now_unix_s) const;
  bool MayCome(const std::string& key);
  Observation::Presence AskFor(const Record& record);
  std::string WhyNoNamespace();
  void TakePods(const std::string& key, const std::string& job_uid, Followed& followed) const;
  bool IsStillThere(const Record& record, Followed& followed, JobView& job);
  static void LeaveBehind(const JobView& job, Followed& followed);
  void LookAtStage(const Record& record, Followed& followed, Observation& seen);
  void AskForRefusals();
  void AskForPodEvents(Followed& followed, const Pods& pods);

  Cluster& cluster_;
  const plugin::Clock& clock_;
  Watch job_watch_;
  Watch pod_watch_;
  std::map<std::string, JobView> jobs_;
  std::map<std::string, JobView> removed_;    // as they were when they were, by name; of those that have not ended
  std::map<std::string, Pods> pods_;          // by Job
  std::map<std::string, Followed> followed_;  // by key
  std::set<std::string> ended_;
  std::map<std::string, plugin::Clock::Time> unnoted_since_;  // of keys whose Jobs may come
  std::map<std::string, std::string> refusals_;               // uid of a Job -> why it gets no pod
  bool may_read_events_ = true;
  plugin::Clock::Time refusals_asked_;
};

}  // namespace ridgeline::kubernetes
