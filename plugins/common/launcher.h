// A launcher as its plugin writes it, and the C boundary (include/ridgeline/launcher.h) around it. The boundary passes
// documents in and out, checks keys, and lets no exception cross.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/answers.h"
#include "common/describe.h"
#include "common/failure.h"
#include "ridgeline/launcher.h"

namespace ridgeline::plugin {

// Optional abilities of a launcher.
struct Capabilities {
  bool queue = false;       // has a queue: it takes Availability::max_jobs at once
  bool poll_pause = false;  // says when it wants to be asked again: Polled::again_ms
  bool render = false;
  bool bulk = false;  // a call about many jobs costs about as much as a call about one
  bool bill = false;  // its jobs are billed, and it says what still is: StillBilled
};

// One session: a configuration and a state folder. Jobs are documents as in launcher.h. Their keys are valid (keys.h):
// jobs with other keys have been answered already. Every call may throw Failure, for all jobs of the call.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual Capabilities Can() const = 0;
  virtual Availability Probe() = 0;
  // Returns for each job, in order, why the scheduler would refuse it. An entry is empty if the scheduler would take
  // the job, or if this launcher cannot ask. Submits nothing.
  virtual std::vector<std::optional<Failure>> WhyRefused(const Json& jobs) {
    return std::vector<std::optional<Failure>>(jobs.size());
  }
  // What of a sweep is billed now, a line of text each: jobs that have not ended, and machines that are kept.
  virtual std::vector<std::string> StillBilled(const std::string& /*sweep*/) { return {}; }
  // Pure: the state folder may not exist, and nobody is contacted.
  virtual Rendering Render(const Json& jobs) = 0;
  // Returns one answer for each job, in order. With `bulk` it begins none after `within`, except the first.
  virtual std::vector<Submission> Submit(const Json& jobs, std::chrono::milliseconds within) = 0;
  virtual Polled Poll(const std::vector<std::string>& keys) = 0;
  // The same for callers that only look, in case polling also fetches, gives up or tidies up.
  virtual Polled Look(const std::vector<std::string>& keys) { return Poll(keys); }
  virtual std::vector<Cancellation> Cancel(const std::vector<std::string>& keys) = 0;
};

// Reads `config`, the sweep's `launch:` mapping, and contacts nobody. The state folder may not exist yet. Throws
// Failure.
using OpenLauncher = std::unique_ptr<Launcher> (*)(const Json& config, const std::filesystem::path& state_dir);

// OpenSession is the table's `open`, AnswerDescribe its `describe`. TableWithoutOpen fills in all other calls of
// ridgeline_launcher_table.
int OpenSession(OpenLauncher open, const char* request, size_t request_size, ridgeline_launcher_session** session,
                char** reply, size_t* reply_size);
int AnswerDescribe(Describe describe, const char* name, const char* request, size_t request_size, char** reply,
                   size_t* reply_size);
ridgeline_launcher_table TableWithoutOpen(const char* name);

// The return value of a plugin's ridgeline_launcher(), which defines nothing else.
template <OpenLauncher kOpen, Describe kDescribe>
const ridgeline_launcher_table* Table(const char* name) {
  static const ridgeline_launcher_table kTable = [&] {
    ridgeline_launcher_table table = TableWithoutOpen(name);
    table.open = [](const char* request, size_t request_size, ridgeline_launcher_session** session, char** reply,
                    size_t* reply_size) {
      return OpenSession(kOpen, request, request_size, session, reply, reply_size);
    };
    table.describe = [](const char* request, size_t request_size, char** reply, size_t* reply_size) {
      return AnswerDescribe(kDescribe, kTable.name, request, request_size, reply, reply_size);
    };
    return table;
  }();
  return &kTable;
}

}  // namespace ridgeline::plugin

extern "C" __attribute__((visibility("default"))) const ridgeline_launcher_table* ridgeline_launcher(
    uint32_t harness_abi_version);
