#include "run/fields.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "run/names.h"

namespace ridgeline {
namespace {

using F = Field;

constexpr double kBig = 1e15;

// Sorted by name, because the canonical encoding writes them in this order.
const Field kFields[] = {
    {"active_parameters", &RunSpec::active_parameters,
     "other trainers: parameters that a token uses, if the model's shape does not say (default: from its shape)", "", 0,
     kBig, F::kOfHarness | F::kSparesMemory, "0"},
    {"amax_history", &RunSpec::amax_history,
     "fp8 with delayed scaling: how many steps of amaxes it keeps (default 1024)", "", 0, 1 << 20, 0, "0"},
    {"attention_backward", &RunSpec::attention_backward,
     "on device cuda: fastest (gradients may differ in the last bits), or deterministic (slower, more memory) (default "
     "fastest)",
     "fastest|deterministic", 0, 0, F::kSparesLoss, "fastest"},
    {"batch_size", &RunSpec::batch_size, "sequences of a data-parallel rank in one micro-step (default 1)", "", 1,
     1 << 20},
    {"beta1", &RunSpec::beta1, "decay of Adam's first moment (default 0.9)", "", 0, 0.999999, F::kSparesMemory},
    {"beta2", &RunSpec::beta2, "decay of Adam's second moment (default 0.95; stack 0.999)", "", 0, 0.9999999,
     F::kSparesMemory},
    {"bf16_first_layers", &RunSpec::bf16_first_layers, "fp8, mxfp8, nvfp4: how many first layers stay bf16 (default 0)",
     "", 0, 4096, 0, "0"},
    {"bf16_last_layers", &RunSpec::bf16_last_layers, "fp8, mxfp8, nvfp4: how many last layers stay bf16 (default 0)",
     "", 0, 4096, 0, "0"},
    {"checkpointing", &RunSpec::checkpointing,
     "activation checkpointing: none, selective (recomputes norms and MLP activations), full (a layer keeps only its "
     "input) or full/K (every K layers keep one input) (default none)",
     "", 0, 0, F::kSparesLoss},
    {"communicator", &RunSpec::communicator,
     "self (one rank), gloo (ranks are processes), nccl (processes with a GPU each) or virtual (rank 0 of `ranks`, "
     "which moves no bytes) (default self for one rank, else gloo, or nccl on device cuda)",
     "self|gloo|nccl|virtual", 0, 0, F::kSparesLoss},
    {"context_parallel", &RunSpec::context_parallel, "ranks that share each sequence (default 1)", "", 1, 1 << 16,
     F::kSparesLoss, "1"},
    {"data", &RunSpec::data, "synthetic, or the path of a text file, which is read as bytes (default synthetic)", "", 0,
     0, F::kSparesMemory},
    {"device", &RunSpec::device,
     "cpu, cuda (NVIDIA GPUs; set `gpu`, too) or meta (traces and plans, runs nothing) (default cpu)", "cpu|cuda|meta",
     0, 0, F::kSparesLoss},
    {"dropout", &RunSpec::dropout, "probability that a hidden value is dropped (default 0; stack 0.1)", "", 0, 0.99,
     F::kMemoryByBeing},
    {"epsilon", &RunSpec::epsilon, "Adam's epsilon (default 1e-8)", "", 0, 1, F::kSparesMemory},
    {"expert_ffn", &RunSpec::expert_ffn, "other trainers: hidden size of an expert's MLP", "", 0, 1 << 22,
     F::kOfShape | F::kOfHarness, "0"},
    {"expert_parallel", &RunSpec::expert_parallel,
     "ranks that share the experts of a layer; these are data-parallel ranks, so `ranks` does not grow (default 1)", "",
     1, 1 << 16, F::kSparesLoss, "1"},
    {"experts", &RunSpec::experts,
     "other trainers: routed experts in a layer, without shared ones (default 0: a dense model)", "", 0, 1 << 16,
     F::kOfShape | F::kOfHarness, "0"},
    {"experts_per_token", &RunSpec::experts_per_token, "other trainers: routed experts that a token uses", "", 0,
     1 << 16, F::kOfShape | F::kOfHarness, "0"},
    {"family", &RunSpec::family,
     "model family: llama, gpt or stack. Other trainers have more, and `other` if only the model's name is known "
     "(default llama)",
     kChoices<ModelFamily>, 0, 0, F::kOfShape},
    {"ffn", &RunSpec::ffn, "hidden size of the MLP", "", 1, 1 << 22, F::kOfShape, "0"},
    {"flops_per_token", &RunSpec::flops_per_token,
     "other trainers: FLOPs of training a token, backward pass included (default: from the model's shape, else 6 times "
     "the parameters that a token uses)",
     "", 0, 1e18, F::kOfHarness | F::kSparesMemory, "0"},
    {"gpu", &RunSpec::gpu, "the GPU of device cuda, or of meta to plan for one (default none)",
     "none|a100|a100-40gb|a100-pcie|b200|b300|gb200|gb300|h100|h100-nvl|h100-pcie|h200|h200-nvl|l40s|"
     "rtx-4090|rtx-5090",
     0, 0, F::kSparesLoss, "none"},
    {"grad_accumulation", &RunSpec::grad_accumulation, "micro-steps in an optimizer step (default 1)", "", 1, 4096,
     F::kSparesLoss},
    {"grad_clip", &RunSpec::grad_clip, "largest global gradient norm; 0: no clipping (default 0)", "", 0, kBig,
     F::kMemoryByBeing},
    {"head_dim", &RunSpec::head_dim, "size of an attention head (default hidden / heads)", "", 0, 4096, F::kOfShape},
    {"heads", &RunSpec::heads, "attention heads", "", 1, 4096, F::kOfShape, "0"},
    {"hidden", &RunSpec::hidden, "size of the residual stream", "", 1, 1 << 20, F::kOfShape, "0"},
    {"init_from", &RunSpec::init_from,
     "llama and gpt: initial weights from seed, or from a folder such as a checkpoint's or one that Hugging Face "
     "transformers saved (default seed)",
     "", 0, 0, F::kSparesMemory, "seed"},
    {"kv_heads", &RunSpec::kv_heads, "key-value heads, for grouped-query attention (default: heads)", "", 0, 4096,
     F::kOfShape},
    {"layers", &RunSpec::layers, "transformer layers", "", 1, 4096, F::kOfShape, "0"},
    {"learning_rate", &RunSpec::learning_rate, "peak learning rate (default 3e-4; stack 1e-4)", "", 0, 1e3,
     F::kSparesMemory},
    {"learning_rate_min", &RunSpec::learning_rate_min, "learning rate at the end of the cosine schedule (default 0)",
     "", 0, 1e3, F::kSparesMemory},
    {"logits_chunk", &RunSpec::logits_chunk,
     "tokens whose logits are in memory at a time: more take more memory, in fewer and larger products (default 1024)",
     "", 16, 1 << 20, 0, "1024"},
    {"lr_warmup_steps", &RunSpec::lr_warmup_steps, "steps of linear learning-rate warm-up (default 0)", "", 0, kBig,
     F::kSparesMemory},
    {"model", &RunSpec::model,
     "a preset such as llama-25m, gpt-124m or stack-1b, which sets the shape; other trainers take any name or path", "",
     0, 0, F::kSparesMemory},
    {"norm_eps", &RunSpec::norm_eps, "epsilon of the norms (default 1e-5)", "", 0, 1, F::kSparesMemory},
    {"optimizer", &RunSpec::optimizer, "adamw (decoupled weight decay) or adam (default adamw; stack adam)",
     kChoices<OptimizerKind>, 0, 0},
    {"parameters", &RunSpec::parameters,
     "other trainers: parameters, or trained parameters, if the model's shape does not say (default: from its shape)",
     "", 0, kBig, F::kOfHarness | F::kSparesMemory, "0"},
    {"pipeline_parallel", &RunSpec::pipeline_parallel,
     "ranks that share the layers, one after another; micro-steps are the micro-batches (default 1)", "", 1, 1 << 16,
     F::kSparesLoss, "1"},
    {"positions", &RunSpec::positions, "gpt: learned positions, which limit the sequence length", "", 0, 1 << 26,
     F::kOfShape},
    {"precision", &RunSpec::precision,
     "number format of the linear layers' products; tf32: fp32 operands rounded to 10 bits of mantissa (default bf16)",
     kChoices<Precision>, 0, 0},
    {"primary_weights", &RunSpec::primary_weights,
     "fp8, mxfp8, nvfp4: how quantized layers' weights are kept: high_precision (bf16) or quantized (codes and scales "
     "only, as TransformerEngine's quantized_model_init) (default high_precision)",
     "high_precision|quantized", 0, 0, 0, "high_precision"},
    {"ranks", &RunSpec::ranks,
     "all ranks, one GPU each: data-parallel ranks x tensor_parallel x pipeline_parallel x context_parallel (default "
     "1)",
     "", 1, 1 << 16, F::kSparesLoss},
    {"repeats", &RunSpec::repeats,
     "blocks of `steps` steps; a sweep runs each separately, in turn with other points (default 1)", "", 1, 1000,
     F::kSparesMemory | F::kSparesLoss},
    {"rope_theta", &RunSpec::rope_theta, "llama: base of the rotary embedding (default 500000)", "", 0, kBig,
     F::kSparesMemory},
    {"scaling", &RunSpec::scaling,
     "how scales are computed: fp8 delayed (from earlier steps, default) or current; mxfp8 round_up (default) or "
     "floor; none for other formats",
     "none|delayed|current|round_up|floor", 0, 0, 0, "none"},
    {"schedule", &RunSpec::schedule, "learning-rate schedule after warm-up (default constant)", "constant|cosine", 0, 0,
     F::kSparesMemory},
    {"seed", &RunSpec::seed, "seed of weights, data and dropout (default 1234)", "", 0, kBig, F::kSparesMemory},
    {"seq_length", &RunSpec::seq_length, "tokens in a sequence (default 512)", "", 1, 1 << 26},
    {"sequence_parallel", &RunSpec::sequence_parallel,
     "whether tensor-parallel ranks also share the sequences of norms (default true if tensor_parallel > 1)", "", 0, 0,
     F::kSparesLoss, "false"},
    {"shard", &RunSpec::shard,
     "what is split over the ranks: none, optimizer (moments and master weights: ZeRO-1), gradients (these, too: "
     "ZeRO-2, SHARD_GRAD_OP) or full (weights, too: FSDP, ZeRO-3) (default none)",
     kChoices<ShardMode>, 0, 0, F::kSparesLoss},
    {"shard_ranks", &RunSpec::shard_ranks,
     "ranks that share what `shard` splits, such as those of a node; each such group has a copy (HSDP) (default: all)",
     "", 0, 1 << 16, F::kSparesLoss, "0"},
    {"state_precision", &RunSpec::state_precision,
     "format of master weights, gradients and moments (default fp32; stack: as precision)", "fp32|bf16", 0, 0},
    {"steps", &RunSpec::steps, "measured optimizer steps in a repeat (default 5)", "", 1, 1e9,
     F::kSparesMemory | F::kSparesLoss},
    {"tensor_parallel", &RunSpec::tensor_parallel, "ranks that share the products of each layer (default 1)", "", 1,
     1 << 16, F::kSparesLoss, "1"},
    {"tied_head", &RunSpec::tied_head, "whether the head shares the embedding's weights", "", 0, 0, F::kOfShape},
    {"trainer", &RunSpec::trainer,
     "ridgeline, or another trainer, by the name of its definition in trainers/ (default ridgeline)", "", 0, 0,
     F::kOfHarness, kOurTrainer},
    {"virtual_pipeline", &RunSpec::virtual_pipeline, "pipeline stages on each rank (default 1)", "", 1, 4096,
     F::kSparesLoss, "1"},
    {"vocab", &RunSpec::vocab, "tokens in the vocabulary (stack has none)", "", 0, 1 << 24, F::kOfShape},
    {"warmup_steps", &RunSpec::warmup_steps, "optimizer steps before the measured ones (default 2)", "", 0, 1e9,
     F::kSparesMemory | F::kSparesLoss},
    {"weight_decay", &RunSpec::weight_decay, "weight decay, for every parameter (default 0.1; stack 0)", "", 0, 1e3,
     F::kSparesMemory},
};

// Sorted by name.
const Field kSettings[] = {
    {"checkpoint.dir", &RunSpec::checkpoint_dir,
     "folder for checkpoint files; a run continues from the newest one in it (default none)", "", 0, 0,
     F::kSparesMemory | F::kSparesLoss},
    {"checkpoint.every_steps", &RunSpec::checkpoint_every_steps,
     "steps between checkpoint files; the last step also writes one (default 100)", "", 1, 1e9,
     F::kSparesMemory | F::kSparesLoss},
    {"checkpoint.keep", &RunSpec::checkpoint_keep, "how many of the newest checkpoint files are kept (default 2)", "",
     1, 1e6, F::kSparesMemory | F::kSparesLoss},
    {"measure.min_steps", &RunSpec::min_steps,
     "least measured steps for steady figures; a run with fewer is invalid (default 1)", "", 1, 1e9,
     F::kSparesMemory | F::kSparesLoss},
    {"measure.refuse_throttled", &RunSpec::refuse_throttled,
     "whether a run with a throttled GPU ends as infrastructure and is run again (default false)", "", 0, 0,
     F::kSparesMemory | F::kSparesLoss},
    {"measure.seconds", &RunSpec::measured_seconds,
     "on device cuda: shortest measured time, in blocks of `steps` steps (default 10)", "", 0, 86400,
     F::kSparesMemory | F::kSparesLoss},
    {"measure.warmup_seconds", &RunSpec::warmup_seconds,
     "on device cuda: how long the same steps run first, so that clocks settle (default 5)", "", 0, 86400,
     F::kSparesMemory | F::kSparesLoss},
};

const Field* Find(std::span<const Field> table, std::string_view name) {
  const auto it = std::lower_bound(table.begin(), table.end(), name,
                                   [](const Field& field, std::string_view n) { return field.name < n; });
  return it != table.end() && it->name == name ? &*it : nullptr;
}

}  // namespace

std::string_view Field::type() const {
  static constexpr std::string_view kTypes[] = {"integer", "number", "true or false", "text", "", "true or false"};
  const auto* own = std::get_if<OwnMember>(&member);
  const size_t index = own != nullptr ? own->standard.index() : member.index();
  return index < std::size(kTypes) ? kTypes[index] : "text";
}

std::string Field::flag() const {
  constexpr std::string_view kMeasure = "measure.";
  std::string text = "--" + std::string(name.starts_with(kMeasure) ? name.substr(kMeasure.size()) : name);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '_' || c == '.'; }, '-');
  return text;
}

