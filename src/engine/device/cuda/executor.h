// Replays a traced program on a CUDA device, with one slab that is allocated once. All of a step runs on one stream, or
// on two if asked to, and is recorded as a graph after its first run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/algorithm_file.h"
#include "engine/device/cuda/collectives.h"
#include "engine/device/cuda/epilogue.h"
#include "engine/device/cuda/fastest.h"
#include "engine/device/cuda/kernel.h"
#include "engine/device/cuda/runtime.h"
#include "engine/device/executor.h"
#include "engine/device/layout.h"

namespace ridgeline::engine {

// Pinned memory for writing and reading tensors. A write waits for the device only if the device is kSlots pieces
// behind, so that the host can prepare the next steps.
class CudaStaging {
 public:
  CudaStaging();
  void Upload(std::byte* to, std::span<const std::byte> from, cudaStream_t stream);
  // On return, everything queued on the stream is done. The memory of `from` may be written again.
  void Download(const std::byte* from, std::span<std::byte> to, cudaStream_t stream, CudaCollectives* collectives);

 private:
  static constexpr size_t kSlots = 8;
  static constexpr size_t kSlotBytes = size_t{1} << 20;
  std::byte* Slot(size_t slot) const { return memory_.get() + slot * kSlotBytes; }

  PinnedBuffer memory_;
  std::array<CudaEvent, kSlots> read_;  // when the device has read each slot
  size_t next_ = 0;
};

// Transfers single numbers from the device through pinned memory, for as many steps as are queued at once.
class CudaScalars {
 public:
  static constexpr int64_t kStepsAhead = 1;  // one runs and one waits, so the device never does

  CudaScalars();
  // `from`: device addresses of fp32 numbers.
  void Queue(std::span<const std::byte* const> from, cudaStream_t stream);
  Executor::Scalars Take(CudaCollectives* collectives);

 private:
  struct Reading {
    CudaEvent done;
    size_t count = 0;
  };
  static constexpr size_t kReadings = kStepsAhead + 2;  // for steps that were not taken, and for the last one taken
  float* Numbers(size_t reading) const {
    return reinterpret_cast<float*>(memory_.get()) + reading * Executor::kMostScalars;
  }

  PinnedBuffer memory_;
  std::array<Reading, kReadings> readings_;
  size_t queued_ = 0, taken_ = 0;  // numbers since the beginning
};

struct CudaOptions {
  int device = 0;
  const CudaLibraries* libraries = nullptr;  // must outlive the executor
  bool graph = true;                         // false: queues every step's calls one by one, as for the first step
  AlgorithmFile* algorithms = nullptr;       // as in CudaRun; must outlive the executor
  FindEpilogue epilogue = nullptr;           // the faster ones are used, as the algorithms say
  void (*write_normal)(cudaStream_t stream, DType dtype, std::byte* to, int64_t first, int64_t count,
                       const NormalNumbers& numbers) = nullptr;  // WriteNormalCuda; null: the host makes first weights
  std::map<std::string, std::string>* notes = nullptr;           // as in CudaRun
  double load_seconds = 0;  // algorithms are measured after so much load; 0: at once
  bool all_plans = false;   // as in CudaRun
  void (*read_through)(cudaStream_t stream, const std::byte* from, int64_t bytes) = nullptr;  // ReadThroughCuda
  // Runs the kernels that may (CudaKernel::beside) on a second stream, until a call changes what one of them touches or
  // touches what it changes. The plan and the bits are the same.
  bool beside_products = false;
};

class CudaExecutor final : public Executor {
 public:
  // Allocates the slab and prepares every kernel, saves the algorithms that were measured meanwhile, and clears the
  // slab. The trace, the layout and the kernels must outlive it. Programs of several ranks need the collectives. Throws
  // as Executor documents, and as CheckCuda.
  CudaExecutor(const Trace& trace, const Layout& layout, const CudaKernelTable& kernels,
               const CudaOptions& options = {}, std::shared_ptr<CudaCollectives> collectives = nullptr);
  ~CudaExecutor() override;

  // Queues the step, and waits only if it is timed. A later wait may throw the errors of a step.
  void Step(const StepInputs& inputs) override;
  int64_t steps_ahead() const override { return CudaScalars::kStepsAhead; }
  void QueueScalars(std::span<const Tensor> scalars) override;
  Scalars TakeScalars() override { return scalars_.Take(run_.collectives); }
  void Zero(const Tensor& tensor) override;
  void Clear() override { Fill(0); }
  bool WriteNormal(const Tensor& to, int64_t first, const NormalNumbers& numbers) override;
  int64_t slab_bytes() const override { return slab_bytes_; }
  bool Multiplies(MathFormat format) const override;
  void EnableTiming() override;
  std::span<const int64_t> call_ns() const override { return call_ns_; }
  std::unique_ptr<Executor> Beside(const Trace& trace, const Layout& layout) const override;

 protected:
  void Upload(const Tensor& to, int64_t byte, std::span<const std::byte> from) override;
  void Download(const Tensor& from, int64_t byte, std::span<std::byte> to) const override;

 private:
  struct Bound {
    const OpCall* call;
    void (*run)(const OpCall&, const CudaRun&, KernelState*);  // nullptr: done by another call's epilogue
    std::shared_ptr<KernelState> state;
    void (*run_together)(std::span<const OpCall>, const CudaRun&);
    size_t together;  // number of calls from this one on that run_together runs at once; 1: it runs alone
    // By numbers of calls on the second stream: its own, if it runs there, and the one that must have ended before.
    std::optional<size_t> beside, after;
  };
  void Fill(int byte);  // fills the slab
  void PrepareLoad();
  void PrepareBeside(const Trace& trace, const Layout& layout);
  void ChooseEpilogues(const Trace& trace);
  std::shared_ptr<KernelState> TakeEpilogue(const Bound& call, const Bound& other, const CudaEpilogue& epilogue);
  void RunCalls() const;
  void RunBeside() const;
  void Run(const Bound& bound, const CudaRun& run) const;
  void RunTimed();
  void Capture();
  std::byte* Address(const Tensor& tensor, int64_t byte) const {
    return slab_.get() + run_.offsets[tensor.storage] + byte;
  }

  const CudaKernelTable& kernels_;
  const CudaOptions options_;
  const int compute_capability_;  // 10 x major + minor
  const int64_t slab_bytes_;
  DeviceBuffer slab_;
  CudaStream stream_;
  const std::unique_ptr<CudaStaging> staging_;
  CudaScalars scalars_;
  const std::shared_ptr<CudaCollectives> collectives_;
  CudaRun run_;
  CudaStream second_stream_;        // null: there is none
  CudaEvent forked_;                // where the first stream stood
  std::vector<CudaEvent> besides_;  // the end of each call on the second stream
  StepLoad load_;
  Tensor inputs_;  // Trace::inputs()
  std::vector<Bound> calls_;
  std::vector<std::pair<size_t, size_t>> done_by_;  // a call, and the one whose epilogue does it
  std::vector<CudaEvent> between_calls_;            // one more than there are calls, if they are timed
  std::vector<int64_t> call_ns_;
  bool ran_ = false;
  CudaGraphExec graph_;
};

}  // namespace ridgeline::engine
