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

namespace ridgeline::gate {
namespace {

constexpr int64_t kMostPinned = 1000;  // measurements per cell

std::vector<regress::MeasuredCell> ReadGateSide(const NamedSide& side, int64_t before_unix_ns, int64_t most,
                                                std::vector<regress::LeftOutMeasurements> left_out = {}) {
  store::Store store = session::OpenStore(side.db, store::Store::Mode::kReadOnly);
  regress::MeasurementChoice choice;
  choice.campaign = side.campaign;
  choice.commit = side.commit;
  choice.before_unix_ns = before_unix_ns;
  choice.most = most;
  choice.left_out = std::move(left_out);
  return regress::ReadMeasurements(store, choice);
}

// When the first of the cells ended; 0 if there are none.
int64_t FirstEnd(const std::vector<regress::MeasuredCell>& cells) {
  int64_t first = 0;
  for (const regress::MeasuredCell& cell : cells) {
    const int64_t ended = cell.measurements.front().ended_unix_ns;
    if (first == 0 || ended < first) first = ended;
  }
  return first;
}

bool IsOneCampaignOrCommit(const NamedSide& side) {
  return !side.commit.empty() || (!side.campaign.empty() && !side.campaign.ends_with('*'));
}

regress::GateSides ReadSides(const GateRequest& request) {
  const NamedSide head = FindSide(request.head, request.db, "gate");
  if (!IsOneCampaignOrCommit(head)) {
    throw Error(ErrorKind::kUsage, fmt::format("gate: '{}' is a database, not a night or a commit", request.head),
                fmt::format("say which: {}:CAMPAIGN", request.head));
  }
  regress::GateSides sides;
  sides.head = ReadGateSide(head, 0, 0);
  {
    store::Store store = session::OpenStore(head.db, store::Store::Mode::kReadOnly);
    sides.expected = regress::ReadExpected(store, head.campaign);
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
  const std::vector<regress::Night> nights =
      request.records.empty() ? std::vector<regress::Night>() : NightsIn(request.records);
  constexpr auto kMost = static_cast<int64_t>(regress::kBaseNights + regress::kWindowNights);
  sides.baseline = ReadGateSide(baseline, is_one ? 0 : first_end, kMost, regress::LeftOutOf(nights));
  if (!is_one) sides.recent = ReadGateSide(baseline, first_end, kMost, regress::VoidOf(nights));
  if (!request.pinned.empty()) {
    sides.pinned = ReadGateSide(FindSide(request.pinned, request.db, "gate"), 0, kMostPinned);
  }
  sides.accepted = regress::AcceptedOf(nights);
  regress::ShiftToAccepted(sides);
  return sides;
}

// The name of the only sweep whose campaign is head's. Empty if there are several or none.
std::string SweepOf(const GateRequest& request) {
  const NamedSide head = FindSide(request.head, request.db, "gate");
  if (head.campaign.empty()) return "";
  store::Store store = session::OpenStore(head.db, store::Store::Mode::kReadOnly);
  const auto rows =
      store.Query("SELECT name FROM sweeps WHERE campaign = :campaign", {{"campaign", head.campaign}}).rows;
  return rows.size() == 1 ? CellText(rows[0][0]) : "";
}

}  // namespace

std::optional<regress::Gate> JudgeHead(const GateRequest& request) {
  regress::Gate gate = regress::MakeGate(ReadSides(request));
  regress::DemandDetection(gate, request.detect / 100);
  gate.head = request.head;
  gate.sweep = SweepOf(request);
  gate.baseline = request.baseline.empty() ? "earlier measurements" : request.baseline;
  gate.pinned = request.pinned;
  if (!request.confirm.sweep.empty() && !ConfirmSuspects(request.confirm, gate)) return std::nullopt;
  regress::NameTakenChanges(gate);
  return gate;
}

void WriteGateFiles(const regress::Gate& gate, const GateFiles& files) {
  if (!files.junit.empty()) WriteFileAtomic(files.junit, regress::GateJunit(gate));
  if (!files.summary.empty()) WriteFileAtomic(files.summary, regress::GateMarkdown(gate, regress::kMostSummaryBytes));
  if (!files.comment.empty()) WriteFileAtomic(files.comment, regress::GateMarkdown(gate, regress::kMostCommentBytes));
  if (!files.metrics.empty()) WriteFileAtomic(files.metrics, regress::GateOpenMetrics(gate));
  if (!files.annotations.empty()) WriteFileAtomic(files.annotations, regress::GateAnnotations(gate));
}

}  // namespace ridgeline::gate
