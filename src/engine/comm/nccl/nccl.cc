#include "engine/comm/nccl/nccl.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/shared_library.h"

namespace ridgeline {
namespace {

// The first whose communicators can be asked whether they are ready, and given up, while they connect.
constexpr int kOldest = NCCL_VERSION(2, 14, 0);

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
                  fmt::format("NCCL {}.{} is too old", version / 10000, version / 100 % 100),
                  "install NVIDIA's libnccl2 of 2.14 or later");
    }
    return found;
  }();
  return table;
}

void CheckNccl(const Nccl& nccl, ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  const char* last = nccl.ncclGetLastError(nullptr);
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("NCCL: {} failed: {} ({}){}{}", what, NameOf(result), nccl.ncclGetErrorString(result),
                          last != nullptr && *last != '\0' ? ": " : "", last != nullptr ? last : ""),
              "NCCL_DEBUG=INFO makes NCCL say more; NCCL_SOCKET_IFNAME names the network that it may use");
}

}  // namespace ridgeline
