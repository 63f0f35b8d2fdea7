// The contract between the harness and any trainer: one RunSpec in (JSON), one RunResult out (JSON).
//
// A trainer is started as `TRAINER --spec run.json --result result.json`. It reads the RunSpec, trains, writes the
// RunResult under a temporary name, renames it to the given name, and exits with one of TrainerExit. On SIGTERM or
// SIGUSR1 it may save its state and report `preempted`, a reason of infrastructure. It is then started again with the
// same RunSpec. Both documents carry `version`; a reader refuses a version that it does not know. Names include their
// units. docs/trainer-contract.md is the full description for authors of trainers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ridgeline/run_values.h"

namespace ridgeline {

inline constexpr int64_t kRunSpecVersion = 1;
inline constexpr int64_t kRunResultVersion = 1;

// How a run can end. Every end is stored with its evidence: a failure is a row, not a gap.
enum class RunStatus {
  kOk,
  kOomDevice,            // the accelerator's memory did not hold the plan
  kOomHost,              // this machine's memory did not hold the plan, or the kernel or a cgroup killed the run
  kTimeout,              // the point's own time limit passed
  kInfrastructure,       // no trainer of the run began, or the infrastructure failed under it: no result of the point
  kCancelled,            // a person cancelled it
  kInvalid,              // the trainer refused the RunSpec
  kDiverged,             // the loss stopped being a finite number
  kCrashed,              // any other non-zero exit or signal of a trainer that had begun
  kSkippedPredictedOom,  // predicted not to fit, so it was not started
};

// What part of the infrastructure failed. Such an end says nothing about the point, which is measured again.
enum class InfrastructureReason {
  kNone,       // for every other end
  kNode,       // the node failed under the job, was drained, refused it, or throttled a GPU although that is refused
  kStart,      // no trainer could be started: a prolog, a container plugin, a missing program, ranks that never met
  kStorage,    // a folder or volume is missing, full, or cannot be written or read
  kImage,      // the container image could not be fetched or started
  kLimit,      // a quota, or an administrator's limit
  kRights,     // no such partition, account or namespace, or no permission
  kPreempted,  // told to leave: preemption, eviction, a drained node
  kLost,       // the job vanished without a result
};

struct RunEnd {
  RunStatus status;
  InfrastructureReason reason;
  // Implicit: every end except infrastructure is fully described by its status.
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
  kStorage = 14,  // a file that it needs could not be read, or its output could not be written
  kNode = 15,     // the device that it was to run on is missing, is another one, or failed
};

// A field's value.
using FieldValue = std::variant<int64_t, double, bool, std::string>;

// One configuration to train and measure. The table in src/run/fields.h names, documents and checks each field. The
// JSON keys are the member names.
struct RunSpec {
  // Model. When a spec is made canonical, `model` is derived from the shape: the preset with this shape, else
  // "<family>-<layers>x<hidden>". For family "other" it is the name that another trainer uses, and parts of the shape
  // that are not given are 0.
  std::string model;
  ModelFamily family = ModelFamily::kLlama;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t head_dim = 0;  // 0: hidden / heads
  int64_t ffn = 0;
  int64_t vocab = 0;      // 0 for stack
  int64_t positions = 0;  // gpt: learned positions; 0 elsewhere
  bool tied_head = false;
  // Mixture of experts, for trainers other than ours; 0 for a dense model.
  int64_t experts = 0;            // in each layer, without those that every token takes
  int64_t experts_per_token = 0;  // of these experts
  int64_t expert_ffn = 0;         // hidden size of one expert
  // For a model whose shape does not determine it; 0: it follows from the shape, or is not known.
  int64_t parameters = 0;
  int64_t active_parameters = 0;  // parameters that a token uses
  double flops_per_token = 0;     // of training, backward included
  double rope_theta = 0;          // llama; 0 elsewhere
  double norm_eps = 1e-5;
  double dropout = 0;

  // Numbers.
  Precision precision = Precision::kBf16;  // of what the linear layers multiply
  std::string scaling;                     // fp8: delayed | current; mxfp8: round_up | floor; none elsewhere
  int64_t amax_history = 0;                // fp8 with delayed scaling: steps that it looks back; 0 elsewhere
  int64_t bf16_first_layers = 0;           // layers at the beginning, and next at the end, whose products stay bf16
  int64_t bf16_last_layers = 0;
  std::string state_precision;  // fp32 | bf16: master weights, gradients and moments
  // high_precision: bf16 weights, quantized for each product | quantized: quantized layers keep only their codes
  std::string primary_weights = "high_precision";
  // On device cuda. fastest: cuDNN's plans, whose gradients may differ in bits between runs | deterministic: plans
  // whose gradients repeat to the bit
  std::string attention_backward = "fastest";

