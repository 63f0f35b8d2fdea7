// The largest batch, or the longest sequence, that fits. It is searched for each combination of a sweep's other fields,
// and for `batch_size: max` of a point.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/table.h"
#include "plan/memory_limit.h"
#include "plan/plan.h"
#include "plan/show.h"
#include "sweep/sweep.h"

namespace ridgeline::plan {

struct Largest {
  RunSpec spec;                      // with the largest value that fits; with the least one if even that is too much
  bool fits = false;                 // false: even the least value is too much
  bool by_memory = true;             // false: the model allows no more (a gpt's positions), or the field's range ends
  predict::MemoryForecast forecast;  // of one rank, for `spec`
  SlabLimit limit;
  std::string estimated = {};  // in words, if another trainer's framework estimates the memory
};

// Returns one for each combination of the fields that the sweep varies besides `field` (batch_size or seq_length), in
// its order. The sweep's own values of `field` are ignored, except in its rules. Forecasts show that the value found
// fits and the next one does not. Another trainer's memory is what its framework estimates. Throws Error(kUsage) for
// another field, for a point whose memory has no limit, and for another trainer's point that none of `frameworks`
// estimates.
std::vector<Largest> FindLargest(const sweep::Sweep& sweep, const std::string& field, const NodeMemory& node,
                                 const Forecaster& forecaster, const predict::Frameworks* frameworks = nullptr);

// The same for the batch size of one point, whose own batch size is ignored.
Largest LargestBatchWithin(RunSpec spec, SlabLimit limit, const Forecaster& forecaster);

// Returns one row each: the other fields that vary, the value, its peak, what is available, and why.
Table LargestTable(const sweep::Sweep& sweep, const std::string& field, const std::vector<Largest>& largest,
                   Audience audience);

// The value of `batch_size: max`: the largest that fits the memory that the point may have, by its launcher's settings,
// its memory_limit or its GPU. The memory that is free on a node at the moment does not count, because the point would
// change every time. If that value has run out of memory, seven eighths of it are measured too, then three quarters,
// then half.
class BatchesThatFit final : public sweep::LargestBatch {
 public:
  // Whether the point has ended out of memory, measured as its sweep says.
  using EndedForMemory = std::function<bool(const sweep::Sweep& sweep, const Point& point)>;

  // `node`: the memory that nodes are said to have, for example by `plan --memory`; usually empty.
  BatchesThatFit(NodeMemory node, Forecaster forecaster, EndedForMemory ended = {})
      : node_(std::move(node)), forecaster_(std::move(forecaster)), ended_(std::move(ended)) {}

  std::vector<int64_t> Of(const sweep::Sweep& sweep, const Point& point, const yaml::Place& place) const override;

  struct Answer {
    Largest largest;                   // its spec has the first of `batch_sizes`
    std::vector<int64_t> batch_sizes;  // the last is the valid one; those before it ran out of memory
  };
  // The answers so far, one for each point, in the order of the questions.
  const std::vector<Answer>& answers() const { return answers_; }

 private:
  const NodeMemory node_;
  const Forecaster forecaster_;
  const EndedForMemory ended_;
  mutable std::map<std::string, Largest> known_;     // by what determines memory
  mutable std::map<std::string, size_t> answer_of_;  // by point, still with `max` in it
  mutable std::vector<Answer> answers_;
};

// Makes this the meaning of the sweep's `batch_size: max`.
std::shared_ptr<const BatchesThatFit> UseLargestBatches(sweep::Sweep& sweep, const NodeMemory& node,
                                                        const Forecaster& forecaster,
                                                        BatchesThatFit::EndedForMemory ended = {});

// Returns "batch_size: max is 56 (checkpointing=none): 7.94 GB of 8.00 GB a rank (memory_limit 8.00 GB)": a line for
// each of the first few answers, and a line that counts the others.
std::vector<std::string> LargestBatchLines(const sweep::Sweep& sweep, const BatchesThatFit& batches);

}  // namespace ridgeline::plan
