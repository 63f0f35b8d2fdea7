#!/usr/bin/python3
"""Checks the commands of shipped definitions with stand-ins for the programs' own parsers.

  parsers.py RIDGELINE TRAINERS

RIDGELINE: the program. TRAINERS: the folder with the definitions. `ridgeline plan --commands` prints the commands. The
stand-ins' options, types and choices come from the sources that the definitions name.
"""

import ast
import json
import pathlib
import subprocess
import sys
import tempfile

import yaml

sys.dont_write_bytecode = True

import titan_parsers  # noqa: E402
import tuning_parsers  # noqa: E402
from parser_parts import Parser, refuse, torchrun  # noqa: E402

SWEEPS = {
    "transformer_engine_fsdp": """
defaults: {model: stack-1b, shard: full, device: cuda, gpu: b200, ranks: 8, seq_length: 2048}
matrix:
  precision: [bf16, tf32, fp16, fp8, mxfp8, nvfp4]
  checkpointing: [none, full]
""",
    "nanogpt": """
defaults: {model: gpt-124m}
matrix:
  learning_rate: [6e-5, 1, 3e-4]
  schedule: [constant, cosine]
zip:
  - {device: [cpu, cuda], gpu: [none, a100], precision: [fp32, bf16]}
""",
    "hf_trainer": """
defaults: {batch_size: 2, ranks: 2, learning_rate: 1e-5}
matrix:
  model: [llama-1b, gpt-124m]
  checkpointing: [none, full]
  train_file: ['', a b.txt]
  compile: [false, true]
zip:
  - {device: [cpu, cuda], gpu: [none, h100], precision: [fp32, bf16]}
""",
    "llm_foundry": """
defaults: {model: gpt-124m, device: cuda, gpu: h100, ranks: 8, weight_decay: 0}
matrix:
  epsilon: [1e-8, 1e-5]
  grad_clip: [0, 1]
  schedule: [constant, cosine]
zip:
  - {shard: [none, full, full], checkpointing: [none, none, full]}
""",
    "nanotron": """
defaults: {device: cuda, gpu: h100, ranks: 8, seq_length: 2048}
matrix:
  model: [llama-1b, llama-8b]
  schedule: [constant, cosine]
  checkpointing: [none, full]
zip:
  - {tensor_parallel: [1, 2, 2], pipeline_parallel: [1, 1, 2], grad_accumulation: [1, 1, 4], shard: [none, optimizer, none]}
""",
    "llm_c": """
defaults: {model: gpt-124m, device: cuda, gpu: h100, ranks: 8, seq_length: 1024, grad_clip: 1, grad_accumulation: 2}
matrix:
  schedule: [constant, cosine]
  checkpointing: [none, selective]
  shard: [none, optimizer]
""",
    "megatron_lm": """
defaults: {device: cuda, gpu: h100, ranks: 64, seq_length: 1024, grad_accumulation: 8, shard: optimizer}
matrix:
  model: [llama-8b, gpt-350m, qwen2.5-7b, qwen3-8b, mixtral-8x7b]
  checkpointing: [none, selective, full]
zip:
  - {precision: [tf32, bf16, fp16, fp8, mxfp8, nvfp4], gpu: [h100, h100, h100, h100, b200, b200], shard: [none, optimizer, optimizer, optimizer, optimizer, none]}
  - {tensor_parallel: [1, 2, 2, 1], pipeline_parallel: [1, 2, 4, 1], context_parallel: [1, 1, 1, 2]}
""",
    "nemo": """
defaults: {device: cuda, gpu: h100, ranks: 16, seq_length: 1024, grad_accumulation: 8, shard: optimizer}
matrix:
  model: [llama-8b, qwen2.5-7b, qwen3-8b, mixtral-8x7b]
  checkpointing: [none, selective, full]
zip:
  - {precision: [bf16, fp8, mxfp8, nvfp4], gpu: [h100, h100, b200, b200], bf16_last_layers: [0, 0, 1, 0], shard: [none, optimizer, optimizer, none]}
  - {tensor_parallel: [1, 2, 1], pipeline_parallel: [1, 2, 2], virtual_pipeline: [1, 1, 2], context_parallel: [1, 2, 1]}
""",
    "deepspeed": """
defaults: {device: cuda, gpu: h100, ranks: 16, seq_length: 1024, grad_accumulation: 8}
matrix:
  model: [llama-8b, gpt-350m]
  checkpointing: [none, full]
  precision: [bf16, fp16]
zip:
  - {shard: [optimizer, full], pipeline_parallel: [2, 1], context_parallel: [1, 4], tensor_parallel: [2, 1]}
""",
    "maxtext": """
defaults: {device: cuda, gpu: h100, ranks: 8, seq_length: 2048, warmup_steps: 3}
matrix:
  model: [llama-8b, qwen3-8b, qwen2.5-7b, llama3.1-405b]
  schedule: [constant, cosine]
zip:
  - {tensor_parallel: [1, 2, 4], context_parallel: [1, 2, 1], sequence_parallel: [false, true, false], shard: [none, full, full], batch_size: [2, 4, 1]}
  - {precision: [bf16, fp32, fp8, nvfp4], checkpointing: [selective, full, full, selective], grad_accumulation: [2, 1, 1, 1]}
""",
    "nanochat": """
defaults: {model: nanochat-d20, seq_length: 2048, batch_size: 4, grad_accumulation: 2}
matrix:
  depth: [4, 20]
  window_pattern: [SSSL, L]
zip:
  - {device: [cuda, cuda, cuda, cpu], gpu: [h100, h100, h100, none], ranks: [8, 16, 1, 1], shard: [optimizer, optimizer, none, none], precision: [bf16, fp8, tf32, fp32], fp8_recipe: [tensorwise, rowwise, tensorwise, tensorwise]}
""",
    "automodel": """
defaults: {device: cuda, gpu: h100, ranks: 16, seq_length: 4096, shard: full}
matrix:
  model: [llama-8b, qwen3-8b, qwen2.5-7b, meta-llama/Llama-3.1-8B]
  schedule: [constant, cosine]
zip:
  - {tensor_parallel: [1, 2, 1], context_parallel: [1, 1, 2]}
  - {precision: [bf16, fp8], grad_accumulation: [1, 2], checkpointing: [full, selective], compile: [false, true], grad_clip: [0, 1]}
""",
} | tuning_parsers.SWEEPS | titan_parsers.SWEEPS


