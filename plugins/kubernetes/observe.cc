#include "kubernetes/observe.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/url.h"
#include "kubernetes/manifest.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;
using std::chrono::seconds;

constexpr seconds kPodlessPatience{3};  // after that, a Job without a pod has a problem
constexpr seconds kUnmadePatience{10};  // after that, a pod without its container is slow or has a problem
// After this time, a request of a killed submitter has arrived or never will: a server drops requests that nobody waits
// for.
constexpr seconds kUnnotedPatience{5};
constexpr seconds kEventsPause{5};      // for all Jobs
constexpr seconds kPodEventsPause{30};  // for one pod

std::string StoreSelector(const std::string& store) { return fmt::format("{}={}", kStoreLabel, store); }

bool IsTakenAway(const PodView& pod) {
  return (pod.deleted_unix_s > 0 || pod.phase == kDeletedPhase) && !HasSucceeded(pod);
}

// Returns the newest event of a list.
PodEvent LastEvent(const Json& list) {
  PodEvent last;
  std::string last_time;
  for (const Json& event : list.at("items")) {
    const auto text = [&](const char* name) {
      const auto found = event.find(name);
      return found != event.end() && found->is_string() ? found->get<std::string>() : "";
    };
    const std::string time = text("lastTimestamp").empty() ? text("eventTime") : text("lastTimestamp");
    if (time < last_time) continue;
    last_time = time;
    last = {text("reason"), text("message")};
  }
  return last;
}

bool IsOver(const PodView& pod) {
  return pod.phase == "Succeeded" || pod.phase == "Failed" || pod.phase == kDeletedPhase;
}

}  // namespace

Observer::Observer(Cluster& cluster, const plugin::Clock& clock, const std::string& store, Json objects)
    : cluster_(cluster),
      clock_(clock),
      objects_(std::move(objects)),
      job_watch_(cluster, clock, cluster.JobsPath(), StoreSelector(store),
                 {[this](const Json& object) {
                    JobView job = ParseJob(object, cluster_.kind());
                    jobs_[job.name] = std::move(job);
                  },
                  [this](const Json& object) {
                    JobView job = ParseJob(object, cluster_.kind());
                    jobs_.erase(job.name);
                    if (!ended_.contains(job.name)) removed_[job.name] = std::move(job);
                  },
                  [this] { jobs_.clear(); }}),
      pod_watch_(cluster, clock, cluster.CorePath("pods"), StoreSelector(store),
                 {[this](const Json& object) { Keep(ParsePod(object, cluster_.kind())); },
                  [this](const Json& object) {
                    PodView pod = ParsePod(object, cluster_.kind());
                    if (!IsOver(pod)) pod.phase = kDeletedPhase;
                    Keep(std::move(pod));
                  },
                  [this] {
                    for (auto& [job, pods] : pods_) {
                      for (auto& [name, pod] : pods) {
                        if (!IsOver(pod)) pod.phase = kDeletedPhase;
                      }
                    }
                  }}) {}

void Observer::Refresh() {
  job_watch_.Refresh();
  pod_watch_.Refresh();
}

void Observer::SetEnded(const std::string& key) {
  followed_.erase(key);
  removed_.erase(key);
  ended_.insert(key);
}

void Observer::Keep(PodView pod) {
  if (ended_.contains(pod.job) && IsOver(pod)) {
    pods_[pod.job].erase(KeyOf(pod));
    return;
  }
  std::string key = KeyOf(pod);
  pods_[pod.job][std::move(key)] = std::move(pod);
}

bool Observer::Runs(const std::string& key, int64_t now_unix_s) const {
  const auto pods = pods_.find(key);
  return pods != pods_.end() && std::any_of(pods->second.begin(), pods->second.end(),
                                            [&](const auto& pod) { return !HasEnded(pod.second, now_unix_s); });
}

// Whether the cluster may still get a Job that was told to end before it was noted that the cluster has it.
bool Observer::MayCome(const std::string& key) {
  const plugin::Clock::Time now = clock_.Now();
  return now - unnoted_since_.try_emplace(key, now).first->second < kUnnotedPatience;
}

Observation::Presence Observer::AskFor(const Record& record) {
  const Response found = cluster_.Call({"GET", cluster_.JobsPath() + '/' + record.key, {}});
  if (found.code != kNotFound && !found.ok())
    throw cluster_.ToFailure(found, fmt::format("look at {} {}", cluster_.kind().name, record.key));
  const bool there = found.ok() && ParseJob(found.Document(), cluster_.kind()).uid == record.uid;
  return there ? Observation::Presence::kUnheard : Observation::Presence::kGone;
}

