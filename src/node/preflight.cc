#include "node/preflight.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/command_words.h"
#include "base/error.h"
#include "base/files.h"
#include "base/folders.h"
#include "base/process.h"
#include "base/text.h"
#include "base/version.h"
#include "ridgeline/job_dir.h"
#include "run/consistency.h"
#include "run/presets.h"

namespace ridgeline::node {
namespace {
namespace fs = std::filesystem;

constexpr size_t kProbeBytes = 64 << 10;
constexpr int64_t kTrainerPatienceNs = 120'000'000'000;  // its libraries may have to come over a network
// Clocks of a site differ slightly. A clock that was never set differs by years, one in another zone by hours.
constexpr int64_t kMostAheadS = 900;
constexpr int64_t kDayS = 86'400;

Unfit Storage(std::string message, std::string hint) {
  return {InfrastructureReason::kStorage, std::move(message), std::move(hint)};
}

// Returns nothing if the file system does not say.
std::optional<int64_t> FreeBytes(const fs::path& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0 || status.f_blocks == 0) return std::nullopt;
  return static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
}

std::optional<Unfit> CheckRoom(const fs::path& folder, int64_t bytes) {
  const std::optional<int64_t> free = FreeBytes(folder);
  if (!free || *free >= kLeastFreeBytes + bytes) return std::nullopt;
  std::string message = fmt::format("{} has {} free", folder.string(), FormatBytes(*free));
  message += bytes > 0 ? fmt::format(", and the points' checkpoint files take up to {}", FormatBytes(bytes))
                       : fmt::format(", and a job needs {}", FormatBytes(kLeastFreeBytes));
  return Storage(std::move(message), "free some space, or let the sweep write elsewhere");
}

// The nearest existing parent of a folder that is created later.
fs::path NearestThere(fs::path folder) {
  std::error_code ec;
  for (folder = fs::absolute(folder); !fs::is_directory(folder, ec) && folder.has_relative_path();) {
    folder = folder.parent_path();
  }
  return folder;
}

int64_t BytesIn(const fs::path& folder) {
  int64_t bytes = 0;
  ForEachEntry(folder, [&](const fs::directory_entry& entry) {
    std::error_code none;
    if (entry.is_directory(none) && !entry.is_symlink(none)) {
      bytes += BytesIn(entry.path());
    } else if (const auto size = entry.file_size(none); !none) {
      bytes += static_cast<int64_t>(size);
    }
  });
  return bytes;
}

// For each file system, checks the room for all runs' checkpoint files together, because they stay when their runs have
// ended.
std::optional<Unfit> CheckRoomForCheckpoints(std::span<const RunSpec> runs) {
  std::map<dev_t, std::pair<fs::path, int64_t>> needs;
  for (const RunSpec& run : runs) {
    if (run.checkpoint_dir.empty()) continue;
    const fs::path there = NearestThere(run.checkpoint_dir);
    struct stat info {};
    if (::stat(there.c_str(), &info) != 0) continue;
    auto& [folder, bytes] = needs[info.st_dev];
    folder = there;
    bytes += std::max<int64_t>(0, CheckpointBytes(run) - BytesIn(run.checkpoint_dir));
  }
  for (const auto& [device, need] : needs) {
    if (auto unfit = CheckRoom(need.first, need.second)) return unfit;
  }
  return std::nullopt;
}

// When the job file was last written. For a folder of parts, the newest of them.
int64_t WrittenUnixS(const fs::path& job_file) {
  const auto of = [](const fs::path& file) {
    struct stat info {};
    return ::stat(file.c_str(), &info) == 0 ? int64_t{info.st_mtim.tv_sec} : 0;
  };
  int64_t written_s = of(job_file);
  std::error_code ec;
  if (!fs::is_directory(job_file, ec)) return written_s;
  ForEachEntry(job_file, [&](const fs::directory_entry& entry) { written_s = std::max(written_s, of(entry.path())); });
  return written_s;
}

std::optional<Unfit> CheckClock(const fs::path& job_file, const Clock& clock) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  const int64_t now_s = clock.UnixNs() / kSecondNs;
  const auto unfit = [&](const std::string& what, int64_t then_s) {
    return Unfit{InfrastructureReason::kNode,
                 fmt::format("this node's clock says {}, and {} {}", FormatUnixTime(now_s * kSecondNs), what,
                             FormatUnixTime(then_s * kSecondNs)),
                 "set the clock: the times of its results would be wrong"};
  };
  if (const int64_t made_s = GitCommitUnixS(); now_s < made_s - kDayS) return unfit("this program is of", made_s);
  const int64_t written_s = WrittenUnixS(job_file);
  if (now_s < written_s - kMostAheadS) return unfit("its job was written at", written_s);
  return std::nullopt;
}

