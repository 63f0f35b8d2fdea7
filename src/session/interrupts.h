// Counts Ctrl-C and similar signals instead of obeying them, while an object of this class lives.
//
// Closing a terminal, or the end of the Slurm job around us, should not end the jobs that we have submitted. Therefore
// SIGHUP, and SIGTERM inside a Slurm job, count as two requests to stop. Two requests leave the jobs alone.
//
// Seconds after the second request the process ends whatever it waits for, such as a launcher's call that does not
// return. A driver may end at any instruction.
#pragma once

#include <signal.h>

#include <array>

namespace ridgeline::session {

inline constexpr int kInterruptedExit = 130;  // the value that shells use for SIGINT

class Interrupts {
 public:
  // Counts SIGINT, SIGTERM and SIGHUP from here on. Objects may live within each other: all see one count.
  Interrupts();
  ~Interrupts();  // restores the previous handlers
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  static int Count();

 private:
  std::array<struct sigaction, 4> before_{};
};

}  // namespace ridgeline::session
