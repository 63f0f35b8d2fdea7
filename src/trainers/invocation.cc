#include "trainers/invocation.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/command_words.h"
#include "base/error.h"
#include "base/text.h"
#include "run/consistency.h"
#include "run/families.h"
#include "run/presets.h"
#include "run/step_figures.h"
#include "trainers/requirements.h"
#include "yaml/common_mistakes.h"
#include "yaml/entries.h"

namespace ridgeline::trainers {
namespace fs = std::filesystem;
namespace {

// Fields that say how and where a point is measured, or that only the harness uses.
constexpr std::array<std::string_view, 11> kHarnessFields = {
    "communicator",    "gpu",       "repeats", "seed", "steps", "trainer", "warmup_steps", "model", "active_parameters",
    "flops_per_token", "parameters"};

bool Contains(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns " (such as qwen3-8b)" for a name that is no preset's; empty if no preset is similar.
std::string NearTo(const std::string& model) {
  const std::string_view last = std::string_view(model).substr(model.rfind('/') + 1);
  const yaml::Names near = PresetsNear(last, /*ours=*/false);
  return near.empty() || near.size() > 3 ? "" : fmt::format(" (such as {})", near.front());
}

// Explains the refusal of a model that is only a name.
std::string WhyOther(const RunSpec& spec) {
  if (spec.family != ModelFamily::kOther) return "";
  return fmt::format(
      ": the model {} is not a preset, and its family is not known; name a preset{}, or give its family and shape "
      "without `model`",
      spec.model, NearTo(spec.model));
}

// Returns the point with only its shape and the fields that decide other defaults set.
RunSpec PlainSpec(const RunSpec& spec) {
  RunSpec plain = FamilyDefaults(spec.family);
  for (const Field& field : Fields()) {
    const bool decides =
        field.Has(Field::kOfShape) || field.name == "precision" || field.name == "gpu" || field.name == "family";
    if (decides) SetValue(plain, field, ValueOf(spec, field));
  }
  Canonicalize(plain);
  if (spec.tensor_parallel > 1) plain.sequence_parallel = true;
  return plain;
}

// The value that a trainer has which neither takes nor supports the field: what the point would have if it did not say
// it. Not the point's own precision, though that decides other defaults.
std::string UnsaidText(const RunSpec& spec, const RunSpec& plain, const Field& field) {
  return FieldText(field.name == "precision" ? FamilyDefaults(spec.family) : plain, field);
}

FieldValue PlaceValue(std::string_view name, const Invocation& invocation, const RunSpec& spec,
                      const ProcessPlace& place, bool& known) {
  known = true;
  if (name == "nodes") return place.nodes;
  if (name == "node_rank") return place.node_rank;
  if (name == "ranks_per_node") return place.ranks_per_node;
  if (name == "gpus_per_node") return place.gpus_per_node;
  if (name == "rank") return place.rank;
  if (name == "local_rank") return place.local_rank;
  if (name == "world_size") return spec.ranks;
  if (name == "master_addr") return place.master_addr;
  if (name == "master_port") return place.master_port;
  if (name == "output_dir") return place.output_dir;
  if (name == "checkpoint_dir") return place.checkpoint_dir;
  if (name == "spec_file") return place.spec_file;
  if (name == "result_file") return place.result_file;
  if (name == "total_steps") return StepsOf(spec);
  if (name == "last_step") return StepsOf(spec) - 1;
  if (name == "local_batch_size") return spec.batch_size * spec.grad_accumulation;
  if (name == "data_parallel") return DataParallelRanks(invocation, spec);
  if (name == "replicas") {
    const int64_t ranks = DataParallelRanks(invocation, spec);
    return spec.shard == ShardMode::kNone ? ranks : spec.shard_ranks > 0 ? ranks / spec.shard_ranks : 1;
  }
  if (name == "global_batch_size") {
    return spec.batch_size * spec.grad_accumulation * DataParallelRanks(invocation, spec);
  }
  if (name == "global_micro_batches") return spec.grad_accumulation * DataParallelRanks(invocation, spec);
  if (name == "per_rank_batch_size") {
    const auto sequences = static_cast<double>(spec.batch_size * DataParallelRanks(invocation, spec));
    return sequences / static_cast<double>(spec.ranks);
  }
  if (name == "tokens_per_step") return ridgeline::TokensAStep(spec, DataParallelRanks(invocation, spec));
  known = false;
  return {};
}

// Returns a point's field or setting; nothing if the number is unknown.
std::optional<FieldValue> ValueKnown(std::string_view name, const RunSpec& spec) {
  int64_t counted = 0;
  if (name == "parameters") counted = CountParameters(spec);
  if (name == "active_parameters") counted = ActiveParameters(spec);
  if (counted > 0) return counted;
  const Field* field = FindField(name);
  if (field == nullptr) return std::nullopt;
  // Unless stated otherwise, a model has no experts, and its head is not tied.
  const bool has_default = name == "tied_head" || (field->Has(Field::kOfShape) && field->Has(Field::kOfHarness));
  if (!has_default && IsUnknown(spec, *field)) return std::nullopt;
  return ValueOf(spec, *field);
}

// `place.environment` holds the known part of the environment. `any_variable`: unknown variables are assumed to be set.
Lookup LookupOf(const Invocation& invocation, const RunSpec& spec, const ProcessPlace& place, bool any_variable) {
  return [&, any_variable](std::string_view name) -> std::optional<FieldValue> {
    bool known = false;
    if (FieldValue value = PlaceValue(name, invocation, spec, place, known); known) return value;
    if (name.starts_with(kVariablePrefix)) {
      const auto it = place.environment.find(std::string(name.substr(kVariablePrefix.size())));
      if (it != place.environment.end()) return it->second;
      return any_variable ? std::optional<FieldValue>("x") : std::nullopt;
    }
    if (const Field* own = invocation.FindOwn(name)) return ValueOf(spec, *own);
    return ValueKnown(name, spec);
  };
}

Invoked InvokeWith(const Invocation& invocation, const ProcessPlace& place, const Lookup& lookup) {
  const Lookup stand_in = [&](std::string_view name) {
    return place.is_shown ? std::optional<FieldValue>(Placeholder(name)) : std::nullopt;
  };
  const auto is_placeholder = [&](const std::string& text) { return place.is_shown && text.starts_with('<'); };
  Invoked invoked;
  std::vector<std::string> values;  // of each argument: the first value that a shell would not take literally
  const auto add = [&](const std::vector<Template>& arguments) {
    for (const Template& each : arguments) {
      std::string odd;
      const Lookup noting = [&](std::string_view name) {
        std::optional<FieldValue> value = lookup(name);
        if (value && odd.empty() && !IsPlainShellText(ValueText(*value)) && !is_placeholder(ValueText(*value))) {
          odd = fmt::format("{} is '{}'", name, PrintableLine(ValueText(*value)));
        }
        return value;
      };
      for (std::string& argument : each.Arguments(noting, stand_in)) invoked.argv.push_back(std::move(argument));
      values.resize(invoked.argv.size(), odd);
    }
  };
  add(invocation.command);
  if (place.resumes) add(invocation.resume);
  if (const auto text = ridgeline::WordsOf(invoked.argv).shell_text; text && !values[*text].empty()) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{}, which a shell would change: take it out of the shell's text, pass it as an argument "
                            "after the text, and write \"$1\" in the text",
                            values[*text]));
  }
  for (const auto& [name, value] : invocation.environment) {
    std::string text = value.Text(lookup, stand_in);
    // A variable written as empty is meant to be empty. One that only evaluates to empty is left out, as an argument
    // is.
    if (!text.empty() || value.Names().empty()) invoked.environment[name] = std::move(text);
  }
  for (const auto& [name, text] : invocation.files) invoked.files[name] = text.Text(lookup, stand_in);
  if (invocation.directory) invoked.directory = invocation.directory->Text(lookup, stand_in);
  if (invocation.result) invoked.result = invocation.result->Text(lookup, stand_in);
  if (invoked.argv.empty()) throw Error(ErrorKind::kInvalidInput, "its command is empty here");
  return invoked;
}

}  // namespace

