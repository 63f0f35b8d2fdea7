// A device's or a framework's description is read whole, or refused with the place of each mistake.
#include "tests/fuzz/fuzz.h"

#include "predict/device.h"
#include "predict/framework.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  fuzz::Takes([&] {
    const predict::Device device = predict::ParseDevice(fuzz::TextOf(data, size), "mine.yaml", {});
    fuzz::Require(device.name == "mine", "a device has its file's name");
    for (const predict::DeviceFigureKind& kind : predict::DeviceFigureKinds()) {
      if (kind.required) fuzz::Require(device.At(std::string(kind.name)) > 0, "a GPU has its required figures");
    }
  });
  fuzz::Takes([&] {
    fuzz::Require(predict::ParseFramework(fuzz::TextOf(data, size), "mine.yaml").name == "mine",
                  "a framework has its file's name");
  });
  return 0;
}
