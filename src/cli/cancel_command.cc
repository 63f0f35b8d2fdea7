#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "driver/driver.h"
#include "driver/lock.h"
#include "driver/patience.h"
#include "session/defaults.h"
#include "session/interrupts.h"
#include "session/say.h"
#include "session/session.h"
#include "sweep/sweep.h"

namespace ridgeline::cli {
namespace {

// How long a driver waits for its jobs to end, plus a margin.
constexpr int64_t kDriverPatienceNs = driver::kCancelPatienceNs + 5'000'000'000;
constexpr int64_t kLeavePatienceNs = 5'000'000'000;
constexpr int64_t kLookAgainNs = 20'000'000;

// Uses SIGTERM, because a shell makes background programs ignore SIGINT. Returns false if the driver has not ended.
bool EndsWhenTold(const driver::DriverIdentity& driver, const std::string& db, int64_t patience_ns) {
  if (::kill(driver.pid, SIGTERM) != 0 && errno != ESRCH) {
    ThrowErrno(fmt::format("cannot signal process {}", driver.pid));
  }
  SystemClock clock;
  const int64_t end_ns = clock.MonotonicNs() + patience_ns;
  for (;;) {
    const auto now = driver::RunningDriver(db);
    if (!now || now->pid != driver.pid) return true;
    if (clock.MonotonicNs() > end_ns) return false;
    clock.SleepNs(kLookAgainNs);
  }
}

// After the first signal a driver cancels and collects its jobs itself. After the second it leaves live jobs to us.
void StopDriver(const driver::DriverIdentity& driver, const std::string& db) {
  if (!EndsWhenTold(driver, db, kDriverPatienceNs) && !EndsWhenTold(driver, db, kLeavePatienceNs)) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("process {}, which is at work on it, was told to end and still runs", driver.pid),
                fmt::format("nothing else was cancelled; end it with `kill -KILL {}` and cancel again", driver.pid));
  }
  session::Say("the run that worked on it (process {}) has stopped\n", driver.pid);
}

std::string Jobs(int64_t count) { return count == 1 ? "1 job" : fmt::format("{} jobs", count); }

std::set<std::string> LiveJobsOf(const std::string& sweep, const std::string& db) {
  std::set<std::string> keys;
  for (const store::JobRecord& job : session::OpenStore(db, store::Store::Mode::kReadOnly).LiveJobs(sweep))
    keys.insert(job.key);
  return keys;
}

int Cancel(const std::string& sweep, const std::string& db) {
  const std::string name = [&] {
    store::Store store = session::OpenStore(db, store::Store::Mode::kReadOnly);
    return session::SweepName(store, sweep);
  }();
  bool had_driver = false;
  int64_t cancelled = 0;
  if (const auto driver = driver::RunningDriver(db)) {
    if (!driver->is_here()) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("{} is at work on this database", PrintableLine(driver->Text())),
                  fmt::format("cancel on {}", PrintableLine(driver->host)));
    }
    if (driver->sweep != name) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("process {} is at work on the sweep {} in this database", driver->pid,
                              PrintableLine(driver->sweep)),
                  "cancel that sweep first, or wait for it");
    }
    had_driver = true;
    const std::set<std::string> before = LiveJobsOf(name, db);
    StopDriver(*driver, db);
    const std::set<std::string> after = LiveJobsOf(name, db);
    cancelled = std::ranges::count_if(before, [&](const std::string& key) { return !after.contains(key); });
  }
  const driver::DriverLock lock = driver::DriverLock::Take(db, name);
  store::Store store = session::OpenStore(db, store::Store::Mode::kReadWrite);
  const store::SweepRecord record = store.Progress(name).sweep;
  std::map<std::string, std::vector<store::JobRecord>> by_launcher;
  for (store::JobRecord& job : store.LiveJobs(name)) by_launcher[job.launcher].push_back(std::move(job));
  if (by_launcher.empty() && !had_driver) {
    session::Say("nothing to cancel: {} has no live jobs\n", name);
    return 0;
  }
  const sweep::SweepPrice price = sweep::ParseLaunchAndPrice(record.text, record.file).price;
  const session::Interrupts interrupts;
  SystemClock clock;
  int64_t left = 0;
  std::string untold;
  for (auto& [launcher_name, jobs] : by_launcher) {
    const auto launcher = session::OpenLauncherOf(record, launcher_name, db);
    const int64_t told = std::ssize(jobs);
    const driver::Cancelled ended = driver::CancelJobs(std::move(jobs), store, *launcher, clock, price, {},
                                                       [] { return session::Interrupts::Count() > 0; });
    if (!ended.untold.empty()) untold = ended.untold;
    cancelled += told - ended.live;
    left += ended.live;
  }
  session::Say("{} cancelled; the next `ridgeline run` runs what has no result\n", Jobs(cancelled));
  if (left == 0) return 0;
  if (!untold.empty()) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("{} could not be told to end: {}", Jobs(left), untold),
                "they may still run; cancel again when that is mended");
  }
  throw Error(ErrorKind::kInfrastructure, fmt::format("{} told to end and not ended yet", Jobs(left)),
              "`ridgeline status` shows them; cancel again later");
}

}  // namespace

Action CancelCommand(CLI::App& self) {
  struct Options {
    std::string sweep;
    std::string db = session::kDefaultDb;
  };
  const auto options = std::make_shared<Options>();
  self.add_option("sweep", options->sweep, "the sweep's name or file")->required()->type_name("SWEEP");
  self.add_option("--db", options->db, "the results database")->capture_default_str()->type_name("FILE");
  self.footer(
      "Ends the sweep's queued and running jobs, waits for them, and keeps what they measured. If a "
      "`ridgeline run` works on the sweep, also in the background, it is stopped first (SIGTERM), and the "
      "jobs that it leaves are ended. The next run measures cancelled points again.\n\n"
      "Example:\n"
      "  ridgeline cancel sweeps/demo.yaml");
  return [options] { return Cancel(options->sweep, options->db); };
}

}  // namespace ridgeline::cli
