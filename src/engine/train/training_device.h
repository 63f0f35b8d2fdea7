// The devices on which a step can run, as the trainer sees them. Only cpu_device.cc and cuda_device.cc know a
// particular one.
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

namespace ridgeline::engine {

class TrainingDevice {
 public:
  TrainingDevice() = default;
  TrainingDevice(const TrainingDevice&) = delete;
  TrainingDevice& operator=(const TrainingDevice&) = delete;
  virtual ~TrainingDevice() = default;

  // The vendor's name for it: a result's `device`.
  virtual std::string name() const = 0;

  // Adds other facts about it to a result's environment.
  virtual void Describe(std::map<std::string, std::string>& environment) const = 0;

  // Makes the executor of the program. Both arguments must outlive it. Every rank calls it at the same place among its
  // collectives. Throws Error(kOutOfMemory) if the slab does not fit, and what else making an executor throws.
  virtual std::unique_ptr<Executor> MakeExecutor(const StepProgram& program, Communicator& communicator) = 0;

  // Returns how many bytes a new slab may take now.
  virtual int64_t AvailableSlabBytes() const = 0;

  // Returns the status of a run that asks for more memory than the device has.
  virtual RunStatus out_of_memory() const = 0;

  // Mark the measured steps' beginning and end; both are optional. Figures returns what was seen of a GPU by then.
  virtual void BeginMeasuring() {}
  virtual void EndMeasuring() {}
  virtual GpuFigures Figures() const { return {}; }

  // Returns how long steps have waited so far for other ranks and their data; nothing if the device does not know.
  virtual std::optional<int64_t> WaitedNs() const { return std::nullopt; }

  // Returns how many bytes of the device's own memory this process has taken so far, and what the number counts
  // (MemoryFigures::device_peak_kind). 0 if the device has no memory of its own.
  virtual std::pair<int64_t, std::string> Taken() const { return {}; }
};

// Options of how a device works that no spec has.
struct DeviceOptions {
  bool graph = true;  // for a GPU: replay a step as a graph, instead of queueing call by call
  // For a GPU: the file of the products' fastest algorithms (engine/device/algorithm_file.h). Empty: each product takes
  // the algorithm that the library names first.
  std::filesystem::path algorithms;
  // For a GPU: chooses them under the conditions of a step: after this many seconds of load, with cold caches and
  // random operands. 0: at once. No card has shown yet that this is faster.
  double load_seconds = 0;
  bool all_plans = false;        // for a GPU: times all of cuDNN's plans of attention, instead of taking its first
  bool beside_products = false;  // for a GPU: runs passes such as Adam's beside products, on a second stream
  std::function<void(const std::string&)> on_note;  // gets notes about it; may be empty
};

using DeviceMaker = std::function<std::unique_ptr<TrainingDevice>(const RunSpec& spec, const DeviceOptions& options)>;

// The functions of a program's CUDA device; empty in a program without one.
struct CudaSupport {
  DeviceMaker open;
  std::function<std::string()> describe;  // describes in lines the GPUs here and what uses them; never throws
  bool emulated = false;                  // on processors, for tests: calibration is small
};

std::unique_ptr<TrainingDevice> MakeCpuDevice();

// Opens the device that the spec names. `open_cuda` is empty in a program that has no CUDA device. Throws
// Error(kInfrastructure) if the device is missing, or is not the one that the spec asks for.
std::unique_ptr<TrainingDevice> OpenDevice(const RunSpec& spec, const DeviceMaker& open_cuda,
                                           const DeviceOptions& options = {});

}  // namespace ridgeline::engine
