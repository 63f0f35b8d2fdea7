// If ranks' devices wait for each other and one fails, every rank ends with a message, and nothing is left.
#include "engine/comm/nccl/nccl_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "cuda_on_cpu/task.h"
#include "engine/comm/collective.h"
#include "tests/engine/comm/nccl/device_ranks.h"

namespace ridgeline::engine {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::Program;

constexpr double kTimeoutS = 2;

// Functions that fail or are slow, in place of the emulator's NCCL. They cannot be closures, so their state is global.
std::atomic<int> made, gone;     // communicators
std::atomic<int> asks_left;      // until a call that continues by itself is done
std::atomic<bool> remote_error;  // every communicator reports this error from now on
std::set<ncclComm_t> given_up;   // Stand's collectives of these end; guarded by the machine's lock

ncclResult_t CountedInit(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  EXPECT_EQ(config->blocking, 0);  // a blocking communicator could not be aborted
  ++made;
  return ncclCommInitRankConfig(comm, ranks, id, rank, config);
}
ncclResult_t CountedDestroy(ncclComm_t comm) { return ++gone, ncclCommDestroy(comm); }
ncclResult_t CountedAbort(ncclComm_t comm) { return ++gone, ncclCommAbort(comm); }
ncclResult_t AskedAgain(ncclComm_t comm, ncclResult_t* error) {
  if (asks_left > 0) return --asks_left, *error = ncclInProgress, ncclSuccess;
  if (remote_error) return *error = ncclRemoteError, ncclSuccess;
  return ncclCommGetAsyncError(comm, error);
}
ncclResult_t Slow(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                  cudaStream_t stream) {
  asks_left = 5;
  const ncclResult_t result = ncclAllGather(send, receive, count, type, comm, stream);
  return result == ncclSuccess ? ncclInProgress : result;
}
ncclResult_t Fail(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t) { return ncclSystemError; }
ncclResult_t Stand(const void*, void*, size_t, ncclDataType_t, ncclComm_t comm, cudaStream_t stream) {
  cuda_on_cpu::QueueTask(stream, [comm] { return [comm] { return given_up.contains(comm); }; });
  return ncclSuccess;
}
ncclResult_t GiveUp(ncclComm_t comm) {
  cuda_on_cpu::Change([comm] { given_up.insert(comm); });
  return CountedAbort(comm);
}
ncclResult_t NeverReady(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return CountedInit(comm, ranks + 1, id, rank, config);
}
ncclResult_t NoInit(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*) { return ncclUnhandledCudaError; }

// Reports the collectives that it entered only after a delay, as slow heartbeats do.
class SlowToSay final : public Communicator {
 public:
  SlowToSay(Communicator& ranks, std::chrono::milliseconds delay)
      : Communicator(ranks.rank(), ranks.mesh()), ranks_(ranks), delay_(delay) {}
  std::string_view name() const override { return ranks_.name(); }
  void AllGather(const std::byte* mine, std::byte* full, int64_t bytes) override {
    ranks_.AllGather(mine, full, bytes);
  }
  void ReduceScatter(std::byte* full, DType dtype, int64_t elements, Reduction reduction) override {
    ranks_.ReduceScatter(full, dtype, elements, reduction);
  }
  void Abandon(const Error& why) noexcept override { ranks_.Abandon(why); }
  double timeout_s() const override { return ranks_.timeout_s(); }
  void Enter(int64_t collectives) override {
    if (collectives != 0) entered_at_ = std::chrono::steady_clock::now();
    entered_ += collectives;
  }
  std::optional<Error> Loss() const override {
    if (std::chrono::steady_clock::now() - entered_at_ >= delay_) ranks_.Enter(std::exchange(entered_, 0));
    return ranks_.Loss();
  }

