// Prints the tables of docs/prediction-accuracy.md from the data in tests/predict and bench/results. It runs nothing on
// a device, and takes a few seconds.
#include <fmt/format.h>

#include "tests/predict/accuracy.h"

int main() {
  for (const ridgeline::predict::AccuracyTable& table : ridgeline::predict::AccuracyTables()) {
    fmt::print("{}:\n{}\n", table.name, table.markdown);
  }
}
