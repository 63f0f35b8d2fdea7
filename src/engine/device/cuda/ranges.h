// Names the host's activities for NVIDIA's tools (nsys, ncu), as ranges of NVTX.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace ridgeline::engine {

// A range on this thread, from construction to destruction. Without a tool, it costs two checks of a pointer, and one
// of whether NVTX is ready. That check is needed because NVTX's own first call writes pointers that other threads'
// first calls already read.
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

}  // namespace ridgeline::engine
