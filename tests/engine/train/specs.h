// Small configurations that every engine test runs over.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run/families.h"
#include "run/names.h"
#include "run/spec.h"

namespace ridgeline::engine {

inline RunSpec SpecFrom(const Json& values) {
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(values, problems);
  EXPECT_TRUE(problems.empty()) << problems.front().message;
  return spec;
}

// A model small enough to train in milliseconds, with odd sizes: 3 layers, so that full/2 has a short last group.
inline Json TinyModel(const std::string& family) {
  Json values = {{"family", family}, {"layers", 3},     {"hidden", 48},    {"heads", 4},
                 {"ffn", 104},       {"batch_size", 2}, {"seq_length", 37}};
  const Family& row = RowOf(*ValueNamed<ModelFamily>(family));
  if (row.embeds) values["vocab"] = 131;
  if (row.rope_theta > 0) values["kv_heads"] = 2;
  if (row.learned_positions) values["positions"] = 64;
  return values;
}

struct Numbers {
  std::string precision;
  std::string state;
  std::string primary = "high_precision";

  void AddTo(Json& values) const {
    values.update({{"precision", precision}, {"state_precision", state}, {"primary_weights", primary}});
  }
};
inline const std::vector<Numbers> kNumbers = {{"fp32", "fp32"},
                                              {"bf16", "fp32"},
                                              {"bf16", "bf16"},
                                              {"fp16", "fp32"},
                                              {"fp8", "fp32"},
                                              {"mxfp8", "bf16"},
                                              {"nvfp4", "fp32"},
                                              {"fp8", "fp32", "quantized"},
                                              {"fp8", "bf16", "quantized"},

                                              {"nvfp4", "bf16", "quantized"}};
inline const std::vector<std::string> kFamilies = [] {
  std::vector<std::string> ours;
  for (const Family& family : Families()) {
    if (family.ours) ours.emplace_back(NameOf(family.family));
  }
  return ours;
}();
// Each family in each number format. A sanitizer finds faults that a family or a format has in every combination, so
// under one each format is tried with one family.
inline const std::vector<std::pair<std::string, Numbers>> kFamiliesInNumbers = [] {
  std::vector<std::pair<std::string, Numbers>> all;
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    for (size_t numbers = 0; numbers < kNumbers.size(); ++numbers) {
#ifdef RIDGELINE_SANITIZED
      if (numbers % kFamilies.size() != family) continue;
#endif
      all.emplace_back(kFamilies[family], kNumbers[numbers]);
    }
  }
  return all;
}();
inline const std::vector<std::string> kPolicies = {"none", "selective", "full", "full/2"};

// Calls `fn` with the values of each family in all number formats under every policy.
template <typename Fn>
void ForEachConfiguration(const Fn& fn) {
  for (const auto& [family, numbers] : kFamiliesInNumbers) {
    for (const std::string& policy : kPolicies) {
      Json values = TinyModel(family);
      numbers.AddTo(values);
      values["checkpointing"] = policy;
      SCOPED_TRACE(values.dump());
      fn(values);
    }
  }
}

}  // namespace ridgeline::engine
