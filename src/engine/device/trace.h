// The meta device. Running a step program on it computes nothing, but records every storage's life, every op and its
// cost. The planner lays this record out, and the other devices replay it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "engine/device/description.h"
#include "engine/device/op.h"
#include "engine/tensor/tensor.h"

namespace ridgeline::engine {

// The number format of a product. Hardware has a rate for each. kMxfp8 and kFp4: in blocks, with a scale for each.
// kTF32: fp32 numbers, rounded (precision/tf32.h).
enum class MathFormat : uint8_t { kF32, kBF16, kF16, kFp8, kMxfp8, kFp4, kTF32 };

// The cost of a call, from its shapes alone, besides the bytes of its operands.
struct Cost {
  double flops = 0;                      // floating-point operations of matrix products; 0 for memory-bound ops
  MathFormat format = MathFormat::kF32;  // their number format
  double wire_bytes = 0;                 // bytes that this rank sends to others
  // Bytes moved beyond reading its inputs and writing its outputs once; negative if it only touches some of them.
  double more_bytes = 0;
  // Bytes that separate passes in this call's place would move in addition. Only this op neither stores nor reads them.
  double spared_bytes = 0;
  bool emulated = false;  // a product of codes that its CUDA device multiplies as bf16
};

enum class Phase : uint8_t { kForward, kRecompute, kBackward, kOptimizer };

// Values that change from step to step. Everything else of a call is fixed when it is recorded.
struct StepInputs {
  int64_t step = 1;  // counts from 1
  double learning_rate = 0;
  uint64_t seed = 0;  // of dropout and of random inputs
};

// One recorded op: its operands, undefined if optional, and its attributes, which only its own kernels know.
class OpCall {
 public:
  template <typename Operands, typename Attrs>
  OpCall(const Op<Operands, Attrs>& op, const Operands& operands, const Attrs& attrs, const Cost& cost)
      : op(&op), cost(cost), reads_(TensorsIn<decltype(operands.reads)>()), count_(TensorsIn<Operands>()) {
    static_assert(std::is_trivially_copyable_v<Attrs> && sizeof(Attrs) <= kMaxAttrBytes);
    static_assert(TensorsIn<Operands>() <= kMaxOperands);
    if constexpr (requires { operands.writes; }) writes_ = TensorsIn<decltype(operands.writes)>();
    std::memcpy(static_cast<void*>(tensors_.data()), &operands, sizeof operands);
    std::memcpy(attr_bytes_.data(), &attrs, sizeof attrs);
  }

  // The operands and attributes as they were recorded. Throw Error(kInternal) if the call is another op's.
  template <typename Operands, typename Attrs>
  Operands operands(const Op<Operands, Attrs>& of) const {
    RequireOp(of);
    Operands operands;
    std::memcpy(static_cast<void*>(&operands), tensors_.data(), sizeof operands);
    return operands;
  }
  template <typename Operands, typename Attrs>
  const Attrs& attrs(const Op<Operands, Attrs>& of) const {
    RequireOp(of);
    return *reinterpret_cast<const Attrs*>(attr_bytes_.data());
  }
  // The attributes of a call of any op that has attributes of this type.
  template <typename Attrs>
  const Attrs& attrs() const {
    RequireAttrs(&kAttrsType<Attrs>);
    return *reinterpret_cast<const Attrs*>(attr_bytes_.data());
  }

  // The tensors of any op; some may be undefined.
  std::span<const Tensor> tensors() const { return std::span(tensors_).first(count_); }
  std::span<const Tensor> reads() const { return tensors().first(reads_); }
  std::span<const Tensor> writes() const { return tensors().subspan(reads_, writes_); }
  std::span<const Tensor> scratch() const { return tensors().subspan(reads_ + writes_); }

  // Bytes moved to and from memory.
  double bytes() const;

  const OpDef* op;
  Cost cost;
  int32_t layer = -1;  // -1: outside the layers
  Phase phase = Phase::kForward;

