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
  const bool is_path = program.find('/') != std::string::npos;
  // A PATH of its own is looked along where it is started.
  if (!is_path && sweep.launch.environment.contains("PATH")) return;
  if (is_path ? IsProgram(program) : IsOnPath(program)) return;
  throw Error(ErrorKind::kInvalidInput,
              FaultText(sweep.file, {sweep.launch.place,
                                     fmt::format("trainer: there is no program '{}' here", PrintableLine(program))}),
              "name it by its whole path, by one from the folder in which you start `ridgeline run`, or one on PATH");
}

std::string IdleRequest(const Launch& launch) {
  const auto own = launch.config.find(launch.launcher);
  if (!IsOurTrainer(launch) || own == launch.config.end() || !own->is_object()) return {};
  std::string asked;
  if (const auto gpus = own->find("gpus"); gpus != own->end() && gpus->is_number_integer() && *gpus > 0) {
    asked = fmt::format("gpus asks for {} GPU{}", gpus->get<int64_t>(), *gpus == 1 ? "" : "s");
  }
  if (const auto gres = own->find("gres"); gres != own->end() && gres->is_string()) {
    const auto text = gres->get<std::string>();
    if (text.starts_with("gpu") || text.find(",gpu") != std::string::npos)
      asked = "gres asks for " + PrintableLine(text);
  }
  if (asked.empty()) return {};
  return fmt::format(
      "{}: {} a node, and ridgeline-train computes on no GPU: name a `trainer` that does, or leave it out",
      launch.launcher, asked);
}

}  // namespace ridgeline
