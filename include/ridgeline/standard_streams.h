// The standard streams of a program that somebody else starts.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ridgeline {

// To be called first of all by every program of ours: who started it may have closed its standard streams, and the next
// file that is opened, such as a database or a socket, would be one of them, for what is said to be written into.
// Closed ones become /dev/null.
inline void OpenStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // What is opened takes the lowest number that is free: this one.
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  }
}

}  // namespace ridgeline
