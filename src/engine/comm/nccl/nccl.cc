#include "engine/comm/nccl/nccl.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/shared_library.h"
#include "engine/device/cuda/runtime.h"

namespace ridgeline::engine {
namespace {

// The first release that NVIDIA builds for CUDA 13 (nccl_2.27.7-1+cuda13.0), whose runtime shares the device with ours.
// It has every function that we call: the last of them, ncclCommInitRankConfig and ncclCommFinalize, came with 2.14.
constexpr int kOldest = NCCL_VERSION(2, 27, 7);

const char* NameOf(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case ncclSystemError:
      return "ncclSystemError";
    case ncclInternalError:
      return "ncclInternalError";
    case ncclInvalidArgument:
      return "ncclInvalidArgument";
    case ncclInvalidUsage:
      return "ncclInvalidUsage";
    case ncclRemoteError:
      return "ncclRemoteError";
    case ncclInProgress:
      return "ncclInProgress";
    default:
      return "an unknown result";
  }
}

}  // namespace

const Nccl& LoadNccl() {
  static const Nccl table = [] {
    const SharedLibrary library("NCCL", {"libnccl.so.2"}, "NVIDIA's libnccl2", BroughtBy::kCudaPackage);
    Nccl found;
#define RIDGELINE_FIND(name) library.Find(#name, found.name);
    RIDGELINE_NCCL_FUNCTIONS(RIDGELINE_FIND)
#undef RIDGELINE_FIND
    int version = 0;
    CheckNccl(found, found.ncclGetVersion(&version), "ncclGetVersion");
    if (version < kOldest) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("NCCL {}.{}.{} is too old", version / 10000, version / 100 % 100, version % 100),
                  "install NVIDIA's libnccl2 for CUDA 13: 2.27.7 or later");
    }
    return found;
  }();
  return table;
}

void CheckNccl(const Nccl& nccl, ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  CheckLost();
  const char* said = nccl.ncclGetLastError(nullptr);
  const std::string_view last = said == nullptr ? "" : said;
  const std::string words = fmt::format("NCCL: {} failed: {} ({}){}{}", what, NameOf(result),
                                        nccl.ncclGetErrorString(result), last.empty() ? "" : ": ", last);
  // NCCL has no result code of its own for that.
  if (result == ncclUnhandledCudaError && last.find("out of memory") != last.npos) {
    throw Error(ErrorKind::kOutOfMemory, words,
                "NCCL's buffers lie beside the slab: leave it more, or set NCCL_BUFFSIZE or NCCL_MAX_NCHANNELS lower");
  }
  throw Error(ErrorKind::kInfrastructure, words,
              "NCCL_DEBUG=INFO makes NCCL say more; NCCL_SOCKET_IFNAME names the network that it may use");
}

}  // namespace ridgeline::engine
