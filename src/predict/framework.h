// Frameworks: how another trainer's step differs from ours in time and memory. Each is a file, frameworks/NAME.yaml,
// with the source of each figure (docs/frameworks.md).
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

namespace ridgeline::predict {

// The shares of a device's peaks and bandwidths that steps reach. A device or a framework may state its own
// (`efficiency`). These are the defaults. "fitted": half of the published rows set it
// (tests/predict/published_test.cc).
struct Efficiency {
  double products = 0.83;      // 16-bit products of a good shape, share of their peak: fitted
  double products_fp8 = 0.84;  // 8-bit products: fitted
  double products_fp4 = 0.60;  // 4-bit products: assumed
  double attention = 0.50;     // share of the 16-bit peak; the backward pass reaches three quarters of it: fitted
  double memory = 0.90;        // share of the bandwidth: H200s copied 4.3 of 4.8 TB/s
  double link = 0.80;          // assumed
  double network = 0.80;       // assumed
  double power = 0.83;         // at share s of its rated power, a GPU keeps s^power of its peaks: fitted
};

// This engine's, from ten steps on an H200 (docs/prediction-accuracy.md). They do not hold for other trainers.
inline constexpr Efficiency kEfficiencyHere = {
    .products = 0.95, .products_fp8 = 0.97, .attention = 0.66, .memory = 0.70};

// Factors within which 90 of 100 published figures were predicted (docs/prediction-accuracy.md), if the fit knew no
// rows of the GPU; no rows of the program; neither. kSpreadHere: this engine on the one GPU that set its shares.
inline constexpr double kSpreadOfGpu = 1.24;
inline constexpr double kSpreadOfProgram = 1.21;
inline constexpr double kSpreadOfBoth = 1.34;
inline constexpr double kSpreadHere = 1.11;
// The GPUs of the published rows, and the one that ran this engine.
inline constexpr std::string_view kGpusOfRows[] = {"a100", "b200", "gb200", "gb300", "h100", "h100-hbm2e", "h200"};
inline constexpr std::string_view kGpuHere = "h200";

// Relative standard deviation of the step time among equal GPUs; a step waits for the slowest rank. Fitted to published
// ladders of 8 to 2048 GPUs (docs/prediction-accuracy.md). So it covers all losses beyond the collectives' own time:
// contention, imperfect overlap and longer network paths, too.
inline constexpr double kStraggle = 0.019;

// The shares of a layer's forward pass that the backward pass computes again.
struct Recomputed {
  double products = 1;
  double attention = 1;
  double passes = 1;
  bool any() const { return products + attention + passes > 0; }
};

// A size for each parameter or each number of an activation: in bytes, or in numbers of the working precision (2 bytes
// in 16 bits, 4 bytes in fp32).
struct Amount {
  double value = 0;
  bool numbers = false;
  double Bytes(double bytes_of_number) const { return numbers ? value * bytes_of_number : value; }
};

// What a layer keeps per token for its backward pass: numbers per column of the residual stream (hidden), of keys or
// values (kv) and of the MLP (ffn; gated_ffn if the MLP has three products). Operands are inputs of products, kept in
// the products' format.
struct KeptOfLayer {
  double hidden = 0, kv = 0, ffn = 0, gated_ffn = 0;
  double hidden_operands = 0, ffn_operands = 0;
  double dropout_masks = 0;  // bytes per column of hidden, if there is dropout
};

// What a GPU holds, as the framework's file states it. `shard: optimizer` splits master weights and moments over the
// ranks, `gradients` also splits gradients, and `full` also splits weights.
struct FrameworkMemory {
  Amount weights, gradients, moments;
  Amount master;                 // fp32 weights, besides those in 16 bits
  Amount buckets;                // buffers for reducing gradients, if nothing is split
  double gathered_layers = 1;    // layers whose weights are whole at once, with `shard: full`
  double reduced_layers = 0;     // layers whose gradients are whole at once, with `shard: full`
  bool splits_weights = false;   // with `shard: gradients`: split between steps, whole in 16 bits within one
  bool gathers_head = false;     // embedding and head are whole while the loss is computed
  bool keeps_codes = false;      // all quantized weights stay, whole, from forward to backward pass
  bool frees_gradients = false;  // gradients exist only from the backward pass on
  KeptOfLayer kept, kept_selective;
  double logits = 0;    // bytes per token and vocabulary entry
  double reserved = 1;  // bytes the allocator reserves / bytes tensors need
  double fixed = 0;     // other bytes: workspaces, communicators
};

// The published rows that support a framework's figures.
struct PublishedEvidence {
  int64_t rows = 0;               // 0: none; all figures are assumed
  double error = 0;               // mean |predicted / published - 1| over held-out rows
  double spread = 0;              // the factor within which 90 % of them lie
  std::vector<std::string> gpus;  // as devices name them
  bool Backs(const std::string& gpu) const;
};

// How large a step is, in each way in which predictions lead away from known steps.
struct StepSize {
  double tokens = 0;  // of a sequence
  double ranks = 0;
  double parameters = 0;  // of the model
};
StepSize SizeOfStep(const RunSpec& spec);

// By what the logarithm of an interval's factor grows from a known step to one of another size: 1 for the same size.
// Rows that one other row corrected set it (docs/prediction-accuracy.md).
double Widening(const StepSize& known, const StepSize& predicted);

// A correction learnt from runs of the framework's trainer on the device's GPU (predict/known_runs.h).
struct Correction {
  double factor = 1;  // of the step's time
  int64_t runs = 0;
  std::optional<double> error;  // leave-one-out mean |predicted / known - 1|; nothing for one run
  double spread = 1;            // the factor within which 90 % lie, of the runs' own size
  std::vector<StepSize> sizes;  // of the runs
  bool shares = false;          // the runs fitted the efficiency, and the factor is 1
  bool typed = false;           // a person typed a figure; no record shows it
  std::string from;             // the source of the runs, in words
  std::string Text() const;
};

struct Framework {
  std::string name = "ridgeline";
  std::string about = "this engine";
  std::filesystem::path file;
  std::vector<std::string> trainers;                         // the trainer definitions it describes
  std::map<std::string, std::vector<std::string>> supports;  // allowed values of fields; other fields may have any
  std::string compile;                                       // the trainer's own field that turns compilation on
  Efficiency efficiency = kEfficiencyHere;
  std::string efficiency_from = "what they got of an H200";  // in words
  double passes = 1;  // its memory traffic outside products and attention / this engine's
  // Whether the gradients of SwiGLU and GELU are quantized in passes of their own: in the runs of this engine that
  // shares were fitted to, and in all published rows, as their shares were.
  bool quantizes_apart = false;
  double straggle = kStraggle;
  double eager_passes = 0;                       // the same without compilation; 0: as `passes`
  double reduced_bytes = 4;                      // bytes per gradient on the wire
  double overlap = 1;                            // share of a collective's time that calls can hide
  double overlap_full = 1;                       // the same with `shard: full`
  double first_iteration_s = 0.2;                // extra time of the first iteration, if the device does not say
  std::string first_iteration_from;              // its source, in words; empty: assumed
  double start_s = 2;                            // process start, on a GPU; on an H200 it took one to three seconds
  std::map<std::string, Recomputed> recomputes;  // by policy: full, selective
  Recomputed again;                              // for the step that is priced
  bool plans = true;                             // this engine: the planner gives the memory
  FrameworkMemory memory;
  PublishedEvidence time_evidence;
  PublishedEvidence memory_evidence;
  std::optional<Correction> correction;  // for the device of the prediction

