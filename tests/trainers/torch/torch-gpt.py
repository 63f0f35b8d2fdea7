#!/usr/bin/python3
"""Trains a small GPT, with nanoGPT's arguments (--name=value), its iter line, and a checkpoint file in --out_dir.

The model is ridgeline's gpt: learned positions, LayerNorm, biases, GELU (tanh), a head that shares the embedding's
weights. It trains on random tokens.
"""

import math
import os
import pathlib
import sys
import time

import torch
from torch import nn

CONFIG = {"n_layer": 2, "n_head": 2, "n_embd": 64, "block_size": 64, "vocab_size": 256, "positions": 64,
          "batch_size": 1, "gradient_accumulation_steps": 1, "max_iters": 5, "learning_rate": 3e-4, "beta1": 0.9,
          "beta2": 0.95, "weight_decay": 0.1, "grad_clip": 0.0, "seed": 1234, "save_every": 0, "out_dir": "",
          "init_from": "scratch", "sleep_s": 0.0}


def read_arguments():
    for argument in sys.argv[1:]:
        name, equals, value = argument.removeprefix("--").partition("=")
        if not equals or name not in CONFIG:
            raise ValueError(f"Unknown config key: {name}")
        CONFIG[name] = type(CONFIG[name])(value)


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attn, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.fc, self.out = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def attend(self, x):
        batch, length, hidden = x.shape
        q, k, v = self.attn(x).view(batch, length, 3, self.heads, hidden // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(hidden // self.heads)
        above = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(above, float("-inf")).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x):
        x = x + self.attend(self.ln_1(x))
        up = self.fc(self.ln_2(x))
        gelu = 0.5 * up * (1 + torch.tanh(math.sqrt(2 / math.pi) * (up + 0.044715 * up**3)))
        return x + self.out(gelu)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        hidden = CONFIG["n_embd"]
        self.wte = nn.Embedding(CONFIG["vocab_size"], hidden)
        self.wpe = nn.Embedding(CONFIG["positions"], hidden)
        self.h = nn.ModuleList(Block(hidden, CONFIG["n_head"]) for _ in range(CONFIG["n_layer"]))
        self.ln_f = nn.LayerNorm(hidden)
        for embedding in (self.wte, self.wpe):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.ln_f(x) @ self.wte.weight.T
        return nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def main():
    read_arguments()
    torch.manual_seed(CONFIG["seed"])
    model = GPT()
    print(f"torch {torch.__version__}", flush=True)
    print(f"number of parameters: {sum(p.numel() for p in model.parameters()) / 1e6:.2f}M", flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["learning_rate"],
                                  betas=(CONFIG["beta1"], CONFIG["beta2"]), weight_decay=CONFIG["weight_decay"])
    begin = 0
    kept = pathlib.Path(CONFIG["out_dir"], "ckpt.pt") if CONFIG["out_dir"] else None
    if CONFIG["init_from"] == "resume":
        state = torch.load(kept)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        begin = state["iter_num"]
        print(f"Resuming training from {CONFIG['out_dir']} at iter {begin}", flush=True)
    for iteration in range(begin, CONFIG["max_iters"]):
        start = time.monotonic()
        loss = 0.0
        for _ in range(CONFIG["gradient_accumulation_steps"]):
            tokens = torch.randint(CONFIG["vocab_size"], (CONFIG["batch_size"], CONFIG["block_size"] + 1))
            part = model(tokens[:, :-1], tokens[:, 1:]) / CONFIG["gradient_accumulation_steps"]
            part.backward()
            loss += part.item()
        if CONFIG["grad_clip"] > 0:
            nn.utils.clip_grad_norm_(model.parameters(), CONFIG["grad_clip"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        time.sleep(CONFIG["sleep_s"])
        print(f"iter {iteration}: loss {loss:.4f}, time {(time.monotonic() - start) * 1000:.2f}ms, mfu -100.00%",
              flush=True)
        if kept and CONFIG["save_every"] and (iteration + 1) % CONFIG["save_every"] == 0:
            kept.parent.mkdir(parents=True, exist_ok=True)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": iteration + 1}
            torch.save(state, f"{kept}.new")
            os.replace(f"{kept}.new", kept)


if __name__ == "__main__":
    main()
