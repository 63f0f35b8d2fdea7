// The tests' own NVML: one card that does what a test says, with calls that are missing or fail.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/nvml.h"

namespace ridgeline {

struct FakeCard {
  NvmlReturn begins = kNvmlSuccess;
  std::string bus_id = "0000:1B:00.0";
  unsigned others = 0;                 // processes on it
  std::vector<NvmlProcess> processes;  // those of them with an entry of their own
  unsigned long long others_bytes = 0;
  bool mig = false;
  unsigned milliwatts = 500'000;
  unsigned long long millijoules_a_look = 25'000;  // its energy grows by this each time it is read
  unsigned sm_mhz = 1800;
  unsigned memory_mhz = 2600;
  unsigned celsius = 60;
  unsigned long long limits = 0;  // bits
  unsigned long long corrected = 7, uncorrected = 0;
  int repair_pending = 0;
  std::map<std::string_view, NvmlReturn> says;  // by call; replaces success

  // Counters.
  std::mutex mutex;
  int sessions = 0;  // open sessions
  int looks = 0;     // reads of its clock limits
  unsigned long long millijoules = 1'000'000;
};

// The card of the running test.
inline FakeCard*& ThisCard() {
  static FakeCard* card = nullptr;
  return card;
}

namespace fake_nvml {

// Returns what the test wants the call to return. If that is success, runs `then`.
template <typename Then>
NvmlReturn Call(std::string_view name, const Then& then) {
  FakeCard& card = *ThisCard();
  const std::lock_guard lock(card.mutex);
  if (const auto found = card.says.find(name); found != card.says.end()) return found->second;
  return then(card), kNvmlSuccess;
}

inline void Put(std::string_view text, char* to, unsigned length) {
  const size_t count = std::min<size_t>(text.size(), length - 1);
  std::memcpy(to, text.data(), count);
  to[count] = '\0';
}

inline NvmlDevice TheDevice() { return reinterpret_cast<NvmlDevice>(&ThisCard()); }

}  // namespace fake_nvml

inline Nvml MakeFakeNvml() {
  using fake_nvml::Call;
  Nvml fake;
  fake.nvmlInit_v2 = [] {
    FakeCard& card = *ThisCard();
    if (card.begins == kNvmlSuccess) ++card.sessions;
    return card.begins;
  };
  fake.nvmlShutdown = [] {
    --ThisCard()->sessions;
    return kNvmlSuccess;
  };
  fake.nvmlErrorString = [](NvmlReturn said) { return said == kNvmlNotSupported ? "Not Supported" : "Another Error"; };
  fake.nvmlDeviceGetHandleByPciBusId_v2 = [](const char* bus_id, NvmlDevice* device) {
    if (ThisCard()->bus_id != bus_id) return kNvmlNotFound;
    *device = fake_nvml::TheDevice();
    return kNvmlSuccess;
  };
  fake.nvmlDeviceGetName = [](NvmlDevice, char* to, unsigned length) {
    return Call("name", [&](FakeCard&) { fake_nvml::Put("An Example GPU", to, length); });
  };
  fake.nvmlSystemGetDriverVersion = [](char* to, unsigned length) {
    return Call("driver", [&](FakeCard&) { fake_nvml::Put("580.65.06", to, length); });
  };
  fake.nvmlDeviceGetCount_v2 = [](unsigned* count) { return Call("count", [&](FakeCard&) { *count = 1; }); };
  fake.nvmlDeviceGetHandleByIndex_v2 = [](unsigned, NvmlDevice* device) {
    return Call("index", [&](FakeCard&) { *device = fake_nvml::TheDevice(); });
  };
  fake.nvmlDeviceGetPciInfo_v3 = [](NvmlDevice, NvmlPci* pci) {
    return Call("pci", [&](FakeCard& card) { fake_nvml::Put(card.bus_id, pci->bus_id, sizeof(pci->bus_id)); });
  };
  fake.nvmlDeviceGetMemoryInfo_v2 = [](NvmlDevice, NvmlMemory* memory) {
    return Call("memory", [&](FakeCard& card) {
      memory->total = 80ULL << 30;
      memory->reserved = 600ULL << 20;
      memory->free = memory->total - memory->reserved - card.others_bytes;
    });
  };
  fake.nvmlDeviceGetMigMode = [](NvmlDevice, unsigned* current, unsigned* pending) {
    return Call("mig", [&](FakeCard& card) { *current = *pending = card.mig ? 1 : 0; });
  };
  fake.nvmlDeviceGetFieldValues = [](NvmlDevice, int count, NvmlFieldValue* values) {
    for (int i = 0; i < count; ++i) {
      values[i].said = Call("power", [&](FakeCard& card) { values[i].value.number = card.milliwatts; });
      values[i].type = kNvmlUnsigned;
      if (values[i].field != kNvmlPowerInstant) values[i].said = kNvmlNotSupported;
    }
    return kNvmlSuccess;
  };
  fake.nvmlDeviceGetEnforcedPowerLimit = [](NvmlDevice, unsigned* to) {
    return Call("power limit", [&](FakeCard&) { *to = 700'000; });
  };
  fake.nvmlDeviceGetTotalEnergyConsumption = [](NvmlDevice, unsigned long long* to) {
    return Call("energy", [&](FakeCard& card) { *to = card.millijoules += card.millijoules_a_look; });
  };
  fake.nvmlDeviceGetClockInfo = [](NvmlDevice, NvmlClock clock, unsigned* to) {
    return Call("clock", [&](FakeCard& card) { *to = clock == kNvmlClockSm ? card.sm_mhz : card.memory_mhz; });
  };
  fake.nvmlDeviceGetTemperature = [](NvmlDevice, NvmlTemperatureSensor, unsigned* to) {
    return Call("temperature", [&](FakeCard& card) { *to = card.celsius; });
  };
  fake.nvmlDeviceGetCurrentClocksThrottleReasons = [](NvmlDevice, unsigned long long* to) {
    return Call("limits", [&](FakeCard& card) {
      *to = card.limits;
      ++card.looks;
    });
  };
  fake.nvmlDeviceGetTotalEccErrors = [](NvmlDevice, NvmlEccError kind, NvmlEccCounter, unsigned long long* to) {
    return Call("ecc", [&](FakeCard& card) { *to = kind == kNvmlCorrected ? card.corrected : card.uncorrected; });
  };
  // Like the driver: if there is too little room, returns the number of processes.
  fake.nvmlDeviceGetComputeRunningProcesses_v3 = [](NvmlDevice, unsigned* count, NvmlProcess* list) {
    const unsigned room = list == nullptr ? 0 : *count;
    const NvmlReturn said = Call("processes", [&](FakeCard& card) {
      *count = std::max(card.others, static_cast<unsigned>(card.processes.size()));
      if (*count > room) return;
      std::fill_n(list, *count, NvmlProcess{});
      std::copy(card.processes.begin(), card.processes.end(), list);
    });
    return said == kNvmlSuccess && *count > room ? kNvmlInsufficientSize : said;
  };
  fake.nvmlDeviceGetRetiredPagesPendingStatus = [](NvmlDevice, int* pending) {
    return Call("pages", [&](FakeCard& card) { *pending = card.repair_pending; });
  };
  fake.nvmlDeviceGetRemappedRows = [](NvmlDevice, unsigned*, unsigned*, unsigned* pending, unsigned* failed) {
    return Call("rows", [&](FakeCard&) { *pending = *failed = 0; });
  };
  return fake;
}

inline const Nvml& FakeNvml() {
  static const Nvml fake = MakeFakeNvml();
  return fake;
}

// The NVML of a driver that has only the required calls.
inline const Nvml& OldNvml() {
  static const Nvml old = [] {
    const Nvml& fake = FakeNvml();
    Nvml some;
    some.nvmlInit_v2 = fake.nvmlInit_v2;
    some.nvmlShutdown = fake.nvmlShutdown;
    some.nvmlErrorString = fake.nvmlErrorString;
    some.nvmlDeviceGetHandleByPciBusId_v2 = fake.nvmlDeviceGetHandleByPciBusId_v2;
    some.nvmlDeviceGetName = fake.nvmlDeviceGetName;
    return some;
  }();
  return old;
}

inline const Nvml& NoNvml() {
  throw Error(ErrorKind::kInfrastructure, "NVML cannot be loaded: libnvidia-ml.so.1: no such file", "install it");
}

}  // namespace ridgeline
