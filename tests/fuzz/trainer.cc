// A trainer's definition is read whole, or refused with the place of each mistake. A definition that was read is
// applied to a log.
#include "tests/fuzz/fuzz.h"

#include "trainers/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  fuzz::Takes([&] {
    const trainers::Trainer trainer = trainers::ParseTrainer(fuzz::TextOf(data, size), "mine.yaml");
    fuzz::Require(trainer.name == "mine", "a definition has its file's name");
    const auto log = [](const auto& feed) { feed("step 1 loss 2.5 time 3 ms mem 4 GiB v1.0\nstep 2 loss nan\n"); };
    const trainers::Reading reading = trainers::ReadLog(trainer, log, {});
    for (const trainers::FoundMetric& found : reading.found) {
      fuzz::Require(found.metric != nullptr && (!found.values.empty() || !found.text.empty()),
                    "a found metric has a value");
    }
  });
  return 0;
}
