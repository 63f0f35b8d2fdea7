#!/usr/bin/env python3
"""Trains a llama or gpt on random tokens with Hugging Face's own Trainer, and prints that trainer's output.

A sweep whose trainer is hf-trainer (hf-trainer.yaml) starts it inside the folder that has PyTorch. Its flags are those
of TrainingArguments and those for the model's shape.
"""

import argparse

import torch
import transformers


class RandomTokens(torch.utils.data.Dataset):
    def __init__(self, count, length, vocabulary, seed):
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(vocabulary, (count, length), generator=generator)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def model_of(args):
    if args.family == "gpt":
        config = transformers.GPT2Config(
            n_layer=args.layers, n_embd=args.hidden, n_head=args.heads, n_inner=args.ffn, vocab_size=args.vocab,
            n_positions=args.positions, resid_pdrop=args.dropout, embd_pdrop=args.dropout, attn_pdrop=0.0,
            tie_word_embeddings=args.tied, use_cache=False)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.LlamaConfig(
        num_hidden_layers=args.layers, hidden_size=args.hidden, num_attention_heads=args.heads,
        num_key_value_heads=args.kv_heads, intermediate_size=args.ffn, vocab_size=args.vocab,
        max_position_embeddings=args.block_size, tie_word_embeddings=args.tied, rope_theta=args.rope_theta,
        use_cache=False)
    return transformers.LlamaForCausalLM(config)


def arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--build", help="the build folder, which inside.sh passes; unused")
    parser.add_argument("--family", choices=["llama", "gpt"])
    for name in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "positions", "block_size", "max_steps",
                 "per_device_train_batch_size", "gradient_accumulation_steps", "warmup_steps", "seed"):
        parser.add_argument("--" + name, type=int)
    for name in ("dropout", "learning_rate", "weight_decay", "adam_beta1", "adam_beta2", "max_grad_norm", "rope_theta"):
        parser.add_argument("--" + name, type=float)
    parser.add_argument("--lr_scheduler_type", choices=["constant", "cosine"])
    parser.add_argument("--output_dir")
    parser.add_argument("--gradient_checkpointing", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--tied", action="store_true")
    return parser.parse_args()


def main():
    args = arguments()
    transformers.set_seed(args.seed)
    model = model_of(args)
    print(f"transformers {transformers.__version__}", flush=True)
    print(f"  Number of trainable parameters = {model.num_parameters(only_trainable=True):,}", flush=True)
    training = transformers.TrainingArguments(
        output_dir=args.output_dir, max_steps=args.max_steps, logging_steps=1, save_strategy="no", report_to=[],
        disable_tqdm=True, use_cpu=True, bf16=args.bf16, seed=args.seed,
        per_device_train_batch_size=args.per_device_train_batch_size,
        gradient_accumulation_steps=args.gradient_accumulation_steps, learning_rate=args.learning_rate,
        weight_decay=args.weight_decay, adam_beta1=args.adam_beta1, adam_beta2=args.adam_beta2,
        max_grad_norm=args.max_grad_norm, lr_scheduler_type=args.lr_scheduler_type, warmup_steps=args.warmup_steps,
        gradient_checkpointing=args.gradient_checkpointing, logging_nan_inf_filter=False)
    count = args.max_steps * args.per_device_train_batch_size * args.gradient_accumulation_steps
    tokens = RandomTokens(count, args.block_size, args.vocab, args.seed)
    transformers.Trainer(model=model, args=training, train_dataset=tokens).train()


if __name__ == "__main__":
    main()
