#include "local/client.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/files.h"
#include "common/journal_folder.h"
#include "common/process.h"
#include "local/config.h"
#include "ridgeline/foreign_file.h"
#include "ridgeline/sealed_json.h"

namespace ridgeline::local {
namespace fs = std::filesystem;
namespace {

using plugin::Failure;
using plugin::Json;
using plugin::RemoveFile;

void Check(int error, const std::string& what) {
  if (error != 0) throw Failure(Failure::Kind::kInfrastructure, fmt::format("{}: {}", what, std::strerror(error)));
}

// Starts a process in a session of its own, with our environment and only these descriptors.
pid_t StartKeeper(const std::vector<std::string>& argv, int release_fd, const Lock& job_lock, const Lock& slot_lock,
                  const fs::path& log) {
  const plugin::Fd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!out) Check(errno, "cannot write " + log.string());
  plugin::SpawnOptions spawn;
  // The order that keeper.cc expects.
  spawn.descriptors = {release_fd, out.get(), out.get(), job_lock.fd(), slot_lock.fd()};
  spawn.only_these = true;
  spawn.new_session = true;
  return plugin::Spawn(argv, plugin::EnvironmentWithout({}), spawn);
}

// Returns the start time of a process, or nothing if there is no such process.
std::optional<int64_t> StartTicks(pid_t pid) {
  ForeignFile stat(fmt::format("/proc/{}/stat", pid));
  return ParseStartTicks(stat.Read(kMaxRecordBytes).value_or(""));
}

// Reads a record. Returns nothing if there is none, or if it is empty because the machine went down before it was on
// the disk. Reports a damaged record in `seen`.
template <typename Parse>
auto ReadRecord(const fs::path& path, Parse parse, Seen& seen) -> decltype(parse(std::string())) {
  ForeignFile file(path);
  const std::optional<std::string> text = file.Read(kMaxRecordBytes);
  if (file.state() == ForeignFile::State::kMissing || (text && text->empty())) return std::nullopt;
  auto record = text ? parse(*text) : std::nullopt;
  if (!record) seen.damaged = fmt::format("{} {}", path.string(), text ? kNotWhole : file.problem());
  return record;
}

// Reads the records, whoever holds the lock.
Seen ReadRecords(const fs::path& folder) {
  Seen seen;
  std::error_code ec;
  seen.submitted = fs::exists(folder / "request", ec);
  seen.cancelled = fs::exists(folder / "cancel", ec);
  seen.started = ReadRecord(folder / "started", ParseStarted, seen);
  seen.exit = ReadRecord(folder / "exit", ParseExit, seen);
  return seen;
}

Seen Look(const fs::path& folder) {
  // The lock first: once it is free, everything that its holder wrote is there.
  const bool alive = Lock::Held(folder / "lock");
  Seen seen = ReadRecords(folder);
  seen.alive = alive;
  return seen;
}

bool Waits(const Seen& seen) {
  return seen.submitted && !seen.alive && !seen.started && !seen.cancelled && seen.damaged.empty();
}

// Our own children that have ended stay in the process table until we wait for them. Other processes are not ours to
// wait for.
void Reap(pid_t pid) { ::waitpid(pid, nullptr, WNOHANG); }

}  // namespace

Client::Client(fs::path state_dir, std::vector<std::vector<int>> slot_cores, fs::path keeper)
    : state_dir_(std::move(state_dir)), slot_cores_(std::move(slot_cores)), keeper_(std::move(keeper)) {}

fs::path Client::JobFolder(const std::string& key) const { return state_dir_ / "jobs" / key; }

void Client::Submit(const Json& job) {
  const fs::path folder = JobFolder(job.at("key").get<std::string>());
  plugin::CheckProgram(job.at("exec"));
  CheckJob(job, slot_cores_.front().size());
  MakeDirs(folder);
  MakeDirs(state_dir_ / "slots");
  const std::optional<Lock> lock = Lock::Try(folder / "lock");
  if (!lock) return;  // the job is alive
  const Seen seen = ReadRecords(folder);
  if (seen.submitted && seen.exit && seen.exit->ok()) return;
  RemoveFile(folder / "cancel");
  RemoveFile(folder / "started");
  WriteFile(folder / "request", FormatRequest(job));
  StartIfSlotIsFree(folder, job, *lock);
}

