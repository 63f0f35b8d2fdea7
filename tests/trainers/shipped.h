// What the shipped definitions make of a point.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "trainers/definition.h"
#include "trainers/find.h"
#include "trainers/invocation.h"

namespace ridgeline::trainers {

inline Trainer LoadShipped(const std::string& name) {
  return LoadTrainer(FindTrainer(name, {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "trainers"}));
}

// A spec from fields that all points have and from the trainer's own.
inline RunSpec ShippedSpec(const Trainer& trainer, const Json& values) {
  Json ours = {{"trainer", trainer.name}};
  for (const auto& [name, value] : values.items()) {
    if (trainer.invocation->FindOwn(name) == nullptr) ours[name] = value;
  }
  std::vector<Problem> problems;
  RunSpec spec = BuildSpec(ours, problems);
  for (const auto& [name, value] : values.items()) {
    const Field* own = trainer.invocation->FindOwn(name);
    if (own == nullptr) continue;
    const std::vector<Problem> wrong = SetField(spec, *own, value);
    problems.insert(problems.end(), wrong.begin(), wrong.end());
  }
  for (const Problem& problem : problems) ADD_FAILURE() << problem.message;
  CanonicalizeOwn(*trainer.invocation, spec);
  return spec;
}

// The start of the first node, with nodes of 8 ranks. A point with fewer ranks has one node with all of them.
inline Invoked StartOfShipped(const std::string& name, const Json& values) {
  const Trainer trainer = LoadShipped(name);
  const RunSpec spec = ShippedSpec(trainer, values);
  for (const Problem& problem : WhyRefused(name, *trainer.invocation, spec)) ADD_FAILURE() << problem.message;
  ProcessPlace place;
  place.ranks_per_node = spec.ranks < 8 ? spec.ranks : 8;
  place.nodes = spec.ranks < 8 ? 1 : spec.ranks / 8;
  place.master_addr = "n1";
  place.output_dir = "/out";
  place.environment = {{"NANOGPT", "/nanogpt"},     {"TRANSFORMERS", "/transformers"}, {"MEGATRON_BRIDGE", "/bridge"},
                       {"LLM_FOUNDRY", "/foundry"}, {"MEGATRON_DEEPSPEED", "/ds"},     {"LLM_C", "/llm.c"},
                       {"NANOTRON", "/nanotron"},   {"TE_FSDP", "/te/fsdp.py"}};
  return Invoke(*trainer.invocation, spec, place);
}

inline std::vector<std::string> WhyNotShipped(const std::string& name, const Json& values) {
  const Trainer trainer = LoadShipped(name);
  const RunSpec spec = ShippedSpec(trainer, values);
  std::vector<std::string> messages;
  for (const Problem& problem : WhyRefused(name, *trainer.invocation, spec)) messages.push_back(problem.message);
  return messages;
}

}  // namespace ridgeline::trainers
