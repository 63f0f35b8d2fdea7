// How ranks share a model, and how many have batches of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ridgeline/run.h"
#include "run/spec.h"

namespace ridgeline {

// The ranks that have batches of their own: all of them over those that share a model. At least 1.
int64_t DataParallelRanks(const RunSpec& spec);

// The ranks that share what `shard` splits; 1 where it splits nothing. There are data-parallel ranks over these of such
// groups, each with a copy.
int64_t ShardRanks(const RunSpec& spec);

// Whether tensor-parallel ranks share sequences, where it is not said; nothing where there are none.
void CanonicalizeParallelism(RunSpec& spec);

// Appends what is wrong with how a canonical spec splits its ranks, whoever trains.
void CheckParallelism(const RunSpec& spec, std::vector<Problem>& problems);

// What of a canonical spec that is right `ridgeline-train` cannot do.
std::vector<Problem> BeyondTheEngine(const RunSpec& spec);

// How ranks share the model, shortly: "TP 2, PP 4"; empty where each has a whole one.
std::string ParallelWords(const RunSpec& spec);

}  // namespace ridgeline
