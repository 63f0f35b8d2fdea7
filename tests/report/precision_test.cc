// The precision report: compares with bf16 at the same batch. Emulated runs are marked and never ranked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/report.h"
#include "report/rows.h"
#include "run/result.h"
#include "tests/report/sample.h"

namespace ridgeline::report {
namespace {

using report_sample::ExpectGolden;
using report_sample::Runs;
using report_sample::WithoutIds;
using testing::AllOf;
using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Optional;
using testing::SizeIs;

class PrecisionTest : public report_sample::ReportTest {
 protected:
  PrecisionTest() : ReportTest("precision") {}

  // A run with this step time in ms, and this plan in MB.
  static RunResult& Add(Runs& runs, const char* precision, int batch, double step_ms, int64_t megabytes) {
    RunResult& result = runs.Add({{"model", "llama-10m"}, {"precision", precision}, {"batch_size", batch}});
    result.step_ns.median_ns = static_cast<int64_t>(1e6 * step_ms);
    result.throughput.steady_tokens_per_s = static_cast<double>(result.tokens_per_step) / step_ms * 1e3;
    result.memory.planned_peak_bytes = megabytes * 1'000'000;
    result.memory.by_category = {{"parameters", megabytes * 1'000'000}};
    return result;
  }

  // fp8 is the fastest, but emulated.
  void FillSample() {
    Runs runs(store_);
    for (const int batch : {1, 4}) {
      Add(runs, "fp32", batch, 200 * batch, 120);
      Add(runs, "bf16", batch, 100 * batch, 100);
      Add(runs, "fp8", batch, 50 * batch, 80).emulated = true;
    }
    runs.Put("sample");
  }

  static size_t Find(const Rows& rows, const std::string& format, int64_t batch) {
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows.Text(row, "format") == format && rows.Number(row, "batch_size") == batch) return row;
    }
    ADD_FAILURE() << "no " << format << " at " << batch;
    return 0;
  }
};

TEST_F(PrecisionTest, SpeedAndMemoryAreAgainstBf16AtTheSameBatch) {
  FillSample();
  const Rows rows = Answer();
  ASSERT_EQ(rows.size(), 6U);
  for (const int64_t batch : {1, 4}) {
    const size_t fp32 = Find(rows, "fp32", batch);
    EXPECT_THAT(rows.Number(fp32, "bf16_speedup"), Optional(DoubleNear(0.5, 1e-9)));
    EXPECT_THAT(rows.Number(fp32, "bf16_memory_percent"), Optional(DoubleNear(20, 1e-9)));
    const size_t bf16 = Find(rows, "bf16", batch);
    EXPECT_EQ(rows.Number(bf16, "bf16_speedup"), std::nullopt);
    EXPECT_EQ(rows.Number(bf16, "bf16_memory_percent"), std::nullopt);
  }
}

TEST_F(PrecisionTest, AnEmulatedFormatHasMemoryButNoSpeedAndNoRank) {
  FillSample();
  const Rows rows = Answer();
  const size_t fp8 = Find(rows, "fp8", 4);
  EXPECT_EQ(rows.Number(fp8, "emulated"), 1);
  EXPECT_EQ(rows.Number(fp8, "bf16_speedup"), std::nullopt);
  EXPECT_EQ(rows.Number(fp8, "ranked_tokens_per_s"), std::nullopt);
  EXPECT_THAT(rows.Number(fp8, "bf16_memory_percent"), Optional(DoubleNear(-20, 1e-9)));
  EXPECT_THAT(
      Conclude(report_, rows, MakePanels(rows).at(0).rows),
      ElementsAre("At batch 1, fp32 has 0.50\xC2\xA0\xC3\x97 bf16's speed and takes 20.0\xC2\xA0% more planned memory.",
                  "That is 0.48\xC2\xA0\xC3\x97 to 0.52\xC2\xA0\xC3\x97: 2.56K tokens/s, in 120 MB.",
                  "The highest throughput was measured with bf16 at batch 1: 5.12K tokens/s.",
                  "Not ranked, because this device computes them in a higher precision: fp8 (emulated)."));
}

