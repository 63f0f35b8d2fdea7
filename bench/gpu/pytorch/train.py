#!/usr/bin/env python3
"""Trains a llama or stack model of a RunSpec with PyTorch on one GPU, and prints the time of each step.

Every step trains on new tokens, the same as Ridgeline's. Like Ridgeline on a GPU, the program first runs steps for
measure.warmup_seconds and discards them. Then it measures blocks of `steps` steps until measure.seconds have passed.

The program is written to be as fast as PyTorch is without another library. q, k and v are one product, and so are gate and up.
Attention is one kernel for grouped heads. AdamW is fused. Logits exist for ROWS_OF_LOGITS rows at a time, and the same pass
computes their gradients. One block is compiled, and all blocks use the result. Weights, gradients and moments are bf16, as
with state_precision: bf16. In fp8, the blocks' products (torch._scaled_mm) use one scale a tensor, from its own largest
number.
"""
import argparse
import ctypes
import json
import sys
import threading
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

ROWS_OF_LOGITS = 4096


def to_codes(x, dtype):
    """Returns x as codes with one scale, and the factor that turns codes back into numbers."""
    top = torch.finfo(dtype).max
    factor = x.abs().amax().float().clamp(min=1e-12) / top
    return (x.float() / factor).clamp(-top, top).to(dtype), factor


class ProductOfCodes(torch.autograd.Function):
    """Maps x (N, K), weight (M, K) to (N, M). _scaled_mm needs its left operand row-major and its right column-major."""

    @staticmethod
    def forward(ctx, x, weight):
        codes, factor = to_codes(x, torch.float8_e4m3fn)
        weight_codes, weight_factor = to_codes(weight, torch.float8_e4m3fn)
        ctx.save_for_backward(codes, factor, weight_codes, weight_factor)
        return torch._scaled_mm(codes, weight_codes.t(), scale_a=factor, scale_b=weight_factor,
                                out_dtype=torch.bfloat16, use_fast_accum=True)

    @staticmethod
    def backward(ctx, dy):
        codes, factor, weight_codes, weight_factor = ctx.saved_tensors
        dy_codes, dy_factor = to_codes(dy, torch.float8_e5m2)
        dx = torch._scaled_mm(dy_codes, weight_codes.t().contiguous().t(), scale_a=dy_factor, scale_b=weight_factor,
                              out_dtype=torch.bfloat16)
        dweight = torch._scaled_mm(dy_codes.t().contiguous(), codes.t().contiguous().t(), scale_a=dy_factor,
                                   scale_b=factor, out_dtype=torch.bfloat16)
        return dx, dweight


class CodesLinear(nn.Linear):
    def forward(self, x):
        y = ProductOfCodes.apply(x.flatten(0, -2), self.weight).unflatten(0, x.shape[:-1])
        return y if self.bias is None else y + self.bias


def rotated(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Block(nn.Module):
    def __init__(self, spec, linear):
        super().__init__()
        hidden, ffn, self.dim = spec["hidden"], spec["ffn"], spec["head_dim"]
        self.heads, self.kv, self.llama = spec["heads"], spec["kv_heads"], spec["family"] == "llama"
        norm = lambda: nn.RMSNorm(hidden, spec["norm_eps"]) if self.llama else nn.LayerNorm(hidden, spec["norm_eps"])
        self.norm1, self.norm2 = norm(), norm()
        bias = not self.llama
        self.qkv = linear(hidden, (self.heads + 2 * self.kv) * self.dim, bias=bias)
        self.out = linear(self.heads * self.dim, hidden, bias=bias)
        self.up = linear(hidden, 2 * ffn if self.llama else ffn, bias=bias)
        self.down = linear(ffn, hidden, bias=bias)

    def forward(self, x, cos, sin):  # x (B, T, C)
        heads = self.qkv(self.norm1(x)).unflatten(-1, (-1, self.dim))
        q, k, v = heads.split((self.heads, self.kv, self.kv), dim=2)
        if self.llama:
            q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                           enable_gqa=self.heads != self.kv)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.up(self.norm2(x))
        if self.llama:
            gate, up = y.chunk(2, dim=-1)
            y = F.silu(gate) * up
        else:
            y = F.gelu(y, approximate="tanh")
        return x + self.down(y)


def loss_of_rows(logits, targets, scale):
    """Returns these rows' share of the mean loss, and the gradient of their logits."""
    logits = logits.float()
    total = logits.logsumexp(dim=-1, keepdim=True)
    loss = (total - logits.gather(1, targets[:, None])).sum() * scale
    hit = torch.arange(logits.shape[1], device=logits.device) == targets[:, None]
    return loss, (((logits - total).exp() - hit.float()) * scale).to(torch.bfloat16)


