// A Kubernetes API server in memory, which does what a test says. It has Jobs, pods, logs and events, and reports
// changes to watches.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kubernetes/cluster.h"
#include "tests/plugins/manual_clock.h"

namespace ridgeline::kubernetes {

// The test's view of the server, and its controls.
struct ClusterWorld {
  // Lines that have come, to be read from the first.
  struct Tap {
    std::vector<std::string> lines;
    bool ended = false;
  };

  testing::ManualClock clock;
  const Kind* kind = &JobKind();     // what jobs become
  bool has_kind = true;              // whether the cluster has such objects
  std::map<std::string, Json> jobs;  // by name
  std::map<std::string, Json> pods;
  std::map<std::string, Json> others;                // by kind, as last posted
  std::map<std::string, std::shared_ptr<Tap>> logs;  // by pod
  Json group;                                        // what a PodGroup is; null: there is none
  Json events = Json::array();
  int64_t events_code = 200;
  int64_t create_code = 201;
  bool create_unheard = false;  // a Job is created, but its creator gets no answer
  int64_t log_code = 200;
  int64_t others_code = 201;            // for the objects that a Job needs
  int64_t retry_after_s = 0;            // with each 429
  std::optional<int64_t> ahead_s;       // relative to this machine's clock; nothing: its answers have no Date
  std::optional<int64_t> policy_ttl_s;  // the value of ttlSecondsAfterFinished that a policy sets
  Json version = {{"gitVersion", "v1.31.0"}, {"major", "1"}, {"minor", "31"}};
  std::set<std::string> forbidden;                                   // "create pods": what this user may not do
  std::map<std::string, std::string> dry_runs;                       // by kind: why such an object is refused
  std::vector<std::string> calls;                                    // "POST /apis/…"
  std::map<std::string, std::vector<std::shared_ptr<Tap>>> watches;  // by kind
  std::function<void()> while_awaited;                               // is called each time streams are waited for
  bool tells = true;                                                 // false: changes are not reported

  void Put(const std::string& kind, const Json& object) {
    const auto name = object.at("metadata").at("name").get<std::string>();
    (kind == "jobs" ? jobs : pods)[name] = object;
    Tell(kind, "MODIFIED", object);
  }
  void Take(const std::string& kind, const std::string& name) {
    auto& objects = kind == "jobs" ? jobs : pods;
    const Json object = objects.at(name);
    objects.erase(name);
    Tell(kind, "DELETED", object);
  }
  std::shared_ptr<Tap> LogOf(const std::string& pod) {
    auto& log = logs[pod];
    if (log == nullptr) log = std::make_shared<Tap>();
    return log;
  }
  int64_t Calls(const std::string& words) const {
    return std::count_if(calls.begin(), calls.end(),
                         [&](const std::string& call) { return call.find(words) != std::string::npos; });
  }

 private:
  void Tell(const std::string& kind, const char* type, const Json& object) {
    if (!tells) return;
    for (const auto& watch : watches[kind]) watch->lines.push_back(Json{{"type", type}, {"object", object}}.dump());
  }
};

class ScriptedCluster final : public Cluster {
 public:
  explicit ScriptedCluster(ClusterWorld& world) : Cluster(world.clock, *world.kind), world_(world) {}

  const std::string& name_space() const override { return name_space_; }

  std::vector<Response> AskAll(const std::vector<Request>& requests) override {
    std::vector<Response> responses;
    for (const Request& request : requests) {
      responses.push_back(Answer(request));
      if (responses.back().code == 429) responses.back().retry_after_s = world_.retry_after_s;
      if (world_.ahead_s) responses.back().date_unix_s = world_.clock.UnixS() + *world_.ahead_s;
    }
    return responses;
  }

  std::unique_ptr<Stream> OpenStream(const std::string& path) override {
    if (path.find("watch=1") != std::string::npos) {
      const auto tap = std::make_shared<ClusterWorld::Tap>();
      world_.watches[path.starts_with(JobsPath() + '?') ? "jobs" : "pods"].push_back(tap);
      return std::make_unique<Tapped>(tap);
    }
    const size_t begin = path.find("/pods/") + 6;
    const std::string pod = path.substr(begin, path.find("/log?") - begin);
    return std::make_unique<Tapped>(world_.LogOf(pod), world_.log_code);
  }

