#include "session/setup.h"

#include <csignal>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/process.h"
#include "base/quoting.h"
#include "base/text.h"
#include "session/interrupts.h"

namespace ridgeline::session {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kLookNs = 200'000'000;  // between looks at interrupts
constexpr size_t kShownBytes = 2000;      // of the output of a command that failed

// The last lines of a file, made printable.
std::string LastWords(const fs::path& log) {
  std::istringstream lines(ReadTail(log, kShownBytes));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) text += "\n  | " + PrintableLine(line);
  }
  return text.empty() ? "; it printed nothing" : "; it said:" + text;
}

// Nothing if it was interrupted.
std::optional<ExitStatus> RunOne(const std::vector<std::string>& argv, const fs::path& log) {
  SpawnOptions options;
  options.stdout_file = options.stderr_file = log;
  options.die_with_parent = true;
  Child child = Child::Spawn(argv, options);
  for (;;) {
    if (const auto status = child.WaitFor(kLookNs)) {
      return Interrupts::Count() > 0 && !status->ok() ? std::nullopt : status;
    }
    if (Interrupts::Count() > 0) child.Signal(Interrupts::Count() > 1 ? SIGKILL : SIGTERM);
  }
}

}  // namespace

void RunSetup(const sweep::Sweep& sweep, const fs::path& output_dir,
              const std::function<void(const std::string&)>& note) {
  if (sweep.setup.empty()) return;
  const fs::path folder = output_dir / "setup";
  MakeDirs(folder);
  const std::string text = DumpJson(Json(sweep.setup));
  const std::string name = Hex(Hash(text)).substr(0, 16);
  const fs::path done = folder / (name + ".done");
  const fs::path log = folder / (name + ".log");
  std::optional<FileLock> lock = FileLock::Try(folder / (name + ".lock"));
  if (!lock) note("setup: another process runs the same commands; waiting for it");
  for (SystemClock clock; !lock; lock = FileLock::Try(folder / (name + ".lock"))) {
    if (Interrupts::Count() > 0) return;
    clock.SleepNs(kLookNs);
  }
  if (fs::exists(done)) return;
  WriteFileAtomic(log, "");
  for (size_t i = 0; i < sweep.setup.size(); ++i) {
    const std::string words = ShellWords(sweep.setup[i]);
    note(fmt::format("setup {} of {}: {}", i + 1, sweep.setup.size(), words));
    const std::optional<ExitStatus> status = RunOne(sweep.setup[i], log);
    if (!status) return;
    if (status->ok()) continue;
    throw Error(
        ErrorKind::kInfrastructure,
        fmt::format("setup: {} ended with {}, and no point was started{}", words, Describe(*status), LastWords(log)),
        fmt::format("its whole output is in {}. Fix that and run again: all commands of setup run again",
                    log.string()));
  }
  WriteFileAtomic(done, text + "\n");
}

std::string SetupScript(const sweep::Sweep& sweep) {
  if (sweep.setup.empty()) return {};
  std::string text = "#!/bin/sh\n# What the sweep needs before its first point.\nset -e\n";
  for (const auto& argv : sweep.setup) text += ShellWords(argv) + "\n";
  return text;
}

}  // namespace ridgeline::session
