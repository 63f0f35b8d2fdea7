// Where tokens come from: random ones, or any file read as bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ridgeline/run.h"

namespace ridgeline {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // Fills this rank's sequences of seq_length tokens and, as targets, the tokens that follow each. The same step gives
  // the same tokens, and the ranks together the rows of one rank with their whole batch.
  virtual void Fill(int64_t step, std::span<int32_t> ids, std::span<int32_t> targets) = 0;
};

// Throws Error(kInvalidInput) for a file shorter than one sequence, Error(kInfrastructure) for one that can't be read.
std::unique_ptr<TokenSource> MakeTokenSource(const RunSpec& spec, int64_t rank = 0);

}  // namespace ridgeline
