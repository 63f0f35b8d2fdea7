#include "gate/calibration.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "base/text.h"
#include "gate/turns.h"
#include "regress/calibrate.h"
#include "session/interrupts.h"
#include "session/say.h"
#include "session/session.h"

namespace ridgeline::gate {
namespace {
namespace fs = std::filesystem;

// A session that was interrupted for longer is over: what goes on a day later is another.
constexpr int64_t kLongestPauseNs = int64_t{12} * 3600 * 1'000'000'000;

// The sessions of a calibration. Those that are over are counted in a file beside the database.
class Sessions {
 public:
  Sessions(Turns& turns, const fs::path& folder) : turns_(turns), file_(folder / "sessions") {}

  // The one to measure: a new one, or that which was interrupted.
  int64_t Begin() {
    int64_t session = CountOver() + 1;
    if (!fs::exists(file_.parent_path() / "ridgeline.db")) return session;
    int64_t last_unix_ns = 0;
    std::string host;
    for (const regress::MeasuredCell& cell : turns_.Read(regress::NameOfSession(session) + "-*")) {
      last_unix_ns = std::max(last_unix_ns, cell.measurements.back().ended_unix_ns);
      host = cell.measurements.front().host;
    }
    if (last_unix_ns == 0) return session;
    if (SystemClock().UnixNs() - last_unix_ns > kLongestPauseNs) {
      End(session);
      return session + 1;
    }
    KeepTo(host);
    session::SayAside("{} goes on\n", regress::NameOfSession(session));
    return session;
  }

  // A session is on one node, as a night's runs of a point are.
  void KeepTo(const std::string& host) {
    if (kept_ || host.empty()) return;
    kept_ = true;
    turns_.KeepTo(host);
  }

  void End(int64_t session) { WriteFileAtomic(file_, fmt::format("{}\n", session)); }

 private:
  int64_t CountOver() const {
    constexpr size_t kMostBytes = 32;
    const auto text = ReadFileIfThere(file_, kMostBytes);
    int64_t count = 0;
    if (text) std::from_chars(text->data(), text->data() + text->size(), count);
    return std::max<int64_t>(count, 0);
  }

  Turns& turns_;
  const fs::path file_;
  bool kept_ = false;
};

// Returns false if it was interrupted.
bool MeasureSession(Turns& turns, const fs::path& folder, size_t runs) {
  Sessions sessions(turns, folder);
  const int64_t session = sessions.Begin();
  const session::Interrupts interrupts;
  for (size_t run = 1; run <= runs; ++run) {
    session::SayAside("{}: run {} of {}, of {}\n", regress::NameOfSession(session), run, runs,
                      CountOf(turns.points(), "point"));
    const std::string turn = fmt::format("{}-run-{:04}", regress::NameOfSession(session), run);
    if (!turns.Take(turn, {}, {})) return false;
    if (run > 1) continue;
    for (const regress::MeasuredCell& cell : turns.Read(turn)) sessions.KeepTo(cell.measurements.front().host);
  }
  sessions.End(session);
  return true;
}

}  // namespace

int CalibrateGate(const CalibrateOptions& options) {
  sweep::Sweep sweep = session::LoadSweepFor(options.sweep, options.launcher, options.trainers);
  std::vector<std::string> purpose = {sweep.text, ProgramDir().string(), sweep.launch.launcher};
  for (const auto& [name, trainer] : sweep.trainers.all()) purpose.push_back(trainer->text);
  const fs::path folder = FolderOfTurns(options.turns, "calibration", purpose);
  Turns turns(std::move(sweep), folder);
  if (options.nights == 0 && !fs::exists(folder / "ridgeline.db")) {
    throw Error(ErrorKind::kUsage, fmt::format("gate: no session of {} has been measured yet", options.sweep),
                "measure one without --nights 0");
  }
  if (options.nights > 0 &&
      !MeasureSession(turns, folder, regress::RunsOfNights(static_cast<size_t>(options.nights)))) {
    session::SayAside("interrupted; to resume, run the same command\n");
    return session::kInterruptedExit;
  }
  const std::vector<regress::MeasuredCell> measured = turns.Read("session-*");
  const std::vector<regress::CalibratedCell> cells = regress::CalibrateCells(measured);
  const std::string words = regress::CalibrationWords(cells);
  if (words.empty()) {
    throw Error(ErrorKind::kInfrastructure, "gate: nothing was measured often enough to calibrate by",
                fmt::format("to see the runs: ridgeline status --db {}", (folder / "ridgeline.db").string()));
  }
  session::Write(ToText(regress::SessionTable(measured)) + "\n" + ToText(regress::CalibrationTable(cells)) + "\n" +
                 words);
  session::Say("the sessions are kept in {}\n", folder.string());
  return 0;
}

}  // namespace ridgeline::gate
