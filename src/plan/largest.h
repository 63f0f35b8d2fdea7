// The largest batch, or the longest sequence, that fits: searched for each combination of what else a sweep varies, and
// for what `batch_size: max` of a point stands for.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/table.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/show.h"
#include "sweep/sweep.h"

namespace ridgeline {

struct Largest {
  RunSpec spec;             // with the largest value that fits; with 1 where that is too much already
  bool fits = false;        // false: 1 is too much already
  bool by_memory = true;    // false: the model allows no more (a gpt's positions), or the field's range ends
  MemoryForecast forecast;  // of one rank, as `spec` has it
  SlabLimit limit;
};

// One for each combination of what the sweep varies beside `field` (batch_size or seq_length), in its order; what it
// says of `field` itself is not asked, but for its rules. The value after the one found does not fit, by forecasts of
// both. Throws Error(kUsage) for another field, for a point whose memory nothing limits, and for another trainer's.
std::vector<Largest> FindLargest(const Sweep& sweep, const std::string& field, const NodeMemory& node,
                                 const Forecaster& forecaster);

// The same of a batch size, for one point, whose own does not count.
Largest LargestBatchWithin(RunSpec spec, SlabLimit limit, const Forecaster& forecaster);

// One row each: the other fields that vary, the value, the peak it has, what is available and why.
Table LargestTable(const Sweep& sweep, const std::string& field, const std::vector<Largest>& largest,
                   Audience audience);

// What `batch_size: max` stands for: the largest that fits into what the point may have, by its launcher's settings,
// its memory_limit or its GPU. What is free on a node at the moment does not count: the point would be another every
// time. Where that has ended out of memory, seven eighths of it stand beside it, then three quarters, then half.
class BatchesThatFit final : public LargestBatch {
 public:
  // Whether the point has ended out of memory, as its sweep measures it.
  using EndedForMemory = std::function<bool(const Sweep& sweep, const Point& point)>;

  // `node`: what nodes are said to have, such as by `plan --memory`; usually nothing.
  BatchesThatFit(NodeMemory node, Forecaster forecaster, EndedForMemory ended = {})
      : node_(std::move(node)), forecaster_(std::move(forecaster)), ended_(std::move(ended)) {}

  std::vector<int64_t> Of(const Sweep& sweep, const Point& point, const Place& place) const override;

  struct Answer {
    Largest largest;                   // its spec has the first of `batch_sizes`
    std::vector<int64_t> batch_sizes;  // the last is the one to go by; those before it ran out of memory
  };
  // What was answered, each point once, in the order it was asked.
  const std::vector<Answer>& answers() const { return answers_; }

 private:
  const NodeMemory node_;
  const Forecaster forecaster_;
  const EndedForMemory ended_;
  mutable std::map<std::string, Largest> known_;     // by what decides memory
  mutable std::map<std::string, size_t> answer_of_;  // by the point, with `max` in it
  mutable std::vector<Answer> answers_;
};

// Lets `batch_size: max` of the sweep stand for that.
std::shared_ptr<const BatchesThatFit> UseLargestBatches(Sweep& sweep, const NodeMemory& node,
                                                        const Forecaster& forecaster,
                                                        BatchesThatFit::EndedForMemory ended = {});

// "batch_size: max is 56 (checkpointing=none): 7.94 GB of 8.00 GB a rank (memory_limit 8.00 GB)", a line for each of
// the first so many answers, and one that counts the others.
std::vector<std::string> LargestBatchLines(const Sweep& sweep, const BatchesThatFit& batches);

}  // namespace ridgeline
