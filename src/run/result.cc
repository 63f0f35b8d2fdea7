#include "run/result.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "ridgeline/json_fault.h"
#include "ridgeline/limits.h"
#include "ridgeline/sealed_json.h"
#include "run/figures.h"

namespace ridgeline {
namespace {

constexpr std::array<std::pair<RunStatus, std::string_view>, 10> kStatuses = {{
    {RunStatus::kOk, "ok"},
    {RunStatus::kOomDevice, "oom_device"},
    {RunStatus::kOomHost, "oom_host"},
    {RunStatus::kTimeout, "timeout"},
    {RunStatus::kInfrastructure, "infrastructure"},
    {RunStatus::kCancelled, "cancelled"},
    {RunStatus::kInvalid, "invalid"},
    {RunStatus::kDiverged, "diverged"},
    {RunStatus::kCrashed, "crashed"},
    {RunStatus::kSkippedPredictedOom, "skipped_predicted_oom"},
}};

constexpr std::array<std::pair<InfrastructureReason, std::string_view>, 9> kReasons = {{
    {InfrastructureReason::kNone, ""},
    {InfrastructureReason::kNode, "node"},
    {InfrastructureReason::kStart, "start"},
    {InfrastructureReason::kStorage, "storage"},
    {InfrastructureReason::kImage, "image"},
    {InfrastructureReason::kLimit, "limit"},
    {InfrastructureReason::kRights, "rights"},
    {InfrastructureReason::kPreempted, "preempted"},
    {InfrastructureReason::kLost, "lost"},
}};

// The names of a table, without empty ones.
template <typename Table>
std::vector<std::string> NamesOf(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) {
    if (!entry.second.empty()) names.emplace_back(entry.second);
  }
  return names;
}

constexpr std::array<std::pair<Provenance, std::string_view>, 3> kProvenances = {{
    {Provenance::kMeasured, "measured"},
    {Provenance::kPredicted, "predicted"},
    {Provenance::kPublished, "published"},
}};

constexpr double kMostBytes = 9e18;  // of a rank: a double that fits an int64_t
constexpr size_t kShownBytes = 80;   // of a refused value
constexpr size_t kMaxOwnNameBytes = 64;
constexpr double kMostOfOwn = 1e300;

Error Refusal(std::string_view key, const std::string& what) {
  return {ErrorKind::kInvalidInput, fmt::format("not a RunResult: {} {}", key, what)};
}

std::string Shown(const Json& value) { return ShortenToBytes(DumpJson(value), kShownBytes); }

// `what` and `part` name the text.
void CheckLength(std::string_view text, size_t max_bytes, std::string_view what, std::string_view part = {}) {
  if (text.size() <= max_bytes) return;
  throw Refusal(ShortenToBytes(std::string(what) + std::string(part), kShownBytes),
                fmt::format("has {} bytes, and may have {}", text.size(), max_bytes));
}

// A missing key keeps the default. A wrong type throws nlohmann's type_error, which DecodeResult translates.
void Read(const Json& from, const char* key, std::string& to) {
  const auto it = from.find(key);
  if (it == from.end()) return;
  it->get_to(to);
  CheckLength(to, kMaxTextBytes, key);
}

void Read(const Json& from, const char* key, std::map<std::string, std::string>& to) {
  const auto it = from.find(key);
  if (it == from.end()) return;
  it->get_to(to);
  for (const auto& [name, text] : to) {
    CheckLength(name, kMaxNameBytes, "a name in ", key);
    CheckLength(text, kMaxTextBytes, "the text of ", name);
  }
}

// Reads a number from `min` to `max`. An integer must be whole: fractions are refused, not cut.
template <typename T>
void ReadNumber(const Json& value, std::string_view key, double min, double max, T& to) {
  if (!value.is_number()) throw Refusal(key, fmt::format("is {}, which is not a number", Shown(value)));
  const auto number = value.get<double>();
  if (!(number >= min && number <= max)) {
    throw Refusal(key, fmt::format("is {}, which is not from {} to {}", Shown(value), min, max));
  }
  if (std::is_integral_v<T> && !value.is_number_integer()) {
    throw Refusal(key, fmt::format("is {}, which is not written as a whole number", Shown(value)));
  }
  value.get_to(to);
}

Json EncodeRanks(const std::vector<RankFigures>& ranks) {
  Json list = Json::array();
  for (const RankFigures& r : ranks) {
    list.push_back(
        {{"host", r.host}, {"planned_peak_bytes", r.planned_peak_bytes}, {"rss_peak_bytes", r.rss_peak_bytes}});
  }
  return list;
}

std::vector<RankFigures> DecodeRanks(const Json& list) {
  if (!list.is_array()) throw Error(ErrorKind::kInvalidInput, "not a RunResult: ranks is not a list");
  std::vector<RankFigures> ranks;
  for (const Json& entry : list) {
    RankFigures& r = ranks.emplace_back();
    entry.at("host").get_to(r.host);
    CheckLength(r.host, kMaxNameBytes, "ranks.host");
    ReadNumber(entry.at("planned_peak_bytes"), "ranks.planned_peak_bytes", 0, kMostBytes, r.planned_peak_bytes);
    ReadNumber(entry.at("rss_peak_bytes"), "ranks.rss_peak_bytes", 0, kMostBytes, r.rss_peak_bytes);
  }
  return ranks;
}

// The place of a figure in the document: {"step_ns", "median"}. The first is empty for a figure on top.
std::pair<std::string, std::string> PlaceOf(const Figure& figure) {
  const size_t dot = figure.key.find('.');
  if (dot == std::string_view::npos) return {"", std::string(figure.key)};
  return {std::string(figure.key.substr(0, dot)), std::string(figure.key.substr(dot + 1))};
}

template <typename T>
void ReadNumber(const Json& value, const Figure& figure, T& to) {
  ReadNumber(value, figure.key, figure.min, figure.max, to);
}

void ReadFigure(const Json& value, const Figure& figure, int64_t& to) { ReadNumber(value, figure, to); }
void ReadFigure(const Json& value, const Figure& figure, double& to) { ReadNumber(value, figure, to); }

void ReadFigure(const Json& value, const Figure& figure, bool& to) {
  if (!value.is_boolean()) throw Refusal(figure.key, "is neither true nor false, but " + Shown(value));
  to = value.get<bool>();
}

void ReadFigure(const Json& value, const Figure& figure, std::string& to) {
  if (!value.is_string()) throw Refusal(figure.key, "is not text, but " + Shown(value));
  to = value.get<std::string>();
  CheckLength(to, kMaxTextBytes, figure.key);
}

template <typename T>
void ReadFigure(const Json& value, const Figure& figure, std::optional<T>& to) {
  ReadNumber(value, figure, to.emplace());
}

// JSON has no NaN, so a loss that is not finite is written as null.
template <typename T>
void ReadFigure(const Json& value, const Figure& figure, std::vector<T>& to) {
  if (!value.is_array()) throw Refusal(figure.key, "is no list");
  to.clear();
  for (const Json& item : value) {
    if (std::is_floating_point_v<T> && item.is_null()) {
      to.push_back(std::numeric_limits<T>::quiet_NaN());
    } else {
      ReadNumber(item, figure, to.emplace_back());
    }
  }
}

void ReadFigure(const Json& value, const Figure& figure, Amounts& to) {
  if (!value.is_object()) throw Refusal(figure.key, "is no object");
  if (value.size() > kMaxTexts) {
    throw Refusal(figure.key, fmt::format("has {} amounts, and may have {}", value.size(), kMaxTexts));
  }
  to.clear();
  for (const auto& [name, amount] : value.items()) {
    CheckLength(name, kMaxNameBytes, "a name in ", figure.key);
    ReadNumber(amount, figure, to[name]);
  }
}

void ReadFigure(const Json& value, const Figure&, OwnFigures& to) { to = DecodeOwnFigures(value); }

void DecodeFigures(const Json& document, RunResult& result) {
  for (const Figure& figure : Figures()) {
    const auto [group, key] = PlaceOf(figure);
    const Json* from = &document;
    if (!group.empty()) {
      const auto found = document.find(group);
      if (found == document.end()) continue;
      if (!found->is_object()) throw Error(ErrorKind::kInvalidInput, "not a RunResult: " + group + " is no object");
      from = &*found;
    }
    const auto value = from->find(key);
    if (value == from->end()) continue;
    std::visit([&](auto at) { ReadFigure(*value, figure, at(result)); }, figure.member);
  }
}

void EncodeFigures(const RunResult& result, Json& document) {
  for (const Figure& figure : Figures()) {
    if (figure.is_optional() && !WasTaken(result, figure)) continue;
    const auto [group, key] = PlaceOf(figure);
    Json& to = group.empty() ? document[key] : document[group][key];
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
            to = value;
          } else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, const OwnFigures*>) {
            to = EncodeOwnFigures(*value);
          } else {
            to = *value;
          }
        },
        ValueOf(result, figure));
  }
}

}  // namespace

