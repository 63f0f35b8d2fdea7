// Makes sure that a program has its standard streams.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ridgeline {

// Opens closed standard streams as /dev/null. Every program calls this first: its parent may have closed them, and the
// next file that is opened, such as a database or a socket, would become stdout or stderr and get its messages.
inline void OpenStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // open() returns the lowest free number, which is this one.
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  }
}

}  // namespace ridgeline
