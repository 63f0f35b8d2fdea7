#include "run/point_name.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "run/parallelism.h"

namespace ridgeline {

std::string PointName(std::span<const NamedValue> values) {
  std::vector<std::string> words;
  for (const auto& [name, value] : values) words.push_back(fmt::format("{}={}", name, value));
  return PrintableLine(Join(words, ", "));
}

std::string PointName(const RunSpec& spec, std::span<const Field* const> fields) {
  std::vector<NamedValue> values;
  for (const Field* field : fields) {
    std::string text = FieldText(spec, *field);
    if (!text.empty()) values.emplace_back(field->name, std::move(text));
  }
  if (values.empty()) values.emplace_back("model", FieldText(spec, *FindField("model")));
  return PointName(values);
}

std::string PointName(const RunSpec& spec) {
  const auto text = [&](std::string_view field) { return FieldText(spec, *FindField(field)); };
  std::string name = fmt::format("{}, {}, batch {}", text("model"), text("precision"), spec.batch_size);
  if (spec.grad_accumulation > 1) name += fmt::format(" \xC3\x97 {}", spec.grad_accumulation);
  name += fmt::format(", sequence {}", spec.seq_length);
  if (text("checkpointing") != "none") name += ", checkpointing " + text("checkpointing");
  if (spec.ranks > 1) name += fmt::format(", {} ranks", spec.ranks);
  if (const std::string words = ParallelWords(spec); !words.empty()) name += ", " + words;
  if (text("shard") != "none") name += ", shard " + text("shard");
  if (text("gpu") != "none") name += ", " + text("gpu");
  if (text("trainer") != "ridgeline") name += ", " + text("trainer");
  return PrintableLine(name);
}

}  // namespace ridgeline
