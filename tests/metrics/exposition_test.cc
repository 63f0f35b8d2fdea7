#include "metrics/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ridgeline::metrics {
namespace {

using Kind = MetricsText::Kind;

std::string OneOfEach(MetricsFormat format) {
  MetricsText text(format);
  text.Begin(Kind::kGauge, "ridgeline_size_bytes", "bytes", "A size.");
  text.Add({{"sweep", "a"}, {"point", "1"}}, 1.5e9);
  text.Begin(Kind::kCounter, "ridgeline_oom", "", "Times.");
  text.Add({}, 3);
  text.Begin(Kind::kInfo, "ridgeline_build", "", "A build.");
  text.Add({{"version", "0.1.0"}}, 1);
  text.Begin(Kind::kHistogram, "ridgeline_wait_seconds", "seconds", "A wait.");
  text.AddHistogram({{"sweep", "a"}}, {1, 60}, {2, 3}, 4, 100.5);
  return text.Finish();
}

TEST(Exposition, NamesSamplesAsPrometheusTextDoes) {
  EXPECT_EQ(OneOfEach(MetricsFormat::kPrometheus),
            "# HELP ridgeline_size_bytes A size.\n"
            "# TYPE ridgeline_size_bytes gauge\n"
            "ridgeline_size_bytes{sweep=\"a\",point=\"1\"} 1500000000\n"
            "# HELP ridgeline_oom_total Times.\n"
            "# TYPE ridgeline_oom_total counter\n"
            "ridgeline_oom_total 3\n"
            "# HELP ridgeline_build_info A build.\n"
            "# TYPE ridgeline_build_info gauge\n"
            "ridgeline_build_info{version=\"0.1.0\"} 1\n"
            "# HELP ridgeline_wait_seconds A wait.\n"
            "# TYPE ridgeline_wait_seconds histogram\n"
            "ridgeline_wait_seconds_bucket{sweep=\"a\",le=\"1.0\"} 2\n"
            "ridgeline_wait_seconds_bucket{sweep=\"a\",le=\"60.0\"} 3\n"
            "ridgeline_wait_seconds_bucket{sweep=\"a\",le=\"+Inf\"} 4\n"
            "ridgeline_wait_seconds_sum{sweep=\"a\"} 100.5\n"
            "ridgeline_wait_seconds_count{sweep=\"a\"} 4\n");
}

TEST(Exposition, NamesFamiliesAsOpenMetricsDoes) {
  const std::string text = OneOfEach(MetricsFormat::kOpenMetrics);
  for (const char* line : {"# TYPE ridgeline_size_bytes gauge\n# UNIT ridgeline_size_bytes bytes\n",
                           "# TYPE ridgeline_oom counter\nridgeline_oom_total 3\n",
                           "# TYPE ridgeline_build info\nridgeline_build_info{version=\"0.1.0\"} 1\n",
                           "# TYPE ridgeline_wait_seconds histogram\n# UNIT ridgeline_wait_seconds seconds\n"}) {
    EXPECT_THAT(text, testing::HasSubstr(line));
  }
  EXPECT_THAT(text, testing::EndsWith("\n# EOF\n"));
}

TEST(Exposition, EscapesWhatLabelsHold) {
  MetricsText text(MetricsFormat::kPrometheus);
  text.Begin(Kind::kGauge, "ridgeline_x", "", "X.");
  text.Add({{"sweep", "a\"b\\c\nd\xff"}}, 1);
  text.Add({{"sweep", std::string(5000, 'x')}}, 1);
  const std::string said = text.Finish();
  EXPECT_THAT(said, testing::HasSubstr("{sweep=\"a\\\"b\\\\c\\nd\xEF\xBF\xBD\"} 1\n"));
  EXPECT_LT(said.size(), 500U) << "what is long is cut";
}

TEST(Exposition, LeavesOutWhatIsNoNumberAndFamiliesWithoutSamples) {
  MetricsText text(MetricsFormat::kPrometheus);
  text.Begin(Kind::kGauge, "ridgeline_x", "", "X.");
  text.Add({}, std::nan(""));
  text.Add({}, std::numeric_limits<double>::infinity());
  EXPECT_EQ(text.Finish(), "");
}

}  // namespace
}  // namespace ridgeline::metrics
