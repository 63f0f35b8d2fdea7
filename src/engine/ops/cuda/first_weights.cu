#include "engine/ops/first_weights.h"

#include "engine/device/cuda/block.cuh"
#include "engine/device/cuda/launch.h"
#include "engine/device/cuda/types.h"
#include "engine/ops/cuda/kernels.h"

namespace ridgeline::engine {
namespace {

constexpr int kFirstThreads = 256;

// One quad per thread. This writes 8 billion weights in some milliseconds; a processor takes ten seconds.
template <typename T>
__global__ void __launch_bounds__(kFirstThreads)
    FirstNormals(T* to, int64_t first, int64_t count, NormalNumbers numbers) {
  const int64_t quad = first / 4 + int64_t{blockIdx.x} * kFirstThreads + threadIdx.x;
  const FourNumbers normals = NormalQuad(numbers, quad);
  for (int i = 0; i < 4; ++i) {
    const int64_t at = 4 * quad + i - first;
    if (at >= 0 && at < count) to[at] = FromFloat<T>(normals.of[i]);
  }
}

}  // namespace

void WriteNormalCuda(cudaStream_t stream, DType dtype, std::byte* to, int64_t first, int64_t count,
                     const NormalNumbers& numbers) {
  const int64_t quads = (first + count + 3) / 4 - first / 4;
  WithCudaType(dtype, [&](auto t) {
    using T = decltype(t);
    Launch(stream, {{BlocksFor(quads, kFirstThreads)}, {kFirstThreads}}, FirstNormals<T>, reinterpret_cast<T*>(to),
           first, count, numbers);
  });
}

}  // namespace ridgeline::engine
