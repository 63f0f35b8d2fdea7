#include "run/gpus.h"

#include <algorithm>
#include <cctype>

namespace ridgeline {
namespace {

constexpr int64_t kGB = 1'000'000'000;

// NVIDIA's data sheets, and the table of compute capabilities in the CUDA C++ Programming Guide. Memory of 80 GB is 80
// GiB, of which the driver keeps some: what counts here is the smaller number, so that the difference has room for what
// CUDA takes itself.
constexpr Gpu kGpus[] = {
    {"a100", "A100", 80, 80 * kGB},          {"b200", "B200", 100, 180 * kGB},   {"b300", "B300", 103, 270 * kGB},
    {"gb200", "GB200", 100, 186 * kGB},      {"gb300", "GB300", 103, 279 * kGB}, {"h100", "H100", 90, 80 * kGB},
    {"h200", "H200", 90, 141 * kGB},         {"l40s", "L40S", 89, 48 * kGB},     {"rtx-4090", "RTX 4090", 89, 24 * kGB},
    {"rtx-5090", "RTX 5090", 120, 32 * kGB},
};

}  // namespace

std::span<const Gpu> Gpus() { return kGpus; }

const Gpu* FindGpu(std::string_view name) {
  const auto* found = std::ranges::find(kGpus, name, &Gpu::name);
  return found == std::end(kGpus) ? nullptr : found;
}

bool IsProduct(std::string_view driver_name, const Gpu& gpu) {
  const auto in_a_word = [&](size_t at) {
    return at < driver_name.size() && std::isalnum(static_cast<unsigned char>(driver_name[at])) != 0;
  };
  for (size_t at = driver_name.find(gpu.product); at != std::string_view::npos;
       at = driver_name.find(gpu.product, at + 1)) {
    if ((at == 0 || !in_a_word(at - 1)) && !in_a_word(at + gpu.product.size())) return true;
  }
  return false;
}

}  // namespace ridgeline
