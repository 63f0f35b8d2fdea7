// How another trainer goes about the same step: what of the clock's and the planner's answers is its own. Each is a
// file, frameworks/NAME.yaml, with the source of each figure (docs/frameworks.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ridgeline/run.h"

namespace ridgeline {

// The shares of a device's ceilings and bandwidths that steps reach. A device may state its own (`efficiency`), and so
// may a framework. These are for the others. Half of the published rows set four of them
// (tests/predict/published_test.cc).
struct Efficiency {
  double products = 0.83;      // of the ceiling of their format, by products of a good shape, of 16 bits: set
  double products_fp8 = 0.84;  // of 8: set
  double products_fp4 = 0.60;  // of 4: assumed
  double attention = 0.50;     // of the ceiling of 16 bits; the backward pass gets three quarters of that: set
  double memory = 0.90;        // of the bandwidth: H200s were seen to copy 4.3 of 4.8 TB/s
  double link = 0.80;          // assumed
  double network = 0.80;       // assumed
  double power = 0.83;         // exponent: what a GPU held to a share of its rated power keeps of its ceilings: set
};

// This engine's: of ten steps of an H200 (docs/prediction-accuracy.md), which are no forecast of others.
inline constexpr Efficiency kEfficiencyHere = {
    .products = 0.95, .products_fp8 = 0.97, .attention = 0.66, .memory = 0.70};

// Within these factors, either way, are 90 of 100 published figures of which this was not known to what predicted them
// (docs/prediction-accuracy.md): the program's own rows but for the GPU; rows of the GPU, but none of the program;
// neither. And of this engine on the one GPU that set its shares.
inline constexpr double kSpreadOfGpu = 1.24;
inline constexpr double kSpreadOfProgram = 1.21;
inline constexpr double kSpreadOfBoth = 1.34;
inline constexpr double kSpreadHere = 1.11;
// The GPUs of those rows, and the one that ran this engine.
inline constexpr std::string_view kGpusOfRows[] = {"a100", "b200", "gb200", "gb300", "h100", "h100-hbm2e", "h200"};
inline constexpr std::string_view kGpuHere = "h200";

// By how much GPUs that do the same differ, as a standard deviation: a step waits for the slowest of its ranks. Fitted
// to published ladders of 8 to 2048 GPUs (docs/prediction-accuracy.md), so it stands for all that a ladder loses beyond
// what its collectives take: contention, imperfect overlap and the network's longer ways, too.
inline constexpr double kStraggle = 0.019;

// The parts of a layer's forward pass that the backward pass computes again.
struct Recomputed {
  double products = 1;
  double attention = 1;
  double passes = 1;
  bool any() const { return products + attention + passes > 0; }
};

// An amount for each parameter or for each number of an activation: so many bytes, or so many numbers of the working
// precision (2 bytes in 16 bits, 4 in fp32).
struct Amount {
  double value = 0;
  bool numbers = false;
  double Bytes(double bytes_of_number) const { return numbers ? value * bytes_of_number : value; }
};

// What a layer keeps for its backward pass, for each token: numbers for each column of the residual stream (hidden), of
// keys or values (kv) and of the MLP (ffn, gated_ffn where it has three products). Operands are what a product reads,
// kept in the product's own format.
struct KeptOfLayer {
  double hidden = 0, kv = 0, ffn = 0, gated_ffn = 0;
  double hidden_operands = 0, ffn_operands = 0;
  double dropout_masks = 0;  // bytes for each column of hidden, where there is dropout
};

// What a GPU holds, as its file counts it. `shard: optimizer` splits master and moments over the ranks, `gradients`
// these too, `full` all four.
struct FrameworkMemory {
  Amount weights, gradients, moments;
  Amount master;                 // fp32 weights beside those of 16 bits
  Amount buckets;                // of gradients that are reduced, without shards
  double gathered_layers = 1;    // layers whose weights are whole at once, with `shard: full`
  double reduced_layers = 0;     // layers whose gradients are whole at once, with `shard: full`
  bool splits_weights = false;   // with `shard: gradients` they are parts between steps, and whole in 16 bits in one
  bool gathers_head = false;     // embedding and head are whole when the loss is computed
  bool keeps_codes = false;      // codes of all quantized weights, whole, from the forward pass to the backward pass
  bool frees_gradients = false;  // there are none until the backward pass makes them
  KeptOfLayer kept, kept_selective;
  double logits = 0;    // bytes for each token and word of the vocabulary
  double reserved = 1;  // what the allocator takes, over what tensors need
  double fixed = 0;     // bytes beside: workspaces, communicators
};

// How far published rows back a framework's figures.
struct PublishedEvidence {
  int64_t rows = 0;               // 0: none, all is assumed
  double error = 0;               // mean of |predicted / published - 1| over rows held out
  double spread = 0;              // the factor within which 90 of 100 of them lie
  std::vector<std::string> gpus;  // as devices name them
  bool Backs(const std::string& gpu) const;
};

// What runs of a framework's trainer on a device's GPU teach of it (predict/known_runs.h).
struct Correction {
  double factor = 1;  // of the step's time
  int64_t runs = 0;
  std::optional<double> error;  // mean of |predicted / known - 1|, each run from the others; nothing: there is one
  double spread = 1;            // the factor within which 90 of 100 lie
  bool shares = false;          // the efficiency was learnt, and the factor is 1
  bool typed = false;           // somebody typed a figure that nothing shows
  std::string from;             // where the runs are from, in words
  std::string Text() const;
};

struct Framework {
  std::string name = "ridgeline";
  std::string about = "this engine";
  std::filesystem::path file;
  std::vector<std::string> trainers;                         // the definitions that it stands for
  std::map<std::string, std::vector<std::string>> supports;  // values of fields; one that is not there may be any
  std::string compile;                                       // the trainer's own field that has it compile the model
  Efficiency efficiency = kEfficiencyHere;
  std::string efficiency_from = "what they got of an H200";  // in words
  double passes = 1;  // how often it moves what passes over memory (all but products and attention) move here
  double straggle = kStraggle;
  double eager_passes = 0;                       // the same where it doesn't compile the model; 0: as `passes`
  double reduced_bytes = 4;                      // of a number of the gradients, on the wire
  double overlap = 1;                            // of a collective's time, what calls can hide
  double overlap_full = 1;                       // the same with `shard: full`
  double first_iteration_s = 0.2;                // what the first one takes more, where the device does not say
  std::string first_iteration_from;              // the source of that, in words; empty: it is assumed
  double start_s = 2;                            // before it, on a GPU; an H200's processes took one to three seconds
  std::map<std::string, Recomputed> recomputes;  // by policy: full, selective
  Recomputed again;                              // of the step that is priced
  int64_t replicas = 1;                          // of it: groups of ranks, each with a copy of what these share
  bool plans = true;                             // this engine: memory is what the planner finds
  FrameworkMemory memory;
  PublishedEvidence time_evidence;
  PublishedEvidence memory_evidence;
  std::optional<Correction> correction;  // of the device that is predicted on

