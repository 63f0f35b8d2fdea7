"""Stand-ins for the parsers of programs that fine-tune with transformers. Their options come from the programs' sources."""

import json

import yaml

from parser_parts import refuse, torchrun

SWEEPS = {
    "trl_sft": """
defaults: {model: llama3-8b, weights: a/b, batch_size: 2, seq_length: 4096, grad_accumulation: 3}
matrix:
  checkpointing: [none, full]
  schedule: [constant, cosine]
zip:
  - device: [cpu, cuda, cuda, cuda, cuda, cuda]
    gpu: [none, h100, h100, h100, h100, h100]
    ranks: [2, 8, 8, 8, 8, 8]
    precision: [fp32, tf32, bf16, fp16, bf16, bf16]
    shard: [none, none, full, full, full, optimizer]
    sharder: [fsdp, fsdp, fsdp, fsdp, deepspeed, deepspeed]
""",
    "llama_factory": """
defaults: {batch_size: 2, seq_length: 4096, grad_accumulation: 3}
matrix:
  checkpointing: [none, full]
  model: [llama3-8b, qwen3-30b-a3b, Qwen/Qwen3-8B]
zip:
  - device: [cpu, cuda, cuda, cuda, cuda, cuda]
    gpu: [none, h100, h100, h100, h100, h100]
    ranks: [2, 8, 8, 8, 8, 8]
    precision: [fp32, tf32, bf16, fp16, fp8, bf16]
    state_precision: [fp32, fp32, bf16, fp32, fp32, fp32]
    shard: [none, none, full, full, full, optimizer]
    sharder: [fsdp, fsdp, fsdp, deepspeed, deepspeed, deepspeed]
""",
    "litgpt": """
defaults: {seq_length: 4096, batch_size: 2, grad_accumulation: 3}
matrix:
  model: [llama3-8b, qwen2.5-7b, qwen3-8b, Llama-3.2-1B]
  schedule: [constant, cosine]
zip:
  - device: [cpu, cuda, cuda, cuda]
    gpu: [none, h100, h100, h100]
    ranks: [1, 1, 8, 8]
    shard: [none, none, full, full]
    precision: [fp32, bf16, tf32, bf16]
    state_precision: [fp32, fp32, fp32, bf16]
    grad_clip: [0, 1, 1, 1]
""",
    "axolotl": """
defaults: {device: cuda, gpu: h100, ranks: 8, seq_length: 4096, batch_size: 2, grad_accumulation: 3}
matrix:
  model: [llama3-8b, qwen3-30b-a3b, Qwen/Qwen3-8B]
  checkpointing: [none, full]
zip:
  - precision: [fp32, tf32, bf16, bf16, fp8, bf16]
    state_precision: [fp32, fp32, bf16, fp32, fp32, fp32]
    shard: [none, full, none, full, full, optimizer]
    sharder: [fsdp, fsdp, fsdp, fsdp, deepspeed, deepspeed]
    context_parallel: [1, 2, 1, 4, 1, 1]
""",
}

CHOICES = {
    "lr_scheduler_type": "linear cosine cosine_with_restarts polynomial constant constant_with_warmup inverse_sqrt",
    "optim": "adamw_torch adamw_torch_fused adafactor sgd adagrad",
    "ddp_backend": "nccl gloo mpi ccl hccl cncl mccl",
    "log_level": "debug info warning error critical passive detail",
    "save_strategy": "no steps epoch best",
    "report_to": "none all tensorboard wandb",
}

# The fields of transformers' TrainingArguments that files of options set.
TRAINING = {
    str: "output_dir deepspeed lr_scheduler_type optim ddp_backend log_level save_strategy report_to",
    int: "max_steps per_device_train_batch_size gradient_accumulation_steps seed ddp_timeout warmup_steps logging_steps",
    float: "learning_rate weight_decay adam_beta1 adam_beta2 adam_epsilon max_grad_norm",
    bool: "bf16 fp16 tf32 gradient_checkpointing torch_compile use_cpu disable_tqdm",
    dict: "fsdp_config",
}
SFT = {
    str: "model_name_or_path dtype attn_implementation dataset_name",
    int: "max_length",
    bool: "packing fsdp",
    dict: "dataset_kwargs",
}
LLAMA_FACTORY = {
    str: "model_name_or_path flash_attn stage finetuning_type template dataset tokenized_path fsdp",
    int: "cutoff_len",
    bool: "train_from_scratch enable_liger_kernel disable_gradient_checkpointing do_train pure_bf16 fp8 plot_loss",
}


