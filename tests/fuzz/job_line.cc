// A line of a job's results or of a pod's log is accepted only if it was written whole. A line that is accepted and
// written again is accepted, too. Reading on from any place between two lines gives the rest.
#include "ridgeline/job_line.h"

#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "base/files.h"
#include "ridgeline/line_file.h"
#include "tests/fuzz/fuzz.h"

namespace ridgeline::fuzz {
namespace {

std::vector<std::string> LinesFrom(int fd, int64_t offset) {
  std::vector<std::string> lines;
  Require(ReadWholeLines(fd, offset, [&](std::string_view line) { return lines.emplace_back(line), true; }),
          "it is read");
  return lines;
}

}  // namespace
}  // namespace ridgeline::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  const Fd file(::memfd_create("lines", MFD_CLOEXEC));
  WriteAll(file.get(), fuzz::TextOf(data, size), "lines");
  const std::vector<std::string> lines = fuzz::LinesFrom(file.get(), 0);
  int64_t offset = 0;
  size_t left = lines.size();
  JobLineJoiner joiner;
  for (const std::string& text : lines) {
    if (const auto line = ParseJobLine(text)) {
      std::string again = FormatJobLine(*line);
      again.pop_back();
      fuzz::Require(ParseJobLine(again) == line, "a line is read as written");
      const auto joined = joiner.Join(*line);
      fuzz::Require(line->kind == kPieceLine || joined == line, "a line that is not a piece is whole");
    }
    offset += static_cast<int64_t>(text.size()) + 1;
    if (--left < 3)
      fuzz::Require(fuzz::LinesFrom(file.get(), offset).size() == left, "reading goes on where it stopped");
  }
  return 0;
}
