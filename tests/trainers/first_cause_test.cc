// Which of several ends is the first cause, what a run has recovered from, and how little of a log is kept.
#include <gtest/gtest.h>

#include <vector>

#include "tests/trainers/end_logs.h"

namespace ridgeline::trainers {
namespace {

// The logs of several ranks or nodes.
TEST(FirstCauseOfEnds, TheFirstCauseIsWhatARankSaysAboutItself) {
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
TEST(FirstCauseOfEnds, ARankThatNeverCameIsTheCauseForThoseThatWaited) {
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

TEST(FirstCauseOfEnds, AnImpossibleAllocationIsNotOutOfMemory) {
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
TEST(FirstCauseOfEnds, KeepsLittleOfHostileLogs) {
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
TEST(FirstCauseOfEnds, FindsTheCauseInEndingsThatPeoplePosted) {
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
      {Raised(
           "torch.distributed.DistBackendError: NCCL error in: x.cpp:1333, unhandled cuda error, NCCL version 2.19.3") +
           "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nFailed to CUDA calloc async 2432 "
           "bytes\n",
       RunStatus::kOomDevice, "calloc async"},
      {"ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 1.125000GB memory on GPU 0\n",
       RunStatus::kOomDevice, "on GPU 0"},
      {"/x/y.py:12: FutureWarning: old [rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.\n",
       RunStatus::kOomDevice, "Tried to allocate"},
      {Raised("pyarrow.lib.ArrowMemoryError: malloc of size 8589934592 failed"), RunStatus::kOomHost, "ArrowMemory"},
      {"memory allocation of 34359738368 bytes failed\n", RunStatus::kOomHost, "34359738368"},
      {kSteps + "[rank: 3] Child process with PID 123 terminated with code -9. Forcefully terminating all other "
                "processes to avoid zombies\n",
       RunStatus::kOomHost, "rank: 3"},
      {kSteps + "Killed\n", RunStatus::kOomHost, "Killed"},
      {Raised("RuntimeError: DataLoader worker (pid(s) 9382) exited unexpectedly"), InfrastructureReason::kNode,
       "exited unexpectedly"},
      {Raised("RuntimeError: NCCL Error 2: unhandled system error"), InfrastructureReason::kNode, "unhandled system"},
      {Raised("torch.distributed.DistBackendError: [Rank 3] Work WorkNCCL(SeqNum=2521, OpType=ALLREDUCE, "
              "Timeout(ms)=600000) timed out in blocking wait."),
       InfrastructureReason::kNode, "blocking wait"},
      {kSteps + "[rank4]:[F1103 09:14:51 ProcessGroupNCCL.cpp:1554] [PG ID 0 Rank 4] Terminating the process after "
                "attempting to dump debug info, due to collective timeout or exception.\n",
       InfrastructureReason::kNode, "collective timeout"},
      {kSteps + "srun: error: Node failure on n3\n", InfrastructureReason::kNode, "n3"},
      {Raised("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"),
       InfrastructureReason::kNode, "busy"},
      {Raised("MisconfigurationException: No supported gpu backend found!"), InfrastructureReason::kNode,
       "gpu backend"},
      {Raised(
           "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False."),
       InfrastructureReason::kNode, "is_available"},
      {Raised("BlockingIOError: [Errno 11] Resource temporarily unavailable"), InfrastructureReason::kLimit,
       "Errno 11"},
      {"libgomp: Thread creation failed: Resource temporarily unavailable\n", InfrastructureReason::kLimit, "Thread"},
      {Raised("OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/lustre/x'"),
       InfrastructureReason::kStorage, "/lustre/x"},
      {Raised("OSError: [Errno 112] Host is down: '/mnt/x'"), InfrastructureReason::kStorage, "/mnt/x"},
      {Raised("OSError: [Errno 70] Communication error on send: '/lustre/x'"), InfrastructureReason::kStorage,
       "Communication"},
      {Raised("requests.exceptions.ConnectionError: (ProtocolError('Connection aborted.', ConnectionResetError(104, "
              "'Connection reset by peer')), '(Request ID: x)')"),
       InfrastructureReason::kStart, "Request ID"},
      {Raised("urllib3.exceptions.ProtocolError: ('Connection aborted.', RemoteDisconnected('Remote end closed'))"),
       InfrastructureReason::kStart, "RemoteDisconnected"},
      {Raised("httpx.ConnectError: [Errno 111] Connection refused"), InfrastructureReason::kStart, "httpx"},
      {Raised("wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec."),
       InfrastructureReason::kStart, "CommError"},
      {"/usr/bin/python3: No module named trl.scripts.sft\n", InfrastructureReason::kStart, "trl.scripts"},
      {Raised("AssertionError: Torch not compiled with CUDA enabled"), InfrastructureReason::kStart, "not compiled"},
      {Raised("importlib.metadata.PackageNotFoundError: No package metadata was found for bitsandbytes"),
       InfrastructureReason::kStart, "bitsandbytes"},
      {"Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open shared object "
       "file\nAborted (core dumped)\n",
       InfrastructureReason::kStart, "libcudnn"},
      {"./train: /lib/libc.so.6: version `GLIBC_2.38' not found (required by ./train)\n", InfrastructureReason::kStart,
       "GLIBC_2.38"},
      {"bash: ./train: cannot execute binary file: Exec format error\n", InfrastructureReason::kStart, "Exec format"},
      {"n1: ssh: connect to host n1 port 22: Connection refused\npdsh@n0: n1: ssh exited with exit code 255\n",
       InfrastructureReason::kStart, "port 22"},
      {"n1: Host key verification failed.\n", InfrastructureReason::kStart, "Host key"},
      {"mpirun was unable to launch the specified application as it could not access\nor execute an executable:\n",
       InfrastructureReason::kStart, "mpirun"},
      {"srun: error: Task launch for StepId=12.0 failed on node n3: Communication connection failure\n",
       InfrastructureReason::kStart, "n3"},
      {Raised("ValueError: Some keys are not used by the HfArgumentParser: ['foo']"), RunStatus::kInvalid, "foo"},
      {"ERROR: unknown command line flag 'foo'\n", RunStatus::kInvalid, "foo"},
      {"\u256d\u2500 Error \u2500\u256e\n\u2502 No such option: --foo        \u2502\n", RunStatus::kInvalid, "--foo"},
      {Raised(
           "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be "
           "clipped."),
       RunStatus::kDiverged, "non-finite"},
      {Raised("RuntimeError: Function 'MulBackward0' returned nan values in its 0th output."), RunStatus::kDiverged,
       "MulBackward0"},
      {"[INFO] See https://x/y for 'CUDA out of memory' errors\n" + Raised("KeyError: 'a'"), RunStatus::kCrashed,
       "KeyError: 'a'"},
      {"expandable_segments:True (helps against CUDA out of memory.)\n" + Raised("KeyError: 'a'"), RunStatus::kCrashed,
       "KeyError: 'a'"},
      {"[1,0]<stderr>:SyntaxError: invalid syntax\n", RunStatus::kCrashed, "SyntaxError"},
      {kSteps + "slurmstepd: error: Step 12.0 exceeded memory limit (67108864 > 62914560), being killed\n",
       RunStatus::kOomHost, "memory limit"},
      {kSteps +
           "[rank1]:[E1103 ProcessGroupNCCL.cpp:1484] ProcessGroupNCCL's watchdog got stuck for 480 seconds without "
           "making progress in monitoring enqueued collectives.\n",
       InfrastructureReason::kNode, "got stuck"},
      {Raised("RuntimeError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error"),
       InfrastructureReason::kNode, "nvlink"},
      {Raised("RuntimeError: CUDA error: MPS client failed to connect to the MPS control daemon or the MPS server"),
       InfrastructureReason::kNode, "MPS"},
      {Raised("RuntimeError: HIP error: no ROCm-capable device is detected"), InfrastructureReason::kNode, "ROCm"},
      {Raised("RuntimeError: received 0 items of ancdata"), InfrastructureReason::kLimit, "ancdata"},
      {Raised("OSError: [Errno 110] Connection timed out: '/mnt/nfs/x'"), InfrastructureReason::kStorage, "/mnt/nfs"},
      {Raised("botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the GetObject operation "
              "(reached "
              "max retries: 4): "
              "Please reduce your request rate."),
       InfrastructureReason::kStart, "SlowDown"},
      {Raised("google.api_core.exceptions.TooManyRequests: 429 GET https://storage.googleapis.com/x"),
       InfrastructureReason::kStart, "TooManyRequests"},
      {kSteps + "prterun noticed that process rank 1 with PID 123 on node n1 exited on signal 15 (Terminated).\n",
       InfrastructureReason::kPreempted, "signal 15"},
  };
  for (const Posted& posted : all) {
    const auto end = EndOfText(posted.log, 1).value();
    EXPECT_EQ(end.end, posted.end) << posted.log;
    EXPECT_NE(end.message.find(posted.message), std::string::npos) << end.message;
  }
}

// The exit code of `train | tee log` is tee's, and a program that is told to leave may end with 0.
TEST(FirstCauseOfEnds, WithExitCodeZeroAnErrorCountsIfStepsAreMissing) {
  const auto end = [](const std::string& log, std::optional<int64_t> steps) {
    ReadingOptions options;
    options.exit_code = 0;
    options.steps = steps;
    return ReadLog(
               Stepping(), [&](const auto& feed) { feed(log); }, options)
        .end.value()
        .end;
  };
  const std::string crash = Raised("ValueError: heads");
  EXPECT_EQ(end(kSteps + crash, 8), RunStatus::kCrashed);
  EXPECT_EQ(end(crash, 8), RunStatus::kOk) << "perhaps another rank logs the steps";
  EXPECT_EQ(end(kSteps + "exiting program after receiving SIGTERM.\n", 8), RunEnd(InfrastructureReason::kPreempted));
  EXPECT_EQ(end(kSteps + crash, 4), RunStatus::kOk) << "steps may be counted from 0";
  EXPECT_EQ(end(kSteps + crash, std::nullopt), RunStatus::kOk) << "nobody knows how many there are";
  EXPECT_EQ(end(crash + kSteps, 8), RunStatus::kOk) << "it went on";
  EXPECT_EQ(end(kSteps, 8), RunStatus::kOk);
  EXPECT_EQ(end("step 0 loss 3\n" + crash, 8), RunStatus::kOk) << "it may log every tenth step";
  const std::string sparse = "step 10 loss 3\nstep 20 loss 2\n";
  EXPECT_EQ(end(sparse + crash, 28), RunStatus::kOk) << "the next line would be of step 30";
  EXPECT_EQ(end(sparse + crash, 32), RunStatus::kCrashed);
}

TEST(FirstCauseOfEnds, WithACodeAloneTheLastLineIsSaid) {
  EXPECT_EQ(EndOfText(kSteps + "bash: line 1: cd: /w: No such file or directory\n\n", 1).value().message,
            "it ended with exit code 1; its last line: bash: line 1: cd: /w: No such file or directory");
  EXPECT_EQ(EndOfText(kSteps, 3).value().message, "it ended with exit code 3") << "a step is no cause";
}

// Python prints such a traceback and goes on, as of a destructor that fails.
TEST(FirstCauseOfEnds, AnExceptionThatPythonIgnoresIsNoCause) {
  const std::string ignored = "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\n" +
                              Raised("AssertionError: can only test a child process") + "second line\n";
  EXPECT_EQ(EndOfText(ignored + ignored + Raised("ValueError: heads"), 1).value().message, "ValueError: heads");
  EXPECT_EQ(EndOfText(Raised("ValueError: heads") + ignored, 1).value().message, "ValueError: heads");
  EXPECT_EQ(EndOfText(ignored, 1).value().message, "it ended with exit code 1; its last line: second line");
  const std::string other = "[rank1]: Exception ignored in: <function f at 0x7f>\n";
  EXPECT_EQ(EndOfText(other + Raised("ValueError: heads", "[rank0]: "), 1).value().message, "ValueError: heads");
  EXPECT_FALSE(PendingOf(ignored));
}

}  // namespace
}  // namespace ridgeline::trainers
