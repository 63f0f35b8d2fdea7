#include "kubernetes/merge.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;

constexpr const char* kDirective = "$patch";

// The lists of a pod that merge item by item, and the member that names an item: `patchMergeKey` of Kubernetes' API
// types.
constexpr std::pair<std::string_view, std::string_view> kMergeKeys[] = {
    {"containers", "name"},
    {"initContainers", "name"},
    {"ephemeralContainers", "name"},
    {"volumes", "name"},
    {"imagePullSecrets", "name"},
    {"env", "name"},
    {"volumeMounts", "mountPath"},
    {"volumeDevices", "devicePath"},
    {"ports", "containerPort"},
    {"hostAliases", "ip"},
    {"topologySpreadConstraints", "topologyKey"},
    {"resourceClaims", "name"},
};

std::string_view MergeKey(std::string_view list) {
  const auto* const found = std::find_if(std::begin(kMergeKeys), std::end(kMergeKeys),
                                         [&](const auto& entry) { return entry.first == list; });
  return found == std::end(kMergeKeys) ? std::string_view() : found->second;
}

std::string Directive(const Json& value) {
  const auto found = value.is_object() ? value.find(kDirective) : value.end();
  return found != value.end() && found->is_string() ? found->get<std::string>() : "";
}

Json WithoutDirective(Json value) {
  if (value.is_object()) value.erase(kDirective);
  return value;
}

Json Merge(const Json& base, const Json& patch, const std::string& path);

Json MergeList(const Json& base, const Json& patch, const std::string& key, const std::string& path) {
  Json merged = base;
  for (const Json& item : patch) {
    if (!item.is_object() || !item.contains(key)) {
      throw Failure(Failure::Kind::kInvalidInput,
                    fmt::format("launch: kubernetes: patch: {}: an item has no {}", path, key),
                    "that is what finds the item it changes, or makes it a new one");
    }
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const Json& other) {
      return other.is_object() && other.contains(key) && other.at(key) == item.at(key);
    });
    if (Directive(item) == "delete") {
      if (same != merged.end()) merged.erase(same);
    } else if (same == merged.end()) {
      merged.push_back(WithoutDirective(item));
    } else {
      *same = Merge(*same, item, path + '[' + item.at(key).dump() + ']');
    }
  }
  return merged;
}

Json Merge(const Json& base, const Json& patch, const std::string& path) {
  if (!patch.is_object() || !base.is_object()) return WithoutDirective(patch);
  if (Directive(patch) == "replace") return WithoutDirective(patch);
  Json merged = base;
  for (const auto& [key, value] : patch.items()) {
    if (key == kDirective) continue;
    const std::string where = path.empty() ? key : path + '.' + key;
    const std::string item_key(MergeKey(key));
    if (value.is_null() || Directive(value) == "delete") {
      merged.erase(key);
    } else if (!merged.contains(key)) {
      merged[key] = Merge(value.is_object() ? Json::object() : Json(), value, where);
    } else if (value.is_array() && merged[key].is_array() && !item_key.empty()) {
      merged[key] = MergeList(merged[key], value, item_key, where);
    } else if (value.is_array() != merged[key].is_array() || value.is_object() != merged[key].is_object()) {
      throw Failure(Failure::Kind::kInvalidInput, fmt::format("launch: kubernetes: patch: {} is {}, and stands over {}",
                                                              where, value.type_name(), merged[key].type_name()));
    } else {
      merged[key] = Merge(merged[key], value, where);
    }
  }
  return merged;
}

}  // namespace

Json MergeTemplate(const Json& base, const Json& patch) { return Merge(base, patch, ""); }

}  // namespace ridgeline::kubernetes
