// A launcher whose jobs share no folder with the harness, made with common/remote_job.h as one for a cloud would be.
// Its other machine is a folder, state_dir/machine/KEY, in which the job runs at the first poll. What the job prints is
// all that comes back, and it comes later than its end. Its config, as the mapping `remote`:
//   program: PATH  the `ridgeline` of the other machine; default: the job's own program
//   lose: true     the first machine of each job's point is lost: half of its log is gone, and so is its end
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "common/clock.h"
#include "common/evidence.h"
#include "common/launcher.h"
#include "common/process.h"
#include "common/remote_job.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;
namespace plugin = ridgeline::plugin;
using ridgeline::plugin::Json;
using ridgeline::plugin::Phase;

Json Load(const fs::path& record) {
  std::ifstream in(record);
  return in ? Json::parse(in) : Json();
}

// Runs the words to their end, with their output in the log. Returns the exit code.
int RunThere(std::vector<std::string> words, const fs::path& log) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  pid_t pid = 0;
  int status = 0;
  const int failed = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return 127;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class RemoteLauncher final : public plugin::Launcher {
 public:
  RemoteLauncher(const Json& config, fs::path state_dir) : state_dir_(std::move(state_dir)) {
    const Json own = config.value("remote", Json::object());
    program_ = own.value("program", "");
    lose_ = own.value("lose", false);
  }

  plugin::Capabilities Can() const override { return {.queue = true, .render = true}; }
  plugin::Availability Probe() override { return {true, "", "another machine", 100}; }

  plugin::Rendering Render(const Json& jobs) override {
    plugin::Rendering rendered;
    for (const Json& job : jobs) {
      rendered.files.push_back({job.at("key").get<std::string>() + ".json", job.at("exec").dump()});
    }
    return rendered;
  }

  std::vector<plugin::Submission> Submit(const Json& jobs, std::chrono::milliseconds) override {
    std::vector<plugin::Submission> answers;
    for (const Json& job : jobs) {
      try {
        answers.push_back(SubmitOne(job));
      } catch (const ridgeline::Error& e) {
        answers.push_back({"", plugin::Failure::Of(e)});
      }
    }
    return answers;
  }

  plugin::Polled Poll(const std::vector<std::string>& keys) override {
    plugin::Polled polled;
    for (const std::string& key : keys) polled.states.push_back(PollOne(key));
    return polled;
  }

  std::vector<plugin::Cancellation> Cancel(const std::vector<std::string>& keys) override {
    std::vector<plugin::Cancellation> answers;
    for (const std::string& key : keys) {
      Json record = Load(Record(key));
      const bool live = !record.is_null() && record.at("evidence").is_null();
      if (live) {
        record["evidence"] = {{"end", "cancelled"}};
        ridgeline::WriteFile(Record(key), record.dump());
      }
      answers.push_back({live});
    }
    return answers;
  }

 private:
  fs::path Machine(const std::string& key) const { return state_dir_ / "machine" / key; }
  fs::path Record(const std::string& key) const { return state_dir_ / (key + ".json"); }

  plugin::Submission SubmitOne(const Json& job) {
    const auto key = job.at("key").get<std::string>();
    plugin::CheckProgram(job.at("exec"));
    if (!Load(Record(key)).is_null()) return {"remote-" + key};
    const fs::path machine = Machine(key);
    const std::string text =
        plugin::ReadsJobFile(job) ? ridgeline::ReadFile(job.at("job_file").get<std::string>()) : "";
    ridgeline::MakeDirs(machine / "parts");
    // exec reads a folder of parts, whose names sort.
    const std::vector<std::string> parts =
        plugin::TextParts(plugin::JobFileFor(text, machine / "jobs" / key, machine), 700);
    for (size_t i = 0; i < parts.size(); ++i) {
      ridgeline::WriteFile(machine / "parts" / std::to_string(1000 + i), parts[i]);
    }
    const std::string program = program_.empty() ? job.at("exec").at(0).get<std::string>() : program_;
    const plugin::Elsewhere there = {
        {program}, (machine / "parts").string(), (machine / "jobs" / key).string(), (machine / "summary").string()};
    ridgeline::WriteFile(Record(key), Json{{"exec", plugin::ExecThere(job, there)},
                                           {"job_dir", job.at("job_dir")},
                                           {"points", plugin::PointsOf(text)},
                                           {"polls", 0},
                                           {"evidence", nullptr}}
                                          .dump());
    return {"remote-" + key};
  }

  // Each point's first job is lost if the launcher loses machines: the second is submitted under another key.
  bool IsLost(const Json& record) const {
    if (!lose_ || record.at("points").empty()) return false;
    const fs::path first = state_dir_ / ("lost " + record.at("points").at(0).get<std::string>());
    return !fs::exists(first) || Load(first) == record.at("exec");
  }

  plugin::JobState PollOne(const std::string& key) {
    Json record = Load(Record(key));
    if (record.is_null()) return {};
    plugin::JobState state;
    state.phase = Phase::kEnded;
    state.native_id = "remote-" + key;
    if (!record.at("evidence").is_null()) {
      state.evidence = record.at("evidence").get<plugin::Evidence>();
      return state;
    }
    const int polls = record.at("polls");
    const bool lost = IsLost(record);
    record["polls"] = polls + 1;
    state.phase = polls == 0 ? Phase::kQueued : Phase::kRunning;
    if (polls == 1) {
      ridgeline::MakeDirs(Machine(key) / "jobs" / key);
      if (lost)
        ridgeline::WriteFile(state_dir_ / ("lost " + record.at("points").at(0).get<std::string>()),
                             record.at("exec").dump());
      record["exit_code"] = RunThere(record.at("exec"), Machine(key) / "log");
    }
    if (polls >= 2) {  // the end is known, and at first only half of the log
      auto at = outputs_.find(key);
      if (at == outputs_.end()) {
        at =
            outputs_
                .emplace(key, std::pair(plugin::JobOutput(record.at("job_dir").get<std::string>(), record.at("points")),
                                        plugin::LastOutput(plugin::SystemClock())))
                .first;
      }
      auto& [output, last] = at->second;
      const bool whole = ReadLog(Machine(key) / "log", polls == 2 || lost, output);
      if (lost || !last.MayCome(whole)) {
        state.phase = Phase::kEnded;
        if (lost) {
          plugin::AddInfrastructure("lost", "its machine is gone", "", state.evidence);
        } else {
          plugin::AddExit(record.at("exit_code"), 0, state.evidence);
          output.TakeLastWords(ridgeline::ReadFileIfThere(Machine(key) / "summary").value_or(""));
        }
        output.CompleteEnd(lost ? "its machine is gone" : "", "", state.evidence);
        record["evidence"] = state.evidence;
      }
    }
    ridgeline::WriteFile(Record(key), record.dump());
    return state;
  }

  // Reads the log from its beginning, as after a stream that broke off. Returns whether all of it was read.
  static bool ReadLog(const fs::path& log, bool half, plugin::JobOutput& output) {
    const std::string text = ridgeline::ReadFileIfThere(log).value_or("");
    const size_t end = half ? text.size() / 2 : text.size();
    output.Rewind();
    for (size_t at = 0; at < end;) {
      const size_t line_end = text.find('\n', at);
      if (line_end >= end) break;
      output.TakeLine(text.substr(at, line_end - at));
      at = line_end + 1;
    }
    return !half;
  }

  fs::path state_dir_;
  std::string program_;
  bool lose_ = false;
  std::map<std::string, std::pair<plugin::JobOutput, plugin::LastOutput>> outputs_;
};

std::unique_ptr<plugin::Launcher> Open(const Json& config, const fs::path& state_dir) {
  return std::make_unique<RemoteLauncher>(config, state_dir);
}

plugin::Description DescribeJob(const plugin::JobToDescribe&) { return {}; }

}  // namespace

const ridgeline_launcher_table* ridgeline_launcher(uint32_t) {
  return ridgeline::plugin::Table<Open, DescribeJob>("remote");
}
