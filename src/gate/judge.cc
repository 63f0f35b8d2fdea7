#include "gate/judge.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "gate/night_records.h"
#include "gate/sides.h"
#include "regress/accepted.h"
#include "regress/gate_forms.h"
#include "regress/measurements.h"
#include "regress/nightly.h"
#include "regress/nights.h"
#include "session/session.h"
#include "store/store.h"

namespace ridgeline {
namespace {

constexpr int64_t kMostPinned = 1000;  // measurements per cell

std::vector<MeasuredCell> ReadGateSide(const NamedSide& side, int64_t before_unix_ns, int64_t most,
                                       std::vector<LeftOutMeasurements> left_out = {}) {
  Store store = OpenStore(side.db, Store::Mode::kReadOnly);
  MeasurementChoice choice;
  choice.campaign = side.campaign;
  choice.commit = side.commit;
  choice.before_unix_ns = before_unix_ns;
  choice.most = most;
  choice.left_out = std::move(left_out);
  return ReadMeasurements(store, choice);
}

// When the first of the cells ended; 0 if there are none.
int64_t FirstEnd(const std::vector<MeasuredCell>& cells) {
  int64_t first = 0;
  for (const MeasuredCell& cell : cells) {
    const int64_t ended = cell.measurements.front().ended_unix_ns;
    if (first == 0 || ended < first) first = ended;
  }
  return first;
}

bool IsOneCampaignOrCommit(const NamedSide& side) {
  return !side.commit.empty() || (!side.campaign.empty() && !side.campaign.ends_with('*'));
}

GateSides ReadSides(const GateRequest& request) {
  const NamedSide head = FindSide(request.head, request.db, "gate");
  if (!IsOneCampaignOrCommit(head)) {
    throw Error(ErrorKind::kUsage, fmt::format("gate: '{}' is a database, not a night or a commit", request.head),
                fmt::format("say which: {}:CAMPAIGN", request.head));
  }
  GateSides sides;
  sides.head = ReadGateSide(head, 0, 0);
  {
    Store store = OpenStore(head.db, Store::Mode::kReadOnly);
    sides.expected = ReadExpected(store, head.campaign);
  }
  const int64_t first_end = FirstEnd(sides.head);
  NamedSide baseline{request.db, {}, {}};
  if (!request.baseline.empty()) baseline = FindSide(request.baseline, request.db, "gate", SideNames::kOneOrMany);
  // A single named baseline counts regardless of its time. If there are several, only those before head count.
  const bool is_one = IsOneCampaignOrCommit(baseline);
  if (is_one && baseline.db == head.db && baseline.campaign == head.campaign && baseline.commit == head.commit) {
    throw Error(ErrorKind::kUsage, "gate: head and baseline are the same",
                "name another baseline, or none: all before");
  }
  const std::vector<Night> nights = request.records.empty() ? std::vector<Night>() : NightsIn(request.records);
  constexpr auto kMost = static_cast<int64_t>(kBaseNights + kWindowNights);
  sides.baseline = ReadGateSide(baseline, is_one ? 0 : first_end, kMost, LeftOutOf(nights));
  if (!is_one) sides.recent = ReadGateSide(baseline, first_end, kMost, VoidOf(nights));
  if (!request.pinned.empty()) {
    sides.pinned = ReadGateSide(FindSide(request.pinned, request.db, "gate"), 0, kMostPinned);
  }
  sides.accepted = AcceptedOf(nights);
  ShiftToAccepted(sides);
  return sides;
}

// The name of the only sweep whose campaign is head's. Empty if there are several or none.
std::string SweepOf(const GateRequest& request) {
  const NamedSide head = FindSide(request.head, request.db, "gate");
  if (head.campaign.empty()) return "";
  Store store = OpenStore(head.db, Store::Mode::kReadOnly);
  const auto rows =
      store.Query("SELECT name FROM sweeps WHERE campaign = :campaign", {{"campaign", head.campaign}}).rows;
  return rows.size() == 1 ? CellText(rows[0][0]) : "";
}

}  // namespace

std::optional<Gate> JudgeHead(const GateRequest& request) {
  Gate gate = MakeGate(ReadSides(request));
  DemandDetection(gate, request.detect / 100);
  gate.head = request.head;
  gate.sweep = SweepOf(request);
  gate.baseline = request.baseline.empty() ? "earlier measurements" : request.baseline;
  gate.pinned = request.pinned;
  if (!request.confirm.sweep.empty() && !ConfirmSuspects(request.confirm, gate)) return std::nullopt;
  NameTakenChanges(gate);
  return gate;
}

void WriteGateFiles(const Gate& gate, const GateFiles& files) {
  if (!files.junit.empty()) WriteFileAtomic(files.junit, GateJunit(gate));
  if (!files.summary.empty()) WriteFileAtomic(files.summary, GateMarkdown(gate, kMostSummaryBytes));
  if (!files.comment.empty()) WriteFileAtomic(files.comment, GateMarkdown(gate, kMostCommentBytes));
  if (!files.metrics.empty()) WriteFileAtomic(files.metrics, GateOpenMetrics(gate));
  if (!files.annotations.empty()) WriteFileAtomic(files.annotations, GateAnnotations(gate));
}

}  // namespace ridgeline
