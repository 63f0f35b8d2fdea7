// Which of several ends is the first cause, what a run has recovered from, and how little of a log is kept.
#include <gtest/gtest.h>

#include <vector>

#include "tests/trainers/end_logs.h"

namespace ridgeline {
namespace {

// The logs of several ranks or nodes.
TEST(FirstCauseOfEnds, OfSeveralLogsTheFirstCauseIsWhatARankSaysOfItself) {
  const auto told = EndOfText(Raised("RuntimeError: Connection reset by peer"), 1);
  const auto oom = EndOfText(Raised("torch.OutOfMemoryError: CUDA out of memory."), std::nullopt);
  const auto crash = EndOfText(Raised("KeyError: 'a'"), 1);
  const auto code = EndOfText("", 1);
  const auto ok = EndOfText(kSteps, 0);
  const auto of = [](std::vector<std::optional<LogEnd>> ends) { return FirstCause(ends); };
  EXPECT_EQ(of({told, std::nullopt, oom}).value().end, RunStatus::kOomDevice);
  EXPECT_EQ(of({told, crash}).value().end, RunStatus::kCrashed);
  const auto waited = EndOfText(Raised("torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for "
                                       "clients. 1/3 clients joined."),
                                1);
  EXPECT_EQ(of({waited, crash}).value().end, RunStatus::kCrashed) << "it waited for the one that crashed";
  EXPECT_EQ(of({crash, oom}).value().end, RunStatus::kOomDevice);
  EXPECT_EQ(of({code, told}).value().end, RunEnd(InfrastructureReason::kNode));
  EXPECT_EQ(of({ok, crash}).value().end, RunStatus::kCrashed);
  EXPECT_EQ(of({ok, ok}).value().end, RunStatus::kOk);
  EXPECT_FALSE(of({std::nullopt, std::nullopt}));
  EXPECT_FALSE(of({}));
}

std::optional<LogEnd> PendingOf(const std::string& log) {
  LogEnds ends(Stepping());
  int64_t number = 0;
  for (size_t at = 0; at < log.size();) {
    const size_t end = log.find('\n', at);
    const std::string line = log.substr(at, end - at);
    if (line.starts_with("step ")) ends.Step();
    ends.Line(++number, line);
    at = end + 1;
  }
  return ends.Pending();
}

TEST(FirstCauseOfEnds, WhileARunGoesOnWhatItHasOvercomeIsNoEnd) {
  const std::string oom = Raised("torch.OutOfMemoryError: CUDA out of memory.");
  EXPECT_EQ(PendingOf(kSteps + oom).value().end, RunStatus::kOomDevice);
  EXPECT_EQ(PendingOf(oom + "step 4 loss 2\n" + kWatchdog).value().end, RunStatus::kOomDevice)
      << "another rank had done a step before";
  EXPECT_FALSE(PendingOf(oom + kSteps));
  EXPECT_EQ(PendingOf(Raised("KeyError: 'a'")).value().end, RunStatus::kCrashed);
  for (const char* line : {"", "Received SIGTERM, saving\n", "step 1 loss nan\n", "OSError: No space left on device\n",
                           "CUDA out of memory detected, retrying\n", "Loss is nan, stopping training\n"}) {
    EXPECT_FALSE(PendingOf(line)) << line;
  }
  EXPECT_FALSE(PendingOf(kWatchdog));
}

// In one log of ranks that wait for others to start, a rank that did not wait never arrived.
TEST(FirstCauseOfEnds, OfRanksThatWaitedTheOneThatNeverCameSaysWhy) {
  const std::string waited =
      "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/3 "
      "clients joined.";
  const auto end = [&](const std::string& rest) {
    return EndOfText(Raised(waited, "[rank0]: ") + Raised(waited, "[rank2]: ") + rest, 1).value();
  };
  EXPECT_EQ(end(Raised("KeyError: 'late'", "[rank1]: ")).message, "KeyError: 'late'");
  EXPECT_EQ(end(Raised("KeyError: 'late'", "[rank1]: ")).end, RunStatus::kCrashed);
  const RunEnd start = InfrastructureReason::kStart;
  EXPECT_EQ(end(Raised("KeyError: 'cleanup'", "[rank2]: ")).end, start) << "which waited";
  EXPECT_EQ(end(Raised("KeyError: 'x'")).end, start) << "nobody knows whose it is";
  EXPECT_EQ(end(Raised("RuntimeError: Connection reset by peer", "[rank1]: ")).end, start) << "it was told";
  EXPECT_EQ(EndOfText(Raised(waited) + Raised("KeyError: 'x'", "[rank1]: "), 1).value().end, start)
      << "nobody knows who waited";
  EXPECT_EQ(end(kWatchdog + Raised("KeyError: 'x'", "[rank1]: ")).end, start) << "all ranks had a time-out";
}

TEST(FirstCauseOfEnds, ASizeThatNoMachineHasIsNoWantOfMemory) {
  const std::string absurd = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.";
  EXPECT_EQ(EndOfText(Raised(absurd), 1).value().end, RunStatus::kCrashed);
  EXPECT_EQ(EndOfText(kWatchdog + Raised(absurd), 1).value().end, RunStatus::kCrashed) << "and no time-out";
  for (const char* message :
       {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 17179869184.00 GiB. GPU 0 has",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:83] . DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 4611686018427387904 bytes. Error code 12",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 EiB for an array with shape (1,)",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "9223372036854775807 bytes.",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 1152921504606846976 "
        "bytes."}) {
    EXPECT_EQ(EndOfText(Raised(message), 1).value().end, RunStatus::kCrashed) << message;
  }
  for (const char* message :
       {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4096.00 GiB. GPU 0 has a total capacity of 79",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 998579896320 "
        "bytes."}) {
    EXPECT_EQ(EndOfText(Raised(message), 1).value().end, RunStatus::kOomDevice) << message;
  }
}

// PyTorch frees the memory it holds and tries again. It raises its OutOfMemoryError only if that fails too.
TEST(FirstCauseOfEnds, AnAllocationThatWasTriedAgainIsNoEnd) {
  const std::string retried =
      "W0424 10:12:01.1 CUDACachingAllocator.cpp:590] expandable segment cuMemCreate failed with OOM on device 0, "
      "requested 20971520 bytes\n";
  EXPECT_EQ(EndOfText(retried + Raised("KeyError: 'lr'"), 1).value().message, "KeyError: 'lr'");
  EXPECT_EQ(EndOfText(retried + Raised("torch.OutOfMemoryError: CUDA out of memory. Tried"), 1).value().end,
            RunStatus::kOomDevice);
  EXPECT_FALSE(EndOfText(retried, std::nullopt));
}

TEST(FirstCauseOfEnds, ASignalSaysWhatItCan) {
  EXPECT_EQ(EndOfSignal(15).value().end, RunEnd(InfrastructureReason::kPreempted));
  EXPECT_EQ(EndOfSignal(7).value().end, RunEnd(InfrastructureReason::kNode));
  EXPECT_FALSE(EndOfSignal(9));
  EXPECT_FALSE(EndOfSignal(11));
}

// A log's contents must not cost more memory than allowed.
TEST(FirstCauseOfEnds, OfHostileLogsLittleIsKept) {
  LogEnds ends(Stepping());
  for (int64_t i = 0; i < 5000; ++i) {
    ends.Line(i + 1, "[rank" + std::to_string(i) + "]: Traceback (most recent call last):");
    ends.Line(i + 1, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ");
    ends.Line(i + 1, "Failures:");
    ends.Line(i + 1, "Root Cause (first observed failure):");
    ends.Line(i + 1, "  exitcode  : 99999999999999999999999 (pid: x");
    ends.Line(i + 1, "=====");
  }
  EXPECT_EQ(ends.Decide(1).value().end, RunStatus::kCrashed);
}

// Endings as people posted them, in other forms than the words that identify most ends.
TEST(FirstCauseOfEnds, OfEndingsThatPeoplePosted) {
  struct Posted {
    std::string log;
    RunEnd end;
    std::string message;
  };
  const std::string table = "Root Cause (first observed failure):\n[0]:\n  rank      : 2 (local_rank: 2)\n";
  const std::vector<Posted> all = {
      {Raised("RuntimeError: DataLoader worker (pid 9382) is killed by signal: Killed. ", "[rank0]: ") +
           "[rank0]: The above exception was the direct cause of the following exception:\n" +
           Raised("RuntimeError: DataLoader worker (pid(s) 9382) exited unexpectedly", "[rank0]: "),
       RunStatus::kOomHost, "is killed by signal: Killed"},
      {Raised("RuntimeError: DataLoader worker (pid 25902) is killed by signal: Segmentation fault. "),
       RunStatus::kCrashed, "Segmentation fault"},
      {kSteps + "[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', '-u', "
                "'main.py'] exits with return code = -9\n",
       RunStatus::kOomHost, "return code = -9"},
      {kSteps +
           "[E ProcessGroupNCCL.cpp:1785] [PG ID 0 Rank 2] Process group watchdog thread terminated with exception: "
           "CUDA error: an illegal memory access was encountered\nterminate called after throwing an instance of "
           "'c10::DistBackendError'\n" +
           table + "  exitcode  : -6 (pid: 14750)\n",
       RunStatus::kCrashed, "an illegal memory access"},
      {kSteps + Raised("RuntimeError: [enforce fail at inline_container.cc:445] . PytorchStreamWriter failed writing "
                       "file data/176: file write failed"),
       InfrastructureReason::kStorage, "PytorchStreamWriter"},
      {kSteps + Raised("RuntimeError: write(): fd 29 failed with Input/output error"), InfrastructureReason::kStorage,
       "Input/output error"},
      {"x.py:46: UserWarning: [Errno 28] No space left on device.  joblib will operate in serial mode\n" +
           Raised("KeyError: 'a'"),
       RunStatus::kCrashed, "KeyError: 'a'"},
      {kSteps + "ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at iteration #3 invocation #2 "
                "(message='found NaN in local grad norm for bucket #0 in backward pass')\n",
       RunStatus::kDiverged, "found NaN in local grad norm"},
      {Raised(
           "RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory "
           "in memory space vmem."),
       RunStatus::kOomDevice, "vmem"},
      {"ResourceExhaustedError: failed to allocate memory\n\t [[{{node model/h18/ln_2/add_1}}]]\nHint: If you want to "
       "see a list of allocated tensors when OOM happens, add report_tensor_allocations_upon_oom\n",
       RunStatus::kOomDevice, "failed to allocate memory"},
      {Raised("torch.AcceleratorError: CUDA error: out of memory"), RunStatus::kOomDevice, "out of memory"},
      {Raised(
           "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted "
           "on non supported HW"),
       InfrastructureReason::kNode, "Error 804"},
      {Raised("OSError: [Errno 24] Too many open files"), InfrastructureReason::kLimit, "Errno 24"},
      {Raised("RuntimeError: Too many open files. Communication with the workers is no longer possible."),
       InfrastructureReason::kLimit, "Too many open files"},
      {Raised("RuntimeError: can't start new thread"), InfrastructureReason::kLimit, "can't start new thread"},
      {Raised("OSError: You are trying to access a gated repo.\n401 Client Error. (Request ID: Root=1)"),
       InfrastructureReason::kRights, "gated repo"},
  };
  for (const Posted& posted : all) {
    const auto end = EndOfText(posted.log, 1).value();
    EXPECT_EQ(end.end, posted.end) << posted.log;
    EXPECT_NE(end.message.find(posted.message), std::string::npos) << end.message;
  }
}

}  // namespace
}  // namespace ridgeline
