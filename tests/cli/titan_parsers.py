"""Stand-ins for the configuration loaders of torchtitan's releases. Their fields come from torchtitan's sources."""

import ast
import tomllib

from parser_parts import torchrun

SWEEPS = {
    "torchtitan@0.1.0": """
defaults: {device: cuda, gpu: b200, ranks: 64, shard: full, seq_length: 8192, grad_clip: 1}
matrix:
  model: [llama3-8b, llama3-405b]
  precision: [fp32, bf16, fp8, mxfp8]
  checkpointing: [none, selective, full]
  compile: [false, true]
zip:
  - {tensor_parallel: [1, 2], pipeline_parallel: [1, 2], grad_accumulation: [1, 4]}
""",
    "torchtitan@0.2.0": """
defaults: {device: cuda, gpu: h100, ranks: 64, shard: full, seq_length: 8192}
matrix:
  model: [llama3-70b, qwen3-8b, qwen3-30b-a3b]
  precision: [bf16, fp8]
  float8_recipe: [tensorwise, rowwise]
  compile: [false, true]
  tensor_parallel: [1, 2]
""",
    "torchtitan@0.2.2": """
defaults: {device: cuda, gpu: b200, ranks: 64, seq_length: 8192, grad_clip: 1}
matrix:
  model: [llama3-8b, qwen3-235b-a22b]
  precision: [bf16, mxfp8]
  checkpointing: [none, full]
  compile: [false, true]
  shard: [none, full]
""",
    "torchtitan@main": """
defaults: {device: cuda, gpu: b200, ranks: 64, shard: full, seq_length: 8192, assets: 'a"); b('}
matrix:
  model: [llama3-8b, qwen3-30b-a3b]
  precision: [bf16, fp8, mxfp8, nvfp4]
  checkpointing: [none, selective, full]
  compile: [false, true]
""",
}

# JobConfig of torchtitan/config_manager.py at f7084fc78, and the differences of torchtitan/config/job_config.py at 29624e37f
# and at 73a0e6979. An unknown key is a ValueError. tyro refuses a value of another type.
TITAN = {
    "job": {"dump_folder": str},
    "model": {"name": {"llama3"}, "flavor": {"8B", "70B", "405B"}, "tokenizer_path": str, "converters": list},
    "optimizer": dict.fromkeys(("lr", "beta1", "beta2", "eps", "weight_decay"), float) | {"name": {"Adam", "AdamW"}},
    "lr_scheduler": {"warmup_steps": int, "lr_min": float, "decay_ratio": float, "decay_type": {"linear", "sqrt", "cosine"}},
    "training": {
        "dataset": str,
        "local_batch_size": int,
        "global_batch_size": int,
        "seq_len": int,
        "max_norm": float,
        "steps": int,
        "mixed_precision_param": {"bfloat16", "float32"},
        "compile": bool,
        "seed": int,
    },
    "parallelism": dict.fromkeys(
        (
            "data_parallel_replicate_degree",
            "data_parallel_shard_degree",
            "tensor_parallel_degree",
            "context_parallel_degree",
            "pipeline_parallel_degree",
            "pipeline_parallel_microbatch_size",
        ),
        int,
    )
    | {
        "pipeline_parallel_schedule": {"1F1B", "Interleaved1F1B"},
        "fsdp_reshard_after_forward": {"default", "always", "never"},
    },
    "activation_checkpoint": {"mode": {"selective", "full", "none"}, "selective_ac_option": str},
    "float8": {
        "enable_fsdp_float8_all_gather": bool,
        "precompute_float8_dynamic_scale_for_fsdp": bool,
        "recipe_name": {"tensorwise", "rowwise", "rowwise_with_gw_hp"},
        "filter_fqns": list,
    },
    "mx": {"recipe_name": {"mxfp8"}, "filter_fqns": list},
    "metrics": {"log_freq": int, "disable_color_printing": bool},
}
QWEN = {"0.6B", "1.7B", "4B", "8B", "14B", "32B", "30B-A3B", "235B-A22B"}


def titan_section(section, known, at):
    for key, value in section.items():
        assert key in known, f"Invalid field names in [{at}]: {key}"
        is_of = known[key]
        if isinstance(is_of, dict):
            titan_section(value, is_of, f"{at}.{key}")
        elif isinstance(is_of, set):
            assert value in is_of, f"{at}.{key}: {value}"
        else:
            assert type(value) is is_of, f"{at}.{key}: {value!r}"