// Deleting a namespace deletes its Jobs. Without rights of our own there, the reason is only visible in a dry run.
std::string Observer::WhyNoNamespace() {
  const Json map = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "ridgeline-check"}}}};
  const Response asked = cluster_.Call({"POST", cluster_.CorePath("configmaps") + "?dryRun=All", map});
  return asked.code == kForbidden || asked.code == kNotFound ? asked.Message() : "";
}

void Observer::TakePods(const std::string& key, const std::string& job_uid, Followed& followed) const {
  const auto pods = pods_.find(key);
  if (pods == pods_.end()) return;
  Pods& known = followed.pods;
  std::map<std::string, const PodView*> first;  // the first pod of each index that has none yet
  for (const auto& [pod_key, pod] : pods->second) {
    if (followed.left_behind.contains(pod_key)) continue;
    if (!pod.job_uid.empty() && pod.job_uid != job_uid) continue;  // it belongs to another Job of that name
    if (const auto same = known.find(pod_key); same != known.end()) {
      same->second = pod;
      continue;
    }
    const auto before = [](const PodView& a, const PodView& b) {
      return std::pair(a.created_unix_s, a.deleted_unix_s == 0) < std::pair(b.created_unix_s, b.deleted_unix_s == 0);
    };
    const PodView*& best = first[pod.index];
    if (best == nullptr || before(pod, *best)) best = &pod;
  }
  for (const auto& [index, pod] : first) {
    const bool has_one = std::any_of(known.begin(), known.end(),
                                     [&index = index](const auto& one) { return one.second.index == index; });
    if (!has_one) known.emplace(KeyOf(*pod), *pod);
  }
}

// Whether the Job still exists. The pods' end may be known before their Job's state that ended them: suspended, past
// its deadline, or deleted.
bool Observer::IsStillThere(const Record& record, Followed& followed, JobView& job) {
  if (job.suspended || job.deleting || job.complete || job.failed) return true;
  bool new_ones = false;
  for (const auto& [key, pod] : followed.pods) {
    if (IsTakenAway(pod)) new_ones = followed.asked_of.insert(key).second || new_ones;
  }
  if (!new_ones) return true;
  const Response found = cluster_.Call({"GET", cluster_.JobsPath() + '/' + record.key, {}});
  if (found.code == kNotFound) return false;
  if (!found.ok()) return true;
  JobView now = ParseJob(found.Document(), cluster_.kind());
  if (now.uid != record.uid) return false;
  job = std::move(now);
  return true;
}

// Forgets the pods that the Job's suspension ended, because that is no end of the Job. When resumed, the Job starts
// again with other pods.
void Observer::LeaveBehind(const JobView& job, Followed& followed) {
  std::erase_if(followed.pods, [&](const auto& entry) {
    const auto& [key, pod] = entry;
    // A pod that was deleted after the Job's start was deleted for another reason.
    const bool before_start =
        pod.created_unix_s < job.started_unix_s && pod.deletion_asked_unix_s <= job.started_unix_s;
    if (!IsTakenAway(pod) || (!job.suspended && !before_start)) return false;
    followed.left_behind.insert(key);
    return true;
  });
}

Observation Observer::Look(const Record& record) {
  Observation seen;
  seen.unix_s = cluster_.UnixS();
  seen.runs = Runs(record.key, seen.unix_s);
  if (record.cancelled && record.uid.empty() && MayCome(record.key)) seen.presence = Observation::Presence::kUnheard;
  if (record.ended || record.uid.empty()) return seen;
  const auto job = jobs_.find(record.key);
  bool there = job != jobs_.end() && job->second.uid == record.uid;
  seen.presence = there ? Observation::Presence::kThere : AskFor(record);
  if (seen.presence == Observation::Presence::kUnheard) return seen;
  Followed& followed = followed_[record.key];
  TakePods(record.key, record.uid, followed);
  if (there && !IsStillThere(record, followed, job->second)) {
    jobs_.erase(job);
    there = false;
    seen.presence = Observation::Presence::kGone;
  }
  if (there) seen.job = job->second;
  if (const auto removed = removed_.find(record.key);
      !there && removed != removed_.end() && removed->second.uid == record.uid) {
    seen.job = removed->second;
  }
  if (!there && !record.cancelled) seen.no_namespace = WhyNoNamespace();
  if (there) LeaveBehind(seen.job, followed);
  if (!there || !seen.job.suspended) seen.pods = followed.pods;
  if (there && !record.cancelled) LookAtStage(record, followed, seen);
  return seen;
}

