// Ctrl-C and its relatives, counted instead of obeyed, for as long as one of these lives.
//
// Who closes a terminal, and a scheduler that ends the job that we are in, does not mean the jobs that we have
// submitted: SIGHUP, and SIGTERM inside a job of Slurm's, count as if a stop had been asked for twice, which leaves
// jobs alone.
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