def one_of(names):
    """Returns a type for options that raises ValueError for an unknown name."""
    return lambda text: text.lower() if text.lower() in names.split() else refuse(f"{text} is none of {names}")


def transformer_engine_fsdp(command):
    layer = one_of("linear layernorm rmsnorm layernormlinear layernormmlp multiheadattention transformerlayer")
    parser = Parser()
    parser.add_argument("-v", "--verbose", action="store_true")
    for name in "-b --batch-size", "-s --seq-length", "-n --num-heads", "-d --head-dim", "-i --num-iters":
        parser.add_argument(*name.split(), type=int)
    parser.add_argument("-k", "--num-layers", type=int)
    parser.add_argument("--layer-type", type=layer, default="transformerlayer")
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--profile-memory", action="store_true")
    parser.add_argument("--profile-name", type=str)
    parser.add_argument("--checkpoint-layer", type=layer)
    parser.add_argument("--no-fp8", action="store_true")
    parser.add_argument("--no-defer-init", action="store_true")
    parser.add_argument("--no-te-fsdp", action="store_true")
    parser.add_argument("--dtype", type=one_of("fp32 float32 fp16 float16 bf16 bfloat16"))
    parser.add_argument("--precision", type=one_of("fp32 fp16 fp8 mxfp8 nvfp4"))
    script, words = torchrun(command["argv"][1:])
    found = parser.parse_args(words)
    assert script.endswith("fsdp.py"), script
    assert not (found.no_fp8 and found.precision in ("fp8", "mxfp8", "nvfp4")), "it refuses both"
    assert (found.checkpoint_layer is not None) == (command["fields"]["checkpointing"] == "full")
    assert found.num_iters == 7 and found.num_layers == 24


NANOGPT = {
    "out_dir": "out", "eval_interval": 2000, "log_interval": 1, "eval_iters": 200, "eval_only": False,
    "always_save_checkpoint": True, "init_from": "scratch", "wandb_log": False, "wandb_project": "owt",
    "wandb_run_name": "gpt2", "dataset": "openwebtext", "gradient_accumulation_steps": 40, "batch_size": 12,
    "block_size": 1024, "n_layer": 12, "n_head": 12, "n_embd": 768, "dropout": 0.0, "bias": False,
    "learning_rate": 6e-4, "max_iters": 600000, "weight_decay": 1e-1, "beta1": 0.9, "beta2": 0.95, "grad_clip": 1.0,
    "decay_lr": True,
    "warmup_iters": 2000, "lr_decay_iters": 600000, "min_lr": 6e-5, "backend": "nccl", "device": "cuda",
    "dtype": "bfloat16", "compile": True,
}  # fmt: skip


