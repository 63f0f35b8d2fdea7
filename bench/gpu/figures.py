#!/usr/bin/env python3
"""Computes the H200's figures from the results in bench/results/h200, and checks that the pages have them.

  bench/gpu/figures.py [TRAINER]   TRAINER: a ridgeline-train; it needs no GPU. With it, the script also checks the figures
                                   that follow from a step's shapes: how much time a pass saves, and how a step's time
                                   compares with the least possible time.

Each printed line has a page and a text that the page must contain. With TRAINER, the script also prints numbers of
docs/gpu.md's results that are in no such text and not in GIVEN. The exit code is 1 if a page lacks a text, or has such
a number. A step's time is that of the median step. MFU is the model's FLOPs of a step, without recomputation, divided by
the step's time and the card's dense peak.
"""
import pathlib
import re
import sqlite3
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results/h200"
PEAK_TFLOPS = 989  # an H200's peak in bf16 (src/run/gpu_peaks.cc)
MEMORY_TB_S = 4.3  # the memory bandwidth that --budget assumes for an H200
GPU_PAGE = "docs/gpu.md"
# Texts of the page's results whose numbers were not measured: dates, versions, settings, sizes and targets.
GIVEN = (
    "On 26 November 2026, machines with one H200", "PyTorch 2.11", "rows have 4096 columns", "sequences of 8192",
    "FlashAttention-2", "(causal, 989 TFLOP/s)", "| 55 % |", "| 75 % |", "| × torch.compile | 1.1 |", "| × eager | 1.3 |",
    "of torch.compile's memory | 0.85 |", "fp8 × bf16, llama-8b | 1.3 |", "time | 1.30, 1.05 |",
    "beside the prediction | exact; 2 % |", "as a share of a copy's speed | 85 % |", "A product of 8192³",
    "in the 8B model with `full`", "(8192 tokens)", "joins up to 64 of them",
    "14B, 32B and 64B; batches of 4 to 16, `stack` at batch 16", "scores in 16 bits", "sequence of 8192 with 32 heads")


def text_of(page):
    """Returns a page's text, with each run of spaces and line ends as one space."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


class Claims:
    """Checks that pages contain texts, prints each check, and counts the texts that are missing."""

    def __init__(self):
        self.pages = {}
        self.said = {}  # for each page, the places of the texts that it has
        self.missing = 0

    def places(self, page, text):
        """Returns the text's places in the page, as pairs of a begin and an end."""
        if page not in self.pages:
            self.pages[page] = text_of(page)
            self.said[page] = set()
        words = re.escape(" ".join(text.split()))
        return [match.span() for match in re.finditer(words, self.pages[page])]

    def says(self, page, text):
        there = self.places(page, text)
        for begin, end in there:
            self.said[page].update(range(begin, end))
        self.missing += not there
        print(f"{'ok     ' if there else 'MISSING'} {page}: {text}")

    def says_no_other_number(self, page, first, last):
        """Checks that each number between two headings is in a text that was checked, or in one of GIVEN."""
        for text in GIVEN:
            for begin, end in self.places(page, text):
                self.said[page].update(range(begin, end))
        (begin, _), (end, _) = self.places(page, first)[0], self.places(page, last)[0]
        for number in re.finditer(r"(?<![\w.-])\d[\d.,]*", self.pages[page][:end]):
            if number.start() < begin + len(first) or number.start() in self.said[page]:
                continue
            self.missing += 1
            print(f"UNLISTED {page}: {self.pages[page][number.start() - 40:number.end() + 20]}")


class Run:
    """A row of runs(), with the columns as members."""

    def __init__(self, row):
        self.__dict__.update(dict(row))
        self.ms = self.step_ns / 1e6
        # The energy covers only the measured steps, which are the last ones.
        self.measured_s = sum(self.all_ns[-self.steps:]) / 1e9