class HeadLoss(torch.autograd.Function):
    """Maps x (N, C), weight (V, C), targets (N) to the mean cross-entropy. The forward pass computes the gradients, too."""

    @staticmethod
    def forward(ctx, x, weight, targets, rows_loss):
        dx, dweight, loss = torch.empty_like(x), torch.zeros_like(weight), 0
        for first in range(0, len(x), ROWS_OF_LOGITS):
            rows = slice(first, first + ROWS_OF_LOGITS)
            part, dlogits = rows_loss(x[rows] @ weight.t(), targets[rows], 1 / len(x))
            loss = loss + part
            torch.mm(dlogits, weight, out=dx[rows])
            dweight.addmm_(dlogits.t(), x[rows])
        ctx.save_for_backward(dx, dweight)
        return loss

    @staticmethod
    def backward(ctx, scale):
        dx, dweight = ctx.saved_tensors
        return dx.mul_(scale), dweight.mul_(scale), None, None


class Model(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.spec, linear = spec, CodesLinear if spec["precision"] == "fp8" else nn.Linear
        self.blocks = nn.ModuleList(Block(spec, linear) for _ in range(spec["layers"]))
        self.rows_loss = loss_of_rows
        self.cos = self.sin = None
        if spec["family"] == "llama":
            self.embedding = nn.Embedding(spec["vocab"], spec["hidden"])
            self.norm = nn.RMSNorm(spec["hidden"], spec["norm_eps"])
            self.head = nn.Linear(spec["hidden"], spec["vocab"], bias=False)
            if spec["tied_head"]:
                self.head.weight = self.embedding.weight
            device, half = self.head.weight.device, spec["head_dim"]
            frequency = spec["rope_theta"] ** (-torch.arange(0, half, 2, device=device).float() / half)
            angle = (torch.arange(spec["seq_length"], device=device).float()[:, None] * frequency)[:, None, :]
            self.cos, self.sin = angle.cos().bfloat16(), angle.sin().bfloat16()  # (T, 1, D / 2)

    @torch.no_grad()
    def reset(self):
        """Draws new random weights."""
        for module in self.modules():
            if isinstance(module, (nn.RMSNorm, nn.LayerNorm)):
                module.reset_parameters()
            elif getattr(module, "bias", None) is not None:
                module.bias.zero_()
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def compile_blocks(self):
        for block in self.blocks:
            block.compile(dynamic=False)
        self.rows_loss = torch.compile(loss_of_rows, dynamic=False)

    def forward(self, data, targets):
        x = self.embedding(data) if self.cos is not None else data
        for block in self.blocks:
            if self.spec["checkpointing"] == "full":
                x = checkpoint(block, x, self.cos, self.sin, use_reentrant=False, preserve_rng_state=False)
            else:
                x = block(x, self.cos, self.sin)
        if self.cos is None:
            return x.float().mean()
        return HeadLoss.apply(self.norm(x).flatten(0, 1), self.head.weight, targets.flatten(), self.rows_loss)


WORD = 0xFFFFFFFF


def product(a, by):
    """Returns the upper and the lower 32 bits of the product of 32-bit numbers, which may be tensors or ints."""
    low, high = (a & 0xFFFF) * by, (a >> 16) * by
    return (high + (low >> 16)) >> 16 & WORD, low + ((high & 0xFFFF) << 16) & WORD


def random_words(seed, step, stream, group):
    """Returns four random words (Philox 4x32-10, src/engine/ops/philox.h)."""
    x = [group & WORD, group >> 32, stream + 0 * group, step + 0 * group]
    key = [seed & WORD, seed >> 32]
    for _ in range(10):
        high0, low0 = product(x[0], 0xD2511F53)
        high1, low1 = product(x[2], 0xCD9E8D57)
        x = [high1 ^ x[1] ^ key[0], low1, high0 ^ x[3] ^ key[1], low0]
        key = [key[0] + 0x9E3779B9 & WORD, key[1] + 0xBB67AE85 & WORD]
    return x


def tokens_of(spec, step, device):
    """Returns Ridgeline's synthetic tokens of a step (src/engine/train/data.cc), and the token that follows each."""
    each = spec["seq_length"] + 1
    sequence = torch.arange(spec["batch_size"], device=device)[:, None]
    place = torch.arange(0, each, 4, device=device)[None, :]
    words = random_words(spec["seed"], step, 0xDA7A0000, (sequence * each + place) // 4)
    tokens = (torch.stack(words, dim=-1).flatten(1)[:, :each] * spec["vocab"]) >> 32
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def batches_of(spec, first, count, device):
    if spec["family"] == "llama":
        return [tokens_of(spec, step, device) for step in range(first, first + count)]
    shape = (spec["batch_size"], spec["seq_length"], spec["hidden"])
    # The first block's input requires a gradient, too. Otherwise that block would be compiled a second time.
    return [(torch.rand(*shape, device=device, dtype=torch.bfloat16).requires_grad_(), None) for _ in range(count)]


class Watch:
    """Prints the card's mean power and clock, which NVML reports. Reads the clock ten times a second. Needs NVML to print."""

    def __init__(self):
        self.power, self.clock, self.over = [], [], threading.Event()
        try:
            self.nvml, self.card = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
            begun = self.nvml.nvmlInit_v2() == 0
            self.works = begun and self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.card)) == 0
        except OSError:
            self.works = False
        self.thread = threading.Thread(target=self.read_clock, daemon=True)

    def energy(self):
        """Returns the card's energy in joules since the driver was loaded."""
        millijoules = ctypes.c_ulonglong()
        self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.card, ctypes.byref(millijoules))
        return millijoules.value * 1e-3

    def read_clock(self):
        mhz = ctypes.c_uint()
        while not self.over.wait(0.1):
            if self.nvml.nvmlDeviceGetClockInfo(self.card, 1, ctypes.byref(mhz)) == 0:
                self.clock.append(mhz.value)

    def __enter__(self):
        if self.works:
            self.begin, self.before = time.perf_counter(), self.energy()
            self.thread.start()
        return self

    def __exit__(self, *_):
        if not self.works:
            return
        seconds, joules = time.perf_counter() - self.begin, self.energy() - self.before
        self.over.set()
        self.thread.join()
        print(f"power {joules / seconds:.1f} W over {seconds:.1f} s")
        if self.clock:
            print(f"clock {sum(self.clock) / len(self.clock):.0f} MHz")


