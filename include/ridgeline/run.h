// The contract between the harness and any trainer: one RunSpec in (JSON), one RunResult out (JSON).
//
// A trainer is started as `TRAINER --spec run.json --result result.json`. It reads the RunSpec, trains, writes the
// RunResult to a temporary name, renames it to the name it was given, and exits with one of TrainerExit.
// On SIGTERM or SIGUSR1 it may save its state, to be started again with the same RunSpec, and say `preempted`:
// infrastructure's end, for that reason.
// Both documents carry `version`; a reader refuses a version it does not know. Units stand in the names.
// docs/trainer-contract.md tells all of it to whoever writes a trainer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace ridgeline {

inline constexpr int64_t kRunSpecVersion = 1;
inline constexpr int64_t kRunResultVersion = 1;

// How a run can end. Every end is stored with its evidence; a failure is a row, never a hole.
enum class RunStatus {
  kOk,
  kOomDevice,            // the accelerator's memory did not hold the plan
  kOomHost,              // this machine's memory did not hold the plan, or the kernel or a cgroup killed the run
  kTimeout,              // the point's own time limit passed
  kInfrastructure,       // no trainer of it began, or what it stood on failed under it: nobody's result
  kCancelled,            // a person cancelled it
  kInvalid,              // the trainer refused the RunSpec
  kDiverged,             // the loss stopped being a finite number
  kCrashed,              // any other non-zero exit or signal of a trainer that had begun
  kSkippedPredictedOom,  // predicted not to fit, so it was not started
};

// What of the infrastructure it was. Such an end says nothing of the point, which is measured again.
enum class InfrastructureReason {
  kNone,       // of every other end
  kNode,       // the node failed under the job, was drained, refused it, or throttled a GPU where that is refused
  kStart,      // no trainer could be started: a prolog, a container plugin, a missing program, ranks that never met
  kStorage,    // a folder or volume is missing, full, or cannot be written or read
  kImage,      // the container image could not be had or started
  kLimit,      // a quota, or an administrator's limit
  kRights,     // no such partition, account or namespace, or no permission
  kPreempted,  // told to leave: preemption, eviction, a drained node
  kLost,       // the job vanished without a result
};

struct RunEnd {
  RunStatus status;
  InfrastructureReason reason;
  // Implicit: a status is all there is to say of every end but the infrastructure's.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr RunEnd(RunStatus status_ = RunStatus::kOk, InfrastructureReason reason_ = InfrastructureReason::kNone)
      : status(status_), reason(reason_) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr RunEnd(InfrastructureReason reason_) : RunEnd(RunStatus::kInfrastructure, reason_) {}
  bool operator==(const RunEnd&) const = default;
};

// Exit codes of a trainer. Anything else, and any signal, is a crash.
enum class TrainerExit : int {
  kOk = 0,
  kInvalid = 2,
  kCrashed = 3,
  kOomDevice = 10,
  kOomHost = 11,
  kDiverged = 12,
  kPreempted = 13,
  kStorage = 14,  // a file that it needs could not be read, or one that it is to leave not be written
  kNode = 15,     // the device that it was to run on is not there, is another one, or failed
};

// A field's value.
using FieldValue = std::variant<int64_t, double, bool, std::string>;

// One configuration to train and measure. src/run/fields.h has the table that names, documents and checks each field;
// the JSON keys are the member names.
struct RunSpec {
  // Model. `model` is derived from the shape when a spec is made canonical: the preset with this shape, else
  // "<family>-<layers>x<hidden>". Of family "other" it is the name that a trainer other than ours knows it by, and what
  // of the shape nobody said is 0.
  std::string model;
  std::string family = "llama";  // llama | gpt | stack, and those that other trainers have
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t head_dim = 0;  // 0: hidden / heads
  int64_t ffn = 0;
  int64_t vocab = 0;      // 0 for stack
  int64_t positions = 0;  // gpt: learned positions; 0 elsewhere
  bool tied_head = false;
  // Mixture of experts, which trainers other than ours have; 0 of a dense model.
  int64_t experts = 0;            // a layer, those that every token takes left out
  int64_t experts_per_token = 0;  // of these
  int64_t expert_ffn = 0;         // hidden size of one
  // Of a model whose shape does not say it; 0: it follows from the shape, or nobody knows.
  int64_t parameters = 0;
  int64_t active_parameters = 0;  // that a token takes
  double flops_per_token = 0;     // of training, backward included
  double rope_theta = 0;          // llama; 0 elsewhere
  double norm_eps = 1e-5;
  double dropout = 0;

