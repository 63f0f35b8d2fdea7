#include "run/spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "run/families.h"
#include "run/model.h"
#include "run/names.h"
#include "run/parallelism.h"
#include "run/presets.h"
#include "run/synonyms.h"

namespace ridgeline {
namespace {

std::string RangeProblem(const Field& field, double value) {
  if (value >= field.min && value <= field.max) return {};
  return fmt::format("{} is {}, and must be between {} and {}", field.name, value, field.min, field.max);
}

std::string TypeProblem(const Field& field, const Json& value) {
  return fmt::format("{} must be {} {}, not {}", field.name, field.type() == "integer" ? "an" : "a", field.type(),
                     DumpJson(value));
}

std::string UnknownPolicy(const std::string& text) {
  return fmt::format("checkpointing '{}' is not one of none, selective, full, full/K", text);
}

// Each Assign returns the problem, or nothing.
std::string Assign(int64_t& to, const Field& field, const Json& value) {
  if (value.is_number_integer()) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
      return RangeProblem(field, value.get<double>());
    }
    to = value.get<int64_t>();
  } else if (value.is_number_float() && value.get<double>() == std::floor(value.get<double>())) {
    if (std::abs(value.get<double>()) >= 9e15) return RangeProblem(field, value.get<double>());
    to = static_cast<int64_t>(value.get<double>());
  } else {
    return TypeProblem(field, value);
  }
  return RangeProblem(field, static_cast<double>(to));
}

std::string Assign(double& to, const Field& field, const Json& value) {
  if (!value.is_number()) return TypeProblem(field, value);
  to = value.get<double>();
  if (to == 0) to = 0;  // avoids a negative zero in a canonical spec
  return RangeProblem(field, to);
}

std::string Assign(bool& to, const Field& field, const Json& value) {
  if (!value.is_boolean()) return TypeProblem(field, value);
  to = value.get<bool>();
  return {};
}

std::string Assign(std::string& to, const Field& field, const Json& value) {
  if (!value.is_string()) return TypeProblem(field, value);
  to = value.get<std::string>();
  if (field.choices.empty()) return {};
  const auto choices = ChoicesOf(field);
  for (const auto& choice : choices) {
    if (choice == to) return {};
  }
  return fmt::format("{} '{}' is not one of {}{}", field.name, to, Join(choices, ", "), Meant(to, choices));
}

void AppendString(std::string_view text, std::string& out) {
  for (const char c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      out += DumpJson(Json(std::string(text)));
      return;
    }
  }
  out += '"';
  out += text;
  out += '"';
}

void AppendNumber(int64_t value, std::string& out) {
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
}

void AppendNumber(double value, std::string& out) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

void AppendBoolean(bool value, std::string& out) { out += value ? "true" : "false"; }

void AppendName(const RunSpec& spec, const Field& field, std::string& out) {
  std::visit(
      [&](const auto& member) {
        if constexpr (requires { NameOf(spec.*member); }) {
          out += '"';
          out += NameOf(spec.*member);
          out += '"';
        }
      },
      field.member);
}

// Reads the member directly, because specs are encoded by the hundred thousand. `field` is one of the table's.
void AppendValue(const RunSpec& spec, const Field& field, std::string& out) {
  if (const auto* i = std::get_if<int64_t RunSpec::*>(&field.member)) {
    AppendNumber(spec.*(*i), out);
  } else if (const auto* d = std::get_if<double RunSpec::*>(&field.member)) {
    AppendNumber(spec.*(*d), out);
  } else if (const auto* b = std::get_if<bool RunSpec::*>(&field.member)) {
    AppendBoolean(spec.*(*b), out);
  } else if (const auto* said = std::get_if<std::optional<bool> RunSpec::*>(&field.member)) {
    AppendBoolean((spec.*(*said)).value_or(false), out);
  } else if (const auto* text = std::get_if<std::string RunSpec::*>(&field.member)) {
    AppendString(*text == &RunSpec::model ? NameInText(spec) : spec.*(*text), out);
  } else {
    AppendName(spec, field, out);
  }
}

