// The meta device: running a step program on it records every storage's life, every op and its cost, and computes
// nothing. The record is what the planner lays out and what the other devices replay.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/tensor/tensor.h"

namespace ridgeline {

// The identity of an op. Each op defines one constant; devices look their kernels up by its address.
struct OpDef {
  const char* name;
};

// What an op costs, from its shapes alone.
struct Cost {
  double flops = 0;                 // floating-point operations of matrix products; 0 for memory-bound ops
  DType flops_dtype = DType::kF32;  // what those multiply
  double bytes = 0;                 // moved to and from memory, each operand once
};

enum class Phase : uint8_t { kForward, kRecompute, kBackward, kOptimizer };

// One recorded op: its tensors in the order its kernel expects (inputs, outputs, workspace; undefined where optional)
// and its attributes, a trivially copyable struct that only its own op knows.
struct OpCall {
  static constexpr size_t kMaxArgs = 12;
  static constexpr size_t kMaxAttrBytes = 96;

  const OpDef* op = nullptr;
  std::array<Tensor, kMaxArgs> args{};
  int arg_count = 0;
  alignas(8) std::array<std::byte, kMaxAttrBytes> attr_bytes{};
  Cost cost;
  int32_t layer = -1;  // -1: outside the layers
  Phase phase = Phase::kForward;

  template <typename T>
  const T& attrs() const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxAttrBytes);
    return *reinterpret_cast<const T*>(attr_bytes.data());
  }
};

struct Storage {
  int64_t bytes = 0;
  Category category = Category::kActivations;
  bool persistent = false;  // lives before, through and after the step
};

class Trace {
 public:
  // A contiguous storage that keeps its contents from step to step.
  Tensor Persistent(DType dtype, int64_t rows, int64_t cols, Category category) {
    return Add(dtype, rows, cols, category, true);
  }
  // A contiguous storage that lives from the first op that takes it to the last.
  Tensor Temporary(DType dtype, int64_t rows, int64_t cols, Category category) {
    return Add(dtype, rows, cols, category, false);
  }

  struct NoAttrs {};
  template <typename Attrs = NoAttrs>
  void Call(const OpDef& op, std::initializer_list<Tensor> args, Cost cost, const Attrs& attrs = {}) {
    static_assert(std::is_trivially_copyable_v<Attrs> && sizeof(Attrs) <= OpCall::kMaxAttrBytes);
    assert(args.size() <= OpCall::kMaxArgs);
    OpCall& call = calls_.emplace_back();
    call.op = &op;
    for (const Tensor& tensor : args) call.args[static_cast<size_t>(call.arg_count++)] = tensor;
    std::memcpy(call.attr_bytes.data(), &attrs, sizeof attrs);
    call.cost = cost;
    call.layer = layer_;
    call.phase = phase_;
  }

  // Labels put on the calls that follow.
  void SetLayer(int64_t layer) { layer_ = static_cast<int32_t>(layer); }
  void SetPhase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  int64_t layer() const { return layer_; }

  const std::vector<Storage>& storages() const { return storages_; }
  const std::vector<OpCall>& calls() const { return calls_; }

 private:
  Tensor Add(DType dtype, int64_t rows, int64_t cols, Category category, bool persistent) {
    const auto id = static_cast<StorageId>(storages_.size());
    storages_.push_back({rows * cols * SizeOf(dtype), category, persistent});
    return {id, dtype, rows, cols, cols, 0};
  }

  std::vector<Storage> storages_;
  std::vector<OpCall> calls_;
  int32_t layer_ = -1;
  Phase phase_ = Phase::kForward;
};

}  // namespace ridgeline
