// What the host does, named for who looks on with NVIDIA's tools (nsys, ncu): ranges of NVTX.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace ridgeline {

// From when it is made until it goes, on this thread. Where nobody looks on, each costs two checks of a pointer.
class NvtxRange {
 public:
  explicit NvtxRange(const char* name) { nvtxRangePushA(name); }
  ~NvtxRange() { nvtxRangePop(); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace ridgeline
