// The devices that a step can run on, as the trainer sees them. cpu_device.cc and cuda_device.cc are the only places of
// it that know one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/comm/communicator.h"
#include "engine/device/executor.h"
#include "engine/step/program.h"

namespace ridgeline {

class TrainingDevice {
 public:
  TrainingDevice() = default;
  TrainingDevice(const TrainingDevice&) = delete;
  TrainingDevice& operator=(const TrainingDevice&) = delete;
  virtual ~TrainingDevice() = default;

  // As its vendor calls it: a result's `device`.
  virtual std::string name() const = 0;

  // What else a result's environment says of it.
  virtual void Describe(std::map<std::string, std::string>& environment) const = 0;

  // What runs the program. Both must outlive it. Every rank calls it at the same place among its collectives. Throws
  // Error(kOutOfMemory) where the slab does not fit, and what else making an executor throws.
  virtual std::unique_ptr<Executor> MakeExecutor(const StepProgram& program, Communicator& communicator) = 0;

  // What a new slab may take now, in bytes.
  virtual int64_t AvailableSlabBytes() const = 0;

  // How a run ends that asks it for more memory than it has.
  virtual RunStatus out_of_memory() const = 0;

  // The measured steps begin, and have ended; neither need be said. What was seen of a GPU by then.
  virtual void BeginMeasuring() {}
  virtual void EndMeasuring() {}
  virtual GpuFigures Figures() const { return {}; }

  // How long steps have waited so far for other ranks and for what they send; nothing where the device does not know.
  virtual std::optional<int64_t> WaitedNs() const { return std::nullopt; }

  // What this process has taken so far of memory that is the device's own, in bytes, and what that counts
  // (MemoryFigures::device_peak_kind); 0 where it has none.
  virtual std::pair<int64_t, std::string> Taken() const { return {}; }
};

// What a person may say of how a device works, and no spec does.
struct DeviceOptions {
  bool graph = true;  // of a GPU: a step is replayed as a graph, rather than queued call by call
  // Of a GPU: the file of the products' fastest algorithms (engine/device/algorithm_file.h). Empty: of each product the
  // algorithm that the library names first.
  std::filesystem::path algorithms;
  std::function<void(const std::string&)> on_note;  // what of it is worth a line; may be empty
};

using DeviceMaker = std::function<std::unique_ptr<TrainingDevice>(const RunSpec& spec, const DeviceOptions& options)>;

// What a program with a CUDA device has of it; empty in one without.
struct CudaSupport {
  DeviceMaker open;
  std::function<std::string()> describe;  // the GPUs here and what they are used by, in lines; never throws
  bool emulated = false;                  // on processors, for tests: what is calibrated by is small
};

std::unique_ptr<TrainingDevice> MakeCpuDevice();

// The device that the spec names. `open_cuda` is empty in a program that has no CUDA device. Throws
// Error(kInfrastructure) where it is not there, or is not what the spec asks for.
std::unique_ptr<TrainingDevice> OpenDevice(const RunSpec& spec, const DeviceMaker& open_cuda,
                                           const DeviceOptions& options = {});

}  // namespace ridgeline