def nanogpt(command):
    """Does what configurator.py does: it reads a value as a literal if possible, which must have train.py's type."""
    argv = command["argv"]
    script, words = (argv[1], argv[2:]) if argv[0] == "python3" else torchrun(argv[1:])
    assert script == "train.py", script
    for word in words:
        key, value = word.split("=", 1)
        assert key.startswith("--") and key[2:] in NANOGPT, f"Unknown config key: {key}"
        try:
            attempt = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            attempt = value
        assert type(attempt) is type(NANOGPT[key[2:]]), f"{word} is of another type than {NANOGPT[key[2:]]}"


# The options that HfArgumentParser makes from run_clm.py's dataclasses and TrainingArguments. A `bool` takes one value or
# none.
HF = {
    str: "config_name tokenizer_name train_file dataset_name dataset_config_name output_dir",
    int: "block_size max_steps per_device_train_batch_size gradient_accumulation_steps seed",
    float: "learning_rate weight_decay adam_beta1 adam_beta2 adam_epsilon max_grad_norm logging_steps warmup_steps",
    bool: "do_train bf16 fp16 gradient_checkpointing use_cpu torch_compile disable_tqdm",
}


def hf_bool(text):
    if text.lower() in ("yes", "true", "t", "y", "1"):
        return True
    return False if text.lower() in ("no", "false", "f", "n", "0") else refuse(f"{text} is no truth value")


def hf_trainer(command):
    parser = Parser(allow_abbrev=False)
    for kind, names in HF.items():
        for name in names.split():
            if kind is bool:
                parser.add_argument("--" + name, type=hf_bool, nargs="?", const=True, default=False)
            else:
                parser.add_argument("--" + name, type=kind, required=name == "output_dir")
    for name, choices in tuning_parsers.CHOICES.items():
        parser.add_argument("--" + name, type=str, choices=choices.split())
    script, words = torchrun(command["argv"][1:])
    found = parser.parse_args(words)
    assert script.endswith("run_clm.py"), script
    assert (found.train_file is None) != (found.dataset_name is None), "one of them must be there"
    assert found.train_file is None or found.train_file.rsplit(".", 1)[-1] in ("csv", "json", "txt")
    assert not (found.bf16 and found.fp16)
    config = json.loads(command["files"]["<OUTPUT_DIR>/config.json"])
    assert config["model_type"] in ("llama", "gpt2")
    assert command["environment"]["TOKENIZERS_PARALLELISM"] == "false"


FOUNDRY_MUST = set(
    "model tokenizer optimizer scheduler train_loader max_duration eval_interval max_seq_len seed "
    "global_train_batch_size device_train_microbatch_size".split()
)
FOUNDRY_MAY = set(
    "precision fsdp_config progress_bar log_to_console console_log_interval callbacks algorithms run_name variables "
    "loggers save_folder compile_config eval_loader".split()
)


def llm_foundry(command):
    """Does what train.py does: an unknown key of the configuration is an error, and so is a number that is text."""
    config = yaml.safe_load(command["files"]["<OUTPUT_DIR>/train.yaml"])
    assert FOUNDRY_MUST <= config.keys(), FOUNDRY_MUST - config.keys()
    assert config.keys() <= FOUNDRY_MUST | FOUNDRY_MAY, f"Unused parameter {config.keys() - FOUNDRY_MUST - FOUNDRY_MAY}"
    assert config["variables"]["global_seed"] == config["seed"] == 1234
    assert type(config["optimizer"]["eps"]) is float and config["optimizer"]["eps"] == command["fields"]["epsilon"]
    assert type(config["optimizer"]["lr"]) is float
    assert all(type(beta) is float for beta in config["optimizer"]["betas"])