def torchtitan(command, seed="training", older=False):
    script, words = torchrun(command["argv"][1:])
    assert (script, words) == ("torchtitan.train", ["--job.config_file", "<OUTPUT_DIR>/torchtitan.toml"])
    known = {section: dict(keys) for section, keys in TITAN.items()}
    converters = {"float8", "mx"}
    if not older:
        converters = {"quantize.linear.float8", "quantize.linear.mx"}
        known["model"] |= {"name": {"llama3", "qwen3"}, "hf_assets_path": str, "flavor": {"8B", "70B", "405B"} | QWEN}
        known["parallelism"]["expert_parallel_degree"] = int
        known["compile"] = {"enable": bool, "components": list, "backend": str}
        known["quantize"] = {"linear": {"float8": known.pop("float8"), "mx": known.pop("mx") | {"recipe_name": str}}}
        for section, key in (("training", "compile"), ("model", "tokenizer_path"), ("lr_scheduler", "lr_min")):
            del known[section][key]
    if seed != "training":
        del known["training"]["seed"]
        known[seed] = {"seed": int}
    config = tomllib.loads(command["files"]["<OUTPUT_DIR>/torchtitan.toml"])
    for name, section in config.items():
        assert name in known, f"Invalid field names: {name}"
        titan_section(section, known[name], name)
    fields = command["fields"]
    assert set(config["model"]["converters"]) <= converters
    assert bool(config["model"]["converters"]) == (fields["precision"] in ("fp8", "mxfp8"))
    compiles = config["training"] if older else config["compile"]
    assert compiles["compile" if older else "enable"] == fields["compile"]
    assert older or "model" in compiles["components"]
    assert config["activation_checkpoint"]["mode"] == fields["checkpointing"]
    linear = config if older else config.get("quantize", {}).get("linear", {})
    float8 = linear.get("float8", {})
    assert not ("recipe_name" in float8 and float8["enable_fsdp_float8_all_gather"]), "not supported with recipe_name"


# The fields of Trainer.Config (torchtitan/trainer.py) and of its members, at b5bcd76c6. They are dataclasses, so an unknown
# keyword is a TypeError.
TITAN_MAIN = {
    "Trainer.Config": "model_spec hf_assets_path dump_folder loss metrics optimizer lr_scheduler training dataloader parallelism "
    "activation_checkpoint compile debug",
    "ChunkedLossWrapper.Config": "loss_fn",
    "CrossEntropyLoss.Config": "global_vocab_size",
    "MetricsProcessor.Config": "log_freq enable_tensorboard disable_color_printing",
    "default_adamw": "lr betas eps weight_decay",
    "LRSchedulersContainer.Config": "warmup_steps total_steps decay_ratio decay_type min_lr_factor",
    "TrainingConfig": "num_tokens_per_microbatch_per_dp_rank num_tokens_per_train_step max_context_length max_norm steps "
    "disable_cuda_graphs mixed_precision_param",
    "GrainDataLoader.Config": "dataset seed",
    "ConcatThenSplitPackingConfig": "dataset",
    "ParallelismConfig": "data_parallel_replicate_degree data_parallel_shard_degree tensor_parallel_degree enable_sequence_parallel "
    "pipeline_parallel_degree pipeline_parallel_schedule num_pp_microbatches context_parallel_degree expert_parallel_degree "
    "fsdp_reshard_after_forward",
    "CompileConfig": "enable components backend",
    "DebugConfig": "seed deterministic",
    "SelectiveAC.Config": "",
    "FullAC.Config": "",
    "Float8LinearConverter.Config": "recipe_name filter_fqns emulate model_compile_enabled",
    "MXFP8LinearConverter.Config": "fqns model_compile_enabled",
    "NVFP4LinearConverter.Config": "fqns model_compile_enabled",
    "model_registry": "flavor attn_backend converters",
    "decoder_vocab_size": "",
}


def torchtitan_main(command):
    words = ["--module", "ridgeline_config", "--config", "train_config"]
    assert torchrun(command["argv"][1:]) == ("torchtitan.train", words)
    assert command["environment"]["PYTHONPATH"] == "<OUTPUT_DIR>"
    module = ast.parse(command["files"]["<OUTPUT_DIR>/ridgeline_config.py"])
    calls = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name in TITAN_MAIN, f"{name} is not called here"
            for given in node.keywords:
                assert given.arg in TITAN_MAIN[name].split(), f"{name}() got an unexpected keyword argument {given.arg}"
            calls[name] = {given.arg: given.value for given in node.keywords}
    fields = command["fields"]
    assert ast.literal_eval(calls["Trainer.Config"]["hf_assets_path"]) == fields["assets"]
    compiles = next(node.value for node in ast.walk(module) if isinstance(node, ast.Assign) and node.targets[0].id == "compiles")
    assert ast.literal_eval(compiles) == fields["compile"]
    assert [name for name in calls if "LinearConverter" in name] == {
        "bf16": [],
        "fp8": ["Float8LinearConverter.Config"],
        "mxfp8": ["MXFP8LinearConverter.Config"],
        "nvfp4": ["NVFP4LinearConverter.Config"],
    }[fields["precision"]]


PARSERS = {
    "torchtitan@main": torchtitan_main,
    "torchtitan@0.1.0": lambda command: torchtitan(command, older=True),
    "torchtitan@0.2.0": torchtitan,
    "torchtitan@0.2.2": lambda command: torchtitan(command, seed="debug"),
}
