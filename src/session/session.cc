#include "session/session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "driver/counting_line.h"
#include "driver/driver.h"
#include "driver/places.h"
#include "launch/check_rules.h"
#include "plan/largest.h"
#include "plan/price.h"
#include "predict/memory_forecast.h"
#include "run/measurement.h"
#include "session/defaults.h"
#include "session/interrupts.h"
#include "session/say.h"
#include "sweep/expand.h"
#include "sweep/job_description.h"
#include "sweep/launch.h"
#include "sweep/profile.h"
#include "yaml/yaml.h"

namespace ridgeline::session {
namespace fs = std::filesystem;

store::Store OpenStore(const fs::path& db, store::Store::Mode mode) {
  return store::Store::Open(db, mode, [](const std::string& words) { SayAside("ridgeline: {}\n", words); });
}

std::unique_ptr<launch::Launcher> OpenLauncher(const std::string& name, Json config, int64_t max_parallel,
                                               const fs::path& db) {
  config["launcher"] = name;
  if (max_parallel > 0) config["max_parallel"] = max_parallel;
  return launch::LoadLauncher(name, config, driver::LauncherStateDir(db, name));
}

std::unique_ptr<launch::Launcher> OpenLauncherFor(const sweep::Sweep& sweep, int64_t max_parallel, const fs::path& db) {
  try {
    return OpenLauncher(sweep.launch.launcher, sweep::SharedConfig(sweep), max_parallel, db);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInvalidInput || e.message().find("launch: ") == std::string::npos) throw;
    yaml::ThrowFaults(sweep.file, launch::RefusedSettings(sweep.launch, e, sweep.launch.place), e.hint());
  }
}

std::unique_ptr<launch::Launcher> OpenLauncherOf(const store::SweepRecord& sweep, const std::string& launcher,
                                                 const fs::path& db) {
  sweep::Sweep kept;
  kept.file = sweep.file;
  kept.launch = sweep::ParseLaunchAndPrice(sweep.text, sweep.file).launch;
  kept.launch.launcher = launcher;
  sweep::UseProfiles(kept);  // profiles may name the cluster
  return OpenLauncher(launcher, kept.launch.config, 0, db);
}

Captured AskTrainerForGpus() {
  constexpr int64_t kPatienceNs = 60'000'000'000;
  return Run({(ProgramDir() / "ridgeline-train").string(), "--gpus"}, kPatienceNs);
}

std::shared_ptr<const predict::Frameworks> FrameworksFor(const sweep::Sweep& sweep, std::vector<fs::path> own,
                                                         const std::string& as) {
  own.push_back(fs::absolute(sweep.file).parent_path() / "frameworks");
  return std::make_shared<const predict::Frameworks>(predict::FrameworkFolders(std::move(own)), as);
}

std::vector<fs::path> DeviceFoldersFor(const sweep::Sweep& sweep, std::vector<fs::path> own) {
  const fs::path beside = fs::absolute(sweep.file).parent_path();
  own.push_back(beside);
  own.push_back(beside / "devices");
  return predict::DeviceFolders(std::move(own));
}

std::optional<predict::Device> DeviceFor(const sweep::Sweep& sweep, const std::string& named,
                                         std::vector<fs::path> folders) {
  if (named.empty() && sweep.price.device.empty()) return std::nullopt;
  folders = DeviceFoldersFor(sweep, std::move(folders));
  return named.empty() ? plan::PricedDevice(sweep, folders) : predict::FindDevice(named, folders);
}

predict::TimeModel AssumedTimesOf(const sweep::Sweep& sweep, const std::optional<predict::Device>& device) {
  const bool follows = sweep.launch.bundle_s > 0 || sweep.launch.time_limit_auto ||
                       std::any_of(sweep.rules.begin(), sweep.rules.end(),
                                   [](const sweep::LaunchRule& rule) { return rule.set.time_limit_auto; });
  if (!device || !follows) return {};
  driver::CountingLine line("pricing");
  return plan::AssumedTimes(sweep, sweep::Expand(sweep), *device, FrameworksFor(sweep).get(),
                            [&](size_t done, size_t of) {
                              if (Interrupts::Count() > 0) throw driver::Interrupted();
                              line.At(done, of);
                            });
}

std::map<std::string, double> PredictedUsd(const sweep::Sweep& sweep, store::Store& store) {
  if (sweep.price.node_usd_per_hour <= 0) return {};
  std::map<std::string, double> predicted;
  try {
    plan::PriceParts parts;
    parts.device = DeviceFor(sweep, "", {});
    parts.frameworks = FrameworksFor(sweep);
    constexpr auto kMost = static_cast<int64_t>(predict::TimeModel::kRemembered);
    for (const store::MeasuredPoint& point : store.MeasuredPoints(sweep.launch.launcher, kMost)) {
      parts.times.Took(point.spec, static_cast<double>(point.duration_ns) / 1e9);
    }
    const std::vector<Point> points = sweep::Expand(sweep);
    plan::Plan plan;
    plan.points.resize(points.size());  // pricing needs no verdicts
    for (size_t i = 0; i < points.size(); ++i) plan.points[i].point = i;
    const std::vector<plan::PointPrice> prices = plan::PricePoints(sweep, points, plan, parts);
    for (size_t i = 0; i < points.size(); ++i) {
      if (prices[i].basis == plan::PointPrice::Basis::kUnknown) continue;
      predicted[points[i].id] =
          prices[i].seconds / 3600 * prices[i].usd_per_hour / static_cast<double>(points[i].spec.repeats);
    }
  } catch (const Error&) {
    return {};  // `plan` says what it lacks; a run needs no prediction
  }
  return predicted;
}