std::string_view StatusName(RunStatus status) { return kStatuses[static_cast<size_t>(status)].second; }

RunStatus StatusFromName(std::string_view name) {
  for (const auto& [status, text] : kStatuses) {
    if (text == name) return status;
  }
  throw Error(ErrorKind::kInvalidInput, "unknown status '" + ShortenToBytes(name, kShownBytes) + "'");
}

const std::vector<std::string>& StatusNames() {
  static const std::vector<std::string> names = NamesOf(kStatuses);
  return names;
}

std::string_view ReasonName(InfrastructureReason reason) { return kReasons[static_cast<size_t>(reason)].second; }

std::optional<InfrastructureReason> ReasonFromName(std::string_view name) {
  for (const auto& [reason, text] : kReasons) {
    if (text == name && !text.empty()) return reason;
  }
  return std::nullopt;
}

const std::vector<std::string>& ReasonNames() {
  static const std::vector<std::string> names = NamesOf(kReasons);
  return names;
}

std::string EndName(const RunEnd& end) {
  if (end.reason == InfrastructureReason::kNone) return std::string(StatusName(end.status));
  return fmt::format("{} ({})", StatusName(end.status), ReasonName(end.reason));
}

RunEnd EndFromNames(std::string_view status, std::string_view reason) {
  if (status == "preempted" && reason.empty()) return InfrastructureReason::kPreempted;
  const RunStatus known = StatusFromName(status);
  const auto given = ReasonFromName(reason);
  if (given.has_value() != (known == RunStatus::kInfrastructure) || given.has_value() == reason.empty()) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("status '{}' with reason '{}': 'infrastructure', and nothing "
                            "else, has a reason, one of {}",
                            status, ShortenToBytes(reason, kShownBytes), Join(ReasonNames(), ", ")));
  }
  return {known, given.value_or(InfrastructureReason::kNone)};
}