// Appends the value of a trainer's own field. Its type shows only in the text: 2.0 is a number, and 2 an integer.
void AppendOwnValue(const FieldValue& value, std::string& out) {
  if (const auto* i = std::get_if<int64_t>(&value)) {
    AppendNumber(*i, out);
  } else if (const auto* d = std::get_if<double>(&value)) {
    const size_t before = out.size();
    AppendNumber(*d, out);
    if (out.find_first_of(".e", before) == std::string::npos) out += ".0";
  } else if (const auto* b = std::get_if<bool>(&value)) {
    AppendBoolean(*b, out);
  } else {
    AppendString(std::get<std::string>(value), out);
  }
}

constexpr std::string_view kOwnKey = "own";
constexpr size_t kMostOwn = 64;
constexpr size_t kLongestOwn = 4096;  // bytes of a text

std::optional<FieldValue> OwnValueOf(const Json& value) {
  if (value.is_number_unsigned() && value > INT64_MAX) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float() && std::isfinite(value.get<double>())) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string() && value.get_ref<const std::string&>().size() <= kLongestOwn) return value.get<std::string>();
  return std::nullopt;
}

std::string SetOwn(RunSpec& spec, const Json& values) {
  if (!values.is_object() || values.size() > kMostOwn) {
    return fmt::format("own is a mapping of at most {} fields of a trainer's own, not {}", kMostOwn,
                       ShortenToBytes(DumpJson(values), 80));
  }
  for (const auto& [name, value] : values.items()) {
    const auto own = OwnValueOf(value);
    if (!own || !(IsFieldName(name) || IsSettingName(name))) {
      return fmt::format("own: {} is {}, and must be a number, a truth value or text of at most {} bytes",
                         ShortenToBytes(name, 80), ShortenToBytes(DumpJson(value), 80), kLongestOwn);
    }
    spec.own[name] = *own;
  }
  return {};
}

constexpr std::string_view kVersionKey = "version";
std::string_view GroupOf(const Field& setting) { return setting.name.substr(0, setting.name.find('.')); }

// The leading settings of `settings` that belong to one group.
std::span<const Field> FirstGroup(std::span<const Field> settings) {
  const auto end = std::ranges::find_if(
      settings, [&](const Field& setting) { return GroupOf(setting) != GroupOf(settings.front()); });
  return {settings.begin(), end};
}

bool IsSettingsGroup(std::string_view name) {
  return std::ranges::any_of(Settings(), [&](const Field& setting) { return GroupOf(setting) == name; });
}

std::string NotSettings(const std::string& group, const Json& value) {
  std::vector<std::string> keys;
  for (const Field& setting : Settings()) {
    if (GroupOf(setting) == group) keys.emplace_back(setting.name.substr(group.size() + 1));
  }
  const std::string last = keys.back();
  keys.pop_back();
  const std::string all = keys.empty() ? last : fmt::format("{} and {}", Join(keys, ", "), last);
  return fmt::format("{} is a mapping of {}, not {}{}", group, all, DumpJson(value),
                     group == "checkpoint" ? " (activation checkpointing is the field checkpointing)" : "");
}

bool AreDefaults(const RunSpec& spec, std::span<const Field> settings) {
  static const RunSpec defaults;
  return std::all_of(settings.begin(), settings.end(),
                     [&](const Field& setting) { return ValueOf(spec, setting) == ValueOf(defaults, setting); });
}

// "checkpoint":{"dir":…}
void AppendGroup(const RunSpec& spec, std::span<const Field> settings, std::string& out) {
  const std::string_view group = GroupOf(settings.front());
  out += fmt::format("\"{}\":", group);
  char separator = '{';
  for (const Field& setting : settings) {
    out += fmt::format("{}\"{}\":", separator, setting.name.substr(group.size() + 1));
    AppendValue(spec, setting, out);
    separator = ',';
  }
  out += '}';
}

void AppendFields(const RunSpec& spec, bool with_settings, std::string& out) {
  char separator = '{';
  bool version_written = false;
  bool own_written = false;
  std::span<const Field> settings = with_settings ? Settings() : std::span<const Field>();
  for (const Field& field : Fields()) {
    if (!own_written && field.name > kOwnKey) {
      if (!spec.own.empty()) out += separator;
      AppendOwn(spec, out);
      own_written = true;
    }
    while (!settings.empty() && field.name > GroupOf(settings.front())) {
      const std::span<const Field> group = FirstGroup(settings);
      settings = settings.subspan(group.size());
      if (AreDefaults(spec, group)) continue;
      out += separator;
      AppendGroup(spec, group, out);
    }
    if (!version_written && field.name > kVersionKey) {
      out += fmt::format("{}\"{}\":{}", separator, kVersionKey, kRunSpecVersion);
      version_written = true;
    }
    const size_t before = out.size();
    out += separator;
    if (AppendField(spec, field, out)) {
      separator = ',';
    } else {
      out.resize(before);
    }
  }
  out += '}';
}

}  // namespace

