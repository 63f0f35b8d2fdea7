#include "engine/cli/train_command.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/system_words.h"
#include "base/text.h"
#include "engine/cli/print_budget.h"
#include "engine/cli/train_flags.h"
#include "engine/comm/gloo/rank_environment.h"
#include "engine/step/trace_file.h"
#include "engine/train/calibrate.h"
#include "engine/train/trainer.h"
#include "engine/train/verify.h"
#include "ridgeline/sealed_json.h"
#include "ridgeline/standard_streams.h"
#include "run/names.h"
#include "run/parallelism.h"
#include "run/result.h"
#include "run/sagemaker.h"
#include "run/spec.h"

namespace ridgeline::engine {
namespace {

// One line, overwritten in place after every step, for programs that follow the run ($RIDGELINE_PROGRESS).
class ProgressLine {
 public:
  ProgressLine() {
    if (const char* path = std::getenv("RIDGELINE_PROGRESS")) {
      fd_ = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    }
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (fd_ >= 0) ::close(fd_);
  }
  void Write(const StepReport& report) const {
    if (fd_ < 0) return;
    // The width is fixed, so that a shorter line overwrites all of a longer one.
    std::string said = fmt::format("{} {} {:.1f}", report.step, report.total, report.tokens_per_s);
    if (report.step > 0) said += fmt::format(" {:.6g}", report.loss);
    const std::string line = fmt::format("{:<63}\n", said);
    [[maybe_unused]] const auto n = ::pwrite(fd_, line.data(), line.size(), 0);
  }

 private:
  int fd_ = -1;
};

// A signal handler can only reach globals.
volatile std::sig_atomic_t told_to_leave = 0;

extern "C" void RememberToLeave(int /*signal*/) { told_to_leave = 1; }

// Schedulers take a node back with SIGTERM, and some warn with SIGUSR1. SIGINT ends the process at once, as usual.
void ListenForLeave() {
  struct sigaction action {};
  action.sa_handler = RememberToLeave;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGTERM, SIGUSR1}) ::sigaction(signal, &action, nullptr);
  // A file that may not grow further counts as a full disk, which the run survives.
  ::signal(SIGXFSZ, SIG_IGN);
}