  bool is_ours() const { return file.empty(); }
  // "estimated as NAME", with the number of published rows on this GPU and their error, or "assumed". Empty for this
  // engine.
  std::string Basis(const std::string& gpu) const;
  // The factor within which 90 % of its steps on this GPU are predicted, by held-out rows. It widens beyond the sizes
  // of these rows, or of the runs that correct it.
  double Spread(const std::string& gpu, const StepSize& size) const;
};

// The folders with framework files, in the order of search: `own`, frameworks/ in the current folder, the user's
// configuration, the shipped ones.
std::vector<std::filesystem::path> FrameworkFolders(std::vector<std::filesystem::path> own = {});

// Parses a framework file, whose stem is its name. Throws Error(kInvalidInput) with every fault at its line.
Framework ParseFramework(std::string_view text, const std::filesystem::path& file);

// Finds "ridgeline" or a file's framework. Throws Error(kUsage) with the nearest name if there is none.
Framework FindFramework(const std::string& name, const std::vector<std::filesystem::path>& folders);

// Chooses the framework of a point: the one named for all points, else the one that lists its trainer.
class Frameworks {
 public:
  // Applies `change` to each framework.
  void ForEach(const std::function<void(Framework&)>& change);
  Frameworks() = default;  // this engine alone
  // `as`: the framework of all points; empty: by trainer. Throws as FindFramework and ParseFramework do.
  explicit Frameworks(const std::vector<std::filesystem::path>& folders, const std::string& as = "");
  // `trainer`: "ridgeline" or a definition's name. nullptr if no framework describes it.
  const Framework* Of(const std::string& trainer) const;

 private:
  Framework ours_;
  std::optional<Framework> forced_;
  std::vector<Framework> others_;
};

// Why this framework's figures do not hold for a point, in a sentence. Empty if they hold.
std::string NotEstimated(const Framework& framework, const RunSpec& spec);

// Returns our engine's step on which a point's predicted time is based, and the framework with what applies to the
// point: what it recomputes, and whether it compiles. REQUIRES: NotEstimated is empty.
std::pair<RunSpec, Framework> AsPriced(const Framework& framework, const RunSpec& spec);

// Peak memory of a GPU, in bytes. REQUIRES: NotEstimated is empty, and framework.plans is false.
int64_t PeakBytes(const Framework& framework, const RunSpec& spec);

}  // namespace ridgeline::predict
