#include "regress/point_names.h"

#include <algorithm>
#include <map>

#include "report/facts.h"
#include "run/point_name.h"

namespace ridgeline::regress {
namespace {

std::string Value(const report::ShownFacts& fields, const std::string& key) {
  const auto it = fields.find(key);
  return it == fields.end() ? "" : it->second;
}

bool Differs(const std::vector<report::ShownFacts>& points, const std::string& key) {
  return std::any_of(points.begin(), points.end(),
                     [&](const report::ShownFacts& point) { return Value(point, key) != Value(points.front(), key); });
}

// Whether points with the same `of` have the same `key`.
bool Follows(const std::vector<report::ShownFacts>& points, const std::string& key, const std::string& of) {
  std::map<std::string, std::string> values;
  return std::all_of(points.begin(), points.end(), [&](const report::ShownFacts& point) {
    return values.emplace(Value(point, of), Value(point, key)).first->second == Value(point, key);
  });
}

}  // namespace

std::vector<std::string> PointNames(std::span<const std::string> specs) {
  std::vector<report::ShownFacts> points;
  report::ShownFacts all;
  for (const std::string& spec : specs) {
    points.push_back(report::FactsOfPoint(spec));
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
  for (const report::ShownFacts& point : points) {
    std::vector<NamedValue> values;
    for (const std::string& key : keys) {
      if (point.contains(key)) values.emplace_back(key, point.at(key));
    }
    names.push_back(PointName(values));
  }
  return names;
}

}  // namespace ridgeline::regress
