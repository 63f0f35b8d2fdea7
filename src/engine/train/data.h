// The source of tokens: random ones, or any file read as bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ridgeline/run.h"

namespace ridgeline::engine {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // Fills this rank's sequences of seq_length tokens and, as targets, the tokens that follow each. The same step gives
  // the same tokens. The ranks together have the rows that one rank with their whole batch would have.
  virtual void Fill(int64_t step, std::span<int32_t> ids, std::span<int32_t> targets) = 0;
};

// Throws Error(kInvalidInput) for a file shorter than one sequence, Error(kInfrastructure) for one that cannot be read.
std::unique_ptr<TokenSource> MakeTokenSource(const RunSpec& spec, int64_t rank = 0);

}  // namespace ridgeline::engine
