// Which calls take similar times, so that a measured time of one predicts another's. A call has a class (its op, the
// dtypes of its operands, and their orientation) and dimensions. Within one class, time grows with the work, at a rate
// that changes slowly with the dimensions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/device/trace.h"

namespace ridgeline::engine {

// The common properties of calls whose times can be compared.
struct CallClass {
  const OpDef* op = nullptr;
  uint64_t operands = 0;  // the dtype of each tensor that is read or written, four bits each; 0: it is undefined
  uint32_t variant = 0;   // the attributes that decide how long it takes
  bool operator==(const CallClass&) const = default;
};

struct CallShape {
  CallClass of;
  // For a product m, n, k; for attention batch x heads, sequence, size of a head; for a collective its bytes on the
  // wire; for all others the bytes that they move and the columns of their largest tensor.
  std::array<int64_t, 3> dims = {};
};

CallShape CallShapeOf(const OpCall& call);

// Returns how many of the dimensions the class uses.
size_t DimsOf(const CallClass& of);

// Returns the name of the class in a file: "gemm nt bf16 bf16 - - > bf16". No two classes share a name.
std::string ClassName(const CallClass& of);

struct HashOfClass {
  size_t operator()(const CallClass& of) const;
};

}  // namespace ridgeline::engine