plugin::JobState Client::Poll(const std::string& key) {
  const fs::path folder = JobFolder(key);
  Seen seen = Look(folder);
  if (Waits(seen)) {
    std::string damaged;
    if (const std::optional<Lock> lock = Lock::Try(folder / "lock")) {
      // Reads again, now that nobody else can start the job.
      seen = ReadRecords(folder);
      if (Waits(seen)) {
        if (const std::optional<Json> job = ReadRecord(folder / "request", ParseRequest, seen)) {
          StartIfSlotIsFree(folder, *job, *lock);
        }
        damaged = seen.damaged;
      }
    }
    seen = Look(folder);
    if (seen.damaged.empty()) seen.damaged = damaged;
  }
  if (!seen.alive && seen.started) Reap(seen.started->pid);
  if (!seen.alive) seen.log_tail = ReadLogTail(folder / "log.txt", kLogTailBytes);
  return StateOf(seen);
}

bool Client::Cancel(const std::string& key) {
  const fs::path folder = JobFolder(key);
  const Seen seen = Look(folder);
  if (!seen.submitted) return false;
  if (!seen.alive) {
    if (Waits(seen)) WriteFile(folder / "cancel", "");
    return Waits(seen);
  }
  WriteFile(folder / "cancel", "");
  if (!seen.started && !seen.damaged.empty()) {
    throw Failure(Failure::Kind::kInfrastructure, seen.damaged, "the job lives: end its processes by hand");
  }
  if (!seen.started) return true;  // another process is starting it right now; the next poll or cancel finds it
  // The group keeps its number while any process of the job lives. A process with that number and another start time
  // does not belong to the job.
  const std::optional<int64_t> ticks = StartTicks(seen.started->pid);
  if (ticks && *ticks != seen.started->start_ticks) return false;
  return ::kill(-seen.started->pid, SIGTERM) == 0;
}

void Client::StartIfSlotIsFree(const fs::path& folder, const Json& job, const Lock& job_lock) {
  for (size_t slot = 0; slot < slot_cores_.size(); ++slot) {
    if (const std::optional<Lock> slot_lock = Lock::Try(state_dir_ / "slots" / std::to_string(slot))) {
      Start(folder, job, job_lock, *slot_lock, slot_cores_[slot]);
      return;
    }
  }
}

void Client::Start(const fs::path& folder, const Json& job, const Lock& job_lock, const Lock& slot_lock,
                   const std::vector<int>& cores) {
  RemoveFile(folder / "exit");
  const std::string core_list = fmt::format("{}", fmt::join(cores, ","));
  std::vector<std::string> argv = {keeper_.string(), (folder / "exit").string(), core_list};
  for (const Json& word : job.at("exec")) argv.push_back(word.get<std::string>());

  // The keeper starts the job only when it is released, after `started` says who it is. If we are killed before that,
  // the keeper ends and the job still waits.
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) Check(errno, "cannot make a socket");
  const auto close_ends = [&] { std::for_each(ends.begin(), ends.end(), ::close); };
  try {
    const pid_t pid = StartKeeper(argv, ends[1], job_lock, slot_lock, folder / "log.txt");
    WriteFile(folder / "started", FormatStarted({pid, StartTicks(pid).value_or(0), core_list}));
    ::send(ends[0], "g", 1, MSG_NOSIGNAL);
  } catch (...) {
    close_ends();
    throw;
  }
  close_ends();
}

std::vector<int> AllowedCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) Check(errno, "cannot ask which cores may be used");
  std::vector<int> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) cores.push_back(cpu);
  }
  return cores;
}

}  // namespace ridgeline::local
