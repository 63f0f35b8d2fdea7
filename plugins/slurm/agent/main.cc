// ridgeline-slurm-agent
//
// The one program that links libslurm: a request a line on standard input, a reply a line on standard output, until
// input ends. A process of its own because libslurm ends its process where slurm.conf is missing, and because its
// licence is the GPL.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>

#include "ridgeline/standard_streams.h"
#include "slurm/agent/agent.h"

namespace {

// Standard output for replies alone: what anything else prints there goes to standard error.
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