std::string_view ProvenanceName(Provenance provenance) { return kProvenances[static_cast<size_t>(provenance)].second; }

RunEnd EndOfExitCode(int exit_code) {
  switch (static_cast<TrainerExit>(exit_code)) {
    case TrainerExit::kOk:
      return RunStatus::kOk;
    case TrainerExit::kInvalid:
      return RunStatus::kInvalid;
    case TrainerExit::kOomDevice:
      return RunStatus::kOomDevice;
    case TrainerExit::kOomHost:
      return RunStatus::kOomHost;
    case TrainerExit::kDiverged:
      return RunStatus::kDiverged;
    case TrainerExit::kPreempted:
      return InfrastructureReason::kPreempted;
    case TrainerExit::kStorage:
      return InfrastructureReason::kStorage;
    case TrainerExit::kNode:
      return InfrastructureReason::kNode;
    case TrainerExit::kCrashed:
      return RunStatus::kCrashed;
  }
  return RunStatus::kCrashed;
}

TrainerExit ExitCodeOf(const RunEnd& end) {
  for (const TrainerExit code :
       {TrainerExit::kOk, TrainerExit::kInvalid, TrainerExit::kOomDevice, TrainerExit::kOomHost, TrainerExit::kDiverged,
        TrainerExit::kPreempted, TrainerExit::kStorage, TrainerExit::kNode}) {
    if (EndOfExitCode(static_cast<int>(code)) == end) return code;
  }
  return TrainerExit::kCrashed;
}