def training_file(command, name, *tables):
    """Checks a file of options: all are in the tables and have their type, and the rows make the point's tokens."""
    types = {key: kind for table in (TRAINING, *tables) for kind, keys in table.items() for key in keys.split()}
    values = yaml.safe_load(command["files"][f"<OUTPUT_DIR>/{name}"])
    for key, value in values.items():
        kind = types.get(key) or refuse(f"no option {key}")
        assert type(value) is kind or (kind is float and type(value) is int), f"{key} is no {kind.__name__}: {value}"
    for key, choices in CHOICES.items():
        assert values.get(key, choices.split()[0]) in choices.split(), f"{key}: {values[key]}"
    fields = command["fields"]
    assert values["bf16"] + values["fp16"] <= 1 and values["logging_steps"] == 1 and values["max_steps"] == 7
    assert values["per_device_train_batch_size"] == 2 and values["gradient_accumulation_steps"] == 3
    assert ("fsdp" in values) == ("fsdp_config" in values) == (fields["shard"] != "none" and fields["sharder"] == "fsdp")
    assert ("deepspeed" in values) == (fields["shard"] != "none" and fields["sharder"] == "deepspeed")
    zero = json.loads(command["files"]["<OUTPUT_DIR>/deepspeed.json"])["zero_optimization"]
    assert zero["stage"] == {"none": 0, "optimizer": 1, "full": 3}[fields["shard"]]
    return values


def made_data(command):
    """Returns the words after the program that makes the data. Checks that this program compiles."""
    python, flag, code, folder, node, vocab, length, step, steps, seed, *words = command["argv"]
    compile(code, "data", "exec")
    assert (python, flag, folder, node, seed) == ("python3", "-c", "<OUTPUT_DIR>", "0", "1234")
    ranks = command["fields"]["ranks"] // command["fields"].get("context_parallel", 1)
    assert (int(length), int(step), int(steps)) == (4096, 2 * 3 * ranks, 7) and int(vocab) >= 1000
    return words


def trl_sft(command):
    script, words = torchrun(made_data(command)[1:])
    assert (script, words) == ("-m", ["trl.scripts.sft", "--config", "<OUTPUT_DIR>/sft.yaml"]) or (
        script == "trl.scripts.sft" and words == ["--config", "<OUTPUT_DIR>/sft.yaml"]
    )
    values = training_file(command, "sft.yaml", SFT)
    assert values["model_name_or_path"] == "a/b" and values["max_length"] == 4096 and values["packing"] is False
    assert values["dataset_kwargs"] == {"skip_prepare_dataset": True}
    assert values["dataset_name"] == "<OUTPUT_DIR>/data"


def llama_factory(command):
    assert made_data(command) == ["llamafactory-cli", "train", "<OUTPUT_DIR>/train.yaml"]
    environment, fields = command["environment"], command["fields"]
    assert environment["FORCE_TORCHRUN"] == environment["NNODES"] == "1" and environment["NODE_RANK"] == "0"
    assert environment["NPROC_PER_NODE"] == str(fields["ranks"]) and "MASTER_PORT" in environment
    values = training_file(command, "train.yaml", LLAMA_FACTORY)
    assert values["stage"] == "pt" and values["finetuning_type"] == "full" and values["cutoff_len"] == 4096
    assert values["flash_attn"] in ("auto", "disabled", "sdpa", "fa2", "fa3")
    assert values["disable_gradient_checkpointing"] == (fields["checkpointing"] == "none")
    assert not (values["pure_bf16"] and "deepspeed" in values and fields["shard"] == "full")
    scratch = values["model_name_or_path"] == "<OUTPUT_DIR>"
    assert values["train_from_scratch"] == scratch == ("model_type" in json.loads(command["files"]["<OUTPUT_DIR>/config.json"]))
    assert json.loads(command["files"]["<OUTPUT_DIR>/tokenizer.json"])["model"]["vocab"]["</s>"] == 2


