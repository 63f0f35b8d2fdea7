// Stores the results of a point's repeats as they come. Each is kept with the figures of the earlier ones.
#pragma once

#include "ridgeline/run.h"
#include "run/measurement.h"
#include "store/sqlite.h"

namespace ridgeline::store {

class EarlierRepeats {
 public:
  explicit EarlierRepeats(Database& database);

  // For a result that ended well: adds the figures of its point's earlier repeats from the store, measured as the same,
  // if they ran on the same machine with the same version. Otherwise its figures stay its own, and its evidence says
  // so. Returns whether more repeats are to come.
  bool AddTo(RunResult& result, const MeasurementKey& measured_as);

 private:
  Statement point_;
  Statement earlier_;
};

}  // namespace ridgeline::store
