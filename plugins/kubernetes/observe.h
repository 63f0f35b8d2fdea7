// What the API server reports about our Jobs. It reports every change, and one value for each job is made on request.
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

// One job at one moment. A judgement needs this and the job's record, nothing else.
struct Observation {
  enum class Presence {
    kUnasked,  // it was never created, or its end is recorded; only `runs` is observed
    kUnheard,  // the server has it, or may have it, and has not reported it yet
    kThere,
    kGone,  // the server has no Job of this uid
  };
  Presence presence = Presence::kUnasked;
  JobView job;        // kThere: as it is. kGone: as it was when it was removed, or without a name if that was not seen
  Pods pods;          // the first pod of each index; its replacements are not waited for, unless the Job was suspended
  bool runs = false;  // any of its pods runs, including replacements
  Stage stage = Stage::kNoPod;
  plugin::Clock::Duration stage_for{};  // without interruption
  int64_t waiting_for_s = 0;            // since it was last submitted, run or suspended
  std::string refusal;                  // why it lacks a pod, in the server's words; empty: none reported so far
  std::string group;                    // why its gang does not start, in its scheduler's words; empty: not known
  // The last event of each pod with a node and without a container, by the pod's name.
  std::map<std::string, PodEvent> events;
  std::string no_namespace;  // kGone: why its namespace takes no Jobs; empty: it does
  int64_t unix_s = 0;        // time of this observation
};

class Observer {
 public:
  // `store`: the mark of the Jobs to observe. `objects`: what each owns, of which some may say why it waits.
  Observer(Cluster& cluster, const plugin::Clock& clock, const std::string& store, plugin::Json objects);

  // Takes in what the server has reported since. Throws Failure; kNotNow if the server does not answer.
  void Refresh();
  // Asks the server about a Job that it does not mention, and about one that does not start. Throws Failure.
  Observation Look(const Record& record);
  // The job's end is recorded. From now on only whether it still runs matters.
  void SetEnded(const std::string& key);

  // All Jobs of this store that the server has, by name.
  const std::map<std::string, JobView>& jobs() const { return jobs_; }

 private:
  // What is remembered of a job between two looks.
  struct Followed {
    Pods pods;
    std::set<std::string> left_behind;  // pods (KeyOf) that ended when their Job was suspended
    std::set<std::string> asked_of;     // pods that were taken away, after which the Job was asked for
    Stage stage = Stage::kNoPod;
    plugin::Clock::Time stage_since;
    int64_t waits_since_unix_s = 0;  // 0: since it was submitted
    std::map<std::string, PodEvent> events;
    std::optional<plugin::Clock::Time> events_asked;
    std::string group;
    std::optional<plugin::Clock::Time> group_asked;
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
  void AskForGroup(const std::string& key, Followed& followed);
  void AskForPodEvents(Followed& followed, const Pods& pods);

  Cluster& cluster_;
  const plugin::Clock& clock_;
  const plugin::Json objects_;
  Watch job_watch_;
  Watch pod_watch_;
  std::map<std::string, JobView> jobs_;
  // Jobs as they were when they were removed, by name; only those that have not ended.
  std::map<std::string, JobView> removed_;
  std::map<std::string, Pods> pods_;          // by Job
  std::map<std::string, Followed> followed_;  // by key
  std::set<std::string> ended_;
  std::map<std::string, plugin::Clock::Time> unnoted_since_;  // keys whose Jobs may still come
  // Why a job gets no pod: by the uid of its object, or by the name of what that object's controller makes.
  std::map<std::string, std::string> refusals_;
  bool may_read_events_ = true;
  plugin::Clock::Time refusals_asked_;
};

}  // namespace ridgeline::kubernetes
