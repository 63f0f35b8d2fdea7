#include "tests/predict/published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline {
namespace {
namespace fs = std::filesystem;

const fs::path kSources = RIDGELINE_SOURCE_DIR;

double NumberOf(const std::string& text) { return text.empty() ? 0 : std::stod(text); }

bool IsOf(const PublishedRow& row, std::string_view framework) { return row.framework.starts_with(framework); }

// The shapes of the dense models that the rows name: their authors' own.
struct NamedModel {
  std::string_view pattern;
  std::string_view fields;
};
constexpr NamedModel kModels[] = {
    {"(Llama|LLAMA)3(\\.1)?[-_]8B.*", "model: llama-8b"},
    {"(Llama|LLAMA)3(\\.1)?[-_]70B",
     "family: llama, layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, vocab: 128256"},
    {"(Llama|LLAMA)2-7B", "family: llama, layers: 32, hidden: 4096, heads: 32, ffn: 11008, vocab: 32000"},
    {"Llama2-13B", "family: llama, layers: 40, hidden: 5120, heads: 40, ffn: 13824, vocab: 32000"},
    {"Llama2-34B", "family: llama, layers: 48, hidden: 8192, heads: 64, kv_heads: 8, ffn: 22016, vocab: 32000"},
    {"Llama2-70B.*", "family: llama, layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, vocab: 32000"},
    {"GPT3-5B", "family: gpt, layers: 24, hidden: 4096, heads: 32, ffn: 16384, vocab: 51200, positions: 2048"},
};

const NamedModel* ModelOf(const PublishedRow& row) {
  const auto* found = std::ranges::find_if(kModels, [&](const NamedModel& model) {
    return std::regex_match(row.model, std::regex(std::string(model.pattern)));
  });
  return found == std::end(kModels) ? nullptr : found;
}

// The machine that a row's GPU stood in, as far as its source says: 400 Gbit/s a machine is fms-fsdp's own word.
std::string DeviceOf(const PublishedRow& row) {
  if (row.gpu == "a100_80gb") return IsOf(row, "fms-fsdp") ? "p4de" : "dgx-a100";
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMachines = {
      {{"h100_96gb_hbm2e_500W", "h100-hbm2e"},
       {"h100_80gb", "dgx-h100"},
       {"h200_sxm_141gb", "dgx-h200"},
       {"b200", "dgx-b200"},
       {"b300", "dgx-b300"},
       {"gb200", "dgx-gb200"},
       {"gb300", "dgx-gb300"}}};
  const auto* found = std::ranges::find(kMachines, row.gpu, &std::pair<std::string_view, std::string_view>::first);
  return found == kMachines.end() ? "" : std::string(found->second);
}

// What a program of TransformerEngine before Megatron-Bridge calls fp8 has delayed scaling.
std::string PrecisionOf(const PublishedRow& row) {
  if (row.precision.starts_with("bf16")) return "precision: bf16";
  if (row.precision.starts_with("mxfp8") || row.precision == "fp8-mx") return "precision: mxfp8";
  if (row.precision == "nvfp4") return "precision: nvfp4";
  const bool delayed = row.precision == "fp8" && !IsOf(row, "Megatron-Bridge");
  return fmt::format("precision: fp8, scaling: {}", delayed ? "delayed" : "current");
}

bool IsSharded(const PublishedRow& row) {
  return row.parallelism.starts_with("FSDP") && !row.parallelism.starts_with("FSDP0");
}

// What each framework computes again, after its own rules. Where a row says `recipe`, the recipe does:
// Megatron-Bridge's of fp8 on H100 recomputes 5 of 32 layers, its others move activations to the host's memory instead;
// MaxText's keeps what attention makes, and not the MLP (the most that fits beside such a model's state).
Framework FrameworkOf(const PublishedRow& row) {
  Framework framework;
  framework.efficiency = {};
  framework.name = row.framework;
  const auto recompute = [&](double products, double attention, double passes) {
    framework.again = {products, attention, passes};
  };
  if (row.checkpointing == "full") {
    recompute(1, 1, 1);
  } else if (row.checkpointing == "selective_layer") {
    recompute(0.5, 0.5, 0.5);  // every second layer
  } else if (row.checkpointing.starts_with("selective")) {
    recompute(0.5, 0, 1);  // of products every second is kept, and attention
  } else if (row.model.ends_with("(MaxText)")) {
    recompute(0.82, 0, 1);  // 3 x 8192 x 28672 of a layer's 855 M weights
  } else if (IsOf(row, "Megatron-Bridge") && row.gpu == "h100_80gb") {
    recompute(5.0 / 32, 5.0 / 32, 5.0 / 32);
  } else {
    recompute(0, 0, 0);
  }
  return framework;
}

// Of the efficiencies those that count for a step: that of products of a format where it has some, and the exponent of
// power where the GPU is held to less than its own.
std::array<double, 8> Counting(const PublishedStep& step, const Efficiency& efficiency) {
  const auto multiplies = [&](MathFormat first, MathFormat second) {
    return std::ranges::any_of(step.costs.calls, [&](const CallCost& call) {
      return call.flops != 0 && (call.format == first || call.format == second);
    });
  };
  const double power = step.device.At("chip.power");
  return {multiplies(MathFormat::kBF16, MathFormat::kF16) ? efficiency.products : 0,
          multiplies(MathFormat::kFp8, MathFormat::kMxfp8) ? efficiency.products_fp8 : 0,
          efficiency.products_fp4,
          efficiency.attention,
          efficiency.memory,
          efficiency.link,
          efficiency.network,
          step.device.Or("chip.rated_power", power) == power ? 0 : efficiency.power};
}

}  // namespace

