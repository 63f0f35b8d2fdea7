#include "engine/train/manifest.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "ridgeline/json_fault.h"
#include "ridgeline/limits.h"
#include "ridgeline/sealed_json.h"
#include "run/consistency.h"
#include "run/parallelism.h"
#include "run/spec.h"

namespace ridgeline::engine {
namespace fs = std::filesystem;
namespace {

constexpr char kFormat[] = "ridgeline checkpoint files";
constexpr int64_t kReadBytes = 1 << 20;
constexpr size_t kShownBytes = 80;  // of a refused value

// Returns the spec with everything that does not change the loss series set to one value. Ranks and micro-steps only
// cut a batch into parts, and the number of steps affects only the cosine.
RunSpec Series(const RunSpec& spec) {
  RunSpec series = Without(spec, Field::kSparesLoss);
  series.batch_size = spec.batch_size * spec.grad_accumulation * DataParallelRanks(spec);
  if (spec.schedule == "cosine") series.steps = StepsOf(spec);
  return series;
}

std::string HashOfFile(const FileReader& file) {
  Hasher hasher;
  std::vector<char> buffer(static_cast<size_t>(std::min(kReadBytes, std::max<int64_t>(file.size(), 1))));
  for (int64_t at = 0; at < file.size();) {
    const auto n = static_cast<size_t>(std::min(static_cast<int64_t>(buffer.size()), file.size() - at));
    file.ReadAt(at, std::span(buffer).first(n));
    hasher.Add({buffer.data(), n});
    at += static_cast<int64_t>(n);
  }
  return Hex(hasher.Result());
}

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  Json files = Json::array();
  for (const SavedFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.xxh3}});
  }
  return SealedText({{"format", kFormat},
                     {"version", kManifestVersion},
                     {"step", manifest.step},
                     {"point_id", PointId(manifest.spec)},
                     {"spec", ParseJson(EncodePoint(manifest.spec), "the spec")},
                     {"history", EncodeHistory(manifest.history)},
                     {"files", files}}) +
         "\n";
}

Manifest ReadManifest(const fs::path& folder) {
  const fs::path path = folder / kManifestName;
  const auto bad = [&](const std::string& what) {
    return Error(ErrorKind::kInvalidInput, path.string() + ": " + what);
  };
  const std::optional<std::string> text = ReadForeignFile(path, kMaxManifestBytes);
  if (!text) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} has no {}: it holds no checkpoint files, or half-written ones", folder.string(),
                            kManifestName));
  }
  const Json document = ParseJson(*text, path.string());
  if (!document.is_object() || document.value("format", Json()) != kFormat) throw bad("not a manifest of ours");
  if (document.value("version", Json()) != kManifestVersion) {
    throw bad(fmt::format("version {}, but this program speaks {}",
                          ShortenToBytes(DumpJson(document.value("version", Json())), kShownBytes), kManifestVersion));
  }
  try {
    Manifest manifest;
    document.at("step").get_to(manifest.step);
    manifest.spec = DecodeSpec(document.at("spec"), path.string());
    manifest.history = DecodeHistory(document.at("history"));
    for (const Json& file : document.at("files")) {
      manifest.files.push_back(
          {file.at("name").get<std::string>(), file.at("bytes").get<int64_t>(), file.at("xxh3").get<std::string>()});
      const std::string& name = manifest.files.back().name;
      if (name.empty() || name.find('/') != std::string::npos) throw bad("a file is called '" + name + "'");
    }
    const History& history = manifest.history;
    const auto steps = static_cast<size_t>(std::max<int64_t>(manifest.step, 0));
    if (manifest.step < 1 || history.loss.size() != steps || history.step_ns.size() != steps ||
        (!history.grad_norm.empty() && history.grad_norm.size() != steps)) {
      throw bad(fmt::format("it is of step {}, and its history is not", manifest.step));
    }
    if (const auto problem = SealProblem(document); !problem.empty()) throw bad(fmt::format("it {}", problem));
    return manifest;
  } catch (const Json::exception& e) {
    throw bad(JsonFault(e));
  }
}

void CheckWhole(const Manifest& manifest, const fs::path& folder) {
  for (const SavedFile& file : manifest.files) {
    const fs::path path = folder / file.name;
    const auto bad = [&](const std::string& what) {
      return Error(ErrorKind::kInvalidInput, path.string() + " " + what,
                   "restore the file, or continue from an older step");
    };
    std::error_code ec;
    if (!fs::exists(fs::symlink_status(path, ec))) throw bad("is missing");
    const FileReader reader(path);
    if (reader.size() != file.bytes) throw bad(fmt::format("has {} bytes; {} were saved", reader.size(), file.bytes));
    if (HashOfFile(reader) != file.xxh3) throw bad("was changed since it was saved: its hash is another");
  }
}

void CheckContinues(const Manifest& manifest, const RunSpec& spec, const fs::path& folder) {
  const RunSpec there = Series(manifest.spec);
  const RunSpec here = Series(spec);
  std::vector<std::string> differences;
  for (const Field& field : Fields()) {
    if (FieldText(there, field) == FieldText(here, field)) continue;
    const std::string_view name = field.name == "batch_size" ? "the global batch" : field.name;
    differences.push_back(
        fmt::format("{} is {} there and {} here", name, FieldText(there, field), FieldText(here, field)));
  }
  if (!differences.empty()) {
    throw Error(
        ErrorKind::kInvalidInput,
        fmt::format("the checkpoint files in {} are of another run: {}", folder.string(), Join(differences, "; ")),
        "give this run another checkpoint.dir");
  }
  const int64_t total = StepsOf(spec);
  if (manifest.step > total) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("the checkpoint files in {} are of step {}, and this run has {} steps", folder.string(),
                            manifest.step, total),
                "continue from an older step, or give this run another checkpoint.dir");
  }
}

}  // namespace ridgeline::engine
