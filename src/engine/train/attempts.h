// Steps that ranks do together, and in which each may fail alone.
#pragma once

#include <optional>
#include <span>

#include "base/error.h"
#include "engine/comm/communicator.h"

namespace ridgeline::engine {

// Runs steps until one fails, and keeps the error: a rank whose disk is full must still give the others their parts.
class Attempts {
 public:
  template <typename Fn>
  void operator()(const Fn& fn) {
    if (failed_) return;
    try {
      fn();
    } catch (const Error& error) {
      failed_ = error;
    }
  }
  // Throws on every rank if any of them failed.
  void ThrowWhereAnyFailed(Communicator& communicator) const {
    int64_t failed = failed_ ? 1 : 0;
    communicator.AllReduce(std::span(&failed, 1), Reduction::kMax);
    if (failed_) throw *failed_;
    if (failed != 0) throw Error(ErrorKind::kInfrastructure, "another rank could not write its checkpoint files");
  }

 private:
  std::optional<Error> failed_;
};

}  // namespace ridgeline::engine