RunSpec FamilyDefaults(ModelFamily family) {
  RunSpec spec;
  spec.family = family;
  const Family& row = RowOf(family);
  spec.rope_theta = row.rope_theta;
  spec.tied_head = row.tied_head;
  if (row.set_defaults != nullptr) row.set_defaults(spec);
  return spec;
}

std::vector<Problem> SetField(RunSpec& spec, std::string_view name, const Json& value) {
  const Field* field = FindField(name);
  if (field != nullptr) return SetField(spec, *field, value);
  return {{std::string(name), fmt::format("unknown field '{}'{}", name, Meant(name, SettableNames()))}};
}

std::vector<Problem> SetField(RunSpec& spec, const Field& field, const Json& value) {
  if (field.name == "model") {
    if (!value.is_string()) return {{"model", TypeProblem(field, value)}};
    return SetModel(value.get<std::string>(), spec);
  }
  FieldValue read = ValueOf(spec, field);
  std::string problem = std::visit([&](auto& to) { return Assign(to, field, value); }, read);
  if (!SetValue(spec, field, read) && problem.empty()) problem = UnknownPolicy(std::get<std::string>(read));
  if (problem.empty()) return {};
  return {{std::string(field.name), std::move(problem)}};
}

RunSpec BuildSpec(const Json& values, std::vector<Problem>& problems) {
  const size_t before = problems.size();
  const auto set_to = [&](RunSpec& spec, const std::string& name, const Json& value) {
    auto wrong = SetField(spec, name, value);
    problems.insert(problems.end(), std::make_move_iterator(wrong.begin()), std::make_move_iterator(wrong.end()));
  };
  const auto set = [&](RunSpec& spec, const std::string& name) { set_to(spec, name, values.at(name)); };
  RunSpec spec;
  // The trainer comes first, because it decides which models exist.
  if (values.contains("trainer") && values.at("trainer").is_string()) spec.trainer = values.at("trainer");
  const std::string trainer = spec.trainer;
  if (values.contains("family")) set(spec, "family");
  if (values.contains("model")) set(spec, "model");
  const ModelFamily family = spec.family;
  if (values.contains("family") && values.at("family").is_string() && problems.size() == before &&
      values.at("family") != NameOf(family)) {
    problems.push_back(OtherFamily(DumpJson(values.at("family")), DumpJson(values.at("model")), family));
  }
  spec = FamilyDefaults(family);
  spec.trainer = trainer;
  if (values.contains("model") && problems.size() == before) set(spec, "model");
  for (const auto& [name, value] : values.items()) {
    if (name == kOwnKey) {
      if (std::string wrong = SetOwn(spec, value); !wrong.empty()) problems.push_back({name, std::move(wrong), {}});
    } else if (IsSettingsGroup(name) && value.is_object()) {
      for (const auto& [key, setting] : value.items()) set_to(spec, fmt::format("{}.{}", name, key), setting);
    } else if (IsSettingsGroup(name)) {
      problems.push_back({name, NotSettings(name, value)});
    } else if (name != "model" && name != "family") {
      set(spec, name);
    }
  }
  if (problems.size() != before) return spec;
  Canonicalize(spec);
  auto wrong = CheckSpec(spec);
  problems.insert(problems.end(), std::make_move_iterator(wrong.begin()), std::make_move_iterator(wrong.end()));
  return spec;
}

void Canonicalize(RunSpec& spec) {
  const bool has_shape = spec.family != ModelFamily::kOther;
  if (has_shape && spec.kv_heads == 0) spec.kv_heads = spec.heads;
  if (has_shape && spec.head_dim == 0 && spec.heads > 0 && spec.hidden % spec.heads == 0) {
    spec.head_dim = spec.hidden / spec.heads;
  }
  if (spec.state_precision.empty())
    spec.state_precision = FamilyOf(spec).state_as_precision && !KeepsFp32State(spec.precision) ? "bf16" : "fp32";
  if (spec.scaling.empty()) {
    spec.scaling = spec.precision == Precision::kFp8     ? "delayed"
                   : spec.precision == Precision::kMxfp8 ? "round_up"
                                                         : "none";
  }
  if (spec.amax_history == 0 && spec.scaling == "delayed") spec.amax_history = 1024;
  if (spec.communicator.empty()) spec.communicator = spec.gpu == "none" ? "gloo" : "nccl";
  if (spec.communicator != "virtual" && spec.ranks == 1) spec.communicator = "self";  // there are no other ranks
  CanonicalizeParallelism(spec);
  if (has_shape) spec.model = NameOfShape(spec);
}