# The Config of src/nanotron/config. dacite reads it strictly, so an unknown key is an error.
NANOTRON = {
    "checkpoints": "checkpoints_path checkpoint_interval save_initial_state save_final_state resume_checkpoint_path "
    "load_lr_scheduler load_optimizer checkpoints_path_is_shared_file_system",
    "general": "project run seed step consumed_train_samples benchmark_csv_path ignore_sanity_checks",
    "logging": "log_level log_level_replica iteration_step_info_interval",
    "model": "model_config init_method dtype make_vocab_size_divisible_by ddp_bucket_cap_mb",
    "optimizer": "optimizer_factory zero_stage weight_decay clip_grad accumulate_grad_in_fp32 learning_rate_scheduler "
    "weight_decay_exclude_named_params",
    "parallelism": "dp pp tp pp_engine tp_mode tp_linear_async_communication recompute_layer tp_recompute_allgather "
    "expert_parallel_size context_parallel_size",
    "tokens": "sequence_length train_steps micro_batch_size batch_accumulation_per_replica val_check_interval "
    "limit_val_batches limit_test_batches",
    "model.model_config": "bos_token_id eos_token_id hidden_act hidden_size initializer_range intermediate_size "
    "is_llama_config max_position_embeddings num_attention_heads num_hidden_layers attention_bias num_key_value_heads "
    "pad_token_id pretraining_tp rms_norm_eps rope_scaling rope_theta rope_interleaved tie_word_embeddings use_cache "
    "vocab_size z_loss_enabled z_loss_coefficient",
    "optimizer.optimizer_factory": "name adam_eps adam_beta1 adam_beta2 torch_adam_is_fused",
    "optimizer.learning_rate_scheduler": "learning_rate lr_warmup_steps lr_warmup_style lr_decay_style lr_decay_steps "
    "lr_decay_starting_step min_decay_lr",
}


def nanotron(command):
    """Does what get_config_from_file does, and what the configuration's own checks require."""
    config = yaml.safe_load(command["files"]["<OUTPUT_DIR>/nanotron.yaml"])
    for where, keys in NANOTRON.items():
        section = config
        for name in where.split("."):
            section = section[name]
        assert section.keys() <= set(keys.split()), f"{where}: {section.keys() - set(keys.split())}"
    assert config.keys() <= {key for key in NANOTRON if "." not in key} | {"data_stages", "profiler", "lighteval"}
    model, ranks = config["model"]["model_config"], config["parallelism"]
    assert model["num_attention_heads"] % ranks["tp"] == 0 and model["num_key_value_heads"] >= ranks["tp"]
    assert ranks["dp"] * ranks["tp"] * ranks["pp"] == 8 and ranks["context_parallel_size"] == 1
    assert ranks["tp_mode"] in ("ALL_REDUCE", "REDUCE_SCATTER") and ranks["pp_engine"] in ("1f1b", "afab")
    schedule = config["optimizer"]["learning_rate_scheduler"]
    assert schedule["lr_decay_style"] in ("linear", "cosine", "1-sqrt")
    assert all(type(schedule[key]) is float for key in ("learning_rate", "min_decay_lr"))
    assert config["data_stages"][0]["data"]["dataset"] is None, "nanotron's checks refuse a data set of another format"
    assert config["checkpoints"]["save_final_state"] is False


def llm_c(command):
    """Does what main() of train_gpt2.cu does: reads pairs of a flag with one or two letters and its value. atoi reads other
    text as 0."""
    kinds = {str: "i j e o k", int: "lg n nk nm y b t d x u v m s g h a f w ge z r", float: "l q c sl sg"}
    types = {name: kind for kind, names in kinds.items() for name in names.split()}
    words = command["argv"][command["argv"].index("./train_gpt2cu") + 1 :]
    assert len(words) % 2 == 0 and all(word[0] == "-" and word[1:] in types for word in words[::2]), words
    found = {flag[1:]: types[flag[1:]](value) for flag, value in zip(words[::2], words[1::2])}
    assert found["t"] <= 1024 and found["e"] in ("d6", "d12", "d24", "d36", "d48")
    assert found["d"] == found["b"] * found["t"] * 8 * 2, "-d is not the tokens of all ranks and micro-steps"
    assert found["s"] == 0, "llm.c would generate samples after its last step"


# The options of Megatron-DeepSpeed's megatron/arguments.py, and those that deepspeed.add_config_arguments adds.
MEGATRON_DEEPSPEED = {
    int: "tensor-model-parallel-size pipeline-model-parallel-size ds-sequence-parallel-size num-layers hidden-size "
    "ffn-hidden-size num-attention-heads num-key-value-heads kv-channels rotary-position-embeddings-theta seq-length "
    "max-position-embeddings micro-batch-size global-batch-size train-iters lr-warmup-iters seed vocab-size "
    "make-vocab-size-divisible-by eval-iters log-interval",
    float: "zero-stage layernorm-epsilon lr min-lr weight-decay adam-beta1 adam-beta2 adam-eps clip-grad "
    "hidden-dropout attention-dropout",
    str: "deepspeed_config split",
    bool: "deepspeed no-pipeline-parallel sequence-parallel swiglu disable-bias-linear use-rotary-position-embeddings "
    "no-position-embedding untie-embeddings-and-output-weights no-query-key-layer-scaling bf16 fp16 "
    "checkpoint-activations deepspeed-activation-checkpointing use-flash-attn-v2",
}