void Observer::LookAtStage(const Record& record, Followed& followed, Observation& seen) {
  seen.stage = StageOf(seen.job, seen.pods, seen.unix_s);
  const plugin::Clock::Time now = clock_.Now();
  if (seen.stage != std::exchange(followed.stage, seen.stage) || followed.stage_since == plugin::Clock::Time()) {
    followed.stage_since = now;
  }
  seen.stage_for = now - followed.stage_since;
  if (seen.stage == Stage::kRunning || seen.stage == Stage::kSuspended) followed.waits_since_unix_s = seen.unix_s;
  seen.waiting_for_s =
      seen.unix_s - (followed.waits_since_unix_s > 0 ? followed.waits_since_unix_s : record.created_unix_s);
  const bool lacks_pods =
      std::ssize(seen.pods) < seen.job.pods &&
      (seen.stage == Stage::kNoPod || seen.stage == Stage::kQueued || seen.stage == Stage::kStarting);
  if (lacks_pods && seen.stage_for >= kPodlessPatience) {
    AskForRefusals();
    // What a controller makes is called as the job is, and has another uid.
    for (const std::string& of : {record.uid, record.key, record.key + cluster_.kind().infix}) {
      if (const auto refused = refusals_.find(of); refused != refusals_.end()) seen.refusal = refused->second;
    }
  }
  const bool unplaced = seen.stage == Stage::kNoPod || seen.stage == Stage::kQueued;
  if (unplaced && seen.stage_for >= kPodlessPatience) {
    AskForGroup(record.key, followed);
    seen.group = followed.group;
  }
  if (seen.stage == Stage::kStarting && seen.stage_for >= kUnmadePatience) {
    AskForPodEvents(followed, seen.pods);
    seen.events = followed.events;
  }
}

// Only events say why Jobs get no pods.
void Observer::AskForRefusals() {
  const plugin::Clock::Time now = clock_.Now();
  if (!may_read_events_ || now - refusals_asked_ < kEventsPause) return;
  refusals_asked_ = now;
  const Kind& kind = cluster_.kind();
  for (const RefusalEvent& of : kind.refusals) {
    if (of.kind == nullptr || !may_read_events_) continue;
    const std::string selector = plugin::UrlEncode(fmt::format("involvedObject.kind={},reason={}", of.kind, of.reason));
    const Response response = cluster_.Call({"GET", cluster_.CorePath("events") + "?fieldSelector=" + selector, {}});
    may_read_events_ = response.code != kForbidden;
    if (!response.ok()) continue;
    const Json document = response.Document();
    for (const Json& event : document.at("items")) {
      const bool is_job = std::string_view(of.kind) == kind.name;
      const Json about = event.value("involvedObject", Json::object());
      const std::string which = about.value(is_job ? "uid" : "name", "");
      if (!which.empty()) refusals_[which] = event.value("message", "");
    }
  }
}

// What a job owns may say why its gang waits.
void Observer::AskForGroup(const std::string& key, Followed& followed) {
  const plugin::Clock::Time now = clock_.Now();
  if (objects_.empty() || (followed.group_asked && now - *followed.group_asked < kPodEventsPause)) return;
  followed.group_asked = now;
  std::vector<Request> requests;
  for (const Json& object : objects_) requests.push_back({"GET", cluster_.PathOf(object) + '/' + key, {}});
  followed.group.clear();
  for (const Response& response : cluster_.CallAll(requests)) {
    if (response.ok() && followed.group.empty()) followed.group = WaitOfGroup(response.Document());
  }
}

// Only events say how far a pod's container is, and what it lacks: volumes, images on their way.
void Observer::AskForPodEvents(Followed& followed, const Pods& pods) {
  const plugin::Clock::Time now = clock_.Now();
  if (!may_read_events_ || (followed.events_asked && now - *followed.events_asked < kPodEventsPause)) return;
  followed.events_asked = now;
  std::vector<Request> requests;
  std::vector<std::string> of;
  for (const auto& [key, pod] : pods) {
    if (pod.HasBegun() || pod.node.empty()) continue;
    const std::string selector = plugin::UrlEncode("involvedObject.uid=" + pod.uid);
    requests.push_back({"GET", cluster_.CorePath("events") + "?fieldSelector=" + selector, {}});
    of.push_back(pod.name);
  }
  const std::vector<Response> responses = cluster_.CallAll(requests);
  for (size_t i = 0; i < responses.size(); ++i) {
    may_read_events_ = may_read_events_ && responses[i].code != kForbidden;
    if (responses[i].ok()) followed.events[of[i]] = LastEvent(responses[i].Document());
  }
}

}  // namespace ridgeline::kubernetes
