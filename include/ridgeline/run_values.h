// The fixed values of a RunSpec's fields, and their names in JSON, sweeps, columns and messages. This is the only table
// of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace ridgeline {

// The families that Ridgeline trains, those of other trainers, and that of a model that is only a name.
enum class ModelFamily : uint8_t {
  kLlama,
  kGpt,
  kStack,
  kQwen2,
  kQwen3,
  kGemma2,
  kGemma3,
  kMpt,
  kDeepSeekV3,
  kOther,
};

enum class Precision : uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8, kMxfp8, kNvfp4 };

enum class OptimizerKind : uint8_t { kAdam, kAdamw };

// What is split over the ranks, beginning with nothing: ZeRO-1, ZeRO-2, and ZeRO-3 or FSDP.
enum class ShardMode : uint8_t { kNone, kOptimizer, kGradients, kFull };

// Which activations are computed again in the backward pass.
struct Checkpointing {
  enum class Policy : uint8_t { kNone, kSelective, kFull } policy = Policy::kNone;
  int64_t layers_per_group = 1;  // the layers that keep one input; 1 for other policies than kFull

  bool operator==(const Checkpointing&) const = default;
};

// The names of an enum's values, in their order.
template <typename Enum>
inline constexpr std::nullptr_t kNames = nullptr;
template <>
inline constexpr auto kNames<ModelFamily> = std::to_array<std::string_view>({"llama", "gpt", "stack", "qwen2", "qwen3",
                                                                             "gemma2", "gemma3", "mpt", "deepseek_v3",
                                                                             "other"});
template <>
inline constexpr auto kNames<Precision> = std::to_array<std::string_view>({"fp32", "tf32", "bf16", "fp16", "fp8",
                                                                           "mxfp8", "nvfp4"});
template <>
inline constexpr auto kNames<OptimizerKind> = std::to_array<std::string_view>({"adam", "adamw"});
template <>
inline constexpr auto kNames<ShardMode> = std::to_array<std::string_view>({"none", "optimizer", "gradients", "full"});
template <>
inline constexpr auto kNames<Checkpointing::Policy> = std::to_array<std::string_view>({"none", "selective", "full"});

template <typename Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires {
  kNames<Enum>.size();
};

template <NamedEnum Enum>
constexpr std::string_view NameOf(Enum value) {
  return kNames<Enum>[static_cast<size_t>(value)];
}

// Returns nothing if no value has this name.
template <NamedEnum Enum>
std::optional<Enum> ValueNamed(std::string_view name) {
  const auto at = std::ranges::find(kNames<Enum>, name);
  if (at == kNames<Enum>.end()) return std::nullopt;
  return static_cast<Enum>(at - kNames<Enum>.begin());
}

// Without these, a JSON value would be the enum's number.
template <typename AnyJson>
void to_json(AnyJson& json, const ModelFamily& value) {
  json = NameOf(value);
}
template <typename AnyJson>
void to_json(AnyJson& json, const Precision& value) {
  json = NameOf(value);
}
template <typename AnyJson>
void to_json(AnyJson& json, const OptimizerKind& value) {
  json = NameOf(value);
}
template <typename AnyJson>
void to_json(AnyJson& json, const ShardMode& value) {
  json = NameOf(value);
}

}  // namespace ridgeline
