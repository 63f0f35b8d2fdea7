#include "engine/train/checkpoint_files.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/train/attempts.h"
#include "engine/train/state_files.h"
#include "run/families.h"

namespace ridgeline::engine {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kLockPatienceNs = 5'000'000'000;
constexpr int64_t kLockLookNs = 10'000'000;

std::string StepName(int64_t step) { return fmt::format("step-{:08}", step); }

// Returns the step of "step-00000120"; nothing for any other name.
std::optional<int64_t> StepOf(const std::string& name) {
  constexpr std::string_view kPrefix = "step-";
  int64_t step = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || StepName(step) != name) return std::nullopt;
  return step;
}

bool IsTemporary(const std::string& name) {
  return name.starts_with(".step-") && name.find(".tmp-") != std::string::npos;
}

bool IsOurFile(const std::string& name) { return name == kManifestName || IsStateFile(name); }

std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) entries.push_back(at->path());
  if (ec) throw Error(ErrorKind::kInfrastructure, fmt::format("cannot read {}: {}", folder.string(), ec.message()));
  return entries;
}

bool IsFolder(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(fs::symlink_status(path, ec));
}

bool IsThere(const fs::path& path) {
  std::error_code ec;
  return fs::exists(fs::symlink_status(path, ec));
}

void Rename(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) ThrowErrno("cannot rename to " + to.string());
}

// Returns the steps that have a folder here, the newest first.
std::vector<int64_t> Steps(const fs::path& dir) {
  std::vector<int64_t> steps;
  for (const fs::path& entry : Entries(dir)) {
    if (const auto step = StepOf(entry.filename().string()); step && IsFolder(entry)) steps.push_back(*step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

// Removes our files, and the folder if nothing else is in it. Files that cannot be removed stay, and do no harm.
void RemoveOurs(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> ours;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    if (IsOurFile(at->path().filename().string())) ours.push_back(at->path());
  }
  for (const fs::path& file : ours) fs::remove(file, ignored);
  fs::remove(folder, ignored);
}

// Renames the folder to a temporary name first, so that nobody ever finds half of it. Returns false if it has others'
// files.
bool Retire(const fs::path& folder) {
  const std::vector<fs::path> entries = Entries(folder);
  const bool only_ours = std::all_of(entries.begin(), entries.end(), [](const fs::path& entry) {
    return !IsFolder(entry) && IsOurFile(entry.filename().string());
  });
  if (!only_ours) return false;
  const fs::path old = folder.parent_path() / fmt::format(".{}.tmp-old-{}", folder.filename().string(), ::getpid());
  Rename(folder, old);
  RemoveOurs(old);
  return true;
}

FileLock TakeLock(const fs::path& dir, Clock& clock) {
  const int64_t end_ns = clock.MonotonicNs() + kLockPatienceNs;
  for (;;) {
    if (std::optional<FileLock> lock = FileLock::Try(dir / ".lock")) return *std::move(lock);
    if (clock.MonotonicNs() > end_ns) {
      throw Error(ErrorKind::kInfrastructure, fmt::format("another run writes checkpoint files to {}", dir.string()),
                  "wait for it, or give this run another checkpoint.dir");
    }
    clock.SleepNs(kLockLookNs);
  }
}

fs::path MadeAndAbsolute(const fs::path& dir) {
  MakeDirs(dir);
  return fs::absolute(dir);
}

}  // namespace

SavedState OpenSaved(const fs::path& folder) {
  SavedState saved{folder, ReadManifest(folder)};
  CheckWhole(saved.manifest, folder);
  return saved;
}

void Load(const SavedState& saved, const RunSpec& spec, TrainingState& state) {
  const StateFiles files(saved.folder, saved.manifest.files);
  files.CheckShapes(state);
  CheckContinues(saved.manifest, spec, saved.folder);
  files.ReadInto(state);
}

CheckpointDir::CheckpointDir(const fs::path& dir, int64_t keep, Clock& clock, Communicator& communicator)
    : dir_(MadeAndAbsolute(dir)), keep_(keep), communicator_(communicator) {
  if (communicator.rank() != 0) return;
  lock_ = TakeLock(dir_, clock);
  for (const fs::path& entry : Entries(dir_)) {
    if (IsTemporary(entry.filename().string()) && IsFolder(entry)) RemoveOurs(entry);
  }
}

std::optional<SavedState> CheckpointDir::Newest(const std::function<void(const std::string&)>& note) const {
  std::optional<SavedState> saved;
  if (communicator_.rank() == 0) saved = NewestWhole(note);
  int64_t step = saved ? saved->manifest.step : -1;
  communicator_.AllReduce(std::span(&step, 1), Reduction::kMax);
  if (step >= 0 && !saved) {
    const fs::path folder = dir_ / StepName(step);
    saved = SavedState{folder, ReadManifest(folder)};  // rank 0 has checked the files
  }
  return saved;
}

std::optional<SavedState> CheckpointDir::NewestWhole(const std::function<void(const std::string&)>& note) const {
  std::optional<Error> damage;
  for (const int64_t step : Steps(dir_)) {
    const fs::path folder = dir_ / StepName(step);
    const bool half_written = !IsThere(folder / kManifestName);
    try {
      return OpenSaved(folder);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInvalidInput) throw;
      note(fmt::format("step {} is passed over: {}", step, e.message()));
      if (!half_written && !damage) damage = e;
    }
  }
  if (!damage) return std::nullopt;
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("no checkpoint files in {} are whole: {}", dir_.string(), damage->message()),
              "restore the damaged files, or remove all of these to start over");
}