bool MayBeOfALostNode(const RunResult& result) {
  return RanOnSeveralNodes(result) && (result.status == RunStatus::kCrashed || result.status == RunStatus::kTimeout);
}

Json EncodeOwnFigures(const OwnFigures& figures) {
  Json object = Json::object();
  for (const auto& [name, figure] : figures) object[name] = {{"value", figure.value}, {"unit", figure.unit}};
  return object;
}

OwnFigures DecodeOwnFigures(const Json& object) {
  if (!object.is_object()) throw Refusal("metrics", "is no object");
  if (object.size() > kMaxOwnFigures) {
    throw Refusal("metrics", fmt::format("has {} figures, and may have {}", object.size(), kMaxOwnFigures));
  }
  OwnFigures figures;
  for (const auto& [name, figure] : object.items()) {
    if (name.empty() || name.size() > kMaxOwnNameBytes ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos) {
      throw Refusal("metrics",
                    fmt::format("has the name '{}', and a name has small letters, digits and '_', at most {}",
                                ShortenToBytes(PrintableLine(name), kShownBytes), kMaxOwnNameBytes));
    }
    const std::string key = "metrics." + name;
    if (!figure.is_object() || !figure.contains("value"))
      throw Refusal(key, "is not an object with a value and a unit");
    OwnFigure& own = figures[name];
    ReadNumber(figure.at("value"), key, -kMostOfOwn, kMostOfOwn, own.value);
    const Json unit = figure.value("unit", Json(""));
    if (unit.is_string()) own.unit = unit.get<std::string>();
    if (!unit.is_string() || own.unit.size() > kMaxUnitBytes || PrintableLine(own.unit) != own.unit) {
      throw Refusal(key, fmt::format("has a unit that is not printable text of at most {} bytes", kMaxUnitBytes));
    }
  }
  return figures;
}

Json EncodeResult(const RunResult& r) {
  Json document = {
      {"version", kRunResultVersion},   {"point_id", r.point_id},
      {"status", StatusName(r.status)}, {"reason", ReasonName(r.reason)},
      {"message", r.message},           {"hint", r.hint},
      {"evidence", r.evidence},         {"provenance", ProvenanceName(r.provenance)},
      {"ranks", EncodeRanks(r.ranks)},  {"environment", r.environment},
  };
  EncodeFigures(r, document);
  return document;
}

RunResult DecodeResult(const Json& d, const std::string& source) {
  if (!d.is_object()) throw Error(ErrorKind::kInvalidInput, source + ": a RunResult is a JSON object");
  if (d.value("version", Json()) != kRunResultVersion) {
    throw Error(ErrorKind::kInvalidInput, source + ": RunResult version " + Shown(d.value("version", Json())) +
                                              ", but this program speaks " + std::to_string(kRunResultVersion));
  }
  if (!IsWhole(d)) throw Error(ErrorKind::kInvalidInput, fmt::format("{} {}", source, kNotWhole));
  try {
    RunResult r;
    Read(d, "point_id", r.point_id);
    SetEnd(EndFromNames(d.at("status").get<std::string>(), d.value("reason", "")), r);
    Read(d, "message", r.message);
    Read(d, "hint", r.hint);
    Read(d, "evidence", r.evidence);
    const std::string provenance = d.value("provenance", "measured");
    const auto it =
        std::find_if(kProvenances.begin(), kProvenances.end(), [&](const auto& p) { return p.second == provenance; });
    if (it == kProvenances.end())
      throw Error(ErrorKind::kInvalidInput, "unknown provenance '" + ShortenToBytes(provenance, kShownBytes) + "'");
    r.provenance = it->first;
    DecodeFigures(d, r);
    if (const auto ranks = d.find("ranks"); ranks != d.end()) r.ranks = DecodeRanks(*ranks);
    Read(d, "environment", r.environment);
    return r;
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, source + ": not a RunResult: " + JsonFault(e));
  } catch (const Error& e) {
    throw Error(e.kind(), source + ": " + e.message(), e.hint());
  }
}

}  // namespace ridgeline