double MiB(int64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

void PrintFsdpHeader(const RunSpec& s) {
  fmt::print("[GPU-0] WORLD_SIZE = {}\n", s.ranks);
  fmt::print("[GPU-0] Using precision preset: {}\n", s.precision);
  fmt::print("[GPU-0] Training configuration: {} layers of {} heads x {}, batch {}, sequence {}, checkpointing {}\n",
             s.layers, s.heads, s.head_dim, s.batch_size, s.seq_length, s.checkpointing);
}

void PrintFsdpResult(const RunResult& r) {
  const auto category = [&](const char* name) { return r.memory.by_category.at(name); };
  const int64_t state = category("parameters") + category("optimizer");
  fmt::print("[GPU-0] Pre-FSDP memory use = {:.2f}MiB\n", MiB(state));
  fmt::print("[GPU-0] Post-FSDP memory use = {:.2f}MiB\n", MiB(state));
  int64_t total_ns = 0;
  for (const int64_t ns : r.step_ns.all_ns) total_ns += ns;
  const double seconds = static_cast<double>(total_ns) * 1e-9;
  fmt::print("[GPU-0] Training Time: {:.4f}s\n", seconds);
  fmt::print("[GPU-0] Avg. Iter. Time: {:.4f}s\n", seconds / static_cast<double>(r.step_ns.all_ns.size()));
  fmt::print("[GPU-0] Peak Memory Use: {:.2f}MBs\n", MiB(r.memory.planned_peak_bytes));
}

void PrintResult(const RunSpec& spec, const RunResult& r) {
  fmt::print("{} {} batch {} x {}, checkpointing {}: {} parameters\n", spec.model, spec.precision, spec.batch_size,
             spec.seq_length, spec.checkpointing, FormatCount(static_cast<double>(r.parameters)));
  if (!r.step_ns.all_ns.empty() && r.status == RunStatus::kOk) {
    fmt::print("  steady  {:.1f} tokens/s (median step {}, p95 {}, cv {:.1f}%)\n", r.throughput.steady_tokens_per_s,
               FormatDuration(r.step_ns.median_ns), FormatDuration(r.step_ns.p95_ns), 100 * r.step_ns.cv);
    fmt::print("  cold    {:.1f} tokens/s (all {} steps, the first {})\n", r.throughput.cold_tokens_per_s,
               r.step_ns.all_ns.size(), FormatDuration(r.step_ns.all_ns.front()));
    fmt::print("  compute {:.1f} GFLOP/s (model FLOPs, causal; {:.1f} executed)\n",
               r.flops.model_causal / static_cast<double>(r.step_ns.median_ns),
               r.flops.executed / static_cast<double>(r.step_ns.median_ns));
    fmt::print("  loss    {:.4f} -> {:.4f}\n", r.loss.front(), r.loss.back());
  }
  if (spec.ranks > 1) {
    const std::string words = ParallelWords(spec);
    fmt::print("  ranks   {}{}, shard: {}, communicator: {}; memory is a rank's\n", spec.ranks,
               words.empty() ? "" : fmt::format(" ({})", words), spec.shard, PrintableLine(r.communicator));
  }
  fmt::print("  memory  planned peak {}", FormatBytes(r.memory.planned_peak_bytes));
  if (r.memory.rss_peak_bytes > 0) {
    fmt::print(", resident peak {} ({} beside the plan)", FormatBytes(r.memory.rss_peak_bytes),
               FormatBytes(r.memory.rss_peak_bytes - r.memory.planned_peak_bytes));
  }
  fmt::print("\n");
  for (const auto& [name, bytes] : r.memory.by_category) {
    if (bytes > 0) fmt::print("    {:<14} {:>9}\n", name, FormatBytes(bytes));
  }
}

void PrintProfile(const std::vector<OpProfile>& profile) {
  int64_t total_ns = 0;
  for (const OpProfile& op : profile) total_ns += op.ns;
  fmt::print("{:<22} {:>6} {:>10} {:>7} {:>9} {:>8}\n", "op", "calls", "time/step", "share", "GFLOP/s", "GB/s");
  for (const OpProfile& op : profile) {
    const auto ns = static_cast<double>(std::max<int64_t>(op.ns, 1));
    fmt::print("{:<22} {:>6} {:>10} {:>6.1f}% {:>9.1f} {:>8.1f}\n", op.name, op.calls, FormatDuration(op.ns),
               100 * ns / static_cast<double>(std::max<int64_t>(total_ns, 1)), op.flops / ns, op.bytes / ns);
  }
}

void Complain(std::string_view words) { fmt::print(stderr, "ridgeline-train: {}\n", PrintableText(words)); }
void Complain(const std::exception& error) { Complain(error.what()); }

// Writes the timeline of the mean of the measured steps. Returns false if the file cannot be written.
bool ExportTrace(const std::filesystem::path& file, const RunSpec& spec, const TrainOutcome& outcome) {
  if (outcome.timeline.spans().empty()) {
    fmt::print(stderr, "ridgeline-train: no step was measured here, so {} was not written\n",
               PrintableText(file.string()));
    return true;
  }
  const TraceAbout about{TraceTitle(spec),
                         "measured",
                         {{"device", outcome.result.device},
                          {"point", PointId(spec)},
                          {"rank", "0"},
                          {"ranks", std::to_string(spec.ranks)}}};
  try {
    WriteTraceFile(file, outcome.timeline, about);
    return true;
  } catch (const Error& error) {
    Complain(error);
    return false;
  }
}

int RunVerify(const TrainCommand& command, const DeviceMaker& open_cuda) {
  const VerifyReport report = Verify(command.verify_case, command.verify, open_cuda);
  fmt::print("{} in {}, checkpointing {}\n", report.name, command.verify.precision, command.verify.checkpointing);
  for (const VerifyLine& line : report.lines) {
    fmt::print("  {} {:<62} error {:.2e}  bound {:.0e}\n", line.ok() ? "ok  " : "FAIL", line.what, line.error,
               line.bound);
  }
  fmt::print("{}\n", report.ok() ? "verified" : "NOT verified");
  return report.ok() ? 0 : 1;
}

// Rank 0 writes the measurements to the result's file, and the progress line.
int RunCalibration(const TrainCommand& command, const CudaSupport& cuda, const ProgressLine& progress) {
  const bool first = IsFirstRank();
  DeviceCalibrationOptions options;
  options.budget_s = command.calibrate_s;
  options.small = cuda.emulated;
  options.open_cuda = cuda.open;
  options.device = command.device;
  options.on_progress = [&](int64_t done, int64_t total) {
    if (!first) return;
    progress.Write({done, total, 0, 0, 0});
  };
  const Json seen = CalibrateDevice(*command.spec, options);
  if (!first) return 0;
  if (!command.result_file.empty()) {
    WriteFileAtomic(command.result_file, DumpJson(seen) + "\n");
    return 0;
  }
  fmt::print("{}\n", DumpJson(seen));
  return 0;
}

// Runs the program for NVIDIA's GPUs in this process's place. Returns if that program is missing; opening the device
// then reports it.
void BecomeCudaTrainer(char* const* argv) { ::execv((ProgramDir() / "ridgeline-train-cuda").c_str(), argv); }

}  // namespace