def runs():
    """Returns the successful runs with bf16 state, in the order in which they were measured."""
    store = sqlite3.connect(f"file:{RESULTS / 'gpu.db'}?mode=ro&immutable=1", uri=True)
    store.row_factory = sqlite3.Row
    rows = store.execute("""SELECT r.number, p.spec ->> '$.model' AS model, p.spec ->> '$.batch_size' AS batch,
        p.spec ->> '$.checkpointing' AS policy, p.spec ->> '$.precision' AS precision, p.spec ->> '$.steps' AS steps,
        CASE r.setup ->> '$.trainer[0]' WHEN 'ridgeline-train' THEN 'ours'
          ELSE iif(p.spec ->> '$.own.compile', 'compile', 'eager') END AS by,
        r.steady_tokens_per_s AS tokens_per_s, r.device_peak_bytes AS peak, r.planned_peak_bytes AS planned,
        r.step_median_ns AS step_ns, r.all_steps_ns, r.loss, r.gpu_energy_j AS energy_j, r.gpu_power_w AS power_w,
        r.gpu_sm_clock_mhz AS clock_mhz, r.model_causal_flops_per_step AS causal, r.gpu_clock_limits AS limits
      FROM results AS r JOIN points AS p ON p.id = r.point_id
      WHERE r.status = 'ok' AND p.spec ->> '$.state_precision' = 'bf16' ORDER BY r.number""")
    found = []
    for row in rows:
        row = dict(row)
        row["all_ns"] = eval_numbers(row.pop("all_steps_ns"))
        row["loss"] = eval_numbers(row["loss"])
        found.append(Run(row))
    return found


def eval_numbers(text):
    return [float(number) for number in re.findall(r"-?[0-9.]+(?:e[+-]?[0-9]+)?", text)]


def one(found, model, policy, precision, by, last=False):
    """Returns the first of the matching runs, or the last, or None. Both trainers ran in the call that gave the last."""
    matching = [r for r in found if (r.model, r.policy, r.precision, r.by) == (model, policy, precision, by)]
    return matching[-1 if last else 0] if matching else None


def seconds_of_stages(*call):
    """Returns the total time limit of bench/gpu.sh's stages. Stages that run at the same time count as the longest one."""
    lines = subprocess.run([ROOT / "bench/gpu.sh", "stages", *call], check=True, capture_output=True, text=True).stdout
    total = beside = 0
    for line in lines.splitlines():
        seconds = int(line.split()[1])
        if line.endswith(" beside"):
            beside = max(beside, seconds)
        else:
            total, beside = total + beside + seconds, 0
    return total + beside