std::string Placeholder(std::string_view name) {
  if (name.starts_with(kVariablePrefix)) name.remove_prefix(kVariablePrefix.size());
  std::string text = "<";
  for (const char c : name) text += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text + ">";
}

const Field* Invocation::FindOwn(std::string_view name) const {
  const auto it = std::find_if(fields.begin(), fields.end(), [&](const auto& own) { return own->name == name; });
  return it == fields.end() ? nullptr : &(*it)->field;
}

void CanonicalizeOwn(const Invocation& invocation, RunSpec& spec) {
  std::map<std::string, FieldValue> own = SettingsAlone(spec.own);
  for (const auto& each : invocation.fields) own[each->name] = ValueOf(spec, each->field);
  spec.own = std::move(own);
}

Json TakenInstead(const Invocation& invocation, const RunSpec& spec) {
  Json taken = Json::object();
  const RunSpec plain = PlainSpec(spec);
  for (const Field& field : Fields()) {
    const std::string key(field.name);
    const auto supported = invocation.supports.find(key);
    const bool is_supported = supported != invocation.supports.end();
    if (field.Has(Field::kOfShape) || Contains(kHarnessFields, key) || (!is_supported && invocation.used.contains(key)))
      continue;
    if (is_supported && supported->second.empty()) continue;
    const std::string value = FieldText(spec, field);
    const std::string instead = !is_supported                        ? UnsaidText(spec, plain, field)
                                : Contains(supported->second, value) ? value
                                                                     : supported->second.front();
    if (instead != value) taken[key] = field.type() == "text" ? Json(instead) : ParseJson(instead, key);
  }
  return taken;
}

