#include "trainers/end_words.h"

#include <algorithm>
#include <initializer_list>

namespace ridgeline::trainers {
namespace {

using enum EndWeight;
using Reason = InfrastructureReason;

constexpr const char* kSmaller = "use a smaller batch or sequence, or more activation checkpointing";
constexpr const char* kMoreHostMemory = "give it more of the host's memory, or let it keep less there";
constexpr const char* kLookAtGpus = "look at the node's GPUs: nvidia-smi, and the kernel's log";
constexpr const char* kLookAtOthers = "look at the other ranks' logs, and at the network between the nodes";
constexpr const char* kAllStarted =
    "was it started on all of its nodes, and do they reach each other? The logs say whom it waited for";
constexpr const char* kFreeSpace = "free some space, or let it write elsewhere";
constexpr const char* kMoreShm =
    "give it more shared memory: /dev/shm, or the container's setting for it (--shm-size, a volume of medium Memory)";
constexpr const char* kSeeLog = "see its log";

std::vector<EndWords> MakeEndWords() {
  std::vector<EndWords> all;
  const auto add = [&](const EndRule& rule, EndWeight weight, std::initializer_list<const char*> patterns,
                       bool is_last = false) {
    for (const char* pattern : patterns) all.push_back({Pattern(pattern), rule, weight, is_last});
  };

  // Words that read like a lack of memory, but mean something else.
  add({Reason::kNode, "let processes lock memory: ulimit -l unlimited"}, kCause,
      {R"(ibv_reg_mr\S* .*Cannot allocate memory)"});
  add({Reason::kNode, kMoreShm}, kCause,
      {R"((?:/dev/shm|/torch_\d+|shared memory|\bshm\b).*No space left on device)",
       R"(No space left on device.*(?:/dev/shm|/torch_\d+))", R"(Error while creating shared memory segment)",
       R"((?i)\bbus error\b|insufficient shared memory|out of shared memory\. Please)",
       R"((?i)unable to open shared memory object)",
       R"((?:unable to|could not) (?:mmap|resize|write to|allocate) .*torch_\d+)"});

  // No machine has a petabyte, so the size was computed wrong. This comes before the lack of memory, which the same
  // lines name. PyTorch prints any size in GiB, NumPy in PiB or EiB, XLA in bytes.
  add({RunStatus::kCrashed, "look at what computes the size of this allocation: no device has as much memory"}, kCause,
      {R"([Aa]llocate (?:more than \dEB|-\d|\d{7,}(?:\.\d+)? GiB|[\d.]+ ?[PE]i?B)\b)",
       R"([Aa]llocat\w*:? (?:of )?\d{16,} ?bytes\b)"});

  // The host's memory. It comes before the device's, because a line may name both.
  add({RunStatus::kOomHost, kMoreHostMemory}, kCause,
      {R"(DefaultCPUAllocator: (?:can't allocate|not enough) memory)",
       R"((?:^|[^A-Za-z_])MemoryError(?::|$)|ArrayMemoryError: Unable to allocate)",
       R"(Unable to allocate \S+ [KMGT]iB for an array)",
       R"(OOM when allocating tensor with shape.* by allocator (?:cpu|mklcpu))", R"(on host: CUDA_ERROR_OUT_OF_MEMORY)",
       R"(\[Errno 12\] Cannot allocate memory|: Cannot allocate memory(?: \(12\))?$)",
       R"(slurmstepd: error: .*exceeded (?:job )?memory limit)",
       R"(oom[-_ ]kill(?:er)? event|task[s]? \S+: Out Of Memory|\bOOMKilled\b)",
       R"(Out of memory: Kill(?:ed)? process|Memory cgroup out of memory: Kill)",
       R"(DataLoader worker \(pid[^)]*\) is killed by signal: Killed)", R"(ArrowMemoryError: )",
       R"(^memory allocation of \d+ bytes failed)", R"(Task was killed due to the node running low on memory)",
       R"(\b[1-9]\d* Workers \(tasks / actors\) killed due to memory pressure)"});

  // The device's memory.
  add({RunStatus::kOomDevice, kSmaller}, kCause,
      {R"(torch\.(?:cuda\.)?OutOfMemoryError(?::|\(|$)|cupy\.\S*OutOfMemoryError)",
       R"(\b(?:CUDA|HIP|XPU|NPU|MPS(?: backend)?) out of memory(?: \(|[^ \w]|$))",
       R"((?i)\b(?:CUDA|HIP)(?: (?:driver|runtime))? error(?: \(2\))?(?: in \S+)?\s?: '?out of memory\b)",
       R"((?i)Cuda failure (?:2 )?'out of memory'|Triton Error \[(?:CUDA|HIP)\]: out of memory)",
       R"(Failed to CUDA (?:calloc|malloc)(?: async)? \d+ bytes|Out of memory error on GPU \d)",
       R"(CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|HIPBLAS_STATUS_ALLOC_FAILED|MIOPEN_STATUS_ALLOC_FAILED)",
       R"(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED|cudaErrorMemoryAllocation|hipErrorOutOfMemory)",
       R"((?i)out_of_memory: (?:CUDA|HIP) error)",
       R"(cudaMalloc\w* (?:failed|error): out of memory|Error\b.*CUDA_ERROR_OUT_OF_MEMORY)",
       R"(HSA_STATUS_ERROR_OUT_OF_RESOURCES)",
       R"((?:RESOURCE_EXHAUSTED|[Rr]esource exhausted): .*(?i:out of memory|ran out of|allocat|reserv))",
       R"(OOM when allocating tensor with shape|ResourceExhaustedError: failed to allocate memory)",
       R"(No executable batch size found, reached zero)"});
  add({RunStatus::kOomHost, kMoreHostMemory}, kCause, {R"(std::bad_alloc)"});

  // Things that the program depends on.
  add({Reason::kStorage, kFreeSpace}, kCause,
      {R"(No space left on device|Disk quota exceeded|\bEDQUOT\b|\bENOSPC\b)",
       R"(PytorchStreamWriter failed writing|inline_container\S* \. unexpected pos \d)"});
  add({Reason::kStorage, "check the file system and its mount"}, kCause,
      {R"(Stale (?:NFS )?file handle|\bESTALE\b|Input/output error|\[Errno 5\]|Read-only file system)",
       R"(Transport endpoint is not connected|Remote I/O error|Cannot send after transport endpoint shutdown)",
       R"(\[Errno 70\] Communication error on send|\[Errno 112\] Host is down|\[Errno 110\] Connection timed out: ')"});
  add({Reason::kNode, kLookAtGpus}, kCause,
      {R"(\bXid\b)", R"((?i)uncorrectable (?:ECC|NVLink) error|double[- ]bit ECC|has fallen off the bus)",
       R"((?i)NVLink:? (?:fatal )?(?:error|failure))",
       R"((?i)nvlink\b[^.]{0,60}\bfail(?:ed|ure)|CUDA-capable device(?:\(s\) is/are|s are) busy or unavailable)",
       R"(system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady)",
       R"(Unable to determine the device handle for GPU|GPU is lost)",
       R"(Invalid access of peer GPU memory over nvlink|MPS client failed to connect to the MPS control daemon)",
       R"(CUDA_ERROR_(?:ECC_UNCORRECTABLE|DEVICE_UNAVAILABLE))"});
  add({Reason::kNode, kLookAtOthers}, kCause,
      {R"(NCCL WARN .*(?:No route to host|Network is unreachable))",
       R"(\b(?:ORTE|PRTE) has lost communication with a remote daemon)"});
  add({Reason::kNode, "install the GPUs' driver, one that is new enough for the program, and let the node show them"},
      kCause,
      {R"(Found no NVIDIA driver|(?i:driver version is insufficient)|NVIDIA driver on your system is too old)",
       R"(No CUDA GPUs are available|no (?:CUDA|ROCm)-capable device is detected|CUDA_ERROR_NO_DEVICE)",
       R"(No HIP GPUs are available|is only supported with GPUs, no GPUs found|No supported gpu backend found)",
       R"(on a CUDA device but torch\.cuda\.is_available\(\) is False)",
       R"(Driver/library version mismatch|CUDA driver initialization failed|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)",
       R"(CUDA unknown error|Error: Unable to initialize backend '(?:cuda|gpu|rocm)')",
       R"(no supported devices found for platform CUDA)",
       R"(forward compatibility was attempted on non supported HW|unsupported display driver / cuda driver combination)",
       R"(the provided PTX was compiled with an unsupported toolchain)"});
  add({Reason::kLimit, "raise the limits of open files and of processes for who runs it: ulimit -n, ulimit -u"}, kCause,
      {R"(\[Errno 24\] Too many open files|Error: Too many open files)",
       R"(can't start new thread|pthread_create failed|\bfork: (?:retry: )?(?:\S+: )?Resource temporarily unavailable)",
       R"((?:BlockingIOError: \[Errno 11\]|Thread creation failed:) Resource temporarily unavailable|received 0 items of ancdata)"});
  add({Reason::kRights, "give it a token of the hub that may read this, or fetch it beforehand"}, kCause,
      {R"(trying to access a gated repo|GatedRepoError: |Cannot access gated repo|HTTPError: 40[13] Client Error)"});
  add({Reason::kStart, "is the program's path right on the node?"}, kCause,
      {R"(can't open file .*\[Errno 2\] No such file or directory)",
       R"((?:^|[\s/])python[\d.]*: (?:No module named|Error while finding module specification for) )",
       R"((?:mpirun|mpiexec|orterun|prterun) was unable to (?:launch|find) the specified (?:application|executable))"});
  add({Reason::kStart, "another program has the port where its ranks meet: let them meet at {{master_port}}"}, kCause,
      {R"(EADDRINUSE|failed to listen on any local network address)",
       R"((?:Error|ERROR|error|E\d{4})\b.*(?i:address already in use))"});
  add({Reason::kStart, kAllStarted}, kCause,
      {R"(There are not enough slots available in the system)",
       R"(An (?:ORTE|PRTE) daemon has unexpectedly failed after launch)",
       R"(\b(?:ORTE|PRTE) was unable to reliably start one or more daemons)",
       R"(\bssh: connect to host \S+ port \d+: |Host key verification failed|Permission denied \(publickey)",
       R"(srun: error: (?:Task launch for \S+ failed on node|Application launch failed|Unable to create step for job))"});
  add({Reason::kStart, "a download failed: fetch it once beforehand, and let runs read the local copy"}, kCause,
      {R"((?:Error|Exception|SlowDown)\w*: .*(?:\b429\b.*(?:[Cc]lient [Ee]rror|rate)|\b50[0234] Server Error))",
       R"((?:Error|Exception|TooManyRequests)\w*: .*Too Many Requests|\bTooManyRequests: 429 )",
       R"(ClientError: An error occurred \((?:SlowDown|RequestTimeout|InternalError|ServiceUnavailable|50[0234])\))",
       R"(HTTP Error 429: |HTTP Error 50[0234]: |\b429 Client Error: |: 429 Too Many Requests)",
       R"(HTTPS?ConnectionPool\(.*[Tt]imed out|(?:Read|Connect)Timeout: )",
       R"(\b(?:aiohttp|botocore|httpcore|httpx|requests|urllib3)\.[\w.]*(?:Connect|Protocol|Network|Disconnect|Chunked)\w*: )",
       R"((?:Error|Exception)\w*: .*(?:Max retries exceeded with url|couldn't connect to 'https?://))",
       R"((?:Error|Exception)\w*: .*(?:Couldn't reach .* on the Hub|name resolution|Name or service not known))",
       R"(\bLocalEntryNotFoundError: |OfflineModeIsEnabled: |Cannot send a request, as the client has been closed)"});
  add({Reason::kStart, "let it log to a file instead of a service: WANDB_MODE=offline"}, kCause,
      {R"(\bwandb\.[\w.]*CommError: )"});
  add({Reason::kNode, "its scheduler says what became of the node"}, kCause,
      {R"(DUE TO NODE FAILURE|srun: error: (?:Node failure on |Aborting, io error and missing step on node))"});

  // The program's arguments and settings.
  add({RunStatus::kInvalid, "let its definition and the sweep pass only arguments that it accepts"}, kCause,
      {R"(: error: (?:[Uu]nrecognized arguments|argument \S+.*: |the following arguments are required))",
       R"(: error: ambiguous option)", R"(: error: (?:one of the arguments |Parser key|Validation failed))",
       R"(^error: (?:Parser key|Validation failed|Unrecognized arguments|unrecognized arguments))",
       R"(^Error: (?:No such option|Invalid value for|Missing (?:option|argument|parameter)|Got unexpected extra))",
       R"(│ (?:No such option|Invalid value for|Missing (?:option|argument|parameter)|Got unexpected extra))",
       R"(Some (?:specified arguments|keys) are not used by the HfArgumentParser|FATAL Flags parsing error)",
       R"((?i)unknown command line flag ')",
       R"(ConfigCompositionException|Could not override '[^']+'|Unrecognized options?: --)"});

  // Numbers that are not finite.
  add({RunStatus::kDiverged, "its loss is not a finite number"}, kDiverged,
      {R"((?i)\bfound (?:NaN|Inf)\b in local|(?:loss scale|scaler?) (?:is )?already at minimum)",
       R"((?i)minimum loss scale reached|loss scale (?:has )?reached (?:its |the )?minimum)",
       R"((?i)\bloss (?:is|became|becomes|contains an?|returned in `\w+` is|has become) (?:nan|inf)\b|\bNaN loss\b)",
       R"((?i)invalid value \(nan\) encountered|returned nan values in its \d+th output)",
       R"(The total norm of order \S+ for gradients from .* is non-finite)"});

  // Failures of the program without a traceback.
  add({RunStatus::kCrashed, kSeeLog}, kCrash,
      {R"(^(?:SyntaxError|IndentationError|TabError): )",
       R"(watchdog thread terminated with exception: (?:CUDA|HIP) error: )"});
  add({Reason::kStart,
       "install what is missing on the machine where it runs, in a version that the program was built for"},
      kCrash,
      {R"(error while loading shared libraries: |version .[A-Z]+_[\d.]+. not found \(required by|Exec format error)",
       R"(^Could not load library lib\S+ Error: |Torch not compiled with CUDA enabled)"});

  // Requests to leave.
  add({Reason::kPreempted, "run it again: it continues from its newest checkpoint files, if it has any"}, kToLeave,
      {R"(Received (?:1|15|Signals\.SIG(?:TERM|HUP)) death signal)",
       R"(SignalException: .*(?:signal:? (?:1|15)\b|SIGTERM|SIGHUP))", R"(CANCELLED AT .*DUE TO PREEMPTION)"},
      /*is_last=*/true);
  add({RunStatus::kTimeout, "raise the job's time limit, or make the point smaller"}, kToLeave,
      {R"(CANCELLED AT .*DUE TO TIME LIMIT)"}, /*is_last=*/true);
  add({Reason::kPreempted, "run it again: it continues from its newest checkpoint files, if it has any"}, kToLeave,
      {R"((?i)\b(?:received|receiving|caught|got|handling)\b[^.]{0,30}\b(?:SIGTERM|SIGUSR[12]|signal:? ?15)\b)",
       R"((?i)\bSIGTERM(?: signal)? (?:was )?(?:received|caught)|SIGTERMException|killed by signal: Terminated)"});

  // What a launcher says about the first of its processes that ended.
  add({RunStatus::kOomHost,
       "something killed it, as the kernel does where memory runs out: give it more of the host's memory. The kernel's "
       "log says whether it was that"},
      kKilled,
      {R"(failed \(exitcode: -9\)|return code = -9\b|(?:exit|exited|terminated) (?:with )?code -9\b|Signals\.SIGKILL)",
       R"(exited on signal 9 \(Killed\)|terminated with signal SIGKILL|: line \d+: +\d+ Killed |^Killed$)"});
  add({Reason::kNode, kMoreShm}, kKilled,
      {R"(failed \(exitcode: -7\)|return code = -7\b|(?:exit|exited|terminated) (?:with )?code -7\b|Signals\.SIGBUS)",
       R"(terminated with signal SIGBUS)"});

  // Ranks that waited in vain for others. Another rank's log may say why.
  add({Reason::kStart, kAllStarted}, kTold,
      {R"(RendezvousTimeoutError|Timed out after \d+ seconds waiting for (?:clients|workers))",
       R"(Timed out initializing process group in store based barrier)",
       R"(client socket has timed out after \d+ ?m?s while trying to connect|connect\(\) timed out\. Original timeout)",
       R"(DEADLINE_EXCEEDED.*(?i:barrier|RegisterTask|initializ|connect))"},
      /*is_last=*/true);

  // Ranks that heard of another's end so late that everything after it is a consequence.
  add({Reason::kNode, kLookAtOthers}, kTold,
      {R"(Watchdog caught collective operation timeout|NCCL operations have failed or timed out|Timeout at NCCL work)",
       R"(watchdog thread terminated with exception|failure detected by watchdog|Received a dump signal)",
       R"(monitoredBarrier|timed out in blocking wait)", R"(heartbeat monitor timed out|Heartbeat monitor timed out)",
       R"(due to collective timeout or exception|watchdog got stuck for \d+ seconds)"},
      /*is_last=*/true);
  add({Reason::kNode, kLookAtOthers}, kTold,
      {R"(ncclSystemError|ncclRemoteError|NCCL communicator (?:was|is) aborted)",
       R"(NCCL [Ee]rror.*(?:unhandled system error|remote process exited))",
       R"((?i)connection (?:was )?(?:reset|aborted|refused|closed by (?:the )?(?:remote )?peer)\b|\bbroken pipe\b)",
       R"((?i)socket closed\b)",
       R"(gloo/transport|Application timeout caused pair closure|Gloo connectFullMesh failed)",
       R"(DistStoreError: |DistNetworkError: |RendezvousClosedError|RendezvousConnectionError)",
       R"(wait timeout after \d+ms|Socket Timeout)",
       R"(heartbeat timeout|(?i:error|failed|unavailable)\b.*coordination service)",
       R"(coordination service.*(?i:error|unavailable)|JAX distributed service detected fatal errors)",
       R"(UNAVAILABLE: )",
       R"(DataLoader worker \(pid\S* [^)]*\) exited unexpectedly|\bEOFError$|\bRendezvousGracefulExitError)",
       R"(The actor (?:died|is dead)|ActorDiedError|ActorUnavailableError)"});

  // Lines that say that something failed, but not what.
  add({Reason::kPreempted, "run again, unless you ended it yourself"}, kLauncher,
      {R"(\bCANCELLED AT \S+ \*\*\*)", R"(srun: error: .*: tasks? [\d,-]+: Terminated)",
       R"(exited on signal 15 \(Terminated\))"});
  add({RunStatus::kCrashed, kSeeLog}, kLauncher,
      {R"(\bChildFailedError:|CalledProcessError: |ProcessRaisedException|ProcessExitedException|RayTaskError)",
       R"(^(?:\S+ )?(?:SystemExit|KeyboardInterrupt)(?::|$))",
       R"(failed \(exitcode: -?\d+\)|exits with return code = -?[1-9])",
       R"([Rr]ank \d+ (?:\(PID \d+\) exited|crashed) with (?:exit )?code -?[1-9])",
       R"(exited on signal \d+|terminated with signal SIG|died with <Signals\.|srun: error: .*: task)",
       R"(^\s*what\(\): |Segmentation fault|Fatal Python error|\bAborted \(core dumped\)|Check failed: )"});
  return all;
}

}  // namespace

const std::vector<EndWords>& BuiltInEndWords() {
  static const std::vector<EndWords> words = MakeEndWords();
  return words;
}

const PatternSet& BuiltInEndSet() {
  static const PatternSet set([] {
    std::vector<const Pattern*> patterns;
    for (const EndWords& words : BuiltInEndWords()) patterns.push_back(&words.pattern);
    return patterns;
  }());
  return set;
}

bool IsQuoted(std::string_view line, size_t at, size_t end) {
  static const Pattern advises(
      R"((?i)\b(?:can|could)(?:[^\w' ]|$| +(?:[^n]|n[^o]|$))|\b(?:if|in case|may|might|avoid\w*|prevent\w*|consider|likely|possibl[ey]|potential\w*|)"
      R"(catch\w*|caught|recover\w*|retry\w*|skip\w*|ignor\w+|e\.g|such as|usually|often|typically|suggests?|)"
      R"(indicates?|risk|registering|installing|best cudnn \w+ algorithm)\b|\b(?:hint|tip|note)s?:|warning\b|)"
      R"(\b(?:for|against|about|when|upon|see|help\w*|handl\w+|fix\w*|solv\w*|expect\w*)(?: an?| the)?[ '"`(]+$)");
  static const Pattern overcomes(
      R"((?i)\b(?:retry(?:ing)?|(?:\d+|more) retries|skip(?:s|ping|ped)?|recover(?:ing|ed)?|fall(?:s|ing)? back|decreas(?:ed|ing)|)"
      R"(reducing (?:the )?(?:micro)?-?batch|tr(?:ying|ies) again|not a failure|caught|ignor(?:ed|ing))\b)");
  static const Pattern own_words(R"(.*(?P<value>\[(?:rank|default)\d+\]:))");  // another's may stand before them
  std::string_view before = line.substr(0, std::min(at, line.size()));
  if (const auto label = own_words.Find(before)) {
    before.remove_prefix(static_cast<size_t>(label->value.data() - before.data()) + label->value.size());
  }
  return advises.Find(before).has_value() || overcomes.Find(line.substr(std::min(end, line.size()))).has_value();
}

}  // namespace ridgeline::trainers
