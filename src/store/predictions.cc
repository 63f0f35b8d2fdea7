// Stores predictions, which nobody ran, beside measurements.
#include "run/result.h"
#include "store/impl.h"
#include "store/points.h"
#include "store/results.h"

namespace ridgeline::store {

void Store::PutPredictions(std::span<const Point> points, std::span<const RunResult> results,
                           const MeasurementKey& predicted_as) {
  Transact([&] {
    Database& database = impl_->database;
    PointWriter add_point(database);
    for (const Point& point : points) add_point.Write(point);
    Statement forget = database.Prepare(
        "DELETE FROM results WHERE point_id = ? AND campaign = ? AND setup = ? AND job_key IS NULL AND provenance = ?");
    Statement last = database.Prepare(
        "SELECT max(ifnull((SELECT max(attempt) FROM results WHERE point_id = ?1), 0), "
        "ifnull((SELECT max(attempt) FROM job_points WHERE point_id = ?1), 0))");
    ResultWriter writer(database);
    for (const RunResult& result : results) {
      forget.Bind(1, result.point_id);
      forget.Bind(2, predicted_as.campaign);
      forget.Bind(3, predicted_as.setup);
      forget.Bind(4, ProvenanceName(result.provenance));
      forget.Run();
      last.Bind(1, result.point_id);
      last.Step();
      const int64_t attempt = last.Integer(0) + 1;
      last.Reset();
      writer.Write(result, "", attempt, predicted_as);
    }
  });
}

}  // namespace ridgeline::store
