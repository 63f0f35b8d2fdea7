// NVML, the library that reports the state of GPUs. It comes with the driver. Its header comes with neither the driver
// nor the part of the toolkit that we need, so the functions that we call are declared here by their ABI (NVIDIA, "NVML
// API Reference").
#pragma once

#include <string>
#include <vector>

namespace ridgeline {

struct nvmlDevice_st;
using NvmlDevice = nvmlDevice_st*;

// nvmlReturn_t, as far as we distinguish its values.
enum NvmlReturn : int {
  kNvmlSuccess = 0,
  kNvmlNotSupported = 3,
  kNvmlNoPermission = 4,
  kNvmlNotFound = 6,
  kNvmlInsufficientSize = 7,
  kNvmlDriverNotLoaded = 9,
  kNvmlGpuIsLost = 15,
  kNvmlVersionMismatch = 18,  // the versions of the library and the kernel module differ
};

enum NvmlClock : int { kNvmlClockSm = 1, kNvmlClockMemory = 2 };       // nvmlClockType_t
enum NvmlEccError : int { kNvmlCorrected = 0, kNvmlUncorrected = 1 };  // nvmlMemoryErrorType_t
enum NvmlEccCounter : int { kNvmlSinceDriverLoaded = 0 };              // nvmlEccCounterType_t: volatile
enum NvmlTemperatureSensor : int { kNvmlTemperatureGpu = 0 };          // nvmlTemperatureSensors_t

// nvmlMemory_v2_t. Versions differ in whether `used` includes the reserved part; the other figures tell.
struct NvmlMemory {
  unsigned version = static_cast<unsigned>(sizeof(NvmlMemory)) | 2U << 24;
  unsigned long long total = 0, reserved = 0, free = 0, used = 0;  // bytes
};

// nvmlFieldValue_t, for a field that is an unsigned integer.
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
  unsigned pid = 0;  // the driver's number: the node's, also in a container
  unsigned long long used_bytes = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};
inline constexpr unsigned long long kNvmlValueNotAvailable = ~0ULL;

// Every NVML function that we call, with its parameters. The first four are required; the others are nullptr if the
// driver lacks them.
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

// The process's NVML, loaded by the first call. Throws as SharedLibrary, at every call.
const Nvml& LoadNvml();

// An NVML session, from construction to destruction.
class NvmlSession {
 public:
  // Throws Error(kInfrastructure) with an explanation if NVML cannot work: no driver, another version of it, or no
  // permission. Also throws as `load`.
  explicit NvmlSession(const Nvml& (*load)());
  ~NvmlSession();
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  // Whether NVML answered: false also if it has no such function.
  template <typename... Takes, typename... Args>
  bool Said(NvmlReturn (*Nvml::*function)(Takes...), Args... args) const {
    return nvml_.*function != nullptr && (nvml_.*function)(args...) == kNvmlSuccess;
  }
  const Nvml& nvml() const { return nvml_; }

  // The card with this address: "0000:1B:00.0", as from cudaDeviceGetPCIBusId. CUDA_VISIBLE_DEVICES does not change it.
  // Throws Error(kInfrastructure) if there is none.
  NvmlDevice Device(const std::string& pci_bus_id) const;
  // All cards that the driver sees, in its order; nullptr for one that cannot be queried. Empty if their number is
  // unknown.
  std::vector<NvmlDevice> Devices() const;
  // Whether the card is divided into instances (MIG), which share its figures. False if unknown.
  bool IsMig(NvmlDevice device) const;

 private:
  const Nvml& nvml_;
};

}  // namespace ridgeline