def deepspeed(command):
    parser = Parser(allow_abbrev=False)
    for kind, names in MEGATRON_DEEPSPEED.items():
        for name in names.split():
            parser.add_argument("--" + name, **({"action": "store_true"} if kind is bool else {"type": kind}))
    parser.add_argument("--normalization", choices=["layernorm", "rmsnorm"])
    parser.add_argument("--lr-decay-style", choices=["constant", "linear", "cosine", "inverse-square-root"])
    parser.add_argument("--tokenizer-type", choices=["GPT2BPETokenizer", "HFTokenizer", "NullTokenizer"])
    parser.add_argument("--data-path", nargs="*")
    parser.add_argument("--data-impl", choices=["mmap", "infer"])
    script, words = torchrun(command["argv"][1:])
    found = parser.parse_args(words)
    assert script == "pretrain_gpt.py" and found.deepspeed, script
    split = (found.tensor_model_parallel_size, found.pipeline_model_parallel_size, found.ds_sequence_parallel_size or 1)
    config = json.loads(command["files"]["<OUTPUT_DIR>/deepspeed.json"])
    ranks = 16 // (split[0] * split[1] * split[2])
    assert config["train_batch_size"] == ranks * found.micro_batch_size * config["gradient_accumulation_steps"]
    assert config["zero_optimization"]["stage"] == found.zero_stage
    assert found.no_pipeline_parallel == (found.pipeline_model_parallel_size == 1)
    assert not (config["bf16"]["enabled"] and config["fp16"]["enabled"])
    assert command["environment"]["CUDA_DEVICE_MAX_CONNECTIONS"] == "1", "sequence parallelism asks for it"


# The options of Megatron-LM's megatron/training/arguments.py, and those that it makes from TransformerConfig.
MEGATRON_LM = {
    int: "num-layers hidden-size ffn-hidden-size num-attention-heads kv-channels num-query-groups rotary-base num-experts "
    "moe-router-topk moe-ffn-hidden-size seq-length max-position-embeddings micro-batch-size global-batch-size train-iters "
    "lr-warmup-iters fp8-amax-history-len recompute-num-layers tensor-model-parallel-size pipeline-model-parallel-size "
    "context-parallel-size expert-model-parallel-size num-virtual-stages-per-pipeline-rank seed vocab-size "
    "make-vocab-size-divisible-by log-interval eval-iters",
    float: "norm-epsilon lr min-lr weight-decay adam-beta1 adam-beta2 adam-eps clip-grad hidden-dropout attention-dropout",
    bool: "group-query-attention swiglu disable-bias-linear add-qkv-bias qk-layernorm untie-embeddings-and-output-weights "
    "bf16 fp16 use-distributed-optimizer overlap-grad-reduce overlap-param-gather cross-entropy-loss-fusion manual-gc "
    "sequence-parallel mock-data no-create-attention-mask-in-dataloader log-throughput moe-grouped-gemm",
}
MEGATRON_LM_CHOICES = {
    "normalization": "LayerNorm RMSNorm",
    "position-embedding-type": "learned_absolute rope yarn mrope relative none",
    "lr-decay-style": "constant linear cosine inverse-square-root WSD",
    "fp8-format": "e4m3 hybrid",
    "fp8-recipe": "tensorwise delayed mxfp8 blockwise custom",
    "fp8-amax-compute-algo": "most_recent max",
    "fp4-format": "e2m1",
    "moe-token-dispatcher-type": "allgather alltoall flex",
    "recompute-granularity": "full selective",
    "recompute-method": "uniform block",
    "tokenizer-type": "GPT2BPETokenizer HuggingFaceTokenizer TikTokenizer NullTokenizer",
}


