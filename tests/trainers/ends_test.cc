// Ends as trainers, libraries and launchers print them. Each was posted by somebody, and is shortened to the relevant
// lines.
#include "trainers/ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "run/result.h"
#include "tests/trainers/end_logs.h"

namespace ridgeline::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Ending {
  const char* what;
  std::string log;
  std::optional<int> exit_code;
  const char* end;
  const char* message;  // a part of it
};

void ExpectAll(const std::vector<Ending>& endings) {
  for (const Ending& ending : endings) {
    const std::optional<LogEnd> end = EndOfText(ending.log, ending.exit_code);
    EXPECT_EQ(end ? EndName(end->end) : "", ending.end) << ending.what;
    if (!end) continue;
    EXPECT_THAT(end->message, HasSubstr(ending.message)) << ending.what;
    EXPECT_THAT(end->message, Not(HasSubstr("ChildFailedError"))) << ending.what;
    EXPECT_EQ(end->hint.empty(), end->end == RunStatus::kOk) << ending.what;
  }
}

// torchrun's report of the rank that failed first.
std::string Elastic(int rank, int local_rank, const std::string& exit_code, const std::string& traceback,
                    const std::string& failures = "  <NO_OTHER_FAILURES>\n") {
  const std::string at = "W1103 09:14:51.1 412 torch/distributed/elastic/multiprocessing/api.py:897] ";
  return at +
         "Sending process 418 closing signal SIGTERM\nE1103 09:14:52.1 412 torch/distributed/elastic/multiprocessing/"
         "api.py:869] failed (exitcode: " +
         exit_code + ") local_rank: " + std::to_string(local_rank) +
         " (pid: 4187) of binary: /usr/bin/python3\nTraceback (most recent call last):\n  File \"/usr/bin/torchrun\", "
         "line 8, in <module>\n    sys.exit(main())\n    raise ChildFailedError(\n"
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" +
         std::string(60, '=') + "\ntrain.py FAILED\n" + std::string(60, '-') + "\nFailures:\n" + failures +
         std::string(60, '-') +
         "\nRoot Cause (first observed failure):\n[0]:\n  time      : 2025-11-03_09:14:52\n  host      : node-0\n"
         "  rank      : " +
         std::to_string(rank) + " (local_rank: " + std::to_string(local_rank) + ")\n  exitcode  : " + exit_code +
         " (pid: 4187)\n  error_file: <N/A>\n  traceback : " + traceback + "\n" + std::string(60, '=') + "\n";
}