std::vector<PublishedRow> PublishedRows() {
  std::istringstream lines(ReadFile(kSources / "tests/predict/published.csv"));
  std::string line;
  std::getline(lines, line);  // the columns' names
  std::vector<PublishedRow> rows;
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream rest(line + ",");
    for (std::string cell; std::getline(rest, cell, ',');) cells.push_back(cell);
    if (cells.size() != 16) throw std::runtime_error("published.csv: " + line);
    PublishedRow row{cells[0],  cells[1],  cells[2],  cells[3],  cells[5], cells[9],
                     cells[10], cells[11], cells[13], cells[14], cells[15]};
    row.gpus = static_cast<int64_t>(NumberOf(cells[4]));
    row.seq_length = static_cast<int64_t>(NumberOf(cells[6]));
    row.batch_size = static_cast<int64_t>(NumberOf(cells[7]));
    row.global_batch = static_cast<int64_t>(NumberOf(cells[8]));
    row.tokens_per_s = NumberOf(cells[12]);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string OutOfScope(const PublishedRow& row) {
  if (row.ended != "ok") return "ran out of memory";
  if (row.kind == "LoRA") return "LoRA: not all weights are trained";
  static const std::regex parallel("(^|[ ])(TP|PP|CP|EP)([2-9]|1[0-9])");
  if (ModelOf(row) == nullptr) return "not a dense model whose shape is known here";
  if (std::regex_search(row.parallelism, parallel) || row.parallelism.starts_with("HSDP")) {
    return "tensor, pipeline, context or expert parallelism, or shards within machines alone (HSDP)";
  }
  if (row.tokens_per_s == 0) return "no throughput";
  if (DeviceOf(row).empty()) return "a device that its source does not describe (power-limited, no limit said)";
  return "";
}

PublishedStep StepOf(const PublishedRow& row) {
  const int64_t batch = std::max<int64_t>(row.batch_size, 1);  // NVIDIA's SFT recipes have 1
  const int64_t accumulation = row.global_batch == 0 ? 1 : std::max<int64_t>(1, row.global_batch / (batch * row.gpus));
  const Framework framework = FrameworkOf(row);
  const bool recomputes = framework.again.any();
  const std::string fields = fmt::format(
      "{}, {}, seq_length: {}, batch_size: {}, grad_accumulation: {}, ranks: {}, shard: {}, checkpointing: {}",
      ModelOf(row)->fields, PrecisionOf(row), row.seq_length, batch, accumulation, row.gpus,
      IsSharded(row) ? "full" : "optimizer", recomputes ? "full" : "none");
  const RunSpec spec =
      Expand(ParseSweep("name: published\ndefaults: {" + fields + "}", "row-" + row.id + ".yaml"))[0].spec;
  Device device = FindDevice(DeviceOf(row), {kSources / "devices"});
  StepCosts costs = CostsOf(spec, device);
  return {row, std::move(device), framework, std::move(costs), Hash(row.id).low % 2 == 0};
}

Efficiency FittedTo(const std::vector<const PublishedStep*>& steps) {
  using E = Efficiency;
  struct Free {
    double E::*member;
    double least, most;
  };
  // Passes, links and the network bound next to nothing of these rows, and one is of fp4: they cannot tell those.
  static constexpr Free kFree[] = {
      {&E::products, 0.5, 1}, {&E::products_fp8, 0.3, 1}, {&E::attention, 0.2, 1}, {&E::power, 0.2, 1}};
  const auto error = [&](const Efficiency& efficiency) {
    double sum = 0;
    for (const PublishedStep* step : steps) sum += std::abs(std::log(step->Ratio(efficiency)));
    return sum / static_cast<double>(steps.size());
  };
  Efficiency best;
  best.products = best.products_fp8 = 0.8;
  best.attention = 0.6;
  best.power = 0.5;
  double least = error(best);
  for (double step = 0.16; step >= 0.01; step /= 2) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const Free& free : kFree) {
        for (const double by : {step, -step}) {
          Efficiency tried = best;
          tried.*free.member = std::clamp(tried.*free.member + by, free.least, free.most);
          const double of_tried = error(tried);
          if (of_tried < least - 1e-6) {
            best = tried;
            least = of_tried;
            moved = true;
          }
        }
      }
    }
  }
  return best;
}

double PublishedStep::Ratio(const Efficiency& efficiency) const {
  const auto [known, is_new] = ratios.try_emplace(Counting(*this, efficiency));
  if (is_new) {
    Framework with = framework;
    with.efficiency = efficiency;
    const StepForecast forecast = Forecast(costs, device, with);
    known->second = forecast.steady_tokens_per_s(costs.spec) / static_cast<double>(row.gpus) / row.tokens_per_s;
  }
  return known->second;
}

}  // namespace ridgeline
