// The header of a safetensors file is read whole or refused, and none of its tensors lies outside the file. A tensor is
// converted or refused. The bytes are also the header of a checkpoint file in a folder with a valid manifest: a run
// that resumes from it takes all of its state from there, or refuses it and keeps its own state to the bit.
#include "engine/train/safetensors.h"

#include "base/hash.h"
#include "engine/comm/communicator.h"
#include "engine/device/cpu/executor.h"
#include "engine/train/checkpoint_files.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/model_state.h"
#include "run/spec.h"
#include "tests/fuzz/fuzz.h"

namespace ridgeline::fuzz {
namespace {

// A model in memory that resumes from checkpoint files.
class Resuming {
 public:
  Resuming() { model_.Initialize(); }

  void From(const Folder& folder, std::string_view header) {
    const std::string name = "model-00001-of-00001.safetensors";
    const uint64_t size = header.size();
    std::string file(reinterpret_cast<const char*>(&size), sizeof size);
    file.append(header).append(bytes_, '\0');
    folder.Write(name, file);
    engine::Manifest manifest{1, program_.spec, {}, {{name, std::ssize(file), Hex(Hash(file))}}};
    manifest.history.loss = {1.5};
    manifest.history.step_ns = {10};
    folder.Write(engine::kManifestName, engine::EncodeManifest(manifest));
    const std::string before = State();
    if (!Takes([&] { engine::Load(engine::OpenSaved(folder.path()), program_.spec, state_); })) {
      Require(State() == before, "a refused file changes nothing");
    }
  }

 private:
  static RunSpec Spec() {
    std::vector<Problem> problems;
    return BuildSpec({{"family", "llama"},
                      {"layers", 1},
                      {"hidden", 8},
                      {"heads", 1},
                      {"ffn", 8},
                      {"vocab", 16},
                      {"seq_length", 8},
                      {"steps", 10}},
                     problems);
  }
  std::string State() {
    std::string all;
    for (const engine::StateTensor& tensor : state_.tensors()) {
      std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes()));
      state_.Read(tensor, 0, bytes);
      all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return all;
  }

  engine::StepProgram program_ = engine::BuildStep(Spec());
  engine::CpuExecutor executor_{program_.trace, program_.layout, engine::CpuKernels()};
  engine::ModelState model_{program_, executor_};
  std::unique_ptr<engine::Communicator> alone_ = engine::MakeSelfCommunicator();
  engine::TrainingState state_{program_, executor_, *alone_};
  size_t bytes_ = State().size();
};

}  // namespace
}  // namespace ridgeline::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  static const fuzz::Folder folder;
  folder.Write("model.safetensors", fuzz::TextOf(data, size));
  fuzz::Takes([&] {
    const engine::SafetensorsFile tensors(folder.path() / "model.safetensors");
    for (const auto& tensor : tensors.entries()) {
      const engine::SafetensorsFile::Entry& entry = tensor.second;
      std::vector<std::byte> bytes(static_cast<size_t>(entry.end - entry.begin));
      fuzz::Require(bytes.size() <= size, "a tensor is inside its file");
      tensors.ReadBytes(entry, 0, bytes);
      fuzz::Takes([&] { tensors.Floats(tensor.first); });
      fuzz::Takes([&] { tensors.Integers(tensor.first); });
    }
  });
  static fuzz::Resuming resuming;
  static const fuzz::Folder saved;
  resuming.From(saved, fuzz::TextOf(data, size));
  return 0;
}
