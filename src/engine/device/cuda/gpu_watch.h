// Watches a GPU through NVML while a run uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/nvml.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// Samples one card periodically on its own thread: about ten queries to the driver, which take less than a millisecond.
// Figures that NVML does not report are not taken. No call throws: a run continues without these figures.
class GpuWatch {
 public:
  static constexpr std::chrono::milliseconds kPeriod{100};  // the driver's own counters move no faster than some 20 ms

  // The duration from which power is computed as energy over time: the energy counter changes every tenth of a second.
  static constexpr std::chrono::milliseconds kEnergyTells{1000};

  // `pci_bus_id`: the card, as from cudaDeviceGetPCIBusId. REQUIRES: this process has no context on it yet. Then any
  // process on it is another one, even in a container, where NVML's process numbers are not ours.
  explicit GpuWatch(const std::string& pci_bus_id, const Nvml& (*load)() = LoadNvml,
                    std::chrono::milliseconds period = kPeriod, std::chrono::milliseconds energy_tells = kEnergyTells);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // Called before and after the measured steps. Each may be called at most once.
  void Begin();
  void End();

  // The figures: those of the card before the run, those of the measured steps once they have ended, and its memory
  // errors up to now. For a card that is divided into instances (MIG), omits everything that includes other instances:
  // power, energy and the processes on it.
  GpuFigures Figures() const;

  // The memory of the card that this process holds now, and the most in any sample. Nothing if NVML does not report it,
  // or if it cannot distinguish this process: in a container, if others were there before.
  std::optional<int64_t> OwnBytes();
  std::optional<int64_t> MostOwnBytes() const;

  // The driver's version, and whether the card is divided into instances, in words; empty if unknown.
  std::string driver() const;
  std::string mig() const;

  // Why there are no figures, and what to do about it; empty if there are some.
  const std::string& problem() const { return problem_; }

 private:
  class Card;
  std::unique_ptr<Card> card_;  // null if there is a problem
  std::string problem_;
};

}  // namespace ridgeline::engine
