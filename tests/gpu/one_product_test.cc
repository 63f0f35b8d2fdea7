// The basis of bench/gpu's figures of products.
#include <gtest/gtest.h>

#include "bench/gpu/measure.h"
#include "cuda_on_cpu/cublaslt.h"
#include "engine/ops/gemm.h"
#include "tests/engine/device/cuda_machine.h"

namespace ridgeline {
namespace {

TEST(OneProduct, TakesAsLongAsOneOfItsRuns) {
  engine::cuda_machine::ResetMachine();
  cuda_on_cpu::ResetCublasLt({{10'000}});
  engine::Trace trace(engine::CudaDevice(engine::CapabilityHere()));
  const auto matrix = [&] { return trace.Persistent(engine::DType::kBF16, 16, 16, engine::Category::kData); };
  const engine::Tensor a = matrix();
  engine::Gemm(trace, a, engine::Trans::kNo, a, engine::Trans::kYes, matrix());
  OneProduct product(trace);
  product.Fill(a);
  const int64_t ns = product.LeastNs(3);
  EXPECT_GE(ns, 10'000'000'000);
  EXPECT_LT(ns, 20'000'000'000) << "of two runs together";
  EXPECT_GT(cuda_on_cpu::CublasLtProductsRun(), 1) << "one warms up";
  cuda_on_cpu::ResetCublasLt();
}

}  // namespace
}  // namespace ridgeline
