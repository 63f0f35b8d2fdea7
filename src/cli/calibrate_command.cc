// `ridgeline calibrate`: measures how long steps take on this machine, and writes an entry of devices/.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/port.h"
#include "base/process.h"
#include "base/quoting.h"
#include "base/text.h"
#include "base/user_folders.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/temporary_folder.h"
#include "node/core_use.h"
#include "node/point_cores.h"
#include "node/ranks.h"
#include "predict/calibration.h"
#include "run/gpus.h"
#include "run/spec.h"
#include "session/interrupts.h"
#include "session/say.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr double kTooBusy = 0.1;        // share of the cores' time; the machine is busy if other programs take more
constexpr double kShareOfAlone = 0.65;  // share of the seconds for one rank's measurements
constexpr int64_t kLookEveryNs = 500'000'000;
constexpr int64_t kTellEveryNs = 10'000'000'000;
constexpr int64_t kOverdueNs = 120'000'000'000;  // past its time; then a hanging rank is ended

struct CalibrateArguments {
  std::string to;
  std::string name;
  std::string gpu;
  int64_t ranks = 0;
  double seconds = 150;
  bool busy = false;
  std::vector<fs::path> devices;
};

// The machine's own name, made fit for a file name.
std::string NameHere() {
  std::string name;
  for (const char c : HostName()) {
    if (c == '.') break;
    const auto letter = static_cast<unsigned char>(c);
    name += std::isalnum(letter) != 0 ? static_cast<char>(std::tolower(letter)) : '-';
  }
  while (name.starts_with('-')) name.erase(0, 1);
  return name.empty() ? "here" : name;
}

RunSpec BaseOf(const CalibrateArguments& arguments, int64_t ranks) {
  Json values = {{"model", "llama-25m"}, {"ranks", ranks}};
  if (!arguments.gpu.empty()) {
    values["device"] = "cuda";
    values["gpu"] = arguments.gpu;
  }
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  if (!problems.empty()) throw Error(ErrorKind::kUsage, "calibrate: " + problems.front().message);
  return spec;
}

// The ranks of one measurement. The destructor ends the ranks that still run.
class CalibratingRanks {
 public:
  CalibratingRanks(const RunSpec& base, double seconds, const fs::path& folder, const node::PointCores& cores)
      : folder_(folder), ranks_(base.ranks) {
    for (const node::RankProcess& rank : node::RanksHere(base, {}, cores.ids)) {
      SpawnOptions options;
      options.environment = rank.environment;
      options.environment["MASTER_ADDR"] = "127.0.0.1";
      options.environment["MASTER_PORT"] = std::to_string(port_.number());
      options.environment["RIDGELINE_PROGRESS"] = ProgressFile().string();
      // Starts ranks as the local launcher and `ridgeline exec` do. Otherwise the figures would not hold for runs.
      options.cpus = rank.cores;
      options.environment.merge(node::WaitingOfThreads(true, options.environment));
      options.stdout_file = options.stderr_file = Log(rank.rank);
      options.die_with_parent = true;
      std::vector<std::string> argv = {ProgramDir() / "ridgeline-train",
                                       "--calibrate",
                                       fmt::format("{}", seconds),
                                       "--ranks",
                                       std::to_string(base.ranks),
                                       "--result",
                                       ResultFile().string(),
                                       "--device",
                                       base.device,
                                       "--gpu",
                                       base.gpu};
      children_.push_back(Child::Spawn(argv, options));
    }
  }
  CalibratingRanks(const CalibratingRanks&) = delete;
  CalibratingRanks& operator=(const CalibratingRanks&) = delete;
  ~CalibratingRanks() {
    for (Child& child : children_) {
      if (child.Poll()) continue;
      child.Signal(SIGKILL);
      child.Wait();
    }
  }

  // Returns false if it was interrupted. Throws Error(kInfrastructure) if a rank fails or the ranks exceed their time.
  bool Wait(double seconds) {
    SystemClock clock;
    const int64_t begin_ns = clock.MonotonicNs();
    const int64_t latest_ns = begin_ns + static_cast<int64_t>(2e9 * seconds) + kOverdueNs;
    int64_t told_ns = begin_ns;
    while (true) {
      bool all_ended = true;
      for (size_t i = 0; i < children_.size(); ++i) {
        const auto ended = children_[i].Poll();
        if (ended && !ended->ok()) Fail(i, *ended);
        all_ended = all_ended && ended.has_value();
      }
      if (all_ended) return true;
      if (session::Interrupts::Count() > 0) return false;
      const int64_t now_ns = clock.MonotonicNs();
      if (now_ns > latest_ns) {
        throw Error(ErrorKind::kInfrastructure,
                    fmt::format("calibrate: not done after {}", FormatDuration(now_ns - begin_ns)),
                    "the machine may be busy, or a rank may hang");
      }
      if (now_ns - told_ns >= kTellEveryNs) {
        told_ns = now_ns;
        Tell(now_ns - begin_ns);
      }
      clock.SleepNs(kLookEveryNs);
    }
  }