def megatron_lm(command):
    """Does what Megatron-LM's parser does, and what its validate_args refuses."""
    parser = Parser(allow_abbrev=False)
    for kind, names in MEGATRON_LM.items():
        for name in names.split():
            parser.add_argument("--" + name, **({"action": "store_true"} if kind is bool else {"type": kind}))
    for name, choices in MEGATRON_LM_CHOICES.items():
        parser.add_argument("--" + name, choices=choices.split())
    script, words = torchrun(command["argv"][1:])
    found = parser.parse_args(words)
    assert script.endswith("pretrain_gpt.py"), script
    tensor, experts = found.tensor_model_parallel_size, found.num_experts or 0
    ranks = command["fields"]["ranks"] // (tensor * found.pipeline_model_parallel_size * found.context_parallel_size)
    assert found.global_batch_size % (found.micro_batch_size * ranks) == 0
    assert found.num_attention_heads % tensor == 0 and (found.num_query_groups or tensor) % tensor == 0
    assert not (found.sequence_parallel and tensor == 1) and found.lr >= found.min_lr
    assert not (found.bf16 and found.fp16) and not (found.fp8_format and found.fp4_format)
    assert (found.fp8_amax_compute_algo == "max") == (found.fp8_amax_history_len is not None)
    assert found.moe_grouped_gemm == (experts > 0) == (found.moe_token_dispatcher_type == "alltoall")
    assert found.overlap_grad_reduce and found.overlap_param_gather == found.use_distributed_optimizer
    assert found.recompute_granularity != "full" or (found.recompute_method and found.recompute_num_layers)
    assert found.expert_model_parallel_size == 1 or experts % found.expert_model_parallel_size == 0 < experts
    assert found.max_position_embeddings >= found.seq_length and found.lr_warmup_iters < found.train_iters
    asks = tensor > 1 or found.context_parallel_size > 1
    assert command["environment"].get("CUDA_DEVICE_MAX_CONNECTIONS") == ("1" if asks else None)


# The fields of ConfigContainer's dataclasses (training/config.py, models/gpt_provider.py) that the definition sets.
NEMO = {
    "model": "num_layers hidden_size ffn_hidden_size num_attention_heads num_query_groups kv_channels position_embedding_type "
    "rotary_base normalization layernorm_epsilon activation_func gated_linear_unit add_bias_linear hidden_dropout "
    "attention_dropout vocab_size make_vocab_size_divisible_by share_embeddings_and_output_weights add_qkv_bias qk_layernorm "
    "num_moe_experts moe_router_topk moe_ffn_hidden_size moe_grouped_gemm moe_token_dispatcher_type moe_permute_fusion "
    "bias_activation_fusion bias_dropout_fusion apply_rope_fusion persist_layer_norm cross_entropy_fusion_impl "
    "tensor_model_parallel_size pipeline_model_parallel_size virtual_pipeline_model_parallel_size overlap_p2p_comm "
    "batch_p2p_comm context_parallel_size expert_model_parallel_size sequence_parallel recompute_granularity "
    "recompute_method recompute_num_layers",
    "tokenizer": "tokenizer_type tokenizer_model vocab_size",
    "dataset": "seq_length random_seed",
    "train": "train_iters micro_batch_size global_batch_size manual_gc manual_gc_interval",
    "validation": "eval_iters",
    "optimizer": "lr min_lr weight_decay adam_beta1 adam_beta2 adam_eps clip_grad use_distributed_optimizer overlap_param_gather",
    "scheduler": "start_weight_decay end_weight_decay lr_decay_style lr_warmup_iters lr_decay_iters",
    "ddp": "use_distributed_optimizer overlap_param_gather overlap_grad_reduce average_in_collective",
    "rng": "seed",
    "checkpoint": "load save",
    "logger": "tensorboard_dir log_interval log_throughput",
}


def nemo(command):
    """Does what run_recipe.py does: reads its options, and overrides of existing fields."""
    parser = Parser(allow_abbrev=False)
    parser.add_argument("--recipe")
    parser.add_argument("--mode", choices=["pretrain", "sft", "lora", "dora"])
    parser.add_argument("--dataset", choices=["mock", "megatron-indexed", "squad"])
    script, words = torchrun(command["argv"][1:])
    found, overrides = parser.parse_known_args(words)
    assert script == "scripts/training/run_recipe.py" and found.dataset == "mock" and found.mode == "pretrain"
    values = dict(override.split("=", 1) for override in overrides)
    precision, fields = values.pop("mixed_precision"), command["fields"]
    for section, name in (key.split(".") for key in values):
        assert name in NEMO[section].split(), f"{section}.{name}"
    assert (precision == "bf16_mixed") == (fields["precision"] == "bf16") and precision.count("{") == precision.count("}")
    assert values["model.vocab_size"] == values["checkpoint.save"] == values["logger.tensorboard_dir"] == "null"
    tensor, gpu = int(values["model.tensor_model_parallel_size"]), fields["gpu"]
    assert (values["model.sequence_parallel"] == "true") == (tensor > 1)
    asks = tensor > 1 and not gpu.startswith("b")
    assert command["environment"].get("CUDA_DEVICE_MAX_CONNECTIONS") == ("1" if asks else None)


