#include "node/parts.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "ridgeline/foreign_file.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/limits.h"

namespace ridgeline {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kLookForPartsNs = 100'000'000;

// It is opened, not looked for: over a network, whether a file is there may be told as it was some time ago.
std::optional<std::string> PartOfAnother(const fs::path& point_dir, int64_t nodes) {
  for (int64_t node = 1; node < nodes; ++node) {
    try {
      if (const auto name = ReadForeignFile(point_dir / PartName(node), kMaxNameBytes)) return PrintableLine(*name);
    } catch (const Error&) {
      // It is no file of ours: nothing is known of that node.
    }
  }
  return std::nullopt;
}

}  // namespace

void TakePart(const fs::path& point_dir, int64_t node, const std::string& name) {
  if (node > 0) WriteFile(point_dir / PartName(node), name);
}

std::optional<std::string> NodeThatIsGone(const fs::path& point_dir, int64_t nodes, int64_t wait_ns,
                                          const std::function<bool()>& give_up) {
  SystemClock clock;
  const int64_t end_ns = clock.MonotonicNs() + wait_ns;
  for (;;) {
    std::optional<std::string> name = PartOfAnother(point_dir, nodes);
    if (!name || give_up()) return std::nullopt;
    if (clock.MonotonicNs() >= end_ns) return name;
    clock.SleepNs(kLookForPartsNs);
  }
}

}  // namespace ridgeline