  // Workload.
  int64_t batch_size = 1;         // sequences for each data-parallel rank and micro-step
  int64_t seq_length = 512;       // tokens
  int64_t grad_accumulation = 1;  // micro-steps for each optimizer step
  int64_t logits_chunk = 1024;    // tokens whose logits are in memory at a time
  Checkpointing checkpointing;

  // Optimizer.
  OptimizerKind optimizer = OptimizerKind::kAdamw;
  double learning_rate = 3e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;          // on every parameter (adamw: decoupled; adam: added to the gradient)
  double grad_clip = 0;               // largest global gradient norm; 0: no clipping
  std::string schedule = "constant";  // constant | cosine
  int64_t lr_warmup_steps = 0;
  double learning_rate_min = 0;  // the final rate of cosine

  // Data.
  std::string data = "synthetic";  // synthetic | the path of a file, read as bytes
  int64_t seed = 1234;

  // The first weights.
  std::string init_from = "seed";  // seed | the path of a folder of weights

  // Parallelism and device.
  int64_t ranks = 1;              // data-parallel ranks x tensor_parallel x pipeline_parallel x context_parallel
  int64_t tensor_parallel = 1;    // ranks that share each layer's products
  int64_t pipeline_parallel = 1;  // ranks that hold the layers one after another
  int64_t context_parallel = 1;   // ranks that share each sequence
  int64_t expert_parallel = 1;    // ranks that share a layer's experts; taken from the other ranks
  int64_t virtual_pipeline = 1;   // stages of each rank of the pipeline
  // Whether tensor-parallel ranks share the sequences of norms. Empty if there are no such ranks. If there are, making
  // the spec canonical turns empty into true.
  std::optional<bool> sequence_parallel;
  ShardMode shard = ShardMode::kNone;
  int64_t shard_ranks = 0;  // ranks that share what is split, if there are several groups (HSDP); 0: all
  // self (one rank) | gloo (processes) | nccl (processes with a GPU each) | virtual (rank 0 of `ranks`, moves no
  // bytes); empty: self, gloo or nccl, by `ranks` and `device`
  std::string communicator;
  std::string device = "cpu";  // cpu | cuda | meta (plan only)
  std::string gpu = "none";    // for cuda, and for meta to plan for one: a100, h200, … (run/gpus.h)

  // The trainer: "ridgeline" for any program that is started with the spec, else the name of a definition in
  // `trainers/`. `own` has the values of that definition's own fields, by name.
  std::string trainer = "ridgeline";
  std::map<std::string, FieldValue> own;

  // Measurement.
  int64_t warmup_steps = 2;
  int64_t steps = 5;    // measured optimizer steps for each repeat
  int64_t repeats = 1;  // blocks of these steps; the driver runs each block by itself, with a spec of 1

  // Checkpoint files (docs/checkpoint-files.md): `checkpoint: {dir, every_steps, keep}` in JSON. They say how a run
  // keeps its state, not what the run is, so the point's id does not depend on them.
  std::string checkpoint_dir;  // empty: none are written
  int64_t checkpoint_every_steps = 100;
  int64_t checkpoint_keep = 2;  // keeps so many of the newest; older ones are removed

