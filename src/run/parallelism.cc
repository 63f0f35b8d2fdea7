#include "run/parallelism.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline {
namespace {

struct OfModel {
  std::string_view name;
  int64_t value;
};

// The ways in which ranks share a model.
std::array<OfModel, 5> ParallelismOf(const RunSpec& s) {
  return {{{"tensor_parallel", s.tensor_parallel},
           {"pipeline_parallel", s.pipeline_parallel},
           {"context_parallel", s.context_parallel},
           {"expert_parallel", s.expert_parallel},
           {"virtual_pipeline", s.virtual_pipeline}}};
}

}  // namespace

int64_t DataParallelRanks(const RunSpec& spec) {
  const int64_t of_a_model = spec.tensor_parallel * spec.pipeline_parallel * spec.context_parallel;
  return std::max<int64_t>(spec.ranks / std::max<int64_t>(of_a_model, 1), 1);
}

void CanonicalizeParallelism(RunSpec& spec) {
  if (spec.tensor_parallel > 1) {
    if (!spec.sequence_parallel) spec.sequence_parallel = true;
  } else if (!spec.sequence_parallel.value_or(false)) {
    spec.sequence_parallel.reset();
  }
  if (spec.shard_ranks == DataParallelRanks(spec)) spec.shard_ranks = 0;
}

int64_t ShardRanks(const RunSpec& spec) {
  if (spec.shard == ShardMode::kNone) return 1;
  return spec.shard_ranks > 0 ? spec.shard_ranks : DataParallelRanks(spec);
}

void CheckParallelism(const RunSpec& s, std::vector<Problem>& problems) {
  int64_t of_a_model = 1;
  const auto ways = ParallelismOf(s);
  for (const OfModel& way : std::span(ways).first(3)) {
    of_a_model *= way.value;
    if (s.ranks % of_a_model == 0) continue;
    std::string why =
        s.ranks % way.value != 0
            ? fmt::format("{}: {} does not divide ranks: {}", way.name, way.value, s.ranks)
            : fmt::format("tensor_parallel {} x pipeline_parallel {} x context_parallel {} do not divide ranks: {}",
                          s.tensor_parallel, s.pipeline_parallel, s.context_parallel, s.ranks);
    problems.push_back(
        {std::string(way.name), std::move(why), {"ranks", "tensor_parallel", "pipeline_parallel", "context_parallel"}});
    return;
  }
  if (s.ranks / s.pipeline_parallel % s.expert_parallel != 0) {
    problems.push_back({"expert_parallel",
                        fmt::format("expert_parallel: {} does not divide the {} ranks of a stage of the pipeline",
                                    s.expert_parallel, s.ranks / s.pipeline_parallel),
                        {"ranks", "pipeline_parallel"}});
  }
  if (s.expert_parallel > 1 && s.family != ModelFamily::kOther) {
    if (s.experts == 0) {
      problems.push_back({"expert_parallel",
                          fmt::format("expert_parallel: {} needs experts, and {} has none", s.expert_parallel, s.model),
                          {"experts", "model"}});
    } else if (s.experts % s.expert_parallel != 0) {
      problems.push_back(
          {"expert_parallel",
           fmt::format("expert_parallel: {} does not divide the {} experts of a layer", s.expert_parallel, s.experts),
           {"experts", "model"}});
    }
  }
  if (s.virtual_pipeline > 1 && s.pipeline_parallel == 1) {
    problems.push_back(
        {"virtual_pipeline",
         fmt::format("virtual_pipeline: {} needs a pipeline: pipeline_parallel above 1", s.virtual_pipeline),
         {"pipeline_parallel"}});
  }
  if (s.shard_ranks > 0 && s.shard == ShardMode::kNone) {
    problems.push_back(
        {"shard_ranks",
         fmt::format("shard_ranks: {} is the number of ranks that share what `shard` splits, but shard is none",
                     s.shard_ranks),
         {"shard"}});
  } else if (s.shard_ranks > 0 && DataParallelRanks(s) % s.shard_ranks != 0) {
    problems.push_back(
        {"shard_ranks",
         fmt::format("shard_ranks: {} does not divide the {} data-parallel ranks", s.shard_ranks, DataParallelRanks(s)),
         {"ranks"}});
  }
  if (s.sequence_parallel.value_or(false) && s.tensor_parallel == 1) {
    problems.push_back({"sequence_parallel",
                        "sequence_parallel: true needs ranks that share a sequence: tensor_parallel above 1",
                        {"tensor_parallel"}});
  }
}

