#include "driver/launcher_retries.h"

#include "base/text.h"

namespace ridgeline::driver {

void LauncherRetries::NotAnswered(const Error& error) {
  const std::string said = "asking again: " + PrintableLine(error.message());
  if (said != last_said_) parts_.observer.Note(said);
  last_said_ = said;
  if (patience_.NotAnswered(parts_.clock.MonotonicNs())) throw error;
}

}  // namespace ridgeline::driver
