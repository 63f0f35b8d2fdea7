#include "node/log_growth.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>

namespace ridgeline::node {
namespace {

constexpr int kPauseMs = 20;
constexpr int64_t kPauseNs = int64_t{kPauseMs} * 1'000'000;

}  // namespace

LogGrowth::LogGrowth(const std::filesystem::path& log, const Clock& clock) : log_(log), clock_(clock) {
  inotify_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (inotify_ < 0 || ::inotify_add_watch(inotify_, log.c_str(), IN_MODIFY) < 0) arrivals_.resolution_ns = kPauseNs;
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  try {
    if (stop_ >= 0) thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    // No thread starts. No arrivals are known then.
  }
}

LogGrowth::~LogGrowth() {
  Finish();
  if (inotify_ >= 0) ::close(inotify_);
  if (stop_ >= 0) ::close(stop_);
}

const trainers::Arrivals& LogGrowth::Finish() {
  if (thread_.joinable()) {
    ::eventfd_write(stop_, 1);
    thread_.join();
    Look();
  }
  return arrivals_;
}

void LogGrowth::Run() {
  std::array<pollfd, 2> fds = {{{stop_, POLLIN, 0}, {inotify_, POLLIN, 0}}};
  std::array<char, 4096> events{};
  while (true) {
    ::poll(fds.data(), fds.size(), kPauseMs);
    if (fds[0].revents != 0) return;
    while (inotify_ >= 0 && ::read(inotify_, events.data(), events.size()) > 0) {
    }
    Look();
  }
}

void LogGrowth::Look() {
  struct stat file {};
  const int64_t now_ns = clock_.MonotonicNs();
  if (::stat(log_.c_str(), &file) != 0) return;
  std::vector<trainers::Arrival>& sizes = arrivals_.sizes;
  if (!sizes.empty() && (file.st_size <= sizes.back().bytes || now_ns - sizes.back().at_ns < least_pause_ns_)) return;
  if (sizes.size() == kMostSizes) {
    // Removes every second size. Further sizes are kept at larger intervals.
    for (size_t i = 0; 2 * i + 1 < sizes.size(); ++i) sizes[i] = sizes[2 * i + 1];
    sizes.resize(sizes.size() / 2);
    least_pause_ns_ = std::max<int64_t>(2 * least_pause_ns_, 1'000'000);
    arrivals_.resolution_ns = std::max(arrivals_.resolution_ns, least_pause_ns_);
  }
  if (file.st_size > 0) sizes.push_back({file.st_size, now_ns});
}

}  // namespace ridgeline::node
