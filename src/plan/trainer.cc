#include "plan/trainer.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "plan/memory.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

bool IsProgram(const fs::path& file) { return fs::is_regular_file(file) && ::access(file.c_str(), X_OK) == 0; }

bool IsOnPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (IsProgram(fs::path(folder) / name)) return true;
  }
  return false;
}

}  // namespace

void RequireTrainer(const Sweep& sweep) {
  if (sweep.launch.trainer.empty()) return;
  const std::string& program = sweep.launch.trainer.front();
  // A relative path is of the folder that the trainer is started in, and a PATH of its own is looked along there.
  const bool elsewhere = fs::path(program).is_relative() &&
                         (program.find('/') != std::string::npos || sweep.launch.environment.contains("PATH"));
  if (elsewhere || (fs::path(program).is_absolute() ? IsProgram(program) : IsOnPath(program))) return;
  throw Error(ErrorKind::kInvalidInput,
              FaultText(sweep.file, {sweep.launch.place,
                                     fmt::format("trainer: there is no program '{}' here", PrintableLine(program))}),
              "name it by its whole path, or one that is on PATH");
}

std::string IdleRequest(const Launch& launch) {
  const auto own = launch.config.find(launch.launcher);
  if (!IsOurTrainer(launch) || own == launch.config.end() || !own->is_object()) return {};
  const auto gpus = own->find("gpus");
  if (gpus == own->end() || !gpus->is_number_integer() || *gpus <= 0) return {};
  return fmt::format(
      "{}: gpus asks for {} GPU{} a node, and ridgeline-train computes on none: name a `trainer` that does, "
      "or leave it out",
      launch.launcher, gpus->get<int64_t>(), *gpus == 1 ? "" : "s");
}

}  // namespace ridgeline
