#include "common/clock.h"

#include <ctime>

namespace ridgeline::plugin {

const Clock& SystemClock() {
  class OfThisMachine final : public Clock {
   public:
    Time Now() const override { return std::chrono::steady_clock::now(); }
    int64_t UnixS() const override { return ::time(nullptr); }
  };
  static const OfThisMachine kClock;
  return kClock;
}

}  // namespace ridgeline::plugin
