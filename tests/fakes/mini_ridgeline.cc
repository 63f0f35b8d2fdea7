// Only `ridgeline exec`, with a configurable grace time, and times that a trainer may hang:
//   mini_ridgeline exec JOB.json [GRACE_MS [HANG_MS [OTHERS_END_MS [QUIET_START_MS]]]]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "node/exec.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  ridgeline::node::ExecOptions options;
  if (argc > 3) options.grace_ns = std::atoll(argv[3]) * 1'000'000;
  if (argc > 4) options.hang.hang_ns = std::atoll(argv[4]) * 1'000'000;
  if (argc > 5) options.others_end_ns = std::atoll(argv[5]) * 1'000'000;
  if (argc > 6) options.hang.quiet_start_ns = std::atoll(argv[6]) * 1'000'000;
  try {
    const ridgeline::node::ExecSummary summary = ridgeline::node::ExecJobFile(argv[2], options);
    std::printf("ran %lld skipped %lld\n", static_cast<long long>(summary.ran),
                static_cast<long long>(summary.skipped));
    if (summary.unfit) std::fprintf(stderr, "unfit: %s\n", summary.unfit->message.c_str());
    return ridgeline::node::ExecExitCode(summary);
  } catch (const ridgeline::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return ridgeline::ExitCode(e.kind());
  }
}
