// The conversation with one cluster: Jobs created, followed, collected and deleted.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubernetes/cluster.h"
#include "kubernetes/config.h"
#include "kubernetes/journal.h"
#include "kubernetes/manifest.h"
#include "kubernetes/parse.h"
#include "kubernetes/results.h"
#include "kubernetes/watch.h"

namespace ridgeline::kubernetes {

class Session {
 public:
  // Throws Failure.
  Session(const std::filesystem::path& state_dir, Options options);

  // "Kubernetes v1.31.2, namespace default". Throws Failure where Jobs of it may not be listed.
  std::string Description();
  int64_t Window() const;

  // The answers of launcher.h, one a job, in order. Throw Failure where nobody answers.
  plugin::Json Submit(const plugin::Json& jobs);
  plugin::Json Poll(const plugin::Json& jobs);
  plugin::Json Cancel(const plugin::Json& jobs);

 private:
  using Time = std::chrono::steady_clock::time_point;

  // A Job that has not ended, as far as it is followed.
  struct Live {
    ResultFolder results;
    std::map<std::string, PodView> pods;  // by name: the first of each index. What replaces one is not waited for
    std::map<std::string, PodLog> logs;   // by the pod's name
    std::optional<Time> ended_since;      // all but its logs
    std::optional<Time> stuck_since;
    std::optional<Time> podless_since;
  };

  // A Job that is to be created, or to be found created.
  struct Pending {
    plugin::Json job;  // as asked
    Manifests manifests;
    std::string uid;
    std::optional<plugin::Failure> failure;
  };

  std::string Jobs() const { return "/apis/batch/v1/namespaces/" + cluster_->name_space() + "/jobs"; }
  std::string Core(const std::string& plural) const {
    return "/api/v1/namespaces/" + cluster_->name_space() + '/' + plural;
  }
  Request DeleteRequest(const std::string& name, const std::string& uid, const char* propagation) const;

  Pending Prepare(const plugin::Json& job);
  void Create(std::vector<Pending>& pending);
  void CreateOthers(std::vector<Pending>& pending);
  std::optional<plugin::Failure> Adopt(Pending& pending);

  void Refresh();
  void Keep(PodView pod);
  Live& LiveOf(const Record& record);
  void TakePods(const std::string& key, Live& live);
  // A pod of a Job whose end is written down still does.
  bool Runs(const std::string& key) const;
  void PumpLogs(Live& live);
  plugin::Json StateOf(Record& record);
  // What has become of a Job that was there and is not.
  plugin::Json Vanished(Record& record);
  // Of a Job that will not start by itself; nothing while there is hope.
  std::optional<Verdict> GivenUp(const JobView& job, Live& live, Verdict& verdict);
  void AskForEvents();
  plugin::Json Finish(Record& record, Verdict verdict);
  void DeleteEnded();
  plugin::Json EndedAnswer(const Record& record) const;

  Options options_;
  Journal journal_;
  std::unique_ptr<Cluster> cluster_;
  Watch job_watch_;
  Watch pod_watch_;
  std::map<std::string, JobView> jobs_;                         // by name
  std::map<std::string, std::map<std::string, PodView>> pods_;  // by Job and name
  std::map<std::string, Live> live_;                            // by key
  std::set<std::string> finished_;                              // keys whose end is written down
  std::set<std::string> deleted_;                               // uids that we have deleted
  std::map<std::string, std::string> refusals_;                 // uid of a Job -> why it gets no pod
  bool may_read_events_ = true;
  Time events_asked_;
};

}  // namespace ridgeline::kubernetes
