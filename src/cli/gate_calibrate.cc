#include "cli/gate_calibrate.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "cli/harness.h"
#include "cli/interrupts.h"
#include "cli/output.h"
#include "cli/turns.h"
#include "regress/calibrate.h"

namespace ridgeline {

int CalibrateGate(const CalibrateOptions& options) {
  Sweep sweep = LoadSweepFor(options.sweep, options.launcher, options.trainers);
  std::vector<std::string> purpose = {sweep.text, ProgramDir().string(), sweep.launch.launcher};
  for (const auto& [name, trainer] : sweep.trainers.all()) purpose.push_back(trainer->text);
  const std::filesystem::path folder = FolderOfTurns("calibrate", purpose);
  Turns turns(std::move(sweep), folder);
  const Interrupts interrupts;
  const size_t runs = RunsOfNights(static_cast<size_t>(options.nights));
  for (size_t run = 1; run <= runs; ++run) {
    SayAside("run {} of {}, of {} point{}\n", run, runs, turns.points(), turns.points() == 1 ? "" : "s");
    if (!turns.Take(fmt::format("run-{:04}", run), {}, {})) {
      SayAside("interrupted; the same command goes on\n");
      return kInterruptedExit;
    }
  }
  std::vector<CalibratedCell> cells;
  for (const MeasuredCell& cell : turns.Read("run-*")) {
    std::vector<double> logs;
    for (const MeasuredRuns& measured : cell.measurements) {
      logs.insert(logs.end(), measured.log_step_times.begin(), measured.log_step_times.end());
    }
    cells.push_back(Calibrate(cell.spec, logs));
  }
  const std::string words = CalibrationWords(cells);
  if (words.empty()) {
    throw Error(ErrorKind::kInfrastructure, "gate: nothing was measured often enough to calibrate by",
                fmt::format("what became of the runs: ridgeline status --db {}", (folder / "ridgeline.db").string()));
  }
  Write(ToText(CalibrationTable(cells)) + "\n" + words);
  Say("the runs are kept in {}: without it they are taken anew\n", folder.string());
  return 0;
}

}  // namespace ridgeline
