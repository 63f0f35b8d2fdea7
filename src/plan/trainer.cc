#include "plan/trainer.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "plan/memory.h"

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