# The fields of MaxTextConfig in src/maxtext/configs/types.py.
MAXTEXT = {
    str: "run_name base_output_directory model_name",
    int: "steps base_num_decoder_layers base_emb_dim base_mlp_dim base_num_query_heads base_num_kv_heads head_dim "
    "vocab_size rope_max_timescale max_target_length gradient_accumulation_steps ici_data_parallelism "
    "ici_fsdp_parallelism ici_tensor_parallelism ici_tensor_sequence_parallelism ici_context_parallelism "
    "dcn_data_parallelism dcn_fsdp_parallelism init_weights_seed",
    float: "normalization_layer_epsilon per_device_batch_size learning_rate learning_rate_final_fraction "
    "warmup_steps_fraction wsd_decay_steps_fraction adam_b1 adam_b2 adam_eps adam_weight_decay "
    "gradient_clipping_threshold",
    bool: "enable_checkpointing enable_tensorboard logits_via_embedding normalize_embedding_logits attention_bias "
    "use_qk_norm enable_dropout",
}
MAXTEXT_CHOICES = {
    "hardware": "tpu gpu gpu_multiprocess cpu",
    "dataset_type": "synthetic hf grain tfds c4_mlperf",
    "decoder_block": "llama2 qwen2 qwen3",
    "dtype": "float32 bfloat16 float16",
    "weight_dtype": "float32 bfloat16 float16",
    "quantization": "int8 fp8 fp8_full te_fp8_delayedscaling te_fp8_currentscaling te_mxfp8 te_nvfp4",
    "matmul_precision": "default high highest",
    "remat_policy": "minimal minimal_with_context save_qkv_proj full",
    "attention": "autoselected dot_product flash cudnn_flash_te",
    "opt_type": "adamw adam_pax sgd muon",
    "lr_schedule_type": "cosine wsd",
}


def maxtext(command):
    """Does what pyconfig.py does: reads the file, then each key once, with a value that pydantic accepts for its type."""
    words = command["argv"][command["argv"].index("maxtext.trainers.pre_train.train") + 1 :]
    assert words[0].endswith(".yml"), words[0]
    found = dict(word.split("=", 1) for word in words[1:])
    assert len(found) == len(words) - 1, "a key appears twice"
    types = {name: kind for kind, names in MAXTEXT.items() for name in names.split()}
    for key, value in found.items():
        if key in MAXTEXT_CHOICES:
            assert value in MAXTEXT_CHOICES[key].split(), f"{key}={value}"
        elif types[key] is bool:
            assert value in ("true", "false"), f"{key}={value}"
        else:
            found[key] = types[key](value)
    assert not (found.get("quantization") == "fp8" and found["gradient_accumulation_steps"] > 1)
    shared = found["ici_tensor_parallelism"] * found["ici_tensor_sequence_parallelism"] * found["ici_context_parallelism"]
    assert found["per_device_batch_size"] * shared == command["fields"]["batch_size"]
    assert ("model_name" in found) != ("base_emb_dim" in found), "model_name and the sizes of a model exclude each other"


def nanochat(command):
    """Does what scripts/base_train.py does, with its assertions about the batch."""
    parser = Parser()
    for name in "depth max-seq-len num-iterations device-batch-size total-batch-size warmup-steps".split():
        parser.add_argument("--" + name, type=int)
    for name in "eval-every core-metric-every sample-every save-every".split():
        parser.add_argument("--" + name, type=int, default=250)
    parser.add_argument("--warmdown-ratio", type=float, default=0.65)
    parser.add_argument("--device-type", choices=["cuda", "cpu", "mps"])
    parser.add_argument("--fp8", action="store_true")
    parser.add_argument("--fp8-recipe", default="tensorwise", choices=["rowwise", "tensorwise"])
    parser.add_argument("--window-pattern", type=str, default="SSSL")
    parser.add_argument("--model-tag", type=str)
    argv = command["argv"]
    script, words = (argv[2], argv[3:]) if argv[0] == "python3" else torchrun(argv[1:])
    assert script == "scripts.base_train", script
    found, fields = parser.parse_args(words), command["fields"]
    micro_step = found.device_batch_size * found.max_seq_len * fields["ranks"]
    assert found.total_batch_size == micro_step * fields["grad_accumulation"]
    assert found.fp8 == (fields["precision"] == "fp8") and found.depth == fields["depth"]
    assert set(found.window_pattern) <= set("SL") and found.model_tag.startswith("<OUTPUT_DIR>/")
    assert max(found.eval_every, found.core_metric_every, found.sample_every, found.save_every) == -1
    assert command["environment"]["NANOCHAT_DTYPE"] in ("bfloat16", "float16", "float32")


