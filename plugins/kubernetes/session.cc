#include "kubernetes/session.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "common/files.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;
using std::chrono::seconds;

constexpr int64_t kConflict = 409;
constexpr int64_t kNotFound = 404;
constexpr int64_t kForbidden = 403;
constexpr seconds kLogPatience{10};      // with the log of a pod that has ended
constexpr seconds kStuckPatience{30};    // with what will not get better by itself: an image that is not there
constexpr seconds kPodlessPatience{3};   // a Job has its pod by then, or something is wrong
constexpr seconds kRefusedPatience{10};  // a new namespace lacks its service account for a moment
constexpr seconds kEventsPause{5};
constexpr size_t kLogTailBytes = 4096;
constexpr const char* kForeground = "Foreground";  // the Job goes when its pods have gone
constexpr const char* kBackground = "Background";

std::string StoreSelector(const std::string& store) { return fmt::format("{}={}", kStoreLabel, store); }

std::vector<std::string> PointsOf(const std::string& job_file_text) {
  const Json document = Json::parse(job_file_text, nullptr, false);
  std::vector<std::string> ids;
  if (!document.is_object()) return ids;
  for (const Json& point : document.value("points", Json::array())) ids.push_back(point.at("id").get<std::string>());
  return ids;
}

bool IsOver(const PodView& pod) {
  return pod.phase == "Succeeded" || pod.phase == "Failed" || pod.phase == kDeletedPhase;
}

bool NamesJobFile(const Json& job) {
  const auto exec = job.at("exec").get<std::vector<std::string>>();
  return std::find(exec.begin(), exec.end(), job.value("job_file", "")) != exec.end();
}

}  // namespace

