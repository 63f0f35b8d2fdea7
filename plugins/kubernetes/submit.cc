#include "kubernetes/submit.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "common/remote_job.h"
#include "kubernetes/parse.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;

}  // namespace

Submitter::Submitter(Cluster& cluster, Journal& journal, const Options& options)
    : cluster_(cluster), journal_(journal), options_(options) {}

Submitter::Pending& Submitter::Prepare(const Json& job) {
  const auto key = job.at("key").get<std::string>();
  if (job.at("exec").empty()) throw Failure(Failure::Kind::kInvalidInput, "the job has no command");
  const std::string text = plugin::ReadsJobFile(job)
                               ? ReadForeignFile(job.at("job_file").get<std::string>(), kMaxJobFileBytes).value_or("")
                               : "";
  Manifests manifests = MakeManifests(job, text, options_, journal_.store(), plugin::NewSecret());
  const auto had = pending_.find(key);
  if (had != pending_.end() && had->second.manifests.hash == manifests.hash) {
    had->second.failure.reset();
    return had->second;
  }
  Record record;
  record.key = key;
  record.hash = manifests.hash;
  record.kind = options_.kind->setting;
  record.job_dir = job.at("job_dir").get<std::string>();
  record.points = plugin::PointsOf(text);
  record.created_unix_s = cluster_.UnixS();
  journal_.Write(std::move(record));
  Pending pending;
  pending.manifests = std::move(manifests);
  return pending_[key] = std::move(pending);
}

void Submitter::TakeJob(const Json& object, Pending& pending) {
  const JobView job = ParseJob(object, cluster_.kind());
  pending.uid = job.uid;
  pending.ttl_s = job.ttl_s;
  pending.created_unix_s = job.created_unix_s;
}

// Looks at the Job that has our name. It is ours if it is of our store and runs what we want.
std::optional<Failure> Submitter::Adopt(Pending& pending) {
  const std::string& name = pending.manifests.name;
  const Response found = cluster_.Call({"GET", cluster_.JobsPath() + '/' + name, {}});
  if (!found.ok()) return cluster_.ToFailure(found, fmt::format("look at {} {}", cluster_.kind().name, name));
  const Json object = found.Document();
  const JobView job = ParseJob(object, cluster_.kind());
  const bool ours = object.at("metadata").value("labels", Json::object()).value(kStoreLabel, "") == journal_.store();
  if (!ours || job.hash != pending.manifests.hash) {
    return Failure(
        Failure::Kind::kInvalidInput,
        fmt::format("namespace {} has a {} {} already, {}", cluster_.name_space(), cluster_.kind().name, name,
                    ours ? "of another specification: the sweep's settings have changed since"
                         : "which this database knows nothing of"),
        fmt::format("look at it, then `kubectl delete {} {}`, or use another namespace", cluster_.kind().setting,
                    name));
  }
  TakeJob(object, pending);
  return std::nullopt;
}

void Submitter::Create(const std::vector<Pending*>& pending) {
  std::vector<Request> requests;
  std::vector<Pending*> of;
  for (Pending* each : pending) {
    if (!each->uid.empty()) continue;
    // A modern server then refuses unknown fields instead of dropping them.
    requests.push_back({"POST", cluster_.JobsPath() + "?fieldValidation=Strict", each->manifests.job});
    of.push_back(each);
  }
  const std::vector<Response> responses = cluster_.CallAll(requests);
  for (size_t i = 0; i < responses.size(); ++i) {
    Pending& each = *of[i];
    if (responses[i].ok()) {
      TakeJob(responses[i].Document(), each);
    } else if (responses[i].code == kConflict) {
      each.failure = Adopt(each);
    } else {
      each.failure = cluster_.ToFailure(responses[i], fmt::format("create {} {} in namespace {}", cluster_.kind().name,
                                                                  each.manifests.name, cluster_.name_space()));
    }
  }
}

// The Job owns the ConfigMaps, the Service and the Secret, so they go with it. Its pods wait for them. A Secret that
// exists stays as it is, because pods may have read it.
void Submitter::CreateOthers(const std::vector<Pending*>& pending) {
  struct Call {
    Pending* of;
    size_t index;
  };
  std::vector<Request> requests;
  std::vector<Call> calls;
  for (Pending* each : pending) {
    if (each->failure) continue;
    for (size_t i = 0; i < each->manifests.others.size(); ++i) {
      if (each->made.contains(i)) continue;
      Json object = each->manifests.others[i];
      object["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", cluster_.kind().api_version},
                                                            {"kind", cluster_.kind().name},
                                                            {"name", each->manifests.name},
                                                            {"uid", each->uid}}});
      const std::string path = cluster_.PathOf(object);
      requests.push_back({"POST", path, std::move(object)});
      calls.push_back({each, i});
    }
  }
  const std::vector<Response> responses = cluster_.CallAll(requests);
  for (size_t i = 0; i < responses.size(); ++i) {
    Pending& each = *calls[i].of;
    if (responses[i].ok() || responses[i].code == kConflict) {
      each.made.insert(calls[i].index);
    } else {
      each.failure = cluster_.ToFailure(
          responses[i], fmt::format("create what {} {} needs", cluster_.kind().name, each.manifests.name));
    }
  }
}

std::vector<plugin::Submission> Submitter::Submit(const Json& jobs) {
  std::vector<Pending*> pending;
  std::map<std::string, Failure> failures;  // by key
  for (const Json& job : jobs) {
    const auto key = job.at("key").get<std::string>();
    try {
      const Record* known = journal_.Find(key);
      if (known == nullptr || known->uid.empty()) pending.push_back(&Prepare(job));
    } catch (const Error& e) {
      failures.emplace(key, Failure::Of(e));
    }
  }
  Create(pending);
  CreateOthers(pending);
  for (const Pending* each : pending) {
    const std::string key = each->manifests.name;
    if (each->failure) {
      failures.emplace(key, *each->failure);
      if (each->failure->kind() != Failure::Kind::kNotNow) pending_.erase(key);
      continue;
    }
    Record record = *journal_.Find(key);
    record.uid = each->uid;
    record.ttl_s = each->ttl_s;
    if (each->created_unix_s > 0) record.created_unix_s = each->created_unix_s;
    journal_.Write(std::move(record));
    pending_.erase(key);
  }
  std::vector<plugin::Submission> answers;
  for (const Json& job : jobs) {
    const auto key = job.at("key").get<std::string>();
    const auto failure = failures.find(key);
    answers.push_back(failure != failures.end() ? plugin::Submission{"", failure->second}
                                                : plugin::Submission{journal_.Find(key)->uid, {}});
  }
  return answers;
}

}  // namespace ridgeline::kubernetes