AUTOMODEL = {
    "step_scheduler": "global_batch_size local_batch_size ckpt_every_steps save_checkpoint_every_epoch val_every_steps "
    "num_epochs max_steps log_remote_every_steps gc_every_steps",
    "dist_env": "backend timeout_minutes",
    "rng": "_target_ seed ranked",
    "model": "_target_ torch_dtype config",
    "checkpoint": "enabled checkpoint_dir model_save_format save_consolidated",
    "distributed": "strategy dp_size tp_size cp_size pp_size ep_size dp_replicate_size sequence_parallel "
    "activation_checkpointing mp_policy pipeline",
    "dataset": "_target_ vocab_size seq_len num_samples batch_size",
    "lr_scheduler": "lr_decay_style lr_warmup_steps lr_decay_steps min_lr",
    "clip_grad_norm": "max_norm",
}


def automodel(command):
    """Does what load_yaml_config and the sections' classes do: targets are from these packages only, and keys are their
    arguments."""
    script, words = torchrun([word for word in command["argv"][1:] if word != "--module"])
    assert script == "nemo_automodel.cli.app" and words == ["<OUTPUT_DIR>/automodel.yaml"], words
    config, fields = yaml.safe_load(command["files"][words[0]]), command["fields"]
    for name, keys in AUTOMODEL.items():
        assert config[name].keys() <= set(keys.split()), f"{name}: {config[name].keys() - set(keys.split())}"
    for section in (config["model"], config["model"]["config"], config["dataset"], config["optimizer"]):
        assert section["_target_"].split(".")[0] in ("nemo_automodel", "torch", "transformers"), section
    steps, ranks = config["step_scheduler"], config["distributed"]
    assert ranks["dp_size"] * ranks["tp_size"] * ranks["cp_size"] == 16
    micro_steps = fields["grad_accumulation"]
    assert steps["global_batch_size"] == steps["local_batch_size"] * ranks["dp_size"] * micro_steps
    assert ranks["activation_checkpointing"] in (True, False, "selective")
    assert config.get("fp8", {"enabled": False})["enabled"] == (fields["precision"] == "fp8")
    assert config.get("compile", {"enabled": False})["enabled"] == fields["compile"]
    assert type(config["clip_grad_norm"]["max_norm"]) is float and config["clip_grad_norm"]["max_norm"] > 0
    assert config["dataloader"]["batch_size"] is None and config["dataset"]["batch_size"] == steps["local_batch_size"]


def numbers_that_are_text(value, where=""):
    """Yields each place of a YAML file that has a number which its reader would take for text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers_that_are_text(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from numbers_that_are_text(inner, where)
    elif isinstance(value, str):
        try:
            float(value)
            yield f"{where}: {value!r}"
        except ValueError:
            pass


def commands(ridgeline, trainers, name, folder):
    sweep = pathlib.Path(folder, f"{name}-sweep.yaml")
    sweep.write_text(f"name: x\n{SWEEPS[name].replace('defaults: {', f'defaults: {{trainer: {name}, ')}")
    run = [ridgeline, "plan", sweep, "--trainers", trainers]
    said = subprocess.run([*run, "--commands", "-o", "json"], check=True, stdout=subprocess.PIPE, cwd=folder)
    specs = subprocess.run([*run, "--expand-only", "-o", "json"], check=True, stdout=subprocess.PIPE, cwd=folder)
    fields = {point["id"]: point["spec"] for point in json.loads(specs.stdout)}
    for command in json.loads(said.stdout):
        command["fields"] = fields[command["point"]]
        command["fields"].update(command["fields"].get("own", {}))
        yield command


def main():
    ridgeline, trainers = (str(pathlib.Path(given).resolve()) for given in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        for name in SWEEPS:
            count = 0
            for command in commands(ridgeline, trainers, name, folder):
                count += 1
                try:
                    titan = titan_parsers.PARSERS.get(name)
                    (titan or getattr(tuning_parsers, name, globals().get(name)))(command)
                    assert command["environment"]["PYTHONUNBUFFERED"] == "1"
                    for path, text in command["files"].items():
                        if path.endswith((".yaml", ".yml")):
                            assert not (odd := list(numbers_that_are_text(yaml.safe_load(text)))), odd
                except (AssertionError, ValueError) as wrong:
                    raise SystemExit(f"{name}: {wrong!r}\n{json.dumps(command, indent=1)}")
            print(f"{name}: {count} points")


main()
