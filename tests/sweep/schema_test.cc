// docs/sweep.schema.json, the JSON Schema of a sweep file, made from the table of fields. Editors show from it what a
// sweep may say. RIDGELINE_UPDATE_GOLDENS=1 writes it again. tests/cli/sweep_schema.py holds it against sweeps.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "run/fields.h"
#include "run/presets.h"
#include "run/result.h"
#include "sweep/formula.h"

namespace ridgeline::sweep {
namespace {

// Editors know this dialect best.
constexpr const char* kEditorsDialect = "http://json-schema.org/draft-07/schema#";

const Json kAnyText = {{"type", "string"}};
const Json kPlainName = {{"type", "string"}, {"pattern", "^[A-Za-z0-9_-]{1,100}$"}};
const Json kTruth = {{"type", "boolean"}};

Json Whole(double min, double max) { return {{"type", "integer"}, {"minimum", min}, {"maximum", max}}; }
Json TextOf(const char* pattern) { return {{"type", "string"}, {"pattern", pattern}}; }
Json AnyOf(const Json& schemas) { return {{"anyOf", schemas}}; }
Json Ref(const std::string& name) { return {{"$ref", "#/definitions/" + name}}; }
Json ListOf(const Json& items) { return {{"type", "array"}, {"minItems", 1}, {"items", items}}; }
Json OneOrMore(const Json& item) { return AnyOf({item, ListOf(item)}); }

Json Closed(const Json& properties) {
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

Json Said(Json schema, std::string_view description) {
  schema["description"] = description;
  return schema;
}

const Json kFormula = TextOf(R"(^\s*\{\{.*\}\}\s*$)");
const Json kRange = TextOf(R"(^\s*[-+0-9.eE]+\.\.[-+0-9.eE]+([*+][-+0-9.eE]+)?\s*$)");
const Json kComparison = TextOf("^(<=|>=|!=|<|>|multiple of |not multiple of )");
const Json kDifference = TextOf("^!=");
const Json kDuration = AnyOf({Whole(1, 3e9), TextOf("^ *[0-9.]+ *(s|m|min|h|d)? *$")});
const Json kSize = AnyOf({{{"type", "integer"}, {"minimum", 1}}, TextOf("^ *[0-9.]+ *([KMGT]i?B|kB|B)? *$")});

bool IsNumber(const Field& field) { return field.type() == "integer" || field.type() == "number"; }

// One value of a field.
Json OneValue(const Field& field) {
  Json schema = kAnyText;
  if (field.type() == "true or false") schema = kTruth;
  if (field.type() == "number") schema = {{"type", "number"}, {"minimum", field.min}, {"maximum", field.max}};
  if (field.type() == "integer") {
    schema = Whole(field.min, field.max);
    Json all = Json::array({schema});
    if (field.name == "batch_size") all.push_back({{"const", "max"}});
    if (&field != &GlobalBatch()) all.push_back(Ref("formula"));
    if (all.size() > 1) schema = AnyOf(all);
  }
  if (!field.choices.empty()) schema["enum"] = ChoicesOf(field);
  if (field.name == "checkpointing") schema = TextOf("^(none|selective|full(/[1-9][0-9]*)?)$");
  if (field.name == "model") schema["examples"] = PresetNames();
  return Said(std::move(schema), field.help);
}

std::string DefinitionOf(const Field& field) { return "value of " + std::string(field.name); }

// The three uses of fields: a value, the values of an axis, and what a condition asks of it.
enum class Use { kValue, kAxis, kCondition };

Json OfUse(const Field& field, Use use) {
  const Json one = Ref(DefinitionOf(field));
  if (use == Use::kValue) return one;
  Json values = Json::array({one});
  if (IsNumber(field)) values.push_back(Ref("range"));
  Json uses = {one, ListOf(values.size() == 1 ? one : AnyOf(values))};
  if (IsNumber(field)) uses.push_back(Ref("range"));
  if (use == Use::kCondition) uses.push_back(Ref(IsNumber(field) ? "comparison" : "difference"));
  return AnyOf(uses);
}

Json EveryField(Use use) {
  Json properties;
  for (const Field& field : Fields()) properties[std::string(field.name)] = OfUse(field, use);
  properties["global_batch"] = OfUse(GlobalBatch(), use);
  // The fields that another trainer's definition adds are not known here.
  const Json scalar = {{"type", {"integer", "number", "boolean", "string"}}};
  return {{"type", "object"},
          {"properties", properties},
          {"additionalProperties", use == Use::kValue ? scalar : OneOrMore(scalar)}};
}

Json OfGroup(const std::string& group) {
  Json properties;
  for (const Field& setting : Settings()) {
    if (!setting.name.starts_with(group + ".")) continue;
    properties[std::string(setting.name.substr(group.size() + 1))] = OneValue(setting);
  }
  return properties;
}

Json MeasureSchema() {
  Json properties = OfGroup("measure");
  for (const char* name : {"warmup_steps", "steps", "repeats"}) properties[name] = Ref(DefinitionOf(*FindField(name)));
  return Closed(properties);
}

// The settings of `launch` that a rule may set, too.
Json PointSettings() {
  return {{"nodes", Said(Whole(1, 65'536), "nodes of a point")},
          {"ranks_per_node", Said(Whole(1, 4096), "ranks of a point on each node")},
          {"cpus", Said(Whole(1, 4096), "cores of a node that a point may use (default all)")},
          {"memory_limit", Said(kSize, "memory that a point may use, such as 8GB")},
          {"time_limit", Said(AnyOf({kDuration, {{"const", "auto"}}}), "time that a point may take, such as 10m")},
          {"meet_limit", Said(kDuration, "time that a point's ranks may take to meet")},
          {"save_time", Said(kDuration, "time to save a state when a node is taken away (default 2m)")},
          {"keep_logs", Said(kTruth, "keep logs of points that end well, too (default false)")},
          {"environment",
           {{"description", "variables for the trainer"},
            {"type", "object"},
            {"propertyNames", TextOf("^[A-Za-z_][A-Za-z0-9_]*$")},
            {"additionalProperties", {{"type", {"string", "integer"}}}}}}};
}

// Mappings that this schema does not know are a launcher's own settings.
Json WithLaunchers(const Json& properties) {
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", {{"type", "object"}}}};
}

Json LaunchSchema() {
  Json properties = PointSettings();
  Json retries;
  for (const std::string& reason : ReasonNames()) retries[reason] = Whole(0, 1000);
  Json set = WithLaunchers(PointSettings());
  set["minProperties"] = 1;
  Json rule = Closed({{"when", Ref("conditions")}, {"set", set}});
  rule["required"] = {"when", "set"};
  properties["launcher"] = Said(kPlainName, "local (the default), slurm, kubernetes or another launcher's name");
  properties["bundle"] = Said(AnyOf({Whole(1, 100'000), kDuration}), "points, or time, for each job (default 1)");
  properties["max_parallel"] = Said(Whole(1, 100'000), "most jobs at once (default: the launcher decides)");
  properties["launcher_timeout"] = Said(kDuration, "how long a launcher may not answer (default 15m)");
  properties["give_up_after"] =
      Said(Whole(0, 1'000'000), "stop after so many jobs in a row that the infrastructure failed alike; 0: never");
  properties["trainer"] = Said(OneOrMore(kAnyText), "a program, then its arguments, in place of ridgeline-train");
  properties["retry"] = Said(Closed(retries), "how often a point is run again, by the reason of its failure");
  properties["rules"] = Said({{"type", "array"}, {"items", rule}}, "settings for the points for which `when` holds");
  return WithLaunchers(properties);
}

Json PriceSchema() {
  Json schema =
      Closed({{"device", Said(kAnyText, "a device's name: `ridgeline devices` lists them")},
              {"node", Said(TextOf("^ *[0-9.eE+]+ *USD/h *$"), "a node's price, such as 31.50 USD/h")},
              {"date", Said({{"type", {"string", "integer"}}}, "when that price was asked, such as 2026-03")},
              {"power", Said(TextOf("^ *[0-9.eE+]+ *k?W *$"), "a node's power, such as 5600 W")},
              {"max_cost", Said(TextOf("^ *[0-9.eE+]+ *USD *$"), "what all jobs may cost, such as 500 USD")}});
  schema["dependencies"] = {{"node", {"date"}}, {"date", {"node"}}, {"max_cost", {"node"}}};
  return schema;
}

Json PublishedSchema() {
  const Json rate = {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1e12}};
  Json one = Closed({{"source", Said(kAnyText, "who says so, and where")},
                     {"when", Ref("conditions")},
                     {"cold_tokens_per_s", Said(rate, "tokens/s of all ranks, the first step included")},
                     {"steady_tokens_per_s", Said(rate, "tokens/s of all ranks, after warm-up")},
                     {"peak_memory", Said(kSize, "memory of a GPU, such as 15.5GB")}});
  one["required"] = {"source", "when"};
  one["minProperties"] = 3;
  return ListOf(one);
}

Json SearchSchema() {
  Json schema =
      Closed({{"maximize", {{"enum", {"tokens_per_s", "cost", "fit"}}, {"description", "what is looked for"}}},
              {"over", Said(OneOrMore(kAnyText), "the axes that are searched (default all)")},
              {"budget", Said(Whole(1, 500), "most runs")}});
  schema["required"] = {"maximize", "budget"};
  return schema;
}

// Whether a sweep names a trainer other than ours, whose fields are not known here.
Json NamesAnotherTrainer() {
  const Json map = {{"type", "object"},
                    {"required", {"trainer"}},
                    {"properties", {{"trainer", {{"not", {{"const", std::string(kOurTrainer)}}}}}}}};
  const Json item = {{"type", "array"}, {"contains", map}};
  Json any;
  for (const char* section : {"defaults", "matrix", "set", "zip", "include"}) {
    any.push_back({{"required", {section}}, {"properties", {{section, AnyOf({map, item})}}}});
  }
  return AnyOf(any);
}

Json SweepSchema() {
  Json definitions = {{"formula", Said(kFormula, "computed on each point, such as {{4096 / seq_length}}")},
                      {"range", Said(kRange, "1..64*2, 512..2048+512 or 1..8")},
                      {"comparison", Said(kComparison, "a comparison, such as >8, <=seq_length or multiple of 4")},
                      {"difference", Said(kDifference, "all values but one, such as !=bf16")}};
  Json known_names = Json::array();
  for (const Field& field : Fields()) {
    definitions[DefinitionOf(field)] = OneValue(field);
    known_names.push_back(field.name);
  }
  definitions[DefinitionOf(GlobalBatch())] = OneValue(GlobalBatch());
  for (const std::string_view name : {GlobalBatch().name, std::string_view("checkpoint")}) known_names.push_back(name);
  definitions["axes"] = EveryField(Use::kAxis);
  definitions["condition of fields"] = EveryField(Use::kCondition);
  definitions["conditions"] = AnyOf({Ref("condition of fields"), Ref("formula")});
  // Settings of `launch` that are axes have a dot in their names.
  definitions["only known fields"] = {{"propertyNames", AnyOf({{{"enum", known_names}}, TextOf("[.]")})}};

  Json defaults = EveryField(Use::kValue);
  defaults["properties"]["checkpoint"] = Ref("checkpoint");
  definitions["checkpoint"] = Closed(OfGroup("checkpoint"));
  const Json group = Ref("axes");
  const Json command = ListOf(kAnyText);
  const Json properties = {
      {"name", {{"type", "string"}, {"minLength", 1}, {"maxLength", 200}, {"description", "the sweep's name"}}},
      {"description", Said(kAnyText, "what the sweep is for")},
      {"defaults", Said(defaults, "values that all points share")},
      {"matrix", Said(group, "axes: every combination of their values is a point")},
      {"zip", Said(AnyOf({group, ListOf(group)}), "axes that move together, with equally many values")},
      {"include", Said({{"type", "array"}, {"items", Ref("condition of fields")}},
                       "values for the combinations that an entry names, or points of its own")},
      {"exclude", Said({{"type", "array"}, {"items", Ref("conditions")}}, "combinations that are left out")},
      {"only", Said(Ref("conditions"), "conditions that hold on every point")},
      {"set", Said(group, "values that replace those of the same fields elsewhere")},
      {"measure", Said(MeasureSchema(), "how long each point is measured")},
      {"checkpoint", Said(Ref("checkpoint"), "checkpoint files; activation checkpointing is the field checkpointing")},
      {"init", Said(Closed({{"from", OneValue(*FindField("init_from"))}}), "the first weights")},
      {"launch", Said(LaunchSchema(), "where and how points run")},
      {"setup", Said(OneOrMore(AnyOf({command, kAnyText})), "commands that run once, before the first point")},
      {"price", Said(PriceSchema(), "what a node costs")},
      {"published", Said(PublishedSchema(), "figures that others published for some points")},
      {"report", Said(OneOrMore(kPlainName), "reports that `ridgeline report` renders of this sweep")},
      {"search", Said(SearchSchema(), "measure only the points that earlier measurements suggest")}};
  Json closed;
  for (const char* section : {"defaults", "matrix", "set", "only"}) closed[section] = Ref("only known fields");
  closed["zip"] = AnyOf({{{"type", "array"}, {"items", Ref("only known fields")}}, Ref("only known fields")});
  for (const char* section : {"include", "exclude"}) closed[section] = {{"items", Ref("only known fields")}};
  return {{"$schema", kEditorsDialect},
          {"title", "Ridgeline sweep"},
          {"description", "A sweep: the points that are measured, and how. See docs/sweeps.md."},
          {"type", "object"},
          {"required", {"name"}},
          {"properties", properties},
          {"additionalProperties", false},
          {"if", NamesAnotherTrainer()},
          {"then", true},
          {"else", {{"properties", closed}}},
          {"definitions", definitions}};
}

TEST(SweepSchema, IsMadeFromTheTableOfFields) {
  const auto file = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "docs/sweep.schema.json";
  const std::string text = DumpJson(SweepSchema(), 2) + "\n";
  if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) WriteFileAtomic(file, text);
  EXPECT_EQ(text, ReadFile(file)) << "RIDGELINE_UPDATE_GOLDENS=1 writes what it is now";
}

}  // namespace
}  // namespace ridgeline::sweep
