#include "engine/device/cuda/gpu_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>

#include "base/error.h"
#include "run/gpu_limits.h"

namespace ridgeline::engine {
class GpuWatch::Card {
 public:
  Card(const std::string& pci_bus_id, const Nvml& (*load)(), std::chrono::milliseconds period,
       std::chrono::milliseconds energy_tells)
      : session_(load),
        device_(session_.Device(pci_bus_id)),
        period_(period),
        energy_tells_(energy_tells),
        mig_(session_.IsMig(device_)),
        corrected_before_(EccErrors(kNvmlCorrected)),
        uncorrected_before_(EccErrors(kNvmlUncorrected)) {
    if (!mig_) LookWhoIsThere();
  }

  void Begin() {
    energy_before_ = Energy();
    began_ = Clock::now();
    thread_ = std::jthread([this](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      do {
        Sample();
        lock.unlock();
        OwnBytes();
        lock.lock();
      } while (!wake_.wait_for(lock, stop, period_, [&] { return stop.stop_requested(); }));
      Sample();  // the last step's sample: in a short run it may be the only one
    });
  }

  void End() {
    const std::optional<double> energy = Energy();
    seconds_ = std::chrono::duration<double>(Clock::now() - began_).count();
    if (energy && energy_before_) energy_j_ = std::max(0.0, *energy - *energy_before_);
    thread_ = {};  // asks it to stop, and waits
  }

