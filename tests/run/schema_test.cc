// The two JSON Schemas of the trainer contract, made from the tables of fields and figures. This file makes
// docs/*.schema.json, and RIDGELINE_UPDATE_GOLDENS=1 writes them again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "ridgeline/limits.h"
#include "run/fields.h"
#include "run/figures.h"
#include "run/result.h"

namespace ridgeline {
namespace {

constexpr const char* kDialect = "https://json-schema.org/draft/2020-12/schema";
const Json kText = {{"type", "string"}};
// The limit counts bytes, not letters, so the schema accepts slightly more.
const Json kBoundedText = {{"type", "string"}, {"maxLength", kMaxTextBytes}};
const Json kTexts = {{"type", "object"}, {"additionalProperties", kBoundedText}, {"maxProperties", kMaxTexts}};

Json Described(Json schema, const char* description) {
  schema["description"] = description;
  return schema;
}

Json Bounded(const char* type, double min, double max) { return {{"type", type}, {"minimum", min}, {"maximum", max}}; }

Json OfField(const Field& field) {
  Json schema = kText;
  if (field.type() == "true or false") schema = {{"type", "boolean"}};
  if (field.type() == "integer") schema = Bounded("integer", field.min, field.max);
  if (field.type() == "number") schema = Bounded("number", field.min, field.max);
  if (!field.choices.empty()) schema["enum"] = ChoicesOf(field);
  schema["description"] = field.help;
  return schema;
}

Json SpecSchema() {
  Json properties = {{"version", {{"const", kRunSpecVersion}}}};
  Json required = {"version"};
  for (const Field& field : Fields()) {
    properties[std::string(field.name)] = OfField(field);
    // For a model that is only a name, nothing else is known.
    const bool is_of_model = field.Has(Field::kOfShape) || field.name == "rope_theta";
    if (field.unsaid.empty() && (!is_of_model || field.name == "family")) required.push_back(field.name);
  }
  properties["own"] = {
      {"description",
       "values of the fields that the trainer's definition adds, and of settings of `launch:` that are axes, "
       "by their names"},
      {"type", "object"},
      {"maxProperties", 64},
      {"propertyNames", {{"pattern", "^([a-z][a-z0-9_]{0,63}|[A-Za-z0-9_-]{1,63}[.][A-Za-z0-9_-]{1,64})$"}}},
      {"additionalProperties", {{"type", {"integer", "number", "boolean", "string"}}}},
  };
  for (const Field& setting : Settings()) {
    const size_t dot = setting.name.find('.');
    Json& group = properties[std::string(setting.name.substr(0, dot))];
    group["type"] = "object";
    group["additionalProperties"] = false;
    group["properties"][std::string(setting.name.substr(dot + 1))] = OfField(setting);
  }
  return {{"$schema", kDialect},
          {"title", "RunSpec"},
          {"description", "What a trainer is told to train."},
          {"type", "object"},
          {"required", required},
          {"properties", properties},
          {"additionalProperties", false}};
}

Json OfFigure(const Figure& figure) {
  const std::string type(figure.type());
  Json schema = kBoundedText;
  if (type == "true or false") schema = {{"type", "boolean"}};
  if (type == "integer" || type == "number") schema = Bounded(type.c_str(), figure.min, figure.max);
  if (type == "integers") schema = {{"type", "array"}, {"items", Bounded("integer", figure.min, figure.max)}};
  if (type == "numbers") {
    schema = {{"type", "array"}, {"items", Bounded("number", figure.min, figure.max)}};
    schema["items"]["type"] = {"number", "null"};
  }
  if (type == "amounts") {
    schema = {{"type", "object"},
              {"additionalProperties", Bounded("integer", figure.min, figure.max)},
              {"maxProperties", kMaxTexts}};
  }
  schema["description"] = std::string(figure.help) + (figure.unit.empty() ? "" : " (" + std::string(figure.unit) + ")");
  return schema;
}

Json ResultSchema() {
  Json statuses = Json::array();
  for (const std::string& name : StatusNames()) {
    const RunEnd end{StatusFromName(name)};
    if (EndOfExitCode(static_cast<int>(ExitCodeOf(end))) == end) statuses.push_back(name);
  }
  for (const char* told_to_leave : {"infrastructure", "preempted"}) statuses.push_back(told_to_leave);
  const Json bytes = {{"type", "integer"}, {"minimum", 0}};
  const Json rank = {{"type", "object"},
                     {"required", {"host", "planned_peak_bytes", "rss_peak_bytes"}},
                     {"properties",
                      {{"host", {{"type", "string"}, {"maxLength", kMaxNameBytes}}},
                       {"planned_peak_bytes", bytes},
                       {"rss_peak_bytes", bytes}}},
                     {"additionalProperties", false}};
  Json properties = {{"version", {{"const", kRunResultVersion}}},
                     {"status", {{"enum", statuses}, {"description", "how the run ended"}}},
                     {"checksum", Described(kText, "of the other members; a trainer need not give one")},
                     {"reason",
                      {{"enum", {"", "preempted"}},
                       {"description", "of infrastructure: preempted, which is a status by itself, too"}}},
                     {"point_id", Described(kBoundedText, "the point's, where the trainer knows it")},
                     {"message", Described(kBoundedText, "why it did not end well, in one sentence")},
                     {"hint", Described(kBoundedText, "what to do about it")},
                     {"provenance", {{"enum", {"measured", "predicted", "published"}}}},
                     {"evidence", kTexts},
                     {"environment", kTexts},
                     {"ranks", {{"type", "array"}, {"items", rank}}}};
  for (const Figure& figure : Figures()) {
    const std::string key(figure.key);
    const size_t dot = key.find('.');
    if (dot == std::string::npos) {
      properties[key] = OfFigure(figure);
      continue;
    }
    Json& group = properties[key.substr(0, dot)];
    group["type"] = "object";
    group["additionalProperties"] = false;
    group["properties"][key.substr(dot + 1)] = OfFigure(figure);
  }
  return {{"$schema", kDialect},
          {"title", "RunResult"},
          {"description", "What a trainer says it took."},
          {"type", "object"},
          {"required", {"version", "status"}},
          {"properties", properties},
          {"additionalProperties", false}};
}

void ExpectCommitted(const std::string& name, const Json& schema) {
  const auto file = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "docs" / name;
  const std::string text = DumpJson(schema, 2) + "\n";
  if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) WriteFileAtomic(file, text);
  EXPECT_EQ(text, ReadFile(file)) << "RIDGELINE_UPDATE_GOLDENS=1 writes what it is now";
}

TEST(Schema, TheRunSpecsSchemaFollowsTheTableOfFields) { ExpectCommitted("run-spec.schema.json", SpecSchema()); }

TEST(Schema, TheRunResultsSchemaFollowsTheTableOfFigures) { ExpectCommitted("run-result.schema.json", ResultSchema()); }

TEST(Schema, EveryKeyOfAResultIsInIt) {
  const Json schema = ResultSchema();
  const Json all = EncodeResult({});
  for (const auto& [key, value] : all.items()) {
    ASSERT_TRUE(schema.at("properties").contains(key)) << key;
  }
}

}  // namespace
}  // namespace ridgeline
