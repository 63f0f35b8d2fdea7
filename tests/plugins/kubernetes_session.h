// The Kubernetes launcher's session, on an API server that a test scripts.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "base/files.h"
#include "kubernetes/session.h"
#include "ridgeline/job_line.h"
#include "tests/base/temp_dir.h"
#include "tests/plugins/answering.h"
#include "tests/plugins/kubernetes_objects.h"
#include "tests/plugins/scripted_cluster.h"

namespace ridgeline::kubernetes {

inline const Json kDeletion = {{"deletionTimestamp", "2001-09-09T01:46:40Z"}};  // the clock's first second

using Asked = testing::Answering<Session>;

class KubernetesSession : public ::testing::Test {
 protected:
  // Each call makes a new driver that knows only the folder.
  std::unique_ptr<Asked> Open() {
    return std::make_unique<Asked>(
        std::make_unique<Session>(dir_ / "state", options_, std::make_unique<ScriptedCluster>(world_), world_.clock));
  }

  // A job with one point, "p".
  Json Job() {
    const std::filesystem::path job_dir = dir_ / "jobs/rl-1";
    std::filesystem::create_directories(job_dir);
    WriteFileAtomic(job_dir / "job.json", R"({"points": [{"id": "p"}]})");
    const std::string file = job_dir / "job.json";
    return {{"key", "rl-1"},
            {"sweep", "s"},
            {"job_file", file},
            {"job_dir", job_dir.string()},
            {"exec", {"ridgeline", "exec", file}}};
  }
  std::unique_ptr<Asked> Submitted() {
    auto session = Open();
    EXPECT_EQ(session->Submit(Json::array({Job()}))[0].at("native_id"), "uid-rl-1");
    return session;
  }
  static Json Poll(Asked& session) { return session.Poll(Json::array({{{"key", "rl-1"}}})).at(0); }
  static std::string State(Asked& session) { return Poll(session).at("state").get<std::string>(); }

  // Sets the current state of the Job, or of its pod.
  void SetJob(const char* condition) {
    Json job = world_.jobs.at("rl-1");
    job["status"] = {{"conditions", {{{"type", condition}, {"status", "True"}, {"reason", "r"}, {"message", "m"}}}}};
    world_.Put("jobs", job);
  }
  void SetPod(const std::string& phase, const Json& container, Json metadata = Json::object()) {
    if (!metadata.contains("name")) metadata["name"] = "pod";
    metadata["labels"] = {{"ridgeline.dev/job", "rl-1"}};
    world_.Put("pods", PodObject(phase, container, Json::object(), metadata));
  }
  void Say(const std::string& line) { world_.LogOf("pod")->lines.push_back(line); }
  void SayResult() {
    std::string line = FormatJobLine({std::string(kResultLine), "p", "{}"});
    line.pop_back();
    Say(line);
  }
  void EndLog() { world_.LogOf("pod")->ended = true; }

  TempDir dir_;
  ClusterWorld world_;
  Options options_ = ReadOptions({{"kubernetes", {{"image", "registry.example/ridgeline:1.0"}}}});
};

}  // namespace ridgeline::kubernetes
