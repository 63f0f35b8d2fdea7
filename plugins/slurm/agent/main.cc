// ridgeline-slurm-agent
//
// The only program that links libslurm. It reads a request per line from standard input and writes a reply per line to
// standard output, until input ends. It is a separate process because libslurm ends its process if slurm.conf is
// missing, and because libslurm's licence is the GPL.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>

#include "ridgeline/standard_streams.h"
#include "slurm/agent/agent.h"

namespace {

// Keeps standard output for replies alone. Other output to it goes to standard error.
std::FILE* TakeStandardOutput() {
  const int fd = ::dup(STDOUT_FILENO);
  if (fd < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return nullptr;
  return ::fdopen(fd, "w");
}

}  // namespace

int main() {
  ridgeline::OpenStandardStreams();
  std::signal(SIGPIPE, SIG_IGN);
  std::FILE* replies = TakeStandardOutput();
  if (replies == nullptr) {
    std::perror("ridgeline-slurm-agent: cannot reply");
    return 3;
  }
  ridgeline::slurm_agent::ForgetAmbientSettings();
  ridgeline::slurm_agent::Agent agent;
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const std::string reply = agent.Answer(line).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (std::fwrite(reply.data(), 1, reply.size(), replies) != reply.size() || std::fflush(replies) != 0) return 3;
  }
  return 0;
}
