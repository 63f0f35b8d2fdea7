// What the host does, named for who looks on with NVIDIA's tools (nsys, ncu): ranges of NVTX.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace ridgeline {

// From when it is made until it goes, on this thread. Where nobody looks on, each costs two checks of a pointer and one
// of whether NVTX is ready: left to its own first call, it writes pointers that other threads' first calls already
// read.
class NvtxRange {
 public:
  explicit NvtxRange(const char* name) {
    [[maybe_unused]] static const bool ready = (nvtxInitialize(nullptr), true);
    nvtxRangePushA(name);
  }
  ~NvtxRange() { nvtxRangePop(); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace ridgeline