 private:
  Communicator& ranks_;
  std::chrono::milliseconds delay_;
  std::chrono::steady_clock::time_point entered_at_;
  mutable int64_t entered_ = 0;
};

TEST(CheckNccl, TellsMemoryThatRanOut) {
  cuda_on_cpu::ResetMachine();
  Nccl nccl = FakeNccl();
  nccl.ncclGetLastError = [](ncclComm_t) { return "Cuda failure 2 'out of memory'"; };
  try {
    CheckNccl(nccl, ncclUnhandledCudaError, "ncclCommInitRankConfig");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    EXPECT_THAT(error.message(), HasSubstr("out of memory"));
    EXPECT_THAT(error.hint(), HasSubstr("NCCL_BUFFSIZE"));
  }
  // The cause of the device's end is reported instead.
  CudaStream stream = NewCudaStream();
  EXPECT_EQ(cuda_on_cpu::Enqueue(stream.get(), [] { return cudaErrorIllegalAddress; }), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaErrorIllegalAddress);
  try {
    CheckNccl(nccl, ncclUnhandledCudaError, "a collective");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    EXPECT_THAT(error.message(), HasSubstr("cudaErrorIllegalAddress"));
  }
  stream.reset();
  cuda_on_cpu::ResetMachine();
}

class NcclRanks : public ::testing::Test {
 protected:
  NcclRanks() {
    made = gone = asks_left = 0;
    remote_error = false;
    given_up.clear();
    nccl_.ncclCommInitRankConfig = CountedInit;
    nccl_.ncclCommDestroy = CountedDestroy;
    nccl_.ncclCommAbort = CountedAbort;
    cuda_on_cpu::ResetMachine({.devices = kWorld, .seed = 1});
  }
  ~NcclRanks() override {
    EXPECT_EQ(made, gone);
    EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U);
    EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0);
    EXPECT_EQ(cuda_on_cpu::LastFailure(), "");
  }

  // Runs fn(ranks, program). The program has recorded a gather that waits for the other ranks, ready to be queued.
  std::vector<std::string> Run(const Nccl& first, const Nccl& others,
                               const std::function<void(Communicator&, Program&)>& fn) {
    const auto begin = std::chrono::steady_clock::now();
    auto errors = testing::OnDevices(kWorld, kTimeoutS, [&](Communicator& ranks) {
      SlowToSay slow(ranks, delay_);
      Program program;
      Flights flights(program.trace, Mesh({.shard = kWorld}));
      const Tensor part = program.Make(DType::kF32, 1, 3, {1, 2, 3});
      const Tensor full = program.Empty(DType::kF32, 1, 3 * kWorld);
      flights.Land(flights.AllGather(MeshAxis::kShard, part, full));
      program.UseDevice(ranks.rank(), testing::Connected(ranks.rank() == 0 ? first : others, slow));
      fn(ranks, program);
    });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));  // before the emulator gives up
    return errors;
  }
  static void Step(Communicator& /*ranks*/, Program& program) {
    program.Step();
    Wait(program);
  }
  static void Wait(const Program& program) { program.Read({0, DType::kF32, 1, 3}); }
  // Waits until the others have been told that this rank, or another, is lost.
  static void AwaitLoss(const Communicator& ranks) {
    while (!ranks.Loss()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    throw Error(*ranks.Loss());
  }

  static constexpr int kWorld = 3;
  Nccl nccl_ = FakeNccl();
  std::chrono::milliseconds delay_{0};  // until a rank reports that it has entered a collective
};

TEST_F(NcclRanks, LeaveNothingBehind) {
  EXPECT_THAT(Run(nccl_, nccl_, Step), Each(""));
  EXPECT_EQ(made, kWorld);
}

TEST_F(NcclRanks, WaitForWhatNcclDoesByItself) {
  Nccl slow = nccl_;
  slow.ncclAllGather = Slow;
  slow.ncclCommGetAsyncError = AskedAgain;
  EXPECT_THAT(Run(nccl_, slow, Step), Each(""));
}

TEST_F(NcclRanks, EndWhereOneSaysThatItMust) {
  const auto errors = Run(nccl_, nccl_, [](Communicator& ranks, Program& program) {
    if (ranks.rank() == 1) throw Error(ErrorKind::kInfrastructure, "the disk is full");
    Step(ranks, program);
  });
  EXPECT_EQ(errors[1], "the disk is full");
  for (const int rank : {0, 2}) {
    EXPECT_THAT(errors[static_cast<size_t>(rank)],
                AllOf(HasSubstr("rank 1 on "), HasSubstr(" ended: the disk is full")));
  }
}

