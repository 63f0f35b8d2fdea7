#include "engine/step/timeline.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/comm/collective.h"

namespace ridgeline::engine {
uint32_t Timeline::Add(TimelineSpan span, int64_t& last_of_row) {
  if (last_of_row >= 0) span.after.push_back(static_cast<uint32_t>(last_of_row));
  std::sort(span.after.begin(), span.after.end());
  span.after.erase(std::unique(span.after.begin(), span.after.end()), span.after.end());
  const auto index = static_cast<uint32_t>(spans_.size());
  spans_.push_back(std::move(span));
  last_of_row = index;
  return index;
}

void Timeline::Compute(TimelineSpan span) {
  span.after = std::exchange(landed_, {});
  Add(std::move(span), last_compute_);
}

void Timeline::TakeOff(int32_t flight, TimelineSpan span) {
  // Flights that landed since the last computation also remain reasons for the next computation to wait.
  span.after = landed_;
  if (last_compute_ >= 0) span.after.push_back(static_cast<uint32_t>(last_compute_));
  flying_[flight] = Add(std::move(span), last_collective_);
}

void Timeline::Land(int32_t flight) {
  const auto found = flying_.find(flight);
  if (found == flying_.end()) return;
  landed_.push_back(found->second);
  flying_.erase(found);
}

void Timeline::Stretch(double factor) {
  for (TimelineSpan& span : spans_) {
    span.begin_ns *= factor;
    span.end_ns *= factor;
  }
}

Timeline MeasuredTimeline(const Trace& trace, std::span<const double> call_ns) {
  const std::vector<OpCall>& calls = trace.calls();
  if (call_ns.size() != calls.size()) throw Error(ErrorKind::kInternal, "a timeline needs the time of each call");
  // Collectives end in the order in which they started, so one had ended when a later one landed.
  std::vector<double> ends_ns;
  std::unordered_map<int32_t, size_t> places;
  double now_ns = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    now_ns += call_ns[i];
    if (MovesBetweenRanks(calls[i].op->kind)) {
      places[CollectiveAttrsOf(calls[i]).flight] = ends_ns.size();
      ends_ns.push_back(now_ns);
    } else if (calls[i].op->kind == OpKind::kLanding) {
      if (const auto place = places.find(CollectiveAttrsOf(calls[i]).flight); place != places.end()) {
        ends_ns[place->second] = now_ns;
      }
    }
  }
  for (size_t i = ends_ns.size(); i-- > 1;) ends_ns[i - 1] = std::min(ends_ns[i - 1], ends_ns[i]);
  Timeline timeline;
  double wire_ns = 0;  // until when the row of collectives is busy
  now_ns = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const OpCall& call = calls[i];
    TimelineSpan span{call.op->name, call.phase, call.layer, now_ns, now_ns + call_ns[i], call.cost.flops};
    span.collective = call.op->collective;
    if (call.op->kind == OpKind::kLanding) {
      timeline.Land(CollectiveAttrsOf(call).flight);
    } else if (span.collective == Collective::kNone) {
      span.bytes = call.bytes();
      timeline.Compute(std::move(span));
    } else {
      const int32_t flight = CollectiveAttrsOf(call).flight;
      span.axes = CollectiveAttrsOf(call).axes;
      span.bytes = static_cast<double>(call.reads().front().bytes());
      span.begin_ns = std::max(span.begin_ns, wire_ns);
      span.end_ns = wire_ns = ends_ns[places.at(flight)];
      timeline.TakeOff(flight, std::move(span));
      if (call.op->kind == OpKind::kAtOnce) timeline.Land(flight);
    }
    now_ns += call_ns[i];
  }
  return timeline;
}

}  // namespace ridgeline::engine