std::vector<Problem> WhyRefused(const std::string& name, const Invocation& invocation, const RunSpec& spec) {
  std::vector<Problem> problems;
  const std::set<std::string>& used = invocation.used;
  const RunSpec plain = PlainSpec(spec);
  const bool takes_shape = used.contains("model") || invocation.supports.contains("model") ||
                           std::ranges::any_of(Fields(), [&](const Field& field) {
                             return field.Has(Field::kOfShape) && used.contains(std::string(field.name));
                           });
  if (!takes_shape) {
    problems.push_back(
        {"model", fmt::format("trainer {0} does not say which model it trains. Pass a field of the model in "
                              "its command, or add `supports: {{model: [{1}]}}` to its definition if it "
                              "trains {1}",
                              name, spec.model)});
  }
  for (const Field& field : Fields()) {
    const std::string key(field.name);
    const std::string value = FieldText(spec, field);
    if (const auto it = invocation.supports.find(key); it != invocation.supports.end()) {
      if (it->second.empty() || Contains(it->second, value)) continue;
      problems.push_back({key,
                          fmt::format("trainer {} takes {}: {}, not {}{}", name, key, Join(it->second, ", "), value,
                                      key == "family" ? WhyOther(spec) : ""),
                          {"trainer"}});
    } else if (!used.contains(key) && !Contains(kHarnessFields, key) && !field.Has(Field::kOfShape) &&
               value != UnsaidText(spec, plain, field)) {
      problems.push_back({key,
                          fmt::format("trainer {0} would ignore {1}: {2}. Pass {1} in its command, or add `supports: "
                                      "{{{1}: [{2}]}}` to its definition if that is what it does",
                                      name, key, value),
                          {"trainer"}});
    }
  }
  const bool takes_experts = std::ranges::any_of(std::array{"experts", "model"}, [&](const char* field) {
    return used.contains(field) || invocation.supports.contains(field);
  });
  if (spec.experts > 0 && !takes_experts) {
    problems.push_back({"experts",
                        fmt::format("trainer {} would ignore that the model {} has {} experts a layer: its "
                                    "definition neither uses nor supports experts",
                                    name, spec.model, spec.experts),
                        {"trainer"}});
  }
  for (const auto& own : invocation.fields) {
    RunSpec scratch;
    const auto wrong =
        SetField(scratch, own->field, std::visit([](const auto& v) { return Json(v); }, ValueOf(spec, own->field)));
    for (const Problem& problem : wrong) problems.push_back({own->name, problem.message, {"trainer"}});
  }
  if (problems.empty()) problems = WhyUnmet(name, invocation, spec, plain);
  if (!problems.empty()) return problems;
  ProcessPlace place;
  place.output_dir = place.spec_file = place.result_file = place.checkpoint_dir = "x";
  place.resumes = true;
  const Lookup lookup = LookupOf(invocation, spec, place, /*any_variable=*/true);
  yaml::Names unknown;  // of the model, which the templates need
  for (bool again = true; again;) {
    again = false;
    std::string asked;  // the last unknown field asked for
    try {
      InvokeWith(invocation, place, [&](std::string_view field) -> std::optional<FieldValue> {
        std::optional<FieldValue> value = lookup(field);
        if (value || FindField(field) == nullptr) return value;
        if (Contains(unknown, field)) return int64_t{0};
        asked = field;
        return value;
      });
    } catch (const Error& e) {
      if (e.message() == Template::NoValue(asked)) {
        unknown.push_back(asked);
        again = true;
      } else if (unknown.empty()) {
        problems.push_back({"trainer", fmt::format("trainer {}: {}{}", name, e.message(), WhyOther(spec))});
      }
    }
  }
  if (!unknown.empty()) {
    problems.push_back(
        {"model",
         fmt::format(
             "trainer {} needs {}, which is not known for the model {}: give {} beside `model`, or name a preset{}",
             name, Join(unknown, ", "), spec.model, unknown.size() == 1 ? "it" : "them", NearTo(spec.model))});
  }
  return problems;
}

Invoked Invoke(const Invocation& invocation, const RunSpec& spec, const ProcessPlace& place) {
  return InvokeWith(invocation, place, LookupOf(invocation, spec, place, /*any_variable=*/false));
}

}  // namespace ridgeline::trainers
