#include "engine/model/block.h"

namespace ridgeline::engine {

Sublayer& Block::Of(SublayerKind kind) {
  switch (kind) {
    case SublayerKind::kMlp:
      return mlp_;
    case SublayerKind::kAttention:
      break;
  }
  return attention_;
}

ResidualStream Block::Forward(int64_t layer, int64_t micro_step, const ResidualStream& in, SavedLayer& saved,
                              Wanted wanted) {
  trace_.SetLayer(layer);
  const std::vector<SublayerParameters>& sublayers = SublayersOf(layer);
  saved.resize(sublayers.size());
  ResidualStream stream = in;
  for (size_t i = 0; i < sublayers.size(); ++i) {
    const bool is_last = i + 1 == sublayers.size();
    const SublayerParameters& p = sublayers[i];
    stream = Of(p.kind).Forward(p, micro_step, stream, saved[i], {!is_last || wanted.output, wanted.saved});
  }
  return stream;
}

void Block::Backward(int64_t layer, int64_t micro_step, SavedLayer& saved, Tensor d) {
  trace_.SetLayer(layer);
  const std::vector<SublayerParameters>& sublayers = SublayersOf(layer);
  for (size_t i = sublayers.size(); i-- > 0;) {
    Of(sublayers[i].kind).Backward(sublayers[i], micro_step, saved[i], d);
  }
}

void Block::DropCheap(int64_t layer, SavedLayer& saved) {
  const std::vector<SublayerParameters>& sublayers = SublayersOf(layer);
  for (size_t i = 0; i < sublayers.size(); ++i) Of(sublayers[i].kind).DropCheap(saved[i]);
}

}  // namespace ridgeline::engine