  predict::CalibrationRun Result() const {
    const auto text = ReadForeignFile(ResultFile(), size_t{256} << 20);
    if (!text) throw Error(ErrorKind::kInfrastructure, "calibrate: the trainer has left no result");
    return predict::DecodeCalibration(ParseJson(*text, "the trainer's result"), "the trainer's result");
  }

 private:
  fs::path ResultFile() const { return folder_ / fmt::format("seen-{}.json", ranks_); }
  fs::path ProgressFile() const { return folder_ / fmt::format("progress-{}", ranks_); }
  fs::path Log(int64_t rank) const { return folder_ / fmt::format("log-{}-{}.txt", ranks_, rank); }

  [[noreturn]] void Fail(size_t rank, const ExitStatus& ended) const {
    const std::string said = ReadLogTail(Log(static_cast<int64_t>(rank)), 2000);
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("calibrate: the trainer ended with {}: {}", Describe(ended), PrintableText(Trim(said))));
  }

  // Prints the trainer's progress: how much is done, and of how much.
  void Tell(int64_t elapsed_ns) const {
    const std::string line = ReadTail(ProgressFile(), 64);
    int64_t done = 0;
    int64_t total = 0;
    const char* const end = line.data() + line.size();
    const auto first = std::from_chars(line.data(), end, done);
    if (first.ec != std::errc() || first.ptr == end) return;
    if (std::from_chars(first.ptr + 1, end, total).ec != std::errc() || total <= 0) return;
    session::SayAside("calibrating {}: {} of {} turns, after {}\n", CountOf(ranks_, "rank"), done, total,
                      FormatDuration(elapsed_ns));
  }

  const fs::path folder_;
  const int64_t ranks_;
  ReservedPort port_;
  std::vector<Child> children_;
};

fs::path FileFor(const CalibrateArguments& arguments, const std::string& name) {
  if (!arguments.to.empty()) return arguments.to;
  const auto config = ConfigFolder();
  if (!config) {
    throw Error(ErrorKind::kUsage, "calibrate: HOME is not set", "name a file with --to");
  }
  return *config / "devices" / (name + ".yaml");
}

// The name of the entry that describes this GPU: one for a single GPU, named as in the spec.
std::string EntryOf(const std::string& gpu, const std::vector<fs::path>& folders) {
  if (gpu.empty()) return {};
  const predict::Device device = predict::FindDevice(gpu, folders);
  if (device.gpu == gpu) return device.name;
  throw Error(ErrorKind::kInvalidInput, fmt::format("{} does not describe gpu: {}", device.file.string(), gpu));
}

void RefuseBusy(const CalibrateArguments& arguments) {
  SystemClock clock;
  const double others = node::OthersShareNow(clock);
  if (arguments.busy || others <= kTooBusy) return;
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("calibrate: this machine is busy: others take {:.0f} % of its cores' time now", 100 * others),
              "try again when it is quiet, or measure now with --busy, which the file then says");
}

std::string Today() { return FormatUnixTime(SystemClock().UnixNs()).substr(0, 10); }