  void Pump() override {}
  void Await(std::chrono::milliseconds) override {
    if (world_.while_awaited) world_.while_awaited();
  }

 private:
  class Tapped final : public Stream {
   public:
    explicit Tapped(std::shared_ptr<ClusterWorld::Tap> tap, int64_t code = 200) : tap_(std::move(tap)), code_(code) {}
    int64_t code() const override { return code_; }
    bool ended() const override { return tap_->ended && next_ == tap_->lines.size(); }
    std::string problem() const override { return {}; }
    bool Next(std::string& line) override {
      if (next_ == tap_->lines.size()) return false;
      line = tap_->lines[next_++];
      return true;
    }

   private:
    std::shared_ptr<ClusterWorld::Tap> tap_;
    int64_t code_;
    size_t next_ = 0;
  };

  static Response Ok(const Json& document, int64_t code = 200) { return {code, document.dump(), {}}; }
  static Response No(int64_t code) { return {code, R"({"message": "no"})", {}}; }
  static Json List(const std::map<std::string, Json>& objects) {
    Json items = Json::array();
    for (const auto& [name, object] : objects) items.push_back(object);
    return {{"metadata", {{"resourceVersion", "1"}}}, {"items", items}};
  }

  Response Answer(const Request& request) {
    world_.calls.push_back(request.method + ' ' + request.path);
    const auto at = [&](const std::string& path) { return request.path.starts_with(path); };
    if (at("/version")) return Ok(world_.version);
    if (request.path == fmt::format("/apis/{}", kind().api_version)) return world_.has_kind ? Ok({}) : No(kNotFound);
    if (at("/apis/authorization")) return Access(request.body.at("spec").at("resourceAttributes"));
    if (request.path.find("?dryRun=All") != std::string::npos) return DryRun(request.body);
    if (at(CorePath("events"))) return {world_.events_code, Json{{"items", world_.events}}.dump(), {}};
    if (at(CorePath("pods") + '?')) return Ok(List(world_.pods));
    if (request.method == "POST" && at(JobsPath())) return Create(request.body);
    if (request.method == "POST") {
      if (world_.others_code != 201) return No(world_.others_code);
      world_.others[request.path.substr(request.path.rfind('/') + 1)] = request.body;
      return Ok(request.body, 201);
    }
    if (request.path.find("/podgroups/") != std::string::npos) {
      return world_.group.is_null() ? No(kNotFound) : Ok(world_.group);
    }
    if (at(JobsPath() + '?')) return Ok(List(world_.jobs));
    const std::string name = request.path.substr(JobsPath().size() + 1);
    const auto job = world_.jobs.find(name);
    if (job == world_.jobs.end()) return No(kNotFound);
    const Json object = job->second;
    if (request.method == "DELETE" && request.body.at("propagationPolicy") == "Background") world_.Take("jobs", name);
    return Ok(object);
  }

  Response Access(const Json& asked) {
    const auto text = [&](const char* name) { return asked.at(name).get<std::string>(); };
    const std::string resource = text("resource") + (text("subresource").empty() ? "" : "/" + text("subresource"));
    return Ok({{"status", {{"allowed", !world_.forbidden.contains(text("verb") + ' ' + resource)}}}}, 201);
  }

  Response DryRun(const Json& object) {
    const auto refused = world_.dry_runs.find(object.at("kind").get<std::string>());
    if (refused == world_.dry_runs.end()) return Ok(object, 201);
    const bool invalid = refused->second.find("invalid") != std::string::npos;
    return {invalid ? 422 : kForbidden, Json{{"message", refused->second}}.dump(), {}};
  }

  Response Create(Json job) {
    if (world_.create_code != 201) return No(world_.create_code);
    const auto name = job.at("metadata").at("name").get<std::string>();
    if (world_.jobs.contains(name)) return No(kConflict);
    job["metadata"]["uid"] = "uid-" + name;
    if (world_.policy_ttl_s) job["spec"]["ttlSecondsAfterFinished"] = *world_.policy_ttl_s;
    world_.Put("jobs", job);
    if (world_.create_unheard) return {0, {}, "the connection was closed"};
    return Ok(job, 201);
  }

  ClusterWorld& world_;
  std::string name_space_ = "default";
};

}  // namespace ridgeline::kubernetes
