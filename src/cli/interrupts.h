// Ctrl-C and its relatives, counted instead of obeyed, for as long as one of these lives.
#pragma once

#include <signal.h>

#include <array>

namespace ridgeline {

class Interrupts {
 public:
  Interrupts();   // SIGINT, SIGTERM and SIGHUP from here on
  ~Interrupts();  // as they were before
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  static int Count();

 private:
  std::array<struct sigaction, 3> before_{};
};

}  // namespace ridgeline
