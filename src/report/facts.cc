#include "report/facts.h"

#include <string_view>

#include "run/model.h"

namespace ridgeline::report {
namespace {

void BringOwnFieldsForward(ShownFacts& facts) {
  constexpr std::string_view kOwn = "own.";
  ShownFacts own;
  for (const auto& [key, value] : facts) {
    if (key.starts_with(kOwn)) own[key.substr(kOwn.size())] = value;
  }
  std::erase_if(facts, [&](const auto& fact) { return fact.first.starts_with(kOwn); });
  facts.merge(own);
}

}  // namespace

void AddFacts(const Json& json, const std::string& prefix, ShownFacts& facts) {
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) {
      AddFacts(value, prefix + key + ".", facts);
    } else {
      facts[prefix + key] = value.is_string() ? value.get<std::string>() : DumpJson(value);
    }
  }
}

ShownFacts FactsOfPoint(const std::string& spec) {
  ShownFacts facts;
  Json point = ParseJson(spec, "a point in the store");
  if (point.contains("model")) point["model"] = ModelOfText(point);
  AddFacts(point, "", facts);
  facts.erase("version");  // the encoding's version
  BringOwnFieldsForward(facts);
  return facts;
}

}  // namespace ridgeline::report
