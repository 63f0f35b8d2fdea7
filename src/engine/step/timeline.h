// What a step ran and when, on two rows: computation, and communication between ranks. It comes from a step that was
// measured call by call, or from a predicted one (predict/step_model.h). step/trace_file.h writes it for other tools.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/comm/mesh.h"
#include "engine/device/trace.h"

namespace ridgeline::engine {

struct TimelineSpan {
  std::string_view op;  // an OpDef's name, which lives as long as the program
  Phase phase = Phase::kForward;
  int32_t layer = -1;  // -1: outside the layers
  double begin_ns = 0;
  double end_ns = 0;
  double flops = 0;
  double bytes = 0;  // moved to and from memory; for a collective: the bytes that this rank contributes
  Collective collective = Collective::kNone;
  MeshAxes axes = MeshAxes::All();   // along which the ranks of the collective lie
  std::vector<uint32_t> after = {};  // the earlier spans that had to end first
};

// Spans in the order of the program. A row's spans run one after another. A collective starts after the computation
// before it, and computation after its landing waits for it.
class Timeline {
 public:
  void Compute(TimelineSpan span);
  void TakeOff(int32_t flight, TimelineSpan span);
  // Lands the flight. Ignores a flight that never took off.
  void Land(int32_t flight);
  // Makes everything take so many times as long.
  void Stretch(double factor);

  const std::vector<TimelineSpan>& spans() const { return spans_; }

 private:
  uint32_t Add(TimelineSpan span, int64_t& last_of_row);

  std::vector<TimelineSpan> spans_;
  int64_t last_compute_ = -1;
  int64_t last_collective_ = -1;
  std::unordered_map<int32_t, uint32_t> flying_;
  std::vector<uint32_t> landed_;  // since the last computation
};

// Returns the timeline of a step with these times of calls, one after another on the computing stream. A collective
// spans from its take-off, or from the end of the one before it, to its landing or that of a later one. It may have
// ended before.
Timeline MeasuredTimeline(const Trace& trace, std::span<const double> call_ns);

}  // namespace ridgeline::engine