std::optional<Unfit> CheckTrainer(const Job& job, const fs::path& directory) {
  const auto unfit = [](std::string message, std::string hint) {
    return Unfit{InfrastructureReason::kStart, std::move(message), std::move(hint)};
  };
  std::error_code ec;
  if (!directory.empty() && !fs::is_directory(directory, ec)) {
    return unfit(
        fmt::format("the trainer's working folder '{}' does not exist on this node", PrintableLine(directory.string())),
        "name it by a path that every node has");
  }
  const auto own_path = job.environment.find("PATH");
  const char* path = std::getenv("PATH");
  const bool is_path = job.trainer.front().find('/') != std::string::npos;
  const fs::path program = FindProgram(is_path ? directory / job.trainer.front() : fs::path(job.trainer.front()),
                                       own_path != job.environment.end() ? own_path->second
                                       : path == nullptr                 ? ""
                                                                         : path);
  if (program.empty()) {
    return unfit(fmt::format("there is no program '{}' on this node", PrintableLine(job.trainer.front())),
                 "install it here, or name the trainer by a path that every node has");
  }
  if (!IsOurTrainer(job)) {
    const std::optional<size_t> place = WordsOf(job.trainer).script;
    if (!place) return std::nullopt;
    const std::string& script = job.trainer[*place];
    if (::access((directory / script).c_str(), R_OK) == 0) return std::nullopt;
    return unfit(fmt::format("there is no '{}' to read on this node, which the trainer is", PrintableLine(script)),
                 "name it by a path that every node has");
  }
  try {
    const Captured said = Run({program, "--version"}, kTrainerPatienceNs, job.environment);
    if (said.status.ok()) return std::nullopt;
    const std::string words = said.stderr_text.substr(0, said.stderr_text.find('\n'));
    return unfit(fmt::format("{} does not start on this node: {}{}{}", program.string(), Describe(said.status),
                             words.empty() ? "" : ": ", PrintableLine(words)),
                 "install it here as a whole, with its libraries");
  } catch (const Error& e) {
    return unfit(e.message(), e.hint());
  }
}

// Checks the paths that differ from `standard`.
std::optional<Unfit> CheckPaths(std::span<const RunSpec> runs, std::string RunSpec::*path, std::string_view standard,
                                std::string_view what) {
  std::set<std::string> seen;
  for (const RunSpec& run : runs) {
    const std::string& there = run.*path;
    if (there == standard || !seen.insert(there).second || ::access(there.c_str(), R_OK) == 0) continue;
    const int error = errno;
    return Storage(fmt::format("the {} {} cannot be read on this node: {}", what, PrintableLine(there),
                               std::generic_category().message(error)),
                   "keep it where every node finds it, and mount that");
  }
  return std::nullopt;
}

std::optional<Unfit> CheckData(std::span<const RunSpec> runs) {
  if (auto unfit = CheckPaths(runs, &RunSpec::data, "synthetic", "data file")) return unfit;
  return CheckPaths(runs, &RunSpec::init_from, "seed", "folder of weights");
}

