#include "kubernetes/session.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kubernetes/judge.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Json;

constexpr const char* kForeground = "Foreground";  // the Job goes when its pods have gone
constexpr const char* kBackground = "Background";

// A pod that a controller started in place of another ends with its Job. It also shares a volume with whatever runs
// next. So the job has ended only when that pod has, too.
plugin::JobState StateOf(const Record& record, const Observation& seen, plugin::JobState state) {
  if (state.phase == plugin::Phase::kEnded && seen.runs) state = {plugin::Phase::kRunning, 0, {}, {}};
  state.native_id = record.uid;
  return state;
}

}  // namespace

Session::Session(const std::filesystem::path& state_dir, Options options, std::unique_ptr<Cluster> cluster,
                 const plugin::Clock& clock)
    : options_(std::move(options)),
      journal_(state_dir),
      cluster_(std::move(cluster)),
      submitter_(*cluster_, journal_, options_),
      observer_(*cluster_, clock, journal_.store(), options_.objects),
      collector_(*cluster_, journal_, clock, options_.output_path) {}

Record* Session::Find(const std::string& key) {
  Record* record = journal_.Find(key);
  if (record == nullptr || record->ended || record->kind == options_.kind->setting) return record;
  throw plugin::Failure(plugin::Failure::Kind::kInvalidInput,
                        fmt::format("launch: kubernetes: kind is {}, and {} was submitted as a {}",
                                    options_.kind->setting, key, record->kind),
                        fmt::format("set kind: {} until its jobs have ended, or cancel them with that", record->kind));
}

Request Session::DeleteRequest(const std::string& name, const std::string& uid, const char* propagation) const {
  Json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", propagation}};
  if (!uid.empty()) options["preconditions"] = {{"uid", uid}};
  return {"DELETE", cluster_->JobsPath() + '/' + name, std::move(options)};
}

// Notes the uid of a Job that is to end. Its submitter was killed, or got no answer, and could not note that the
// cluster has it.
Record& Session::Noted(Record& record, const JobView& job) {
  if (!record.uid.empty() || record.hash != job.hash) return record;
  Record noted = record;
  noted.uid = job.uid;
  return journal_.Write(std::move(noted));
}

plugin::JobState Session::Follow(Record& record) {
  const Observation seen = observer_.Look(record);
  plugin::JobState state = collector_.Collect(record, seen, Judge(record, seen, options_));
  if (record.ended) observer_.SetEnded(record.key);
  return StateOf(record, seen, std::move(state));
}

std::vector<plugin::JobState> Session::Poll(const std::vector<std::string>& keys) {
  observer_.Refresh();
  collector_.BeginPoll();
  std::vector<plugin::JobState> states;
  for (const std::string& key : keys) {
    Record* record = Find(key);
    states.push_back(record == nullptr ? plugin::JobState() : Follow(*record));
  }
  DeleteEnded();
  return states;
}

std::vector<plugin::JobState> Session::Look(const std::vector<std::string>& keys) {
  observer_.Refresh();
  std::vector<plugin::JobState> states;
  for (const std::string& key : keys) {
    Record* record = Find(key);
    states.emplace_back();
    if (record == nullptr) continue;
    const Observation seen = observer_.Look(*record);
    states.back() = StateOf(*record, seen, Judge(*record, seen, options_));
  }
  return states;
}

// Deletes the Jobs that were collected or cancelled, in this process or in one that was killed before it could.
void Session::DeleteEnded() {
  std::vector<Request> requests;
  std::vector<const JobView*> of;
  for (const auto& [name, job] : observer_.jobs()) {
    Record* record = deleted_.contains(job.uid) ? nullptr : journal_.Find(name);
    if (record != nullptr && record->cancelled) record = &Noted(*record, job);
    if (record == nullptr) continue;
    // Somebody deleted the Job and made the same one again. Its measurement was given up.
    const bool made_again = record->ended && record->uid != job.uid && record->hash == job.hash;
    if (record->uid != job.uid && !made_again) continue;
    if (!record->ended && (!record->cancelled || job.deleting)) continue;
    requests.push_back(DeleteRequest(name, job.uid, kBackground));
    of.push_back(&job);
  }
  const std::vector<Response> responses = cluster_->CallAll(requests);
  for (size_t i = 0; i < responses.size(); ++i) {
    const bool final = responses[i].ok() || responses[i].code == kNotFound || responses[i].code == kConflict ||
                       responses[i].code == kForbidden;  // then its TTL ends it
    if (!final)
      throw cluster_->ToFailure(responses[i], fmt::format("delete {} {}", cluster_->kind().name, of[i]->name));
    deleted_.insert(of[i]->uid);
    journal_.Forget(of[i]->name);
  }
}

std::vector<plugin::Cancellation> Session::Cancel(const std::vector<std::string>& keys) {
  observer_.Refresh();
  std::vector<Request> requests;
  std::vector<plugin::Cancellation> answers;
  for (const std::string& key : keys) {
    Record* record = Find(key);
    const auto job = observer_.jobs().find(key);
    const bool seen = record != nullptr && job != observer_.jobs().end();
    if (seen) record = &Noted(*record, job->second);
    const bool untold = record != nullptr && !record->ended && !record->cancelled;
    const bool live = untold && seen && job->second.uid == record->uid && !job->second.complete && !job->second.failed;
    const bool may_come = untold && record->uid.empty();
    if (live || may_come) {
      Record told = *record;
      told.cancelled = true;
      if (live) requests.push_back(DeleteRequest(key, told.uid, kForeground));
      journal_.Write(std::move(told));
    }
    answers.push_back({live || may_come});
  }
  for (const Response& response : cluster_->CallAll(requests)) {
    if (!response.ok() && response.code != kNotFound)
      throw cluster_->ToFailure(response, fmt::format("delete a {}", cluster_->kind().name));
  }
  return answers;
}

}  // namespace ridgeline::kubernetes