  // Numbers.
  std::string precision = "bf16";  // fp32 | tf32 | bf16 | fp16 | fp8 | mxfp8 | nvfp4: what the linear layers multiply
  std::string scaling;             // fp8: delayed | current; mxfp8: round_up | floor; none elsewhere
  int64_t amax_history = 0;        // fp8 with delayed scaling: steps it looks back; 0 elsewhere
  int64_t bf16_first_layers = 0;   // layers at the beginning, and at the end, whose products stay bf16
  int64_t bf16_last_layers = 0;
  std::string state_precision;  // fp32 | bf16: master weights, gradients and moments
  // high_precision: bf16 weights, quantized for each product | quantized: quantized layers have their codes alone
  std::string primary_weights = "high_precision";
  // On device cuda. fastest: cuDNN's plans, whose gradients need not repeat to the bit | deterministic: those that do
  std::string attention_backward = "fastest";

  // Workload.
  int64_t batch_size = 1;              // sequences a data-parallel rank and micro-step
  int64_t seq_length = 512;            // tokens
  int64_t grad_accumulation = 1;       // micro-steps an optimizer step
  std::string checkpointing = "none";  // none | selective | full | full/K

  // Optimizer.
  std::string optimizer = "adamw";  // adamw | adam
  double learning_rate = 3e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;          // on every parameter (adamw: decoupled; adam: added to the gradient)
  double grad_clip = 0;               // largest global gradient norm; 0: no clipping
  std::string schedule = "constant";  // constant | cosine
  int64_t lr_warmup_steps = 0;
  double learning_rate_min = 0;  // cosine ends here

  // Data.
  std::string data = "synthetic";  // synthetic | the path of a file, read as bytes
  int64_t seed = 1234;

  // The first weights.
  std::string init_from = "seed";  // seed | the path of a folder of weights

  // Parallelism and device.
  int64_t ranks = 1;              // data-parallel ranks x tensor_parallel x pipeline_parallel x context_parallel
  int64_t tensor_parallel = 1;    // ranks that share each layer's products
  int64_t pipeline_parallel = 1;  // ranks that have the layers one after another
  int64_t context_parallel = 1;   // ranks that share each sequence
  int64_t expert_parallel = 1;    // ranks that share a layer's experts; they are taken from the others
  int64_t virtual_pipeline = 1;   // stages that a rank of the pipeline has
  // Whether tensor-parallel ranks share the sequences of norms. Nothing where there are no such ranks; where there are,
  // nothing becomes true when the spec is made canonical.
  std::optional<bool> sequence_parallel;
  std::string shard = "none";  // none | optimizer (ZeRO-1) | gradients (ZeRO-2) | full (FSDP, ZeRO-3)
  int64_t shard_ranks = 0;     // ranks that share what is split, of which there are several groups (HSDP); 0: all
  // self (one rank) | gloo (processes) | nccl (processes with a GPU each) | virtual (rank 0 of `ranks`, moves no
  // bytes); empty: self, gloo or nccl, by `ranks` and `device`
  std::string communicator;
  std::string device = "cpu";  // cpu | cuda | meta (plan only)
  std::string gpu = "none";    // of cuda, and of meta to plan for one: a100, h200, … (run/gpus.h)

  // Who trains: "ridgeline", and then whoever is started with the spec; else the name of a definition of `trainers/`,
  // and the values of the fields that are its own, each by its name.
  std::string trainer = "ridgeline";
  std::map<std::string, FieldValue> own;

  // Measurement.
  int64_t warmup_steps = 2;
  int64_t steps = 5;    // measured optimizer steps a repeat
  int64_t repeats = 1;  // blocks of those; the driver runs each by itself, with a spec of 1

  // Checkpoint files (docs/checkpoint-files.md): `checkpoint: {dir, every_steps, keep}` in JSON. How a run keeps its
  // state is no part of what the run is: the point's id does not depend on these.
  std::string checkpoint_dir;  // empty: none are written
  int64_t checkpoint_every_steps = 100;
  int64_t checkpoint_keep = 2;  // newest ones; older ones are removed

  // `measure: {min_steps, refuse_throttled, seconds, warmup_seconds}` in JSON, settings too. A run whose steady figures
  // are of fewer measured steps is invalid, and one whose GPU was throttled is nobody's result. On device cuda the same
  // steps are run for warmup_seconds before the run begins, and blocks of `steps` steps are measured until `seconds`
  // have passed: clocks settle in seconds, not in steps.
  int64_t min_steps = 1;
  bool refuse_throttled = false;
  double measured_seconds = 10;
  double warmup_seconds = 5;
};

// Where a figure comes from.
enum class Provenance { kMeasured, kPredicted, kPublished };

struct StepTimes {
  std::vector<int64_t> all_ns;  // every optimizer step, warm-up included, in order
  int64_t median_ns = 0;        // over the measured steps
  int64_t p95_ns = 0;
  double cv = 0;  // coefficient of variation over the measured steps: standard deviation / mean
};

struct Throughput {
  double steady_tokens_per_s = 0;  // tokens a step / median measured step
  double cold_tokens_per_s = 0;    // all tokens / all steps' time, the first step included
};

