#!/usr/bin/python3
"""Runs the programs of docs/store.md that put an export into MLflow, Weights & Biases and TensorBoard. Stand-ins for the
tools, with the signatures from their documentation, record the calls.

  other_tools.py BIN DOCS

BIN: the folder with ridgeline and ridgeline-train. DOCS: the folder with store.md.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

SWEEP = """
name: tools
defaults: {model: llama-5m, seq_length: 16}
measure: {warmup_steps: 0, steps: 2}
"""

CALLS = """
import json, numbers, re, sys

def put(*call):
    with open("calls.jsonl", "a") as file:
        file.write(json.dumps(call) + "\\n")

def number(value):
    assert isinstance(value, numbers.Real) and not isinstance(value, bool), value
    return value
"""

MLFLOW = """
from calls import *
from contextlib import contextmanager

def metric(name, value):
    assert re.fullmatch(r"[\\w\\-. /]{1,250}", name), name
    put("metric", name, number(value))

def set_experiment(experiment_name=None, experiment_id=None):
    put("experiment", experiment_name)

@contextmanager
def start_run(run_id=None, experiment_id=None, run_name=None, nested=False, parent_run_id=None, tags=None,
              description=None, log_system_metrics=None):
    put("run", run_name)
    yield

def log_params(params, synchronous=None, run_id=None):
    for name, value in params.items():
        assert len(str(value)) <= 6000
        put("param", name, value)

def log_metrics(metrics, step=None, synchronous=None, run_id=None, timestamp=None):
    for name, value in metrics.items():
        metric(name, value)

def log_metric(key, value, step=None, synchronous=None, timestamp=None, run_id=None):
    assert isinstance(step, int)
    metric(key, value)
"""

WANDB = """
from calls import *

def sortable(name):
    assert re.fullmatch(r"[_a-zA-Z][_a-zA-Z0-9]*", name), name
    return name

class Summary:
    def update(self, d):
        for name, value in d.items():
            put("metric", sortable(name), number(value))

class Run:
    def __init__(self):
        self.summary = Summary()
        self.last = -1
    def __enter__(self):
        return self
    def __exit__(self, *of):
        return False
    def log(self, data, step=None, commit=None):
        assert step > self.last, "steps only grow"
        self.last = step
        for name, value in data.items():
            put("metric", sortable(name), number(value))

def init(entity=None, project=None, dir=None, id=None, name=None, notes=None, tags=None, config=None):
    put("run", name)
    for key, value in config.items():
        put("param", key, value)
    return Run()
"""

TENSORBOARD = """
from calls import *

class SummaryWriter:
    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        put("run", log_dir)
    def __enter__(self):
        return self
    def __exit__(self, *of):
        return None
    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        for name, value in hparam_dict.items():
            assert isinstance(value, (int, float, str, bool)), (name, value)
            put("param", name, value)
        for name, value in metric_dict.items():
            put("metric", name, number(value))
    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        put("metric", tag, number(scalar_value))
"""


def check(condition, words):
    if not condition:
        sys.exit(f"other_tools.py: {words}")


def main():
    binary, docs = (pathlib.Path(path).resolve() for path in sys.argv[1:])
    page = (docs / "store.md").read_text()
    section = page.split("\n## Other tools\n")[1].split("\n## ")[0]
    programs = {re.search(r"\w+\.py", block)[0] if "to_" in block else "export.py": block
                for block in re.findall(r"```python\n(.*?)```", section, re.S)}
    check(set(programs) == {"export.py", "to_mlflow.py", "to_wandb.py", "to_tensorboard.py"},
          f"the page has other programs: {list(programs)}")
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        (here / "torch/utils").mkdir(parents=True)
        for name, text in {"sweep.yaml": SWEEP, "calls.py": CALLS, "mlflow.py": MLFLOW, "wandb.py": WANDB,
                           "torch/__init__.py": "", "torch/utils/__init__.py": "",
                           "torch/utils/tensorboard.py": TENSORBOARD, **programs}.items():
            (here / name).write_text(text)
        subprocess.run([binary / "ridgeline", "run", "sweep.yaml"], cwd=here, check=True, stdout=subprocess.DEVNULL)
        lines = subprocess.run([binary / "ridgeline", "db", "export", "-o", "jsonl"], cwd=here, check=True,
                               stdout=subprocess.PIPE).stdout
        run = json.loads(lines)
        for name in sorted(set(programs) - {"export.py"}):
            (here / "calls.jsonl").unlink(missing_ok=True)
            subprocess.run([sys.executable, name], input=lines, cwd=here, check=True)
            calls = [json.loads(line) for line in (here / "calls.jsonl").read_text().splitlines()]
            check([call[0] for call in calls].count("run") == 1, f"{name} does not start exactly one run: {calls}")
            check(["param", "model", "llama-5m"] in calls, f"{name} logs no model")
            check(["metric", "steady_tokens_per_s", run["steady_tokens_per_s"]] in calls, f"{name} logs no throughput")
            check([call[2] for call in calls if call[1] == "loss"] == run["loss"], f"{name} does not log every loss")


main()
