// Predictions beside measurements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "run/spec.h"
#include "store/store.h"
#include "tests/base/temp_dir.h"

namespace ridgeline::store {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class PredictionsTest : public ::testing::Test {
 protected:
  PredictionsTest() {
    std::vector<Problem> problems;
    point_.spec = BuildSpec({{"model", "llama-10m"}}, problems);
    point_.id = PointId(point_.spec);
  }

  void Predict(double tokens_per_s, Provenance provenance = Provenance::kPredicted) {
    RunResult result;
    result.point_id = point_.id;
    result.status = RunStatus::kOk;
    result.provenance = provenance;
    result.throughput.steady_tokens_per_s = tokens_per_s;
    store_.PutPredictions(std::vector<Point>{point_}, std::vector<RunResult>{result},
                          {"predicted", R"({"predicted_on":"p5"})"});
  }
  void Measure(double tokens_per_s) {
    store_.PutSweep({"s", "", "s.yaml", "name: s\n", 1, {}}, std::vector<Point>{point_});
    RunResult result;
    result.point_id = point_.id;
    result.status = RunStatus::kOk;
    result.throughput.steady_tokens_per_s = tokens_per_s;
    store_.AddResults(std::vector<NewResult>{{result, "", 0, {}}});
  }
  std::vector<std::vector<Cell>> Runs() {
    return store_.Query("SELECT steady_tokens_per_s, provenance FROM runs ORDER BY 1").rows;
  }

  TempDir dir_;
  Store store_ = Store::Open(dir_ / "ridgeline.db", Store::Mode::kReadWrite);
  Point point_;
};

TEST_F(PredictionsTest, StandBesideWhatIsMeasured) {
  Predict(100);
  Measure(90);
  ASSERT_THAT(Runs(), SizeIs(2));
  EXPECT_EQ(CellText(Runs()[0][1]), "measured");
  EXPECT_EQ(CellText(Runs()[1][1]), "predicted");
  EXPECT_THAT(store_.Query("SELECT provenance FROM measurements").rows, SizeIs(1)) << "the other is none";
  EXPECT_THAT(store_.FinishedPoints("s"), SizeIs(1));
  EXPECT_THAT(store_.Check(), IsEmpty());
}

TEST_F(PredictionsTest, FinishNothing) {
  Predict(100);
  store_.PutSweep({"s", "", "s.yaml", "name: s\n", 1, {}}, std::vector<Point>{point_});
  EXPECT_THAT(store_.FinishedPoints("s"), IsEmpty());
  EXPECT_THAT(store_.MeasuredPoints("local", 10), IsEmpty());
}

TEST_F(PredictionsTest, MadeAgainAreOthers) {
  Measure(90);
  Predict(100);
  Predict(110);
  ASSERT_THAT(Runs(), SizeIs(2)) << "the first prediction is gone, the measurement is not";
  EXPECT_EQ(std::get<double>(Runs()[1][0]), 110);
  Predict(70, Provenance::kPublished);
  EXPECT_EQ(store_.Query("SELECT count(*) FROM results").rows[0][0], Cell(int64_t{3}))
      << "a published one is another's";
  EXPECT_THAT(store_.Check(), IsEmpty());
}

}  // namespace
}  // namespace ridgeline::store
