#include "engine/train/weights_folder.h"

#include <algorithm>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/train/manifest.h"
#include "engine/train/model_config.h"
#include "ridgeline/limits.h"

namespace ridgeline::engine {
namespace fs = std::filesystem;
namespace {

// A person named the folder, and the cache of Hugging Face's hub consists of links.
constexpr ForeignFile::Links kLinks = ForeignFile::Links::kFollowed;
constexpr char kOneFile[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";

bool HasFile(const fs::path& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

void CheckFolder(const fs::path& folder) {
  std::error_code ec;
  const fs::file_status status = fs::status(folder, ec);
  if (fs::is_directory(status)) return;
  if (fs::exists(status)) {
    throw Error(ErrorKind::kInvalidInput, folder.string() + " is a file, not a folder of weights");
  }
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("cannot read the folder of weights {}: {}", folder.string(), ec.message()),
              "give a folder's path, or init_from: seed");
}

// Checks the folder if it is one of ours. Files that only continuing a run needs may be missing.
void CheckUnchanged(const fs::path& folder) {
  if (!HasFile(folder / kManifestName)) return;
  Manifest manifest = ReadManifest(folder);
  std::erase_if(manifest.files, [](const SavedFile& file) { return file.name.starts_with("optimizer-"); });
  CheckWhole(manifest, folder);
}

std::vector<std::string> FilesOfIndex(const fs::path& path) {
  const std::optional<std::string> text = ReadForeignFile(path, kMaxManifestBytes, kLinks);
  const auto bad = [&](const std::string& what) {
    return Error(ErrorKind::kInvalidInput, fmt::format("{}: {}", path.string(), what));
  };
  if (!text) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} has neither {} nor {}", path.parent_path().string(), kOneFile, kIndex),
                "save the weights as safetensors, as transformers' save_pretrained does");
  }
  const Json document = ParseJson(*text, path.string());
  const auto map = document.is_object() ? document.find("weight_map") : document.end();
  if (map == document.end() || !map->is_object()) throw bad("it has no weight_map");
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name.find('/') != std::string::npos || !name.ends_with(".safetensors")) {
      throw bad(
          fmt::format("the weight {} is in no safetensors file of this folder", ShortenToBytes(tensor, kMaxNameBytes)));
    }
    if (!HasFile(path.parent_path() / name))
      throw bad(fmt::format("its {} is missing", ShortenToBytes(name, kMaxNameBytes)));
    names.insert(name);
  }
  return {names.begin(), names.end()};
}

TensorFiles OpenTensors(const fs::path& folder, const StepProgram& program) {
  CheckFolder(folder);
  if (program.rank == 0) CheckUnchanged(folder);
  CheckModelConfig(folder, program.spec);
  const bool one_file = HasFile(folder / kOneFile);
  return {folder, one_file ? std::vector<std::string>{kOneFile} : FilesOfIndex(folder / kIndex), kLinks};
}

}  // namespace

WeightsFolder::WeightsFolder(const fs::path& folder, const StepProgram& program)
    : shape_(program.shape), files_(OpenTensors(folder, program)) {
  const auto bad = [&](const std::string& what) {
    return Error(ErrorKind::kInvalidInput,
                 fmt::format("the weights in {} are not this model's: {}", folder.string(), what),
                 "give this run the model they are of, or start it from another folder");
  };
  std::vector<TensorFiles::Wanted> wanted;
  for (const Parameter& parameter : shape_.parameters) {
    for (const ParameterPart& part : parameter.parts) wanted.push_back({part.name, ShapeOfPart(parameter, part)});
  }
  if (const std::string difference = files_.Difference(wanted); !difference.empty()) throw bad(difference);
  for (const TensorFiles::Wanted& tensor : wanted) {
    const TensorFiles::Found& found = *files_.Find(tensor.name);
    const std::string& dtype = found.entry().dtype;
    if (dtype == "F32" || dtype == "BF16" || dtype == "F16") continue;
    throw bad(fmt::format("{} is {} in {}, not F32, BF16 or F16", tensor.name, dtype, found.file_name));
  }
}

void WeightsFolder::Read(size_t parameter, int64_t first, std::span<float> to) const {
  const int64_t cols = shape_.parameters[parameter].cols;
  const int64_t last = first + static_cast<int64_t>(to.size());
  for (const ParameterPart& part : shape_.parameters[parameter].parts) {
    const int64_t part_first = part.first_row * cols;
    const int64_t begin = std::max(first, part_first);
    const int64_t end = std::min(last, part_first + part.rows * cols);
    if (begin >= end) continue;
    const TensorFiles::Found& found = *files_.Find(part.name);
    found.file->ReadFloats(found.name, begin - part_first,
                           to.subspan(static_cast<size_t>(begin - first), static_cast<size_t>(end - begin)));
  }
}

}  // namespace ridgeline::engine
