// Writes a database of 100,000 measurements, 500 nights of 200 points: many_runs_db FILE
#include <cstdio>

#include "bench/many_runs.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: many_runs_db FILE\n", stderr);
    return 2;
  }
  ridgeline::store::Store store = ridgeline::store::Store::Open(argv[1], ridgeline::store::Store::Mode::kReadWrite);
  ridgeline::FillNights(store);
  return 0;
}