TEST_F(NcclRanks, EndWhereOneNeverComesToACollective) {
  const auto errors = Run(nccl_, nccl_, [](Communicator& ranks, Program& program) {
    ranks.rank() == 1 ? AwaitLoss(ranks) : Step(ranks, program);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 1 on "), HasSubstr(" did not answer within 2 s"))));
}

TEST_F(NcclRanks, EndWhereOneNeverComesToAReplayedCollective) {
  const auto errors = Run(nccl_, nccl_, [](Communicator& ranks, Program& program) {
    for (int step = 0; step < 5; ++step) program.Step();
    Wait(program);
    ranks.Barrier();
    if (ranks.rank() == 1) AwaitLoss(ranks);
    Step(ranks, program);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 1 on "), HasSubstr(" did not answer within 2 s"))));
}

TEST_F(NcclRanks, SayWhoseRankIsMissingThoughItIsSeenLate) {
  delay_ = std::chrono::milliseconds(300);
  const auto errors = Run(nccl_, nccl_, [](Communicator& ranks, Program& program) {
    ranks.rank() == 1 ? AwaitLoss(ranks) : Step(ranks, program);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 1 on "), HasSubstr(" did not answer within 2 s"))));
}

TEST_F(NcclRanks, EndWhereOneNeverComesToMeetTheOthers) {
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = testing::OnDevices(kWorld, kTimeoutS, [&](Communicator& ranks) {
    if (ranks.rank() == 1) AwaitLoss(ranks);
    testing::Connected(nccl_, ranks);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 1 on "), HasSubstr(" did not answer within 2 s"))));
}

TEST_F(NcclRanks, EndWhereNcclDoesNotConnectThem) {
  Nccl never = nccl_;
  never.ncclCommInitRankConfig = NeverReady;
  EXPECT_THAT(
      Run(never, never, Step),
      Each(HasSubstr("ncclCommInitRankConfig on rank")));  // its own error, or the one that another rank reported
}

TEST_F(NcclRanks, EndWhereNcclRefusesToConnectOne) {
  Nccl refuses = nccl_;
  refuses.ncclCommInitRankConfig = NoInit;
  const auto errors = Run(refuses, nccl_, Step);
  EXPECT_THAT(errors, Each(HasSubstr("NCCL: ncclCommInitRankConfig failed: ncclUnhandledCudaError")));
  EXPECT_THAT(errors[2], HasSubstr("rank 0 on "));
}

TEST_F(NcclRanks, EndWhereACollectiveFails) {
  Nccl failing = nccl_;
  failing.ncclAllGather = Fail;
  const auto errors = Run(failing, nccl_, Step);
  EXPECT_THAT(errors[0], HasSubstr("NCCL: ncclAllGather failed: ncclSystemError"));
  EXPECT_THAT(errors[1], AllOf(HasSubstr("rank 0 on "), HasSubstr("NCCL: ncclAllGather failed: ncclSystemError")));
}

// Fails every call that a rank itself makes to NCCL, in a step with each of its collectives.
TEST_F(NcclRanks, EndWhicheverCallOfOneFails) {
  LibraryWatch& watch = ThisWatch();
  Nccl watched = WatchedNccl();
  watched.ncclCommInitRankConfig = nccl_.ncclCommInitRankConfig;  // has a test of its own, and is counted
  watched.ncclCommGetAsyncError = nccl_.ncclCommGetAsyncError;    // called by another thread, any number of times
  watched.ncclCommDestroy = nccl_.ncclCommDestroy;
  watched.ncclCommAbort = nccl_.ncclCommAbort;
  std::set<std::string> failed;
  for (int call = 1;; ++call) {
    watch = {.fails_at = call};
    const auto errors = testing::OnDevices(kWorld, kTimeoutS, [&](Communicator& ranks) {
      Program program;
      Flights flights(program.trace, Mesh({.shard = kWorld}));
      const Tensor part = program.Make(DType::kF32, 1, 3, {1, 2, 3});
      const Tensor full = program.Empty(DType::kF32, 1, 3 * kWorld);
      flights.Land(flights.AllGather(MeshAxis::kShard, part, full));
      flights.Land(flights.AllReduce(MeshAxis::kShard, full));
      flights.Land(flights.ReduceScatter(MeshAxis::kShard, full, part, false));
      program.UseDevice(ranks.rank(), testing::Connected(ranks.rank() == 0 ? watched : nccl_, ranks));
      Step(ranks, program);
    });
    EXPECT_EQ(made, gone);
    EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U);
    EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0);
    if (watch.failed.empty()) break;
    failed.insert(watch.failed);
    if (watch.failed == "ncclCommFinalize") continue;  // the work is done by then
    EXPECT_THAT(errors, Each(HasSubstr("NCCL: " + watch.failed + " failed: ncclSystemError")));
  }
  EXPECT_THAT(failed, ::testing::IsSupersetOf({"ncclGetUniqueId", "ncclAllGather", "ncclAllReduce", "ncclReduceScatter",
                                               "ncclCommFinalize"}));
}

// Any rank may find no memory for its slab, its pinned memory, its streams and events, or its graph.
TEST_F(NcclRanks, EndWhereOneFindsNoMemory) {
  const auto steps = [](Communicator& ranks, Program& program) {
    for (int step = 0; step < 3; ++step) Step(ranks, program);
  };
  EXPECT_THAT(Run(nccl_, nccl_, steps), Each(""));
  const int64_t allocations = cuda_on_cpu::AllocationsMade();
  EXPECT_GT(allocations, 10 * kWorld);
  for (int64_t allocation = 1; allocation <= allocations; allocation += 2) {
    SCOPED_TRACE(allocation);
    cuda_on_cpu::ResetMachine({.devices = kWorld, .seed = 1});
    cuda_on_cpu::FailAllocation(allocation);
    EXPECT_THAT(Run(nccl_, nccl_, steps),
                Each(AnyOf(HasSubstr("cudaErrorMemoryAllocation"), HasSubstr("the plan needs "))));
    EXPECT_EQ(made, gone);
    EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U);
    EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0);
  }
}

// The same for any call of the runtime that finds its device gone.
TEST_F(NcclRanks, EndWhereTheDeviceOfOneIsGone) {
  EXPECT_THAT(Run(nccl_, nccl_, Step), Each(""));
  const int64_t calls = cuda_on_cpu::CallsMade();
  // Starts where the ranks have met. Before that, each has chosen its device, in one call.
  for (int64_t call = kWorld + 1; call <= calls; call += 11) {
    SCOPED_TRACE(call);
    cuda_on_cpu::ResetMachine({.devices = kWorld, .seed = 1});
    cuda_on_cpu::FailCall(call, cudaErrorECCUncorrectable);
    // After the last collective a rank fails alone, and a failed query goes unnoticed.
    EXPECT_THAT(Run(nccl_, nccl_, Step), Each(AnyOf("", HasSubstr("cudaErrorECCUncorrectable"))));
    EXPECT_EQ(made, gone);
    EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0U);
    EXPECT_EQ(cuda_on_cpu::OpenHandles(), 0);
  }
}

TEST_F(NcclRanks, EndWhereACollectiveFailsOnItsWay) {
  Nccl failing = nccl_;
  failing.ncclAllGather = Stand;
  failing.ncclCommGetAsyncError = AskedAgain;
  failing.ncclCommAbort = GiveUp;
  const auto errors = Run(failing, nccl_, [](Communicator& ranks, Program& program) {
    program.Step();
    if (ranks.rank() == 0) remote_error = true;
    Wait(program);
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 0 on "), HasSubstr("NCCL: a collective failed: ncclRemoteError"))));
}

TEST_F(NcclRanks, EndWhereACollectiveStandsStillThoughAllCame) {
  Nccl standing = nccl_;
  standing.ncclAllGather = Stand;
  standing.ncclCommAbort = GiveUp;
  EXPECT_THAT(Run(standing, standing, Step),
              Each(AllOf(HasSubstr(" on "), HasSubstr("NCCL: a collective did not end within 3 s"))));
}

// Its queued work waits for a rank that never comes when it is given back, while others still wait for theirs.
TEST_F(NcclRanks, EndWhereADeviceFailsInAReplayedStep) {
  const auto errors = Run(nccl_, nccl_, [](Communicator& ranks, Program& program) {
    for (int step = 0; step < 3; ++step) program.Step();
    Wait(program);
    ranks.Barrier();
    if (ranks.rank() == 0) AwaitLoss(ranks);
    program.Step();
    if (ranks.rank() == 1) {
      const CudaStream stream = NewCudaStream();
      CheckCuda(cuda_on_cpu::Enqueue(stream.get(), [] { return cudaErrorECCUncorrectable; }), "a test's work");
      CheckCuda(cudaStreamSynchronize(stream.get()), "a test's wait");
    }
    Wait(program);
  });
  EXPECT_THAT(errors, Each(HasSubstr("cudaErrorECCUncorrectable")));
}

TEST(Nccl, SaysErrorsByNameWithWhatItKnowsOfThem) {
  cuda_on_cpu::ResetMachine();
  Nccl nccl = FakeNccl();
  nccl.ncclGetLastError = [](ncclComm_t) { return "the link is down"; };
  CheckNccl(nccl, ncclSuccess, "ncclAllReduce");
  try {
    CheckNccl(nccl, ncclRemoteError, "ncclAllReduce");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
    EXPECT_EQ(error.message(), "NCCL: ncclAllReduce failed: ncclRemoteError (error): the link is down");
    EXPECT_THAT(error.hint(), HasSubstr("NCCL_SOCKET_IFNAME"));
  }
}

}  // namespace
}  // namespace ridgeline::engine
