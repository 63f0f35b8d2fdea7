#include "node/node_reports.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "ridgeline/foreign_file.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/job_line.h"
#include "ridgeline/limits.h"

namespace ridgeline::node {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kPartSecondNs = 1'000'000'000;
constexpr int64_t kLookForPartsNs = kPartSecondNs / 20;
constexpr int64_t kMostPauseNs = 5 * kPartSecondNs;  // while they run: many nodes would disturb a file system

struct Said {
  bool is_there = false;                   // whether the node is, or was, at the point
  std::string name;                        // the node's name, while it is at the point
  std::optional<trainers::NodePart> part;  // the node's part, once it has ended
};

// Opens the file instead of testing for it: over a network, an old answer to whether a file exists may be given.
std::optional<std::string> TextOf(const fs::path& file) {
  try {
    return ReadForeignFile(file, kMaxJobLineBytes);
  } catch (const Error&) {
    return std::nullopt;  // it is not our file, so nothing is known of that node
  }
}

std::optional<trainers::NodePart> PartIn(const std::string& text, const PartsOf& parts, int64_t node) {
  std::string_view line = text;
  if (line.ends_with('\n')) line.remove_suffix(1);
  const auto told = ParseJobLine(line);
  if (!told || told->kind != kPartLine) return std::nullopt;
  try {
    trainers::NodePart part = trainers::DecodePart(parts.trainer, told->payload);
    if (part.node == node) return part;
  } catch (const Error&) {
    // From another version.
  }
  return std::nullopt;
}

// `attempt`: reports that did not overlap with it in time are from an earlier attempt.
Said WhatItSaid(const PartsOf& parts, int64_t node, const RunResult& attempt) {
  Said said;
  const fs::path file = PointDir(parts.job_dir, parts.point_id) / PartName(node);
  if (const auto text = TextOf(file)) {
    said.part = PartIn(*text, parts, node);
    if (said.part && !trainers::IsOfAttempt(*said.part, attempt)) {
      said.part.reset();
    } else {
      said.is_there = true;
      if (!said.part) said.name = PrintableLine(ShortenToBytes(*text, kMaxNameBytes));
    }
  }
  if (said.is_there) return said;
  if (const auto text = TextOf(parts.job_dir / PartName(node))) said.part = PartIn(*text, parts, node);
  return said;
}

int64_t PauseOf(int64_t grace_ns) { return std::min(kMostPauseNs, grace_ns / 2); }

bool SharesFolder(const PartsOf& parts, int64_t node) {
  return ForeignFile(parts.job_dir / ExecLockName(node)).state() == ForeignFile::State::kOpen;
}

}  // namespace

void TakePart(const fs::path& point_dir, int64_t node, const std::string& name) {
  WriteFile(point_dir / PartName(node), name);
}

void EndPart(const fs::path& dir, const std::string& point_id, int64_t node, const std::string& payload) {
  WriteFile(dir / PartName(node), FormatJobLine({std::string(kPartLine), point_id, payload}));
}

OtherParts WaitForParts(const PartsOf& parts, const RunResult& own, const PartsWait& wait) {
  SystemClock clock;
  const int64_t begin_ns = clock.MonotonicNs();
  std::map<int64_t, trainers::NodePart> ended;
  for (;;) {
    OtherParts others;
    bool absent = false;
    for (int64_t node = 1; node < parts.nodes; ++node) {
      if (ended.contains(node)) continue;
      Said said = WhatItSaid(parts, node, own);
      if (said.part) {
        ended.emplace(node, *std::move(said.part));
      } else if (said.is_there) {
        others.at_it.push_back(std::move(said.name));
      } else {
        absent = absent || wait.all_share || SharesFolder(parts, node);
      }
    }
    const int64_t waited_ns = clock.MonotonicNs() - begin_ns;
    const bool awaits = (!others.at_it.empty() && waited_ns < wait.at_it_ns) || (absent && waited_ns < wait.absent_ns);
    if (!awaits || wait.give_up()) {
      for (auto& [node, part] : ended) others.ended.push_back(std::move(part));
      return others;
    }
    clock.SleepNs(std::min(kLookForPartsNs + waited_ns / 10, kPartSecondNs));
  }
}

bool HasEndedPart(const fs::path& point_dir, int64_t node) {
  const auto text = TextOf(point_dir / PartName(node));
  return text && text->starts_with(kJobLineMark);
}

int64_t EndsOthersNs(int64_t grace_ns) { return PauseOf(grace_ns) + 2 * grace_ns; }

int64_t OthersWatch::PauseNs() const { return PauseOf(patience_.grace_ns); }

OthersWatch::OthersWatch(PartsOf parts, int64_t node, int64_t begin_unix_ns, const OthersPatience& patience,
                         const Clock& clock)
    : parts_(std::move(parts)), node_(node), begin_unix_ns_(begin_unix_ns), patience_(patience), clock_(clock) {
  next_look_ns_ = clock.MonotonicNs() + PauseNs();
}

StopReason OthersWatch::Look() {
  const int64_t now_ns = clock_.MonotonicNs();
  if (!failed_ns_ && now_ns >= next_look_ns_) {
    next_look_ns_ = now_ns + PauseNs();
    if (AnotherFailed()) failed_ns_ = now_ns;
  }
  if (failed_ns_ && now_ns >= *failed_ns_ + patience_.grace_ns) return StopReason::kElsewhere;
  const bool hangs = first_ended_ns_ && now_ns >= *first_ended_ns_ + patience_.others_end_ns;
  return hangs ? StopReason::kOthersEnded : StopReason::kNone;
}

// The first node watches all others. The others watch the first, which ends when any of them has failed.
bool OthersWatch::AnotherFailed() {
  RunResult attempt;
  attempt.started_unix_ns = begin_unix_ns_;
  attempt.ended_unix_ns = clock_.UnixNs();
  const int64_t begin = node_ == 0 ? 1 : 0;
  const int64_t end = node_ == 0 ? parts_.nodes : 1;
  for (int64_t node = begin; node < end; ++node) {
    if (done_.contains(node)) continue;
    const Said said = WhatItSaid(parts_, node, attempt);
    if (!said.part) continue;
    if (said.part->end.status != RunStatus::kOk) return true;
    done_.insert(node);
    if (node == 0) first_ended_ns_ = clock_.MonotonicNs();
  }
  return false;
}

}  // namespace ridgeline::node
