#include "gate/turns.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "driver/driver.h"
#include "driver/lock.h"
#include "launch/check_rules.h"
#include "predict/memory_forecast.h"
#include "run/spec.h"
#include "session/defaults.h"
#include "session/interrupts.h"
#include "session/say.h"
#include "session/session.h"
#include "session/setup.h"
#include "sweep/expand.h"
#include "sweep/job_description.h"
#include "sweep/launch.h"

namespace ridgeline::gate {
namespace {
namespace fs = std::filesystem;

constexpr const char* kTrainerName = "ridgeline-train";
constexpr size_t kShownHash = 8;  // letters of the hash in a folder's name

// Prints only what went wrong, because a turn is one of dozens.
class TurnObserver final : public driver::RunObserver {
 public:
  void Started(const driver::RunStart&) override {}
  void PointEnded(const std::string&, const std::string&, const driver::RunProgress&) override {}
  void Note(const std::string& text) override { session::SayAside("{}\n", text); }
  bool WantsProgress(int64_t) override { return false; }
  void Progress(const driver::RunProgress&) override {}
};

// Gives every point of the sweep one run.
void LetPointsRunOnce(sweep::Sweep& sweep) {
  const Field* repeats = FindField("repeats");
  const auto said = std::find_if(sweep.defaults.begin(), sweep.defaults.end(),
                                 [&](const sweep::Assignment& assignment) { return assignment.field == repeats; });
  if (said != sweep.defaults.end()) {
    said->value = int64_t{1};
  } else {
    sweep.defaults.push_back({repeats, int64_t{1}, sweep.defaults_place});
  }
}

}  // namespace

std::string IdOfOneRun(const std::string& spec) {
  RunSpec once = DecodeSpec(ParseJson(spec, "a point in the store"), "a point in the store");
  once.repeats = 1;
  return PointId(once);
}

Turns::Turns(sweep::Sweep sweep, fs::path folder) : sweep_(std::move(sweep)), folder_(std::move(folder)) {
  LetPointsRunOnce(sweep_);
  for (const Point& point : sweep::Expand(sweep_)) trainers_[point.id] = point.spec.trainer;
}

void Turns::UseBuild(const fs::path& build, sweep::Sweep& sweep) const {
  std::set<std::string, std::less<>> names;
  for (const auto& [id, name] : trainers_) {
    if (sweep.only.empty() || sweep.only.contains(id)) names.insert(name);
  }
  for (const std::string& name : names) {
    if (name != kOurTrainer) sweep.trainers.TakeFrom(build, name);
  }
  if (!names.contains(kOurTrainer)) return;
  std::vector<std::string>& trainer = sweep.launch.trainer;
  if (trainer.empty()) trainer = {kTrainerName};
  trainer.front() = (fs::absolute(build) / fs::path(trainer.front()).filename()).string();
  if (session::RunsHere(sweep) && !fs::is_regular_file(trainer.front())) {
    throw Error(ErrorKind::kUsage, fmt::format("gate: there is no program {}", trainer.front()),
                "name the folder that holds the build's programs, such as --base-build /opt/ridgeline-1.0/bin");
  }
}

bool Turns::Take(const std::string& turn, const fs::path& build, const std::set<std::string>& point_ids) {
  sweep::Sweep sweep = sweep_;
  sweep.only = point_ids;
  if (!build.empty()) UseBuild(build, sweep);
  MakeDirs(folder_ / "jobs");
  const driver::DriverLock lock = driver::DriverLock::Take(Database(), sweep.name);
  store::Store store = session::OpenStore(Database(), store::Store::Mode::kReadWrite);
  const auto launcher = session::OpenLauncherFor(sweep, 0, Database());
  launch::CheckRules(sweep, *launcher);
  driver::DriverOptions driver;
  driver.program = ProgramDir() / "ridgeline";
  driver.jobs_dir = folder_ / "jobs";
  driver.max_parallel = std::max<int64_t>(sweep.launch.max_parallel, 1);
  driver.runs_here = session::RunsHere(sweep);
  driver.node = session::NodeMemoryOf(sweep);
  driver.campaign = turn;
  SystemClock clock;
  TurnObserver observer;
  // Never gives up: finding a build that always crashes is the gate's task.
  driver::TrainerFaults faults;
  faults.has_worked = true;
  const driver::RunSummary summary =
      driver::RunSweep(sweep, driver,
                       {store, *launcher, clock, predict::PredictMemory, observer, session::Interrupts::Count,
                        [&] {
                          session::RunSetup(sweep, fs::absolute(session::kDefaultOutputDir),
                                            [&](const auto& words) { observer.Note(words); });
                        },
                        &faults});
  if (!summary.given_up.empty()) {
    throw Error(ErrorKind::kInfrastructure, fmt::format("gate: {} stopped when {}", turn, summary.given_up),
                "fix that and run the gate again: it continues where it stopped");
  }
  return !summary.interrupted;
}

void Turns::KeepTo(const std::string& node) {
  if (KeepToNode(sweep_.launch, node)) return;
  session::SayAside("the launcher {} cannot keep jobs on one node: turns on different nodes compare nodes, too\n",
                    sweep_.launch.launcher);
}

std::vector<regress::MeasuredCell> Turns::Read(const std::string& turn) {
  store::Store store = session::OpenStore(Database(), store::Store::Mode::kReadOnly);
  regress::MeasurementChoice choice;
  choice.campaign = turn;
  return regress::ReadMeasurements(store, choice);
}

bool KeepToNode(sweep::Launch& launch, const std::string& node) {
  const bool is_several = node.find(' ') != std::string::npos;
  if (node.empty() || is_several) return true;
  const sweep::JobDescription job = sweep::DescriptionOf(launch, node);
  if (job.here) return true;
  if (!job.pin) return false;
  Json& own = launch.config[launch.launcher];
  if (own.is_null()) own = Json::object();
  if (own.is_object()) own.merge_patch(*job.pin);
  return true;
}

fs::path FolderOfTurns(const fs::path& folder, const std::string& name, const std::vector<std::string>& purpose) {
  std::string plain;
  for (const char c : name) plain += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  const std::string hash = Hex(Hash(Join(purpose, "\n"))).substr(0, kShownHash);
  return fs::absolute(folder) / fmt::format("{}-{}", plain, hash);
}

}  // namespace ridgeline::gate
