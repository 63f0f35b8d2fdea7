#include "trainers/node_part.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "ridgeline/json_fault.h"
#include "run/result.h"
#include "run/spec.h"
#include "trainers/run_result.h"

namespace ridgeline::trainers {
namespace {

constexpr int64_t kMostNodes = 1 << 16;
// A node may fail before the first one has started, and their clocks may differ. Both together are at most this long.
constexpr int64_t kEarlierNs = 60'000'000'000;

std::string NameOf(const NodePart& part) { return part.name.empty() ? fmt::format("node {}", part.node) : part.name; }

// "n1 (node 1 of 2, rank 4)".
std::string WhoIs(const NodePart& part, int64_t nodes) {
  const auto rank = part.end.evidence.find("rank");
  return fmt::format("{} (node {} of {}{})", part.name.empty() ? "a node" : part.name, part.node, nodes,
                     rank == part.end.evidence.end() ? "" : ", rank " + rank->second);
}

// Whether `part` knows more about why the run ended, or as much and ended earlier.
bool DecidesBefore(const NodePart& part, const NodePart& other) {
  return std::tuple(part.weight, part.end.ended_unix_ns) < std::tuple(other.weight, other.end.ended_unix_ns);
}

class Together {
 public:
  Together(const Trainer* trainer, const RunSpec& spec, int64_t nodes, std::vector<NodePart> parts)
      : trainer_(trainer), spec_(spec), nodes_(nodes), parts_(std::move(parts)), decides_(&parts_.front()) {
    for (const NodePart& part : parts_) {
      if (part.end.status == RunStatus::kOk) continue;
      if (decides_->end.status == RunStatus::kOk || DecidesBefore(part, *decides_)) decides_ = &part;
    }
  }

  RunResult Make() {
    const RunResult& first = parts_.front().end;
    RunResult result = first;
    const bool reads = trainer_ != nullptr && parts_.front().reading;
    const std::optional<Reading> all = reads && IsItsLogsWord() ? std::optional(AllLogs()) : std::nullopt;
    if (all) {
      result = ResultOf(*trainer_, *all, spec_, LifeNs());
      TakeFacts(first, result);
    } else if (decides_ != &parts_.front()) {
      SetEnd(EndOf(decides_->end), result);
      result.message = decides_->end.message;
      result.hint = decides_->end.hint;
    }
    if (decides_ != &parts_.front()) SayWhere(result);
    SayMissing(all, result);
    return result;
  }

 private:
  bool IsItsLogsWord() const {
    if (!decides_->reading || !decides_->reading->end) return false;
    const LogEnd& said = *decides_->reading->end;
    return said.end == EndOf(decides_->end) &&
           (said.end.status == RunStatus::kOk || said.message == decides_->end.message);
  }

  Reading AllLogs() const {
    ReadingOptions options = OptionsFor(*trainer_, spec_);
    std::optional<Reading> all;
    if (trainer_->result == Trainer::Result::kFile) {
      // Nodes may see the same file. The node that ended last saw all of it.
      const NodePart* last = nullptr;
      for (const NodePart& part : parts_) {
        const bool found = part.reading && !part.reading->found.empty();
        if (found && (last == nullptr || part.end.ended_unix_ns > last->end.ended_unix_ns)) last = &part;
      }
      all = last == nullptr ? parts_.front().reading : last->reading;
    } else {
      for (const NodePart& part : parts_) {
        if (!part.reading) continue;
        all = all ? MergeReadings(*trainer_, *std::move(all), *part.reading, options) : *part.reading;
      }
    }
    all->end = decides_->reading->end;
    return *std::move(all);
  }

  // How long the processes lived on the node where they lived longest.
  int64_t LifeNs() const {
    int64_t life_ns = 0;
    for (const NodePart& part : parts_) {
      life_ns = std::max(life_ns, part.ran ? part.end.ended_unix_ns - part.end.started_unix_ns : 0);
    }
    return life_ns;
  }