namespace {

bool SharesTokens(const RunSpec& s) { return s.tensor_parallel > 1 && s.sequence_parallel.value_or(true); }

// Why ridgeline-train cannot share each layer's products among so many ranks: each has whole heads, and as much as
// every other one. Each message goes on where "tensor_parallel: 4" ends.
std::vector<Problem> AgainstTensorParallel(const RunSpec& s, int64_t ranks) {
  std::vector<Problem> problems;
  const auto refuse = [&](std::vector<std::string_view> with, std::string why) {
    problems.push_back({"tensor_parallel", std::move(why), std::move(with)});
  };
  const struct {
    std::string_view field;
    int64_t size;
  } divided[] = {{"heads", s.heads}, {"hidden", s.hidden}, {"ffn", s.ffn}, {"vocab", s.vocab}};
  for (const auto& [field, size] : divided) {
    if (size % ranks != 0) refuse({field, "model"}, fmt::format("does not divide {}: {}", field, size));
  }
  if (s.kv_heads > 0 && s.kv_heads % ranks != 0 && ranks % s.kv_heads != 0) {
    refuse({"kv_heads", "model"}, fmt::format("neither divides kv_heads: {} nor is a multiple of it", s.kv_heads));
  }
  const int64_t tokens = s.batch_size * s.seq_length;
  if (SharesTokens(s) && tokens % ranks != 0) {
    refuse({"batch_size", "seq_length"},
           fmt::format("does not divide the {} tokens of a micro-batch (batch_size {} x seq_length {})", tokens,
                       s.batch_size, s.seq_length));
  }
  return problems;
}

void CheckTensorParallel(const RunSpec& s, std::vector<Problem>& problems) {
  if (s.tensor_parallel == 1) return;
  std::vector<Problem> against = AgainstTensorParallel(s, s.tensor_parallel);
  std::vector<std::string> possible;
  for (int64_t ranks = 1; !against.empty() && ranks <= std::min(s.heads, s.ranks); ++ranks) {
    if (s.ranks % ranks == 0 && AgainstTensorParallel(s, ranks).empty()) possible.push_back(std::to_string(ranks));
  }
  const int64_t padded_vocab = (s.vocab + s.tensor_parallel - 1) / s.tensor_parallel * s.tensor_parallel;
  for (Problem& problem : against) {
    std::string instead = Join(possible, " or ");
    if (problem.with.front() == "vocab") instead += fmt::format(", or vocab: {}", padded_vocab);
    if (problem.with.front() == "batch_size") instead += ", or sequence_parallel: false";
    problem.message = fmt::format("tensor_parallel: {} {}; use {}", s.tensor_parallel, problem.message, instead);
    problems.push_back(std::move(problem));
  }
  if (s.primary_weights == "quantized") {
    problems.push_back({"tensor_parallel",
                        fmt::format("tensor_parallel: {} shares weights as numbers, and primary_weights: quantized "
                                    "keeps none; use primary_weights: high_precision, or tensor_parallel: 1",
                                    s.tensor_parallel),
                        {"primary_weights"}});
  }
}

}  // namespace

int64_t LeastForTokens(const RunSpec& spec, int64_t RunSpec::*factor) {
  if (!SharesTokens(spec)) return 1;
  const int64_t other = factor == &RunSpec::batch_size ? spec.seq_length : spec.batch_size;
  return spec.tensor_parallel / std::gcd(spec.tensor_parallel, other);
}

std::vector<Problem> BeyondTheEngine(const RunSpec& spec) {
  std::vector<Problem> problems;
  for (const auto& [name, value] : ParallelismOf(spec)) {
    if (value == 1 || name == "tensor_parallel") continue;
    problems.push_back(
        {std::string(name),
         fmt::format("ridgeline-train does not split a model this way yet, so {} must be 1, not {}: name "
                     "another trainer",
                     name, value),
         {"trainer"}});
  }
  CheckTensorParallel(spec, problems);
  if (spec.shard_ranks == 1) {
    problems.push_back({"shard_ranks",
                        fmt::format("shard_ranks: 1 splits nothing, but shard is {}; use shard: none", spec.shard),
                        {"shard"}});
  }
  return problems;
}

std::string ParallelWords(const RunSpec& spec) {
  std::vector<std::string> words;
  static constexpr std::array<std::string_view, 5> kShort = {"TP", "PP", "CP", "EP", "VP"};
  const auto ways = ParallelismOf(spec);
  for (size_t i = 0; i < ways.size(); ++i) {
    if (ways[i].value > 1) words.push_back(fmt::format("{} {}", kShort[i], ways[i].value));
    if (i == 0 && spec.sequence_parallel == false) words.emplace_back("no SP");
  }
  if (spec.shard_ranks > 0) words.push_back(fmt::format("shards of {}", spec.shard_ranks));
  return Join(words, ", ");
}

}  // namespace ridgeline
