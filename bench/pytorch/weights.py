#!/usr/bin/env python3
"""Takes weights from ridgeline-train to Hugging Face transformers and back.

weights.sh starts it inside the folder that has PyTorch. The machine itself is /host there, and ridgeline's programs run
in it. It trains a few small models for some steps with checkpoint files. transformers loads each folder as it is
(AutoModelForCausalLM.from_pretrained) and computes a batch: its logits, loss, gradients and some steps of AdamW. These
become a reference case for `ridgeline-train --verify`. Then transformers saves the model that it loaded, in several
files, and ridgeline-train starts from that folder and from its own: the first losses must be the same.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import safetensors.torch
    import torch
    import transformers
except ImportError as missing:  # an earlier install.sh made the folder
    sys.exit(f"weights.py: {missing} in the folder that bench/pytorch/install.sh printed; remove the folder and run again")

HOST = pathlib.Path("/host")
SEQUENCES, TOKENS, STEPS = 3, 29, 3
# The epsilon is larger than the rounding error of gradients that should be 0, such as those of the keys' biases.
ADAMW = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-5, "weight_decay": 0.1}

LLAMA = {"family": "llama", "layers": 2, "hidden": 48, "heads": 4, "kv_heads": 2, "head_dim": 16, "ffn": 104,
         "vocab": 131, "rope_theta": 10000.0, "norm_eps": 1e-5}
GPT = {"family": "gpt", "layers": 2, "hidden": 40, "heads": 5, "ffn": 168, "vocab": 113, "positions": 64,
       "norm_eps": 1e-5}
MODELS = {"llama": LLAMA,
          "llama-tied": LLAMA | {"tied_head": "true", "kv_heads": 4, "head_dim": 12, "rope_theta": 500000.0},
          "llama-two-ranks": LLAMA | {"ranks": 2, "shard": "full"},
          "llama-bf16": LLAMA | {"precision": "bf16", "state_precision": "bf16"},
          "gpt": GPT,
          "gpt-untied": GPT | {"tied_head": "false"},
          "gpt-two-ranks": GPT | {"ranks": 2, "shard": "full"}}


def inside(path):
    """Returns where a path of the machine lies inside this folder."""
    return HOST / pathlib.Path(path).relative_to("/")


class Trainer:
    def __init__(self, build, work):
        self.program, self.work = pathlib.Path(build) / "bin/ridgeline-train", work
        if not inside(self.program).exists():
            sys.exit(f"weights.py: there is no {self.program}; build it: cmake --preset release && cmake --build build")

    def start(self, *arguments, rank=0, world=1):
        environment = os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world),
                                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29417"}
        return subprocess.Popen(["chroot", str(HOST), str(self.program), *map(str, arguments)], env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def train(self, fields, **more):
        """Returns the result of a run with these fields and flags, with as many processes as ranks."""
        result = self.work / "result.json"
        values = {"precision": "fp32", "batch_size": SEQUENCES, "seq_length": TOKENS, "warmup_steps": 0,
                  "steps": STEPS, "learning_rate": 1e-2} | fields | more | {"result": result}
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]
        world = fields.get("ranks", 1)
        ranks = [self.start(*flags, rank=rank, world=world) for rank in range(world)]
        said = [rank.communicate()[0] for rank in ranks]
        if any(rank.returncode != 0 for rank in ranks):
            sys.exit(f"weights.py: ridgeline-train failed: {said[0]}")
        return json.loads(inside(result).read_text(encoding="utf-8"))

    def verify(self, case):
        """Returns the lines that it prints, and whether all are within bounds."""
        run = self.start("--verify", case)
        return run.communicate()[0], run.returncode == 0


def stored(folder):
    """Returns the tensors of the folder's files, by name, in fp32."""
    tensors = {}
    for file in sorted(folder.glob("model*.safetensors")):
        tensors |= {name: tensor.float() for name, tensor in safetensors.torch.load_file(file).items()}
    return tensors


