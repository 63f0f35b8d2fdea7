#include "engine/train/state_files.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "engine/train/attempts.h"
#include "engine/train/model_config.h"

namespace ridgeline::engine {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kChunkBytes = 4 << 20;
constexpr char kIndexName[] = "model.safetensors.index.json";

std::string FileName(std::string_view kind, int64_t rank, int64_t world) {
  return fmt::format("{}-{:05}-of-{:05}.safetensors", kind, rank + 1, world);
}

struct Kind {
  std::string_view name;
  bool is_weight;
};
constexpr Kind kKinds[] = {{"model", true}, {"optimizer", false}};

// Deals the tensors of a kind out over `world` files: each to the file that has the fewest bytes so far.
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

// Writes the file if it is this rank's. If ranks hold parts, every rank must read along.
SavedFile WriteFile(const TrainingState& state, std::span<const StateTensor* const> tensors, const fs::path& path,
                    bool mine, Attempts& attempt) {
  std::optional<SafetensorsWriter> file;
  attempt([&] {
    std::vector<SafetensorsWriter::Tensor> header;
    for (const StateTensor* t : tensors) header.push_back({t->name, t->dtype, t->shape, t->bytes()});
    if (mine) file.emplace(path, header);
  });
  const auto chunk = std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
  for (const StateTensor* tensor : tensors) {
    const int64_t per_chunk = kChunkBytes / tensor->element_bytes();
    for (int64_t first = 0; first < tensor->elements(); first += per_chunk) {
      const int64_t count = std::min(per_chunk, tensor->elements() - first);
      const auto bytes = std::span(chunk.get(), static_cast<size_t>(count * tensor->element_bytes()));
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

// A saved file's record, as ranks send it.
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

// Writes this rank's file of each kind.
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

SavedFile WriteText(const fs::path& folder, const std::string& name, const std::string& text) {
  WriteSynced(folder / name, text);
  return {name, std::ssize(text), Hex(Hash(text))};
}

std::vector<std::string> TensorFileNames(std::span<const SavedFile> files) {
  std::vector<std::string> names;
  for (const SavedFile& file : files) {
    if (file.name.ends_with(".safetensors")) names.push_back(file.name);
  }
  return names;
}

}  // namespace

bool IsStateFile(std::string_view name) {
  return name == kIndexName || name == kModelConfigName ||
         ((name.starts_with("model-") || name.starts_with("optimizer-")) && name.ends_with(".safetensors"));
}

std::vector<SavedFile> WriteStateFiles(const TrainingState& state, const fs::path& folder) {
  Communicator& communicator = state.communicator();
  Attempts attempt;
  const std::vector<SavedFile> mine = WriteFiles(state, folder, communicator.rank(), communicator.world(), attempt);
  attempt.ThrowWhereAnyFailed(communicator);
  return FilesOfAllRanks(mine, communicator);
}

SavedFile WriteStateIndex(const TrainingState& state, const fs::path& folder) {
  const int64_t world = state.communicator().world();
  Json weight_map = Json::object();
  int64_t total_bytes = 0;
  const auto dealt = Deal(state, kKinds[0], world);
  for (int64_t rank = 0; rank < world; ++rank) {
    for (const StateTensor* weight : dealt[static_cast<size_t>(rank)]) {
      weight_map[weight->name] = FileName(kKinds[0].name, rank, world);
      total_bytes += weight->bytes();
    }
  }
  const std::string text =
      DumpJson({{"metadata", {{"total_size", total_bytes}}}, {"weight_map", weight_map}}, 2) + "\n";
  return WriteText(folder, kIndexName, text);
}

SavedFile WriteModelConfig(const TrainingState& state, const RunSpec& spec, const fs::path& folder) {
  const auto weight = std::ranges::find_if(state.tensors(), [](const StateTensor& tensor) { return tensor.is_weight; });
  return WriteText(folder, kModelConfigName, EncodeModelConfig(spec, weight->dtype));
}

StateFiles::StateFiles(const fs::path& folder, std::span<const SavedFile> files)
    : folder_(folder), files_(folder, TensorFileNames(files)) {}

void StateFiles::CheckShapes(const TrainingState& state) const {
  const auto bad = [&](const std::string& what) {
    return Error(ErrorKind::kInvalidInput,
                 fmt::format("the checkpoint files in {} are of another shape: {}", folder_.string(), what),
                 "give this run another checkpoint.dir, or the model they are of");
  };
  std::vector<TensorFiles::Wanted> wanted;
  for (const StateTensor& tensor : state.tensors()) wanted.push_back({tensor.name, tensor.shape});
  if (const std::string difference = files_.Difference(wanted); !difference.empty()) throw bad(difference);
  for (const StateTensor& tensor : state.tensors()) {
    const TensorFiles::Found& found = *files_.Find(tensor.name);
    if (found.entry().dtype == tensor.dtype) continue;
    throw bad(fmt::format("{} is {} in {}, and {} in this run", tensor.name, found.entry().dtype, found.file_name,
                          tensor.dtype));
  }
}

void StateFiles::ReadInto(TrainingState& state) const {
  const auto chunk = std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
  for (const StateTensor& tensor : state.tensors()) {
    const TensorFiles::Found& found = *files_.Find(tensor.name);
    const TrainingState::Range held = state.Needed(tensor);
    const int64_t per_chunk = kChunkBytes / tensor.element_bytes();
    for (int64_t at = held.first; at < held.first + held.count; at += per_chunk) {
      const int64_t count = std::min(per_chunk, held.first + held.count - at);
      const auto bytes = std::span(chunk.get(), static_cast<size_t>(count * tensor.element_bytes()));
      found.file->ReadBytes(found.entry(), at * tensor.element_bytes(), bytes);
      state.Write(tensor, at, bytes);
    }
  }
}

}  // namespace ridgeline::engine
