#!/usr/bin/python3
"""The workload of NVIDIA's fsdp.py in plain PyTorch on processors: a stack of layers, in data-parallel ranks over gloo.

Its flags and the lines it prints are fsdp.py's, as far as they apply here. torchrun starts it, or anything else that
sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
"""

import argparse
import os
import resource
import sys
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    """LayerNorm, attention, residual; LayerNorm, MLP, residual: with biases, GELU and dropout."""

    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.attention_norm = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.projection = nn.Linear(hidden, hidden)
        self.mlp_norm = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def attend(self, x):
        batch, length, hidden = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (hidden // self.heads) ** 0.5
        above = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(above, float("-inf")).softmax(-1)
        return self.projection((weights @ v).transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x):
        drop = nn.functional.dropout
        x = x + drop(self.attend(self.attention_norm(x)), self.dropout, self.training)
        mlp = self.down(nn.functional.gelu(self.up(self.mlp_norm(x))))
        return x + drop(mlp, self.dropout, self.training)


class Stack(nn.Module):
    def __init__(self, args):
        super().__init__()
        hidden = args.num_heads * args.head_dim
        self.layers = nn.ModuleList(Layer(hidden, args.num_heads, args.dropout) for _ in range(args.num_layers))
        self.recompute = args.checkpoint_layer

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x) if self.recompute and self.training else layer(x)
        return x


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seq-length", type=int, default=1048)
    parser.add_argument("--num-heads", type=int, default=16)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--num-iters", type=int, default=5)
    parser.add_argument("--num-layers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--checkpoint-layer", action="store_true")
    parser.add_argument("--precision", choices=["fp32"], default="fp32")
    return parser.parse_args()


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)

    def say(words):
        if rank == 0:
            print(f"[GPU-0] {words}", flush=True)

    say(f"WORLD_SIZE = {world}")
    say(f"Using precision preset: {args.precision}")
    say(f"torch {torch.__version__}")
    stack = Stack(args)
    say(f"parameters: {sum(p.numel() for p in stack.parameters()):,}")
    model = nn.parallel.DistributedDataParallel(stack)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    begin = time.monotonic()
    for _ in range(args.num_iters):
        x = torch.rand(args.batch_size, args.seq_length, args.num_heads * args.head_dim, requires_grad=True)
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    seconds = time.monotonic() - begin
    say(f"Training Time: {seconds}s")
    say(f"Avg. Iter. Time: {seconds / args.num_iters}s")
    say(f"Peak Memory Use: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 * 1e-6}MBs")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
