// The rules that a canonical spec keeps.
#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "run/model.h"
#include "run/names.h"
#include "run/parallelism.h"
#include "run/spec.h"
#include "run/step_figures.h"

namespace ridgeline {
namespace {

// A rule that a canonical spec keeps, beside those of its model and of its ranks.
struct Rule {
  std::string_view field;                      // that a problem points at
  std::array<std::string_view, 6> with;        // other fields that cause it
  std::string (*broken)(const RunSpec& spec);  // what is wrong; empty if nothing is
};

bool IsBetweenProcesses(const RunSpec& s) { return s.communicator == "gloo" || s.communicator == "nccl"; }
std::string_view CommunicatorOf(const RunSpec& s) { return s.gpu == "none" ? "gloo" : "nccl"; }

// In the order in which a person reads them.
constexpr Rule kRules[] = {
    {"measure.min_steps",
     {"steps"},
     [](const RunSpec& s) -> std::string {
       return s.min_steps > s.steps ? "measure.min_steps is more than the steps measured" : "";
     }},
    {"checkpointing",
     {"layers"},
     [](const RunSpec& s) -> std::string {
       if (s.layers == 0 || s.checkpointing.policy != Checkpointing::Policy::kFull) return {};
       if (s.checkpointing.layers_per_group <= s.layers) return {};
       return fmt::format("checkpointing {} spans more than the {} layers", s.checkpointing, s.layers);
     }},
    {"state_precision",
     {"precision"},
     [](const RunSpec& s) -> std::string {
       if (!KeepsFp32State(s.precision) || s.state_precision == "fp32") return {};
       return fmt::format("state_precision must be fp32 when precision is {}", s.precision);
     }},
    {"scaling",
     {"precision"},
     [](const RunSpec& s) -> std::string {
       const bool fits = s.precision == Precision::kFp8     ? s.scaling == "delayed" || s.scaling == "current"
                         : s.precision == Precision::kMxfp8 ? s.scaling == "round_up" || s.scaling == "floor"
                                                            : s.scaling == "none";
       if (fits) return {};
       return fmt::format("precision {} has no scaling '{}': fp8 has delayed and current, mxfp8 round_up and floor",
                          s.precision, s.scaling);
     }},
    {"amax_history",
     {"scaling", "precision"},
     [](const RunSpec& s) -> std::string {
       return s.amax_history != 0 && s.scaling != "delayed" ? "only delayed scaling has an amax_history" : "";
     }},
    {"bf16_first_layers",
     {"bf16_last_layers", "precision", "layers"},
     [](const RunSpec& s) -> std::string {
       const int64_t kept = s.bf16_first_layers + s.bf16_last_layers;
       if (!IsQuantized(s.precision)) {
         return kept > 0 ? fmt::format("precision {} has no layers to keep in bf16", s.precision) : "";
       }
       if (s.layers == 0 || kept <= s.layers) return {};
       return fmt::format("bf16_first_layers and bf16_last_layers are more than the {} layers", s.layers);
     }},
    {"primary_weights",
     {"precision"},
     [](const RunSpec& s) -> std::string {
       if (s.primary_weights != "quantized" || IsQuantized(s.precision)) return {};
       return fmt::format(
           "precision {} quantizes no weights, so primary_weights cannot be quantized: fp8, mxfp8 and nvfp4 do",
           s.precision);
     }},
    {"primary_weights",
     {"shard", "ranks"},
     [](const RunSpec& s) -> std::string {
       if (s.primary_weights != "quantized" || s.ranks == 1 || s.shard != ShardMode::kFull) return {};
       return "shard full gathers bf16 weights and quantizes them for use, so primary_weights: quantized would save "
              "nothing: use shard optimizer, or primary_weights high_precision";
     }},
    {"gpu",
     {"device"},
     [](const RunSpec& s) -> std::string {
       if (s.device != "cuda" || s.gpu != "none") return {};
       return "device: cuda needs the field gpu, such as h100 (`nvidia-smi -L` names the GPUs of a machine)";
     }},
    {"gpu",
     {"device"},
     [](const RunSpec& s) -> std::string {
       if (s.device != "cpu" || s.gpu == "none") return {};
       return fmt::format("gpu: {} goes with device: cuda, or with device: meta to plan for one", s.gpu);
     }},
    {"ranks",
     {"communicator", "device", "gpu"},
     [](const RunSpec& s) -> std::string {
       if (s.communicator != "self" || s.ranks == 1 || s.device == "meta") return {};
       return fmt::format("{} ranks need communicator: {} or virtual (or device: meta)", s.ranks, CommunicatorOf(s));
     }},
    {"communicator",
     {"gpu", "ranks"},
     [](const RunSpec& s) -> std::string {
       if (!IsBetweenProcesses(s) || s.communicator == CommunicatorOf(s)) return {};
       return fmt::format("ranks on {} reach each other by communicator: {}, not by {}",
                          s.gpu == "none" ? "CPUs" : "GPUs", CommunicatorOf(s), s.communicator);
     }},
    {"checkpoint.dir",
     {"communicator"},
     [](const RunSpec& s) -> std::string {
       if (s.communicator != "virtual" || s.checkpoint_dir.empty()) return {};
       return "a virtual rank holds only a part of the model, and no other rank has the rest: it has no checkpoint "
              "files";
     }},
};

// Those that come after the rules of ranks (run/parallelism.h).
constexpr Rule kRulesOfTheWhole[] = {
    {"batch_size", {"seq_length", "grad_accumulation", "ranks", "layers", "hidden", "ffn"}, SizeProblem},
    {"trainer",
     {},
     [](const RunSpec& s) -> std::string {
       if (s.trainer != kOurTrainer) return {};
       const auto of_another = std::ranges::find_if(s.own, [](const auto& own) { return !IsSettingName(own.first); });
       if (of_another == s.own.end()) return {};
       return fmt::format("{} is another trainer's field, and the trainer is ridgeline", of_another->first);
     }},
    {"trainer",
     {},
     [](const RunSpec& s) -> std::string {
       if (IsTrainerName(s.trainer)) return {};
       return fmt::format("'{}' is not a trainer's name: names have {}", ShortenToBytes(s.trainer, 80),
                          kTrainerNameRule);
     }},
    {"learning_rate_min",
     {"learning_rate"},
     [](const RunSpec& s) -> std::string {
       return s.learning_rate_min > s.learning_rate ? "learning_rate_min is above learning_rate" : "";
     }},
};

}  // namespace

std::vector<Problem> CheckSpec(const RunSpec& s) {
  std::vector<Problem> problems;
  const auto check = [&](std::span<const Rule> rules) {
    for (const Rule& rule : rules) {
      std::string message = rule.broken(s);
      if (message.empty()) continue;
      Problem& problem = problems.emplace_back(Problem{std::string(rule.field), std::move(message)});
      std::ranges::copy_if(rule.with, std::back_inserter(problem.with), [](auto name) { return !name.empty(); });
    }
  };
  if (!CheckModel(s, problems)) return problems;
  check(kRules);
  CheckParallelism(s, problems);
  check(kRulesOfTheWhole);
  return problems;
}

}  // namespace ridgeline
