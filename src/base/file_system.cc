#include "base/file_system.h"

#include <sys/vfs.h>

#include <array>
#include <utility>

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

// The numbers are from linux/magic.h. Numbers that the kernel's own headers lack are from the file systems' sources, as
// listed by coreutils' stat(1). FUSE is included because sshfs, JuiceFS and object stores use it. Local file systems
// that use it (such as fuse-overlayfs) lose a little speed.
constexpr std::array<std::pair<uint32_t, std::string_view>, 17> kNetworkFileSystems = {{
    {0x6969, "NFS"},
    {0x0BD00BD0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"},
    {0x65735546, "FUSE"},
    {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB"},
    {0x517B, "SMB"},
    {0x00C36400, "CephFS"},
    {0x5346414F, "AFS"},
    {0x6B414653, "AFS"},
    {0x73757245, "Coda"},
    {0x01021997, "9P"},
    {0x01161970, "GFS2"},
    {0x7461636F, "OCFS2"},
    {0xAAD7AAEA, "PanFS"},
    {0x20030528, "OrangeFS"},
}};

}  // namespace

std::string_view NetworkFileSystemName(uint32_t magic) {
  for (const auto& [number, name] : kNetworkFileSystems) {
    if (number == magic) return name;
  }
  return {};
}

std::string_view NetworkFileSystemOf(const fs::path& path) {
  for (fs::path at = fs::absolute(path);; at = at.parent_path()) {
    struct statfs info {};
    if (::statfs(at.c_str(), &info) == 0) return NetworkFileSystemName(static_cast<uint32_t>(info.f_type));
    if (at == at.root_path()) return {};
  }
}

}  // namespace ridgeline
