// The files beside weights to start from: their model's configuration, and the index of their files. Each is accepted
// or refused. An index names only files in its folder, and this one has none, so every index is refused.
#include "engine/step/program.h"
#include "engine/train/model_config.h"
#include "engine/train/weights_folder.h"
#include "run/spec.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  static const fuzz::Folder folder;
  static const engine::StepProgram program = [] {
    std::vector<Problem> problems;
    return engine::BuildStep(BuildSpec({{"model", "llama-5m"}}, problems));
  }();
  folder.Write(engine::kModelConfigName, fuzz::TextOf(data, size));
  fuzz::Takes([&] { engine::CheckModelConfig(folder.path(), program.spec); });

  folder.Write(engine::kModelConfigName, engine::EncodeModelConfig(program.spec, "F32"));
  folder.Write("model.safetensors.index.json", fuzz::TextOf(data, size));
  fuzz::Require(!fuzz::Takes([&] { const engine::WeightsFolder weights(folder.path(), program); }),
                "no weights are there");
  return 0;
}
