// A launcher whose scheduler follows a script. Its config:
//   script: [state…]  what each poll of a job answers, one after another; the last is answered for ever. A job is run,
//                     to its end, by the first poll that answers `running` or `ended` after a `queued` one (so a
//                     script with queued, running, queued, running requeues it). `missing` forgets it.
// Without a script: queued, running, ended. What it knows of a job is a file in state_dir, as it is for a real
// scheduler somewhere else: a driver that is killed changes nothing of it.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/plugin_api.h"
#include "ridgeline/launcher.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;
using ridgeline::plugin::AnswerEach;
using ridgeline::plugin::Failure;
using ridgeline::plugin::Json;

std::vector<std::string> Script(const Json& request) {
  const Json script = request.at("config").value("script", Json{"queued", "running", "ended"});
  if (!script.is_array() || script.empty()) {
    throw Failure(Failure::Kind::kInvalidInput, "script must be a list of states");
  }
  return script.get<std::vector<std::string>>();
}

fs::path Record(const Json& request, const Json& job) {
  const std::string key = job.at("key");
  if (key.empty() || key.find('/') != std::string::npos) throw Failure(Failure::Kind::kInvalidInput, "not a key");
  return fs::path(request.at("state_dir").get<std::string>()) / (key + ".json");
}

Json Load(const fs::path& record) {
  std::ifstream in(record);
  return in ? Json::parse(in) : Json();
}

void Save(const fs::path& record, const Json& job) { std::ofstream(record) << job.dump(); }

void RunToItsEnd(Json& job) {
  std::vector<std::string> words = job.at("exec");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  int status = 0;
  if (::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return;
  ::waitpid(pid, &status, 0);
  job["exit_code"] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Json Probe(const Json& request) {
  Script(request);
  return {{"available", true}, {"why", ""}, {"description", "a scheduler that follows a script"}};
}

Json Render(const Json& request) {
  Json files = Json::array();
  for (const Json& job : request.at("jobs")) {
    files.push_back({{"name", job.at("key").get<std::string>() + ".json"}, {"content", job.at("exec").dump()}});
  }
  return {{"files", files}};
}

Json Submit(const Json& request) {
  Script(request);
  return AnswerEach(request, [&](const Json& job) -> Json {
    const fs::path record = Record(request, job);
    if (::access(job.at("exec").at(0).get<std::string>().c_str(), X_OK) != 0) {
      return {{"error", Failure(Failure::Kind::kInfrastructure, "no such program").ToJson()}};
    }
    Json known = Load(record);
    if (known.is_null()) {
      known = {{"exec", job.at("exec")}, {"polls", 0}, {"waits", true}, {"cancelled", false}};
      Save(record, known);
    }
    return {{"native_id", "script-" + job.at("key").get<std::string>()}};
  });
}

Json PollMany(const Json& request) {
  const std::vector<std::string> script = Script(request);
  return AnswerEach(request, [&](const Json& ref) -> Json {
    const fs::path record = Record(request, ref);
    Json job = Load(record);
    if (job.is_null()) return {{"state", "missing"}};
    if (job.at("cancelled")) return {{"state", "ended"}, {"evidence", {{"end", "cancelled"}}}};
    const size_t polls = job.at("polls");
    const std::string& state = script[polls < script.size() ? polls : script.size() - 1];
    job["polls"] = polls + 1;
    if (state == "missing") {
      fs::remove(record);
      return {{"state", "missing"}};
    }
    const bool waited = job.at("waits");
    job["waits"] = state == "queued";
    if (state != "queued" && waited) RunToItsEnd(job);
    Save(record, job);
    Json answer = {{"state", state}, {"native_id", "script-" + ref.at("key").get<std::string>()}};
    if (state == "ended" && job.contains("exit_code")) {
      answer["evidence"] = {{"exit_code", std::to_string(job.at("exit_code").get<int>())}};
    }
    return answer;
  });
}

Json Cancel(const Json& request) {
  const std::vector<std::string> script = Script(request);
  return AnswerEach(request, [&](const Json& ref) -> Json {
    const fs::path record = Record(request, ref);
    Json job = Load(record);
    if (job.is_null()) return {{"cancelled", false}};
    const size_t polls = job.at("polls");
    const bool ended = job.at("cancelled") || (polls > 0 && script[std::min(polls, script.size()) - 1] == "ended");
    if (!ended) {
      job["cancelled"] = true;
      Save(record, job);
    }
    return {{"cancelled", !ended}};
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ridgeline_launcher_table* ridgeline_launcher(uint32_t);

const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
  return ridgeline::plugin::Table<Probe, Render, Submit, PollMany, Cancel>("scripted");
}
