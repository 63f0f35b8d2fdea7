#include "cli/trainer_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "ridgeline/job_line.h"

namespace ridgeline::cli {
namespace {

constexpr int64_t kMostShown = 8 << 10;  // per print: so a log that a node rotates at 10 MiB lasts hours
constexpr size_t kMostLineBytes = 1000;

std::string LineOf(std::string_view said) {
  const bool cut = said.size() > kMostLineBytes;
  return fmt::format("| {}{}\n", Disarmed(said.substr(0, kMostLineBytes)), cut ? " …" : "");
}

}  // namespace

std::string Disarmed(std::string_view text) {
  std::string line = PrintableLine(text);
  for (size_t at = line.find(kJobLineMark); at != std::string::npos; at = line.find(kJobLineMark, at)) {
    line.insert(at + kJobLineMark.size() - 1, ":");  // "ridgeline:: "
  }
  return line;
}

TrainerOutput::TrainerOutput(const std::filesystem::path& log)
    : fd_(::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)) {}

std::string TrainerOutput::Next(bool ended) {
  struct stat info {};
  if (fd_.get() < 0 || ::fstat(fd_.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  const int64_t size = info.st_size;
  const int64_t from = std::max(std::min(offset_, size), size - kMostShown);
  std::string text(static_cast<size_t>(size - from), '\0');
  const ssize_t got = ::pread(fd_.get(), text.data(), text.size(), from);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  if (text.empty()) return {};

  std::string told;
  size_t begin = 0;
  if (from > offset_) {
    begin = std::min(text.find_first_of("\n\r"), text.size() - 1) + 1;  // `begin` was in the middle of a line
    told = fmt::format("| … {} are left out here\n", FormatBytes(from + static_cast<int64_t>(begin) - offset_));
  }
  // A progress bar that overwrites itself has line ends of its own.
  for (size_t end = text.find_first_of("\n\r", begin); end != std::string::npos;
       end = text.find_first_of("\n\r", begin)) {
    if (end > begin) told += LineOf(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  const std::string_view rest = std::string_view(text).substr(begin);
  if (!rest.empty() && (ended || rest.size() > kMostLineBytes)) {
    told += LineOf(rest);
    begin = text.size();
  }
  offset_ = from + static_cast<int64_t>(begin);
  return told;
}

}  // namespace ridgeline::cli