def loaded(folder):
    """Returns the folder's model. Ends the program if a tensor is missing or left over."""
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    amiss = {what: list(names) for what, names in info.items() if names}
    if amiss:
        sys.exit(f"weights.py: transformers did not load {folder} as it is: {amiss}")
    return model.eval()


def write_case(fields, model, weights, path):
    """Returns what transformers computes of one batch, in the form that engine/train/verify.h describes."""
    generator = torch.Generator().manual_seed(1)
    tokens, targets = torch.randint(fields["vocab"], (2, SEQUENCES, TOKENS), generator=generator)
    optimizer = torch.optim.AdamW(model.parameters(), lr=ADAMW["lr"], betas=(ADAMW["beta1"], ADAMW["beta2"]),
                                  eps=ADAMW["eps"], weight_decay=ADAMW["weight_decay"])
    tensors = {"tokens": tokens.int(), "targets": targets.int()}
    tensors |= {f"weight/{name}": tensor for name, tensor in weights.items()}
    # In our files, the names of a gpt with a tied head lack transformers' prefix.
    parameters = {name if name in weights else name.removeprefix("transformer."): each
                  for name, each in model.named_parameters()}
    losses = []
    for step in range(STEPS):
        logits = model(tokens).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            tensors["logits"] = logits.detach()
            tensors |= {f"grad/{name}": each.grad.clone() for name, each in parameters.items()}
        optimizer.step()
    tensors |= {f"weight_after/{name}": each.detach() for name, each in parameters.items()}
    shape = {name: fields[name] for name in ("family", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn",
                                             "vocab", "rope_theta", "norm_eps") if name in fields}
    shape |= {"batch": SEQUENCES, "seq": TOKENS, "max_seq": fields.get("positions", 0)}
    safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in tensors.items()},
                                path.with_suffix(".safetensors"))
    path.write_text(json.dumps({"name": path.stem, "model": shape, "optimizer": {"name": "adamw"} | ADAMW,
                                "loss": losses[0], "losses": losses}), encoding="utf-8")


def travel(name, fields, trainer):
    """Returns whether both computed the same, and prints their difference."""
    work = trainer.work / name
    trainer.train(fields, checkpoint_dir=work)
    folder = work / f"step-{STEPS:08}"
    model = loaded(inside(folder))
    model.save_pretrained(inside(work / "saved"), max_shard_size="20KB")
    write_case(fields, model, stored(inside(folder)), inside(work / "case.json"))
    said, verified = trainer.verify(work / "case.json")
    errors = {line[7:69].strip(): line.split("error")[1].split()[0] for line in said.splitlines() if "error" in line}
    gradients = max(float(error) for what, error in errors.items() if what.startswith("gradient"))
    ours, theirs = (trainer.train(fields, init_from=each)["loss"] for each in (folder, work / "saved"))
    print(f"{name:16} logits {errors.get('logits', '?')}  loss {errors.get('loss', '?')}  gradients {gradients:.2e}  "
          f"first loss from our folder {ours[0]:.9f}, from transformers' {theirs[0]:.9f}  "
          f"{'the same' if verified and ours == theirs else 'NOT the same'}", flush=True)
    if not verified:
        print(said)
    return verified and ours == theirs


def main():
    parser = argparse.ArgumentParser(prog="weights.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--model", default=",".join(MODELS), help="the models to try (%(default)s)")
    args = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    print(f"transformers {transformers.__version__}, PyTorch {torch.__version__}; errors are relative; the limit is 1e-5 "
          f"for logits and loss, and 1e-4 for gradients", flush=True)
    with tempfile.TemporaryDirectory(dir=HOST / "tmp") as work:
        trainer = Trainer(pathlib.Path(args.build).resolve(), pathlib.Path("/") / pathlib.Path(work).relative_to(HOST))
        same = [travel(name, MODELS[name], trainer) for name in args.model.split(",")]
    sys.exit(0 if all(same) else 1)


if __name__ == "__main__":
    main()
