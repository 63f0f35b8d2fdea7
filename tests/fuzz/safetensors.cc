// A safetensors file: its header is read whole or refused, and no tensor of it lies outside of the file. A tensor is
// given converted or refused.
#include "engine/train/safetensors.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  static const fuzz::Folder folder;
  folder.Write("model.safetensors", fuzz::TextOf(data, size));
  fuzz::Takes([&] {
    const SafetensorsFile tensors(folder.path() / "model.safetensors");
    for (const auto& tensor : tensors.entries()) {
      const SafetensorsFile::Entry& entry = tensor.second;
      std::vector<std::byte> bytes(static_cast<size_t>(entry.end - entry.begin));
      fuzz::Require(bytes.size() <= size, "a tensor lies in its file");
      tensors.ReadBytes(entry, 0, bytes);
      fuzz::Takes([&] { tensors.Floats(tensor.first); });
      fuzz::Takes([&] { tensors.Integers(tensor.first); });
    }
  });
  return 0;
}
