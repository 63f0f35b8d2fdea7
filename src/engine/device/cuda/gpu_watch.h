// How a GPU fares while a run uses it, as NVML says.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/nvml.h"
#include "ridgeline/run.h"

namespace ridgeline {

// Looks at one card every now and then, on a thread of its own: some ten questions to the driver, which take less than
// a millisecond. What NVML does not say of it is not taken. No call throws: a run goes on without these figures.
class GpuWatch {
 public:
  static constexpr std::chrono::milliseconds kPeriod{100};  // the driver's own counters move no faster than some 20 ms

  // `pci_bus_id`: the card, as cudaDeviceGetPCIBusId has it. REQUIRES: this process has no context on it yet. Who is on
  // it then is another, also in a container, where NVML's process numbers are not ours.
  explicit GpuWatch(const std::string& pci_bus_id, const Nvml& (*load)() = LoadNvml,
                    std::chrono::milliseconds period = kPeriod);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // The measured steps lie between these two. Each may be called once, and neither need be.
  void Begin();
  void End();

  // What was seen: of the card before the run, of the measured steps once they have ended, and of its memory's errors
  // up to now. Of a card that is cut into instances (MIG) nothing that others' instances take part in: power, energy,
  // who is on it.
  GpuFigures Figures() const;

  // Why there are no figures, and what to do about it; empty where there are.
  const std::string& problem() const { return problem_; }

 private:
  class Card;
  std::unique_ptr<Card> card_;  // null where there is a problem
  std::string problem_;
};

}  // namespace ridgeline