  // `measure: {min_steps, refuse_throttled, seconds, warmup_seconds}` in JSON; these are settings too. A run whose
  // steady figures come from fewer than min_steps measured steps is invalid. With refuse_throttled, a run whose GPU was
  // throttled is no result. On device cuda the same steps run for warmup_seconds before the run begins, and blocks of
  // `steps` steps are measured until `seconds` have passed: clocks settle in seconds, not in steps.
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
  double steady_tokens_per_s = 0;  // tokens of a step / median measured step
  double cold_tokens_per_s = 0;    // all tokens / all steps' time, the first step included
};

struct MemoryFigures {
  int64_t planned_peak_bytes = 0;              // the slab: all tensors of the run at the moment of its peak
  std::map<std::string, int64_t> by_category;  // planned peak by category; sums to planned_peak_bytes
  int64_t rss_peak_bytes = 0;                  // peak resident set of the process; 0 if nothing was run
  int64_t device_peak_bytes = 0;               // peak use of the accelerator's memory; 0 if there is none
  int64_t device_reserved_bytes = 0;           // peak reservation of its allocator, with or without tensors in it
  std::string device_peak_kind = {};  // what device_peak_bytes counts: allocated | in use | NVML; empty: not known
};

// The memory of one of several ranks.
struct RankFigures {
  std::string host;
  int64_t planned_peak_bytes = 0;
  int64_t rss_peak_bytes = 0;
};

// Who used the cores that a run was given, on the node of rank 0. `exec` measures this, not the trainer.
struct CoreFigures {
  double busy_share = 0;    // share of their time in use by anyone
  double others_share = 0;  // share of their time used by others than the run, including a hypervisor's steal
  int64_t throttles = 0;    // how often a core grew too hot for its clock, or the cgroup had used up its share
};

// Figures of rank 0's GPU, from its driver. They cover all processes on the GPU. Empty if the driver does not report a
// figure, or the run has no GPU.
struct GpuFigures {
  std::optional<double> power_w;      // mean draw over the measured steps
  std::optional<double> power_max_w;  // highest draw in a sample during them
  std::optional<double> power_limit_w;
  std::optional<double> energy_j;      // used in the measured steps
  std::optional<double> sm_clock_mhz;  // mean over the measured steps
  std::optional<double> sm_clock_min_mhz;
  std::optional<double> memory_clock_mhz;  // mean over the measured steps
  std::optional<double> temperature_c;     // highest in the measured steps
  // The share of samples in the measured steps at which a limit that costs speed held the clocks down.
  std::optional<double> throttled_share;
  std::map<std::string, int64_t> clock_limits;  // samples at which each limit held, by nvidia-smi's name for it
  std::optional<int64_t> ecc_corrected;         // errors of its memory during the run
  std::optional<int64_t> ecc_uncorrected;
  std::optional<int64_t> others;        // other processes on it before the run
  std::optional<int64_t> others_bytes;  // its memory in use before the run
};

// The trainer's own statement of its efficiency, by its own convention.
struct PrintedFigures {
  std::optional<double> mfu;  // as a share: 0.41
  std::optional<double> tflops_per_gpu;
};

// A figure that is defined only by one trainer's definition.
struct OwnFigure {
  double value = 0;
  std::string unit;
};

struct FlopFigures {            // floating-point operations of a rank in an optimizer step; model_*: no recomputation
  double model_causal = 0;      // attention counted where the causal mask leaves work
  double model_non_causal = 0;  // attention counted over the full s x s square
  double executed = 0;          // what was really run, recomputation included
};

// The table in src/run/figures.h names, documents and checks each figure.
struct RunResult {
  std::string point_id;
  RunStatus status = RunStatus::kCrashed;
  InfrastructureReason reason = InfrastructureReason::kNone;  // if status is kInfrastructure
  std::string message;                                        // one sentence; empty if status is ok
  std::string hint;                                           // what to do about it
  // exit_code, signal, wanted_bytes, available_bytes, oom_kill, log_tail…; for a run with checkpoint files also
  // resumed_from_step, checkpoint_dir, checkpoint_step, checkpoint_saves, checkpoint_save_ns, checkpoint_error.
  std::map<std::string, std::string> evidence;
  Provenance provenance = Provenance::kMeasured;
  bool emulated = false;  // a low precision computed by quantize-dequantize
  std::string device;     // the device's own description
  std::string communicator = "self";
  int64_t parameters = 0;
  int64_t tokens_per_step = 0;  // over all ranks
  Throughput throughput;
  StepTimes step_ns;
  std::vector<double> loss;        // one for each optimizer step
  std::vector<double> grad_norm;   // one for each optimizer step; empty if it was not computed
  int64_t measured_steps = 0;      // number of steps behind the steady figures; 0: not known
  int64_t skipped_steps = 0;       // optimizer steps that dynamic loss scaling skipped
  MemoryFigures memory;            // of rank 0; rss_peak_bytes is the largest of all ranks
  std::vector<RankFigures> ranks;  // in rank order; empty for a single process
  FlopFigures flops;
  PrintedFigures printed;
  std::map<std::string, OwnFigure> metrics;  // of a definition, by name
  CoreFigures cores;
  GpuFigures gpu;
  int64_t repeat = 0;  // which of its point's repeats the run was, from 1; 0: it ran all repeats
  int64_t started_unix_ns = 0;
  int64_t ended_unix_ns = 0;
  std::map<std::string, std::string>
      environment;  // cpu, cores, flags, kernel, libraries, git_commit, command, hostname…
};

}  // namespace ridgeline
