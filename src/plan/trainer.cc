#include "plan/trainer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "plan/memory_limit.h"
#include "run/gpus.h"
#include "run/spec.h"
#include "sweep/job_description.h"
#include "sweep/launch.h"
#include "trainers/invocation.h"

namespace ridgeline::plan {
namespace {
namespace fs = std::filesystem;

std::string Path() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? "" : path;
}

// Returns "slurm: {gpus: 8}" for the setting "slurm: gpus".
std::string SettingText(const std::string& setting, int64_t value) {
  const size_t colon = setting.find(": ");
  if (colon == std::string::npos) return fmt::format("{}: {}", setting, value);
  return fmt::format("{}: {{{}: {}}}", setting.substr(0, colon), setting.substr(colon + 2), value);
}

int64_t RanksOfANode(const RunSpec& spec, const sweep::Launch& launch) {
  const int64_t nodes = std::max<int64_t>(launch.nodes, 1);
  return (ProcessesOf(spec) + nodes - 1) / nodes;
}

std::string OddGpus(const RunSpec& spec, const sweep::Launch& launch, const sweep::JobDescription& job) {
  if (!IsOurTrainer(launch) || !job.gpus) return {};
  const bool wanted = spec.device == "cuda";
  const sweep::JobDescription::Gpus& gpus = *job.gpus;
  const int64_t ranks = RanksOfANode(spec, launch);
  if (wanted && gpus.asked.empty()) {
    return fmt::format("{}: points have device: cuda, and no GPU is asked for: say how many a node, {}",
                       launch.launcher, SettingText(gpus.setting, ranks));
  }
  if (wanted && gpus.count > ranks) {
    return fmt::format(
        "{}: {} a node, and a point of {} there uses {}: say gpus: {}, or ranks: {} a node, or the rest is idle",
        launch.launcher, PrintableLine(gpus.asked), CountOf(ranks, "rank"), ranks, ranks, gpus.count);
  }
  if (wanted || gpus.asked.empty()) return {};
  return fmt::format(
      "{}: {} a node, and ridgeline-train uses none: say device: cuda, name a `trainer` that does, or leave it out",
      launch.launcher, PrintableLine(gpus.asked));
}

// Decides by the words in the name: HF_TOKEN and AWS_SECRET_ACCESS_KEY are secrets, TOKENIZERS_PARALLELISM is not. A
// path only says where a secret is.
bool IsSecret(const std::string& name, const std::string& value) {
  static constexpr std::array<std::string_view, 8> kWords = {"TOKEN",    "SECRET", "KEY",        "APIKEY",
                                                             "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS"};
  if (value.empty() || value.starts_with('/')) return false;
  std::string upper;
  for (const char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (size_t at = 0; at <= upper.size();) {
    const size_t end = std::min(upper.find('_', at), upper.size());
    if (std::ranges::find(kWords, std::string_view(upper).substr(at, end - at)) != kWords.end()) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

void RequireTrainer(const sweep::Sweep& sweep) {
  if (sweep.launch.trainer.empty()) return;
  const std::string& program = sweep.launch.trainer.front();
  const bool is_path = program.find('/') != std::string::npos;
  // If the sweep sets PATH, the program is searched along that when it is started.
  if (!is_path && sweep.launch.environment.contains("PATH")) return;
  if (!FindProgram(program, Path()).empty()) return;
  throw Error(ErrorKind::kInvalidInput,
              yaml::FaultText(sweep.file, {sweep.launch.place, fmt::format("trainer: there is no program '{}' here",
                                                                           PrintableLine(program))}),
              "name it by its whole path, by one from the folder in which you start `ridgeline run`, or one on PATH");
}

void RequirePrograms(const sweep::Sweep& sweep, const std::vector<Point>& points) {
  std::set<std::string> seen;
  for (const Point& point : points) {
    const std::string& name = point.spec.trainer;
    if (name == kOurTrainer || !seen.insert(name).second) continue;
    const sweep::Launch launch = sweep::LaunchOf(sweep, point);
    const auto wrong = [&](const std::string& what, const std::string& hint) {
      return Error(ErrorKind::kInvalidInput,
                   yaml::FaultText(sweep.file, {sweep.defaults_place, fmt::format("trainer {}: {}", name, what)}),
                   hint);
    };
    trainers::ProcessPlace place;
    place.environment = OwnEnvironment();
    for (const auto& [variable, value] : launch.environment) place.environment[variable] = value;
    std::string program;
    try {
      program = trainers::Invoke(*launch.definition->invocation, point.spec, place).argv.front();
    } catch (const Error& e) {
      throw wrong(e.message(), "set such variables under launch: environment");
    }
    const auto path = place.environment.find("PATH");
    if (FindProgram(program, path == place.environment.end() ? "" : path->second).empty()) {
      throw wrong(fmt::format("there is no program '{}' here", PrintableLine(program)),
                  "install it, or put it on PATH");
    }
  }
}

void RequireScheduler(const sweep::Sweep& sweep, const sweep::Launch& launch) {
  if (!launch.definition || launch.definition->invocation->processes != trainers::Processes::kSrun ||
      sweep::DescriptionOf(launch).has_srun) {
    return;
  }
  throw Error(
      ErrorKind::kInvalidInput,
      yaml::FaultText(sweep.file, {launch.place, fmt::format("trainer {} has its ranks started by srun, and the "
                                                             "launcher is {}",
                                                             launch.definition->name, launch.launcher)}),
      "use launcher: slurm, or a definition whose processes are ours or torchrun");
}

int64_t GpusOf(const sweep::Launch& launch) {
  const sweep::JobDescription job = sweep::DescriptionOf(launch);
  return job.gpus ? job.gpus->count : 0;
}

void RequireGpus(const sweep::Sweep& sweep, const RunSpec& spec, const sweep::Launch& launch) {
  if (spec.device != "cuda") return;
  const sweep::JobDescription::Gpus asked = sweep::DescriptionOf(launch).gpus.value_or(sweep::JobDescription::Gpus());
  if (asked.count == 0) return;
  const auto wrong = [&](const std::string& what, const std::string& hint) {
    return Error(ErrorKind::kInvalidInput, yaml::FaultText(sweep.file, {launch.PlaceOf(asked.setting), what}), hint);
  };
  const int64_t ranks = RanksOfANode(spec, launch);
  if (IsOurTrainer(launch) && ranks > asked.count) {
    throw wrong(fmt::format("a point has {} ranks on a node, and {} asks for {}: each rank needs its own", ranks,
                            asked.setting, CountOf(asked.count, "GPU")),
                fmt::format("say gpus: {}, or ranks_per_node: {} under launch:, for as many nodes as that needs", ranks,
                            asked.count));
  }
  if (const Gpu* gpu = FindGpu(spec.gpu); gpu != nullptr && IsOfAnotherFamily(asked.kind, *gpu)) {
    throw wrong(
        fmt::format("a point has gpu: {}, and {} asks for {}", spec.gpu, asked.setting, PrintableLine(asked.kind)),
        "name the same GPU in both; `ridgeline devices` lists those that gpu: takes");
  }
}

void RequireGpusHere(const sweep::Sweep& sweep, const std::vector<Point>& points, const GpusHere& here) {
  for (const Point& point : points) {
    const sweep::Launch launch = sweep::LaunchOf(sweep, point);
    const RunSpec& spec = point.spec;
    if (spec.device != "cuda" || !IsOurTrainer(launch)) continue;
    if (here.names.empty()) {
      throw Error(ErrorKind::kInfrastructure,
                  "points have device: cuda, and this machine has no GPU for them: " + PrintableLine(here.problem),
                  here.hint +
                      "\n  run the sweep where GPUs are (`launcher: NAME` of a cluster), or say device: cpu; "
                      "`ridgeline plan` needs none");
    }
    const Gpu* gpu = FindGpu(spec.gpu);
    const auto fit = gpu == nullptr ? std::ssize(here.names) : std::ranges::count(here.names, gpu->driver_name);
    const int64_t ranks = RanksOfANode(spec, launch);
    if (fit >= ranks) continue;
    if (fit > 0) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("a point has {} ranks, and this machine has {} for them: each rank needs its own", ranks,
                              CountOf(fit, "GPU")),
                  fmt::format("say ranks: {}, or run the sweep on a cluster, over several nodes", fit));
    }
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("points are to run on {} ({}), and this machine has {}", spec.gpu, gpu->driver_name,
                            PrintableLine(here.names.front())),
                "name the GPU that is here in gpu: (`ridgeline devices` lists the names)");
  }
}

std::string WhyNoCudaTrainer(const sweep::Sweep& sweep, const std::vector<Point>& points) {
  if (fs::exists(ProgramDir() / "ridgeline-train-cuda")) return {};
  for (const Point& point : points) {
    const sweep::Launch launch = sweep::LaunchOf(sweep, point);
    if (point.spec.device != "cuda" || !IsOurTrainer(launch) || !launch.trainer.empty()) continue;
    const sweep::JobDescription job = sweep::DescriptionOf(launch);
    if (!job.here && !job.has_srun) continue;  // such jobs run the programs of an image
    return "points have device: cuda, but this installation was built without the CUDA device";
  }
  return {};
}

std::vector<std::string> OddRequests(const RunSpec& spec, const sweep::Launch& launch) {
  const sweep::JobDescription job = sweep::DescriptionOf(launch);
  std::vector<std::string> odd;
  if (std::string gpus = OddGpus(spec, launch, job); !gpus.empty()) odd.push_back(std::move(gpus));
  odd.insert(odd.end(), job.warnings.begin(), job.warnings.end());
  for (const auto& [name, value] : launch.environment) {
    if (IsSecret(name, value)) {
      odd.push_back(
          fmt::format("environment: {} looks like a secret, and its value is kept with every result: {}", name,
                      job.secrets.empty() ? "set it where you start ridgeline, or name a file that the trainer reads"
                                          : job.secrets));
    }
  }
  return odd;
}

}  // namespace ridgeline::plan
