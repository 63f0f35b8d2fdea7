// Which call waits for which on the two rows of a timeline, and the files that it is written to.
#include "engine/step/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "engine/comm/collective.h"
#include "engine/ops/gemm.h"
#include "engine/step/program.h"
#include "engine/step/trace_file.h"
#include "run/spec.h"
#include "tests/engine/train/specs.h"

namespace ridgeline::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TimelineSpan Work(double begin_ns, double end_ns) { return {"work", Phase::kForward, 0, begin_ns, end_ns, 1, 8}; }
TimelineSpan Gather(double begin_ns, double end_ns) {
  return {"all_gather", Phase::kForward, 0, begin_ns, end_ns, 0, 64, Collective::kAllGather};
}

TEST(Timeline, ACallWaitsForTheOneBeforeItAndForWhatLanded) {
  Timeline timeline;
  timeline.Compute(Work(0, 10));        // 0
  timeline.TakeOff(7, Gather(10, 50));  // 1
  timeline.Compute(Work(10, 20));       // 2: beside the flight
  timeline.TakeOff(8, Gather(50, 90));  // 3
  timeline.Land(7);
  timeline.Compute(Work(50, 60));  // 4
  timeline.Land(8);
  timeline.Land(8);
  timeline.Land(99);               // never took off
  timeline.Compute(Work(90, 95));  // 5
  const auto& spans = timeline.spans();
  ASSERT_EQ(spans.size(), 6U);
  EXPECT_THAT(spans[0].after, IsEmpty());
  EXPECT_THAT(spans[1].after, ElementsAre(0));
  EXPECT_THAT(spans[2].after, ElementsAre(0));
  EXPECT_THAT(spans[3].after, ElementsAre(1, 2)) << "collectives go one after another";
  EXPECT_THAT(spans[4].after, ElementsAre(1, 2));
  EXPECT_THAT(spans[5].after, ElementsAre(3, 4));
}

TEST(Timeline, ACollectiveThatNeedsWhatLandedWaitsForIt) {
  Timeline timeline;
  timeline.TakeOff(1, Gather(0, 10));
  timeline.Land(1);
  timeline.TakeOff(2, Gather(10, 20));
  timeline.Compute(Work(10, 12));
  EXPECT_THAT(timeline.spans()[1].after, ElementsAre(0));
  EXPECT_THAT(timeline.spans()[2].after, ElementsAre(0)) << "the first landed, the second did not";
}

// The timeline of a step of two ranks: every call takes a microsecond, and no row overlaps itself.
class MeasuredTimelineTest : public ::testing::Test {
 protected:
  MeasuredTimelineTest() {
    Json values = TinyModel("llama");
    values["ranks"] = 2;
    values["shard"] = "full";
    program_ = BuildStep(SpecFrom(values));
    timeline_ = MeasuredTimeline(program_.trace, std::vector<double>(program_.trace.calls().size(), 1000));
  }

  StepProgram program_;
  Timeline timeline_;
};

TEST_F(MeasuredTimelineTest, HasEveryCallOnItsRow) {
  size_t landings = 0;
  for (const OpCall& call : program_.trace.calls()) landings += call.op == &kLand ? 1 : 0;
  ASSERT_GT(landings, 0U);
  EXPECT_EQ(timeline_.spans().size(), program_.trace.calls().size() - landings);
  double compute_ns = 0;
  double wire_ns = 0;
  size_t collectives = 0;
  for (const TimelineSpan& span : timeline_.spans()) {
    double& row_ns = span.collective == Collective::kNone ? compute_ns : wire_ns;
    EXPECT_GE(span.begin_ns, row_ns) << span.op;
    EXPECT_GE(span.end_ns, span.begin_ns) << span.op;
    row_ns = span.end_ns;
    if (span.collective == Collective::kNone) continue;
    ++collectives;
    EXPECT_GT(span.bytes, 0) << span.op;
  }
  EXPECT_GT(collectives, 0U);
  EXPECT_LE(compute_ns, 1000.0 * static_cast<double>(program_.trace.calls().size()));
}

TEST_F(MeasuredTimelineTest, NothingBeginsBeforeWhatItWaitsFor) {
  for (const TimelineSpan& span : timeline_.spans()) {
    for (const uint32_t earlier : span.after) {
      EXPECT_LE(timeline_.spans()[earlier].end_ns, span.begin_ns)
          << span.op << " waits for " << timeline_.spans()[earlier].op;
    }
  }
}

TEST_F(MeasuredTimelineTest, IsReadBackAsChromesEvents) {
  const std::string bad = "a \"title\" \xff\x1b";
  const Json trace = ParseJson(ChromeTrace(timeline_, {bad, "measured", {{"device", bad}}}), "trace");
  size_t spans = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_GE(event.at("dur"), 0);
    EXPECT_LE(event.at("tid"), 1);
    ++spans;
  }
  EXPECT_EQ(spans, timeline_.spans().size());
}

TEST(MeasuredTimeline, NeedsTheTimeOfEachCall) {
  const StepProgram program = BuildStep(SpecFrom(TinyModel("llama")));
  EXPECT_THROW(MeasuredTimeline(program.trace, {}), Error);
}

TEST(TraceFile, AnEmptyTraceHasOnlyNames) {
  EXPECT_EQ(ParseJson(ChromeTrace({}, {"nothing", "measured", {}}), "trace").at("traceEvents").size(), 3U);
  EXPECT_GT(ChakraTrace({}, {"nothing", "measured", {}}).size(), 1U) << "its metadata";
}

TEST(TraceFile, HasOneOfTwoFormats) {
  EXPECT_NO_THROW(RequireTraceName("a/step.json"));
  EXPECT_NO_THROW(RequireTraceName("step.et"));
  try {
    RequireTraceName("step.pb");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.message(), HasSubstr("X.json or X.et, not 'step.pb'"));
  }
}

}  // namespace
}  // namespace ridgeline::engine