 private:
  static constexpr size_t kMaxOperands = 16;
  static constexpr size_t kMaxAttrBytes = 96;

  template <typename Group>
  static constexpr size_t TensorsIn() {
    static_assert(std::is_trivially_copyable_v<Group> && std::is_standard_layout_v<Group>);
    static_assert(sizeof(Group) % sizeof(Tensor) == 0, "operands are tensors and nothing else");
    return sizeof(Group) / sizeof(Tensor);
  }
  void RequireOp(const OpDef& of) const;
  void RequireAttrs(const void* type) const;

  std::array<Tensor, kMaxOperands> tensors_{};
  size_t reads_;
  size_t writes_ = 0;
  size_t count_;
  alignas(8) std::array<std::byte, kMaxAttrBytes> attr_bytes_{};
};

struct Storage {
  int64_t bytes = 0;
  Category category = Category::kActivations;
  bool persistent = false;  // lives before, through and after the step
};

// The calls of a trace. A thread keeps the memory of a destroyed list for the next. Otherwise tracing one step after
// another would fault in a megabyte of fresh pages each time.
class CallList {
 public:
  CallList() = default;
  CallList(CallList&& other) noexcept = default;
  CallList& operator=(CallList&& other) noexcept = default;
  CallList(const CallList& other) = default;
  CallList& operator=(const CallList& other) = default;
  ~CallList();

  template <typename... Parts>
  OpCall& Add(const Parts&... parts) {
    if (calls.capacity() == 0) TakeRoom();
    return calls.emplace_back(parts...);
  }

  std::vector<OpCall> calls;

 private:
  void TakeRoom();
};

class Trace {
 public:
  // A trace of a program for this device. The device decides a call's scratch, and which ops replace several others
  // because it has kernels for them (ops/fused_quantize.h).
  Trace() = default;
  explicit Trace(const DeviceDescription& device) : device_(device) {}
  const DeviceDescription& device() const { return device_; }

  // Adds a contiguous storage that keeps its contents from step to step.
  Tensor Persistent(DType dtype, int64_t rows, int64_t cols, Category category) {
    return Add(dtype, rows, cols, category, true);
  }
  // Adds a contiguous storage that lives from the first op that takes it to the last.
  Tensor Temporary(DType dtype, int64_t rows, int64_t cols, Category category) {
    return Add(dtype, rows, cols, category, false);
  }

  // Returns where the executor puts StepInputs before each step: an operand of the calls that read them.
  Tensor Inputs();
  // The same; undefined if no call reads it.
  const Tensor& inputs() const { return inputs_; }

  template <typename Operands, typename Attrs>
  void Call(const Op<Operands, Attrs>& op, const std::type_identity_t<Operands>& operands, const Cost& cost = {},
            const std::type_identity_t<Attrs>& attrs = {}) {
    RequireCostOfKind(op, cost);
    OpCall& call = list_.Add(op, operands, attrs, cost);
    call.layer = layer_;
    call.phase = phase_;
  }

  // Labels put on the calls that follow.
  void SetLayer(int64_t layer) { layer_ = static_cast<int32_t>(layer); }
  void SetPhase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  int64_t layer() const { return layer_; }

  const std::vector<Storage>& storages() const { return storages_; }
  const std::vector<OpCall>& calls() const { return list_.calls; }

 private:
  Tensor Add(DType dtype, int64_t rows, int64_t cols, Category category, bool persistent);
  // Throws Error(kInternal) if the op states FLOPs or bytes to other ranks, and is of a kind that has none.
  static void RequireCostOfKind(const OpDef& op, const Cost& cost);

  DeviceDescription device_;
  std::vector<Storage> storages_;
  CallList list_;
  Tensor inputs_;
  int32_t layer_ = -1;
  Phase phase_ = Phase::kForward;
};

}  // namespace ridgeline::engine