std::vector<std::string> ChoicesOf(const Field& field) {
  std::vector<std::string> choices;
  for (std::string_view rest = field.choices; !rest.empty();) {
    const size_t bar = std::min(rest.find('|'), rest.size());
    choices.emplace_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return choices;
}

std::span<const Field> Fields() { return kFields; }
std::span<const Field> Settings() { return kSettings; }

const Field* FindField(std::string_view name) {
  const Field* field = Find(kFields, name);
  return field != nullptr ? field : Find(kSettings, name);
}

const std::vector<std::string>& SettableNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Field& field : kFields) result.emplace_back(field.name);
    for (const Field& setting : kSettings) result.emplace_back(setting.name);
    return result;
  }();
  return names;
}

RunSpec Without(const RunSpec& spec, Field::Trait trait) {
  static const RunSpec defaults;
  RunSpec out = spec;
  const auto reset = [&](const Field& field) {
    if (field.Has(trait)) SetValue(out, field, ValueOf(defaults, field));
  };
  std::for_each(Fields().begin(), Fields().end(), reset);
  std::for_each(Settings().begin(), Settings().end(), reset);
  return out;
}

FieldValue ValueOf(const RunSpec& spec, const Field& field) {
  return std::visit(
      [&](const auto& member) -> FieldValue {
        if constexpr (std::is_same_v<std::decay_t<decltype(member)>, OwnMember>) {
          const auto it = spec.own.find(std::string(field.name));
          return it == spec.own.end() ? member.standard : it->second;
        } else if constexpr (std::is_same_v<std::decay_t<decltype(member)>, std::optional<bool> RunSpec::*>) {
          return (spec.*member).value_or(false);
        } else if constexpr (requires { NameOf(spec.*member); }) {
          return std::string(NameOf(spec.*member));
        } else {
          return spec.*member;
        }
      },
      field.member);
}

