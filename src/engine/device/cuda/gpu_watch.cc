#include "engine/device/cuda/gpu_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/error.h"
#include "run/gpu_limits.h"

namespace ridgeline {
class GpuWatch::Card {
 public:
  Card(const std::string& pci_bus_id, const Nvml& (*load)(), std::chrono::milliseconds period)
      : session_(load),
        device_(session_.Device(pci_bus_id)),
        period_(period),
        mig_(session_.IsMig(device_)),
        corrected_before_(EccErrors(kNvmlCorrected)),
        uncorrected_before_(EccErrors(kNvmlUncorrected)) {
    if (!mig_) LookWhoIsThere();
  }

  void Begin() {
    energy_before_ = Energy();
    thread_ = std::jthread([this](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      do {
        Sample();
      } while (!wake_.wait_for(lock, stop, period_, [&] { return stop.stop_requested(); }));
      Sample();  // the last step's: of a short run it may be the only one
    });
  }

  void End() {
    const std::optional<double> energy = Energy();
    if (energy && energy_before_) energy_j_ = std::max(0.0, *energy - *energy_before_);
    thread_ = {};  // asks it to stop, and waits
  }

  GpuFigures Figures() {
    const std::lock_guard lock(mutex_);
    GpuFigures figures;
    figures.power_w = samples_.power_w.value();
    figures.energy_j = energy_j_;
    figures.sm_clock_mhz = samples_.sm_clock_mhz.value();
    figures.sm_clock_min_mhz = samples_.sm_clock_min_mhz;
    figures.memory_clock_mhz = samples_.memory_clock_mhz.value();
    figures.temperature_c = samples_.temperature_c;
    figures.throttled_share = samples_.throttled.value();
    figures.clock_limits = samples_.clock_limits;
    figures.ecc_corrected = Since(corrected_before_, EccErrors(kNvmlCorrected));
    figures.ecc_uncorrected = Since(uncorrected_before_, EccErrors(kNvmlUncorrected));
    figures.others = others_;
    figures.others_bytes = others_bytes_;
    return figures;
  }

 private:
  struct Mean {
    double sum = 0;
    int64_t count = 0;
    void Add(double value) {
      sum += value;
      ++count;
    }
    std::optional<double> value() const {
      return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
    }
  };
  // What was seen in the measured steps.
  struct Samples {
    Mean power_w, sm_clock_mhz, memory_clock_mhz, throttled;
    std::optional<double> sm_clock_min_mhz, temperature_c;
    std::map<std::string, int64_t> clock_limits;
  };

  static std::optional<int64_t> Since(const std::optional<int64_t>& before, const std::optional<int64_t>& now) {
    if (!before || !now) return std::nullopt;
    return std::max<int64_t>(0, *now - *before);  // somebody may have set the counter to 0
  }

  std::optional<int64_t> EccErrors(NvmlEccError of) const {
    unsigned long long count = 0;
    if (!session_.Said(&Nvml::nvmlDeviceGetTotalEccErrors, device_, of, kNvmlSinceDriverLoaded, &count)) return {};
    return static_cast<int64_t>(count);
  }

  // In joules, since the driver was loaded.
  std::optional<double> Energy() const {
    unsigned long long millijoules = 0;
    if (mig_ || !session_.Said(&Nvml::nvmlDeviceGetTotalEnergyConsumption, device_, &millijoules)) return {};
    return static_cast<double>(millijoules) * 1e-3;
  }

  void LookWhoIsThere() {
    // Without room for a list it says how long that is.
    const auto list = session_.nvml().nvmlDeviceGetComputeRunningProcesses_v3;
    unsigned count = 0;
    const NvmlReturn said = list != nullptr ? list(device_, &count, nullptr) : kNvmlNotSupported;
    if (said == kNvmlSuccess || said == kNvmlInsufficientSize) others_ = count;
    // In a container the list may be empty where the card is not.
    NvmlMemory memory;
    if (!session_.Said(&Nvml::nvmlDeviceGetMemoryInfo_v2, device_, &memory)) return;
    others_bytes_ = static_cast<int64_t>(memory.total) - static_cast<int64_t>(memory.reserved + memory.free);
    others_bytes_ = std::max<int64_t>(0, *others_bytes_);
  }

  std::optional<double> Clock(NvmlClock of) const {
    unsigned mhz = 0;
    if (!session_.Said(&Nvml::nvmlDeviceGetClockInfo, device_, of, &mhz)) return {};
    return mhz;
  }

  void Sample() {
    unsigned number = 0;
    if (!mig_ && session_.Said(&Nvml::nvmlDeviceGetPowerUsage, device_, &number)) samples_.power_w.Add(number * 1e-3);
    if (const auto mhz = Clock(kNvmlClockSm)) {
      samples_.sm_clock_mhz.Add(*mhz);
      samples_.sm_clock_min_mhz = std::min(samples_.sm_clock_min_mhz.value_or(*mhz), *mhz);
    }
    if (const auto mhz = Clock(kNvmlClockMemory)) samples_.memory_clock_mhz.Add(*mhz);
    if (session_.Said(&Nvml::nvmlDeviceGetTemperature, device_, kNvmlTemperatureGpu, &number)) {
      samples_.temperature_c = std::max(samples_.temperature_c.value_or(0), static_cast<double>(number));
    }
    unsigned long long bits = 0;
    if (!session_.Said(&Nvml::nvmlDeviceGetCurrentClocksThrottleReasons, device_, &bits)) return;
    bool throttled = false;
    for (const GpuClockLimit& limit : GpuClockLimits()) {
      if ((bits & limit.nvml_bit) == 0) continue;
      ++samples_.clock_limits[std::string(limit.name)];
      throttled = throttled || limit.costs_speed;
    }
    samples_.throttled.Add(throttled ? 1 : 0);
  }

  const NvmlSession session_;
  const NvmlDevice device_;
  const std::chrono::milliseconds period_;
  const bool mig_;
  const std::optional<int64_t> corrected_before_, uncorrected_before_;
  std::optional<int64_t> others_, others_bytes_;
  std::optional<double> energy_before_, energy_j_;

  std::mutex mutex_;
  Samples samples_;  // under it
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it is over before what it uses
};

GpuWatch::GpuWatch(const std::string& pci_bus_id, const Nvml& (*load)(), std::chrono::milliseconds period) {
  try {
    card_ = std::make_unique<Card>(pci_bus_id, load, period);
  } catch (const Error& e) {
    problem_ = e.hint().empty() ? e.message() : fmt::format("{}; {}", e.message(), e.hint());
  }
}

GpuWatch::~GpuWatch() = default;

void GpuWatch::Begin() {
  if (card_) card_->Begin();
}

void GpuWatch::End() {
  if (card_) card_->End();
}

GpuFigures GpuWatch::Figures() const { return card_ ? card_->Figures() : GpuFigures(); }

}  // namespace ridgeline
