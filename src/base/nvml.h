// NVML, the library that says how GPUs fare. It comes with the driver, and its header with neither that nor the part of
// the toolkit that is needed here: what is called of it is declared as its ABI has it (NVIDIA, "NVML API Reference").
#pragma once

#include <string>
#include <vector>

namespace ridgeline {

struct nvmlDevice_st;
using NvmlDevice = nvmlDevice_st*;

// nvmlReturn_t, as far as it is told apart here.
enum NvmlReturn : int {
  kNvmlSuccess = 0,
  kNvmlNotSupported = 3,
  kNvmlNoPermission = 4,
  kNvmlNotFound = 6,
  kNvmlInsufficientSize = 7,
  kNvmlDriverNotLoaded = 9,
  kNvmlGpuIsLost = 15,
  kNvmlVersionMismatch = 18,  // of the library and the kernel's module
};

enum NvmlClock : int { kNvmlClockSm = 1, kNvmlClockMemory = 2 };       // nvmlClockType_t
enum NvmlEccError : int { kNvmlCorrected = 0, kNvmlUncorrected = 1 };  // nvmlMemoryErrorType_t
enum NvmlEccCounter : int { kNvmlSinceDriverLoaded = 0 };              // nvmlEccCounterType_t: volatile
enum NvmlTemperatureSensor : int { kNvmlTemperatureGpu = 0 };          // nvmlTemperatureSensors_t

// nvmlMemory_v2_t. Whether `used` has the reserved in it differs between versions: the rest says it.
struct NvmlMemory {
  unsigned version = static_cast<unsigned>(sizeof(NvmlMemory)) | 2U << 24;
  unsigned long long total = 0, reserved = 0, free = 0, used = 0;  // bytes
};

// nvmlFieldValue_t, of a field that is an unsigned integer.
struct NvmlFieldValue {
  unsigned field = 0, scope = 0;
  long long timestamp = 0, latency_us = 0;
  int type = 0;  // nvmlValueType_t
  NvmlReturn said = kNvmlSuccess;
  union {
    unsigned number;
    unsigned long long wide;
    double real;
  } value = {};
};
inline constexpr unsigned kNvmlPowerInstant = 186;  // NVML_FI_DEV_POWER_INSTANT, in milliwatts
inline constexpr int kNvmlUnsigned = 1;             // NVML_VALUE_TYPE_UNSIGNED_INT

// nvmlPciInfo_t
struct NvmlPci {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

// nvmlProcessInfo_t, as of version 2
struct NvmlProcess {
  unsigned pid = 0;  // as the driver numbers them: the node's, also in a container
  unsigned long long used_bytes = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};
inline constexpr unsigned long long kNvmlValueNotAvailable = ~0ULL;

// Every function of it that is called here, with what it takes. Those that a driver may lack are nullptr then, all but
// the first four.
#define RIDGELINE_NVML_FUNCTIONS(NEEDED, IF_THERE)                                                       \
  NEEDED(nvmlInit_v2, ())                                                                                \
  NEEDED(nvmlShutdown, ())                                                                               \
  NEEDED(nvmlDeviceGetHandleByPciBusId_v2, (const char*, NvmlDevice*))                                   \
  NEEDED(nvmlDeviceGetName, (NvmlDevice, char*, unsigned))                                               \
  IF_THERE(nvmlSystemGetDriverVersion, (char*, unsigned))                                                \
  IF_THERE(nvmlDeviceGetCount_v2, (unsigned*))                                                           \
  IF_THERE(nvmlDeviceGetHandleByIndex_v2, (unsigned, NvmlDevice*))                                       \
  IF_THERE(nvmlDeviceGetPciInfo_v3, (NvmlDevice, NvmlPci*))                                              \
  IF_THERE(nvmlDeviceGetMemoryInfo_v2, (NvmlDevice, NvmlMemory*))                                        \
  IF_THERE(nvmlDeviceGetMigMode, (NvmlDevice, unsigned* current, unsigned* pending))                     \
  IF_THERE(nvmlDeviceGetFieldValues, (NvmlDevice, int count, NvmlFieldValue*))                           \
  IF_THERE(nvmlDeviceGetEnforcedPowerLimit, (NvmlDevice, unsigned* milliwatts))                          \
  IF_THERE(nvmlDeviceGetTotalEnergyConsumption, (NvmlDevice, unsigned long long* millijoules))           \
  IF_THERE(nvmlDeviceGetClockInfo, (NvmlDevice, NvmlClock, unsigned* mhz))                               \
  IF_THERE(nvmlDeviceGetTemperature, (NvmlDevice, NvmlTemperatureSensor, unsigned* celsius))             \
  IF_THERE(nvmlDeviceGetCurrentClocksThrottleReasons, (NvmlDevice, unsigned long long* bits))            \
  IF_THERE(nvmlDeviceGetTotalEccErrors, (NvmlDevice, NvmlEccError, NvmlEccCounter, unsigned long long*)) \
  IF_THERE(nvmlDeviceGetComputeRunningProcesses_v3, (NvmlDevice, unsigned* count, NvmlProcess* list))    \
  IF_THERE(nvmlDeviceGetRetiredPagesPendingStatus, (NvmlDevice, int* pending))                           \
  IF_THERE(nvmlDeviceGetRemappedRows,                                                                    \
           (NvmlDevice, unsigned* corrected, unsigned* uncorrected, unsigned* pending, unsigned* failed))

struct Nvml {
#define RIDGELINE_MEMBER(name, takes) \
  NvmlReturn(*name) takes = nullptr;  // NOLINT(bugprone-macro-parentheses): a member
  RIDGELINE_NVML_FUNCTIONS(RIDGELINE_MEMBER, RIDGELINE_MEMBER)
#undef RIDGELINE_MEMBER
  const char* (*nvmlErrorString)(NvmlReturn) = nullptr;
};

// The process's, loaded by the first call. Throws as SharedLibrary does, at every call.
const Nvml& LoadNvml();

// NVML at work, from when this is made until it goes.
class NvmlSession {
 public:
  // Throws Error(kInfrastructure) in words where it cannot work: no driver, another version of it, no permission. It
  // throws as `load` does, too.
  explicit NvmlSession(const Nvml& (*load)());
  ~NvmlSession();
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  // Whether NVML said what was asked: false where it has no such function, too.
  template <typename... Takes, typename... Args>
  bool Said(NvmlReturn (*Nvml::*function)(Takes...), Args... args) const {
    return nvml_.*function != nullptr && (nvml_.*function)(args...) == kNvmlSuccess;
  }
  const Nvml& nvml() const { return nvml_; }

  // The card, which CUDA_VISIBLE_DEVICES cannot make another: "0000:1B:00.0" as cudaDeviceGetPCIBusId has it. Throws
  // Error(kInfrastructure) where there is none.
  NvmlDevice Device(const std::string& pci_bus_id) const;
  // All that the driver sees, in its order; nullptr for one that cannot be asked. Empty where it does not say how many.
  std::vector<NvmlDevice> Devices() const;
  // Of the card: whether it is cut into instances (MIG), which share what is said of it. False where that is not said.
  bool IsMig(NvmlDevice device) const;

 private:
  const Nvml& nvml_;
};

}  // namespace ridgeline