bool SetValue(RunSpec& spec, const Field& field, const FieldValue& value) {
  const auto set_named = [](auto& to, const auto& named) {
    if (named) to = *named;
    return named.has_value();
  };
  return std::visit(
      [&](const auto& member) {
        if constexpr (std::is_same_v<std::decay_t<decltype(member)>, OwnMember>) {
          spec.own[std::string(field.name)] = value;
        } else if constexpr (std::is_same_v<std::decay_t<decltype(member)>, std::optional<bool> RunSpec::*>) {
          spec.*member = std::get<bool>(value);
        } else if constexpr (std::is_same_v<std::decay_t<decltype(member)>, Checkpointing RunSpec::*>) {
          return set_named(spec.*member, ParseCheckpointing(std::get<std::string>(value)));
        } else if constexpr (std::is_enum_v<std::decay_t<decltype(spec.*member)>>) {
          return set_named(spec.*member,
                           ValueNamed<std::decay_t<decltype(spec.*member)>>(std::get<std::string>(value)));
        } else {
          spec.*member = std::get<std::decay_t<decltype(spec.*member)>>(value);
        }
        return true;
      },
      field.member);
}

bool IsUnknown(const RunSpec& spec, const Field& field) {
  const bool is_of_model = field.Has(Field::kOfShape) || field.name == "rope_theta";
  if (is_of_model ? spec.family != ModelFamily::kOther : !field.Has(Field::kOfHarness)) return false;
  const FieldValue value = ValueOf(spec, field);
  return value == FieldValue(int64_t{0}) || value == FieldValue(0.0) || value == FieldValue(false);
}

std::string ValueText(const FieldValue& value) {
  return std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
}

std::string FieldText(const RunSpec& spec, const Field& field) {
  if (field.is_own() && !spec.own.contains(std::string(field.name))) return {};
  if (IsUnknown(spec, field)) return {};
  return ValueText(ValueOf(spec, field));
}

}  // namespace ridgeline
