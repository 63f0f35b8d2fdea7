// The parameters of a model: their names, sizes, roles and initial values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline::engine {

// A named matrix inside a parameter: rows [first_row, first_row + rows).
struct ParameterPart {
  std::string name;  // Hugging Face's name (TransformerEngine's for stack)
  int64_t first_row = 0;
  int64_t rows = 0;
};

enum class Init : uint8_t { kNormal, kOnes, kZeros };

// What a parameter is to the products that read it: the side along which ranks could share it.
enum class Role : uint8_t {
  kReplicated,      // every rank needs all of it: norms, positions, and biases of row-parallel layers
  kColumnParallel,  // a linear layer's weight or bias, by outputs: each rank could have the outputs of its heads or
                    // units
  kRowParallel,     // a linear layer's weight, by inputs: the ranks' products would be summed
  kVocabulary,      // a row for each token of the vocabulary
};

// One matrix or vector (one row) as it is stored, gathered and updated. Matrices that are always multiplied together
// (llama's q, k and v; gate and up) are one parameter with several parts.
struct Parameter {
  std::vector<ParameterPart> parts;
  int64_t rows = 0;
  int64_t cols = 0;
  Init init = Init::kNormal;
  Role role = Role::kReplicated;
  int64_t layer = -1;  // -1: outside the layers
  int64_t elements() const { return rows * cols; }
};

// Returns a part's shape as it is stored: (rows, cols), or (size) for a vector.
std::vector<int64_t> ShapeOfPart(const Parameter& parameter, const ParameterPart& part);

// The members `weight` and `bias` are indices into ModelShape::parameters; -1 if there is none.
struct NormParameters {
  int weight = -1;  // (1, hidden)
  int bias = -1;
};

// A linear layer of a block: y = x Wᵀ + b.
struct LinearParameters {
  int weight = -1;
  int bias = -1;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t number = 0;  // among all linear layers of the blocks: selects its scales and its streams of random numbers
  // Outputs [first, first + count) whose bias has no gradient.
  struct {
    int64_t first = 0;
    int64_t count = 0;
  } idle_bias = {};
};

enum class SublayerKind : uint8_t { kAttention, kMlp };

// A sublayer adds dropout(branch(norm(x))) to x. The branch has a product at each end.
struct SublayerParameters {
  SublayerKind kind = SublayerKind::kAttention;
  int64_t number = 0;  // among all sublayers of the blocks: selects its stream of dropout
  NormParameters norm;
  LinearParameters in;   // attention: (heads + 2 kv_heads) * head_dim outputs; MLP: gate and up, or FC1
  LinearParameters out;  // attention's projection; MLP: down, or FC2
};

enum class MlpActivation : uint8_t { kGelu, kSwiGlu };

struct ModelShape {
  std::vector<Parameter> parameters;
  std::vector<std::vector<SublayerParameters>> layers;  // the sublayers of each layer, in order
  int64_t sublayers = 0;                                // of all layers
  int64_t linears = 0;                                  // of all layers
  int embedding = -1;                                   // (vocab, hidden)
  int positions = -1;                                   // (positions, hidden)
  NormParameters final_norm;
  int head = -1;                // (vocab, hidden); the embedding if tied
  bool weights_in_out = false;  // linear weights are (in, out), as in gpt's Conv1D; else (out, in)
  bool rotary = false;          // queries and keys are rotated by their position
  MlpActivation activation = MlpActivation::kGelu;
  double init_std = 0.02;
  // Every parameter once, in order: each layer's parameters together, each other one alone. Ranks move a group at once.
  std::vector<std::vector<int>> groups;
};

// REQUIRES: the spec is canonical and checked.
ModelShape ShapeOf(const RunSpec& spec);

}  // namespace ridgeline::engine
