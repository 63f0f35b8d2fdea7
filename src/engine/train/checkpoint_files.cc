#include "engine/train/checkpoint_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "engine/train/safetensors.h"

namespace ridgeline {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kChunkBytes = 4 << 20;
constexpr int64_t kLockPatienceNs = 5'000'000'000;
constexpr int64_t kLockLookNs = 10'000'000;
constexpr char kIndexName[] = "model.safetensors.index.json";

std::string StepName(int64_t step) { return fmt::format("step-{:08}", step); }

// The step of "step-00000120"; nothing for any other name.
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

bool IsOurFile(const std::string& name) {
  return name == kManifestName || name == kIndexName ||
         ((name.starts_with("model-") || name.starts_with("optimizer-")) && name.ends_with(".safetensors"));
}

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

// Steps that have a folder here, the newest first.
std::vector<int64_t> Steps(const fs::path& dir) {
  std::vector<int64_t> steps;
  for (const fs::path& entry : Entries(dir)) {
    if (const auto step = StepOf(entry.filename().string()); step && IsFolder(entry)) steps.push_back(*step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

// Removes our files, and the folder where nothing else is in it. What cannot be removed stays, and does no harm.
void RemoveOurs(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> ours;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    if (IsOurFile(at->path().filename().string())) ours.push_back(at->path());
  }
  for (const fs::path& file : ours) fs::remove(file, ignored);
  fs::remove(folder, ignored);
}

// Under a temporary name first, so that nobody ever finds half of it. False where others' files are in it.
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

std::string FileName(std::string_view kind, int64_t rank, int64_t world) {
  return fmt::format("{}-{:05}-of-{:05}.safetensors", kind, rank + 1, world);
}

struct Kind {
  std::string_view name;
  bool is_weight;
};
constexpr Kind kKinds[] = {{"model", true}, {"optimizer", false}};

// The tensors of a kind, dealt out over `world` files: each to the file that has the fewest bytes so far.
std::vector<std::vector<const StateTensor*>> Deal(const TrainingState& state, const Kind& kind, int64_t world) {
  std::vector<std::vector<const StateTensor*>> files(static_cast<size_t>(world));
  std::vector<int64_t> bytes(files.size(), 0);
  for (const StateTensor& tensor : state.tensors()) {
    if (tensor.is_weight != kind.is_weight) continue;
    const auto least = static_cast<size_t>(std::min_element(bytes.begin(), bytes.end()) - bytes.begin());
    files[least].push_back(&tensor);
    bytes[least] += tensor.bytes();
  }
  return files;
}

bool AllFinite(std::span<const std::byte> values, const std::string& dtype) {
  const auto finite = [&]<typename Bits>(Bits exponent) {
    bool all = true;
    for (size_t i = 0; i + sizeof(Bits) <= values.size(); i += sizeof(Bits)) {
      Bits bits = 0;
      std::memcpy(&bits, values.data() + i, sizeof bits);
      all &= (bits & exponent) != exponent;
    }
    return all;
  };
  if (dtype == "F32") return finite(uint32_t{0x7f800000});
  if (dtype == "BF16") return finite(uint16_t{0x7f80});
  return true;
}

// Runs steps until one fails, and keeps why: a rank whose disk is full still has to give the others their parts.
class Attempts {
 public:
  template <typename Fn>
  void operator()(const Fn& fn) {
    if (failed_) return;
    try {
      fn();
    } catch (const Error& error) {
      failed_ = error;
    }
  }
  // On every rank, where any of them failed.
  void ThrowWhereAnyFailed(Communicator& communicator) const {
    int64_t failed = failed_ ? 1 : 0;
    communicator.AllReduce(std::span(&failed, 1), Reduction::kMax);
    if (failed_) throw *failed_;
    if (failed != 0) throw Error(ErrorKind::kInfrastructure, "another rank could not write its checkpoint files");
  }

 private:
  std::optional<Error> failed_;
};

// The file, where it is this rank's; every rank reads along where they hold parts.
SavedFile WriteFile(const TrainingState& state, std::span<const StateTensor* const> tensors, const fs::path& path,
                    bool mine, Attempts& attempt) {
  std::optional<SafetensorsWriter> file;
  attempt([&] {
    std::vector<SafetensorsWriter::Tensor> header;
    for (const StateTensor* t : tensors) header.push_back({t->name, t->dtype, t->shape, t->bytes()});
    if (mine) file.emplace(path, header);
  });
  std::vector<std::byte> chunk(kChunkBytes);
  for (const StateTensor* tensor : tensors) {
    const int64_t per_chunk = kChunkBytes / tensor->element_bytes();
    for (int64_t first = 0; first < tensor->elements(); first += per_chunk) {
      const int64_t count = std::min(per_chunk, tensor->elements() - first);
      const auto bytes = std::span(chunk).first(static_cast<size_t>(count * tensor->element_bytes()));
      if (mine || state.in_parts()) state.Read(*tensor, first, bytes);
      attempt([&] {
        if (!mine) return;
        if (tensor->is_weight && !AllFinite(bytes, tensor->dtype)) {
          throw Error(ErrorKind::kInvalidInput, fmt::format("the weight {} is not finite any more", tensor->name));
        }
        file->Append(bytes);
      });
    }
  }
  SavedFile saved;
  attempt([&] {
    if (!mine) return;
    file->Finish();
    saved = {path.filename().string(), file->bytes(), Hex(file->hash())};
  });
  return saved;
}

// A saved file's record, as it travels between ranks.
struct PackedFile {
  std::array<char, 64> name{};
  std::array<char, 64> xxh3{};
  int64_t bytes = 0;
};

std::vector<SavedFile> FilesOfAllRanks(const std::vector<SavedFile>& mine, Communicator& communicator) {
  std::vector<PackedFile> packed(mine.size());
  for (size_t i = 0; i < mine.size(); ++i) {
    mine[i].name.copy(packed[i].name.data(), packed[i].name.size() - 1);
    mine[i].xxh3.copy(packed[i].xxh3.data(), packed[i].xxh3.size() - 1);
    packed[i].bytes = mine[i].bytes;
  }
  std::vector<PackedFile> all(mine.size() * static_cast<size_t>(communicator.world()));
  communicator.AllGather(reinterpret_cast<const std::byte*>(packed.data()), reinterpret_cast<std::byte*>(all.data()),
                         static_cast<int64_t>(packed.size() * sizeof(PackedFile)));
  std::vector<SavedFile> files;
  for (const PackedFile& file : all) files.push_back({file.name.data(), file.bytes, file.xxh3.data()});
  return files;
}

// This rank's file of each kind.
std::vector<SavedFile> WriteFiles(const TrainingState& state, const fs::path& folder, int64_t rank, int64_t world,
                                  Attempts& attempt) {
  std::vector<SavedFile> files;
  for (const Kind& kind : kKinds) {
    const auto dealt = Deal(state, kind, world);
    for (int64_t file = 0; file < world; ++file) {
      const SavedFile saved = WriteFile(state, dealt[static_cast<size_t>(file)],
                                        folder / FileName(kind.name, file, world), file == rank, attempt);
      if (file == rank) files.push_back(saved);
    }
  }
  return files;
}

void WriteSmallFile(const fs::path& path, std::string_view text) {
  FileWriter file(path);
  file.Append(text);
  file.Sync();
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

// What the saved files hold, by name.
class SavedTensors {
 public:
  explicit SavedTensors(const SavedState& saved) {
    for (const SavedFile& file : saved.manifest.files) {
      if (!file.name.ends_with(".safetensors")) continue;
      files_.push_back(std::make_unique<SafetensorsFile>(saved.folder / file.name));
      for (const auto& [name, entry] : files_.back()->entries())
        found_[name] = {files_.back().get(), &entry, file.name};
    }
  }

  // Throws Error(kInvalidInput) unless they are exactly these tensors.
  void CheckShapes(const TrainingState& state, const fs::path& folder) const {
    const auto bad = [&](const std::string& what) {
      return Error(ErrorKind::kInvalidInput,
                   fmt::format("the checkpoint files in {} are of another shape: {}", folder.string(), what),
                   "give this run another checkpoint.dir, or the model they are of");
    };
    std::map<std::string, const StateTensor*> wanted;
    for (const StateTensor& tensor : state.tensors()) {
      wanted[tensor.name] = &tensor;
      const auto it = found_.find(tensor.name);
      if (it == found_.end()) throw bad(fmt::format("they have no tensor {}, and this run has", tensor.name));
      const auto& [file, entry, file_name] = it->second;
      if (entry->shape != tensor.shape) {
        throw bad(fmt::format("{} is [{}] in {}, and [{}] in this run", tensor.name, fmt::join(entry->shape, ", "),
                              file_name, fmt::join(tensor.shape, ", ")));
      }
      if (entry->dtype != tensor.dtype) {
        throw bad(
            fmt::format("{} is {} in {}, and {} in this run", tensor.name, entry->dtype, file_name, tensor.dtype));
      }
    }
    for (const auto& [name, found] : found_) {
      if (!wanted.contains(name))
        throw bad(fmt::format("{} has a tensor {}, and this run has not", found.file_name, name));
    }
  }

  void ReadInto(TrainingState& state) const {
    std::vector<std::byte> chunk(kChunkBytes);
    for (const StateTensor& tensor : state.tensors()) {
      const Found& found = found_.at(tensor.name);
      const TrainingState::Range held = state.Needed(tensor);
      const int64_t per_chunk = kChunkBytes / tensor.element_bytes();
      for (int64_t at = held.first; at < held.first + held.count; at += per_chunk) {
        const int64_t count = std::min(per_chunk, held.first + held.count - at);
        const auto bytes = std::span(chunk).first(static_cast<size_t>(count * tensor.element_bytes()));
        found.file->ReadBytes(*found.entry, at * tensor.element_bytes(), bytes);
        state.Write(tensor, at, bytes);
      }
    }
  }

 private:
  struct Found {
    const SafetensorsFile* file;
    const SafetensorsFile::Entry* entry;
    std::string file_name;
  };
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Found> found_;
};

}  // namespace

SavedState OpenSaved(const fs::path& folder) {
  SavedState saved{folder, ReadManifest(folder)};
  CheckWhole(saved.manifest, folder);
  return saved;
}

void Load(const SavedState& saved, const RunSpec& spec, TrainingState& state) {
  const SavedTensors tensors(saved);
  tensors.CheckShapes(state, saved.folder);
  CheckContinues(saved.manifest, spec, saved.folder);
  tensors.ReadInto(state);
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
              "restore what is damaged, or remove these files to begin anew");
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
    Attempts write;
    const std::vector<SavedFile> mine = WriteFiles(state, folder, communicator_.rank(), communicator_.world(), write);
    write.ThrowWhereAnyFailed(communicator_);
    manifest.files = FilesOfAllRanks(mine, communicator_);
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

void CheckpointDir::Commit(const TrainingState& state, const fs::path& folder, const Manifest& manifest) {
  const int64_t world = communicator_.world();
  Json weight_map = Json::object();
  int64_t total_bytes = 0;
  const auto dealt = Deal(state, kKinds[0], world);
  for (int64_t rank = 0; rank < world; ++rank) {
    for (const StateTensor* weight : dealt[static_cast<size_t>(rank)]) {
      weight_map[weight->name] = FileName(kKinds[0].name, rank, world);
      total_bytes += weight->bytes();
    }
  }
  WriteSmallFile(folder / kIndexName,
                 DumpJson({{"metadata", {{"total_size", total_bytes}}}, {"weight_map", weight_map}}, 2) + "\n");
  WriteSmallFile(folder / kManifestName, EncodeManifest(manifest));
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
    // Newer ones are damaged, or a person chose to go back; half-written ones are nobody's.
    if (step > newest_step || !IsThere(folder / kManifestName)) continue;
    if (++kept <= keep_) continue;
    try {
      Retire(folder);
    } catch (const Error&) {
      // What cannot be removed costs room; the save that is done is no less done.
    }
  }
}

}  // namespace ridgeline