  // Takes what node 0 saw, and the memory of all nodes.
  void TakeFacts(const RunResult& first, RunResult& result) const {
    result.point_id = first.point_id;
    result.repeat = first.repeat;
    result.started_unix_ns = first.started_unix_ns;
    result.cores = first.cores;
    result.device = first.device;
    result.environment.insert(first.environment.begin(), first.environment.end());
    const bool has_own_memory = result.memory.rss_peak_bytes > 0;
    const bool has_own_device_memory = result.memory.device_peak_bytes > 0;
    for (const auto& [name, value] : first.evidence) result.evidence.try_emplace(name, value);
    if (result.evidence.contains("hung")) result.evidence.erase(kUnitEvidence);
    for (const NodePart& part : parts_) {
      const MemoryFigures& memory = part.end.memory;
      result.ended_unix_ns = std::max(result.ended_unix_ns, part.ran ? part.end.ended_unix_ns : 0);
      int64_t& rss_bytes = result.memory.rss_peak_bytes;
      int64_t& device_bytes = result.memory.device_peak_bytes;
      if (!has_own_memory) rss_bytes = std::max(rss_bytes, memory.rss_peak_bytes);
      if (has_own_device_memory || memory.device_peak_bytes == 0) continue;
      device_bytes = std::max(device_bytes, memory.device_peak_bytes);
      result.memory.device_peak_kind = memory.device_peak_kind;
    }
  }

  void SayWhere(RunResult& result) const {
    result.message = ShortenToBytes(fmt::format("{}: {}", WhoIs(*decides_, nodes_), result.message), kMaxTextBytes);
    // Evidence of how node 0 ended does not apply to this end.
    for (const char* name : {"rank", "exit_code", "signal", "log_tail", "log_line", "rss_bytes", "oom_kill"}) {
      const auto it = decides_->end.evidence.find(name);
      result.evidence.erase(name);
      if (it != decides_->end.evidence.end()) result.evidence[name] = it->second;
    }
    result.evidence["node"] = NameOf(*decides_);
    const RunResult& first = parts_.front().end;
    if (first.status != RunStatus::kOk) {
      result.evidence["first_node_said"] =
          ShortenToBytes(fmt::format("{}: {}", EndName(EndOf(first)), first.message), kMaxTextBytes);
    }
  }

  void SayMissing(const std::optional<Reading>& all, RunResult& result) const {
    std::string missing;
    size_t at = 0;
    for (int64_t node = 0; node < nodes_; ++node) {
      while (at < parts_.size() && parts_[at].node < node) ++at;
      const NodePart* part = at < parts_.size() && parts_[at].node == node ? &parts_[at] : nullptr;
      if (part != nullptr && (part->reading || trainer_ == nullptr || part->end.status != RunStatus::kOk)) continue;
      if (missing.size() < kMaxNameBytes) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", node);
    }
    if (missing.empty()) return;
    result.evidence[kMissingPartsEvidence] =
        fmt::format("nothing was heard of how node {} of {} ended, and what its log held is missing", missing, nodes_);
    const auto says_how_fast = [](const FoundMetric& found) {
      return found.metric->figure->name == "step_time" || found.metric->figure->name == "mean_step_time" ||
             found.metric->figure->name == "tokens_per_s";
    };
    if (!all || decides_->end.status != RunStatus::kOk || result.status == RunStatus::kOk) return;
    if (std::any_of(all->found.begin(), all->found.end(), says_how_fast)) return;
    SetEnd(InfrastructureReason::kLost, result);
    result.message = fmt::format("{}; what else was printed does not say how fast the run was",
                                 result.evidence[kMissingPartsEvidence]);
    result.hint = "see what became of that node, or of its pod's log";
  }