def between(values, form, unit=""):
    """Returns "LOW to HIGH", the values' range in the given format, or one number if both look the same."""
    low, high = form.format(min(values)), form.format(max(values))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def side_by_side(claims, found):
    """Checks the comparison with PyTorch, the targets, the power and the losses."""
    of = lambda *which, **more: one(found, *which, **more)
    whole, full = of("llama-8b", "none", "bf16", "ours"), of("llama-8b", "full", "bf16", "ours")
    torch = of("llama-8b", "full", "bf16", "compile")
    mfu = lambda run: f"{100 * run.causal / run.step_ns / 1e3 / PEAK_TFLOPS:.1f} %"
    for page in (GPU_PAGE, "README.md"):
        claims.says(page, f"{whole.tokens_per_s:,.0f} tokens/s")
        claims.says(page, f"{mfu(whole)} MFU")
        claims.says(page, f"{full.tokens_per_s / torch.tokens_per_s:.2f} times as fast as `torch.compile`")
        claims.says(page, f"{full.peak / torch.peak:.2f} of its memory")

    speeds, memories, ours_peaks = [], {}, []
    for model, batch, policy, precision in (
            ("llama-8b", 1, "full", "bf16"), ("llama-8b", 1, "full", "fp8"), ("llama-8b", 1, "none", "bf16"),
            ("llama-8b", 1, "selective", "bf16"), ("llama-8b", 1, "none", "fp8"), ("llama-3b", 1, "none", "bf16"),
            ("llama-1b", 2, "none", "bf16"), ("llama-1b", 2, "none", "fp8"), ("stack-1b", 1, "none", "bf16"),
            ("stack-1b", 1, "full", "bf16")):
        ours, compiled = of(model, policy, precision, "ours"), of(model, policy, precision, "compile")
        eager = of(model, policy, precision, "eager")
        again = of(model, policy, precision, "ours", last=True)
        # If the first call had no torch.compile run of a point, the second call measured both trainers again.
        note = " ¹" if compiled and again is not ours and compiled.number > ours.number + 8 else ""
        beside = again if note else ours
        row = f"| {model}, {batch}, {policy}, {precision} | {ours.tokens_per_s:,.0f} | {ours.peak / 1e9:.1f} | "
        row += f"{compiled.tokens_per_s:,.0f}{note} | {compiled.peak / 1e9:.1f} | " if compiled else "| | "
        row += f"{eager.tokens_per_s:,.0f} | " if eager else "| "
        if compiled:
            speeds.append(beside.tokens_per_s / compiled.tokens_per_s)
            memories.setdefault(model, []).append(ours.peak / compiled.peak)
            row += f"{speeds[-1]:.2f} | {memories[model][-1]:.2f} |"
        else:
            row += "| |"
        claims.says(GPU_PAGE, row)
        ours_peaks.append(ours)
    claims.says(GPU_PAGE, "ours had {:,.0f} and {:,.0f}".format(
        *(of(m, "none", "bf16", "ours", last=True).tokens_per_s for m in ("llama-1b", "stack-1b"))))

    # Targets.
    selective, fp8 = of("llama-8b", "selective", "bf16", "ours"), of("llama-8b", "none", "fp8", "ours")
    full_fp8 = of("llama-8b", "full", "fp8", "ours")
    eager_1b, eager_8b = of("llama-1b", "none", "bf16", "eager"), of("llama-8b", "full", "bf16", "eager")
    claims.says(GPU_PAGE, f"| {mfu(whole)} (`none`), {mfu(selective)} (`selective`) |")
    claims.says(GPU_PAGE, f"| × torch.compile | 1.1 | {between(speeds, '{:.2f}')} |")
    claims.says(GPU_PAGE, f"{of('llama-1b', 'none', 'bf16', 'ours').tokens_per_s / eager_1b.tokens_per_s:.2f} (1B), "
                          f"**{full.tokens_per_s / eager_8b.tokens_per_s:.2f}** (8B, `full`)")
    others = [m for model, shares in memories.items() if model != "llama-8b" for m in shares]
    claims.says(GPU_PAGE, f"{between(memories['llama-8b'], '{:.2f}')} (8B); **{between(others, '{:.2f}')}** (others, `none`)")
    claims.says(GPU_PAGE, f"{fp8.tokens_per_s / whole.tokens_per_s:.2f} (`none`), "
                          f"{full_fp8.tokens_per_s / full.tokens_per_s:.2f} (`full`)")
    claims.says(GPU_PAGE, f"{full.ms / whole.ms:.2f}, {selective.ms / whole.ms:.2f} |")
    claims.says(GPU_PAGE, f"{selective.peak / 1e9:.1f} GB instead of {whole.peak / 1e9:.1f}, "
                          f"{100 * (selective.ms / whole.ms - 1):.0f} % slower")
    outside = [run.peak - run.planned for run in ours_peaks]
    shares = [100 * (run.peak / run.planned - 1) for run in ours_peaks]
    claims.says(GPU_PAGE, f"exact; {between(shares, '{:.2f}')} %")
    claims.says(GPU_PAGE, f"{between([o / 1e6 for o in outside], '{:.0f}')} MB of the card beside it")
    claims.says(GPU_PAGE, f"the libraries and the graph took {between([o / 1e6 for o in outside], '{:.0f}')} MB")

    # Power.
    ours = [run for run in found if run.by == "ours"]
    claims.says(GPU_PAGE, between([run.energy_j / run.measured_s for run in ours], "{:.0f}") + " W of 700")
    claims.says(GPU_PAGE, between([run.clock_mhz / 1e3 for run in ours], "{:.2f}") + " GHz instead of 1.98")
    claims.says(GPU_PAGE, f"{of('stack-1b', 'none', 'bf16', 'ours').power_w:.0f} W for stack-1b")
    assert all("sw_power_cap" in run.limits for run in ours)

    # The first steps at which losses differ. Steps count from 1.
    losses = {p: of("llama-8b", p, "bf16", "ours").loss for p in ("none", "selective", "full")}
    part = lambda series: next(i + 1 for i, step in enumerate(zip(*series)) if len(set(step)) > 1)
    claims.says(GPU_PAGE, f"llama-8b's loss at step {part(losses.values())} is {losses['none'][1]:.6f} with `none`, "
                          f"{losses['selective'][1]:.6f} with `selective` and {losses['full'][1]:.6f} with `full`")
    claims.says(GPU_PAGE, f"Its fp8 runs part at step {part([fp8.loss, full_fp8.loss])}, and those of stack-1b at step "
                + str(part([of("stack-1b", p, "bf16", "ours").loss for p in ("none", "full")])))


