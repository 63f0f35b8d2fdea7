// What a GPU is and how fast its libraries are, for bench/gpu.sh:
//   gpu_measure device                      as cuDNN describes it, in JSON
//   gpu_measure ceilings ROWS               copies and large products
//   gpu_measure products TOKENS [MODEL…]    of the presets' steps
#include "bench/gpu/measure.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const std::string_view what = words.empty() ? "" : words.front();
  int64_t number = 0;
  const bool has_number =
      words.size() > 1 &&
      std::from_chars(words[1].data(), words[1].data() + words[1].size(), number).ec == std::errc() && number > 0;
  try {
    if (what == "device" && words.size() == 1) {
      ridgeline::PrintDevice();
    } else if (what == "ceilings" && has_number && words.size() == 2) {
      ridgeline::PrintCeilings(number);
    } else if (what == "products" && has_number) {
      return ridgeline::PrintProducts(number, std::span(words).subspan(2)) ? 0 : 1;
    } else {
      fmt::print(stderr, "usage: gpu_measure device | ceilings ROWS | products TOKENS [MODEL…]\n");
      return 2;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_measure: {}\n", error.what());
    return 1;
  }
  return 0;
}
