#include "engine/train/model_config.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "ridgeline/limits.h"
#include "run/families.h"
#include "run/names.h"

namespace ridgeline::engine {
namespace {

constexpr size_t kValueBytes = 80;  // of a value that differs

HubConfig ConfigOf(const RunSpec& spec) {
  const Family& family = FamilyOf(spec);
  if (family.config == nullptr)
    throw Error(ErrorKind::kInternal, fmt::format("no config.json of family {}", spec.family));
  HubConfig config = family.config(spec);
  config.settings.insert(config.settings.begin(), {"model_type", config.type, nullptr, "family"});
  return config;
}

// Newer files have all of the rotary embedding in a mapping, and older ones only its scaling. Leaves the scaling's
// kind.
void FlattenRope(Json& config) {
  Json scaling;
  for (const char* group : {"rope_parameters", "rope_scaling"}) {
    const auto it = config.find(group);
    if (it == config.end() || !it->is_object()) continue;
    const Json type = it->value("rope_type", it->value("type", Json("default")));
    if (type != "default") scaling = type;
    if (it->contains("rope_theta")) config["rope_theta"] = it->at("rope_theta");
  }
  config["rope_scaling"] = scaling;
}

std::string Show(const Json& value) {
  return value.is_null() ? "not given" : ShortenToBytes(DumpJson(value), kValueBytes);
}

}  // namespace

std::string EncodeModelConfig(const RunSpec& spec, std::string_view dtype) {
  const HubConfig of = ConfigOf(spec);
  Json config = {{"architectures", {of.architecture}},
                 {"torch_dtype", dtype == "F32"    ? "float32"
                                 : dtype == "BF16" ? "bfloat16"
                                                   : "float16"},
                 {"bos_token_id", nullptr},
                 {"eos_token_id", nullptr}};
  for (const ConfigSetting& setting : of.settings) config[setting.key] = setting.value;
  config.update(of.others);
  return DumpJson(config, 2) + "\n";
}

void CheckModelConfig(const std::filesystem::path& folder, const RunSpec& spec) {
  const std::filesystem::path path = folder / kModelConfigName;
  const std::optional<std::string> text = ReadForeignFile(path, kMaxRecordBytes, ForeignFile::Links::kFollowed);
  if (!text) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} has no {}, which says what its weights are of", folder.string(), kModelConfigName),
                "name a folder that a run left in its checkpoint.dir, or that transformers saved");
  }
  Json config = ParseJson(*text, path.string());
  if (!config.is_object()) throw Error(ErrorKind::kInvalidInput, path.string() + ": not a model's configuration");
  FlattenRope(config);
  std::vector<std::string> differences;
  for (const ConfigSetting& setting : ConfigOf(spec).settings) {
    Json there = config.value(setting.key, Json());
    if (there.is_null()) there = setting.unsaid;
    if (there == setting.value) continue;
    const std::string field = setting.field.empty() ? "" : fmt::format(" ({})", setting.field);
    differences.push_back(
        fmt::format("{} is {} there and {} here{}", setting.key, Show(there), Show(setting.value), field));
  }
  if (differences.empty()) return;
  throw Error(ErrorKind::kInvalidInput,
              fmt::format("{} is of another model: {}", path.string(), Join(differences, "; ")),
              "give this run that model, or start it from another folder");
}

}  // namespace ridgeline::engine
