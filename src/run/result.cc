#include "run/result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr std::array<std::pair<RunStatus, std::string_view>, 12> kStatuses = {{
    {RunStatus::kOk, "ok"},
    {RunStatus::kOomDevice, "oom_device"},
    {RunStatus::kOomHost, "oom_host"},
    {RunStatus::kTimeout, "timeout"},
    {RunStatus::kPreempted, "preempted"},
    {RunStatus::kNodeFailed, "node_failed"},
    {RunStatus::kCancelled, "cancelled"},
    {RunStatus::kInvalid, "invalid"},
    {RunStatus::kDiverged, "diverged"},
    {RunStatus::kCrashed, "crashed"},
    {RunStatus::kLost, "lost"},
    {RunStatus::kSkippedPredictedOom, "skipped_predicted_oom"},
}};

constexpr std::array<std::pair<Provenance, std::string_view>, 3> kProvenances = {{
    {Provenance::kMeasured, "measured"},
    {Provenance::kPredicted, "predicted"},
    {Provenance::kPublished, "published"},
}};

// A missing key keeps the default; a wrong type throws nlohmann's type_error, translated by DecodeResult.
template <typename T>
void Read(const Json& from, const char* key, T& to) {
  if (const auto it = from.find(key); it != from.end()) it->get_to(to);
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
  if (!list.is_array()) throw Error(ErrorKind::kInvalidInput, "not a RunResult: ranks is no list");
  std::vector<RankFigures> ranks;
  for (const Json& entry : list) {
    RankFigures& r = ranks.emplace_back();
    entry.at("host").get_to(r.host);
    entry.at("planned_peak_bytes").get_to(r.planned_peak_bytes);
    entry.at("rss_peak_bytes").get_to(r.rss_peak_bytes);
  }
  return ranks;
}

// JSON has no NaN: a loss that is not finite travels as null.
std::vector<double> ReadSeries(const Json& from, const char* key) {
  std::vector<double> series;
  if (const auto it = from.find(key); it != from.end()) {
    if (!it->is_array()) throw Error(ErrorKind::kInvalidInput, std::string("not a RunResult: ") + key + " is no list");
    for (const Json& value : *it) series.push_back(value.is_null() ? NAN : value.get<double>());
  }
  return series;
}

}  // namespace

std::string_view StatusName(RunStatus status) { return kStatuses[static_cast<size_t>(status)].second; }

RunStatus StatusFromName(std::string_view name) {
  for (const auto& [status, text] : kStatuses) {
    if (text == name) return status;
  }
  throw Error(ErrorKind::kInvalidInput, "unknown status '" + std::string(name) + "'");
}

const std::vector<std::string>& StatusNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto& entry : kStatuses) result.emplace_back(entry.second);
    return result;
  }();
  return names;
}

std::string_view ProvenanceName(Provenance provenance) { return kProvenances[static_cast<size_t>(provenance)].second; }

RunStatus StatusOfExitCode(int exit_code) {
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
      return RunStatus::kPreempted;
    case TrainerExit::kCrashed:
      return RunStatus::kCrashed;
  }
  return RunStatus::kCrashed;
}

TrainerExit ExitCodeOf(RunStatus status) {
  switch (status) {
    case RunStatus::kOk:
      return TrainerExit::kOk;
    case RunStatus::kInvalid:
      return TrainerExit::kInvalid;
    case RunStatus::kOomDevice:
      return TrainerExit::kOomDevice;
    case RunStatus::kOomHost:
      return TrainerExit::kOomHost;
    case RunStatus::kDiverged:
      return TrainerExit::kDiverged;
    case RunStatus::kPreempted:
      return TrainerExit::kPreempted;
    default:
      return TrainerExit::kCrashed;
  }
}

