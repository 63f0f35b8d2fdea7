#include <cstdio>
#include <exception>

#include "base/error.h"
#include "base/process.h"
#include "engine/cli/train_command.h"
#include "ridgeline/run.h"

int main(int argc, char** argv) {
  ridgeline::OpenStandardStreams();
  try {
    return ridgeline::RunTrainCommand(argc, argv);
  } catch (const ridgeline::Error& error) {
    std::fprintf(stderr, "ridgeline-train: %s\n", error.what());
    const bool bad_input =
        error.kind() == ridgeline::ErrorKind::kUsage || error.kind() == ridgeline::ErrorKind::kInvalidInput;
    return static_cast<int>(bad_input ? ridgeline::TrainerExit::kInvalid : ridgeline::TrainerExit::kCrashed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ridgeline-train: %s\n", error.what());
    return static_cast<int>(ridgeline::TrainerExit::kCrashed);
  }
}