void CheckpointDir::Save(const TrainingState& state, Manifest manifest) {
  const bool first = communicator_.rank() == 0;
  int64_t writer = first ? ::getpid() : 0;
  communicator_.AllReduce(std::span(&writer, 1), Reduction::kMax);
  const fs::path folder = dir_ / fmt::format(".{}.tmp-{}", StepName(manifest.step), writer);
  try {
    Attempts begin;
    begin([&] {
      if (first) MakeDirs(folder);
    });
    begin.ThrowWhereAnyFailed(communicator_);
    manifest.files = WriteStateFiles(state, folder);
    Attempts commit;
    commit([&] {
      if (first) Commit(state, folder, manifest);
    });
    commit.ThrowWhereAnyFailed(communicator_);
  } catch (...) {
    if (first) RemoveOurs(folder);
    throw;
  }
}

void CheckpointDir::Commit(const TrainingState& state, const fs::path& folder, Manifest& manifest) {
  manifest.files.push_back(WriteStateIndex(state, folder));
  if (FamilyOf(manifest.spec).config != nullptr)
    manifest.files.push_back(WriteModelConfig(state, manifest.spec, folder));
  WriteSynced(folder / kManifestName, EncodeManifest(manifest));
  SyncFolder(folder);

  const fs::path name = dir_ / StepName(manifest.step);
  if (IsThere(name) && !(IsFolder(name) && Retire(name))) {
    throw Error(ErrorKind::kInfrastructure, name.string() + " is there already, and holds files that are not ours",
                "move them away, or give this run another checkpoint.dir");
  }
  Rename(folder, name);
  SyncFolder(dir_);
  RemoveOld(manifest.step);
}

void CheckpointDir::RemoveOld(int64_t newest_step) const {
  int64_t kept = 0;
  for (const int64_t step : Steps(dir_)) {
    const fs::path folder = dir_ / StepName(step);
    // Newer folders are damaged, or a person chose to go back. Incomplete ones belong to nobody.
    if (step > newest_step || !IsThere(folder / kManifestName)) continue;
    if (++kept <= keep_) continue;
    try {
      Retire(folder);
    } catch (const Error&) {
      // A folder that cannot be removed costs space, but the save has still succeeded.
    }
  }
}

}  // namespace ridgeline::engine
