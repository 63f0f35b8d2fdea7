#include "predict/measured_rates.h"

#include <algorithm>
#include <cmath>

namespace ridgeline::predict {

// Chooses the measurement with as many ranks, else the one with the most ranks below that. On GPUs, each rank has a
// GPU of its own. A processor's ranks share its cores.
MeasuredRates::MeasuredRates(const Device& device, int64_t ranks) : device_(device) {
  counts_ = device.measured.front().get();
  for (const auto& measured : device.measured) {
    if (measured->ranks <= ranks) counts_ = measured.get();
  }
  if (device.is_cpu())
    slower_ = static_cast<double>(std::max(ranks, counts_->ranks)) / static_cast<double>(counts_->ranks);
}

const CallModel* MeasuredRates::ModelOf(const engine::CallClass& of) {
  const auto inserted = models_.try_emplace(of, nullptr);
  const CallModel*& model = inserted.first->second;
  if (!inserted.second) return model;
  const std::string name = engine::ClassName(of);
  const auto look = [&](const MeasuredCalls& in) {
    const auto found = in.classes.find(name);
    if (found != in.classes.end() && found->second.dims() == engine::DimsOf(of)) model = &found->second;
  };
  look(*counts_);
  for (const auto& measured : device_.measured) {
    if (model == nullptr) look(*measured);
  }
  return model;
}

std::optional<MeasuredRates::Time> MeasuredRates::Compute(const engine::CallShape& shape) {
  const CallModel* model = ModelOf(shape.of);
  if (model == nullptr) return std::nullopt;
  const CallModel::Time time = model->At(shape.dims);
  return Time{time.ns * 1e-9 * slower_, std::hypot(time.beyond, std::log(slower_))};
}

std::optional<MeasuredRates::Time> MeasuredRates::Of(const engine::CallShape& shape) {
  const auto [entry, is_new] = times_.try_emplace({shape.of, shape.dims});
  if (is_new) entry->second = Compute(shape);
  return entry->second;
}

size_t MeasuredRates::HashOfKey::operator()(const Key& key) const {
  constexpr size_t kMix = 0x9e3779b97f4a7c15;
  size_t hash = engine::HashOfClass()(key.of);
  for (const int64_t dim : key.dims) hash = (hash ^ (hash >> 31U) ^ static_cast<size_t>(dim)) * kMix;
  return hash;
}

}  // namespace ridgeline::predict
