#!/usr/bin/env python3
"""gemm.py PRECISION…: prints the rate of PyTorch's fastest square matrix product on this machine in GFLOP/s, for each
precision, as one JSON object {"bf16": …, "fp32": …}."""

import json
import sys
import time

import torch

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


def gflops(dtype, n, repeats=5):
    a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
    torch.mm(a, b)
    best_ns = float("inf")
    for _ in range(repeats):
        begin = time.monotonic_ns()
        torch.mm(a, b)
        best_ns = min(best_ns, time.monotonic_ns() - begin)
    return 2 * n**3 / best_ns


print(json.dumps({name: max(gflops(DTYPES[name], n) for n in (1024, 2048, 4096)) for name in sys.argv[1:]}))