def texts(claims):
    """Checks the figures that come from the text files: parity.txt, facts.txt and the stages of bench/gpu.sh."""
    parity, facts = (RESULTS / "parity.txt").read_text(), (RESULTS / "facts.txt").read_text()
    first = parity.split("# of the second")[0]
    failed = len(re.findall(r"^\[  FAILED  \]", first, re.M))
    claims.says(GPU_PAGE, f"In the first call, {failed} tests failed")
    claims.says(GPU_PAGE, f"TF32 costs a bias {float(re.search(r'error ([0-9.e-]+)', first).group(1)):.1e}"
                .replace("e-0", "e-"))
    claims.says(GPU_PAGE, f"after {re.search(r'cut short at ([0-9]+) s', parity).group(1)} seconds")
    claims.says(GPU_PAGE, f"All {re.search(r'0 of ([0-9]+) are not verified', parity).group(1)} verifications")
    memory = int(re.search(r"Total +: ([0-9]+) MiB", facts).group(1))
    limit = float(re.search(r"Current Power Limit +: ([0-9.]+) W", facts).group(1))
    claims.says(GPU_PAGE, f"({memory:,} MiB, {limit:.0f} W)")
    claims.says(GPU_PAGE, f"driver {re.search(r'^driver: (.*)', facts, re.M).group(1)}, CUDA "
                          f"{re.search(r'runtime ([0-9.]+)', facts).group(1)}")
    claims.says(GPU_PAGE, f"All stages take {seconds_of_stages() / 60:.0f} minutes at most")
    for library in ("cuBLASLt", "cuDNN"):
        version = re.search(rf"^{library}: ([0-9]+\.[0-9]+)", facts, re.M).group(1)
        claims.says(GPU_PAGE, f"{library} {version}")


class Op:
    """A line of a table that `ridgeline-train --profile` printed."""

    def __init__(self, line):
        name, calls, number, unit, _, tflops, speed = line.split()
        self.name, self.calls = name, int(calls)
        self.ms = float(number) / (1e3 if unit == "us" else 1)
        self.tflops, self.speed = float(tflops) / 1e3, float(speed)
        self.call_bytes = self.speed * 1e9 * self.ms / 1e3 / self.calls


def profiles():
    """Returns the four tables of profile.txt: bf16 and fp8 before the changes, then bf16 and fp8 after them."""
    tables = []
    for line in (RESULTS / "profile.txt").read_text().splitlines():
        if line.startswith("op "):
            tables.append({})
        elif tables and re.match(r"[a-z_]+ +[0-9]+ +[0-9.]+ (ms|us) ", line):
            op = Op(line)
            tables[-1][op.name] = op
    return tables


