// The share of its ceiling that a product reaches because of its tiles.
#include <algorithm>

#include "predict/step_model.h"

namespace ridgeline::predict {
namespace {

// Terms over which a tile's first loads and last stores are spread.
constexpr double kTileOverhead = 192;

}  // namespace

double TileShare(int64_t m, int64_t n, int64_t k, int64_t multiprocessors) {
  struct Tile {
    int64_t m, n;
    double share;  // of its rate that a multiprocessor reaches with this tile: small ones wait for their operands
  };
  static constexpr Tile kTiles[] = {{256, 128, 1},   {128, 256, 1},   {128, 128, 0.95},
                                    {128, 64, 0.80}, {64, 128, 0.80}, {64, 64, 0.60}};
  double best = 0;
  for (const Tile& tile : kTiles) {
    const int64_t rows = (m + tile.m - 1) / tile.m;
    const int64_t columns = (n + tile.n - 1) / tile.n;
    const double wanted =
        static_cast<double>(m) * static_cast<double>(n) / static_cast<double>(rows * tile.m * columns * tile.n);
    for (int64_t parts = 1; parts <= 8; parts *= 2) {  // parts of the sum, added up afterwards
      const int64_t tiles = rows * columns * parts;
      const int64_t waves = (tiles + multiprocessors - 1) / multiprocessors;
      const double full = static_cast<double>(tiles) / static_cast<double>(waves * multiprocessors);
      const double terms = static_cast<double>(k) / static_cast<double>(parts);
      best = std::max(best, tile.share * wanted * full * terms / (terms + kTileOverhead));
    }
  }
  return best;
}

}  // namespace ridgeline::predict
