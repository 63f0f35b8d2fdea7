#!/usr/bin/env python3
"""Trains the llama or gpt model of a RunSpec with PyTorch on the CPU and prints its figures as one JSON line.

The shapes, the optimizer and the work of a step are ridgeline-train's: fused q, k, v and gate, up products, RMSNorm and
rotary halves for llama, LayerNorm, biases and tanh GELU for gpt, a tied or a separate head, AdamW on every parameter, the
loss over every token. `--numbers` says how a bf16 run keeps its numbers:

  autocast  fp32 parameters and moments, bf16 products (torch.autocast)
  pure      parameters, gradients and moments in bf16. This favours PyTorch: half of ridgeline's state, and no fp32
            master weights.

`--attention sdpa` is PyTorch's fused scaled_dot_product_attention. `--attention plain` is two batched products around a
softmax. It exists because PyTorch's fused kernel for CPUs multiplies bf16 without the CPU's bf16 instructions.
"""

import argparse
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

# Fields that this program does not implement, and the only value that it accepts for each.
ONLY = {"checkpointing": "none", "communicator": "self", "data": "synthetic", "device": "cpu", "dropout": 0,
        "grad_accumulation": 1, "grad_clip": 0, "optimizer": "adamw", "ranks": 1, "schedule": "constant",
        "shard": "none", "state_precision": "fp32"}


class Attention(nn.Module):
    def __init__(self, spec, bias, mask):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = spec["heads"], spec["kv_heads"], spec["head_dim"]
        self.sizes = [n * self.head_dim for n in (self.heads, self.kv_heads, self.kv_heads)]
        self.qkv = nn.Linear(spec["hidden"], sum(self.sizes), bias=bias)
        self.out = nn.Linear(self.heads * self.head_dim, spec["hidden"], bias=bias)
        self.mask = mask  # (T, T), added to the scores; None: the fused attention

    def forward(self, x, rope):  # x (B, T, C)
        batch, tokens, _ = x.shape
        q, k, v = (part.view(batch, tokens, -1, self.head_dim).transpose(1, 2)
                   for part in self.qkv(x).split(self.sizes, dim=-1))  # (B, H, T, D)
        if rope is not None:
            q, k = rotate(q, *rope), rotate(k, *rope)
        if self.kv_heads != self.heads:
            k, v = (x.repeat_interleave(self.heads // self.kv_heads, dim=1) for x in (k, v))
        if self.mask is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q * self.head_dim**-0.5) @ k.transpose(-1, -2)
            y = F.softmax(scores + self.mask, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, tokens, -1))


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class SwiGlu(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.up = nn.Linear(spec["hidden"], 2 * spec["ffn"], bias=False)
        self.down = nn.Linear(spec["ffn"], spec["hidden"], bias=False)

    def forward(self, x):
        gate, up = self.up(x).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)


class Gelu(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.up = nn.Linear(spec["hidden"], spec["ffn"])
        self.down = nn.Linear(spec["ffn"], spec["hidden"])

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, spec, llama, norm, mask):
        super().__init__()
        self.norm1, self.attention = norm(), Attention(spec, bias=not llama, mask=mask)
        self.norm2, self.mlp = norm(), SwiGlu(spec) if llama else Gelu(spec)

    def forward(self, x, rope):
        x = x + self.attention(self.norm1(x), rope)
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    """Maps ids (B, T) to hidden states (B, T, C), which the head turns into logits."""

    def __init__(self, spec, dtype, plain_attention):
        super().__init__()
        llama, hidden = spec["family"] == "llama", spec["hidden"]
        norm = lambda: (nn.RMSNorm if llama else nn.LayerNorm)(hidden, eps=spec["norm_eps"])
        self.embedding = nn.Embedding(spec["vocab"], hidden)
        self.positions = None if llama else nn.Embedding(spec["positions"], hidden)
        seq = spec["seq_length"]
        mask = torch.full((seq, seq), float("-inf"), dtype=dtype).triu(1) if plain_attention else None
        self.blocks = nn.ModuleList(Block(spec, llama, norm, mask) for _ in range(spec["layers"]))
        self.norm = norm()
        self.head = nn.Linear(hidden, spec["vocab"], bias=False)
        if llama:
            half = torch.arange(0, spec["head_dim"], 2) / spec["head_dim"]
            angle = torch.outer(torch.arange(seq), spec["rope_theta"] ** -half).repeat(1, 2)
            self.register_buffer("cos", angle.cos())  # (T, D)
            self.register_buffer("sin", angle.sin())
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        if spec["tied_head"]:
            self.head.weight = self.embedding.weight

    def forward(self, ids):
        x = self.embedding(ids)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        rope = (self.cos, self.sin) if self.positions is None else None
        for block in self.blocks:
            x = block(x, rope)
        return self.norm(x)


