// Writes specs as rows of `points`.
#pragma once

#include "run/point.h"
#include "store/sqlite.h"

namespace ridgeline::store {

class PointWriter {
 public:
  explicit PointWriter(Database& database);

  // Adds the point unless it exists.
  void Write(const Point& point);

 private:
  Statement known_;
  Statement add_;
};

}  // namespace ridgeline::store
