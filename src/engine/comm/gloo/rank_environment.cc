#include "engine/comm/gloo/rank_environment.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

namespace ridgeline::engine {
namespace {

std::string_view Text(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

template <typename T>
T Number(const char* name, T min, T max) {
  const std::string_view text = Text(name);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    throw Error(ErrorKind::kInvalidInput,
                text.empty() ? fmt::format("{} is not set", name)
                             : fmt::format("{} is '{}', and must be between {} and {}", name, text, min, max),
                "ranks need RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as `ridgeline exec` and torchrun set them");
  }
  return value;
}

}  // namespace

std::optional<RankEnvironment> ReadRankEnvironment() {
  if (Text("RANK").empty() && Text("WORLD_SIZE").empty()) return std::nullopt;
  RankEnvironment place;
  place.world = Number<int64_t>("WORLD_SIZE", 1, 1 << 16);
  place.rank = Number<int64_t>("RANK", 0, place.world - 1);
  if (place.world > 1) {
    place.master_address = Text("MASTER_ADDR");
    if (place.master_address.empty()) {
      throw Error(ErrorKind::kInvalidInput, "MASTER_ADDR is not set", "it names the machine that rank 0 runs on");
    }
    if (Text("LOCAL_WORLD_SIZE") == Text("WORLD_SIZE")) place.master_address = "127.0.0.1";
    place.master_port = Number<int64_t>("MASTER_PORT", 1, 65535);
    // Then torchrun's own agent listens at MASTER_PORT, and says so to its children.
    if (Text("TORCHELASTIC_USE_AGENT_STORE") == "True") ++place.master_port;
  }
  if (!Text("RIDGELINE_COMM_TIMEOUT_S").empty()) {
    place.timeout_s = Number<double>("RIDGELINE_COMM_TIMEOUT_S", 0.1, 1e6);
  }
  place.secret_file = Text("RIDGELINE_SECRET_FILE");
  return place;
}

int64_t LocalRank() { return Text("LOCAL_RANK").empty() ? 0 : Number<int64_t>("LOCAL_RANK", 0, (1 << 16) - 1); }

int64_t LocalRanks() { return Text("LOCAL_WORLD_SIZE").empty() ? 1 : Number<int64_t>("LOCAL_WORLD_SIZE", 1, 1 << 16); }

bool IsFirstRank() {
  const std::string_view rank = Text("RANK");
  return rank.empty() || rank == "0";
}

}  // namespace ridgeline::engine
