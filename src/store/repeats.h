// Results of a point's repeats as they come: each is kept with the figures of those before it.
#pragma once

#include "ridgeline/run.h"
#include "run/measurement.h"
#include "store/sqlite.h"

namespace ridgeline {

class EarlierRepeats {
 public:
  explicit EarlierRepeats(Database& database);

  // Of a result that ended well: adds what the store has of its point's earlier repeats, measured as the same, where
  // they ran on the same machine by the same version; else its figures stay its own, and its evidence says so. Returns
  // whether more repeats are to come.
  bool AddTo(RunResult& result, const MeasurementKey& measured_as);

 private:
  Statement point_;
  Statement earlier_;
};

}  // namespace ridgeline
