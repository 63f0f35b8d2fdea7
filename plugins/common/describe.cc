#include "common/describe.h"

#include <charconv>

#include <fmt/format.h>

#include "ridgeline/amount.h"

namespace ridgeline::plugin {

Json ToJson(const Description& answer) {
  Json document = {{"here", answer.here}, {"srun", answer.has_srun}};
  if (answer.gpus) {
    document["gpus"] = {{"setting", answer.gpus->setting},
                        {"asked", answer.gpus->asked},
                        {"kind", answer.gpus->kind},
                        {"count", answer.gpus->count}};
  }
  if (answer.memory_bytes > 0) document["memory_bytes"] = answer.memory_bytes;
  if (answer.billed) document["billed"] = {{"nodes", answer.billed->nodes}, {"most_s", answer.billed->most_s}};
  if (!answer.secrets.empty()) document["secrets"] = answer.secrets;
  if (!answer.warnings.empty()) document["warnings"] = answer.warnings;
  if (answer.pin) document["pin"] = *answer.pin;
  return document;
}

void ReadGpus(std::string_view text, GpusAsked& asked) {
  const size_t colon = text.rfind(':');
  const std::string_view last = colon == std::string_view::npos ? text : text.substr(colon + 1);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), count);
  const bool is_count = error == std::errc() && end == last.data() + last.size() && count > 0;
  asked.count = is_count ? count : text.empty() || colon != std::string_view::npos ? 0 : 1;
  if (!is_count) {
    asked.kind = text;
  } else if (colon != std::string_view::npos) {
    asked.kind = text.substr(0, colon);
  }
}

GpusAsked ReadGpusSetting(const Json& own, const std::string& launcher) {
  GpusAsked asked{launcher + ": gpus"};
  const Json gpus = own.value("gpus", Json());
  if (!gpus.is_number_integer() && !gpus.is_string()) return asked;
  ReadGpus(gpus.is_string() ? gpus.get<std::string>() : gpus.dump(), asked);
  if (asked.count > 0) asked.asked = fmt::format("gpus asks for {} GPU{}", asked.count, asked.count == 1 ? "" : "s");
  return asked;
}

int64_t BytesOfSetting(const Json& own, const char* name) {
  const Json value = own.value(name, Json());
  if (!value.is_string() && !value.is_number()) return 0;
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const auto bytes = ParseAmount(text, kSizeUnits);
  return WholeAmount(bytes ? bytes : ParseAmount(text + "B", kSizeUnits), kMostBytes).value_or(0);
}

}  // namespace ridgeline::plugin