int TrainMain(int argc, char* const* argv, const CudaSupport& cuda) {
  OpenStandardStreams();
  try {
    return RunTrainCommand(argc, argv, cuda);
  } catch (const Error& error) {
    Complain(error);
    switch (error.kind()) {
      case ErrorKind::kUsage:
      case ErrorKind::kInvalidInput:
        return static_cast<int>(TrainerExit::kInvalid);
      default:
        return static_cast<int>(TrainerExit::kCrashed);
    }
  } catch (const std::system_error& error) {
    Complain(SystemErrorWords(error));
    return static_cast<int>(TrainerExit::kCrashed);
  } catch (const std::exception& error) {
    Complain(error);
    return static_cast<int>(TrainerExit::kCrashed);
  }
}

int RunTrainCommand(int argc, char* const* argv, const CudaSupport& cuda) {
  const auto command = ParseTrainCommand(argc, argv);
  if (!command) return 0;
  const bool verify = !command->verify_case.empty();
  const bool for_gpus = command->gpus || (verify && command->verify.device == "cuda");
  if (for_gpus && !cuda.open) BecomeCudaTrainer(argv);
  if (command->gpus) {
    fmt::print("{}", cuda.describe ? cuda.describe() : "no GPUs: this trainer was built without the CUDA device\n");
    return 0;
  }
  if (verify) return RunVerify(*command, cuda.open);
  // A spec may be a pipe to which nobody writes. Until it is read, there is no step after which to leave.
  RunSpec spec =
      command->spec ? *command->spec : DecodeSpec(ReadJsonFile(command->spec_file), command->spec_file.string());
  ListenForLeave();
  if (command->budget) {
    PrintBudget(spec);
    return 0;
  }
  if (!command->export_trace.empty() && spec.device == "meta") {
    throw Error(ErrorKind::kUsage, "--export-trace writes a measured step, and on device: meta nothing is run",
                "`ridgeline predict SWEEP --device NAME --export-trace FILE` writes a predicted one");
  }
  if (spec.device == "cuda" && !cuda.open) BecomeCudaTrainer(argv);
  if (command->calibrate_s > 0) return RunCalibration(*command, cuda, ProgressLine());
  UseSageMakerCheckpointDir(command->spec ? "" : PointId(spec), spec);

  const bool first = IsFirstRank();  // one rank speaks for all
  if (command->fsdp && first) PrintFsdpHeader(spec);
  const ProgressLine progress;
  TrainOptions options;
  options.command_line.assign(argv, argv + argc);
  options.profile = command->profile || !command->export_trace.empty();
  // An emulated machine has no clocks to settle.
  if (spec.device == "cuda" && !cuda.emulated) {
    options.warmup_seconds = spec.warmup_seconds;
    options.measured_seconds = spec.measured_seconds;
  }
  options.open_cuda = cuda.open;
  options.device = command->device;
  options.resume = command->resume;
  options.told_to_leave = [] { return told_to_leave != 0; };
  options.on_note = [](const std::string& text) { fmt::print(stderr, "ridgeline-train: {}\n", PrintableText(text)); };
  options.device.on_note = options.on_note;
  // Tells whoever started the ranks that they have met.
  options.on_begin = [&](int64_t total) {
    if (first) progress.Write({0, total, 0, 0, 0});
  };
  options.on_step = [&](const StepReport& report) {
    if (!first) return;
    progress.Write(report);
    if (!command->fsdp) {
      fmt::print("step {}/{}  loss {:.4f}  {:.1f} tokens/s  {}\n", report.step, report.total, report.loss,
                 report.tokens_per_s, FormatDuration(report.step_ns));
      std::fflush(stdout);
    }
  };
  const TrainOutcome outcome = Train(spec, options);
  const RunResult& result = outcome.result;
  if (!command->result_file.empty() && first) {
    try {
      WriteFileAtomic(command->result_file, SealedText(EncodeResult(result)) + "\n");
    } catch (const Error& error) {
      fmt::print(stderr, "ridgeline-train: {}\n", error.what());
      return static_cast<int>(TrainerExit::kStorage);
    }
  }
  if (result.status != RunStatus::kOk) {
    fmt::print(stderr, "ridgeline-train: {}: {}\n", EndName(EndOf(result)), PrintableText(result.message));
    if (!result.hint.empty()) fmt::print(stderr, "  {}\n", PrintableText(result.hint));
    return static_cast<int>(ExitCodeOf(EndOf(result)));
  }
  if (!first) return 0;
  if (command->fsdp) {
    PrintFsdpResult(result);
  } else {
    PrintResult(spec, result);
  }
  if (command->profile) PrintProfile(outcome.profile);
  if (!command->export_trace.empty() && !ExportTrace(command->export_trace, spec, outcome)) {
    return static_cast<int>(TrainerExit::kStorage);
  }
  return 0;
}

}  // namespace ridgeline::engine
