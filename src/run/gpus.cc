#include "run/gpus.h"

#include <algorithm>
#include <cctype>
#include <string>

#include <fmt/format.h>

namespace ridgeline {
namespace {

constexpr int64_t MiB(int64_t number) { return number << 20; }
constexpr int64_t GiB(double number) { return static_cast<int64_t>(number * 0x1p30); }

// Sources. Compute capabilities: the CUDA C++ Programming Guide. Multiprocessors: the data sheets. Memory: nvidia-smi's
// total of the part, and PyTorch's "total capacity" of it. The latter is the least of several reports, because releases
// of the driver keep more or less. devices/ names the source of each figure, where the part is described.
constexpr Gpu kGpus[] = {
    {"a100", "A100", "NVIDIA A100-SXM4-80GB", 80, 108, MiB(81920), GiB(79.14)},
    {"a100-40gb", "A100 40GB", "NVIDIA A100-SXM4-40GB", 80, 108, MiB(40960), GiB(39.38)},
    {"a100-pcie", "A100 PCIe", "NVIDIA A100 80GB PCIe", 80, 108, MiB(81920), GiB(79.14)},
    {"b200", "B200", "NVIDIA B200", 100, 148, MiB(183359), GiB(178.35)},
    {"b300", "B300", "NVIDIA B300 SXM6 AC", 103, 148, MiB(275040), GiB(267.69)},
    {"gb200", "GB200", "NVIDIA GB200", 100, 152, MiB(189471), GiB(184.31)},
    {"gb300", "GB300", "NVIDIA GB300", 103, 152, MiB(284208), GiB(276.50)},
    {"h100", "H100", "NVIDIA H100 80GB HBM3", 90, 132, MiB(81559), GiB(79.10)},
    {"h100-nvl", "H100 NVL", "NVIDIA H100 NVL", 90, 132, MiB(95830), GiB(93.00)},
    {"h100-pcie", "H100 PCIe", "NVIDIA H100 PCIe", 90, 114, MiB(81559), GiB(79.10)},
    {"h200", "H200", "NVIDIA H200", 90, 132, MiB(143771), GiB(139.72)},
    {"h200-nvl", "H200 NVL", "NVIDIA H200 NVL", 90, 132, MiB(143771), GiB(139.72)},
    {"l40s", "L40S", "NVIDIA L40S", 89, 142, MiB(46068), GiB(44.39)},
    {"rtx-4090", "RTX 4090", "NVIDIA GeForce RTX 4090", 89, 128, MiB(24564), GiB(23.52)},
    {"rtx-5090", "RTX 5090", "NVIDIA GeForce RTX 5090", 120, 170, MiB(32607), GiB(31.36)},
};

// The first word of a product's name, which its variants share: "H100 NVL" and "H100 80GB HBM3".
std::string_view FamilyOf(const Gpu& gpu) {
  return gpu.product.starts_with("RTX") ? gpu.product : gpu.product.substr(0, gpu.product.find(' '));
}

bool HasWord(std::string_view text, std::string_view word) {
  const auto in_a_word = [&](size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !in_a_word(at - 1)) && !in_a_word(at + word.size())) return true;
  }
  return false;
}

}  // namespace

std::span<const Gpu> Gpus() { return kGpus; }

const Gpu* FindGpu(std::string_view name) {
  const auto* found = std::ranges::find(kGpus, name, &Gpu::name);
  return found == std::end(kGpus) ? nullptr : found;
}

bool IsOfAnotherFamily(std::string_view text, const Gpu& gpu) {
  std::string words;
  for (const char c : text) {
    words += c == '_' || c == '-' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  if (HasWord(words, FamilyOf(gpu))) return false;
  return std::ranges::any_of(kGpus, [&](const Gpu& other) { return HasWord(words, FamilyOf(other)); });
}

const Gpu* FindGpuOfDriver(std::string_view driver_name) {
  const auto* found = std::ranges::find(kGpus, driver_name, &Gpu::driver_name);
  return found == std::end(kGpus) ? nullptr : found;
}

std::string WhyNoGpu(std::string_view driver_name) {
  if (HasWord(driver_name, "MIG")) {
    return fmt::format("'{}' is a slice (MIG) of a GPU, with a part of its memory and multiprocessors", driver_name);
  }
  std::string parts;
  for (const Gpu& gpu : kGpus) {
    if (!HasWord(driver_name, FamilyOf(gpu))) continue;
    parts += fmt::format("{}{} ('{}')", parts.empty() ? "" : ", ", gpu.name, gpu.driver_name);
  }
  if (parts.empty()) return fmt::format("no gpu is called '{}'", driver_name);
  return fmt::format("'{}' is another part than {}: it may have other memory, power and links", driver_name, parts);
}

}  // namespace ridgeline
