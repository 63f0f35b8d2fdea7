// Runs a reference case, computed elsewhere in float64, and compares.
//
// A case is CASE.json with CASE.safetensors. The JSON has `model` (family, layers, hidden, heads, kv_heads, ffn, vocab,
// seq, batch, norm_eps, and rope_theta or max_seq; head_dim if it is not hidden / heads), `loss`, `optimizer` (name,
// lr, beta1, beta2, eps, weight_decay) and `losses`, one before each optimizer step. The tensors are tokens and targets
// (batch, seq), logits (batch, seq, vocab), and weight/NAME, grad/NAME and weight_after/NAME for every parameter. A
// head without lm_head.weight is tied.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/train/training_device.h"

namespace ridgeline::engine {

struct VerifyLine {
  std::string what;
  double error = 0;
  double bound = 0;
  bool ok() const { return error <= bound; }  // false for NaN
};

struct VerifyReport {
  std::string name;
  std::vector<VerifyLine> lines;  // loss, logits, every gradient, loss series, every weight
  bool ok() const;
};

struct VerifyOptions {
  std::string precision = "fp32";  // or tf32, or one of 16 bits, with fp32 master weights
  std::string checkpointing = "none";
  std::string device = "cpu";
  std::string gpu = "none";
};

// Throws Error(kInvalidInput) for a case that cannot be read, and as OpenDevice does.
VerifyReport Verify(const std::filesystem::path& case_json, const VerifyOptions& options,
                    const DeviceMaker& open_cuda = {});

}  // namespace ridgeline::engine
