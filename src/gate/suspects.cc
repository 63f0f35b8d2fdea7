#include "gate/suspects.h"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "gate/turns.h"
#include "regress/confirm.h"
#include "session/interrupts.h"
#include "session/say.h"
#include "session/session.h"

namespace ridgeline::gate {
namespace {
namespace fs = std::filesystem;

class TurnsOfBuilds {
 public:
  TurnsOfBuilds(Turns& turns, fs::path base, fs::path head)
      : turns_(turns), base_(std::move(base)), head_(std::move(head)) {}

  std::optional<std::vector<regress::RunsInTurn>> Pair(size_t round, size_t pair, bool base_first,
                                                       std::span<regress::SuspectCell* const> cells) {
    std::set<std::string> ids;
    for (const regress::SuspectCell* cell : cells) ids.insert(IdOfOneRun(cell->spec));
    const std::string name = fmt::format("round-{}-pair-{}", round, pair);
    session::SayAside("{} of {}, {} first\n", name, CountOf(ids.size(), "point"), base_first ? "base" : "head");
    for (const bool is_base : {base_first, !base_first}) {
      if (!turns_.Take(name + Side(is_base), is_base ? base_ : head_, ids)) return std::nullopt;
      KeepToNodeOf(Read(name + Side(is_base)));
    }
    const ByPoint base = Read(name + Side(true));
    const ByPoint head = Read(name + Side(false));
    std::vector<regress::RunsInTurn> runs;
    for (const regress::SuspectCell* cell : cells) {
      const std::string id = IdOfOneRun(cell->spec);
      runs.emplace_back(RunsIn(base, id), RunsIn(head, id));
      RememberBuilds(runs.back());
      if (auto& first = runs.back().first) first->commit = BuildOf(*first);
    }
    return runs;
  }

 private:
  using ByPoint = std::map<std::string, regress::MeasuredRuns>;

  static const char* Side(bool is_base) { return is_base ? "-base" : "-head"; }

  ByPoint Read(const std::string& turn) {
    ByPoint runs;
    for (regress::MeasuredCell& cell : turns_.Read(turn)) runs[cell.point_id] = std::move(cell.measurements.back());
    return runs;
  }

  static std::optional<regress::MeasuredRuns> RunsIn(const ByPoint& runs, const std::string& id) {
    const auto found = runs.find(id);
    return found == runs.end() ? std::nullopt : std::optional(found->second);
  }

  // Keeps all runs on the node of the first run. Otherwise a scheduler might choose another node, and two nodes would
  // be compared.
  void KeepToNodeOf(const ByPoint& runs) {
    for (const auto& [id, measured] : runs) {
      if (kept_ || measured.host.empty()) continue;
      kept_ = true;
      turns_.KeepTo(measured.host);
    }
  }

  // Identifies base by its commit, if its programs report one, and by the folder of its programs. Accepted changes are
  // subtracted while both stay the same.
  std::string BuildOf(const regress::MeasuredRuns& base) const {
    const bool is_said = base.commit != base.campaign;
    std::error_code ec;
    const fs::path folder = fs::weakly_canonical(base_, ec);
    return fmt::format("{}{}", is_said ? base.commit + " in " : "", (ec ? base_ : folder).string());
  }

  // Warns if both builds report the same commit. A wrong folder would make every comparison pass.
  void RememberBuilds(const regress::RunsInTurn& runs) {
    if (said_ || !runs.first || !runs.second || runs.first->commit != runs.second->commit) return;
    said_ = true;
    session::SayAside(
        "base and head say that they are one build, {}: is --base-build the folder of the older programs?\n",
        runs.first->commit);
  }

  Turns& turns_;
  const fs::path base_;
  const fs::path head_;
  bool said_ = false;
  bool kept_ = false;  // whether the runs are kept on a node
};

}  // namespace

bool ConfirmSuspects(const ConfirmOptions& options, regress::Gate& gate) {
  std::vector<regress::SuspectCell> cells = regress::SuspectsOf(gate);
  if (cells.empty()) return true;
  const fs::path base = options.base_build;
  const fs::path head = options.head_build;
  const fs::path folder =
      FolderOfTurns(options.turns, gate.head, {gate.head, fs::absolute(base).string(), options.head_build});
  Turns turns(session::LoadSweepFor(options.sweep, options.launcher, options.trainers), folder);
  for (const regress::GateFinding& finding : gate.findings) {
    if (!regress::IsMeasuredAgain(finding) || turns.Has(IdOfOneRun(finding.spec))) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("gate: the suspect {} is not a point of {}", finding.point, options.sweep),
                "--confirm takes the sweep that HEAD was measured with");
  }
  const session::Interrupts interrupts;
  session::SayAside("{} suspect{} measured again in turns, in {}\n", cells.size(), cells.size() == 1 ? " is" : "s are",
                    folder.string());
  TurnsOfBuilds builds(turns, base, head);
  const bool is_done = regress::MeasureInTurns(
      gate, cells, [&](size_t round, size_t pair, bool base_first, std::span<regress::SuspectCell* const> open) {
        return builds.Pair(round, pair, base_first, open);
      });
  if (is_done) regress::Confirm(gate, cells);
  return is_done;
}

}  // namespace ridgeline::gate