  GpuFigures Figures() {
    const std::lock_guard lock(mutex_);
    GpuFigures figures;
    // Uses the energy counter, which misses nothing between samples.
    figures.power_w = energy_j_ && seconds_ > 0 && seconds_ >= std::chrono::duration<double>(energy_tells_).count()
                          ? *energy_j_ / seconds_
                          : samples_.power_w.value();
    figures.power_max_w = samples_.power_max_w;
    figures.power_limit_w = PowerLimit();
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

  std::optional<int64_t> OwnBytes() {
    if (mig_) return {};
    std::array<NvmlProcess, kMostProcesses> list;
    auto count = static_cast<unsigned>(list.size());
    if (!session_.Said(&Nvml::nvmlDeviceGetComputeRunningProcesses_v3, device_, &count, list.data())) return {};
    const auto listed = std::span(list).first(std::min<size_t>(count, list.size()));
    auto own = std::ranges::find(listed, static_cast<unsigned>(::getpid()), &NvmlProcess::pid);
    // In a container, the driver's number for this process differs from ours.
    if (own == listed.end() && listed.size() == 1 && others_ == 0) own = listed.begin();
    if (own == listed.end() || own->used_bytes == kNvmlValueNotAvailable) return {};
    const auto bytes = static_cast<int64_t>(own->used_bytes);
    const std::lock_guard lock(mutex_);
    samples_.own_bytes = std::max(samples_.own_bytes.value_or(0), bytes);
    return bytes;
  }
  std::optional<int64_t> MostOwnBytes() {
    const std::lock_guard lock(mutex_);
    return samples_.own_bytes;
  }

  std::string Driver() const {
    std::array<char, 96> text{};
    return session_.Said(&Nvml::nvmlSystemGetDriverVersion, text.data(), 95U) ? text.data() : "";
  }
  bool mig() const { return mig_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMostProcesses = 64;

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
  // The samples of the measured steps.
  struct Samples {
    Mean power_w, sm_clock_mhz, memory_clock_mhz, throttled;
    std::optional<double> power_max_w, sm_clock_min_mhz, temperature_c;
    std::optional<int64_t> own_bytes;
    std::map<std::string, int64_t> clock_limits;
  };

  static std::optional<int64_t> Since(const std::optional<int64_t>& before, const std::optional<int64_t>& now) {
    if (!before || !now) return std::nullopt;
    return std::max<int64_t>(0, *now - *before);  // someone may have reset the counter
  }

  std::optional<int64_t> EccErrors(NvmlEccError of) const {
    unsigned long long count = 0;
    if (!session_.Said(&Nvml::nvmlDeviceGetTotalEccErrors, device_, of, kNvmlSinceDriverLoaded, &count)) return {};
    return static_cast<int64_t>(count);
  }

  // Energy in joules since the driver was loaded.
  std::optional<double> Energy() const {
    unsigned long long millijoules = 0;
    if (mig_ || !session_.Said(&Nvml::nvmlDeviceGetTotalEnergyConsumption, device_, &millijoules)) return {};
    return static_cast<double>(millijoules) * 1e-3;
  }

  void LookWhoIsThere() {
    // Without a buffer for the list, it returns the list's length.
    const auto list = session_.nvml().nvmlDeviceGetComputeRunningProcesses_v3;
    unsigned count = 0;
    const NvmlReturn said = list != nullptr ? list(device_, &count, nullptr) : kNvmlNotSupported;
    if (said == kNvmlSuccess || said == kNvmlInsufficientSize) others_ = count;
    // In a container, the list may be empty although the card is in use.
    NvmlMemory memory;
    if (!session_.Said(&Nvml::nvmlDeviceGetMemoryInfo_v2, device_, &memory)) return;
    others_bytes_ = static_cast<int64_t>(memory.total) - static_cast<int64_t>(memory.reserved + memory.free);
    others_bytes_ = std::max<int64_t>(0, *others_bytes_);
  }

  std::optional<double> PowerLimit() const {
    unsigned milliwatts = 0;
    if (mig_ || !session_.Said(&Nvml::nvmlDeviceGetEnforcedPowerLimit, device_, &milliwatts)) return {};
    return milliwatts * 1e-3;
  }

  // The power at this moment. On most cards, nvmlDeviceGetPowerUsage returns the mean over the last second instead.
  std::optional<double> PowerNow() const {
    NvmlFieldValue power;
    power.field = kNvmlPowerInstant;
    if (mig_ || !session_.Said(&Nvml::nvmlDeviceGetFieldValues, device_, 1, &power)) return {};
    if (power.said != kNvmlSuccess || power.type != kNvmlUnsigned) return {};
    return power.value.number * 1e-3;
  }

  std::optional<double> ClockOf(NvmlClock of) const {
    unsigned mhz = 0;
    if (!session_.Said(&Nvml::nvmlDeviceGetClockInfo, device_, of, &mhz)) return {};
    return mhz;
  }

  void Sample() {
    if (const auto power_w = PowerNow()) {
      samples_.power_w.Add(*power_w);
      samples_.power_max_w = std::max(samples_.power_max_w.value_or(0), *power_w);
    }
    if (const auto mhz = ClockOf(kNvmlClockSm)) {
      samples_.sm_clock_mhz.Add(*mhz);
      samples_.sm_clock_min_mhz = std::min(samples_.sm_clock_min_mhz.value_or(*mhz), *mhz);
    }
    if (const auto mhz = ClockOf(kNvmlClockMemory)) samples_.memory_clock_mhz.Add(*mhz);
    unsigned number = 0;
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
  const std::chrono::milliseconds energy_tells_;
  const bool mig_;
  const std::optional<int64_t> corrected_before_, uncorrected_before_;
  std::optional<int64_t> others_, others_bytes_;
  std::optional<double> energy_before_, energy_j_;
  Clock::time_point began_;
  double seconds_ = 0;

  std::mutex mutex_;
  Samples samples_;  // guarded by the mutex
  std::condition_variable_any wake_;
  std::jthread thread_;  // last member, so that it ends before the members that it uses
};

GpuWatch::GpuWatch(const std::string& pci_bus_id, const Nvml& (*load)(), std::chrono::milliseconds period,
                   std::chrono::milliseconds energy_tells) {
  try {
    card_ = std::make_unique<Card>(pci_bus_id, load, period, energy_tells);
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

std::optional<int64_t> GpuWatch::OwnBytes() { return card_ ? card_->OwnBytes() : std::nullopt; }
std::optional<int64_t> GpuWatch::MostOwnBytes() const { return card_ ? card_->MostOwnBytes() : std::nullopt; }
std::string GpuWatch::driver() const { return card_ ? card_->Driver() : ""; }
std::string GpuWatch::mig() const { return card_ ? card_->mig() ? "on" : "off" : ""; }

GpuFigures GpuWatch::Figures() const { return card_ ? card_->Figures() : GpuFigures(); }

}  // namespace ridgeline::engine
