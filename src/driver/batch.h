// How many jobs one call to a launcher is about. Interrupts are looked at between two calls, so a launcher that is slow
// per job gets few jobs a call, and one that is quick gets all. One that works in bulk (LauncherCapabilities) gets all
// from the first call on: Slurm makes one array of them, and has one answer for all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace ridgeline::driver {

class BatchSize {
 public:
  explicit BatchSize(bool bulk);
  size_t jobs() const { return jobs_; }
  // A call about `jobs` jobs took `took_ns`. The next batch is larger if that was quick, and smaller if it was slow.
  void Took(size_t jobs, int64_t took_ns);

 private:
  bool bulk_;
  size_t jobs_;
};

// Asks about all `jobs` in batches, and returns the answers in their order. Returns nothing if `stop` holds between two
// batches.
template <typename Answer, typename Job>
std::optional<std::vector<Answer>> AskInBatches(BatchSize& size, const Clock& clock, std::span<const Job> jobs,
                                                const std::function<std::vector<Answer>(std::span<const Job>)>& ask,
                                                const std::function<bool()>& stop) {
  std::vector<Answer> answers;
  while (!jobs.empty()) {
    if (!answers.empty() && stop()) return std::nullopt;
    const std::span<const Job> batch = jobs.first(std::min(size.jobs(), jobs.size()));
    const int64_t begin_ns = clock.MonotonicNs();
    for (Answer answer : ask(batch)) answers.push_back(std::move(answer));
    size.Took(batch.size(), clock.MonotonicNs() - begin_ns);
    jobs = jobs.subspan(batch.size());
  }
  return answers;
}

}  // namespace ridgeline::driver
