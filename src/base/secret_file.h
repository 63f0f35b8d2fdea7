// Tells who besides us may know the content of a secret file.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include <fmt/format.h>

namespace ridgeline {

// Text to follow the file's name: "belongs to another user (number 1001)"; empty if nobody else may know it. A group
// may read files that root owns, because Kubernetes mounts a pod's secrets so. User namespaces and network file systems
// show an unknown owner as `nobody`.
inline std::string WhoElseKnows(const struct stat& info, uid_t us = ::geteuid()) {
  constexpr uid_t kRoot = 0;
  constexpr uid_t kNobody = 65534;
  const unsigned mode = info.st_mode & 07777U;
  if ((mode & S_IRWXO) != 0) return fmt::format("can be read by all (mode {:04o})", mode);
  if (info.st_uid != us && info.st_uid != kRoot && info.st_uid != kNobody) {
    return fmt::format("belongs to another user (number {})", info.st_uid);
  }
  const mode_t others = info.st_uid == kRoot ? S_IWGRP : S_IRWXG;
  if ((mode & others) != 0) return fmt::format("is open to its group (mode {:04o})", mode);
  return {};
}

}  // namespace ridgeline
