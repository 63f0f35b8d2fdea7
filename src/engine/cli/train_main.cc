#include <cstdio>
#include <exception>

#include "base/error.h"
#include "base/text.h"
#include "engine/cli/train_command.h"
#include "ridgeline/run.h"
#include "ridgeline/standard_streams.h"

namespace {

void Complain(const std::exception& error) {
  std::fprintf(stderr, "ridgeline-train: %s\n", ridgeline::PrintableText(error.what()).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  ridgeline::OpenStandardStreams();
  try {
    return ridgeline::RunTrainCommand(argc, argv);
  } catch (const ridgeline::Error& error) {
    Complain(error);
    const bool bad_input =
        error.kind() == ridgeline::ErrorKind::kUsage || error.kind() == ridgeline::ErrorKind::kInvalidInput;
    return static_cast<int>(bad_input ? ridgeline::TrainerExit::kInvalid : ridgeline::TrainerExit::kCrashed);
  } catch (const std::exception& error) {
    Complain(error);
    return static_cast<int>(ridgeline::TrainerExit::kCrashed);
  }
}
