#include "engine/device/speed.h"

#include <algorithm>

namespace ridgeline {
namespace {

// TB/s and TFLOP/s without sparsity, from NVIDIA's data sheets, for one GPU: A100 80 GB SXM, H100 SXM, H200 SXM, HGX
// B200 and B300, GB200 and GB300 NVL72. The trainer is a program without YAML, so they stand here.
// tests/predict/device_test.cc compares them with the catalogue, `devices/`.
struct DataSheet {
  std::string_view gpu;
  double memory;
  double bf16, fp8, mxfp8, fp4, fp32, tf32;
};
constexpr DataSheet kDataSheets[] = {
    {"a100", 2.04, 312, 312, 312, 312, 19.5, 156},     {"b200", 8.0, 2250, 4500, 4500, 9000, 75, 1125},
    {"b300", 8.0, 2250, 4500, 4500, 13500, 75, 1125},  {"gb200", 8.0, 2500, 5000, 5000, 10000, 80, 1250},
    {"gb300", 8.0, 2500, 5000, 5000, 15000, 80, 1250}, {"h100", 3.35, 989, 1978, 989, 989, 67, 494.5},
    {"h200", 4.8, 989, 1978, 989, 989, 67, 494.5},
};

// Shares of an H200's data sheet.
constexpr double kOfMemory = 4.3 / 4.8;
constexpr double kOfProducts = 0.93 * 790 / 989;
constexpr double kOfAttention = 560.0 / 989;
constexpr double kOfAttentionBackward = 420.0 / 989;

}  // namespace

std::optional<DeviceSpeed> SpeedOf(std::string_view gpu) {
  const auto* sheet = std::ranges::find(kDataSheets, gpu, &DataSheet::gpu);
  if (sheet == std::end(kDataSheets)) return std::nullopt;
  constexpr double kTera = 1e12;
  return DeviceSpeed{.bytes = kTera * kOfMemory * sheet->memory,
                     .flops = kTera * kOfProducts * sheet->bf16,
                     .fp8_flops = kTera * kOfProducts * sheet->fp8,
                     .mxfp8_flops = kTera * kOfProducts * sheet->mxfp8,
                     .fp4_flops = kTera * kOfProducts * sheet->fp4,
                     .fp32_flops = kTera * sheet->fp32,
                     .tf32_flops = kTera * kOfProducts * sheet->tf32,
                     .attention_flops = kTera * kOfAttention * sheet->bf16,
                     .attention_backward_flops = kTera * kOfAttentionBackward * sheet->bf16,
                     .product_share = kOfProducts};
}

}  // namespace ridgeline
