#!/usr/bin/env python3
"""Trains the same configurations with ridgeline-train and with PyTorch, in turns, and prints both side by side.

compare.sh starts it inside the folder that has PyTorch. The machine itself is /host there, and ridgeline's programs run
in it. For every model and precision PyTorch first tries its ways (attention, loss in chunks, torch.compile, how it
keeps its numbers), one change at a time, on the first configuration with that model and precision. Every round compares
ridgeline-train with the fastest way. Each run is a process of its own.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HOST = pathlib.Path("/host")
HERE = pathlib.Path(__file__).resolve().parent
# The options that PyTorch tries, each from its first value on. train.py explains them.
ATTENTION = {"attention": ["plain", "sdpa"]}
REST = {"chunk": ["0", "512"], "compile": [False, True], "waiting": ["asleep", "awake"]}
WAYS = {"fp32": ATTENTION | REST | {"numbers": ["fp32"]},
        "bf16": ATTENTION | REST | {"numbers": ["pure", "autocast"]}}
# Whether PyTorch's threads sleep while they wait for each other, or spin for a while first.
WAITING = {"asleep": {"OMP_WAIT_POLICY": "passive"}, "awake": {"GOMP_SPINCOUNT": "10000"}}
TORCH_ENVIRONMENT = {"LD_PRELOAD": "libjemalloc.so.2",  # as PyTorch's tuning guide recommends
                     "MALLOC_CONF": "oversize_threshold:1,background_thread:true,metadata_thp:auto,"
                                    "dirty_decay_ms:-1,muzzy_decay_ms:-1"}


class Failed(Exception):
    pass


def run(argv, **environment):
    """Returns the standard output. Raises Failed with the command's last line if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False,
                          env=os.environ | environment)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["nothing"]
        raise Failed(f"{pathlib.Path(argv[0]).name} ended with {done.returncode} and said: {said[-1]}")
    return done.stdout


class Ridgeline:
    def __init__(self, build, work):
        self.build, self.work = pathlib.Path(build), work

    def _program(self, path, *arguments):
        program = self.build / path
        if not (HOST / program.relative_to("/")).exists():
            sys.exit(f"compare.py: there is no {program}; build it: "
                     f"cmake --preset release -DRIDGELINE_BENCH=ON && cmake --build build")
        return run(["chroot", str(HOST), str(program), *map(str, arguments)])

    def specs(self, args):
        """Returns the canonical RunSpecs of the configurations, as ridgeline writes them."""
        lists = {"model": args.model, "precision": args.precision, "seq_length": args.seq, "batch_size": args.batch}
        sweep = HOST / self.work.relative_to("/") / "sweep.yaml"
        matrix = "".join(f"  {field}: [{', '.join(values.split(','))}]\n" for field, values in lists.items())
        sweep.write_text(f"name: side by side\nmatrix:\n{matrix}"
                         f"measure: {{warmup_steps: {args.warmup}, steps: {args.steps}}}\n", encoding="utf-8")
        lines = self._program("bin/ridgeline", "plan", self.work / "sweep.yaml", "--expand-only", "-o", "jsonl")
        return [json.loads(line)["spec"] for line in lines.splitlines()]

    def train(self, spec_file):
        result = self.work / "result.json"
        self._program("bin/ridgeline-train", "--spec", spec_file, "--result", result)
        return json.loads((HOST / result.relative_to("/")).read_text(encoding="utf-8"))

    def gemm_gflops(self, precisions):
        """Returns the rate of the fastest square product of each precision, in GFLOP/s."""
        best = {}
        for precision in precisions:
            dtype = {"fp32": 0, "bf16": 1}[precision]
            report = json.loads(self._program("bench/bench_ops", f"--benchmark_filter=^BM_Gemm/dtype:{dtype}/form:0/",
                                              "--benchmark_format=json"))
            best[precision] = max(entry["GFLOP/s"] for entry in report["benchmarks"])
        return best