struct MemoryFigures {
  int64_t planned_peak_bytes = 0;              // the slab: every tensor of the run, at its fullest moment
  std::map<std::string, int64_t> by_category;  // planned peak by category; sums to planned_peak_bytes
  int64_t rss_peak_bytes = 0;                  // peak resident set of the process; 0 where nothing was run
  int64_t device_peak_bytes = 0;               // most of the accelerator's memory that was taken; 0 where there is none
  int64_t device_reserved_bytes = 0;           // most that its allocator had reserved, tensors in it or not
  std::string device_peak_kind = {};  // what device_peak_bytes counts: allocated | in use | NVML; empty: nobody says
};

// What one of several ranks took.
struct RankFigures {
  std::string host;
  int64_t planned_peak_bytes = 0;
  int64_t rss_peak_bytes = 0;
};

// Who used the cores that a run was given, on the node of rank 0. `exec` takes these, no trainer.
struct CoreFigures {
  double busy_share = 0;    // of their time: in use by anyone
  double others_share = 0;  // of their time: by others than the run, a hypervisor's steal included
  int64_t throttles = 0;    // how often a core grew too hot for its clock, or the cgroup had used up its share
};

// How rank 0's GPU fared, as its driver says: of the card, whoever uses it. What the driver does not say, or a run
// without a GPU, is nothing.
struct GpuFigures {
  std::optional<double> power_w;      // drawn, mean over the measured steps
  std::optional<double> power_max_w;  // the most at a moment of them
  std::optional<double> power_limit_w;
  std::optional<double> energy_j;      // taken in the measured steps
  std::optional<double> sm_clock_mhz;  // mean over the measured steps
  std::optional<double> sm_clock_min_mhz;
  std::optional<double> memory_clock_mhz;  // mean over the measured steps
  std::optional<double> temperature_c;     // highest in the measured steps
  // Of the moments of the measured steps at which it was looked at: at which a limit that costs speed held its clocks
  // down.
  std::optional<double> throttled_share;
  std::map<std::string, int64_t> clock_limits;  // at how many moments each limit held, by nvidia-smi's name for it
  std::optional<int64_t> ecc_corrected;         // errors of its memory while the run ran
  std::optional<int64_t> ecc_uncorrected;
  std::optional<int64_t> others;        // processes of others on it before the run
  std::optional<int64_t> others_bytes;  // memory of it that was in use before the run
};

// What the trainer itself printed of its efficiency, by its own convention.
struct PrintedFigures {
  std::optional<double> mfu;  // a share: 0.41
  std::optional<double> tflops_per_gpu;
};

// A figure that only one trainer's definition knows.
struct OwnFigure {
  double value = 0;
  std::string unit;
};

struct FlopFigures {            // floating-point operations of a rank in an optimizer step; model_*: no recomputation
  double model_causal = 0;      // attention counted where the causal mask leaves work
  double model_non_causal = 0;  // attention counted over the full s x s square
  double executed = 0;          // what was really run, recomputation included
};

// src/run/figures.h has the table that names, documents and checks each figure of it.
struct RunResult {
  std::string point_id;
  RunStatus status = RunStatus::kCrashed;
  InfrastructureReason reason = InfrastructureReason::kNone;  // where status is kInfrastructure
  std::string message;                                        // one sentence; empty where status is ok
  std::string hint;                                           // what to do about it
  // exit_code, signal, wanted_bytes, available_bytes, oom_kill, log_tail…; of a run with checkpoint files
  // resumed_from_step, checkpoint_dir, checkpoint_step, checkpoint_saves, checkpoint_save_ns, checkpoint_error.
  std::map<std::string, std::string> evidence;
  Provenance provenance = Provenance::kMeasured;
  bool emulated = false;  // a low precision computed by quantize-dequantize
  std::string device;     // what the device says of itself
  std::string communicator = "self";
  int64_t parameters = 0;
  int64_t tokens_per_step = 0;  // over all ranks
  Throughput throughput;
  StepTimes step_ns;
  std::vector<double> loss;        // one an optimizer step
  std::vector<double> grad_norm;   // the same; empty where it was not computed
  int64_t measured_steps = 0;      // whose times the steady figures are of; 0: nobody says
  int64_t skipped_steps = 0;       // optimizer steps that dynamic loss scaling left out
  MemoryFigures memory;            // of rank 0; rss_peak_bytes is the largest of all ranks
  std::vector<RankFigures> ranks;  // in rank order; empty where there is one process
  FlopFigures flops;
  PrintedFigures printed;
  std::map<std::string, OwnFigure> metrics;  // of a definition, by name
  CoreFigures cores;
  GpuFigures gpu;
  int64_t repeat = 0;  // which of its point's repeats the run was, from 1; 0: it ran all of them
  int64_t started_unix_ns = 0;
  int64_t ended_unix_ns = 0;
  std::map<std::string, std::string>
      environment;  // cpu, cores, flags, kernel, libraries, git_commit, command, hostname…
};

}  // namespace ridgeline
