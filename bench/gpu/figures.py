#!/usr/bin/env python3
"""Prints what README.md and docs/gpu.md say of Llama 8B on an H200, from the results in bench/results/h200.

MFU is the model's FLOPs of a step, causal attention counted as half and recomputation not counted, over the median
step and the card's dense peak (src/engine/device/speed.cc).
"""
import pathlib
import sqlite3

PEAK_TFLOPS = 989  # of an H200 in bf16
RUNS = """SELECT r.steady_tokens_per_s, r.device_peak_bytes, r.planned_peak_bytes,
  r.model_causal_flops_per_step / r.step_median_ns / 1e3 AS causal, r.model_noncausal_flops_per_step / r.step_median_ns / 1e3
  FROM results AS r JOIN points AS p ON p.id = r.point_id
  WHERE r.status = 'ok' AND p.spec ->> '$.model' = 'llama-8b' AND p.spec ->> '$.precision' = 'bf16'
    AND p.spec ->> '$.state_precision' = 'bf16' AND ifnull(p.spec ->> '$.own.compile', 1)
    AND p.spec ->> '$.checkpointing' = ? AND r.setup ->> '$.trainer[0]' = ?
  ORDER BY r.number  -- the first: both in one call"""


def main():
    file = pathlib.Path(__file__).resolve().parents[1] / "results/h200/gpu.db"
    store = sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)
    whole = store.execute(RUNS, ("none", "ridgeline-train")).fetchone()
    full = store.execute(RUNS, ("full", "ridgeline-train")).fetchone()
    torch = store.execute(RUNS, ("full", "pytorch")).fetchone()
    print(f"llama-8b, bf16 with bf16 state, checkpointing none: {whole[0]:,.0f} tokens/s, "
          f"{100 * whole[3] / PEAK_TFLOPS:.1f} % MFU (causal attention as half, of {PEAK_TFLOPS} TFLOP/s; "
          f"{100 * whole[4] / PEAK_TFLOPS:.1f} % over the full square)")
    print(f"llama-8b, bf16 with bf16 state, checkpointing full: {full[0]:,.0f} tokens/s against {torch[0]:,.0f} of "
          f"torch.compile: {full[0] / torch[0]:.2f} times as fast, in {full[1] / torch[1]:.2f} of its memory")


main()
