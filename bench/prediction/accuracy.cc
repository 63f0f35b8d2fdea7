// Prints the tables of docs/prediction-accuracy.md, from what is stored in tests/predict and bench/results. Nothing is
// run on a device. Takes some seconds.
#include <fmt/format.h>

#include "tests/predict/accuracy.h"

int main() {
  for (const ridgeline::AccuracyTable& table : ridgeline::AccuracyTables()) {
    fmt::print("{}:\n{}\n", table.name, table.markdown);
  }
}
