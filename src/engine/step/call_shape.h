// Which calls take alike long: what a time that was measured of one says of another. A call has a class (its op, what
// its operands are made of, and which way round they lie) and dimensions; of one class, time goes as the work, and the
// rate of that changes slowly with the dimensions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/device/trace.h"

namespace ridgeline {

// What two calls have in common that can be held against each other.
struct CallClass {
  const OpDef* op = nullptr;
  uint64_t operands = 0;  // the dtype of each tensor that is read or written, four bits each; 0: it is not there
  uint32_t variant = 0;   // of its attributes, what decides how long it takes
  bool operator==(const CallClass&) const = default;
};

struct CallShape {
  CallClass of;
  // Of a product m, n, k; of attention batch x heads, sequence, size of a head; of a collective its bytes on the wire;
  // of all others the bytes that they move and the columns of their largest tensor.
  std::array<int64_t, 3> dims = {};
};

CallShape CallShapeOf(const OpCall& call);

// How many of the dimensions there are.
size_t DimsOf(const CallClass& of);

// "gemm nt bf16 bf16 - - > bf16": what stands for the class in a file. Two classes have two names.
std::string ClassName(const CallClass& of);

struct HashOfClass {
  size_t operator()(const CallClass& of) const;
};

}  // namespace ridgeline
