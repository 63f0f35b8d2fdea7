// What a command that works with a sweep shares with others: its database, its launcher, its devices, its reports.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "launch/launcher.h"
#include "plan/memory_limit.h"
#include "plan/plan.h"
#include "predict/device.h"
#include "predict/framework.h"
#include "predict/time_model.h"
#include "report/report.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace ridgeline::session {

inline constexpr int kUnansweredExit = 1;  // of a run in which some points failed by their own fault

// Opens the database. Prints a note to the standard error while another process's lock makes us wait.
store::Store OpenStore(const std::filesystem::path& db, store::Store::Mode mode);

// Opens a launcher with the settings that a sweep's jobs share (SharedConfig). Its state lies beside the database.
// `max_parallel` 0: as configured.
std::unique_ptr<launch::Launcher> OpenLauncher(const std::string& name, Json config, int64_t max_parallel,
                                               const std::filesystem::path& db);

// Opens the sweep's launcher. An error about a setting names the setting's place in the sweep's file.
std::unique_ptr<launch::Launcher> OpenLauncherFor(const sweep::Sweep& sweep, int64_t max_parallel,
                                                  const std::filesystem::path& db);

// Opens the launcher to which this sweep's jobs were submitted, with the sweep text that was stored with them.
std::unique_ptr<launch::Launcher> OpenLauncherOf(const store::SweepRecord& sweep, const std::string& launcher,
                                                 const std::filesystem::path& db);

// Runs `ridgeline-train --gpus`. It prints a line for each GPU that our trainer can use, or one that begins with
// kNoGpus.
Captured AskTrainerForGpus();
inline constexpr std::string_view kNoGpus = "no GPUs";

// The folders with device descriptions for a sweep, in the order of search: `own`, the folder beside the sweep's file,
// then the usual folders.
std::vector<std::filesystem::path> DeviceFoldersFor(const sweep::Sweep& sweep,
                                                    std::vector<std::filesystem::path> own = {});

// The device named on the command line, else the one that the sweep's `price` names, else nothing. Searches
// DeviceFoldersFor(sweep, folders). If the sweep names an unknown device, throws Error with the place in the sweep.
std::optional<predict::Device> DeviceFor(const sweep::Sweep& sweep, const std::string& named,
                                         std::vector<std::filesystem::path> folders);

// The frameworks that predict the sweep's points. Searches `own`, frameworks/ beside the sweep's file, then the usual
// folders. `as`: predicts all points as this framework; if empty, each point as its trainer's.
std::shared_ptr<const predict::Frameworks> FrameworksFor(const sweep::Sweep& sweep,
                                                         std::vector<std::filesystem::path> own = {},
                                                         const std::string& as = "");

// The clock's prediction of points' durations on the device (DeviceFor), if the sweep's bundles or time limits depend
// on durations. It counts until a point is measured. Empty for other sweeps.
predict::TimeModel AssumedTimesOf(const sweep::Sweep& sweep, const std::optional<predict::Device>& device);

// What `plan` predicts that one run of each point costs, in dollars, by the point's id, at the price that the sweep
// gives for a node. Points of which nothing is predicted are missing.
std::map<std::string, double> PredictedUsd(const sweep::Sweep& sweep, store::Store& store);

// What a CountingLine says while `batch_size: max` is found.
inline constexpr const char* kSearching = "searching for the largest that fit";

// MakePlan, with a line of progress on the standard error.
plan::Plan PlanWithProgress(const sweep::Sweep& sweep, const std::vector<Point>& points,
                            const plan::PlanOptions& options, const plan::Forecaster& forecaster);

// Returns the file. If it does not exist and its name is that of a shipped sweep as in the documentation,
// "sweeps/demo.yaml", returns the shipped one.
std::filesystem::path SweepFile(const std::filesystem::path& file);

// The warning for a store that has a sweep of the same name from another file, whose list of points this one replaces.
// Empty if there is none.
std::string OtherFileOf(store::Store& store, const sweep::Sweep& sweep);

// Reads a sweep, with the settings of its profiles. `launcher`: replaces the sweep's launcher, unless it is empty.
// `trainers`: folders with definitions.
sweep::Sweep LoadSweepFor(const std::filesystem::path& file, const std::string& launcher,
                          const std::vector<std::filesystem::path>& trainers, const sweep::Given& given = {});

// Whether the sweep's jobs run on this machine, and the memory of its launcher's nodes, if known.
bool RunsHere(const sweep::Sweep& sweep);
plan::NodeMemory NodeMemoryOf(const sweep::Sweep& sweep);

// The name of a sweep of this store, from that name or from the path of its file. Throws Error(kUsage), which names the
// nearest one.
std::string SweepName(store::Store& store, const std::string& name_or_file);

// The folders with reports, in the order of search: the folder of `--reports`, unless it is empty; the folder beside
// the sweep's file, unless that is empty; then the usual folders.
std::vector<std::filesystem::path> ReportFoldersFor(const std::string& folder, const std::filesystem::path& sweep_file);

// The reports that a sweep requests, from the sweep's folders. Throws Error if a report does not exist.
std::vector<report::Report> ReportsOf(const sweep::Sweep& sweep, const std::string& folder);

// Writes each report as a page, a table and a document into a folder, and prints where.
void WriteReports(const std::vector<report::Report>& reports, const std::string& sweep, store::Store& store,
                  const std::filesystem::path& folder);

// "3 ok, 2 failed (1 out of memory), 2 without a result".
std::string EndsText(const store::SweepProgress& progress);

}  // namespace ridgeline::session
