#include "run/gpus_here.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr unsigned kLongestName = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE

// The GPUs that CUDA_VISIBLE_DEVICES names, up to the first invalid name (CUDA C++ Programming Guide, "CUDA Environment
// Variables"). Numbers select cards. Each name that begins with GPU- or MIG- counts as one card, whichever it is.
std::vector<std::string> Visible(std::vector<std::string> names) {
  const char* said = std::getenv("CUDA_VISIBLE_DEVICES");
  if (said == nullptr) return names;
  std::vector<std::string> visible;
  std::istringstream each{std::string(said)};
  for (std::string word; std::getline(each, word, ',') && visible.size() < names.size();) {
    size_t index = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    const bool is_number = error == std::errc() && end == word.data() + word.size();
    if (is_number ? index >= names.size() : !word.starts_with("GPU-") && !word.starts_with("MIG-")) break;
    visible.push_back(names[is_number ? index : visible.size()]);
  }
  return visible;
}

}  // namespace

GpusHere FindGpusHere(const Nvml& (*load)()) {
  GpusHere here;
  try {
    const NvmlSession session(load);
    for (NvmlDevice device : session.Devices()) {
      std::array<char, kLongestName> name{};
      if (device != nullptr && session.Said(&Nvml::nvmlDeviceGetName, device, name.data(), kLongestName - 1)) {
        here.names.emplace_back(name.data());
      }
    }
    const bool has_any = !here.names.empty();
    here.names = Visible(std::move(here.names));
    if (!here.names.empty()) return here;
    here.problem = has_any ? "CUDA_VISIBLE_DEVICES names none of its GPUs" : "NVIDIA's driver sees no GPU";
    here.hint = has_any ? "`nvidia-smi -L` lists them" : "the scheduler may have given this job none";
  } catch (const Error& e) {
    here.problem = e.message();
    here.hint = e.hint();
  }
  return here;
}

}  // namespace ridgeline