int Calibrate(const CalibrateArguments& arguments) {
  const std::string name = !arguments.name.empty() ? arguments.name
                           : !arguments.to.empty() ? fs::path(arguments.to).stem().string()
                                                   : NameHere();
  const fs::path file = FileFor(arguments, name);
  if (file.extension() != ".yaml" || file.stem() != name) {
    throw Error(ErrorKind::kUsage, fmt::format("calibrate: {} must be named {}.yaml", file.string(), name),
                "an entry and its file have one name");
  }
  const std::vector<fs::path> folders = predict::DeviceFolders(arguments.devices);
  const std::string base_entry = EntryOf(arguments.gpu, folders);
  RefuseBusy(arguments);
  const node::PointCores cores = node::CoresFor(0, CoresAllowed(), node::OwnCoresGiven());
  const auto most = static_cast<int64_t>(std::max<size_t>(cores.ids.size(), 1));
  const int64_t ranks = arguments.ranks > 0 ? arguments.ranks : arguments.gpu.empty() ? std::min<int64_t>(2, most) : 1;

  const session::Interrupts interrupts;
  const TemporaryFolder scratch("ridgeline-calibrate");
  std::vector<predict::CalibrationRun> runs;
  const node::CoreUse before = node::ReadCoreUse(cores.ids);
  for (const int64_t of : {int64_t{1}, ranks}) {
    if (of == 1 && !runs.empty()) break;
    const double share = ranks == 1 ? 1 : of == 1 ? kShareOfAlone : 1 - kShareOfAlone;
    const double seconds = share * arguments.seconds;
    session::SayAside("calibrating {}, for about {}\n", CountOf(of, "rank"),
                      FormatDuration(std::llround(1e9 * seconds)));
    CalibratingRanks processes(BaseOf(arguments, of), seconds, scratch.path(), cores);
    if (!processes.Wait(seconds)) return session::kInterruptedExit;
    runs.push_back(processes.Result());
  }
  RunResult seen;
  node::SetCoreUse(before, node::ReadCoreUse(cores.ids), seen, cores.share());
  const double others = seen.cores.others_share;

  predict::CalibrationEntry entry{.name = name,
                                  .about = runs.front().device,
                                  .date = Today(),
                                  .device = base_entry,
                                  .others_share = others > kTooBusy ? others : 0};
  const predict::CalibratedDevice made = predict::MakeDevice(entry, runs, folders);
  if (file.has_parent_path()) MakeDirs(file.parent_path());
  WriteFileAtomic(file, made.text);
  for (const predict::CalibrationCheck& check : made.checks) {
    session::Say("{}: {} steps predicted from the others: mean error {:.1f} %, 90th percentile {:.1f} %\n",
                 CountOf(check.ranks, "rank"), check.programs, 100 * check.mean_error, 100 * check.p90_error);
  }
  int64_t left_out = 0;
  for (const predict::CalibrationRun& run : runs) left_out += run.left_out;
  if (left_out > 0) session::Say("{} programs were left out for lack of time: raise --seconds\n", left_out);
  if (entry.others_share > 0) {
    session::Say("others took {:.0f} % of the cores' time meanwhile. The file says so: its figures are less reliable\n",
                 100 * others);
  }
  session::Say(
      "written to {}\nto use it: ridgeline predict SWEEP --device {}\n", file.string(),
      arguments.to.empty() ? name : fmt::format("{} --devices {}", name, ShellWord(fs::absolute(file).parent_path())));
  return 0;
}

}  // namespace

Action CalibrateCommand(CLI::App& self) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  AddToOption(self, arguments->to, "FILE",
              "the device file, NAME.yaml (default: the machine's name, in ~/.config/ridgeline/devices)");
  self.add_option("--name", arguments->name, "the device's name (default: the file's, else the machine's)")
      ->type_name("NAME")
      ->check([](const std::string& name) {
        return IsFileName(name) ? std::string() : "a name has letters, digits, '-', '_' and '.'";
      });
  self.add_option("--gpu", arguments->gpu, "measure this NVIDIA GPU, as `gpu:` names it (default: the CPUs)")
      ->type_name("GPU");
  self.add_option("--ranks", arguments->ranks,
                  "ranks that share this machine, measured beside one alone (default: 2 on CPUs, 1 on a GPU)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  self.add_option("--seconds", arguments->seconds, "about how long to measure")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1.0, 3600.0));
  self.add_flag("--busy", arguments->busy, "measure even if others use the machine, and say so in the file");
  AddDevicesOption(self, arguments->devices);
  self.footer(
      "Times steps of small models on this machine, call by call: products of many shapes and formats, "
      "attention, passes over memory, the overhead of a call, and collectives between ranks. Writes a "
      "device file that `predict`, `plan` and `advise` take as --device. The file says how well each of "
      "these steps is predicted from the others. See docs/prediction.md.\n\n"
      "Examples:\n"
      "  ridgeline calibrate\n"
      "  ridgeline calibrate --to devices/laptop.yaml --ranks 2\n"
      "  ridgeline calibrate --gpu h100 --name our-h100");
  return [arguments] { return Calibrate(*arguments); };
}

}  // namespace ridgeline::cli
