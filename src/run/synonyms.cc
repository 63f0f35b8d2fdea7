#include "run/synonyms.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline {
namespace {

struct Synonym {
  std::string_view theirs;  // lower case, with _
  std::string_view ours;
  std::string_view note = {};
};

constexpr std::string_view kDataParallel =
    ": data-parallel ranks are all ranks over tensor_parallel, pipeline_parallel and context_parallel";
constexpr std::string_view kSharded =
    ": `full` shares weights, gradients and optimizer state, `optimizer` the last alone";

// The names of PyTorch and torchtitan, Megatron-LM, DeepSpeed, Hugging Face's Trainer and NeMo.
constexpr Synonym kSynonyms[] = {
    {"lr", "learning_rate"},
    {"min_lr", "learning_rate_min"},
    {"warmup", "warmup_steps", ": steps before those that are measured; the learning rate's are lr_warmup_steps"},
    {"lr_warmup", "lr_warmup_steps"},
    {"wd", "weight_decay"},
    {"tp", "tensor_parallel"},
    {"tp_size", "tensor_parallel"},
    {"tensor_model_parallel_size", "tensor_parallel"},
    {"pp", "pipeline_parallel"},
    {"pp_size", "pipeline_parallel"},
    {"pipeline_model_parallel_size", "pipeline_parallel"},
    {"cp", "context_parallel"},
    {"context_parallel_size", "context_parallel"},
    {"ep", "expert_parallel"},
    {"dp", "ranks", kDataParallel},
    {"dp_size", "ranks", kDataParallel},
    {"data_parallel", "ranks", kDataParallel},
    {"data_parallel_size", "ranks", kDataParallel},
    {"world_size", "ranks"},
    {"num_gpus", "ranks"},
    {"gpus", "ranks", ": one has a GPU each with device: cuda"},
    {"fsdp", "shard", kSharded},
    {"zero", "shard", kSharded},
    {"zero_stage", "shard", kSharded},
    {"dtype", "precision"},
    {"mixed_precision", "precision"},
    {"activation_checkpointing", "checkpointing"},
    {"activation_checkpoint", "checkpointing"},
    {"gradient_checkpointing", "checkpointing"},
    {"recompute", "checkpointing"},
    {"recompute_granularity", "checkpointing"},
    {"gradient_accumulation", "grad_accumulation"},
    {"gradient_accumulation_steps", "grad_accumulation"},
    {"accumulation_steps", "grad_accumulation"},
    {"micro_batch_size", "batch_size", ": sequences of a rank in a micro-step"},
    {"mbs", "batch_size", ": sequences of a rank in a micro-step"},
    {"bs", "batch_size"},
    {"seq_len", "seq_length"},
    {"sequence_length", "seq_length"},
    {"max_seq_len", "seq_length"},
    {"context_length", "seq_length"},
    {"hidden_size", "hidden"},
    {"d_model", "hidden"},
    {"num_layers", "layers"},
    {"n_layers", "layers"},
    {"n_heads", "heads"},
    {"num_heads", "heads"},
    {"num_attention_heads", "heads"},
    {"num_key_value_heads", "kv_heads"},
    {"vocab_size", "vocab"},
    {"max_steps", "steps"},
    {"num_steps", "steps"},
    // Values.
    {"bfloat16", "bf16"},
    {"float16", "fp16"},
    {"half", "fp16"},
    {"float32", "fp32"},
    {"float8", "fp8"},
    {"gpu", "cuda"},
    // Sections of a sweep.
    {"grid", "matrix"},
    {"sweep", "matrix"},
    {"axes", "matrix"},
    {"parameters", "matrix"},
    {"params", "matrix"},
    {"base", "defaults"},
    {"config", "defaults"},
    {"resources", "launch"},
    {"slurm", "launch", ": {launcher: slurm, slurm: {…}}"},
    {"kubernetes", "launch", ": {launcher: kubernetes, kubernetes: {…}}"},
    {"sagemaker", "launch", ": {launcher: sagemaker, sagemaker: {…}}"},
};

}  // namespace

std::string Meant(std::string_view name, const std::vector<std::string>& known) {
  std::string plain;
  for (const char c : name) plain += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.theirs == plain && std::ranges::find(known, synonym.ours) != known.end()) {
      return fmt::format(", here '{}'{}", synonym.ours, synonym.note);
    }
  }
  return DidYouMean(name, known);
}

}  // namespace ridgeline