def loss_and_backward(body, head_loss, ids, targets, chunk, autocast):
    """Returns the mean loss and adds the gradients. With `chunk`, logits exist for that many tokens, as in ridgeline."""
    with autocast:
        hidden = body(ids).flatten(0, 1)
        targets = targets.flatten()
        if not chunk:
            loss = head_loss(hidden, targets) / len(targets)
    if not chunk:
        loss.backward()
        return loss.item()
    total, leaf = 0.0, hidden.detach().requires_grad_()
    for first in range(0, len(targets), chunk):
        with autocast:
            loss = head_loss(leaf[first : first + chunk], targets[first : first + chunk]) / len(targets)
        loss.backward()
        total += loss.item()
    hidden.backward(leaf.grad)
    return total


def peak_rss_bytes():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def train(spec, numbers, compiled, attention, chunk):
    torch.manual_seed(spec["seed"])
    model = Model(spec, torch.float32 if numbers == "fp32" else torch.bfloat16, attention == "plain")
    if numbers == "pure":
        model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=spec["learning_rate"], betas=(spec["beta1"], spec["beta2"]),
                                  eps=spec["epsilon"], weight_decay=spec["weight_decay"], fused=True)
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=numbers == "autocast")
    head_loss = lambda x, y: F.cross_entropy(model.head(x), y, reduction="sum")
    body = model
    if compiled:
        body, head_loss = torch.compile(model, dynamic=False), torch.compile(head_loss, dynamic=False)
    shape = (spec["batch_size"], spec["seq_length"] + 1)
    step_ns, losses = [], []
    for _ in range(spec["warmup_steps"] + spec["steps"] * spec["repeats"]):
        begin = time.monotonic_ns()
        tokens = torch.randint(spec["vocab"], shape)
        losses.append(loss_and_backward(body, head_loss, tokens[:, :-1], tokens[:, 1:], chunk, autocast))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step_ns.append(time.monotonic_ns() - begin)
    return {"step_ns": step_ns, "loss": losses, "rss_peak_bytes": peak_rss_bytes(),
            "parameters": sum(p.numel() for p in model.parameters())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", required=True, help="a canonical RunSpec (JSON)")
    parser.add_argument("--numbers", choices=["fp32", "autocast", "pure"], required=True)
    parser.add_argument("--compile", action="store_true", help="torch.compile the model and the loss")
    parser.add_argument("--attention", choices=["plain", "sdpa"], default="plain")
    parser.add_argument("--chunk", type=int, default=0, help="the number of tokens whose logits exist at a time; 0: all")
    args = parser.parse_args()
    with open(args.spec, encoding="utf-8") as file:
        spec = json.load(file)
    for field, value in ONLY.items():
        if spec[field] != value:
            sys.exit(f"train.py: {field} is {spec[field]}; only {value} can be compared")
    print(json.dumps(train(spec, args.numbers, args.compile, args.attention, args.chunk)))


if __name__ == "__main__":
    main()
