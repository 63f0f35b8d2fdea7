// TCP ports of this machine.
#pragma once

#include <cstdint>

namespace ridgeline {

// A free port of the loopback interface, which the kernel chooses and gives to nobody else while this object lives. A
// server can listen on it meanwhile if it sets SO_REUSEADDR, as servers do: we hold the port without listening.
class ReservedPort {
 public:
  // Throws Error(kInfrastructure) if there is none.
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
