#include "plan/trainer.h"

#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "plan/memory.h"
#include "sweep/launch.h"
#include "trainers/invocation.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

std::string Path() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? "" : path;
}

}  // namespace

void RequireTrainer(const Sweep& sweep) {
  if (sweep.launch.trainer.empty()) return;
  const std::string& program = sweep.launch.trainer.front();
  const bool is_path = program.find('/') != std::string::npos;
  // A PATH of its own is looked along where it is started.
  if (!is_path && sweep.launch.environment.contains("PATH")) return;
  if (!FindProgram(program, Path()).empty()) return;
  throw Error(ErrorKind::kInvalidInput,
              FaultText(sweep.file, {sweep.launch.place,
                                     fmt::format("trainer: there is no program '{}' here", PrintableLine(program))}),
              "name it by its whole path, by one from the folder in which you start `ridgeline run`, or one on PATH");
}

void RequirePrograms(const Sweep& sweep, const std::vector<Point>& points) {
  std::set<std::string> seen;
  for (const Point& point : points) {
    const std::string& name = point.spec.trainer;
    if (name == kOurTrainer || !seen.insert(name).second) continue;
    const Launch launch = LaunchOf(sweep, point);
    const auto wrong = [&](const std::string& what, const std::string& hint) {
      return Error(ErrorKind::kInvalidInput,
                   FaultText(sweep.file, {sweep.defaults_place, fmt::format("trainer {}: {}", name, what)}), hint);
    };
    ProcessPlace place;
    place.environment = OwnEnvironment();
    for (const auto& [variable, value] : launch.environment) place.environment[variable] = value;
    std::string program;
    try {
      program = Invoke(*launch.definition->invocation, point.spec, place).argv.front();
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

void RequireScheduler(const Sweep& sweep, const Launch& launch) {
  if (!launch.definition || launch.definition->invocation->processes != Processes::kSrun ||
      launch.launcher == "slurm") {
    return;
  }
  throw Error(ErrorKind::kInvalidInput,
              FaultText(sweep.file, {launch.place, fmt::format("trainer {} has its ranks started by srun, and the "
                                                               "launcher is {}",
                                                               launch.definition->name, launch.launcher)}),
              "use launcher: slurm, or a definition whose processes are ours or torchrun");
}

int64_t GpusOf(const Launch& launch) {
  const auto own = launch.config.find(launch.launcher);
  if (own == launch.config.end() || !own->is_object()) return 0;
  const auto gpus = own->find("gpus");
  return gpus == own->end() || !gpus->is_number_integer() ? 0 : gpus->get<int64_t>();
}

std::string OddRequest(const RunSpec& spec, const Launch& launch) {
  if (!IsOurTrainer(launch)) return {};
  const bool wanted = spec.device == "cuda";
  std::string asked;
  if (const int64_t gpus = GpusOf(launch); gpus > 0) {
    asked = fmt::format("gpus asks for {} GPU{}", gpus, gpus == 1 ? "" : "s");
  }
  const auto own = launch.config.find(launch.launcher);
  if (own != launch.config.end() && own->is_object() && own->contains("gres") && own->at("gres").is_string()) {
    const auto text = own->at("gres").get<std::string>();
    if (text.starts_with("gpu") || text.find(",gpu") != std::string::npos)
      asked = "gres asks for " + PrintableLine(text);
  }
  if (wanted && asked.empty() && launch.launcher != "local") {
    return fmt::format("{0}: points have device: cuda, and no GPU is asked for: say how many a node, {0}: {{gpus: 8}}",
                       launch.launcher);
  }
  if (wanted || asked.empty()) return {};
  return fmt::format(
      "{}: {} a node, and ridgeline-train uses none: say device: cuda, name a `trainer` that does, or leave it out",
      launch.launcher, asked);
}

}  // namespace ridgeline
