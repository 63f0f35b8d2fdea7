// Marks functions that the host and kernels share. nvcc needs the mark; other compilers do not.
#pragma once

#ifdef __CUDACC__
#define RIDGELINE_HOST_DEVICE __host__ __device__
#else
#define RIDGELINE_HOST_DEVICE
#endif