def kernels(claims, found):
    """Checks the speeds of kernels, from profile.txt and ceilings.txt."""
    before, before_8, after, after_8 = profiles()
    by_host = re.findall(r"tokens/s  ([0-9.]+) (ms|us)$", (RESULTS / "profile.txt").read_text(), re.M)[:5]
    slowest = max(float(number) for number, unit in by_host if unit == "ms")
    fastest = min(float(number) for number, unit in by_host if unit == "us")
    claims.says(GPU_PAGE, f"one step of an H200's took {slowest:.0f} ms and one {fastest:.0f} µs")
    ceilings = (RESULTS / "ceilings.txt").read_text().split("\n")[1:]
    last = ceilings[4:]  # the lines of the third call
    copies = {2 * int(b): float(s) for b, s in re.findall(r"copy (\d+) bytes: ([0-9.]+)", "\n".join(last))}
    product = float(re.search(r"bf16: ([0-9.]+) TFLOP", last[-2] if last[-1] == "" else last[-1]).group(1))

    # A kernel is compared with a copy of as many bytes. Between the measured sizes, a copy's time is interpolated linearly.
    sizes = sorted(copies)
    seconds = [size / copies[size] for size in sizes]

    def copy_speed(size):
        at = min(max(1, sum(s <= size for s in sizes)), len(sizes) - 1)
        (low, high), (t0, t1) = sizes[at - 1:at + 1], seconds[at - 1:at + 1]
        return copies[sizes[0]] if size <= sizes[0] else size / (t0 + (t1 - t0) * (size - low) / (high - low))

    def share(op):
        percent = 100 * op.speed / copy_speed(op.call_bytes)
        return percent, f"{percent:.0f} %"

    whole = lambda number: int(number + 0.5)
    claims.says(GPU_PAGE, f"A copy of 134 MB (67 MB each way) moves {copies[134217728]:.0f} GB/s, and one of 67 MB moves "
                          f"{copies[67108864]:.0f}")
    reached, reached_whole = [], []
    for name, first, now, note in (
            ("rms_norm_backward", before, after, ""), ("cross_entropy", before, after, ""), ("rope", before, after, ""),
            ("residual_rms_norm", before, after, ""), ("residual_rms_norm_quantize", before_8, after_8, ""),
            ("adam", before, after, "²"), ("swiglu", before, after, ""), ("swiglu_backward", before, after, ""),
            ("swiglu_quantize", before_8, after_8, ""), ("quantize", before_8, after_8, ""),
            ("transpose_quantized", before_8, after_8, "")):
        percent, text = share(now[name])
        if not note:
            reached.append(percent >= 85)
        reached_whole.append(now[name].speed >= 0.85 * copies[2 * 1073741824])
        unit = " GB/s" if name == "rms_norm_backward" else ""
        claims.says(GPU_PAGE, f"| {name} | {whole(first[name].speed)}{unit} | {whole(now[name].speed)} | {note or text} ")
    claims.says(GPU_PAGE, f"against a copy as large: {sum(reached)} of {len(reached)} kernels reach it")
    claims.says(GPU_PAGE, f"against a copy of 1 GiB ({copies[2 * 1073741824]:.0f} GB/s): "
                          f"**{sum(reached_whole)} of {len(reached_whole)}**")
    for name in ("rms_norm_backward", "cross_entropy"):
        claims.says(GPU_PAGE, f"{name} {share(after[name])[1]}")
    claims.says(GPU_PAGE, f"| products of 16 bits | {before['gemm'].tflops:.0f} TFLOP/s | {after['gemm'].tflops:.0f} |")
    claims.says(GPU_PAGE, "| products of 8 bits (forward with fewer bits of sums) | "
                          f"{before_8['quantized_gemm'].tflops:.0f} TFLOP/s | {after_8['quantized_gemm'].tflops:.0f} |")
    both = lambda ops: f"{ops['attention_forward'].tflops:.0f}, {ops['attention_backward'].tflops:.0f}"
    claims.says(GPU_PAGE, f"(cuDNN, heads of 64) | {both(before)} TFLOP/s | {both(after)} |")
    claims.says(GPU_PAGE, f"reach {after['gemm'].tflops:.0f} of its {product:.0f} TFLOP/s")
    whole_8b = one(found, "llama-8b", "none", "bf16", "ours")
    claims.says(GPU_PAGE, f"**{100 * whole_8b.causal / whole_8b.step_ns / 1e3 / product:.1f} %**")
    claims.says(GPU_PAGE, f"at {one(found, 'llama-1b', 'none', 'bf16', 'ours', last=True).clock_mhz / 1e3:.1f} GHz, reach")
    claims.says(GPU_PAGE, f"({product:.0f} TFLOP/s)")
    attention = after["attention_forward"].ms + after["attention_backward"].ms
    assert 0.3 < attention / sum(op.ms for op in after.values()) < 0.36  # "a third of a step of llama-1b"