Session::Session(const std::filesystem::path& state_dir, Options options)
    : options_(std::move(options)),
      journal_(state_dir),
      cluster_(Cluster::Connect(options_)),
      job_watch_(*cluster_, Jobs(), StoreSelector(journal_.store()),
                 {[this](const Json& object) {
                    JobView job = ParseJob(object);
                    jobs_[job.name] = std::move(job);
                  },
                  [this](const Json& object) { jobs_.erase(ParseJob(object).name); }, [this] { jobs_.clear(); }}),
      pod_watch_(*cluster_, Core("pods"), StoreSelector(journal_.store()),
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

void Session::Keep(PodView pod) {
  if (finished_.contains(pod.job) && IsOver(pod)) {
    pods_[pod.job].erase(pod.name);
    return;
  }
  std::string name = pod.name;
  pods_[pod.job][std::move(name)] = std::move(pod);
}

std::string Session::Description() {
  const Response jobs = cluster_->Call({"GET", Jobs() + "?limit=1", {}});
  if (!jobs.ok()) throw cluster_->ToFailure(jobs, "list the Jobs of namespace " + cluster_->name_space());
  const Response version = cluster_->Call({"GET", "/version", {}});
  const std::string release = version.ok() ? version.Document().value("gitVersion", "") : "";
  return fmt::format("Kubernetes {}, namespace {}", release, cluster_->name_space());
}

// Nothing holds the pods of two gangs from waiting for each other, each with half of the nodes.
int64_t Session::Window() const {
  if (options_.nodes > 1 && options_.queue.empty()) return 1;
  return options_.window > 0 ? options_.window : kDefaultWindow;
}

Request Session::DeleteRequest(const std::string& name, const std::string& uid, const char* propagation) const {
  Json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", propagation}};
  if (!uid.empty()) options["preconditions"] = {{"uid", uid}};
  return {"DELETE", Jobs() + '/' + name, std::move(options)};
}

Session::Pending Session::Prepare(const Json& job) {
  const auto key = job.at("key").get<std::string>();
  if (!IsKey(key)) {
    throw Failure(Failure::Kind::kInvalidInput, fmt::format("'{}' is not a job key (rl-, letters, digits and -)", key));
  }
  if (job.at("exec").empty()) throw Failure(Failure::Kind::kInvalidInput, "the job has no command");
  const std::string text = NamesJobFile(job) ? plugin::ReadText(job.at("job_file").get<std::string>()) : "";
  Pending pending;
  pending.job = job;
  pending.manifests = MakeManifests(job, text, options_, journal_.store());
  Record record;
  record.key = key;
  record.hash = pending.manifests.hash;
  record.job_dir = job.at("job_dir").get<std::string>();
  record.points = PointsOf(text);
  record.created_unix_s = ::time(nullptr);
  journal_.Write(std::move(record));
  return pending;
}

// The Job that is there under our name: ours where it is of our store and runs what we mean.
std::optional<Failure> Session::Adopt(Pending& pending) {
  const std::string& name = pending.manifests.name;
  const Response found = cluster_->Call({"GET", Jobs() + '/' + name, {}});
  if (!found.ok()) return cluster_->ToFailure(found, "look at Job " + name);
  const Json object = found.Document();
  const JobView job = ParseJob(object);
  const bool ours = object.at("metadata").value("labels", Json::object()).value(kStoreLabel, "") == journal_.store();
  if (!ours || job.hash != pending.manifests.hash) {
    return Failure(Failure::Kind::kInvalidInput,
                   fmt::format("namespace {} has a Job {} already, {}", cluster_->name_space(), name,
                               ours ? "of another specification: the sweep's settings have changed since"
                                    : "which this database knows nothing of"),
                   fmt::format("see what it is, then `kubectl delete job {}`; or use another namespace", name));
  }
  pending.uid = job.uid;
  return std::nullopt;
}

void Session::Create(std::vector<Pending>& pending) {
  std::vector<Request> requests;
  // A modern server then refuses what it does not know, in place of dropping it.
  for (const Pending& each : pending)
    requests.push_back({"POST", Jobs() + "?fieldValidation=Strict", each.manifests.job});
  const std::vector<Response> responses = cluster_->CallAll(requests);
  for (size_t i = 0; i < pending.size(); ++i) {
    Pending& each = pending[i];
    if (responses[i].ok()) {
      each.uid = ParseJob(responses[i].Document()).uid;
    } else if (responses[i].code == kConflict) {
      each.failure = Adopt(each);
    } else {
      each.failure = cluster_->ToFailure(
          responses[i], fmt::format("create Job {} in namespace {}", each.manifests.name, cluster_->name_space()));
    }
  }
}

// The ConfigMaps and the Service go with their Job: it owns them. Its pod waits for them.
void Session::CreateOthers(std::vector<Pending>& pending) {
  std::vector<Request> requests;
  std::vector<Pending*> of;
  for (Pending& each : pending) {
    if (each.failure) continue;
    for (Json object : each.manifests.others) {
      object["metadata"]["ownerReferences"] = Json::array(
          {{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", each.manifests.name}, {"uid", each.uid}}});
      const bool service = object.at("kind") == "Service";
      requests.push_back({"POST", Core(service ? "services" : "configmaps"), std::move(object)});
      of.push_back(&each);
    }
  }
  const std::vector<Response> responses = cluster_->CallAll(requests);
  for (size_t i = 0; i < responses.size(); ++i) {
    if (responses[i].ok() || responses[i].code == kConflict) continue;
    of[i]->failure = cluster_->ToFailure(responses[i], "create what Job " + of[i]->manifests.name + " needs");
  }
}

Json Session::Submit(const Json& jobs) {
  std::vector<Pending> pending;
  std::map<std::string, Failure> failures;  // by key
  for (const Json& job : jobs) {
    const auto key = job.at("key").get<std::string>();
    try {
      const Record* known = journal_.Find(key);
      if (known == nullptr || known->uid.empty()) pending.push_back(Prepare(job));
    } catch (const Failure& e) {
      failures.emplace(key, e);
    }
  }
  Create(pending);
  CreateOthers(pending);
  for (const Pending& each : pending) {
    const std::string& key = each.manifests.name;
    if (each.failure) {
      failures.emplace(key, *each.failure);
      continue;
    }
    Record record = *journal_.Find(key);
    record.uid = each.uid;
    journal_.Write(std::move(record));
  }
  Json answers = Json::array();
  for (const Json& job : jobs) {
    const auto key = job.at("key").get<std::string>();
    const auto failure = failures.find(key);
    Json answer = failure != failures.end() ? Json{{"error", failure->second.ToJson()}}
                                            : Json{{"native_id", journal_.Find(key)->uid}};
    answer["key"] = key;
    answers.push_back(std::move(answer));
  }
  return answers;
}

void Session::Refresh() {
  job_watch_.Refresh();
  pod_watch_.Refresh();
}

Session::Live& Session::LiveOf(const Record& record) {
  const auto found = live_.find(record.key);
  if (found != live_.end()) return found->second;
  return live_.emplace(record.key, Live{ResultFolder(record), {}, {}, {}, {}, {}}).first->second;
}

void Session::TakePods(const std::string& key, Live& live) {
  std::map<std::string, const PodView*> first;  // of an index that has none yet
  for (const auto& [name, pod] : pods_[key]) {
    if (const auto known = live.pods.find(name); known != live.pods.end()) {
      known->second = pod;
      continue;
    }
    const auto before = [](const PodView& a, const PodView& b) {
      return std::pair(a.created_unix_s, a.deleted_unix_s == 0) < std::pair(b.created_unix_s, b.deleted_unix_s == 0);
    };
    const PodView*& best = first[pod.index];
    if (best == nullptr || before(pod, *best)) best = &pod;
  }
  for (const auto& [index, pod] : first) {
    const bool has_one = std::any_of(live.pods.begin(), live.pods.end(),
                                     [&index = index](const auto& known) { return known.second.index == index; });
    if (!has_one) live.pods.emplace(pod->name, *pod);
  }
}

void Session::PumpLogs(Live& live) {
  for (const auto& [name, pod] : live.pods) {
    auto log = live.logs.find(name);
    if (log == live.logs.end()) {
      if (!pod.HasLog() || pod.phase == "Deleted") continue;
      const std::string path = fmt::format("{}/{}/log?container={}&follow=true", Core("pods"), name, kContainer);
      log = live.logs.emplace(name, PodLog(*cluster_, path)).first;
    }
    log->second.Pump(pod, live.results);
  }
}

// A pod that a controller started in place of the one that was taken away ends with its Job, and shares a volume with
// whatever is run next.
bool Session::Runs(const std::string& key) const {
  const auto pods = pods_.find(key);
  return pods != pods_.end() && std::any_of(pods->second.begin(), pods->second.end(),
                                            [](const auto& pod) { return !HasEnded(pod.second, ::time(nullptr)); });
}

Json Session::EndedAnswer(const Record& record) const {
  if (Runs(record.key)) return {{"state", "running"}};
  Json answer = {{"state", "ended"}, {"evidence", record.evidence}};
  if (record.started_unix_s > 0) answer["started_unix_s"] = record.started_unix_s;
  return answer;
}

// What can be had of its results is in its folder before its end is written down, and that before it is deleted.
Json Session::Finish(Record& record, Verdict verdict) {
  Live& live = LiveOf(record);
  for (const auto& [name, pod] : live.pods) live.results.TakeLastWords(pod.last_words);
  if (!options_.output_path.empty()) live.results.CopyMissing(options_.output_path + "/jobs/" + record.key);
  Record ended = record;
  ended.ended = true;
  ended.evidence = std::move(verdict.evidence);
  ended.started_unix_s = verdict.started_unix_s;
  const std::string& tail = live.results.log_tail();
  if (!tail.empty() && (ended.evidence.contains("end") || !live.results.HasAll())) {
    ended.evidence["log_tail"] = tail.substr(tail.size() - std::min(tail.size(), kLogTailBytes));
  }
  if (!ended.evidence.contains("end") && !live.results.HasAll()) {
    ended.evidence.try_emplace("message", "its log has no result of this point: it was rotated away, or cut");
    ended.evidence.try_emplace("hint",
                               "output: {claim: NAME, path: DIR} keeps results on a volume; see the points' log "
                               "sizes, and bundle fewer points");
  }
  live_.erase(record.key);
  finished_.insert(record.key);
  return EndedAnswer(journal_.Write(std::move(ended)));
}

Json Session::Vanished(Record& record) {
  const Response found = cluster_->Call({"GET", Jobs() + '/' + record.key, {}});
  if (found.code != kNotFound && !found.ok()) throw cluster_->ToFailure(found, "look at Job " + record.key);
  if (found.ok() && ParseJob(found.Document()).uid == record.uid) return {{"state", "queued"}};  // not heard of yet
  Live& live = LiveOf(record);
  TakePods(record.key, live);
  PumpLogs(live);
  Verdict verdict;
  verdict.phase = Phase::kEnded;
  verdict.evidence["kubernetes_job"] = record.key;
  const auto end = [&](const char* status, const std::string& message, const std::string& hint) {
    verdict.evidence["end"] = status;
    verdict.evidence["message"] = message;
    if (!hint.empty()) verdict.evidence["hint"] = hint;
  };
  if (record.cancelled) {
    end("cancelled", "the job was cancelled", "");
  } else if (::time(nullptr) - record.created_unix_s > options_.ttl_s) {
    end("lost", "the Job is gone, as finished Jobs are after their TTL", "ttl: keeps them for longer");
  } else {
    end("cancelled", "somebody deleted the Job", "`ridgeline run` with the same sweep runs its points again");
  }
  return Finish(record, std::move(verdict));
}

// Why Jobs get no pods is only said in events.
void Session::AskForEvents() {
  const Time now = std::chrono::steady_clock::now();
  if (!may_read_events_ || now - events_asked_ < kEventsPause) return;
  events_asked_ = now;
  const std::string selector = UrlEncode("involvedObject.kind=Job,reason=FailedCreate");
  const Response response = cluster_->Call({"GET", Core("events") + "?fieldSelector=" + selector, {}});
  may_read_events_ = response.code != kForbidden;
  if (!response.ok()) return;
  const Json document = response.Document();
  for (const Json& event : document.at("items")) {
    const std::string uid = event.value("/involvedObject/uid"_json_pointer, "");
    if (!uid.empty()) refusals_[uid] = event.value("message", "");
  }
}

std::optional<Verdict> Session::GivenUp(const JobView& job, Live& live, Verdict& verdict) {
  const Time now = std::chrono::steady_clock::now();
  const auto lasts = [&](std::optional<Time>& since, bool holds, seconds patience) {
    if (!holds) since.reset();
    if (holds && !since) since = now;
    return holds && now - *since >= patience;
  };
  const auto as_invalid = [&] {
    Verdict given_up;
    given_up.phase = Phase::kEnded;
    given_up.evidence = {{"end", "invalid"},
                         {"kubernetes_job", job.name},
                         {"message", verdict.evidence["waits"]},
                         {"hint", verdict.evidence["hint"]}};
    return given_up;
  };
  const bool stuck = !verdict.stuck.empty();
  if (lasts(live.stuck_since, stuck, kStuckPatience) || (stuck && verdict.at_once)) return as_invalid();
  const bool podless = verdict.phase == Phase::kQueued && live.pods.empty();
  if (!lasts(live.podless_since, podless, kPodlessPatience)) return std::nullopt;
  AskForEvents();
  const auto refused = refusals_.find(job.uid);
  if (refused == refusals_.end()) return std::nullopt;
  const Refusal refusal = JudgeRefusal(refused->second);
  verdict.evidence["waits"] = fmt::format("Job {}: {}", job.name, refusal.message);
  verdict.evidence["hint"] = refusal.hint;
  const bool lasting = now - *live.podless_since >= kRefusedPatience;
  return refusal.for_good && lasting ? std::optional(as_invalid()) : std::nullopt;
}

Json Session::StateOf(Record& record) {
  if (record.ended) return EndedAnswer(record);
  const auto job = jobs_.find(record.key);
  if (record.uid.empty()) return {{"state", "missing"}};
  if (job == jobs_.end() || job->second.uid != record.uid) return Vanished(record);
  Live& live = LiveOf(record);
  TakePods(record.key, live);
  PumpLogs(live);
  Verdict verdict = JudgeJob(job->second, live.pods, ::time(nullptr));
  if (record.cancelled) {  // it goes when its pods have gone, and these when their node says so
    if (verdict.phase == Phase::kEnded && !live.pods.empty() && job->second.deleting) {
      verdict.evidence["end"] = "cancelled";
      verdict.evidence["message"] = "the job was cancelled";
      return Finish(record, std::move(verdict));
    }
    return {{"state", verdict.started_unix_s > 0 ? "running" : "queued"}, {"started_unix_s", verdict.started_unix_s}};
  }
  if (std::optional<Verdict> given_up = GivenUp(job->second, live, verdict))
    return Finish(record, *std::move(given_up));
  if (verdict.phase == Phase::kQueued) return {{"state", "queued"}, {"evidence", verdict.evidence}};
  Json running = {{"state", "running"}, {"started_unix_s", verdict.started_unix_s}};
  if (verdict.phase == Phase::kRunning) return running;
  if (!live.ended_since) live.ended_since = std::chrono::steady_clock::now();
  // The Job's end may be heard of before its pods'.
  const bool silent = !live.pods.empty() && std::all_of(live.pods.begin(), live.pods.end(), [](const auto& pod) {
    return HasEnded(pod.second, ::time(nullptr));
  }) && std::all_of(live.logs.begin(), live.logs.end(), [](const auto& log) { return log.second.done(); });
  if (!silent && std::chrono::steady_clock::now() - *live.ended_since < kLogPatience) return running;
  return Finish(record, std::move(verdict));
}

// Whatever was collected or cancelled, in this process or in one that was killed before it could delete it.
void Session::DeleteEnded() {
  std::vector<Request> requests;
  std::vector<const JobView*> of;
  for (const auto& [name, job] : jobs_) {
    const Record* record = deleted_.contains(job.uid) ? nullptr : journal_.Find(name);
    if (record == nullptr || record->uid != job.uid) continue;
    if (!record->ended && (!record->cancelled || job.deleting)) continue;
    requests.push_back(DeleteRequest(name, job.uid, kBackground));
    of.push_back(&job);
  }
  const std::vector<Response> responses = cluster_->CallAll(requests);
  for (size_t i = 0; i < responses.size(); ++i) {
    const bool final = responses[i].ok() || responses[i].code == kNotFound || responses[i].code == kConflict ||
                       responses[i].code == kForbidden;  // then its TTL ends it
    if (!final) throw cluster_->ToFailure(responses[i], "delete Job " + of[i]->name);
    deleted_.insert(of[i]->uid);
    journal_.Forget(of[i]->name);
  }
}

Json Session::Poll(const Json& jobs) {
  Refresh();
  Json answers = Json::array();
  for (const Json& job : jobs) {
    Record* record = journal_.Find(job.at("key").get<std::string>());
    Json answer = record == nullptr ? Json{{"state", "missing"}} : StateOf(*record);
    if (record != nullptr && !record->uid.empty()) answer["native_id"] = record->uid;
    answer["key"] = job.at("key");
    answers.push_back(std::move(answer));
  }
  DeleteEnded();
  return answers;
}

Json Session::Cancel(const Json& jobs) {
  Refresh();
  std::vector<Request> requests;
  Json answers = Json::array();
  for (const Json& asked : jobs) {
    const auto key = asked.at("key").get<std::string>();
    Record* record = journal_.Find(key);
    const auto job = jobs_.find(key);
    const bool there = record != nullptr && !record->ended && job != jobs_.end() && job->second.uid == record->uid;
    const bool live = there && !record->cancelled && !job->second.complete && !job->second.failed;
    if (live) {
      Record told = *record;
      told.cancelled = true;
      requests.push_back(DeleteRequest(key, told.uid, kForeground));
      journal_.Write(std::move(told));
    }
    answers.push_back({{"key", key}, {"cancelled", live}});
  }
  for (const Response& response : cluster_->CallAll(requests)) {
    if (!response.ok() && response.code != kNotFound) throw cluster_->ToFailure(response, "delete a Job");
  }
  return answers;
}

}  // namespace ridgeline::kubernetes
