// A launcher whose scheduler follows a script. Its config, directly or as the mapping `scripted` of a sweep's
// `launch:`:
//   script: [state…]  the answer to each poll of a job, in order; the last one repeats for ever. The first poll that
//                     answers `running` or `ended` after a `queued` one runs the job to its end. So a script with
//                     queued, running, queued, running requeues it. `missing` forgets it.
//   queue: N          it has a queue of its own for N jobs, in which they wait for their Priority
//   refuses: WORDS    it takes no job: permanently, for `reason`; with `not_now` only for the moment
//   silent: true      it does not answer polls
//   cards: N, ram: SIZE, host: NODE  GPUs and memory of a node, and the node; nothing but its description reads these
//   anywhere: true    its description can keep no job on a node
//   job_takes_ms: N   every call takes that long for each of its jobs, so it does not work in bulk; the file `called`
//                     beside the jobs' shows that a call has begun
// Without a script: queued, running, ended. What it knows of a job, including what it was `asked`, is a file in
// state_dir. So, as with a real scheduler elsewhere, killing a driver changes nothing.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/launcher.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;
namespace plugin = ridgeline::plugin;
using ridgeline::plugin::Failure;
using ridgeline::plugin::Json;
using ridgeline::plugin::Phase;

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

class ScriptedLauncher final : public plugin::Launcher {
 public:
  ScriptedLauncher(const Json& whole, fs::path state_dir) : state_dir_(std::move(state_dir)) {
    const Json config = whole.value("scripted", whole);
    queue_ = config.value("queue", 0);
    refuses_ = config.value("refuses", "");
    reason_ = config.value("reason", "");
    not_now_ = config.value("not_now", false);
    silent_ = config.value("silent", false);
    job_takes_ = std::chrono::milliseconds(config.value("job_takes_ms", 0));
    const Json script = config.value("script", Json{"queued", "running", "ended"});
    if (!script.is_array() || script.empty()) {
      throw Failure(Failure::Kind::kInvalidInput, "script must be a list of states");
    }
    script.get_to(script_);
  }

  plugin::Capabilities Can() const override {
    return {.queue = queue_ > 0, .render = true, .bulk = job_takes_.count() == 0};
  }

  plugin::Availability Probe() override { return {true, "", "a scheduler that follows a script", queue_}; }

  plugin::Rendering Render(const Json& jobs) override {
    plugin::Rendering rendered;
    for (const Json& job : jobs) {
      rendered.files.push_back({job.at("key").get<std::string>() + ".json", job.at("exec").dump()});
    }
    return rendered;
  }

  std::vector<plugin::Submission> Submit(const Json& jobs, std::chrono::milliseconds) override {
    TakeTime(jobs.size());
    std::vector<plugin::Submission> answers;
    for (const Json& job : jobs) answers.push_back(SubmitOne(job));
    return answers;
  }

  plugin::Polled Poll(const std::vector<std::string>& keys) override {
    if (silent_) throw Failure(Failure::Kind::kInfrastructure, "the scheduler does not answer");
    TakeTime(keys.size());
    plugin::Polled polled;
    for (const std::string& key : keys) polled.states.push_back(PollOne(key));
    return polled;
  }

  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys) override {
    TakeTime(keys.size());
    std::vector<plugin::Cancellation> answers;
    for (const std::string& key : keys) answers.push_back({CancelOne(key)});
    return answers;
  }

 private:
  void TakeTime(size_t jobs) const {
    if (job_takes_.count() == 0) return;
    std::ofstream(state_dir_ / "called");
    std::this_thread::sleep_for(jobs * job_takes_);
  }

  fs::path Record(const std::string& key) const { return state_dir_ / (key + ".json"); }

  plugin::Submission SubmitOne(const Json& job) const {
    const auto key = job.at("key").get<std::string>();
    if (!refuses_.empty()) {
      return {"", Failure(not_now_ ? Failure::Kind::kNotNow : Failure::Kind::kInvalidInput, refuses_, "", reason_)};
    }
    if (::access(job.at("exec").at(0).get<std::string>().c_str(), X_OK) != 0) {
      return {"", Failure(Failure::Kind::kInfrastructure, "no such program")};
    }
    if (Load(Record(key)).is_null()) {
      Save(Record(key),
           {{"asked", job}, {"exec", job.at("exec")}, {"polls", 0}, {"waits", true}, {"cancelled", false}});
    }
    return {"script-" + key, {}};
  }

  plugin::JobState PollOne(const std::string& key) const {
    Json job = Load(Record(key));
    if (job.is_null()) return {};
    if (job.at("cancelled")) return {Phase::kEnded, 0, {{"end", "cancelled"}}, {}};
    const size_t polls = job.at("polls");
    const std::string& state = script_[polls < script_.size() ? polls : script_.size() - 1];
    job["polls"] = polls + 1;
    if (state == "missing") {
      fs::remove(Record(key));
      return {};
    }
    const bool waited = job.at("waits");
    job["waits"] = state == "queued";
    if (state != "queued" && waited) RunToItsEnd(job);
    Save(Record(key), job);
    plugin::JobState answer;
    answer.phase = state == "queued" ? Phase::kQueued : state == "running" ? Phase::kRunning : Phase::kEnded;
    answer.native_id = "script-" + key;
    if (queue_ > 0 && state == "queued") answer.evidence = {{"pending", "Priority"}};
    if (state == "ended" && job.contains("exit_code")) {
      answer.evidence = {{"exit_code", std::to_string(job.at("exit_code").get<int>())}};
    }
    return answer;
  }

  bool CancelOne(const std::string& key) const {
    Json job = Load(Record(key));
    if (job.is_null()) return false;
    const size_t polls = job.at("polls");
    const bool ended = job.at("cancelled") || (polls > 0 && script_[std::min(polls, script_.size()) - 1] == "ended");
    if (ended) return false;
    job["cancelled"] = true;
    Save(Record(key), job);
    return true;
  }

  std::vector<std::string> script_;
  fs::path state_dir_;
  int64_t queue_ = 0;
  std::string refuses_;
  std::string reason_;
  bool not_now_ = false;
  bool silent_ = false;
  std::chrono::milliseconds job_takes_{0};
};

std::unique_ptr<plugin::Launcher> Open(const Json& config, const fs::path& state_dir) {
  return std::make_unique<ScriptedLauncher>(config, state_dir);
}

plugin::Description DescribeJob(const plugin::JobToDescribe& job) {
  plugin::Description description;
  description.gpus = plugin::GpusAsked{.setting = "scripted: cards"};
  if (const int64_t cards = job.own.value("cards", int64_t{0}); cards > 0) {
    description.gpus->count = cards;
    description.gpus->asked = "cards asks for " + std::to_string(cards);
  }
  description.memory_bytes = plugin::BytesOfSetting(job.own, "ram");
  if (!job.node.empty() && !job.own.value("anywhere", false)) description.pin = Json{{"host", job.node}};
  return description;
}

}  // namespace

const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
  return ridgeline::plugin::Table<Open, DescribeJob>("scripted");
}
