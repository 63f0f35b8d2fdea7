// A driver for machines without a GPU, with what cuDNN's run-time compiler needs. Kernels are compiled and "loaded", so
// that plans can be made for a device that is described but not present. Nothing can run.

namespace {
constexpr int kSuccess = 0;
constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED
char object;                        // every handle points to this
}  // namespace

#define RIDGELINE_ENTRY(name, ...) extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__)
#define RIDGELINE_HANDLE(name) \
  RIDGELINE_ENTRY(name, void** handle) { return *handle = &object, kSuccess; }
#define RIDGELINE_ZERO(name) \
  RIDGELINE_ENTRY(name, int* value) { return *value = 0, kSuccess; }
#define RIDGELINE_SUCCESS(name) \
  RIDGELINE_ENTRY(name) { return kSuccess; }
// These are looked up but not called when plans are made.
#define RIDGELINE_ABSENT(name) \
  RIDGELINE_ENTRY(name) { return kNotSupported; }

RIDGELINE_ENTRY(cuDriverGetVersion, int* version) { return *version = 13000, kSuccess; }
RIDGELINE_SUCCESS(cuInit)
RIDGELINE_ZERO(cuDeviceGetCount)
RIDGELINE_HANDLE(cuLibraryLoadData)
RIDGELINE_SUCCESS(cuLibraryUnload)
RIDGELINE_HANDLE(cuLibraryGetKernel)
RIDGELINE_HANDLE(cuModuleLoadData)
RIDGELINE_HANDLE(cuModuleGetFunction)
RIDGELINE_SUCCESS(cuModuleUnload)
RIDGELINE_ZERO(cuKernelGetAttribute)
RIDGELINE_SUCCESS(cuKernelSetAttribute)
RIDGELINE_ZERO(cuFuncGetAttribute)
RIDGELINE_SUCCESS(cuFuncSetAttribute)

RIDGELINE_ABSENT(cuCtxGetCurrent)
RIDGELINE_ABSENT(cuCtxGetDevice)
RIDGELINE_ABSENT(cuCtxGetLimit)
RIDGELINE_ABSENT(cuCtxPopCurrent)
RIDGELINE_ABSENT(cuCtxPopCurrent_v2)
RIDGELINE_ABSENT(cuCtxPushCurrent)
RIDGELINE_ABSENT(cuCtxPushCurrent_v2)
RIDGELINE_ABSENT(cuDeviceGet)
RIDGELINE_ABSENT(cuDeviceGetAttribute)
RIDGELINE_ABSENT(cuDevicePrimaryCtxRelease)
RIDGELINE_ABSENT(cuDevicePrimaryCtxRelease_v2)
RIDGELINE_ABSENT(cuDevicePrimaryCtxReset)
RIDGELINE_ABSENT(cuDevicePrimaryCtxReset_v2)
RIDGELINE_ABSENT(cuDevicePrimaryCtxRetain)
RIDGELINE_ABSENT(cuGetErrorName)
RIDGELINE_ABSENT(cuGetErrorString)
RIDGELINE_ABSENT(cuGetExportTable)
RIDGELINE_ABSENT(cuGetProcAddress)
RIDGELINE_ABSENT(cuGetProcAddress_v2)
RIDGELINE_ABSENT(cuKernelGetFunction)
RIDGELINE_ABSENT(cuLaunchCooperativeKernel)
RIDGELINE_ABSENT(cuLaunchKernel)
RIDGELINE_ABSENT(cuLaunchKernelEx)
RIDGELINE_ABSENT(cuLibraryLoadFromFile)
RIDGELINE_ABSENT(cuLinkAddData)
RIDGELINE_ABSENT(cuLinkAddData_v2)
RIDGELINE_ABSENT(cuLinkAddFile_v2)
RIDGELINE_ABSENT(cuLinkComplete)
RIDGELINE_ABSENT(cuLinkCreate)
RIDGELINE_ABSENT(cuLinkCreate_v2)
RIDGELINE_ABSENT(cuLinkDestroy)
RIDGELINE_ABSENT(cuMemcpyDtoH_v2)
RIDGELINE_ABSENT(cuModuleGetGlobal_v2)
RIDGELINE_ABSENT(cuModuleLoadDataEx)
RIDGELINE_ABSENT(cuModuleLoadFatBinary)
RIDGELINE_ABSENT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
RIDGELINE_ABSENT(cuOccupancyMaxPotentialClusterSize)
RIDGELINE_ABSENT(cuStreamGetCtx)
RIDGELINE_ABSENT(cuStreamSynchronize)
RIDGELINE_ABSENT(cuTensorMapEncodeTiled)
