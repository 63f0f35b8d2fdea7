#include "kubernetes/observe.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/manifest.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;
using std::chrono::seconds;

constexpr seconds kPodlessPatience{3};  // a Job has its pod by then, or something is wrong
constexpr seconds kEventsPause{5};

std::string StoreSelector(const std::string& store) { return fmt::format("{}={}", kStoreLabel, store); }

bool IsOver(const PodView& pod) {
  return pod.phase == "Succeeded" || pod.phase == "Failed" || pod.phase == kDeletedPhase;
}

}  // namespace

Observer::Observer(Cluster& cluster, const plugin::Clock& clock, const std::string& store)
    : cluster_(cluster),
      clock_(clock),
      job_watch_(cluster, clock, cluster.JobsPath(), StoreSelector(store),
                 {[this](const Json& object) {
                    JobView job = ParseJob(object);
                    jobs_[job.name] = std::move(job);
                  },
                  [this](const Json& object) { jobs_.erase(ParseJob(object).name); }, [this] { jobs_.clear(); }}),
      pod_watch_(cluster, clock, cluster.CorePath("pods"), StoreSelector(store),
                 {[this](const Json& object) { Keep(ParsePod(object)); },
                  [this](const Json& object) {
                    PodView pod = ParsePod(object);
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
  ended_.insert(key);
}

void Observer::Keep(PodView pod) {
  if (ended_.contains(pod.job) && IsOver(pod)) {
    pods_[pod.job].erase(pod.name);
    return;
  }
  std::string name = pod.name;
  pods_[pod.job][std::move(name)] = std::move(pod);
}

bool Observer::Runs(const std::string& key, int64_t now_unix_s) const {
  const auto pods = pods_.find(key);
  return pods != pods_.end() && std::any_of(pods->second.begin(), pods->second.end(),
                                            [&](const auto& pod) { return !HasEnded(pod.second, now_unix_s); });
}

Observation::Presence Observer::AskFor(const Record& record) {
  const Response found = cluster_.Call({"GET", cluster_.JobsPath() + '/' + record.key, {}});
  if (found.code != kNotFound && !found.ok()) throw cluster_.ToFailure(found, "look at Job " + record.key);
  const bool there = found.ok() && ParseJob(found.Document()).uid == record.uid;
  return there ? Observation::Presence::kUnheard : Observation::Presence::kGone;
}

void Observer::TakePods(const std::string& key, Pods& known) const {
  const auto pods = pods_.find(key);
  if (pods == pods_.end()) return;
  std::map<std::string, const PodView*> first;  // of an index that has none yet
  for (const auto& [name, pod] : pods->second) {
    if (const auto same = known.find(name); same != known.end()) {
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
    if (!has_one) known.emplace(pod->name, *pod);
  }
}

Observation Observer::Look(const Record& record) {
  Observation seen;
  seen.unix_s = clock_.UnixS();
  seen.runs = Runs(record.key, seen.unix_s);
  if (record.ended || record.uid.empty()) return seen;
  const auto job = jobs_.find(record.key);
  const bool there = job != jobs_.end() && job->second.uid == record.uid;
  seen.presence = there ? Observation::Presence::kThere : AskFor(record);
  if (seen.presence == Observation::Presence::kUnheard) return seen;
  Followed& followed = followed_[record.key];
  TakePods(record.key, followed.pods);
  seen.pods = followed.pods;
  if (there) seen.job = job->second;
  if (there && !record.cancelled) LookAtStall(record, followed, seen);
  return seen;
}

void Observer::LookAtStall(const Record& record, Followed& followed, Observation& seen) {
  seen.stall = StallOf(seen.job, seen.pods, seen.unix_s);
  const plugin::Clock::Time now = clock_.Now();
  if (seen.stall != std::exchange(followed.stall, seen.stall)) followed.stalled_since = now;
  if (seen.stall == Stall::kNone) return;
  seen.stalled_for = now - followed.stalled_since;
  if (seen.stall != Stall::kNoPod || seen.stalled_for < kPodlessPatience) return;
  AskForRefusals();
  if (const auto refused = refusals_.find(record.uid); refused != refusals_.end()) seen.refusal = refused->second;
}

// Why Jobs get no pods is only said in events.
void Observer::AskForRefusals() {
  const plugin::Clock::Time now = clock_.Now();
  if (!may_read_events_ || now - refusals_asked_ < kEventsPause) return;
  refusals_asked_ = now;
  const std::string selector = UrlEncode("involvedObject.kind=Job,reason=FailedCreate");
  const Response response = cluster_.Call({"GET", cluster_.CorePath("events") + "?fieldSelector=" + selector, {}});
  may_read_events_ = response.code != kForbidden;
  if (!response.ok()) return;
  const Json document = response.Document();
  for (const Json& event : document.at("items")) {
    const std::string uid = event.value("/involvedObject/uid"_json_pointer, "");
    if (!uid.empty()) refusals_[uid] = event.value("message", "");
  }
}

}  // namespace ridgeline::kubernetes