def budget(trainer, *fields):
    """Returns the least time of a step in ms, and (GB, calls) of each line of `ridgeline-train --budget`."""
    out = subprocess.run([trainer, "--budget", "--device", "meta", "--gpu", "h200", "--state-precision", "bf16",
                          "--dropout", "0", *fields], check=True, capture_output=True, text=True).stdout
    lines = {(name, phase): (float(gb), int(calls))
             for name, phase, calls, gb in re.findall(r"^  ([a-z_]+) +([a-z]+) +(\d+) +([0-9.]+) ", out, re.M)}
    return float(re.search(r"^step +([0-9.]+) ms", out, re.M).group(1)), lines


def from_shapes(claims, trainer, found):
    """Checks the figures that follow from a step's shapes, as `ridgeline-train --budget` computes them."""
    saved_ms = lambda gb: gb / MEMORY_TB_S
    long = ("--seq-length", "8192")
    # When these steps were measured, the engine still stored SwiGLU's gradient in fp8 and read it again.
    ratios = {}
    for run in (r for r in found if r.by == "ours"):
        least, lines = budget(trainer, "--model", run.model, "--batch-size", str(run.batch), "--checkpointing",
                              run.policy, "--precision", run.precision, *long)
        if run.precision == "fp8":
            gb, calls = lines["swiglu_backward_quantize", "backward"]
            # For each element of the gradient, the pass reads 2 bytes of gate_up and 1 of dy, and writes 2 bytes of codes.
            least += saved_ms(gb * 4 / 5)
        ratios.setdefault((run.model, run.precision, run.policy), run.ms / least)
    for page in (GPU_PAGE, "src/engine/cli/print_budget.cc"):
        claims.says(page, f"took {between(ratios.values(), '{:.2f}')} times")
    claims.says(GPU_PAGE, "{:.2f} for llama-8b in bf16, {:.2f} in fp8, {:.2f} for 3B, {:.2f} and {:.2f} for 1B, {:.2f} "
                          "for `stack`".format(*(ratios[key] for key in (
                              ("llama-8b", "bf16", "none"), ("llama-8b", "fp8", "none"), ("llama-3b", "bf16", "none"),
                              ("llama-1b", "bf16", "none"), ("llama-1b", "fp8", "none"), ("stack-1b", "bf16", "none")))))

    step = {p: one(found, "llama-8b", "none", p, "ours").ms for p in ("bf16", "fp8")}
    least_fp8, fp8 = budget(trainer, "--model", "llama-8b", "--precision", "fp8", *long)
    apart_fp8 = sum(saved_ms(gb) for (name, _), (gb, _) in fp8.items() if name in ("quantize", "transpose_quantized"))
    _, bf16 = budget(trainer, "--model", "llama-8b", *long)
    codes = fp8["swiglu_backward_quantize", "backward"][0] * 4 / 5
    claims.says(GPU_PAGE, f"This saves {codes:.0f} GB of a step of llama-8b (one sequence of 8192, fp8), which is "
                          f"{saved_ms(codes):.0f} of {step['fp8']:.0f} ms")
    # A norm that computes its own input reads two tensors and writes two.
    gb = bf16["residual_rms_norm", "forward"][0] / 4
    claims.says(GPU_PAGE, f"This saves {gb:.1f} GB of a step of llama-8b (one sequence of 8192, bf16), which is "
                          f"{saved_ms(gb):.1f} of {step['bf16']:.0f} ms")
    claims.says(GPU_PAGE, f"| llama-8b, one sequence of 8192, bf16 | {gb:.1f} GB | {saved_ms(gb):.1f} of "
                          f"{step['bf16']:.0f} ms |")
    # The numbers of the residual's gradient (2 bytes each) need not be read. The transpose still reads its codes (1 byte).
    gb = bf16["residual_rms_norm", "forward"][0] / 8
    claims.says(GPU_PAGE, f"twice a layer: {gb:.1f} GB of a step of llama-8b in fp8, {saved_ms(gb):.1f} of "
                          f"{step['fp8']:.0f} ms")
    claims.says("docs/performance.md", f"{apart_fp8:.0f} of {least_fp8:.0f} ms of an fp8 step of llama-8b")
    claims.says(GPU_PAGE, f"The plan counts this to the byte: {32 * 8192 ** 2 * 2 / 1e9:.1f} GB")
    gpt_least, gpt = budget(trainer, "--model", "gpt-8b", "--seq-length", "2048")
    gb = gpt["gelu", "forward"][0] / 2
    claims.says(GPU_PAGE, f"| gpt-8b, one sequence of 2048, bf16 | {gb:.1f} GB | {saved_ms(gb):.1f} of at least "
                          f"{gpt_least:.0f} ms |")
    # Separate passes would write GELU's gradient, and read it for the codes and for the bias. That is as much as the pass
    # moves now.
    least, gpt_fp8 = budget(trainer, "--model", "gpt-8b", "--seq-length", "2048", "--precision", "fp8")
    gb = gpt_fp8["gelu_backward_quantize", "backward"][0]
    claims.says(GPU_PAGE, f"This saves {gb:.1f} GB of a step of gpt-8b (one sequence of 2048, fp8), which is "
                          f"{saved_ms(gb):.1f} of at least {least:.0f} ms")
    gelu, sums = gpt["gelu_backward", "backward"][0] * 2 / 3, gpt["column_sum", "backward"][0]
    claims.says(GPU_PAGE, f"GELU's gradient is {gelu:.1f} GB, {saved_ms(gelu):.1f} ms, and the biases' gradients are "
                          f"{sums:.1f} GB, {saved_ms(sums):.1f} ms")
    gb = bf16["adam", "optimizer"][0]
    claims.says(GPU_PAGE, f"Adam takes {saved_ms(gb):.0f} ms of a step of llama-8b")
    # Each chunk of llama-1b reads and writes the head's gradient and the chunk's logits.
    _, small = budget(trainer, "--model", "llama-1b", *long)
    logits = small["cross_entropy", "forward"][0] / 2 / 8192  # GB a token; the budget counts a read and a write
    head = 2 * 128256 * 2048 * 2 / 1e9
    claims.says(GPU_PAGE, f"reads and writes the head's gradient: {head:.2f} GB for llama-1b. By the bytes, 2 chunks of 4096 "
                          f"instead of 8 of 1024 save {saved_ms(6 * head):.1f} ms, for {3072 * logits:.1f} GB more of logits")


def main():
    claims = Claims()
    found = runs()
    side_by_side(claims, found)
    texts(claims)
    kernels(claims, found)
    if len(sys.argv) > 1:
        from_shapes(claims, sys.argv[1], found)
        claims.says_no_other_number(GPU_PAGE, "## What an H200 did", "## Running on one")
    print(f"{claims.missing} missing")
    return claims.missing > 0


sys.exit(main())
