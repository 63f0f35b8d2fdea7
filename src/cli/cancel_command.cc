#include <signal.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/harness.h"
#include "cli/interrupts.h"
#include "driver/driver.h"
#include "driver/lock.h"

namespace ridgeline {
namespace {

constexpr int64_t kDriverPatienceNs = 30'000'000'000;
constexpr int64_t kLookAgainNs = 20'000'000;

// A driver that is told to stop cancels and collects its jobs itself.
int StopDriver(const DriverIdentity& driver, const std::string& db) {
  if (::kill(driver.pid, SIGINT) != 0) ThrowErrno(fmt::format("cannot signal process {}", driver.pid));
  SystemClock clock;
  const int64_t end_ns = clock.MonotonicNs() + kDriverPatienceNs;
  for (;;) {
    const auto now = RunningDriver(db);
    if (!now || now->pid != driver.pid) break;
    if (clock.MonotonicNs() > end_ns) {
      throw Error(ErrorKind::kInfrastructure, fmt::format("process {} was told to stop and still runs", driver.pid));
    }
    clock.SleepNs(kLookAgainNs);
  }
  fmt::print("the ridgeline at work on it (process {}) has cancelled its jobs and stopped\n", driver.pid);
  return 0;
}

int Cancel(const std::string& sweep, const std::string& db) {
  const std::string name = [&] {
    Store store = Store::Open(db, Store::Mode::kReadOnly);
    return SweepName(store, sweep);
  }();
  if (const auto driver = RunningDriver(db)) {
    if (driver->sweep == name) return StopDriver(*driver, db);
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("process {} is at work on the sweep {} in this database", driver->pid,
                            PrintableLine(driver->sweep)),
                "cancel that sweep first, or wait for it");
  }
  const DriverLock lock = DriverLock::Take(db, name);
  Store store = Store::Open(db, Store::Mode::kReadWrite);
  const SweepRecord record = store.Progress(name).sweep;
  std::map<std::string, std::vector<JobRecord>> by_launcher;
  for (JobRecord& job : store.LiveJobs(name)) by_launcher[job.launcher].push_back(std::move(job));
  if (by_launcher.empty()) {
    fmt::print("nothing to cancel: {} has no live jobs\n", PrintableLine(name));
    return 0;
  }
  const Json config = ParseSweep(record.text, record.file).launch.config;
  const Interrupts interrupts;
  SystemClock clock;
  int64_t cancelled = 0;
  int64_t left = 0;
  for (auto& [launcher_name, jobs] : by_launcher) {
    const auto launcher = OpenLauncher(launcher_name, config, 0, db);
    cancelled += static_cast<int64_t>(jobs.size());
    left += CancelJobs(std::move(jobs), store, *launcher, clock, [] { return Interrupts::Count() > 0; });
  }
  fmt::print("{} cancelled\n", cancelled - left == 1 ? "1 job" : fmt::format("{} jobs", cancelled - left));
  if (left == 0) return 0;
  throw Error(ErrorKind::kInfrastructure, fmt::format("{} told to end and not ended yet", left),
              "`ridgeline status` shows them; cancel again later");
}

}  // namespace

Action CancelCommand(CLI::App& self) {
  struct Options {
    std::string sweep;
    std::string db = kDefaultDb;
  };
  const auto options = std::make_shared<Options>();
  self.add_option("sweep", options->sweep, "the sweep's name, or its file")->required()->type_name("SWEEP");
  self.add_option("--db", options->db, "the database that results are kept in")
      ->capture_default_str()
      ->type_name("FILE");
  self.footer(
      "Tells the sweep's queued and running jobs to end, waits for it, and keeps what they measured. A\n"
      "`ridgeline run` that is at work on the sweep is stopped too. Cancelled points are run again by the next run.\n\n"
      "  ridgeline cancel sweeps/demo.yaml");
  return [options] { return Cancel(options->sweep, options->db); };
}

}  // namespace ridgeline