plan::Plan PlanWithProgress(const sweep::Sweep& sweep, const std::vector<Point>& points,
                            const plan::PlanOptions& options, const plan::Forecaster& forecaster) {
  driver::CountingLine line("planning");
  return plan::MakePlan(sweep, points, options, forecaster, [&](size_t done, size_t of) { line.At(done, of); });
}

fs::path SweepFile(const fs::path& file) {
  if (file.parent_path() != "sweeps" || fs::exists(file)) return file;
  const auto shipped = FindDataDir("sweeps");
  return shipped && fs::is_regular_file(*shipped / file.filename()) ? *shipped / file.filename() : file;
}

std::string OtherFileOf(store::Store& store, const sweep::Sweep& sweep) {
  for (const store::SweepProgress& known : store.Sweeps()) {
    const fs::path before = fs::absolute(known.sweep.file).lexically_normal();
    if (known.sweep.name != sweep.name || known.sweep.text == sweep.text || known.sweep.file.empty() ||
        before == fs::absolute(sweep.file).lexically_normal()) {
      continue;
    }
    return fmt::format(
        "this database has a sweep '{}' of another file, {}: its list of points becomes that of {}; give "
        "one of them another name to keep both",
        sweep.name, before.string(), sweep.file.string());
  }
  return {};
}

sweep::Sweep LoadSweepFor(const fs::path& file, const std::string& launcher, const std::vector<fs::path>& trainers,
                          const sweep::Given& given) {
  sweep::Sweep sweep = sweep::LoadSweep(SweepFile(file), trainers, given);
  if (!launcher.empty()) sweep.launch.launcher = launcher;
  sweep.launch.describe = launch::AskLaunchers();
  sweep::UseProfiles(sweep);
  plan::UseLargestBatches(sweep, {}, predict::PredictMemory);
  return sweep;
}

bool RunsHere(const sweep::Sweep& sweep) { return sweep::DescriptionOf(sweep.launch).here; }

plan::NodeMemory NodeMemoryOf(const sweep::Sweep& sweep) {
  return RunsHere(sweep) ? plan::MemoryHere() : plan::NodeMemory();
}

std::string SweepName(store::Store& store, const std::string& name_or_file) {
  std::vector<std::string> names;
  for (const store::SweepProgress& progress : store.Sweeps()) {
    if (progress.sweep.name == name_or_file) return name_or_file;
    names.push_back(progress.sweep.name);
  }
  std::string name = name_or_file;
  if (const fs::path file = SweepFile(name_or_file); fs::is_regular_file(file)) {
    name = sweep::LoadSweepName(file);
    for (const std::string& known : names) {
      if (known == name) return name;
    }
  }
  throw Error(ErrorKind::kUsage, fmt::format("the sweep '{}' was never run here{}", name, DidYouMean(name, names)),
              "`ridgeline status` lists the sweeps of a database; --db names another");
}

std::vector<fs::path> ReportFoldersFor(const std::string& folder, const fs::path& sweep_file) {
  std::vector<fs::path> own;
  if (!folder.empty()) own.emplace_back(folder);
  if (!sweep_file.empty()) own.push_back(fs::absolute(sweep_file).parent_path());
  return report::ReportFolders(std::move(own));
}

std::vector<report::Report> ReportsOf(const sweep::Sweep& sweep, const std::string& folder) {
  std::vector<report::Report> reports;
  for (const std::string& name : sweep.reports) {
    reports.push_back(report::LoadReport(name, ReportFoldersFor(folder, sweep.file)));
  }
  return reports;
}

void WriteReports(const std::vector<report::Report>& reports, const std::string& sweep, store::Store& store,
                  const fs::path& folder) {
  using enum report::ReportFormat;
  for (const report::Report& report : reports) {
    for (const auto& [format, extension] : {std::pair{kHtml, ".html"}, {kCsv, ".csv"}, {kMarkdown, ".md"}}) {
      const fs::path file = folder / (report.name + extension);
      WriteFileAtomic(file, report::Render(report, store, {sweep, format}).bytes);
      Say("{}{}\n", format == kHtml ? "report: " : "        ", file.string());
    }
  }
}

std::string EndsText(const store::SweepProgress& progress) {
  const auto of_those = [](int64_t some, int64_t all, const char* what) {
    return some == 0 ? "" : some == all ? fmt::format(" ({})", what) : fmt::format(" ({} {})", some, what);
  };
  const int64_t no_result = progress.points - progress.finished();
  std::string text = fmt::format("{} ok", progress.ok);
  if (progress.failed > 0) text += fmt::format(", {} failed", progress.failed);
  text += of_those(progress.out_of_memory, progress.failed, "out of memory");
  if (no_result > 0) text += fmt::format(", {} without a result", no_result);
  text += of_those(progress.infrastructure, no_result, "infrastructure");
  return text;
}

}  // namespace ridgeline::session
