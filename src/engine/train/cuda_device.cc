#include "engine/train/cuda_device.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/cores.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/comm/gloo/rank_environment.h"
#include "engine/comm/nccl/collective.h"
#include "engine/device/algorithm_file.h"
#include "engine/device/cuda/executor.h"
#include "engine/device/cuda/gpu_cards.h"
#include "engine/device/cuda/gpu_watch.h"
#include "engine/device/cuda/runtime.h"
#include "engine/ops/cuda/gemm_epilogue.h"
#include "engine/ops/cuda/kernels.h"
#include "run/consistency.h"
#include "run/gpus.h"

namespace ridgeline::engine {
namespace {

const CudaKernelTable& CudaKernels() {
  static const CudaKernelTable table = [] {
    CudaKernelTable t;
    AddGemmCuda(t);
    AddAttentionCuda(t);
    AddNormCuda(t);
    AddElementwiseCuda(t);
    AddEmbeddingCuda(t);
    AddLossCuda(t);
    AddOptimizerCuda(t);
    AddQuantizeCuda(t);
    AddCollectivesCuda(t);
    return t;
  }();
  return table;
}

// Returns the number of a rank's GPU among those that this process sees. If a scheduler shows each rank only its own,
// that is number 0 for all of them.
int NumberOf(int64_t local_rank, int gpus) {
  if (gpus == 1) return 0;
  if (local_rank < gpus) return static_cast<int>(local_rank);
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("rank {} of this machine has no GPU: it sees {}", local_rank, gpus),
              "start as many ranks a machine as it has GPUs (CUDA_VISIBLE_DEVICES chooses among them)");
}

// Whether the ranks of a machine leave each other its cores while they wait for their GPUs. A thread that spins sees a
// GPU's end some microseconds sooner, which one step queued ahead hides. Beside it, a rank has NCCL's threads.
bool HostSleeps(int64_t cores, int64_t ranks) {
  constexpr int64_t kCoresOfRank = 2;
  return cores > 0 && cores < kCoresOfRank * ranks;
}

// CUDA's versions are 1000 x major + 10 x minor.
std::string VersionText(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// Its libraries' versions have two digits for each part after the first.
std::string LibraryVersion(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string NcclVersion(const Nccl& nccl) {
  int version = 0;
  CheckNccl(nccl, nccl.ncclGetVersion(&version), "ncclGetVersion");
  return LibraryVersion(static_cast<size_t>(version));
}

std::string CudaVersions() {
  int driver = 0;
  int runtime = 0;
  CheckCuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  CheckCuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return fmt::format("{}, runtime {}", driver == 0 ? "no driver" : "driver for " + VersionText(driver),
                     VersionText(runtime));
}

// Returns the line, or why there is none.
std::string OrWhyNot(const std::function<std::string()>& line) {
  try {
    return line();
  } catch (const Error& error) {
    return error.message() + (error.hint().empty() ? "" : "; " + error.hint());
  }
}

std::string DescribeGpu(int number) {
  cudaDeviceProp properties;
  CheckCuda(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
  const Gpu* known = FindGpuOfDriver(properties.name);
  return fmt::format(
      "{}, compute capability {}.{}, {}, {}", properties.name, properties.major, properties.minor,
      FormatBytes(static_cast<int64_t>(properties.totalGlobalMem)),
      known == nullptr ? "of no gpu: " + WhyNoGpu(properties.name) : fmt::format("gpu: {}", known->name));
}

// Works without a context on the device.
std::string BusIdOf(int number) {
  char id[32] = "";
  CheckCuda(cudaDeviceGetPCIBusId(id, sizeof id, number), "cudaDeviceGetPCIBusId");
  return id;
}

// Describes the faults of a card; empty if none are known.
std::string TroubleOf(const GpuCard& card) {
  std::vector<std::string> words;
  if (card.ecc_uncorrected.value_or(0) > 0)
    words.push_back(fmt::format("{} uncorrected ECC errors", *card.ecc_uncorrected));
  if (card.repair_pending) words.emplace_back("memory to be taken out of use when its driver is loaded again");
  if (card.repair_failed) words.emplace_back("memory that cannot be taken out of use any more: replace it");
  return Join(words, ", ");
}

class CudaDeviceOfRank final : public TrainingDevice {
 public:
  CudaDeviceOfRank(const RunSpec& spec, const DeviceOptions& options, int64_t local_rank,
                   const NvidiaLibraries& libraries)
      : options_(options), libraries_(libraries) {
    int gpus = 0;
    CheckCuda(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
    if (gpus == 0) CheckCuda(cudaErrorNoDevice, "cudaGetDeviceCount");
    number_ = NumberOf(local_rank, gpus);
    cudaDeviceProp properties;
    CheckCuda(cudaGetDeviceProperties(&properties, number_), "cudaGetDeviceProperties");
    name_ = properties.name;
    const Gpu& asked = *FindGpu(spec.gpu);
    const Gpu* here = FindGpuOfDriver(name_);
    if (here != &asked || 10 * properties.major + properties.minor != asked.compute_capability) {
      throw Error(
          ErrorKind::kInfrastructure,
          fmt::format("the spec has gpu: {} ('{}'), and GPU {} here is '{}' of compute capability {}.{}", spec.gpu,
                      asked.driver_name, number_, name_, properties.major, properties.minor),
          here == nullptr
              ? WhyNoGpu(name_) + "; run it on a machine with such a GPU"
              : fmt::format("run it on a machine with such a GPU, or name the one that is here: gpu: {}", here->name));
    }
    memory_bytes_ = static_cast<int64_t>(properties.totalGlobalMem);
    multiprocessors_ = properties.multiProcessorCount;
    watch_.emplace(BusIdOf(number_), libraries_.nvml);
    HoldAgainst(asked);
    OpenGpu(number_, HostSleeps(CoresAllowed().count(), LocalRanks()));  // creates a context, which no watch may see
    free_at_first_ = FreeBytes();
    own_at_first_ = watch_->OwnBytes();
  }

  std::string name() const override { return name_; }

  void Describe(std::map<std::string, std::string>& environment) const override {
    environment["gpus"] = name_;
    environment["cuda"] = CudaVersions();
    environment["cublaslt"] = LibraryVersion(libraries_.cuda.cublaslt().cublasLtGetVersion());
    environment["gpu_memory_bytes"] = std::to_string(memory_bytes_);
    environment["gpu_multiprocessors"] = std::to_string(multiprocessors_);
    if (const std::string driver = watch_->driver(); !driver.empty()) environment["driver"] = driver;
    if (const std::string mig = watch_->mig(); !mig.empty()) environment["gpu_mig"] = mig;
    if (!nccl_.empty()) environment["nccl"] = nccl_;
    const bool by_cudnn =
        std::ranges::any_of(notes_, [](const auto& note) { return note.second.find("cuDNN's engine") == 0; });
    if (by_cudnn) environment["cudnn"] = LibraryVersion(libraries_.cuda.cudnn().cudnnGetVersion());
    environment.insert(notes_.begin(), notes_.end());
    if (options_.beside_products) environment["beside_products"] = "adam, column_sum and squared_sum";
    std::string& algorithms = environment["gemm_algorithms"];
    algorithms = "cuBLASLt's first";
    if (!algorithms_) return;
    const std::string file = algorithms_->path().string();
    const std::string_view fastest = options_.load_seconds > 0 ? "the fastest under load" : "the fastest";
    algorithms = algorithms_->measures() ? fmt::format("{}, kept in {}", fastest, file)
                                         : "those of " + file + ", else " + algorithms;
    const std::set<std::string>& taken = algorithms_->taken();
    if (!taken.empty()) algorithms += "; products do " + Join({taken.begin(), taken.end()}, " and ");
  }

  std::unique_ptr<Executor> MakeExecutor(const StepProgram& program, Communicator& communicator) override {
    OpenAlgorithms(communicator);
    if (communicator.world() > 1 && communicator.name() != "virtual") nccl_ = NcclVersion(libraries_.nccl());
    return std::make_unique<CudaExecutor>(
        program.trace, program.layout, CudaKernels(),
        CudaOptions{number_, &libraries_.cuda, options_.graph, algorithms_.get(), GemmEpilogue, WriteNormalCuda,
                    &notes_, options_.load_seconds, options_.all_plans, ReadThroughCuda, options_.beside_products},
        MakeCudaCollectives(communicator, libraries_.nccl));
  }

  int64_t AvailableSlabBytes() const override { return FreeBytes(); }
  RunStatus out_of_memory() const override { return RunStatus::kOomDevice; }
  void BeginMeasuring() override { watch_->Begin(); }
  void EndMeasuring() override { watch_->End(); }
  GpuFigures Figures() const override { return watch_->Figures(); }
  // From the process's own bytes if NVML reports them, else from the card's loss of free memory, which others change,
  // too.
  std::pair<int64_t, std::string> Taken() const override {
    const auto most = own_at_first_ ? watch_->MostOwnBytes() : std::nullopt;
    if (most && *most > *own_at_first_) return {*most - *own_at_first_, std::string(kOfNvml)};
    return {std::max<int64_t>(free_at_first_ - FreeBytes(), 0), std::string(kInUse)};
  }

 private:
  // A part of the same name may differ: it may be divided into instances, have other memory, or lack multiprocessors.
  void HoldAgainst(const Gpu& asked) const {
    const auto refuse = [&](const std::string& what) {
      throw Error(
          ErrorKind::kInfrastructure,
          fmt::format("GPU {} calls itself '{}', as the spec's gpu: {}, but {}", number_, name_, asked.name, what),
          "run it on a whole GPU of that kind; `ridgeline-train --gpus` says what is here");
    };
    if (watch_->mig() == "on") refuse("it is cut into instances (MIG)");
    // The driver keeps more or less of it, depending on its release.
    const auto usable = static_cast<double>(asked.usable_bytes);
    if (static_cast<double>(memory_bytes_) < 0.95 * usable || memory_bytes_ > asked.total_bytes) {
      refuse(fmt::format("has {} of memory, and a whole GPU of this kind shows {}", FormatBytes(memory_bytes_),
                         FormatBytes(asked.usable_bytes)));
    }
    if (multiprocessors_ != asked.multiprocessors) {
      refuse(fmt::format("has {} multiprocessors, and a whole GPU of this kind has {}", multiprocessors_,
                         asked.multiprocessors));
    }
  }

  // Ranks that hold the same data must compute the same bits, and their clocks do not agree exactly. So several ranks
  // measure nothing. They use what one rank stored earlier, if all of them read the same from it. Ranks on several
  // machines, or beside a program that writes it, may not. Otherwise all use the library's first choice.
  void OpenAlgorithms(Communicator& communicator) {
    if (!options_.algorithms.empty()) {
      const std::string machine = fmt::format("{}, {}, cuBLASLt {}{}", name_, CudaVersions(),
                                              LibraryVersion(libraries_.cuda.cublaslt().cublasLtGetVersion()),
                                              options_.load_seconds > 0 ? ", under load" : "");
      using Use = AlgorithmFile::Use;
      algorithms_ = std::make_unique<AlgorithmFile>(
          options_.algorithms, machine, communicator.world() == 1 ? Use::kMeasure : Use::kTakeOnly, options_.on_note);
    }
    if (communicator.world() == 1) return;
    const int64_t digest = algorithms_ ? algorithms_->Digest() : 0;
    std::array<int64_t, 2> most = {digest, ~digest};  // the second is the complement of the least
    communicator.AllReduce(most, Reduction::kMax);
    if (most[0] != ~most[1]) algorithms_ = nullptr;
  }

  // Returns 0 if the device no longer answers; the fault has been reported before.
  static int64_t FreeBytes() {
    size_t free = 0;
    size_t total = 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<int64_t>(free) : 0;
  }

  const DeviceOptions options_;
  const NvidiaLibraries libraries_;
  int number_ = 0;
  std::string name_;
  int64_t memory_bytes_ = 0;
  int multiprocessors_ = 0;
  std::string nccl_;  // its version, if ranks use it
  std::optional<GpuWatch> watch_;
  std::unique_ptr<AlgorithmFile> algorithms_;  // null: uses the library's first choice
  std::map<std::string, std::string> notes_;   // notes of the executor's kernels
  int64_t free_at_first_ = 0;                  // free memory after CUDA's context was created
  std::optional<int64_t> own_at_first_;
};

}  // namespace

std::unique_ptr<TrainingDevice> OpenCudaDevice(const RunSpec& spec, const DeviceOptions& options, int64_t local_rank,
                                               const NvidiaLibraries& libraries) {
  return std::make_unique<CudaDeviceOfRank>(spec, options, local_rank, libraries);
}

std::string DescribeGpus(const NvidiaLibraries& libraries) {
  std::string lines;
  const auto add = [&](std::string_view what, const std::function<std::string()>& line) {
    lines += fmt::format("{}: {}\n", what, OrWhyNot(line));
  };
  int gpus = 0;
  try {
    CheckCuda(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
    if (gpus == 0) CheckCuda(cudaErrorNoDevice, "cudaGetDeviceCount");
  } catch (const Error& error) {
    lines += fmt::format("no GPUs: {}; {}\n", error.message(), error.hint());
  }
  for (int number = 0; number < gpus; ++number) {
    add(fmt::format("GPU {}", number), [&] { return DescribeGpu(number); });
  }
  const GpuCards cards = FindGpuCards(libraries.nvml);
  add("driver", [&] { return cards.problem.empty() ? cards.driver : cards.problem + "; " + cards.hint; });
  for (const GpuCard& card : cards.cards) {
    if (const std::string trouble = TroubleOf(card); !trouble.empty()) {
      lines += fmt::format("{} at {}: {}\n", card.name, card.pci_bus_id, trouble);
    }
  }
  add("CUDA", CudaVersions);
  add("cuBLASLt", [&] { return LibraryVersion(libraries.cuda.cublaslt().cublasLtGetVersion()); });
  add("cuDNN", [&] { return LibraryVersion(libraries.cuda.cudnn().cudnnGetVersion()); });
  add("NCCL", [&] { return NcclVersion(libraries.nccl()); });
  return lines;
}

}  // namespace ridgeline::engine
