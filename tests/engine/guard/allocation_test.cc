// Nothing allocates inside a step. This program replaces malloc and operator new, and checks who calls them. oneDNN
// allocates bookkeeping and packing buffers for its own calls, which are counted separately and bounded. Nothing else
// may allocate.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>

#include "engine/device/cpu/executor.h"
#include "engine/train/cpu_kernels.h"
#include "engine/train/model_state.h"
#include "engine/train/trainer.h"
#include "tests/engine/train/specs.h"

#ifdef RIDGELINE_SANITIZED

TEST(Allocation, NothingIsAllocatedInsideAStep) { GTEST_SKIP() << "the sanitizers replace malloc themselves"; }
TEST(Allocation, TheGuardSeesAnAllocation) { GTEST_SKIP() << "the sanitizers replace malloc themselves"; }

#else

extern "C" void* __libc_malloc(size_t size);
extern "C" void* __libc_memalign(size_t alignment, size_t size);
extern "C" void* __libc_calloc(size_t count, size_t size);
extern "C" void* __libc_realloc(void* old, size_t size);

namespace {

std::atomic<bool> in_step{false};
std::atomic<int64_t> ours{0};
std::atomic<int64_t> onednn{0};
std::atomic<int64_t> onednn_largest{0};

void Count(size_t size, void* caller) {
  if (!in_step.load(std::memory_order_relaxed)) return;
  Dl_info info{};
  if (dladdr(caller, &info) != 0 && info.dli_fname != nullptr && std::strstr(info.dli_fname, "libdnnl") != nullptr) {
    ++onednn;
    int64_t largest = onednn_largest.load();
    while (largest < static_cast<int64_t>(size) &&
           !onednn_largest.compare_exchange_weak(largest, static_cast<int64_t>(size))) {
    }
  } else {
    ++ours;
  }
}

void* New(size_t size, void* caller) {
  Count(size, caller);
  void* p = __libc_malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

extern "C" void* malloc(size_t size) {
  Count(size, __builtin_return_address(0));
  return __libc_malloc(size);
}
extern "C" void* calloc(size_t count, size_t size) {
  Count(count * size, __builtin_return_address(0));
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* old, size_t size) {
  Count(size, __builtin_return_address(0));
  return __libc_realloc(old, size);
}
extern "C" int posix_memalign(void** to, size_t alignment, size_t size) {
  Count(size, __builtin_return_address(0));
  *to = __libc_memalign(alignment, size);
  return *to == nullptr ? 12 : 0;
}
void* operator new(size_t size) { return New(size, __builtin_return_address(0)); }
void* operator new[](size_t size) { return New(size, __builtin_return_address(0)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }

namespace ridgeline::engine {
namespace {

TEST(Allocation, NothingIsAllocatedInsideAStep) {
  for (const auto& [family, numbers] : kFamiliesInNumbers) {
    Json values = TinyModel(family);
    numbers.AddTo(values);
    values.update({{"checkpointing", "full/2"}, {"grad_clip", 1.0}, {"dropout", 0.1}});
    SCOPED_TRACE(values.dump());
    const StepProgram program = BuildStep(SpecFrom(values));
    CpuExecutor executor(program.trace, program.layout, CpuKernels());
    ModelState model(program, executor);
    model.Initialize();
    executor.Step({1, 1e-3, 1});  // the first step allocates OpenMP's threads and thread-local scratch
    ours = onednn = 0;
    in_step = true;
    executor.Step({2, 1e-3, 1});
    in_step = false;
    EXPECT_EQ(ours, 0);
    EXPECT_LE(onednn_largest, 1024 * 1024);
    std::cout << family << " " << numbers.precision << "/" << numbers.state << ": oneDNN asked " << onednn
              << " times in " << program.trace.calls().size() << " calls, at most " << onednn_largest << " bytes\n";
  }
}

TEST(Allocation, TheGuardSeesAnAllocation) {
  ours = 0;
  in_step = true;
  delete new int64_t(1);
  std::free(std::malloc(10));
  in_step = false;
  EXPECT_GE(ours, 1);
}

}  // namespace
}  // namespace ridgeline::engine

#endif
