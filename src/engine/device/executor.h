// What runs a traced program on a device, over one slab that it allocates once.
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

namespace ridgeline {

// Used by one thread. Persistent tensors are read and written between steps, by the element, counted from the tensor's
// first in the order they are stored in (a strided tensor's gaps are counted too). T must have the dtype's size.
// To make one throws Error(kOutOfMemory) where the slab does not fit the device, and Error(kInternal) where the trace
// has an op that the device has no kernel of; Step throws what its kernels and collectives throw.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  virtual void Step(const StepInputs& inputs) = 0;

  // How many steps may be queued behind one whose scalars were not taken yet. 0: Step computes before it returns.
  virtual int64_t steps_ahead() const { return 0; }
  // Queues a reading of the first element of each, an fp32 (kMostScalars of them at the most), as the steps before
  // leave it. TakeScalars waits for the oldest reading that was not taken, and for nothing behind it.
  static constexpr size_t kMostScalars = 4;
  virtual void QueueScalars(std::span<const Tensor> scalars) = 0;
  struct Scalars {
    std::vector<float> values;
    // Between the reading before this one and this one, as the device saw it: by the host's clock either may be late.
    // Nothing where there was none before, or Step computes before it returns.
    std::optional<int64_t> since_last_ns;
  };
  virtual Scalars TakeScalars() = 0;

  template <typename T>
  void Write(const Tensor& to, int64_t first, std::span<const T> from) {
    Upload(to, ByteOf<T>(to, first), std::as_bytes(from));
  }
  // Of a contiguous tensor.
  virtual void Zero(const Tensor& tensor) = 0;
  // All that was written reads as zeros again, as before the first step.
  virtual void Clear() = 0;
  // Has the device write the numbers from the `first` on to a contiguous tensor. False where it leaves that to the
  // host.
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

  // Whether the device multiplies such numbers itself: products of others are emulated on it.
  virtual bool Multiplies(MathFormat format) const = 0;

  // With timing on, every call's time is added to its op's. Nanoseconds, indexed as Trace::calls().
  virtual void EnableTiming() = 0;
  virtual std::span<const int64_t> call_ns() const = 0;

  // Another program on the same device, in a slab of its own. The trace and the layout must outlive it.
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

}  // namespace ridgeline