LITGPT = {
    str: "model_name model_config.name model_config.norm_class_name model_config.mlp_class_name out_dir precision "
    "data.class_path optimizer.class_path logger_name",
    int: "model_config.block_size model_config.n_layer model_config.n_embd model_config.n_head "
    "model_config.n_query_groups model_config.head_size model_config.vocab_size model_config.padded_vocab_size "
    "model_config.intermediate_size model_config.rope_base data.init_args.vocab train.log_interval "
    "train.global_batch_size train.micro_batch_size train.lr_warmup_steps train.max_seq_length eval.interval devices "
    "num_nodes seed",
    float: "model_config.norm_eps model_config.rotary_percentage train.max_norm train.min_lr optimizer.init_args.lr "
    "optimizer.init_args.eps optimizer.init_args.weight_decay",
    bool: "model_config.norm_qk model_config.parallel_residual model_config.bias model_config.attn_bias "
    "train.tie_embeddings eval.initial_validation eval.final_validation",
    list: "optimizer.init_args.betas",
    type(None): "train.save_interval",
}


def leaves(values, where=""):
    for key, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{where}{key}.")
        else:
            yield where + key, value


def litgpt(command):
    argv, fields = command["argv"], command["fields"]
    script, words = torchrun([word for word in argv[1:] if word != "--no_python"])
    assert "--no_python" in argv and script == "python3" and words[0] == "-c"
    compile(words[1], "rows", "exec")
    assert words[2:] == ["7", str(4096 * 2 * 3 * fields["ranks"]), "pretrain", "--config=<OUTPUT_DIR>/pretrain.yaml"]
    values = yaml.safe_load(command["files"]["<OUTPUT_DIR>/pretrain.yaml"])
    types = {key: kind for kind, keys in LITGPT.items() for key in keys.split()}
    for key, value in leaves(values):
        assert key in types, f"no option {key}"
        assert type(value) is types[key], f"{key} is no {types[key].__name__}: {value}"
    assert values["precision"] in ("bf16-true", "bf16-mixed", "32-true")
    assert values["logger_name"] in ("csv", "tensorboard", "wandb", "mlflow", "litlogger")
    assert values["train"]["max_norm"] > 0 and values["train"]["global_batch_size"] == 2 * 3 * fields["ranks"]
    assert values["devices"] * values["num_nodes"] == fields["ranks"]
    assert (values["model_name"] == "Llama-3.2-1B") != ("model_config" in values)


AXOLOTL = {
    str: "base_model dataset_prepared_path optimizer lr_scheduler attn_implementation deepspeed save_strategy output_dir",
    int: "tensor_parallel_size context_parallel_size sequence_len max_steps num_epochs micro_batch_size gradient_accumulation_steps warmup_steps fsdp_version seed "
    "logging_steps",
    float: "val_set_size learning_rate weight_decay adam_beta1 adam_beta2 adam_epsilon max_grad_norm",
    bool: "reinit_weights sample_packing pad_to_sequence_len bf16 fp8 tf32 gradient_checkpointing torch_compile "
    "include_tkps use_wandb",
    list: "datasets",
    dict: "fsdp_config",
}


def axolotl(command):
    words, fields = made_data(command), command["fields"]
    assert words[:6] == ["axolotl", "train", "<OUTPUT_DIR>/train.yaml", "--launcher", "torchrun", "--"]
    script, rest = torchrun([*words[6:], "-m", "axolotl.cli.train", "train.yaml"])
    assert script == "axolotl.cli.train" and rest == ["train.yaml"] and f"--nproc_per_node={fields['ranks']}" in words
    values = yaml.safe_load(command["files"]["<OUTPUT_DIR>/train.yaml"])
    types = {key: kind for kind, keys in AXOLOTL.items() for key in keys.split()}
    for key, value in values.items():
        assert type(value) is types.get(key, refuse), f"{key}: {value}"
    config = json.loads(command["files"]["<OUTPUT_DIR>/config.json"])
    assert values["reinit_weights"] == (values["base_model"] == ".") == ("model_type" in config)
    assert config.get("dtype", "float32") == {"fp32": "float32", "bf16": "bfloat16"}[fields["state_precision"]] or fields["family"] == "other"
    assert values["sequence_len"] % 64 == 0
    # A data set with these three columns is used as it is, so it needs no type. Every sequence is padded to the same length.
    assert values["datasets"][0]["path"] == "parquet" and values["datasets"][0]["type"] is None
    assert all(column in command["argv"][2] for column in ('"input_ids"', '"attention_mask"', '"labels"'))
    assert values["pad_to_sequence_len"] and not values["sample_packing"] and values["logging_steps"] == 1
    assert ("fsdp_version" in values) == (fields["shard"] == "full" and fields["sharder"] == "fsdp")
    assert ("deepspeed" in values) == (fields["shard"] != "none" and fields["sharder"] == "deepspeed")
