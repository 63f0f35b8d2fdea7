// What is computed alike on the host and in kernels: nvcc has to be told, other compilers have nothing to be told.
#pragma once

#ifdef __CUDACC__
#define RIDGELINE_HOST_DEVICE __host__ __device__
#else
#define RIDGELINE_HOST_DEVICE
#endif
