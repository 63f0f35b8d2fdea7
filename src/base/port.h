// TCP ports of this machine.
#pragma once

#include <cstdint>

namespace ridgeline {

// A free port of the loopback interface, chosen by the kernel and given to nobody else while this lives. A server may
// listen on it meanwhile if it sets SO_REUSEADDR, as servers do: we hold the port and do not listen.
class ReservedPort {
 public:
  // Throws Error(kInfrastructure) where there is none.
  ReservedPort();
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  ~ReservedPort();
  int64_t number() const { return number_; }

 private:
  int fd_ = -1;
  int64_t number_ = 0;
};

}  // namespace ridgeline