def computable(precisions):
    """Returns the precisions that this processor has. Without bf16 instructions, PyTorch takes minutes for one product."""
    flags = set(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    if "bf16" in precisions and not flags & {"avx512_bf16", "amx_bf16", "bf16"}:
        print("bf16 is left out: this processor has no instructions for it (avx512_bf16, amx_bf16)", flush=True)
        return [precision for precision in precisions if precision != "bf16"]
    return precisions


def torch_train(spec_file, way, cache):
    flags = [f"--{name}={value}" for name, value in way.items() if not isinstance(value, bool) and name != "waiting"]
    flags += [f"--{name}" for name, value in way.items() if value is True]
    return json.loads(run([sys.executable, str(HERE / "train.py"), f"--spec={HOST / spec_file.relative_to('/')}",
                           *flags], TORCHINDUCTOR_CACHE_DIR=str(cache), **TORCH_ENVIRONMENT, **WAITING[way["waiting"]]))


def torch_gemm_gflops(precisions):
    return json.loads(run([sys.executable, str(HERE / "gemm.py"), *precisions], **TORCH_ENVIRONMENT, **WAITING["asleep"]))


def choose_blas_core():
    """Sets OpenBLAS's kind of processor if that makes it faster. OpenBLAS takes processors newer than itself for old ones."""
    detected = torch_gemm_gflops(["fp32"])["fp32"]
    TORCH_ENVIRONMENT["OPENBLAS_CORETYPE"] = "SkylakeX"
    try:
        told = torch_gemm_gflops(["fp32"])["fp32"]
    except Failed:  # without AVX-512
        told = 0.0
    if told < 1.1 * detected:
        del TORCH_ENVIRONMENT["OPENBLAS_CORETYPE"]
        return
    print(f"OpenBLAS uses the kernels for SkylakeX: {told:.0f} GFLOP/s in fp32 instead of {detected:.0f}", flush=True)


def words(way):
    """Describes a way, such as: pure, plain attention, whole loss, eager, threads asleep."""
    return ", ".join([way["numbers"], f"{way['attention']} attention",
                      f"loss by {way['chunk']}" if way["chunk"] != "0" else "whole loss",
                      "compiled" if way["compile"] else "eager", f"threads {way['waiting']}"])


class Way:
    """The figures of one run of PyTorch, in one of its ways."""

    def __init__(self, spec, way, taken):
        measured = taken["step_ns"][spec["warmup_steps"]:]
        self.way = way
        self.tokens_per_s = tokens(spec) / (statistics.median(measured) * 1e-9)
        self.fastest_step_ns = min(measured)  # chooses between ways, as other programs disturb it least
        self.rss_bytes = taken["rss_peak_bytes"]
        self.parameters = taken["parameters"]
        self.loss = taken["loss"]


def fastest(ways):
    return min(ways, key=lambda way: way.fastest_step_ns)


def tokens(spec):
    return spec["batch_size"] * spec["seq_length"]


def search(spec, spec_file, cache):
    """Returns the ways tried and those that failed. Starts from each first value; keeps a change if it is faster."""
    options = WAYS[spec["precision"]]
    best = {name: values[0] for name, values in options.items()}
    tried, failed = [], []

    def attempt(way):
        try:
            if way["compile"]:
                torch_train(spec_file, way, cache)  # compiles; the run that counts finds it compiled
            tried.append(Way(spec, way, torch_train(spec_file, way, cache)))
            say(f"  PyTorch {words(way)}: {tried[-1].tokens_per_s:.1f} tokens/s, {gib(tried[-1].rss_bytes)}")
        except Failed as failure:
            failed.append(f"{words(way)}: {failure}")
            say(f"  PyTorch {failed[-1]}")

    attempt(dict(best))
    for name, values in options.items():
        for value in values[1:]:
            attempt(best | {name: value})
            if tried:
                best = dict(fastest(tried).way)
    return tried, failed


def say(line):
    print(line, file=sys.stderr, flush=True)


def gib(count):
    return f"{count / 1e9:.2f} GB"


def compare(spec, ridgeline, work, rounds, searches):
    """Returns the figures of both for one configuration. searches: search()'s results by model and precision."""
    name = f"{spec['model']} {spec['precision']} {spec['batch_size']} x {spec['seq_length']}"
    say(name)
    spec_file = work / "spec.json"
    (HOST / spec_file.relative_to("/")).write_text(json.dumps(spec), encoding="utf-8")
    cache = HOST / work.relative_to("/") / "inductor"
    same = (spec["model"], spec["precision"])
    searched_here = same not in searches
    if searched_here:
        searches[same] = search(spec, spec_file, cache)
    tried, failed = searches[same]
    if not tried:
        return {"name": name, "failed": failed}
    chosen = fastest(tried).way
    if not searched_here:
        tried = []  # these were tried with other sizes
        if chosen["compile"]:
            torch_train(spec_file, chosen, cache)
    ours, theirs = [], []
    for number in range(rounds):
        ours.append(ridgeline.train(spec_file))
        theirs.append(Way(spec, chosen, torch_train(spec_file, chosen, cache)))
        say(f"  round {number + 1}: ridgeline {ours[-1]['throughput']['steady_tokens_per_s']:.1f} tokens/s, "
            f"PyTorch {theirs[-1].tokens_per_s:.1f}")
    check_same(spec, ours[0], theirs[0])
    # Memory is compared with equal state on both sides: pure bf16 has no fp32 state.
    same_state = ours
    if chosen["numbers"] == "pure":
        (HOST / spec_file.relative_to("/")).write_text(json.dumps(spec | {"state_precision": "bf16"}), encoding="utf-8")
        same_state = [ridgeline.train(spec_file)]
    mine = [result["throughput"]["steady_tokens_per_s"] for result in ours]
    flops = ours[0]["flops"]["model_causal"] / tokens(spec)
    return {
        "name": name, "precision": spec["precision"], "failed": failed, "environment": ours[0]["environment"],
        "ridgeline_tokens_per_s": statistics.median(mine),
        "torch_tokens_per_s": statistics.median(way.tokens_per_s for way in theirs),
        "speed_ratio": statistics.median(a / b.tokens_per_s for a, b in zip(mine, theirs)),
        "speed_ratios": [a / b.tokens_per_s for a, b in zip(mine, theirs)],
        "ridgeline_rss_bytes": max(result["memory"]["rss_peak_bytes"] for result in ours),
        "ridgeline_same_state_tokens_per_s": statistics.median(
            result["throughput"]["steady_tokens_per_s"] for result in same_state),
        "ridgeline_same_state_rss_bytes": max(result["memory"]["rss_peak_bytes"] for result in same_state),
        "torch_rss_bytes": max(way.rss_bytes for way in theirs),
        "model_flops_per_token": flops, "torch_way": words(chosen),
        "torch_ways": [{"way": words(way.way), "tokens_per_s": way.tokens_per_s, "rss_bytes": way.rss_bytes}
                       for way in tried],
    }


def check_same(spec, ours, theirs):
    """Ends the program unless both trained the same model: equal parameters, and a close first loss."""
    if ours["parameters"] != theirs.parameters:
        sys.exit(f"compare.py: {spec['model']} has {ours['parameters']} parameters here and {theirs.parameters} in "
                 f"train.py: these are two models")
    if abs(ours["loss"][0] - theirs.loss[0]) > 0.02 * ours["loss"][0]:
        sys.exit(f"compare.py: the first loss is {ours['loss'][0]} here and {theirs.loss[0]} in train.py")


def print_tables(results, peak):
    print("\n| configuration | ridgeline tokens/s | PyTorch tokens/s | speed | ridgeline GFLOP/s | PyTorch GFLOP/s "
          "| ridgeline RSS | with PyTorch's state | PyTorch RSS | memory |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for r in results:
        if "speed_ratio" not in r:
            print(f"| {r['name']} | | failed | | | | | | | |")
            continue

        def rate(tokens_per_s, r=r):
            value = tokens_per_s * r["model_flops_per_token"] / 1e9
            return f"{value:.0f} ({100 * value / peak[r['precision']]:.0f} %)"

        print(f"| {r['name']} | {r['ridgeline_tokens_per_s']:.1f} | {r['torch_tokens_per_s']:.1f} "
              f"| {r['speed_ratio']:.2f} | {rate(r['ridgeline_tokens_per_s'])} | {rate(r['torch_tokens_per_s'])} "
              f"| {gib(r['ridgeline_rss_bytes'])} | {gib(r['ridgeline_same_state_rss_bytes'])} "
              f"| {gib(r['torch_rss_bytes'])} | {r['ridgeline_same_state_rss_bytes'] / r['torch_rss_bytes']:.2f} |")
    print("\nspeed: ridgeline / PyTorch, the median of the rounds' ratios. memory: the resident peaks' ratio, both with the "
          "state PyTorch's way keeps (pure bf16: no fp32 master weights and moments). GFLOP/s: the model's FLOPs (causal); "
          "in brackets, the share of the machine's fastest square product "
          f"({', '.join(f'{name} {value:.0f} GFLOP/s' for name, value in sorted(peak.items()))}).\n")
    for r in results:
        print(f"{r['name']}, PyTorch's ways:")
        if "torch_way" in r and not r["torch_ways"]:
            print(f"  {r['torch_way']}, the fastest with the first sizes")
        for way in r.get("torch_ways", []):
            chosen = " <- compared with ridgeline" if way["way"] == r["torch_way"] else ""
            print(f"  {way['way']}: {way['tokens_per_s']:.1f} tokens/s, {gib(way['rss_bytes'])}{chosen}")
        for failure in r["failed"]:
            print(f"  failed: {failure}")


def main():
    parser = argparse.ArgumentParser(prog="compare.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--model", default="gpt-124m,llama-25m,llama-124m,llama-350m", help="presets (%(default)s)")
    parser.add_argument("--precision", default="bf16,fp32", help="(%(default)s)")
    parser.add_argument("--seq", default="512,1024", help="sequence lengths (%(default)s)")
    parser.add_argument("--batch", default="1,4,8", help="batch sizes (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of runs for each configuration (%(default)s)")
    parser.add_argument("--warmup", type=int, default=1, help="warm-up steps of a run, which do not count (%(default)s)")
    parser.add_argument("--steps", type=int, default=3, help="measured steps of a run (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="only llama-25m at 1 x 512, in two rounds")
    parser.add_argument("--json", help="write every figure into this file, too")
    args = parser.parse_args()
    if args.quick:
        args.model, args.seq, args.batch, args.rounds = "llama-25m", "512", "1", 2
    precisions = computable(args.precision.split(","))
    if not precisions:
        parser.error("no precision is left to compare")
    args.precision = ",".join(precisions)
    if args.json:
        # chroot changed the working folder, but PWD keeps its name on the machine.
        figures = HOST / pathlib.Path(os.environ["PWD"], args.json).relative_to("/")
        try:  # fails now, not after an hour of measuring; the file keeps its old contents until then
            figures.open("a", encoding="utf-8").close()
        except OSError as error:
            parser.error(f"--json {args.json}: {error.strerror}")

    with tempfile.TemporaryDirectory(dir=HOST / "tmp", prefix="side-by-side.") as folder:
        work = pathlib.Path("/") / pathlib.Path(folder).relative_to(HOST)
        ridgeline = Ridgeline(args.build, work)
        choose_blas_core()
        peaks = [ridgeline.gemm_gflops(precisions)]  # measured before and after, with both libraries; the largest counts
        results, searches = [], {}
        for spec in ridgeline.specs(args):
            results.append(compare(spec, ridgeline, work, args.rounds, searches))
        peaks += [ridgeline.gemm_gflops(precisions), torch_gemm_gflops(precisions)]
        peak = {name: max(found[name] for found in peaks) for name in peaks[0]}
    environment = next((r["environment"] for r in results if "environment" in r), {})
    versions = run([sys.executable, "-c", "import torch; print(torch.__version__)"]).strip()
    print(f"{environment.get('cpu')}, {environment.get('cores')} cores, {environment.get('cpu_flags')}, "
          f"{environment.get('kernel')}; ridgeline {environment.get('git_commit')} with "
          f"{environment.get('libraries')}; PyTorch {versions}")
    print_tables(results, peak)
    if args.json:
        document = {"machine": environment, "torch": versions, "peak_gflops": peak, "configurations": results}
        figures.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
