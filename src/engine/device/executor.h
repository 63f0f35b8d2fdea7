// Runs a traced program on a device, over one slab that it allocates once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "engine/device/layout.h"
#include "engine/device/normal_numbers.h"
#include "engine/device/trace.h"

namespace ridgeline::engine {

// Used by one thread. Persistent tensors are read and written between steps, by element, counted from the tensor's
// first in storage order (a strided tensor's gaps count, too). T must have the dtype's size. Creating an executor
// throws Error(kOutOfMemory) if the slab does not fit on the device, and Error(kInternal) if the device has no kernel
// for an op of the trace. Step throws what its kernels and collectives throw.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  virtual void Step(const StepInputs& inputs) = 0;

  // Returns how many steps may be queued behind one whose scalars were not taken yet. 0: Step computes before it
  // returns.
  virtual int64_t steps_ahead() const { return 0; }
  // Queues a reading of each tensor's first element, an fp32, as the steps before leave it; at most kMostScalars
  // tensors. TakeScalars waits for the oldest reading that was not taken, and for nothing after it.
  static constexpr size_t kMostScalars = 4;
  virtual void QueueScalars(std::span<const Tensor> scalars) = 0;
  struct Scalars {
    std::vector<float> values;
    // The time between the previous reading and this one, as the device saw it; the host's clock may see either late.
    // Nothing if there was no previous one, or Step computes before it returns.
    std::optional<int64_t> since_last_ns;
  };
  virtual Scalars TakeScalars() = 0;

  template <typename T>
  void Write(const Tensor& to, int64_t first, std::span<const T> from) {
    Upload(to, ByteOf<T>(to, first), std::as_bytes(from));
  }
  // REQUIRES: the tensor is contiguous.
  virtual void Zero(const Tensor& tensor) = 0;
  // All that was written reads as zeros again, as before the first step.
  virtual void Clear() = 0;
  // Has the device write the numbers from the `first` on to a contiguous tensor. Returns false if the host must do it.
  virtual bool WriteNormal(const Tensor& /*to*/, int64_t /*first*/, const NormalNumbers& /*numbers*/) { return false; }
  template <typename T>
  void Read(const Tensor& from, int64_t first, std::span<T> to) const {
    Download(from, ByteOf<T>(from, first), std::as_writable_bytes(to));
  }
  template <typename T>
  std::vector<T> Read(const Tensor& from, int64_t first, int64_t count) const {
    std::vector<T> values(static_cast<size_t>(count));
    Read(from, first, std::span<T>(values));
    return values;
  }
  template <typename T>
  T Element(const Tensor& from, int64_t index = 0) const {
    T value{};
    Read(from, index, std::span<T>(&value, 1));
    return value;
  }

  virtual int64_t slab_bytes() const = 0;

  // Whether the device multiplies this format itself. It emulates products of other formats.
  virtual bool Multiplies(MathFormat format) const = 0;

  // With timing on, every call's time is added to its op's. Nanoseconds, indexed as Trace::calls().
  virtual void EnableTiming() = 0;
  virtual std::span<const int64_t> call_ns() const = 0;

  // Returns an executor of another program on the same device, in a slab of its own. The trace and the layout must
  // outlive it.
  virtual std::unique_ptr<Executor> Beside(const Trace& trace, const Layout& layout) const = 0;

 protected:
  // `byte`: from the beginning of the tensor's storage.
  virtual void Upload(const Tensor& to, int64_t byte, std::span<const std::byte> from) = 0;
  virtual void Download(const Tensor& from, int64_t byte, std::span<std::byte> to) const = 0;

 private:
  template <typename T>
  static int64_t ByteOf(const Tensor& tensor, int64_t element) {
    static_assert(std::is_trivially_copyable_v<T>);
    return (tensor.offset + element) * SizeOf(tensor.dtype);
  }
};

}  // namespace ridgeline::engine
