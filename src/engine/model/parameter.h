// The parameters of a model: their names, sizes and initial values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

// A named matrix inside a parameter: rows [first_row, first_row + rows).
struct ParameterPart {
  std::string name;  // Hugging Face's name (TransformerEngine's for stack)
  int64_t first_row = 0;
  int64_t rows = 0;
};

enum class Init : uint8_t { kNormal, kOnes, kZeros };

// One matrix or vector (one row) as it is stored, gathered and updated. Matrices that are always multiplied together
// (llama's q, k and v; gate and up) are one parameter with several parts.
struct Parameter {
  std::vector<ParameterPart> parts;
  int64_t rows = 0;
  int64_t cols = 0;
  Init init = Init::kNormal;
  int64_t elements() const { return rows * cols; }
};

// Returns a part's shape as it is stored: (rows, cols), or (size) for a vector.
std::vector<int64_t> ShapeOfPart(const Parameter& parameter, const ParameterPart& part);

// Indices into ModelShape::parameters; -1 if the family has none.
struct LayerParameters {
  int norm1 = -1, norm1_bias = -1;  // (1, hidden)
  int qkv = -1, qkv_bias = -1;      // (heads + 2 kv_heads) * head_dim outputs
  int out = -1, out_bias = -1;      // attention projection
  int norm2 = -1, norm2_bias = -1;
  int up = -1, up_bias = -1;      // llama: gate and up; else FC1
  int down = -1, down_bias = -1;  // FC2
};

struct ModelShape {
  std::vector<Parameter> parameters;
  std::vector<LayerParameters> layers;
  int embedding = -1;  // (vocab, hidden)
  int positions = -1;  // (positions, hidden)
  int final_norm = -1, final_norm_bias = -1;
  int head = -1;                // (vocab, hidden); the embedding if tied
  bool weights_in_out = false;  // linear weights are (in, out), as in gpt's Conv1D; else (out, in)
  bool rotary = false;          // queries and keys are rotated by their position
  bool gated = false;           // the feed-forward network's activation is SwiGLU; else GELU
  double init_std = 0.02;
  // Every parameter once, in order: each layer's parameters together, each other one alone. Ranks move a group at once.
  std::vector<std::vector<int>> groups;
};

// REQUIRES: the spec is canonical and checked.
ModelShape ShapeOf(const RunSpec& spec);

}  // namespace ridgeline
