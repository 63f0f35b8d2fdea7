// Numbers with units, in sweeps and in launchers' settings, give an amount within its bounds or are refused. A number
// has no sign, and is finite.
#include <cmath>

#include "common/options.h"
#include "tests/fuzz/fuzz.h"
#include "yaml/units.h"

namespace ridgeline::fuzz {
namespace {

// Returns a setting in JSON: `text` parsed, or as a string if it is not JSON.
plugin::Json ValueOf(std::string_view text) {
  const plugin::Json value = plugin::Json::parse(text, nullptr, false);
  return value.is_discarded() ? plugin::Json(std::string(text)) : value;
}

template <typename Read>
void ReadOption(Read read, int64_t least, int64_t most) {
  try {
    const int64_t value = read();
    Require(value >= least && value <= most, "a setting lies within its bounds");
  } catch (const plugin::Failure& e) {
    Require(e.kind() == plugin::Failure::Kind::kInvalidInput, "an error blames the sweep");
  }
}

void ReadNode(const yaml::YamlNode& node) {
  for (const auto& amount : {yaml::ReadBytes(node), yaml::ReadSeconds(node)}) {
    if (amount) Require(*amount >= 1, "an amount is at least one");
  }
}

}  // namespace
}  // namespace ridgeline::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ridgeline;  // NOLINT(google-build-using-namespace): a program of one function
  const std::string_view text = fuzz::TextOf(data, size);
  const plugin::Json value = fuzz::ValueOf(text);
  const plugin::Option option("slurm: setting", value);
  fuzz::ReadOption([&] { return option.Seconds("1s", "365d"); }, 1, 365 * 86400);
  fuzz::ReadOption([&] { return option.Bytes("1MiB", "1024TiB"); }, 1 << 20, int64_t{1} << 50);
  fuzz::ReadOption([&] { return option.Count(0, 1000); }, 0, 1000);
  fuzz::ReadOption([&] { return option.Text().empty() ? 0 : 1; }, 1, 1);
  if (const auto number = yaml::ParseNumber(text)) fuzz::Require(std::isfinite(*number), "a number is finite");
  yaml::YamlNode node;
  node.scalar = std::string(text);
  fuzz::ReadNode(node);
  if (value.is_primitive()) {
    node.scalar = value;
    fuzz::ReadNode(node);
  }
  return 0;
}