constexpr const char* kNoTraceback = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";
TEST(EndsOfTrainers, RunningOutOfDeviceMemory) {
  ExpectAll({
      {"PyTorch 2.5",
       Raised("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. If "
              "reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF"),
       1, "oom_device", "4.00 GiB"},
      {"PyTorch 2.0", Raised("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"), 1,
       "oom_device", "2.00 GiB"},
      {"PyTorch 1", Raised("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB)"), 1,
       "oom_device", "20.00 MiB"},
      {"an asynchronous one", Raised("RuntimeError: CUDA error: out of memory"), 1, "oom_device", "CUDA error"},
      {"THC", Raised("RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/x.cu:58"), 1,
       "oom_device", "runtime error"},
      {"expandable segments", Raised("RuntimeError: CUDA driver error: out of memory"), 1, "oom_device", "driver"},
      {"cuBLAS", Raised("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), 1,
       "oom_device", "CUBLAS"},
      {"cuDNN", Raised("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), 1, "oom_device", "CUDNN"},
      {"ROCm", Raised("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 8.00 GiB"), 1, "oom_device", "HIP"},
      {"ROCm's older", Raised("RuntimeError: HIP out of memory. Tried to allocate 8.00 GiB"), 1, "oom_device", "HIP"},
      {"MPS", Raised("RuntimeError: MPS backend out of memory (MPS allocated: 8.83 GB, max allowed: 9.07 GB)."), 1,
       "oom_device", "MPS"},
      {"an older JAX", Raised("RuntimeError: Internal: Failed to load: CUDA_ERROR_OUT_OF_MEMORY: out of memory"), 1,
       "oom_device", "CUDA_ERROR"},
      {"Triton", Raised("RuntimeError: Triton Error [CUDA]: out of memory"), 1, "oom_device", "Triton"},
      {"Transformer Engine", Raised("RuntimeError: /te/common/util.cu:20 in function f: CUDA Error: out of memory"), 1,
       "oom_device", "util.cu"},
      {"NCCL's own words",
       "n1:306:3066 [3] include/alloc.h:178 NCCL WARN Cuda failure 2 'out of memory'\n" +
           Raised("torch.distributed.DistBackendError: NCCL error in: ../NCCLUtils.hpp:317, "
                  "unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5") +
           "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n",
       1, "oom_device", "Cuda failure 2"},
      {"NCCL, on a message's third line",
       Raised(
           "[rank1]: torch.distributed.DistBackendError: NCCL error in: ../NCCLUtils.hpp:317, unhandled cuda error") +
           "[rank1]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank1]: Last error:\n[rank1]: Cuda "
           "failure "
           "2 'out of memory'\n",
       1, "oom_device", "Cuda failure"},
      {"JAX",
       Raised("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
              "7406166528 bytes."),
       1, "oom_device", "7406166528"},
      {"JAX 0.7", Raised("jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 12884901888 bytes."),
       1, "oom_device", "12884901888"},
      {"a TPU",
       Raised("RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: Error allocating device buffer: "
              "Attempting to allocate 196.00M. That was not possible. There are 134.44M free."),
       1, "oom_device", "196.00M"},
      {"TensorFlow",
       Raised("tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node __wrapped__MatMul}} OOM "
              "when allocating tensor with shape[8192,8192] and type float on /job:localhost/device:GPU:0 by allocator "
              "GPU_0_bfc [Op:MatMul]"),
       1, "oom_device", "8192"},
      {"Ray, in whose words the cause comes last",
       Raised("ray.exceptions.RayTaskError(OutOfMemoryError): ray::Worker.train() (pid=812, ip=10.0.0.1)") +
           "  File \"w.py\", line 3, in train\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 "
           "GiB.\n",
       1, "oom_device", "2.00 GiB"},
      {"accelerate, that tried all", Raised("RuntimeError: No executable batch size found, reached zero."), 1,
       "oom_device", "reached zero"},
      {"C++", "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: out of memory\n",
       134, "oom_device", "what()"},
      {"beside the watchdog of the others",
       Raised("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.") + kWatchdog +
           Elastic(0, 0, "-6", "Signal 6 (SIGABRT) received by PID 4187"),
       1, "oom_device", "[rank3]"},
      {"raised while another was handled",
       Raised("KeyError: 'cache'") + "\nDuring handling of the above exception, another exception occurred:\n\n" +
           Raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.") +
           "\nDuring handling of the above exception, another exception occurred:\n\n" + Raised("NameError: name 'x'"),
       1, "oom_device", "1 GiB"},
      {"with its steps behind it, as a buffer was emptied last",
       Raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.") + kSteps, 1, "oom_device",
       "1 GiB"},
      {"of a worker whose log is elsewhere",
       Elastic(5, 1, "1",
               "Traceback (most recent call last):\n    File \"t.py\"\n"
               "      f()\n  torch.OutOfMemoryError: CUDA out of memory."),
       1, "oom_device", "out of memory"},
  });
}

TEST(EndsOfTrainers, RunningOutOfHostMemory) {
  const std::string cgroup = "Some of the step tasks have been OOM Killed.\n";
  ExpectAll({
      {"torchrun", kSteps + Elastic(5, 5, "-9", "Signal 9 (SIGKILL) received by PID 4187"), 1, "oom_host",
       "rank 5 (local rank 5) on node-0 ended with signal 9 (Killed)"},
      {"torchrun, cut off",
       "torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: -9) local_rank: 0 "
       "(pid: 1322) of binary: /usr/bin/python\n",
       1, "oom_host", "local_rank: 0"},
      {"Slurm",
       "slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. " + cgroup +
           "srun: error: n1: task 0: Out Of Memory\n",
       1, "oom_host", "11300781"},
      {"Slurm's older",
       "slurmstepd: error: Detected 2 oom-kill event(s) in step 3495064.0 cgroup. Some of your "
       "processes may have been killed by the cgroup out-of-memory handler.\n",
       137, "oom_host", "3495064"},
      {"srun alone", "srun: error: nid001277: tasks 1-3: Out Of Memory\nsrun: Terminating StepId=440575.0\n", 137,
       "oom_host", "nid001277"},
      {"a worker of the data loader",
       Raised("RuntimeError: DataLoader worker (pid 46794) is killed by signal: Killed. "), 1, "oom_host", "46794"},
      {"Python", Raised("MemoryError"), 1, "oom_host", "MemoryError"},
      {"NumPy", Raised("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.3 GiB for an array with shape"),
       1, "oom_host", "7.3 GiB"},
      {"PyTorch",
       Raised("RuntimeError: [enforce fail at alloc_cpu.cpp:114] err == 0. DefaultCPUAllocator: can't allocate "
              "memory: you tried to allocate 536870912 bytes. Error code 12"),
       1, "oom_host", "536870912"},
      {"C++", "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n", 134,
       "oom_host", "bad_alloc"},
      {"fork", Raised("OSError: [Errno 12] Cannot allocate memory"), 1, "oom_host", "Errno 12"},
      {"TensorFlow",
       Raised("errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[9] and type float "
              "on /job:localhost/device:CPU:0 by allocator cpu"),
       1, "oom_host", "by allocator cpu"},
      {"Ray", Raised("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."), 1,
       "oom_host", "low on memory"},
      {"DeepSpeed",
       "[2023-04-14 13:11:27] [INFO] [launch.py:428:sigkill_handler] Killing subprocess 13266\n[2023-04-14 "
       "13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', 'main.py'] exits with "
       "return code = -9\n",
       247, "oom_host", "return code = -9"},
      {"mpirun", "mpirun noticed that process rank 7 with PID 0 on node n1 exited on signal 9 (Killed).\n", 137,
       "oom_host", "rank 7"},
      {"spawned",
       Raised("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL"), 1,
       "oom_host", "process 1"},
      {"Composer", "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -9.\n", 1, "oom_host", "Rank 2"},
      {"the kernel", "[98.1] Memory cgroup out of memory: Killed process 4187 (python3) total-vm:9kB\n", 137,
       "oom_host", "4187"},
      {"a shell", "run.sh: line 12:  4187 Killed                  python3 train.py\n", 137, "oom_host", "4187"},
      {"killed, of which the others were told",
       "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:10895\n" +
           Elastic(2, 2, "-9", "Signal 9 (SIGKILL) received by PID 4187"),
       1, "oom_host", "rank 2"},
  });
}

// The messages of PyTorch 2.7's CUDACachingAllocator.cpp and alloc_cpu.cpp, and of NumPy, about a size that was
// computed wrong.
TEST(EndsOfTrainers, AnImpossibleAllocationIsNotOutOfMemory) {
  ExpectAll({
      {"a device's",
       Raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.", "[rank0]: "), 1,
       "crashed", "1EB"},
      {"the host's",
       Raised("RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: can't allocate memory: you "
              "tried to allocate 4611686018427387904 bytes. Error code 12 (Cannot allocate memory)"),
       1, "crashed", "4611686018427387904"},
      {"NumPy's",
       Raised("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 EiB for an array with shape "
              "(1152921504606846976,) and data type float64"),
       1, "crashed", "EiB"},
      {"JAX's",
       Raised("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
              "9007199254740992 bytes."),
       1, "crashed", "9007199254740992"},
      {"one that a device may have",
       Raised("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
              "137438953472 bytes."),
       1, "oom_device", "137438953472"},
  });
}

TEST(EndsOfTrainers, AQuotedOrOvercomeEndIsNone) {
  ExpectAll({
      {"advice",
       "Hint: if you see torch.OutOfMemoryError: CUDA out of memory. Reduce the batch\n" + Raised("KeyError: 'a'"), 1,
       "crashed", "KeyError: 'a'"},
      {"advice that could", "This could raise RuntimeError: CUDA out of memory.\n", 1, "crashed", "exit code 1"},
      {"code in a frame", Raised("ValueError: heads"), 1, "crashed", "ValueError: heads"},
      {"Ray's possible causes",
       Raised("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task. There are some "
              "potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage."),
       1, "infrastructure (node)", "actor died"},
      {"Composer's smaller micro-batches",
       "RuntimeWarning: CUDA out of memory detected. Train microbatch size will be decreased from 16 -> 8.\n" + kSteps,
       0, "ok", ""},
      {"caught and retried", "OOM: CUDA out of memory. Tried to allocate 1 GiB.\n" + kSteps, 0, "ok", ""},
      {"caught, and something else later",
       Raised("torch.OutOfMemoryError: CUDA out of memory. Tried 1 GiB.") + kSteps + Raised("KeyError: 'eval'"), 1,
       "crashed", "KeyError: 'eval'"},
      {"caught, and then a word of nobody", "OOM: CUDA out of memory. Tried to allocate 1 GiB.\n" + kSteps, 1,
       "crashed", "exit code 1"},
      {"caught, and then a time-out", "OOM: CUDA out of memory. Tried 1 GiB.\n" + kSteps + kWatchdog, 1,
       "infrastructure (node)", "Watchdog"},
      {"fairseq's recovery",
       "| WARNING: ran out of memory with exception: CUDA out of memory. Tried 1 GiB;\n" + kSteps +
           Raised("AssertionError: empty batch"),
       1, "crashed", "AssertionError"},
      {"XLA's autotuner",
       "Failed to determine best cudnn convolution algorithm: RESOURCE_EXHAUSTED: Out of memory while "
       "trying to allocate 16787216 bytes.\n" +
           Raised("KeyError: 'x'"),
       1, "crashed", "KeyError"},
      {"XLA's allocator",
       "Allocator (GPU_0_bfc) ran out of memory trying to allocate 16.00MiB. The caller indicates that "
       "this is not a failure\n",
       1, "crashed", "exit code 1"},
      {"Triton's shared memory",
       Raised("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: "
              "147456, Hardware limit: 101376. Reducing block sizes may help."),
       1, "crashed", "OutOfResources"},
      {"a time-out that speaks of it", Raised("TimeoutError: rank 3 did not answer; it may be out of memory"), 1,
       "crashed", "TimeoutError"},
      {"a hub that is asked again",
       "HTTP Error 429 thrown while requesting HEAD https://huggingface.co/x. Retrying in 1s "
       "[Retry 1/5].\n" +
           Raised("KeyError: 'x'"),
       1, "crashed", "KeyError"},
      {"a driver that a run on processors lacks",
       "UserWarning: CUDA initialization: Found no NVIDIA driver on your system.\n" + Raised("KeyError: 'x'"), 1,
       "crashed", "KeyError"},
      {"a port that was tried first",
       "[W socket.cpp:401] [c10d] The server socket has failed to bind to [::]:29500 (errno: "
       "98 - Address already in use).\n" +
           Raised("KeyError: 'x'"),
       1, "crashed", "KeyError"},
      {"a quota of a service", Raised("grpc.RpcError: RESOURCE_EXHAUSTED: Quota exceeded"), 1, "crashed", "Quota"},
  });
}

TEST(EndsOfTrainers, FailuresOfTheInfrastructure) {
  const auto nccl = [](const std::string& what, const std::string& line) {
    return Raised("[rank5]: torch.distributed.DistBackendError: NCCL error in: ../NCCLUtils.hpp:268, " + what +
                      ", NCCL version 2.21.5",
                  "") +
           "[rank5]: " + line + "\n";
  };
  ExpectAll({
      {"a port",
       Raised("torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
              "address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"),
       1, "infrastructure (start)", "29500"},
      {"a port, older", Raised("RuntimeError: Address already in use"), 1, "infrastructure (start)", "in use"},
      {"a rendezvous",
       Raised("torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/3 "
              "clients joined."),
       1, "infrastructure (start)", "1/3"},
      {"torchrun's rendezvous", Raised("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"), 1,
       "infrastructure (start)", "Rendezvous"},
      {"JAX's", Raised("jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: x"), 1,
       "infrastructure (start)", "Barrier"},
      {"a store that nobody answers", Raised("torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /k"),
       1, "infrastructure (node)", "300000ms"},
      {"a drain, of torchrun",
       kSteps +
           "W0409 07:28:49.5 1359 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, "
           "shutting "
           "down workers\n" +
           Raised("torch.distributed.elastic.multiprocessing.api.SignalException: Process 871 got signal: 15"),
       1, "infrastructure (preempted)", "15"},
      {"a drain, of Lightning",
       "[rank: 0] Received SIGTERM: 15\n" + Raised("lightning.fabric.utilities.exceptions.SIGTERMException"), 1,
       "infrastructure (preempted)", "SIGTERM"},
      {"a drain, of Megatron", "exiting program after receiving SIGTERM.\n", 1, "infrastructure (preempted)",
       "SIGTERM"},
      {"a drain, and no words", kSteps, 143, "infrastructure (preempted)", "143"},
      {"a preemption", "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2025-01-01T10:00:00 DUE TO PREEMPTION ***\n",
       143, "infrastructure (preempted)", "PREEMPTION"},
      {"Slurm's time limit",
       "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2025-01-01T10:00:00 DUE TO TIME LIMIT ***\n", 143, "timeout",
       "TIME LIMIT"},
      {"a quota", Raised("OSError: [Errno 122] Disk quota exceeded: '/home/u/ckpt'"), 1, "infrastructure (storage)",
       "122"},
      {"a full disk",
       Raised("RuntimeError: [enforce fail at inline_container.cc:764] . PytorchStreamWriter failed writing "
              "file data/0: file write failed: No space left on device"),
       1, "infrastructure (storage)", "No space"},
      {"NFS", Raised("OSError: [Errno 116] Stale file handle"), 1, "infrastructure (storage)", "Stale"},
      {"NFS, of HDF5",
       Raised("OSError: Can't write data (file write failed: errno = 116, error message = 'Stale file handle')"), 1,
       "infrastructure (storage)", "Stale"},
      {"a checkpoint that was cut short",
       Raised("RuntimeError: [enforce fail at inline_container.cc:445] . PytorchStreamWriter failed writing file "
              "data/176: file write failed") +
           "\nDuring handling of the above exception, another exception occurred:\n\n" +
           Raised("RuntimeError: [enforce fail at inline_container.cc:325] . unexpected pos 190007680 vs 190007572"),
       1, "infrastructure (storage)", "data/176"},
      {"a job that somebody cancelled",
       kSteps + "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2025-01-10T15:27:25 ***\nsrun: Job step aborted: "
                "Waiting up to 32 seconds for job step to finish.\nsrun: error: n1: task 0: Terminated\n",
       143, "infrastructure (preempted)", "CANCELLED"},
      {"a node that mpirun lost", "ORTE has lost communication with a remote daemon.\n", 1, "infrastructure (node)",
       "lost communication"},
      {"a node where mpirun cannot start",
       "ssh: connect to host 10.0.0.1 port 50000: Connection refused\nORTE was unable to reliably start one or more "
       "daemons.\n",
       1, "infrastructure (start)", "port 50000"},
      {"a network that has no way",
       "ps-8:795:822 [0] include/socket.h:409 NCCL WARN Net : Connect to 192.168.1.9<54263> failed : No route to "
       "host\n" +
           Raised("RuntimeError: NCCL error in: /x/ProcessGroupNCCL.cpp:1191, internal error, NCCL version 2.10.3"),
       1, "infrastructure (node)", "No route"},
      {"a store that nobody opened",
       Raised("torch.distributed.DistNetworkError: The client socket has timed out after 300000ms while trying to "
              "connect to (n1, 41331)."),
       1, "infrastructure (start)", "300000ms"},
      {"a store that nobody opened, older",
       Raised("RuntimeError: connect() timed out. Original timeout was 60000 ms.") +
           "\nThe above exception was the direct cause of the following exception:\n\n" +
           Raised("torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d "
                  "store has failed. See inner exception for details."),
       1, "infrastructure (start)", "60000 ms"},
      {"no GPU for NCCL", Raised("RuntimeError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!"), 1,
       "infrastructure (node)", "no GPUs"},
      {"a program that a shell misses", "bash: line 1: torchrun: command not found\n", 127, "infrastructure (start)",
       "torchrun"},
      {"a disk", Raised("OSError: [Errno 5] Input/output error: '/data/c4.bin'"), 1, "infrastructure (storage)",
       "c4.bin"},
      {"the hub's limit",
       Raised("huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: x"), 1,
       "infrastructure (start)", "429"},
      {"the hub, down", Raised("requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: x"), 1,
       "infrastructure (start)", "503"},
      {"the hub, out of reach", Raised("OSError: We couldn't connect to 'https://huggingface.co' to load the files"), 1,
       "infrastructure (start)", "huggingface"},
      {"shared memory",
       "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
       "memory (shm).\n" +
           Raised("RuntimeError: DataLoader worker (pid 2) is killed by signal: Bus error. "
                  "It is possible that dataloader's workers are out of shared memory."),
       1, "infrastructure (node)", "us error"},
      {"shared memory that is missing",
       Raised("RuntimeError: unable to open shared memory object </torch_12_34> in read-write mode: No space left on "
              "device"),
       1, "infrastructure (node)", "torch_12"},
      {"shared memory, by torchrun", Elastic(1, 1, "-7", "Signal 7 (SIGBUS) received by PID 4187"), 1,
       "infrastructure (node)", "7"},
      {"shared memory, by Composer", "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.\n", 1,
       "infrastructure (node)", "Rank 2"},
      {"NVLink", "[0] NCCL WARN Cuda failure 'uncorrectable NVLink error detected during the execution'\n", 1,
       "infrastructure (node)", "NVLink"},
      {"a link that the kernel tells of", "NVRM: Xid (PCI:0000:1b:00): 74, NVLink: fatal error detected on link 3\n", 1,
       "infrastructure (node)", "74"},
      {"a driver that JAX lacks",
       Raised("RuntimeError: Unable to initialize backend 'cuda': no supported devices found for "
              "platform CUDA"),
       1, "infrastructure (node)", "backend"},
      {"a hub that is slow",
       Raised("requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='cdn-lfs.huggingface.co', "
              "port=443): Read timed out."),
       1, "infrastructure (start)", "timed out"},
      {"a watchdog of a newer PyTorch",
       "[rank5]:[E1 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 5] Process group watchdog thread "
       "terminated "
       "with exception: NCCL error: remote process exited or there was a network error\n" +
           Elastic(5, 5, "-6", "Signal 6 (SIGABRT) received by PID 4187"),
       1, "infrastructure (node)", "watchdog"},
      {"a barrier", Raised("RuntimeError: [Rank 0]: Rank 3 failed to pass monitoredBarrier in 1800000 ms"), 1,
       "infrastructure (node)", "Rank 3"},
      {"NVSwitch",
       Raised("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"), 1,
       "infrastructure (node)", "802"},
      {"no driver", Raised("RuntimeError: Found no NVIDIA driver on your system."), 1, "infrastructure (node)",
       "driver"},
      {"a driver that is too old", Raised("RuntimeError: CUDA driver version is insufficient for CUDA runtime version"),
       1, "infrastructure (node)", "insufficient"},
      {"no GPU", Raised("RuntimeError: No CUDA GPUs are available"), 1, "infrastructure (node)", "No CUDA GPUs"},
      {"a GPU's memory", Raised("RuntimeError: CUDA error: uncorrectable ECC error encountered"), 1,
       "infrastructure (node)", "ECC"},
      {"NCCL's network",
       nccl("unhandled system error (run with NCCL_DEBUG=INFO for details)",
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed."),
       1, "infrastructure (node)", "NCCL error"},
      {"NCCL's other rank", nccl("something", "ncclRemoteError: A call failed possibly due to a network error."), 1,
       "infrastructure (node)", "ncclRemoteError"},
      {"a peer", Raised("RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:1"), 1,
       "infrastructure (node)", "closed by peer"},
      {"JAX's other task",
       "F0929 17:42:48.5 1044 client.h:77] Terminating process because the JAX distributed service detected fatal "
       "errors.\n",
       134, "infrastructure (node)", "JAX"},
      {"RDMA", "n1:5:9 [0] NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n", 1,
       "infrastructure (node)", "ibv_reg_mr"},
      {"a module", Raised("ModuleNotFoundError: No module named 'flash_attn'"), 1, "infrastructure (start)",
       "flash_attn"},
  });
}

TEST(EndsOfTrainers, FailuresOfTheProgramItself) {
  ExpectAll({
      {"a key", kSteps + Raised("KeyError: 'lr'", "[rank0]: ") + Elastic(0, 0, "1", kNoTraceback), 1, "crashed",
       "KeyError: 'lr'; rank 0 (local rank 0) on node-0, exit code 1"},
      {"an assertion", Raised("AssertionError"), 1, "crashed", "AssertionError"},
      {"a syntax", "  File \"train.py\", line 3\n    f(\n     ^\nSyntaxError: '(' was never closed\n", 1, "crashed",
       "never closed"},
      {"arguments", "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --flash\n", 2, "invalid",
       "--flash"},
      {"arguments, of each rank",
       "train.py: error: argument --steps: invalid int value: 'x'\n" + Elastic(0, 0, "2", kNoTraceback), 1, "invalid",
       "--steps"},
      {"Hugging Face's arguments",
       Raised("ValueError: Some specified arguments are not used by the HfArgumentParser: ['--x']"), 1, "invalid",
       "--x"},
      {"Hydra's arguments", "Could not override 'trainer.x'.\nKey 'x' is not in struct\n", 1, "invalid", "trainer.x"},
      {"a configuration", Raised("omegaconf.errors.ConfigKeyError: Key 'x' not in 'Trainer'"), 1, "crashed", "Key 'x'"},
      {"torchrun alone", Elastic(3, 1, "1", kNoTraceback), 1, "crashed",
       "rank 3 (local rank 1) on node-0 ended with exit "
       "code 1"},
      {"torchrun, with a traceback",
       Elastic(3, 1, "1",
               "Traceback (most recent call last):\n    File \"t.py\", line 3, in f\n      raise X\n"
               "  RuntimeError: boom"),
       1, "crashed", "RuntimeError: boom"},
      {"torchrun, of a signal", Elastic(3, 1, "-11", "Signal 11 (SIGSEGV) received by PID 4187"), 1, "crashed",
       "signal 11 (Segmentation fault): Signal 11 (SIGSEGV)"},
      {"torchrun, whose others were killed later",
       Raised("ValueError: heads", "[rank1]: ") +
           Elastic(1, 1, "1", kNoTraceback,
                   "[1]:\n  rank      : 0 (local_rank: 0)\n  exitcode  : -9 (pid: 1)\n"
                   "  traceback : Signal 9 (SIGKILL) received by PID 1\n"),
       1, "crashed", "ValueError: heads"},
      {"in between of other ranks",
       "[default0]:Traceback (most recent call last):\n[default1]:Traceback (most recent call last):\n[default0]:  "
       "File \"a\"\n"
       "[default1]:  File \"a\"\n[default1]:RuntimeError: one\n[default0]:RuntimeError: zero\n",
       1, "crashed", "RuntimeError: one"},
      {"in between of other ranks, that nobody names",
       "Traceback (most recent call last):\nTraceback (most recent call last):\n  File \"a\"\n  File \"a\"\n    f()\n"
       "INFO: rank 2 is here\n    f()\nValueError: both\nValueError: both\n",
       1, "crashed", "ValueError: both"},
      {"behind srun's labels",
       " 3: Traceback (most recent call last):\n 3:   File \"a\"\n 3:     f()\n 3: ValueError: x\n"
       "srun: error: n1: task 3: Exited with exit code 1\n",
       1, "crashed", "ValueError: x"},
      {"behind mpirun's", Raised("ValueError: x", "[1,2]<stderr>:"), 1, "crashed", "ValueError: x"},
      {"behind times",
       "[2024-02-27T21:35:34.1Z] fa88 || Traceback (most recent call last):\n[2024-02-27T21:35:34.2Z] fa88 "
       "||   File \"a\"\n[2024-02-27T21:35:34.3Z] fa88 || ValueError: x\n",
       1, "crashed", "ValueError: x"},
      {"behind pdsh's", Raised("ValueError: x", "worker-1: "), 1, "crashed", "ValueError: x"},
      {"behind Ray's", Raised("ValueError: x", "(TrainWorker pid=812, ip=10.0.0.1) "), 1, "crashed", "ValueError: x"},
      {"glued to a progress bar", "  0%|          | 0/100 [00:00<?, ?it/s]" + Raised("ValueError: x"), 1, "crashed",
       "ValueError: x"},
      {"in a box",
       "╭──── Traceback (most recent call last) ────╮\n│ train.py:346 in <module>  │\n╰───────╯\nValueError: "
       "The max_duration (10ba) is less\n",
       1, "crashed", "max_duration"},
      {"of Lightning's child",
       Raised("torch.multiprocessing.spawn.ProcessRaisedException: ") +
           "\n-- Process 1 terminated with the following error:\n" + Raised("ValueError: x"),
       1, "crashed", "ValueError: x"},
      {"of Ray's task",
       Raised("ray.exceptions.RayTaskError(ValueError): ray::train() (pid=8)") + "  File \"a\"\nValueError: x\n", 1,
       "crashed", "ValueError: x"},
      {"of a launcher alone",
       Raised("subprocess.CalledProcessError: Command '['python3']' returned non-zero exit status 1."), 1, "crashed",
       "non-zero"},
      {"of a rank, and others that were told",
       "[rank1]:[E1 ProcessGroupNCCL.cpp:9] NCCL error: remote process exited or there was a network error\n" +
           Raised("RuntimeError: Connection reset by peer", "[rank1]: ") + Raised("KeyError: 'first'", "[rank0]: "),
       1, "crashed", "KeyError: 'first'"},
      {"of a rank, and srun's end of the others",
       Raised("KeyError: 'first'") +
           "srun: error: n1: task 3: Killed\nslurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT "
           "2025-01-01T10:00:00 ***\n",
       1, "crashed", "KeyError: 'first'"},
      {"killed, and nobody says by whom", "srun: error: n1: task 3: Killed\n", 137, "crashed", "task 3: Killed"},
      {"killed, and nobody says anything", kSteps, 137, "crashed", "nothing says who sent that"},
      {"a segmentation fault", kSteps, 139, "crashed", "Segmentation fault"},
      {"an abort", kSteps, 134, "crashed", "Aborted"},
      {"NCCL that is used wrongly",
       Raised("torch.distributed.DistBackendError: NCCL error in: x, invalid usage") +
           "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
           "Duplicate GPU detected : rank 1 and rank 0\n",
       1, "crashed", "invalid usage"},
      {"an assertion on the device", Raised("RuntimeError: CUDA error: device-side assert triggered"), 1, "crashed",
       "device-side"},
      {"an error of its GPU that the watchdog found",
       "[rank3]:[E830 17:28:57.1 ProcessGroupNCCL.cpp:1515] [PG 3 Rank 3] Process group watchdog thread terminated "
       "with exception: CUDA error: an illegal memory access was encountered\n" +
           std::string(kWatchdog) + Elastic(3, 3, "-6", "Signal 6 (SIGABRT) received by PID 4187"),
       1, "crashed", "illegal memory access"},
      {"of torchrun, in a box",
       "╭──── Traceback (most recent call last) ────╮\n│ torchrun:8 in <module>  │\n╰───────╯\nChildFailedError:\n" +
           Elastic(0, 0, "1", kNoTraceback),
       1, "crashed", "rank 0"},
      {"a rank, and its step that srun ends",
       "srun: error: n1: task 1: Exited with exit code 1\nslurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT "
       "2025-01-10T15:27:25 ***\nsrun: error: n1: task 0: Terminated\n",
       1, "crashed", "task 1"},
      {"a program that is missing, after steps", kSteps + "bash: line 3: notify: command not found\n", 127, "crashed",
       "127"},
  });
}

TEST(EndsOfTrainers, LossesThatAreNotFinite) {
  ExpectAll({
      {"Megatron-LM", Raised("RuntimeError: rank 3, iteration 5: found NaN in local forward loss calculation"), 1,
       "diverged", "found NaN"},
      {"DeepSpeed", Raised("Exception: Current loss scale already at minimum - cannot decrease scale anymore."), 1,
       "diverged", "minimum"},
      {"fairseq", Raised("FloatingPointError: Minimum loss scale reached (0.0001)."), 1, "diverged", "Minimum"},
      {"JAX", Raised("FloatingPointError: invalid value (nan) encountered in jit(train_step)"), 1, "diverged", "nan"},
      {"torchvision", "Loss is nan, stopping training\n", 1, "diverged", "Loss is nan"},
      {"a step", "step 1 loss nan\n" + Raised("RuntimeError: stop"), 1, "diverged", "step 1"},
      {"a batch that is skipped", "Loss is nan, skipping batch\n" + kSteps + Raised("KeyError: 'x'"), 1, "crashed",
       "KeyError"},
  });
}

}  // namespace
}  // namespace ridgeline::trainers
