#include "tests/predict/published.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "sweep/expand.h"
#include "sweep/sweep.h"

namespace ridgeline::predict {
namespace {
namespace fs = std::filesystem;

const fs::path kSources = RIDGELINE_SOURCE_DIR;

double NumberOf(const std::string& text) { return text.empty() ? 0 : std::stod(text); }

bool IsOf(const PublishedRow& row, std::string_view framework) { return row.framework.starts_with(framework); }

// The shapes of the dense models that the rows name, from their authors.
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

// The machine that a row's GPU stood in, as far as its source says. fms-fsdp's source states 400 Gbit/s a machine.
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

// In programs of TransformerEngine before Megatron-Bridge, fp8 means delayed scaling.
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

// What each framework recomputes, by its own rules. A row with `recipe` follows the recipe. Megatron-Bridge's for fp8
// on H100 recomputes 5 of 32 layers; its others move activations to the host's memory instead. MaxText's keeps
// attention's output but not the MLP (the most that fits beside such a model's state).
Framework FrameworkOf(const PublishedRow& row) {
  Framework framework;
  framework.efficiency = {};
  framework.quantizes_apart = true;
  framework.name = row.framework;
  const auto recompute = [&](double products, double attention, double passes) {
    framework.again = {products, attention, passes};
  };
  if (row.checkpointing == "full") {
    recompute(1, 1, 1);
  } else if (row.checkpointing == "selective_layer") {
    recompute(0.5, 0.5, 0.5);  // every second layer
  } else if (row.checkpointing.starts_with("selective")) {
    recompute(0.5, 0, 1);  // every second product is kept, and attention
  } else if (row.model.ends_with("(MaxText)")) {
    recompute(0.82, 0, 1);  // 3 x 8192 x 28672 of a layer's 855 M weights
  } else if (IsOf(row, "Megatron-Bridge") && row.gpu == "h100_80gb") {
    recompute(5.0 / 32, 5.0 / 32, 5.0 / 32);
  } else {
    recompute(0, 0, 0);
  }
  return framework;
}

// The efficiencies that count for a step: that of a format's products if it has such products, and the exponent of
// power if the GPU is limited to less than its rated power.
std::array<double, 8> Counting(const PublishedStep& step, const Efficiency& efficiency) {
  const bool narrow = step.spec.precision == Precision::kFp8 || step.spec.precision == Precision::kMxfp8;
  const double power = step.device.At("chip.power");
  return {efficiency.products,     narrow ? efficiency.products_fp8 : 0,
          efficiency.products_fp4, efficiency.attention,
          efficiency.memory,       efficiency.link,
          efficiency.network,      step.device.Or("chip.rated_power", power) == power ? 0 : efficiency.power};
}

// The cells of a line of CSV, some of which are quoted.
std::vector<std::string> CellsOf(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace

RunSpec SpecOfFields(const std::string& fields) {
  return sweep::Expand(sweep::ParseSweep("name: published\ndefaults: {" + fields + "}", "published.yaml"))[0].spec;
}

std::vector<PublishedRow> PublishedRows() {
  std::istringstream lines(ReadFile(kSources / "tests/predict/published.csv"));
  std::string line;
  std::getline(lines, line);  // the columns' names
  std::vector<PublishedRow> rows;
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream rest(line + ",");
    for (std::string cell; std::getline(rest, cell, ',');) cells.push_back(cell);
    if (cells.size() != 17) throw std::runtime_error("published.csv: " + line);
    PublishedRow row{cells[0],  cells[1],  cells[2],  cells[3],  cells[5], cells[9],
                     cells[10], cells[11], cells[14], cells[15], cells[16]};
    row.gpus = static_cast<int64_t>(NumberOf(cells[4]));
    row.seq_length = static_cast<int64_t>(NumberOf(cells[6]));
    row.batch_size = static_cast<int64_t>(NumberOf(cells[7]));
    row.global_batch = static_cast<int64_t>(NumberOf(cells[8]));
    row.tokens_per_s = NumberOf(cells[12]);
    row.peak_bytes = NumberOf(cells[13]) * (cells[13].ends_with("GiB") ? 0x1p30 : 1e9);
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
  RunSpec spec = SpecOfFields(fields);
  Device device = FindDevice(DeviceOf(row), {kSources / "devices"});
  TracedStep traced(spec, device);
  return {row, std::move(device), framework, std::move(spec), std::move(traced), Hash(row.id).low % 2 == 0};
}

std::vector<PublishedStep> PublishedSteps() {
  std::vector<PublishedStep> steps;
  for (const PublishedRow& row : PublishedRows()) {
    if (OutOfScope(row).empty()) steps.push_back(StepOf(row));
  }
  return steps;
}

std::vector<PublishedStep> MeasuredSteps() {
  std::istringstream lines(ReadFile(kSources / "bench/results/h200/gpu.csv"));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = CellsOf(line);
  std::vector<PublishedStep> steps;
  std::set<std::string> seen;
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = CellsOf(line);
    const auto at = [&](std::string_view name) {
      return cells.at(static_cast<size_t>(std::ranges::find(names, name) - names.begin()));
    };
    std::string fields = "grad_clip: 0, ranks: 1";
    for (const char* field :
         {"model", "precision", "scaling", "seq_length", "batch_size", "checkpointing", "dropout", "state_precision"}) {
      fields += fmt::format(", {}: {}", field, at(field));
    }
    // Two steps were measured again, in another call.
    if (at("status") != "ok" || at("trainer") != "ridgeline-train" || !seen.insert(fields).second) continue;
    PublishedRow row;
    row.id = at("point_id").substr(0, 8);
    row.framework = "ridgeline";
    row.model = at("model");
    row.gpu = "h200";
    row.precision = at("precision");
    row.checkpointing = at("checkpointing");
    row.gpus = 1;
    row.batch_size = std::stoll(at("batch_size"));
    row.seq_length = std::stoll(at("seq_length"));
    row.tokens_per_s = std::stod(at("tokens_per_step")) / (std::stod(at("step_median_ns")) * 1e-9);
    RunSpec spec = SpecOfFields(fields);
    Device device = FindDevice("h200", {kSources / "devices"});
    TracedStep traced(spec, device);
    Framework as_it_was;
    as_it_was.quantizes_apart = true;
    steps.push_back({std::move(row), std::move(device), as_it_was, std::move(spec), std::move(traced), true});
  }
  return steps;
}

Efficiency FittedTo(const std::vector<const PublishedStep*>& steps, const std::array<Share, 4>& shares,
                    Efficiency from) {
  const auto error = [&](const Efficiency& efficiency) {
    double sum = 0;
    for (const PublishedStep* step : steps) sum += std::abs(std::log(step->Ratio(efficiency)));
    return sum / static_cast<double>(steps.size());
  };
  for (const Share share : shares) {
    from.*share = share == &Efficiency::attention ? 0.6 : share == &Efficiency::power ? 0.5 : 0.8;
  }
  return FitShares(error, shares, from);
}

double PublishedStep::Ratio(const Efficiency& efficiency) const {
  const auto [known, is_new] = ratios.try_emplace(Counting(*this, efficiency));
  if (is_new) {
    Framework with = framework;
    with.efficiency = efficiency;
    const StepForecast forecast = traced.Price(device, with);
    known->second = forecast.steady_tokens_per_s(spec) / static_cast<double>(row.gpus) / row.tokens_per_s;
  }
  return known->second;
}

double Ladder::Published() const { return rungs.back()->tokens_per_s / rungs.front()->tokens_per_s - 1; }

double Ladder::Predicted(double straggle) const {
  if (steps.empty()) {
    const auto slower = [&](const PublishedRow* rung) { return 1 + straggle * ExpectedLargest(rung->gpus); };
    return slower(rungs.front()) / slower(rungs.back()) - 1;
  }
  const auto tokens_per_s = [&](const PublishedStep* step) {
    Framework framework = step->framework;
    framework.straggle = straggle;
    return step->traced.Price(step->device, framework).steady_tokens_per_s(step->spec) /
           static_cast<double>(step->row.gpus);
  };
  return tokens_per_s(steps.back()) / tokens_per_s(steps.front()) - 1;
}

std::vector<Ladder> Ladders(const std::vector<PublishedRow>& rows, const std::vector<PublishedStep>& steps) {
  static const std::regex shards("FSDP[0-9]*");  // over all of them, however many these are
  std::map<std::string, Ladder> ladders;
  for (const PublishedRow& row : rows) {
    if (row.ended != "ok" || row.kind == "LoRA" || row.tokens_per_s == 0) continue;
    const double global = static_cast<double>(row.global_batch) / static_cast<double>(row.gpus);
    const std::string same =
        fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", row.framework, row.model, row.gpu, row.precision,
                    row.seq_length, row.batch_size, row.checkpointing,
                    std::regex_replace(row.parallelism, shards, "FSDP"), row.compiled, row.kind, row.source, global);
    ladders[same].rungs.push_back(&row);
  }
  std::vector<Ladder> all;
  for (auto& [same, ladder] : ladders) {
    std::ranges::sort(ladder.rungs, {}, &PublishedRow::gpus);
    if (ladder.rungs.front()->gpus == ladder.rungs.back()->gpus) continue;
    for (const PublishedRow* rung : ladder.rungs) {
      const auto step = std::ranges::find(steps, rung->id, [](const PublishedStep& each) { return each.row.id; });
      if (step != steps.end()) ladder.steps.push_back(&*step);
    }
    ladder.sets = Hash(ladder.rungs.front()->id).low % 2 == 0;
    all.push_back(std::move(ladder));
  }
  return all;
}

double StraggleOf(const std::vector<const Ladder*>& ladders) {
  double best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int thousandths = 0; thousandths <= 40; ++thousandths) {
    double sum = 0;
    for (const Ladder* ladder : ladders) sum += std::abs(ladder->Predicted(thousandths * 1e-3) - ladder->Published());
    if (sum >= least) continue;
    least = sum;
    best = thousandths * 1e-3;
  }
  return best;
}

}  // namespace ridgeline::predict