def train(spec, compiled, attention, device):
    cuda = device == "cuda"
    if cuda:
        torch.backends.cuda.enable_flash_sdp(attention == "flash")
        torch.backends.cuda.enable_cudnn_sdp(attention == "cudnn")
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_math_sdp(False)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = Model(spec)
    torch.set_default_dtype(torch.float32)
    print(sum(p.numel() for p in model.parameters()), "parameters", flush=True)
    if compiled:
        model.compile_blocks()

    def reset():
        """Starts training from the beginning. Returns a new optimizer."""
        torch.manual_seed(spec["seed"])
        model.reset()
        return torch.optim.AdamW(model.parameters(), lr=spec["learning_rate"], betas=(spec["beta1"], spec["beta2"]),
                                 eps=spec["epsilon"], weight_decay=spec["weight_decay"], fused=True)

    def step(optimizer, batch):
        data, targets = batch
        loss = model(data, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        data.grad = None
        return loss.detach()

    measure = spec.get("measure", {})
    optimizer, begin = reset(), None
    # While the first steps compile, the card does nothing, so the time of the load begins after them.
    while cuda and (begin is None or time.perf_counter() - begin < measure.get("warmup_seconds", 5)):
        for batch in batches_of(spec, 1, 2, device):
            step(optimizer, batch)
        torch.cuda.synchronize()
        begin = begin or time.perf_counter()
    del optimizer
    optimizer = reset()

    # The program waits for each warm-up step. The measured steps queue behind each other, as in training.
    warm, block = spec["warmup_steps"], spec["steps"] * spec["repeats"]
    ms, losses = [], []
    for batch in batches_of(spec, 1, warm, device):
        begin = time.perf_counter()
        losses.append(step(optimizer, batch).item())
        ms.append(1e3 * (time.perf_counter() - begin))
    if cuda:
        torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        with Watch():
            while not ms[warm:] or time.perf_counter() - begin < measure.get("seconds", 10):
                batches = batches_of(spec, len(ms) + 1, block, device)
                marks = [torch.cuda.Event(enable_timing=True) for _ in range(block + 1)]
                marks[0].record()
                for batch, mark in zip(batches, marks[1:]):
                    losses.append(step(optimizer, batch))
                    mark.record()
                torch.cuda.synchronize()
                ms += [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
        print(f"allocated at most {torch.cuda.max_memory_allocated()} bytes, "
              f"reserved {torch.cuda.max_memory_reserved()} bytes")
    else:
        for batch in batches_of(spec, warm + 1, block, device):
            begin = time.perf_counter()
            losses.append(step(optimizer, batch))
            ms.append(1e3 * (time.perf_counter() - begin))
    for number, (one, loss) in enumerate(zip(ms, losses)):
        print(f"step {number}: {one:.4f} ms, loss {float(loss):.5f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, help="a canonical RunSpec (JSON)")
    parser.add_argument("--attention", choices=["flash", "cudnn"], default="flash")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: for a test of this program")
    args = parser.parse_args()
    with open(args.spec, encoding="utf-8") as file:
        spec = json.load(file)
    print("torch", torch.__version__, flush=True)
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no such device: PyTorch finds no GPU")
    train(spec, args.compile, args.attention, args.device)


if __name__ == "__main__":
    main()
