#include "engine/comm/nccl/nccl_communicator.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/comm/nccl/collective_kernels.h"
#include "engine/device/cuda/runtime.h"

namespace ridgeline::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(5);  // how often the watcher looks
constexpr auto kAsk = std::chrono::microseconds(20);  // time between queries whether NCCL is ready
constexpr auto kAnswer = std::chrono::seconds(1);     // time for this rank's own report to come back
constexpr auto kGoodbye = std::chrono::seconds(10);   // time for NCCL to end queued work
// How long NCCL may make no progress, in multiples of the time that a rank may keep the others waiting. The
// Communicator decides which rank is missing. It listens, looks and reports a few beats (1 in 20 of that time) later.
constexpr double kStandsStill = 1.5;

ncclDataType_t TypeOf(DType dtype) {
  return dtype == DType::kF32 ? ncclFloat32 : dtype == DType::kF16 ? ncclFloat16 : ncclBfloat16;
}

ncclRedOp_t OpOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return ncclSum;
    case Reduction::kMax:
      return ncclMax;
    case Reduction::kMean:
      break;
  }
  return ncclAvg;
}

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(const Nccl& nccl, Communicator& ranks)
      : DeviceCommunicator(ranks.rank(), ranks.world()), nccl_(nccl), ranks_(ranks) {
    CheckCuda(cudaGetDevice(&device_), "cudaGetDevice");
    *count_ = 0;
    const ncclUniqueId id = AgreeOnId();
    ranks_.Enter(1);
    watcher_ = std::thread([this] { Watch(); });
    try {
      Connect(id);
    } catch (...) {
      Close(false);
      throw;
    }
  }
  ~NcclCommunicator() override { Close(true); }

  void AllGather(const std::byte* mine, std::byte* full, int64_t bytes, cudaStream_t stream) override {
    Fly("ncclAllGather", stream, [&](ncclComm_t comm) {
      return nccl_.ncclAllGather(mine, full, static_cast<size_t>(bytes), ncclInt8, comm, stream);
    });
  }
  void ReduceScatter(const std::byte* full, std::byte* part, DType dtype, int64_t elements, Reduction reduction,
                     cudaStream_t stream) override {
    Fly("ncclReduceScatter", stream, [&](ncclComm_t comm) {
      return nccl_.ncclReduceScatter(full, part, static_cast<size_t>(elements), TypeOf(dtype), OpOf(reduction), comm,
                                     stream);
    });
  }
  void AllReduce(std::byte* values, DType dtype, int64_t elements, Reduction reduction, cudaStream_t stream) override {
    Fly("ncclAllReduce", stream, [&](ncclComm_t comm) {
      return nccl_.ncclAllReduce(values, values, static_cast<size_t>(elements), TypeOf(dtype), OpOf(reduction), comm,
                                 stream);
    });
  }

  void Check() override {
    const std::lock_guard lock(mutex_);
    if (failed_) throw Error(*failed_);
  }

 private:
  ncclUniqueId AgreeOnId() {
    ncclUniqueId id{};
    if (rank() == 0) CheckNccl(nccl_, nccl_.ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::vector<ncclUniqueId> ids(static_cast<size_t>(world()));
    ranks_.AllGather(reinterpret_cast<const std::byte*>(&id), reinterpret_cast<std::byte*>(ids.data()), sizeof id);
    return ids.front();
  }

  // NCCL's calls return at once and are polled for completion, so that they can be aborted, also while a step is
  // recorded. NCCL queues a collective from a thread of its own then (ncclGroupEndInternal). That is recorded like work
  // from this thread, because CUDA records streams, and capture forbids only this thread to take memory (executor.cc).
  // ncclCommAbort waits for NCCL's thread (ncclCommEnsureReady). In a communicator that blocks, it would free what a
  // blocked call of this thread still uses, and NCCL allows only one thread at a time in a communicator.
  void Connect(const ncclUniqueId& id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t result = ncclSuccess;
    {
      const std::lock_guard lock(mutex_);
      if (failed_) throw Error(*failed_);
      result = nccl_.ncclCommInitRankConfig(&comm_, static_cast<int>(world()), id, static_cast<int>(rank()), &config);
    }
    Settle(result, "ncclCommInitRankConfig");
  }

  // Runs between two counts of the device: an odd number means that it is in a collective.
  template <typename Call>
  void Fly(const char* what, cudaStream_t stream, const Call& call) {
    CountCuda(count_, stream);
    ncclResult_t result = ncclSuccess;
    {
      const std::lock_guard lock(mutex_);
      if (failed_) throw Error(*failed_);
      result = call(comm_);
    }
    Settle(result, what);
    CountCuda(count_, stream);
  }

  // Waits until NCCL has finished what it began.
  void Settle(ncclResult_t result, const char* what) {
    const auto end = Clock::now() + Limit();
    std::unique_lock lock(mutex_);
    while (result == ncclInProgress && !failed_ && Clock::now() < end) {
      lock.unlock();
      std::this_thread::sleep_for(kAsk);
      lock.lock();
      if (comm_ != nullptr) result = AsyncError();
    }
    if (failed_) throw Error(*failed_);
    if (result == ncclInProgress) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("NCCL: {} on rank {} did not end within {:g} s", what, rank(), limit_s()),
                  "NCCL_DEBUG=INFO makes NCCL say more; NCCL_SOCKET_IFNAME names the network that it may use");
    }
    CheckNccl(nccl_, result, what);
  }

  ncclResult_t AsyncError() const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = nccl_.ncclCommGetAsyncError(comm_, &state);
    return asked == ncclSuccess ? state : asked;
  }

  double limit_s() const { return kStandsStill * ranks_.timeout_s(); }
  Clock::duration Limit() const {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s()));
  }

  void Watch() {
    cudaSetDevice(device_);
    uint64_t seen = 0;
    int64_t entered = 0;
    auto changed_at = Clock::now();
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kLook, [&] { return ending_; })) {
      const uint64_t count = std::atomic_ref(*count_).load(std::memory_order_relaxed);
      if (std::exchange(seen, count) != count) changed_at = Clock::now();
      const auto entered_now = static_cast<int64_t>((count + 1) / 2);
      ranks_.Enter(entered_now - std::exchange(entered, entered_now));
      std::optional<Error> why = ranks_.Loss();
      if (!why && comm_ != nullptr) {
        const bool in_one = count % 2 == 1;
        if (const auto trouble = TroubleOf(in_one && Clock::now() - changed_at > Limit())) {
          lock.unlock();
          why = ToldToAll(*trouble);
          lock.lock();
        }
      }
      if (!why) continue;
      failed_ = why;
      const ncclComm_t comm = std::exchange(comm_, nullptr);
      lock.unlock();
      // Called without the lock, because it may wait until the graphs that captured NCCL are destroyed.
      if (comm != nullptr) nccl_.ncclCommAbort(comm);
      return;
    }
  }

  // NCCL's error, if it reports one or makes no progress.
  std::optional<Error> TroubleOf(bool stands_still) const {
    const ncclResult_t result = AsyncError();
    try {
      if (result != ncclInProgress) CheckNccl(nccl_, result, "a collective");
    } catch (const Error& error) {
      return error;
    }
    if (!stands_still) return std::nullopt;
    return Error(ErrorKind::kInfrastructure,
                 fmt::format("NCCL: a collective did not end within {:g} s, though every rank is there", limit_s()),
                 "NCCL_DEBUG=INFO makes NCCL say more; RIDGELINE_COMM_TIMEOUT_S sets the limit");
  }

  // The reason why the run is over, as every rank will report it.
  Error ToldToAll(const Error& trouble) {
    ranks_.Abandon(trouble);
    for (const auto end = Clock::now() + kAnswer; Clock::now() < end; std::this_thread::sleep_for(kLook)) {
      if (const auto why = ranks_.Loss()) return *why;
    }
    return trouble;
  }

  // `well`: queued work may finish. If a rank is lost meanwhile, or it takes too long, it is aborted.
  void Close(bool well) {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    watcher_.join();
    if (comm_ == nullptr) return;
    ncclResult_t result = well ? nccl_.ncclCommFinalize(comm_) : ncclInvalidUsage;
    for (const auto end = Clock::now() + kGoodbye; result == ncclInProgress && Clock::now() < end && !ranks_.Loss();) {
      std::this_thread::sleep_for(kAsk);
      result = AsyncError();
    }
    if (result == ncclSuccess) {
      nccl_.ncclCommDestroy(comm_);
    } else {
      nccl_.ncclCommAbort(comm_);
    }
  }

  const Nccl& nccl_;
  Communicator& ranks_;
  int device_ = 0;
  const PinnedBuffer counted_ = NewPinnedBuffer(sizeof(uint64_t));
  // Counts collectives that the device entered and left.
  uint64_t* const count_ = reinterpret_cast<uint64_t*>(counted_.get());
  std::mutex mutex_;  // guards the members below, and calls with comm_
  std::condition_variable changed_;
  ncclComm_t comm_ = nullptr;
  std::optional<Error> failed_;
  bool ending_ = false;
  std::thread watcher_;
};

}  // namespace

std::unique_ptr<DeviceCommunicator> ConnectNccl(const Nccl& nccl, Communicator& ranks) {
  return std::make_unique<NcclCommunicator>(nccl, ranks);
}

}  // namespace ridgeline::engine
