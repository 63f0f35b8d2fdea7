// Measures a memory-bound kernel against memcpy. The kernel and a copy of as many bytes run in turns. of_copy is the
// kernel's bandwidth divided by the copy's, each in its fastest run; 1 means as fast as copying.
#pragma once

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <vector>

#include "base/parallel.h"
#include "engine/device/cpu/kernel.h"
#include "engine/device/trace.h"
#include "engine/ops/cpu/kernels.h"

namespace ridgeline {

using Clock = std::chrono::steady_clock;

// A slab of huge pages, like the executor's.
class Slab {
 public:
  explicit Slab(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    data_ = static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    madvise(data_, bytes_, MADV_HUGEPAGE);
  }
  ~Slab() { munmap(data_, bytes_); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  std::byte* data() const { return data_; }

 private:
  size_t bytes_;
  std::byte* data_;
};

inline double SecondsOf(const std::function<void()>& fn) {
  const auto start = Clock::now();
  fn();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline double Fastest(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

struct Input {
  engine::Tensor tensor;
  float low, high;  // values between them; ids are integers
};

inline void FillInput(const engine::CpuRun& run, const Input& input) {
  uint32_t state = 1;
  for (int64_t i = 0; i < input.tensor.elements(); ++i) {
    state = state * 1664525 + 1013904223;
    const float value = input.low + (input.high - input.low) * static_cast<float>(state >> 8) / 16777216.0F;
    if (input.tensor.dtype == engine::DType::kF32) {
      run.Data<float>(input.tensor)[i] = value;
    } else if (input.tensor.dtype == engine::DType::kI32) {
      run.Data<int32_t>(input.tensor)[i] = static_cast<int32_t>(value);
    } else if (input.tensor.dtype == engine::DType::kU8) {
      run.Data<uint8_t>(input.tensor)[i] = static_cast<uint8_t>(value);
    } else {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      run.Data<uint16_t>(input.tensor)[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
}

// Records the last op of `record`'s trace and times it.
inline void MeasureAgainstCopy(benchmark::State& state, const engine::CpuKernelTable& table,
                               const std::function<std::vector<Input>(engine::Trace&)>& record) {
  engine::Trace trace;
  const std::vector<Input> inputs = record(trace);
  std::vector<int64_t> offsets;
  int64_t end = 0;
  for (const engine::Storage& storage : trace.storages()) {
    offsets.push_back(end);
    end += (storage.bytes + 4095) / 4096 * 4096;
  }
  const Slab slab(end);
  std::memset(slab.data(), 0, static_cast<size_t>(end));
  const engine::CpuRun run = {slab.data(), offsets.data()};
  if (trace.inputs().defined()) {
    *run.Data<engine::StepInputs>(trace.inputs()) = {.step = 3, .learning_rate = 1e-6, .seed = 1};
  }
  for (const Input& input : inputs) FillInput(run, input);
  const engine::OpCall& call = trace.calls().back();
  const auto kernel = table.at(call.op).run;

  const auto half = static_cast<int64_t>(call.bytes() / 2);
  const Slab from(half), to(half);
  std::memset(from.data(), 1, static_cast<size_t>(half));
  std::memset(to.data(), 1, static_cast<size_t>(half));
  const auto copy = [&] {
    ParallelFor(half, 1 << 20, [&](int64_t begin, int64_t last) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(last - begin));
    });
  };
  kernel(call, run, nullptr);
  copy();
  std::vector<double> kernel_s, copy_s;
  for (auto _ : state) {
    kernel_s.push_back(SecondsOf([&] { kernel(call, run, nullptr); }));
    copy_s.push_back(SecondsOf(copy));
    state.SetIterationTime(kernel_s.back());
  }
  state.counters["GB/s"] = call.bytes() / Fastest(kernel_s) / 1e9;
  state.counters["copy_GB/s"] = static_cast<double>(2 * half) / Fastest(copy_s) / 1e9;
  state.counters["of_copy"] = Fastest(copy_s) / Fastest(kernel_s);
}

}  // namespace ridgeline
