// What a kernel of any device prepares once, before the first step (a library's plan of a product, say).
#pragma once

namespace ridgeline {

class KernelState {
 public:
  virtual ~KernelState() = default;
};

}  // namespace ridgeline
