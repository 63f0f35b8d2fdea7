// A launcher as its plugin writes it, and the C boundary (include/ridgeline/launcher.h) around it: documents in and
// out, keys checked, no exception across it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/answers.h"
#include "common/failure.h"
#include "ridgeline/launcher.h"

namespace ridgeline::plugin {

// What a launcher can besides what all can.
struct Capabilities {
  bool queue = false;       // of its own: it takes Availability::max_jobs at once
  bool poll_pause = false;  // it says when it wants to be asked again: Polled::again_ms
  bool render = false;
};

// One session: a configuration and a state folder. Jobs are documents as launcher.h has them, and their keys are keys
// (keys.h): what is none has been answered. Every call may throw Failure, for all jobs of the call.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual Capabilities Can() const = 0;
  virtual Availability Probe() = 0;
  // Pure: the state folder may not be there, and nothing outside is asked.
  virtual Rendering Render(const Json& jobs) = 0;
  // One answer a job, in order.
  virtual std::vector<Submission> Submit(const Json& jobs) = 0;
  virtual Polled Poll(const std::vector<std::string>& keys) = 0;
  // The same for who only looks, where polling also fetches, gives up or tidies away.
  virtual Polled Look(const std::vector<std::string>& keys) { return Poll(keys); }
  virtual std::vector<Cancellation> Cancel(const std::vector<std::string>& keys) = 0;
};

// Reads `config`, the sweep's `launch:` mapping, and asks nobody: the state folder may not be there yet. Throws
// Failure.
using OpenLauncher = std::unique_ptr<Launcher> (*)(const Json& config, const std::filesystem::path& state_dir);

// Of the calls of ridgeline_launcher_table all but its `open`.
int OpenSession(OpenLauncher open, const char* request, size_t request_size, ridgeline_launcher_session** session,
                char** reply, size_t* reply_size);
ridgeline_launcher_table TableWithoutOpen(const char* name);

// What a plugin's ridgeline_launcher() returns, which is all it defines there.
template <OpenLauncher kOpen>
const ridgeline_launcher_table* Table(const char* name) {
  static const ridgeline_launcher_table kTable = [&] {
    ridgeline_launcher_table table = TableWithoutOpen(name);
    table.open = [](const char* request, size_t request_size, ridgeline_launcher_session** session, char** reply,
                    size_t* reply_size) {
      return OpenSession(kOpen, request, request_size, session, reply, reply_size);
    };
    return table;
  }();
  return &kTable;
}

}  // namespace ridgeline::plugin

extern "C" __attribute__((visibility("default"))) const ridgeline_launcher_table* ridgeline_launcher(
    uint32_t harness_abi_version);
