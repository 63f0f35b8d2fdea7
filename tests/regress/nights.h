// A store with consecutive nights of a machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "regress/gate.h"
#include "regress/measurements.h"
#include "tests/base/temp_dir.h"
#include "tests/regress/measured.h"

namespace ridgeline::testing {

// Three runs that take 99.5, 100 and 100.5 % of this.
inline std::vector<int64_t> ThreeRuns(double ms) {
  std::vector<int64_t> runs;
  for (const double share : {0.995, 1.0, 1.005}) runs.push_back(static_cast<int64_t>(ms * share * 1e6));
  return runs;
}

class Nights {
 public:
  explicit Nights(store::Store& store, size_t points = 2) : store_(store), points_(FewStepPoints(points)) {}

  const std::vector<Point>& points() const { return points_; }

  // A night in which each point ends so, a second after the previous one.
  void Add(const std::string& campaign, const std::function<RunResult(const Point&)>& end) {
    Measure(store_, campaign, points_, [&](const Point& point) {
      RunResult result = end(point);
      now_ns_ += 1'000'000'000;
      result.started_unix_ns = now_ns_ - 1000;
      result.ended_unix_ns = now_ns_;
      return result;
    });
  }
  void Add(const std::string& campaign, double ms) {
    Add(campaign, [&](const Point& point) { return Timed(point, ThreeRuns(ms)); });
  }
  // night-1 and so on, with three runs each.
  void AddSeveral(int count, double ms = 100) {
    for (int i = 1; i <= count; ++i) Add("night-" + std::to_string(i), ms);
  }

  // Leaves it out of the baseline, like a night that was worse.
  void LeaveOut(const std::string& campaign) { left_out_.push_back({campaign, {}, {}}); }

  regress::GateSides Sides(const std::string& head, const std::string& pinned = {}) {
    regress::GateSides sides;
    regress::MeasurementChoice choice;
    choice.campaign = head;
    sides.head = regress::ReadMeasurements(store_, choice);
    sides.expected = regress::ReadExpected(store_, head);
    choice.campaign = "night-*";
    choice.most = 26;
    choice.before_unix_ns = sides.head.empty() ? 0 : sides.head.front().measurements.front().ended_unix_ns;
    sides.recent = regress::ReadMeasurements(store_, choice);
    choice.left_out = left_out_;
    sides.baseline = regress::ReadMeasurements(store_, choice);
    if (!pinned.empty()) {
      choice = {};
      choice.campaign = pinned;
      sides.pinned = regress::ReadMeasurements(store_, choice);
    }
    return sides;
  }

 private:
  store::Store& store_;
  std::vector<Point> points_;
  std::vector<regress::LeftOutMeasurements> left_out_;
  int64_t now_ns_ = 1'700'000'000'000'000'000;
};

}  // namespace ridgeline::testing