int64_t ProcessesOf(const RunSpec& spec) {
  return spec.communicator == "gloo" || spec.communicator == "nccl" ? spec.ranks : 1;
}

bool HasSeveralProcesses(const RunSpec& spec) { return ProcessesOf(spec) > 1; }

void AppendOwn(const RunSpec& spec, std::string& out) {
  if (spec.own.empty()) return;
  out += fmt::format("\"{}\":", kOwnKey);
  char separator = '{';
  for (const auto& [name, value] : spec.own) {
    out += separator;
    AppendString(name, out);
    out += ':';
    AppendOwnValue(value, out);
    separator = ',';
  }
  out += '}';
}

bool IsFileName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

bool IsTrainerName(std::string_view name) {
  const size_t at = name.find('@');
  if (at == std::string_view::npos) return IsFileName(name);
  return name.size() <= 64 && IsFileName(name.substr(0, at)) && IsFileName(name.substr(at + 1));
}

std::string_view ReleaseAfter(std::string_view name, std::string_view trainer) {
  const char separator = name.find('@') == std::string_view::npos ? '@' : '.';
  if (trainer.size() <= name.size() || !trainer.starts_with(name) || trainer[name.size()] != separator) return {};
  return trainer.substr(name.size() + 1);
}

bool IsFieldName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::map<std::string, FieldValue> SettingsAlone(std::map<std::string, FieldValue> own) {
  std::erase_if(own, [](const auto& each) { return !IsSettingName(each.first); });
  return own;
}

bool IsSettingName(std::string_view name) {
  const size_t dot = name.find('.');
  const auto is_plain = [](std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
  };
  return name.size() <= 128 && dot != std::string_view::npos && is_plain(name.substr(0, dot)) &&
         is_plain(name.substr(dot + 1));
}

void AppendSpec(const RunSpec& spec, std::string& out) { AppendFields(spec, true, out); }

bool AppendField(const RunSpec& spec, const Field& field, std::string& out) {
  if (IsUnknown(spec, field)) return false;
  if (const auto* said = std::get_if<std::optional<bool> RunSpec::*>(&field.member)) {
    if (!(spec.*(*said)).has_value()) return false;
  } else if (!field.unsaid.empty() && ValueText(ValueOf(spec, field)) == field.unsaid) {
    return false;
  }
  out += '"';
  out += field.name;
  out += "\":";
  AppendValue(spec, field, out);
  return true;
}

std::string EncodeSpec(const RunSpec& spec) {
  std::string out;
  out.reserve(1024);
  AppendSpec(spec, out);
  return out;
}

RunSpec DecodeSpec(const Json& document, const std::string& source) {
  if (!document.is_object()) throw Error(ErrorKind::kInvalidInput, source + ": a RunSpec is a JSON object");
  Json values = document;
  const Json version = values.contains("version") ? values["version"] : Json();
  if (version != kRunSpecVersion) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{}: RunSpec version {}, but this program speaks version {}", source, DumpJson(version),
                            kRunSpecVersion),
                "use a harness and a trainer of the same release");
  }
  values.erase("version");
  // A canonical spec has the derived name of its model, which need not be a preset, unless only the name is known.
  const bool has_name = values.contains("model") && values["model"].is_string();
  const bool has_shape =
      values.contains("layers") && values.contains("family") && values["family"] != NameOf(ModelFamily::kOther);
  if (has_name && has_shape) values.erase("model");
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  if (!problems.empty()) {
    std::string text = source + ":";
    for (const Problem& problem : problems) text += "\n  " + problem.message;
    throw Error(ErrorKind::kInvalidInput, text);
  }
  return spec;
}

std::string EncodePoint(const RunSpec& spec) {
  std::string out;
  out.reserve(1024);
  AppendFields(spec, false, out);
  return out;
}

std::string PointId(const RunSpec& spec) { return Hex(Hash(EncodePoint(spec))); }

}  // namespace ridgeline
