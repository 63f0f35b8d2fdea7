// How a GPU fares while a run uses it, as NVML says.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/nvml.h"
#include "ridgeline/run.h"

namespace ridgeline {

// Looks at one card every now and then, on a thread of its own: some ten questions to the driver, which take less than
// a millisecond. What NVML does not say of it is not taken. No call throws: a run goes on without these figures.
class GpuWatch {
 public:
  static constexpr std::chrono::milliseconds kPeriod{100};  // the driver's own counters move no faster than some 20 ms

  // From when on power is energy over time: the counter of energy moves every tenth of a second.
  static constexpr std::chrono::milliseconds kEnergyTells{1000};

  // `pci_bus_id`: the card, as cudaDeviceGetPCIBusId has it. REQUIRES: this process has no context on it yet. Who is on
  // it then is another, also in a container, where NVML's process numbers are not ours.
  explicit GpuWatch(const std::string& pci_bus_id, const Nvml& (*load)() = LoadNvml,
                    std::chrono::milliseconds period = kPeriod, std::chrono::milliseconds energy_tells = kEnergyTells);
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

  // What this process holds of the card's memory now, and has held at a moment that was looked at, the most; nothing
  // where NVML does not say it, or does not tell this process from others: in a container, where others were there
  // before.
  std::optional<int64_t> OwnBytes();
  std::optional<int64_t> MostOwnBytes() const;

  // The driver's version, and whether the card is cut into instances, in words; empty where nobody says.
  std::string driver() const;
  std::string mig() const;

  // Why there are no figures, and what to do about it; empty where there are.
  const std::string& problem() const { return problem_; }

 private:
  class Card;
  std::unique_ptr<Card> card_;  // null where there is a problem
  std::string problem_;
};

}  // namespace ridgeline