  const Trainer* trainer_;
  const RunSpec& spec_;
  int64_t nodes_;
  std::vector<NodePart> parts_;
  const NodePart* decides_;
};

// What node 0 says about all nodes.
struct Common {
  std::optional<RunSpec> spec;
  std::optional<Trainer> trainer;
};

Json ParsePayload(std::string_view payload) {
  const size_t space = payload.find(' ');
  if (!NodeOfPart(payload)) throw Error(ErrorKind::kInvalidInput, "a node's part does not say of which node it is");
  return ParseJson(payload.substr(space + 1), "a node's part");
}

Common CommonOf(const Json& first) {
  Common common;
  common.spec = DecodeSpec(ParseJson(first.at("spec").get<std::string>(), "a node's part"), "a node's part");

  if (first.contains("definition")) {
    const std::string name = common.spec ? common.spec->trainer : "trainer";
    common.trainer = ParseTrainer(first.at("definition").get<std::string>(), name + ".yaml");
  }
  return common;
}

// Throws Error(kInvalidInput) if a value cannot come from a log: the bounds are those for numbers of a log.
void CheckValues(const Reading& reading) {
  constexpr double kMost = 9e18;
  for (const FoundMetric& found : reading.found) {
    const LoggedFigure& figure = *found.metric->figure;
    const bool may_be_nan = figure.name == "loss";
    const bool may_be_negative = figure.dimension == Dimension::kPlain || figure.dimension == Dimension::kOwn;
    for (const double value : found.values) {
      const bool good = std::isnan(value) ? may_be_nan : value <= kMost && value >= (may_be_negative ? -kMost : 0);
      if (!good) throw Error(ErrorKind::kInvalidInput, fmt::format("a node's part has a {} of {}", figure.name, value));
    }
  }
}

NodePart DecodePart(const Trainer* trainer, int64_t node, const Json& document) {
  NodePart part;
  part.node = node;
  part.name = ShortenToBytes(PrintableLine(document.at("name").get<std::string>()), kMaxNameBytes);
  part.end = DecodeResult(document.at("end"), "a node's part");
  part.weight = document.at("weight").get<int>();
  part.ran = document.at("ran").get<bool>();
  if (trainer != nullptr && document.contains("reading")) {
    part.reading = DecodeReading(*trainer, document.at("reading"));
    CheckValues(*part.reading);
  }
  return part;
}

// Returns the longest series of all; nullptr if there is none.
FoundMetric* LongestOf(Reading& reading) {
  FoundMetric* longest = nullptr;
  for (FoundMetric& found : reading.found) {
    if (found.values.size() > 1 && (longest == nullptr || found.values.size() > longest->values.size())) {
      longest = &found;
    }
  }
  return longest;
}

// Whether a node never ended its part by itself, and no other part says why. `part`: that node's part, if it sent one.
bool IsHung(const std::vector<NodePart>& parts, int64_t nodes, const NodePart** part) {
  int64_t well = 0;
  for (const NodePart& told : parts) {
    const bool ok = told.end.status == RunStatus::kOk;
    if (!ok && told.weight < weight::kEnded) return false;
    if (!ok && *part == nullptr) *part = &told;
    well += ok ? 1 : 0;
  }
  return well < nodes;
}

}  // namespace

RunResult EndAlone(const Reading& reading) {
  RunResult result;
  SetEnd(RunStatus::kCrashed, result);
  if (!reading.end) return result;
  SetEnd(reading.end->end, result);
  if (result.status == RunStatus::kOk) return result;
  result.message = reading.end->message;
  result.hint = reading.end->hint;
  if (reading.end->line > 0) result.evidence["log_line"] = std::to_string(reading.end->line);
  return result;
}

RunResult ResultOfNodes(const Trainer* trainer, const RunSpec& spec, int64_t nodes, std::vector<NodePart> parts) {
  return Together(trainer, spec, nodes, std::move(parts)).Make();
}

std::string EncodePart(const Trainer* trainer, const NodePart& part, size_t most, const RunSpec* spec,
                       std::string_view definition) {
  Json document = {{"name", part.name}, {"end", EncodeResult(part.end)}, {"weight", part.weight}, {"ran", part.ran}};
  if (spec != nullptr) document["spec"] = EncodeSpec(*spec);
  if (!definition.empty()) document["definition"] = definition;
  std::optional<Reading> reading = part.reading;
  for (;;) {
    if (trainer != nullptr && reading) document["reading"] = EncodeReading(*trainer, *reading);
    std::string payload = fmt::format("{} {}", part.node, DumpJson(document));
    FoundMetric* longest = reading ? LongestOf(*reading) : nullptr;
    if (payload.size() <= most || longest == nullptr) return payload;
    const std::string name(longest->metric->figure->name);
    reading->notes.push_back(
        fmt::format("{}: its {} values on node {} are left out: a line with them would be too long", name,
                    longest->values.size(), part.node));
    reading->missing.push_back(name);
    reading->found.erase(reading->found.begin() + (longest - reading->found.data()));
  }
}

NodePart DecodePart(const Trainer* trainer, std::string_view payload) {
  const Json document = ParsePayload(payload);
  try {
    return DecodePart(trainer, *NodeOfPart(payload), document);
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("a node's part is malformed: {}", JsonFault(e)));
  }
}

