// What a step ran and when, on two rows: what computes, and what moves bytes between ranks. Of a step that was
// measured, call by call, or of one that is predicted (predict/clock.h); written as other tools read it by
// step/trace_file.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/device/trace.h"

namespace ridgeline {

enum class Collective : uint8_t { kNone, kAllReduce, kAllGather, kReduceScatter };

// Of a call of comm/collective.h that moves bytes; kNone of every other.
Collective CollectiveOf(const OpCall& call);

struct TimelineSpan {
  std::string_view op;  // an OpDef's name, which lives as long as the program
  Phase phase = Phase::kForward;
  int32_t layer = -1;  // -1: outside the layers
  double begin_ns = 0;
  double end_ns = 0;
  double flops = 0;
  double bytes = 0;  // moved to and from memory; of a collective: what this rank puts in
  Collective collective = Collective::kNone;
  std::vector<uint32_t> after = {};  // the spans, all of them earlier ones, that had to end first
};

// Spans in the order of the program. A row's spans come one after another; a collective begins after what computed
// before it, and what computes after its landing waits for it.
class Timeline {
 public:
  void Compute(TimelineSpan span);
  void TakeOff(int32_t flight, TimelineSpan span);
  // The flight has landed. One that never took off is none.
  void Land(int32_t flight);
  // Has all of it take so many times as long.
  void Stretch(double factor);

  const std::vector<TimelineSpan>& spans() const { return spans_; }

 private:
  uint32_t Add(TimelineSpan span, int64_t& last_of_row);

  std::vector<TimelineSpan> spans_;
  int64_t last_compute_ = -1;
  int64_t last_collective_ = -1;
  std::unordered_map<int32_t, uint32_t> flying_;
  std::vector<uint32_t> landed_;  // since what computed last
};

// Of a step whose calls took so long, one after another on the stream that computes. A collective is seen from its
// take-off, or from when the one before it had ended, to its landing or that of a later one: it may have been done
// before.
Timeline MeasuredTimeline(const Trace& trace, std::span<const double> call_ns);

}  // namespace ridgeline
