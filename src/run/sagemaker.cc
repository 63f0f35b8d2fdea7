#include "run/sagemaker.h"

#include <unistd.h>

#include <string>

namespace ridgeline {
namespace {

// The toolkit in SageMaker's images sets SM_… variables; the service itself sets this one.
bool OnSageMaker() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("SM_") || text.starts_with("TRAINING_JOB_NAME=")) return true;
  }
  return false;
}

}  // namespace

void UseSageMakerCheckpointDir(std::string_view folder, RunSpec& spec, const std::filesystem::path& root) {
  if (!spec.checkpoint_dir.empty() || spec.device == "meta" || spec.communicator == "virtual") return;
  const std::filesystem::path dir = root / "opt/ml/checkpoints";
  std::error_code ec;
  if (!OnSageMaker() || !std::filesystem::is_directory(dir, ec)) return;
  spec.checkpoint_dir = folder.empty() ? dir : dir / folder;
}

}  // namespace ridgeline