// The number of entries of a folder whose names are `prefix` and a number.
int64_t CountNumbered(const fs::path& folder, std::string_view prefix) {
  int64_t count = 0;
  ForEachEntry(folder, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename();
    if (name.size() > prefix.size() && name.starts_with(prefix) &&
        name.find_first_not_of("0123456789", prefix.size()) == std::string::npos) {
      ++count;
    }
  });
  return count;
}

// Checks only whether there is any device. The scheduler counts them: it may hand out one GPU in slices, and call each
// a GPU.
std::optional<Unfit> CheckDevices(const Job& job, const fs::path& root) {
  const fs::path dev = root / "dev";
  std::error_code ec;
  const bool any = CountNumbered(dev, "nvidia") > 0 || CountNumbered(dev / "dri", "renderD") > 0 ||
                   CountNumbered(dev / "accel", "accel") > 0 || fs::exists(dev / "dxg", ec);
  if (job.gpus <= 0 || any) return std::nullopt;
  return Unfit{InfrastructureReason::kNode,
               fmt::format("the job asks for {}, and this node shows none (/dev/nvidia0, /dev/dri/renderD128, …)",
                           CountOf(job.gpus, "GPU")),
               "is the driver loaded, and are devices handed to the container?"};
}

}  // namespace

std::optional<Unfit> CheckFolder(const fs::path& folder, const std::string& name, int64_t bytes) {
  const fs::path file = folder / name;
  const std::string written(kProbeBytes, 'r');
  try {
    {
      const Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
      if (fd.get() < 0 && (errno == EMFILE || errno == ENFILE)) {
        return Unfit{InfrastructureReason::kLimit,
                     fmt::format("cannot write in {}: too many files are open on this node", folder.string()),
                     "raise `ulimit -n` for jobs"};
      }
      if (fd.get() < 0) ThrowErrno("cannot write in " + folder.string());
      WriteAll(fd.get(), written, file);
      if (::fsync(fd.get()) != 0) ThrowErrno("cannot write " + file.string());
    }
    const std::string read = ReadFile(file);
    if (::unlink(file.c_str()) != 0) ThrowErrno("cannot remove " + file.string());
    if (read != written) {
      return Storage(fmt::format("{} gives back other bytes than were written there", folder.string()),
                     "the disk or its connection is broken");
    }
  } catch (const Error& e) {
    ::unlink(file.c_str());
    return Storage(e.message(), e.hint().empty() ? "is it mounted here, and may this user write there?" : e.hint());
  }
  return CheckRoom(folder, bytes);
}

int64_t CheckpointBytes(const RunSpec& spec) {
  if (spec.checkpoint_dir.empty()) return 0;
  // A weight and two moments.
  const int64_t of_one = CountParameters(spec) * 3 * (spec.state_precision == "fp32" ? 4 : 2);
  const int64_t steps = StepsOf(spec);
  const int64_t every = std::max<int64_t>(1, spec.checkpoint_every_steps);
  return of_one * std::min((steps + every - 1) / every, spec.checkpoint_keep + 1);
}

std::optional<Unfit> Preflight(const Job& job, const fs::path& job_file, std::span<const RunSpec> runs, int64_t node,
                               const Clock& clock, const fs::path& directory, const fs::path& root) {
  const bool ours = IsOurTrainer(job);
  if (auto unfit = CheckFolder(job.job_dir, ExecCheckName(node))) return unfit;
  if (auto unfit = ours ? CheckRoomForCheckpoints(runs) : std::nullopt) return unfit;
  if (auto unfit = CheckClock(job_file, clock)) return unfit;
  if (auto unfit = CheckTrainer(job, directory)) return unfit;
  if (auto unfit = ours ? CheckData(runs) : std::nullopt) return unfit;
  return CheckDevices(job, root);
}

}  // namespace ridgeline::node
