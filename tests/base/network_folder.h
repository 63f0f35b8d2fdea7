// A folder that statfs(2) reports as NFS, for this whole program. Include it in one file of a program, because it
// defines the function.
#pragma once

#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <string>

inline std::string network_folder;  // empty: none

extern "C" int statfs(const char* path, struct statfs* info) noexcept {
  const long error = ::syscall(SYS_statfs, path, info);
  if (error == 0 && !network_folder.empty() && std::string(path).starts_with(network_folder)) info->f_type = 0x6969;
  return static_cast<int>(error);
}