std::optional<int64_t> NodeOfPart(std::string_view payload) {
  int64_t node = 0;
  const auto [end, error] = std::from_chars(payload.data(), payload.data() + payload.size(), node);
  if (error != std::errc() || end == payload.data() + payload.size() || *end != ' ') return std::nullopt;
  return node >= 0 && node < kMostNodes ? std::optional(node) : std::nullopt;
}

bool IsOfAttempt(const NodePart& part, const RunResult& first) {
  return !part.ran || first.started_unix_ns - kEarlierNs <= part.end.ended_unix_ns;
}

std::optional<RunResult> FirstFailure(const std::vector<std::string>& payloads, int64_t since_unix_ns) {
  std::optional<NodePart> first;
  for (const std::string& payload : payloads) {
    try {
      NodePart part = DecodePart(nullptr, payload);
      const bool stale = part.ran && part.end.ended_unix_ns < since_unix_ns;
      if (part.end.status == RunStatus::kOk || part.weight == weight::kStopped || stale) continue;
      if (!first || DecidesBefore(part, *first)) first = std::move(part);
    } catch (const Error&) {
      // The part is damaged, or its version is unknown.
    }
  }
  if (!first) return std::nullopt;
  RunResult result = std::move(first->end);
  const auto counted = result.evidence.find(kNodesEvidence);
  const int64_t nodes = counted == result.evidence.end() ? 1 : std::atoll(counted->second.c_str());
  result.message = ShortenToBytes(fmt::format("{}: {}", WhoIs(*first, nodes), result.message), kMaxTextBytes);
  result.evidence["node"] = NameOf(*first);
  return result;
}

RunResult HungElsewhere(RunResult first, const std::string& node) {
  SetEnd(InfrastructureReason::kNode, first);
  first.message = fmt::format("the first node has ended well; {} is gone, or hangs: it has not ended its part",
                              node.empty() ? "another" : node);
  first.hint = "see what became of that node";
  if (!node.empty()) first.evidence["node"] = node;
  return first;
}

std::optional<RunResult> CompleteResult(const RunResult& first, const std::vector<std::string>& payloads, bool last,
                                        ToldBy told) {
  RunResult alone = first;
  alone.evidence.erase(kAwaitsNodesEvidence);
  const auto counted = first.evidence.find(kNodesEvidence);
  const int64_t nodes = counted == first.evidence.end() ? 1 : std::atoll(counted->second.c_str());
  if (nodes < 2 || nodes > kMostNodes) return alone;
  std::map<int64_t, std::string_view> by_node;
  for (const std::string& payload : payloads) {
    if (const auto node = NodeOfPart(payload); node && *node < nodes) by_node[*node] = payload;
  }
  if (!last && std::ssize(by_node) < nodes) return std::nullopt;
  Common common;
  std::vector<NodePart> parts;
  for (const auto& [node, payload] : by_node) {
    try {
      const Json document = ParsePayload(payload);
      if (node == 0) common = CommonOf(document);
      NodePart part = DecodePart(common.trainer ? &*common.trainer : nullptr, node, document);
      if (told == ToldBy::kUs && part.weight == weight::kStopped) part.weight = weight::kEnded;
      if (told == ToldBy::kUs || IsOfAttempt(part, first)) parts.push_back(std::move(part));
    } catch (const Error&) {
      // The part counts as missing.
    } catch (const Json::exception&) {
      // So does this one.
    }
  }
  if (!last && std::ssize(parts) < nodes) return std::nullopt;
  const NodePart* hung = nullptr;
  if (told == ToldBy::kUs && first.status == RunStatus::kOk && IsHung(parts, nodes, &hung)) {
    return HungElsewhere(std::move(alone), hung == nullptr ? "" : NameOf(*hung));
  }
  // The other nodes' figures mean nothing without node 0's part. Then node 0's own result stands.
  if (parts.empty() || parts.front().node != 0 || !common.spec) return alone;
  const Trainer* trainer = common.trainer ? &*common.trainer : nullptr;
  try {
    // Pods are not trusted, so their result is checked like any other.
    const RunResult whole = ResultOfNodes(trainer, *common.spec, nodes, std::move(parts));
    return DecodeResult(EncodeResult(whole), "its nodes' reports together");
  } catch (const Error&) {
    return alone;
  }
}

}  // namespace ridgeline::trainers
