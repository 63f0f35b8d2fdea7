// The local launcher's records and the kernel's /proc/PID/stat are accepted or found invalid. A record that is
// accepted, written and read again is the same.
#include "local/parse.h"

#include "ridgeline/checksum.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline::local;  // NOLINT(google-build-using-namespace): a program of one function
  namespace fuzz = ridgeline::fuzz;
  const std::string_view text = fuzz::TextOf(data, size);
  ParseStartTicks(text);
  Seen seen;
  seen.submitted = true;
  ParseStarted(text);
  ParseExit(text);
  const std::string sealed = ridgeline::SealedLine(text);  // arbitrary bytes have no right checksum
  seen.started = ParseStarted(sealed);
  seen.exit = ParseExit(sealed);
  StateOf(seen);
  if (seen.started) {
    fuzz::Require(seen.started->pid > 1, "a signal to its group reaches no other process");
    const std::string written = FormatStarted(*seen.started);
    const auto again = ParseStarted(written);
    fuzz::Require(again && FormatStarted(*again) == written, "a record is read as written");
  }
  return 0;
}
