#include "run/disturbance.h"

#include <fmt/format.h>

namespace ridgeline {

std::string Disturbance(const RunResult& result) {
  std::string words;
  if (result.cores.others_share > kDisturbingShare) {
    words = fmt::format("others took {:.0f} % of its cores' time", 100 * result.cores.others_share);
  }
  if (const int64_t times = result.cores.throttles; times > 0) {
    words += fmt::format("{}throttled {} time{}", words.empty() ? "" : ", ", times, times == 1 ? "" : "s");
  }
  return words;
}

}  // namespace ridgeline
