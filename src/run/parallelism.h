// How ranks share a model, and how many ranks have their own batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ridgeline/run.h"
#include "run/spec.h"

namespace ridgeline {

// The number of ranks with their own batches: all ranks divided by those that share a model. At least 1.
int64_t DataParallelRanks(const RunSpec& spec);

// The ranks that share what `shard` splits; 1 if it splits nothing. The data-parallel ranks form that many groups, each
// with a copy: their number divided by this one.
int64_t ShardRanks(const RunSpec& spec);

// Sets whether tensor-parallel ranks share sequences, if it is not given. Leaves it unset if there are no such ranks.
void CanonicalizeParallelism(RunSpec& spec);

// Appends the problems with a canonical spec's split of ranks, for any trainer.
void CheckParallelism(const RunSpec& spec, std::vector<Problem>& problems);

// The parts of a valid canonical spec that `ridgeline-train` cannot run.
std::vector<Problem> BeyondTheEngine(const RunSpec& spec);

// Returns the number whose multiples `factor` (batch_size or seq_length) may be, so that each tensor-parallel rank of
// `ridgeline-train` has as many tokens of a micro-batch. Its own value in the spec does not matter.
int64_t LeastForTokens(const RunSpec& spec, int64_t RunSpec::*factor);

// How ranks share the model, in short: "TP 2, PP 4"; empty if each has a whole one.
std::string ParallelWords(const RunSpec& spec);

}  // namespace ridgeline
