// The parameters of a model: their names, sizes, roles and initial values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/comm/mesh.h"
#include "ridgeline/run.h"

namespace ridgeline::engine {

// A named matrix inside a parameter: rows [first_row, first_row + rows).
struct ParameterPart {
  std::string name;  // Hugging Face's name (TransformerEngine's for stack)
  int64_t first_row = 0;
  int64_t rows = 0;
};

enum class Init : uint8_t { kNormal, kOnes, kZeros };

// What a parameter is to the products that read it: the side along which tensor-parallel ranks share it (Shoeybi et
// al., "Megatron-LM", 2019, section 3).
enum class Role : uint8_t {
  kReplicated,      // every rank has all of it, and the whole gradient: positions, biases of row-parallel layers
  kNorm,            // every rank has all of it. Its gradient sums over tokens, which ranks may share
  kColumnParallel,  // a linear layer's weight or bias, by outputs: each rank has those of its heads or units
  kRowParallel,     // a linear layer's weight, by inputs: the ranks' products are summed
  kVocabulary,      // a row for each token of the vocabulary: each rank has successive ones
};

// Rows or columns of a whole parameter, [first, first + count).
struct Slice {
  int64_t first = 0;
  int64_t count = 0;
};

// The rows or the columns of a parameter that one rank of a tensor-parallel group has: a matrix of its own, in the
// order of the whole one. Elements are numbered row by row, in both.
class Share {
 public:
  Share() = default;
  // All of a (rows, cols) parameter.
  Share(int64_t rows, int64_t cols) : Share(rows, cols, false, {{0, rows}}) {}
  // REQUIRES: slices ascend and do not overlap.
  Share(int64_t rows, int64_t cols, bool of_columns, std::vector<Slice> slices);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t elements() const { return rows_ * cols_; }
  bool is_whole() const { return elements() == whole_rows_ * whole_cols_; }

  // The number of its elements before element `whole` of the whole parameter.
  int64_t Before(int64_t whole) const;
  // Returns the place in the whole parameter of one of its elements.
  int64_t InWhole(int64_t element) const;
  // Calls fn(element, whole, count) for each run of its elements [first, last) that is a run in the whole, too.
  template <typename Fn>
  void ForRuns(int64_t first, int64_t last, const Fn& fn) const {
    while (first < last) {
      const int64_t count = std::min(last - first, RunAt(first));
      fn(first, InWhole(first), count);
      first += count;
    }
  }

  // Rows that `copies` successive ranks of the group have alike, though each has a gradient of its own heads: keys and
  // values, if there are more ranks than heads of them.
  Slice copied = {};
  int64_t copies = 1;

 private:
  // The elements from this one on, itself included, that follow each other in the whole.
  int64_t RunAt(int64_t element) const;

  int64_t whole_rows_ = 0, whole_cols_ = 0;
  int64_t rows_ = 0, cols_ = 0;
  bool of_columns_ = false;
  std::vector<Slice> slices_;  // of elements of one row if of_columns_, else of all elements
};

// One matrix or vector (one row) as it is stored in files. Matrices that are always multiplied together (llama's q, k
// and v; gate and up) are one parameter with several parts. A rank keeps, gathers and updates its share of it.
struct Parameter {
  std::vector<ParameterPart> parts;
  int64_t rows = 0;
  int64_t cols = 0;
  Init init = Init::kNormal;
  Role role = Role::kReplicated;
  int64_t layer = -1;  // -1: outside the layers
  Share share = {};    // of the rank whose shape this is
  int64_t elements() const { return rows * cols; }
};

// Returns a part's shape as it is stored: (rows, cols), or (size) for a vector.
std::vector<int64_t> ShapeOfPart(const Parameter& parameter, const ParameterPart& part);

// The members `weight` and `bias` are indices into ModelShape::parameters; -1 if there is none.
struct NormParameters {
  int weight = -1;  // (1, hidden)
  int bias = -1;
};

// A linear layer of a block: y = x Wᵀ + b. Inputs and outputs are those of this rank's share.
struct LinearParameters {
  int weight = -1;
  int bias = -1;
  int64_t inputs = 0;
  int64_t outputs = 0;
  Role role = Role::kColumnParallel;  // the weight's: by outputs or by inputs
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

// Returns the model as a rank has it. REQUIRES: the spec is canonical and checked.
ModelShape ShapeOf(const RunSpec& spec, int64_t rank = 0);

}  // namespace ridgeline::engine