  bool is_ours() const { return file.empty(); }
  // "estimated as NAME", with the published rows that back it on this GPU and their error, or that it is assumed; empty
  // of this engine.
  std::string Basis(const std::string& gpu) const;
  // The factor within which 90 of 100 of its steps on this GPU are predicted, as far as rows that were held out tell.
  double Spread(const std::string& gpu, int64_t ranks) const;
};

// Where their files are looked for, in order: `own`, frameworks/ of the current folder, the user's configuration, what
// ships.
std::vector<std::filesystem::path> FrameworkFolders(std::vector<std::filesystem::path> own = {});

// Throws Error(kInvalidInput) with every fault at its line. The file's stem is the framework's name.
Framework ParseFramework(std::string_view text, const std::filesystem::path& file);

// "ridgeline", or that of a file. Throws Error(kUsage) with the nearest where there is none.
Framework FindFramework(const std::string& name, const std::vector<std::filesystem::path>& folders);

// Which framework a point is predicted as: the one that is named for all, else that which lists its trainer.
class Frameworks {
 public:
  // Changes each of them.
  void ForEach(const std::function<void(Framework&)>& change);
  Frameworks() = default;  // this engine alone
  // `as`: of all points; empty: by their trainers. Throws as FindFramework and ParseFramework.
  explicit Frameworks(const std::vector<std::filesystem::path>& folders, const std::string& as = "");
  // `trainer`: "ridgeline" or a definition's name. nullptr: nobody knows this trainer's steps.
  const Framework* Of(const std::string& trainer) const;

 private:
  Framework ours_;
  std::optional<Framework> forced_;
  std::vector<Framework> others_;
};

// Why this framework's figures do not hold for a point, in a sentence; empty: they do.
std::string NotEstimated(const Framework& framework, const RunSpec& spec);

// The step of this engine that a point's time is counted from, and the framework with what of it holds for the point:
// what it computes again, and whether it compiles. The step's ranks are those that share what is split, and `replicas`
// says how many such groups there are: what counts ranks goes by the point itself. NotEstimated must be empty.
std::pair<RunSpec, Framework> AsPriced(const Framework& framework, const RunSpec& spec);

// The most that a GPU holds, in bytes. NotEstimated must be empty, and framework.plans false.
int64_t PeakBytes(const Framework& framework, const RunSpec& spec);

}  // namespace ridgeline
