#include "nightly/metrics.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "metrics/exposition.h"

namespace ridgeline::nightly {

std::string NightlyMetrics(std::vector<regress::Night> nights, const regress::Night& last) {
  std::erase_if(nights, [&](const regress::Night& night) { return night.sweep_name != last.sweep_name; });
  metrics::MetricsText text(metrics::MetricsFormat::kPrometheus);
  using enum metrics::MetricsText::Kind;
  const std::optional<regress::Night> good = regress::LastGoodNight(nights);
  const metrics::MetricLabels labels = {{"sweep", last.sweep_name}};
  const auto gauge = [&](const char* name, const char* unit, const char* help, double value) {
    text.Begin(kGauge, name, unit, help);
    text.Add(labels, value);
  };
  const int64_t first_unix_s = nights.empty() ? last.started_unix_s : nights.front().started_unix_s;
  gauge("ridgeline_nightly_first_start_timestamp_seconds", "seconds", "When the first night began.",
        static_cast<double>(std::min(first_unix_s, last.started_unix_s)));
  gauge("ridgeline_nightly_last_start_timestamp_seconds", "seconds", "When the last night began.",
        static_cast<double>(last.started_unix_s));
  if (good) {
    gauge("ridgeline_nightly_last_success_timestamp_seconds", "seconds", "When the last good night ended.",
          static_cast<double>(good->ended_unix_s));
  }
  gauge("ridgeline_nightly_last_exit_code", "",
        "Exit code of the last night: 0 pass, 1 regressed, 2 refused, 3 infrastructure, 4 inconclusive.",
        last.exit_code);
  if (last.was_gated || !last.lost.empty()) {
    gauge("ridgeline_nightly_last_lost_points", "", "Points of the last night without a result.",
          static_cast<double>(last.lost.size()));
  }
  if (last.was_gated) {
    gauge("ridgeline_nightly_last_worse_points", "", "Points of the last night that are worse than their baseline.",
          static_cast<double>(last.worse.size()));
  }
  gauge("ridgeline_nightly_last_duration_seconds", "seconds", "How long the last night took.",
        static_cast<double>(last.ended_unix_s - last.started_unix_s));
  return text.Finish();
}

}  // namespace ridgeline::nightly