Json EncodeResult(const RunResult& r) {
  return Json{
      {"version", kRunResultVersion},
      {"point_id", r.point_id},
      {"status", StatusName(r.status)},
      {"message", r.message},
      {"hint", r.hint},
      {"evidence", r.evidence},
      {"provenance", ProvenanceName(r.provenance)},
      {"emulated", r.emulated},
      {"device", r.device},
      {"communicator", r.communicator},
      {"parameters", r.parameters},
      {"tokens_per_step", r.tokens_per_step},
      {"throughput",
       {{"steady_tokens_per_s", r.throughput.steady_tokens_per_s},
        {"cold_tokens_per_s", r.throughput.cold_tokens_per_s}}},
      {"step_ns",
       {{"all", r.step_ns.all_ns}, {"median", r.step_ns.median_ns}, {"p95", r.step_ns.p95_ns}, {"cv", r.step_ns.cv}}},
      {"loss", r.loss},
      {"grad_norm", r.grad_norm},
      {"skipped_steps", r.skipped_steps},
      {"memory",
       {{"planned_peak_bytes", r.memory.planned_peak_bytes},
        {"by_category", r.memory.by_category},
        {"rss_peak_bytes", r.memory.rss_peak_bytes}}},
      {"ranks", EncodeRanks(r.ranks)},
      {"flops",
       {{"model_causal", r.flops.model_causal},
        {"model_non_causal", r.flops.model_non_causal},
        {"executed", r.flops.executed}}},
      {"started_unix_ns", r.started_unix_ns},
      {"ended_unix_ns", r.ended_unix_ns},
      {"environment", r.environment},
  };
}

RunResult DecodeResult(const Json& d, const std::string& source) {
  if (!d.is_object()) throw Error(ErrorKind::kInvalidInput, source + ": a RunResult is a JSON object");
  if (d.value("version", Json()) != kRunResultVersion) {
    throw Error(ErrorKind::kInvalidInput, source + ": RunResult version " + DumpJson(d.value("version", Json())) +
                                              ", but this program speaks " + std::to_string(kRunResultVersion));
  }
  try {
    RunResult r;
    Read(d, "point_id", r.point_id);
    r.status = StatusFromName(d.at("status").get<std::string>());
    Read(d, "message", r.message);
    Read(d, "hint", r.hint);
    Read(d, "evidence", r.evidence);
    const std::string provenance = d.value("provenance", "measured");
    const auto it =
        std::find_if(kProvenances.begin(), kProvenances.end(), [&](const auto& p) { return p.second == provenance; });
    if (it == kProvenances.end()) throw Error(ErrorKind::kInvalidInput, "unknown provenance '" + provenance + "'");
    r.provenance = it->first;
    Read(d, "emulated", r.emulated);
    Read(d, "device", r.device);
    Read(d, "communicator", r.communicator);
    Read(d, "parameters", r.parameters);
    Read(d, "tokens_per_step", r.tokens_per_step);
    const Json empty = Json::object();
    const auto part = [&](const char* key) -> const Json& {
      const auto found = d.find(key);
      if (found == d.end()) return empty;
      if (!found->is_object()) {
        throw Error(ErrorKind::kInvalidInput, std::string("not a RunResult: ") + key + " is no object");
      }
      return *found;
    };
    Read(part("throughput"), "steady_tokens_per_s", r.throughput.steady_tokens_per_s);
    Read(part("throughput"), "cold_tokens_per_s", r.throughput.cold_tokens_per_s);
    Read(part("step_ns"), "all", r.step_ns.all_ns);
    Read(part("step_ns"), "median", r.step_ns.median_ns);
    Read(part("step_ns"), "p95", r.step_ns.p95_ns);
    Read(part("step_ns"), "cv", r.step_ns.cv);
    r.loss = ReadSeries(d, "loss");
    r.grad_norm = ReadSeries(d, "grad_norm");
    Read(d, "skipped_steps", r.skipped_steps);
    Read(part("memory"), "planned_peak_bytes", r.memory.planned_peak_bytes);
    Read(part("memory"), "by_category", r.memory.by_category);
    Read(part("memory"), "rss_peak_bytes", r.memory.rss_peak_bytes);
    if (const auto ranks = d.find("ranks"); ranks != d.end()) r.ranks = DecodeRanks(*ranks);
    Read(part("flops"), "model_causal", r.flops.model_causal);
    Read(part("flops"), "model_non_causal", r.flops.model_non_causal);
    Read(part("flops"), "executed", r.flops.executed);
    Read(d, "started_unix_ns", r.started_unix_ns);
    Read(d, "ended_unix_ns", r.ended_unix_ns);
    Read(d, "environment", r.environment);
    return r;
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, source + ": not a RunResult: " + e.what());
  } catch (const Error& e) {
    throw Error(e.kind(), source + ": " + e.message(), e.hint());
  }
}

}  // namespace ridgeline