TEST_F(PrecisionTest, FormatsComeTheWidestFirst) {
  Runs runs(store_);
  for (const char* format : {"nvfp4", "tf32", "fp8", "bf16", "fp32", "mxfp8", "fp16"}) Add(runs, format, 1, 100, 100);
  runs.Put("s");
  EXPECT_THAT(report_sample::Texts(Answer(), "format"),
              ElementsAre("fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"));
}

TEST_F(PrecisionTest, NothingIsTheFastestOfOne) {
  Runs runs(store_);
  Add(runs, "bf16", 1, 100, 100);
  Add(runs, "bf16", 4, 400, 100);
  Add(runs, "fp8", 1, 50, 80).emulated = true;
  runs.Put("s");
  const Rows rows = Answer();
  EXPECT_THAT(Conclude(report_, rows, MakePanels(rows).at(0).rows),
              ElementsAre("At batch 1, fp8 takes 20.0\xC2\xA0% less planned memory than bf16 (emulated).",
                          "Not ranked, because this device computes them in a higher precision: fp8 (emulated)."));
}

TEST_F(PrecisionTest, DevicesAndProvenancesAreNotComparedWithEachOther) {
  Runs runs(store_);
  Add(runs, "bf16", 1, 100, 100);
  Add(runs, "fp32", 1, 50, 120).device = "Another CPU";
  Add(runs, "fp32", 4, 50, 120).provenance = Provenance::kPublished;
  Add(runs, "fp8", 1, 50, 120).environment["cores"] = "64";
  Add(runs, "mxfp8", 1, 50, 120).environment["git_commit"] = "4567def";
  runs.Put("s");
  Runs night(store_);
  Add(night, "fp16", 1, 50, 120);
  night.Put("night", "night-2");
  const Rows rows = Answer();
  ASSERT_EQ(rows.size(), 6U);
  for (size_t row = 0; row < rows.size(); ++row) {
    EXPECT_EQ(rows.Number(row, "bf16_speedup"), std::nullopt);
    EXPECT_EQ(rows.Number(row, "ranked_tokens_per_s"), std::nullopt);
  }
}

TEST_F(PrecisionTest, ABusyMachineIsSaidBesideWhatItsTimesSay) {
  Runs runs(store_);
  Add(runs, "bf16", 1, 100, 100).cores = {1, 0.6, 0};
  Add(runs, "fp32", 1, 50, 120).cores = {1, 0.04, 0};
  runs.Put("s");
  const Rows rows = Answer();
  EXPECT_THAT(Conclude(report_, rows, MakePanels(rows).at(0).rows),
              Contains("The machine was busy: other processes took 60.0\xC2\xA0% of the cores during the run with bf16 "
                       "at batch 1."));
}

TEST_F(PrecisionTest, SaysWhatDisturbedAGpuBesideItsTimes) {
  Runs runs(store_);
  Add(runs, "bf16", 1, 100, 100).gpu.throttled_share = 0.04;
  RunResult& held = Add(runs, "fp8", 1, 50, 120);
  held.gpu.throttled_share = 0.25;
  held.gpu.others = 2;
  runs.Put("s");
  const Rows rows = Answer();
  EXPECT_THAT(
      Conclude(report_, rows, MakePanels(rows).at(0).rows),
      AllOf(Contains("A GPU was throttled in 25.0\xC2\xA0% of the measured steps of the run with fp8 at batch 1."),
            Contains("A GPU was shared: 2 processes of others were on it before the run with fp8 at batch 1.")));
}

TEST_F(PrecisionTest, AModelIsAPanel) {
  Runs runs(store_);
  for (const char* model : {"llama-25m", "llama-10m"}) {
    for (const char* precision : {"bf16", "fp32"}) runs.Add({{"model", model}, {"precision", precision}});
  }
  runs.Put("s");
  const Rows rows = Answer();
  const std::vector<Panel> panels = MakePanels(rows);
  ASSERT_THAT(panels, SizeIs(2));
  EXPECT_EQ(panels[0].title, "llama-10m, sequence 512");
}

TEST_F(PrecisionTest, TheSampleIsAsTheGoldenHasIt) {
  FillSample();
  ExpectGolden(WithoutIds(Render(report_, store_, {"sample", ReportFormat::kMarkdown}).bytes), "precision.md");
}

}  // namespace
}  // namespace ridgeline::report
