#include "regress/point_names.h"

#include <algorithm>
#include <map>

#include "base/json.h"
#include "base/text.h"

namespace ridgeline {
namespace {

using PointFields = std::map<std::string, std::string>;

// A trainer's own fields are called like all others.
PointFields FieldsOf(const std::string& spec) {
  Json json = ParseJson(spec, "a point in the store");
  if (const auto own = json.find("own"); own != json.end() && own->is_object()) {
    const Json fields = *own;
    json.erase("own");
    json.update(fields);
  }
  json.erase("version");  // of the encoding
  PointFields fields;
  for (const auto& [key, value] : json.items()) {
    fields[key] = value.is_string() ? value.get<std::string>() : DumpJson(value);
  }
  return fields;
}

std::string Value(const PointFields& fields, const std::string& key) {
  const auto it = fields.find(key);
  return it == fields.end() ? "" : it->second;
}

bool Differs(const std::vector<PointFields>& points, const std::string& key) {
  return std::any_of(points.begin(), points.end(),
                     [&](const PointFields& point) { return Value(point, key) != Value(points.front(), key); });
}

// Whether points with the same `of` have the same `key`.
bool Follows(const std::vector<PointFields>& points, const std::string& key, const std::string& of) {
  std::map<std::string, std::string> values;
  return std::all_of(points.begin(), points.end(), [&](const PointFields& point) {
    return values.emplace(Value(point, of), Value(point, key)).first->second == Value(point, key);
  });
}

}  // namespace

std::vector<std::string> PointNames(std::span<const std::string> specs) {
  std::vector<PointFields> points;
  PointFields all;
  for (const std::string& spec : specs) {
    points.push_back(FieldsOf(spec));
    all.insert(points.back().begin(), points.back().end());
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : all) {
    const bool named = key == "model" || key == "precision";
    const bool said = !named && (Follows(points, key, "model") || Follows(points, key, "precision"));
    if (!said && Differs(points, key)) keys.push_back(key);
  }
  if (keys.empty()) keys.emplace_back("model");
  std::vector<std::string> names;
  for (const PointFields& point : points) {
    std::vector<std::string> words;
    for (const std::string& key : keys) {
      if (point.contains(key)) words.push_back(key + "=" + point.at(key));
    }
    names.push_back(Join(words, ", "));
  }
  return names;
}

}  // namespace ridgeline
