// What the commands that drive jobs share.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "launch/launcher.h"
#include "plan/memory.h"
#include "predict/device.h"
#include "predict/framework.h"
#include "predict/time_model.h"
#include "report/report.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ridgeline {

inline constexpr int kInterruptedExit = 130;  // as a shell has it for SIGINT
inline constexpr int kUnansweredExit = 1;     // of a run some of whose points ended by their own fault

// The database, with a word on the standard error where another process's lock makes us wait for it.
Store OpenStore(const std::filesystem::path& db, Store::Mode mode);

// A launcher with what a sweep's jobs share (SharedConfig), its state beside the database. `max_parallel` 0: as
// configured.
std::unique_ptr<Launcher> OpenLauncher(const std::string& name, Json config, int64_t max_parallel,
                                       const std::filesystem::path& db);

// The launcher of the sweep. A setting that it refuses is told at its place in the sweep's file.
std::unique_ptr<Launcher> OpenLauncherFor(const Sweep& sweep, int64_t max_parallel, const std::filesystem::path& db);

// The launcher that this sweep's jobs went to, as the sweep that was kept with them says.
std::unique_ptr<Launcher> OpenLauncherOf(const SweepRecord& sweep, const std::string& launcher,
                                         const std::filesystem::path& db);

// Runs `ridgeline-train --gpus`. It prints a line for each GPU that our trainer can use, or one that begins with
// kNoGpus.
Captured AskTrainerForGpus();
inline constexpr std::string_view kNoGpus = "no GPUs";

// `--trainers DIR`, which must be there; as many as there are.
void AddTrainersOption(CLI::App& command, std::vector<std::filesystem::path>& folders);

// `--devices DIR`, which must be there; as many as there are.
void AddDevicesOption(CLI::App& command, std::vector<std::filesystem::path>& folders);

// Where descriptions of devices are looked for that a sweep names: in `own`, beside its file, then where all are.
std::vector<std::filesystem::path> DeviceFoldersFor(const Sweep& sweep, std::vector<std::filesystem::path> own = {});

// The device that is named on a command line, else the one that the sweep's `price` names; nothing where neither does.
// Looked for in DeviceFoldersFor(sweep, folders). Throws Error with the place in the sweep where
// that names one that is not there.
std::optional<Device> DeviceFor(const Sweep& sweep, const std::string& named,
                                std::vector<std::filesystem::path> folders);

// `--frameworks DIR`, which must be there; as many as there are.
void AddFrameworksOption(CLI::App& command, std::vector<std::filesystem::path>& folders);

// Those by which points of the sweep are predicted: of `own`, in frameworks/ beside its file, then where all are. `as`:
// all points as that one; empty: each as its trainer's.
std::shared_ptr<const Frameworks> FrameworksFor(const Sweep& sweep, std::vector<std::filesystem::path> own = {},
                                                const std::string& as = "");

// Where bundles or time limits of the sweep follow from how long points take: what the clock says of them on the
// device (DeviceFor), which counts until one is measured. Knows nothing elsewhere.
TimeModel AssumedTimesOf(const Sweep& sweep, const std::optional<Device>& device);

// The file, or the one that ships where somebody names it as the documents do, "sweeps/demo.yaml", and has none.
std::filesystem::path SweepFile(const std::filesystem::path& file);

// What is said where the store has another file's sweep of the same name, whose list of points this one replaces.
// Empty: it has none.
std::string OtherFileOf(Store& store, const Sweep& sweep);

// Reads a sweep, to go to `launcher` where that is not empty, with what its profiles say. `trainers`: folders with
// definitions.
Sweep LoadSweepFor(const std::filesystem::path& file, const std::string& launcher,
                   const std::vector<std::filesystem::path>& trainers);

// Whether the sweep's jobs run on this machine, and what memory a node of its launcher has, as far as that is known.
bool RunsHere(const Sweep& sweep);
NodeMemory NodeMemoryOf(const Sweep& sweep);

// The name of a sweep of this store, from that name or the path of its file. Throws Error(kUsage) with the nearest.
std::string SweepName(Store& store, const std::string& name_or_file);

// `--reports DIR`, which must be there.
CLI::Option* AddReportsOption(CLI::App& command, std::string& folder);

// Where a report is looked for: in the folder of `--reports`, unless that is empty; beside the sweep's file, unless
// that is; then where every report is.
std::vector<std::filesystem::path> ReportFoldersFor(const std::string& folder, const std::filesystem::path& sweep_file);

// The reports a sweep asks for, looked for in the folders that it has. Throws Error for one that there is not.
std::vector<Report> ReportsOf(const Sweep& sweep, const std::string& folder);

// Each report as a page, a table and a document, in a folder; says where.
void WriteReports(const std::vector<Report>& reports, const std::string& sweep, Store& store,
                  const std::filesystem::path& folder);

// `--campaign NAME`, which must be a name that a campaign can have.
CLI::Option* AddCampaignOption(CLI::App& command, std::string& name, const std::string& help);

// "3 ok, 2 failed (1 out of memory), 2 without a result".
std::string EndsText(const SweepProgress& progress);

// `word` as a person types it in a shell. What a terminal would obey in it is written as escapes ($'\x1b'), which bash,
// zsh and ksh read.
std::string ShellWord(const std::string& word);

// `text` as an SQL string literal.
std::string SqlText(const std::string& text);

}  // namespace ridgeline
