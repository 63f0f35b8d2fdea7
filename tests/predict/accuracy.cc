#include "tests/predict/accuracy.h"
#include "run/names.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

namespace ridgeline::predict {
namespace {

using Rows = std::vector<PublishedStep>;
using Chosen = std::vector<const PublishedStep*>;

std::string ConfigurationOf(const PublishedStep& step) {
  return step.row.model + " " + step.device.gpu + " " + step.row.precision.substr(0, 3);
}

// Predicts each group of rows with shares that other rows set: those for which `teaches` is true.
std::vector<Miss> LeftOut(const Rows& steps, const std::function<std::string(const PublishedStep&)>& group,
                          const std::function<bool(const PublishedStep& of, const PublishedStep& other)>& teaches) {
  std::map<std::string, Chosen> groups;
  for (const PublishedStep& step : steps) groups[group(step)].push_back(&step);
  std::vector<Miss> misses;
  for (const auto& [name, its] : groups) {
    Chosen others;
    for (const PublishedStep& step : steps) {
      if (teaches(*its.front(), step)) others.push_back(&step);
    }
    if (others.empty()) continue;
    const Efficiency set = FittedTo(others);
    for (const PublishedStep* step : its) misses.push_back({step, step->Ratio(set)});
  }
  return misses;
}

std::vector<double> AbsoluteErrors(const std::vector<Miss>& misses) {
  std::vector<double> errors;
  for (const Miss& miss : misses) errors.push_back(std::abs(miss.ratio - 1));
  std::ranges::sort(errors);
  return errors;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double ShareOf(const std::vector<double>& sorted, double q) {
  return sorted.at(static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size()))) - 1);
}

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

// The framework's file says how often a step without torch.compile passes over memory. This is not fitted here.
Rows AsFiles(const Rows& steps) {
  const Framework file = FindFramework("torchtitan", {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "frameworks"});
  Rows as_files = steps;
  for (PublishedStep& step : as_files) {
    step.ratios.clear();
    const bool eager = ProgramOf(step.row) == "torchtitan" && step.row.compiled == "no";
    if (eager) step.framework.passes = file.eager_passes;
  }
  return as_files;
}

// The shares that all rows of each program set.
std::string SharesTable(const Rows& steps) {
  std::string table = "| | rows | products | of 8 bits | attention | power |\n|---|--:|--:|--:|--:|--:|\n";
  const auto add = [&](const std::string& name, const std::function<bool(const PublishedStep&)>& are) {
    Chosen chosen;
    bool limited = false;
    for (const PublishedStep& step : steps) {
      if (!are(step)) continue;
      chosen.push_back(&step);
      limited = limited || step.device.Or("chip.rated_power", 0) > step.device.At("chip.power");
    }
    const Efficiency set = FittedTo(chosen);
    table += fmt::format("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {} |\n", name, chosen.size(), set.products,
                         set.products_fp8, set.attention, limited ? fmt::format("{:.2f}", set.power) : "");
  };
  add("half of all rows", [](const PublishedStep& step) { return step.sets; });
  for (const char* program : {"torchtitan", "megatron"}) {
    add(program, [&](const PublishedStep& step) { return ProgramOf(step.row) == program; });
  }
  return table;
}

std::string RowOf(const std::string& what, const std::vector<Miss>& misses) {
  const std::vector<double> errors = AbsoluteErrors(misses);
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", what, errors.size(), Percent(Mean(errors)),
                     Percent(ShareOf(errors, 0.5)), Percent(ShareOf(errors, 0.9)), Percent(errors.back()));
}

constexpr const char* kErrorColumns =
    "| predicted / published | rows | mean error | median | 90th percentile | worst |\n|---|--:|--:|--:|--:|--:|\n";

std::vector<Miss> OfProgram(const std::vector<Miss>& misses, const std::string& program) {
  std::vector<Miss> its;
  for (const Miss& miss : misses) {
    if (ProgramOf(miss.step->row) == program) its.push_back(miss);
  }
  return its;
}

std::string ByProgram(const std::vector<Miss>& misses) {
  std::set<std::string> programs;
  for (const Miss& miss : misses) programs.insert(ProgramOf(miss.step->row));
  std::string rows;
  for (const std::string& program : programs) rows += RowOf(program, OfProgram(misses, program));
  return rows + RowOf("all", misses);
}

StepSize SizeOfRow(const PublishedStep& step) {
  StepSize size = SizeOfStep(step.spec);
  size.ranks = static_cast<double>(step.row.gpus);
  return size;
}

// Uses one other row of the same program and GPU, with another configuration, as a measurement whose factor corrects a
// row. Each row is corrected by each such row in turn. `all`: by all of them at once.
std::vector<Miss> Corrected(const std::vector<Miss>& without, bool all) {
  std::vector<Miss> corrected;
  for (const Miss& miss : without) {
    double sum = 0;
    double count = 0;
    double nearest = std::numeric_limits<double>::infinity();
    for (const Miss& other : without) {
      const bool same =
          ProgramOf(other.step->row) == ProgramOf(miss.step->row) && other.step->device.gpu == miss.step->device.gpu;
      if (!same || ConfigurationOf(*other.step) == ConfigurationOf(*miss.step)) continue;
      const double widening = Widening(SizeOfRow(*other.step), SizeOfRow(*miss.step));
      if (!all) {
        corrected.push_back({miss.step, miss.ratio / std::pow(other.ratio, 1 / (1 + kRunsOfPrior)), widening});
        continue;
      }
      sum += std::log(other.ratio);
      count += 1;
      nearest = std::min(nearest, widening);
    }
    if (count > 0) {
      corrected.push_back({miss.step, miss.ratio / std::exp(sum / (count + kRunsOfPrior)), nearest});
    }
  }
  return corrected;
}

// How many of `misses` lie within the factor that the other programs' misses give.
std::string CoverageOf(const std::string& what, const std::vector<Miss>& misses,
                       const std::function<std::string(const Miss&)>& group) {
  int within = 0;
  for (const Miss& miss : misses) {
    std::vector<Miss> others;
    for (const Miss& other : misses) {
      if (group(other) != group(miss)) others.push_back(other);
    }
    if (miss.at_size() <= std::log(FactorOf90(others))) ++within;
  }
  return fmt::format("| {} | {:.2f} | {} of {} | {:.0f} % |\n", what, FactorOf90(misses), within, misses.size(),
                     100.0 * within / static_cast<double>(misses.size()));
}

std::string LadderTable(const std::vector<Ladder>& ladders) {
  std::string table = "| ladder | GPUs | published | predicted | before | |\n|---|--:|--:|--:|--:|---|\n";
  std::vector<double> set, held, before;
  for (const Ladder& ladder : ladders) {
    const PublishedRow& first = *ladder.rungs.front();
    const double published = ladder.Published();
    const double predicted = ladder.Predicted(kStraggle);
    (ladder.sets ? set : held).push_back(std::abs(predicted - published));
    if (!ladder.sets) before.push_back(std::abs(ladder.Predicted(0) - published));
    table += fmt::format("| {}, {}, {} | {} to {} | {:+.1f} % | {:+.1f} % | {:+.1f} % | {}{} |\n", ProgramOf(first),
                         first.model, first.precision, first.gpus, ladder.rungs.back()->gpus, 100 * published,
                         100 * predicted, 100 * ladder.Predicted(0) + 0.0, ladder.sets ? "sets" : "held out",
                         ladder.steps.empty() ? ", the waiting alone" : "");
  }
  for (std::vector<double>* errors : {&set, &held, &before}) std::ranges::sort(*errors);
  return table +
         fmt::format(
             "\nDifference in points: of the {} that set it {:.1f} at the median and {:.1f} at worst; of the {} held "
             "out {:.1f} and {:.1f}, and {:.1f} and {:.1f} without it.\n",
             set.size(), 100 * ShareOf(set, 0.5), 100 * set.back(), held.size(), 100 * ShareOf(held, 0.5),
             100 * held.back(), 100 * ShareOf(before, 0.5), 100 * before.back());
}

std::string MeasuredTable(const Rows& measured) {
  std::string table =
      "| | measured | with others' shares | with its own | the other nine set |\n|---|--:|--:|--:|--:|\n";
  std::vector<double> others, own, left_out;
  for (const PublishedStep& step : measured) {
    Chosen nine;
    for (const PublishedStep& other : measured) {
      if (&other != &step) nine.push_back(&other);
    }
    const Efficiency set = FittedTo(nine, kSharesOfOneGpu);
    const double ms = 1e3 * static_cast<double>(step.row.batch_size * step.row.seq_length) / step.row.tokens_per_s;
    const double as_others = step.Ratio({}), as_own = step.Ratio(kEfficiencyHere), as_nine = step.Ratio(set);
    const std::string batch = step.row.batch_size == 1 ? "" : fmt::format("batch {}, ", step.row.batch_size);
    table += fmt::format("| {}, {}{}, {} | {:.0f} ms | {:.0f} ms | {:.0f} ms | {:.0f} ms |\n", step.row.model, batch,
                         step.row.checkpointing, step.row.precision, ms, ms / as_others, ms / as_own, ms / as_nine);
    others.push_back(std::abs(1 / as_others - 1));
    own.push_back(std::abs(1 / as_own - 1));
    left_out.push_back(std::abs(1 / as_nine - 1));
  }
  for (std::vector<double>* errors : {&others, &own, &left_out}) std::ranges::sort(*errors);
  table += fmt::format("| mean error | | {} | {} | {} |\n", Percent(Mean(others)), Percent(Mean(own)),
                       Percent(Mean(left_out)));
  return table + fmt::format("| worst | | {} | {} | {} |\n", Percent(others.back()), Percent(own.back()),
                             Percent(left_out.back()));
}

// The measured steps in fp8 as they were, with SwiGLU's gradient quantized in a pass of its own, and as they are now.
std::string CodesTable(const Rows& measured) {
  std::string table = "| with its own shares | as measured | now | shorter by |\n|---|--:|--:|--:|\n";
  for (const PublishedStep& step : measured) {
    if (step.row.precision != "fp8") continue;
    PublishedStep now = step;
    now.framework.quantizes_apart = false;
    now.ratios.clear();
    const double tokens_per_ms = 1e-3 * step.row.tokens_per_s;
    const auto tokens = static_cast<double>(step.row.batch_size * step.row.seq_length);
    const double then_ms = tokens / tokens_per_ms / step.Ratio(kEfficiencyHere);
    const double now_ms = tokens / tokens_per_ms / now.Ratio(kEfficiencyHere);
    table += fmt::format("| {}, {} | {:.0f} ms | {:.0f} ms | {} |\n", step.row.model, step.row.checkpointing, then_ms,
                         now_ms, Percent(1 - now_ms / then_ms));
  }
  return table;
}

std::string HalvingTable(const Rows& measured) {
  std::vector<double> means, worst;
  std::vector<Miss> held;
  for (const Halving& halving : Halvings(measured)) {
    held.insert(held.end(), halving.held.begin(), halving.held.end());
    means.push_back(halving.mean_error);
    worst.push_back(halving.worst_error);
  }
  std::ranges::sort(means);
  std::ranges::sort(worst);
  return fmt::format(
      "| {} halvings | least | median | 90th percentile | largest |\n|---|--:|--:|--:|--:|\n"
      "| mean error of the half that set nothing | {} | {} | {} | {} |\n| its worst step | {} | {} | {} | {} |\n"
      "\n90 of 100 of these predictions lie within a factor of {:.2f}.\n",
      means.size(), Percent(means.front()), Percent(ShareOf(means, 0.5)), Percent(ShareOf(means, 0.9)),
      Percent(means.back()), Percent(worst.front()), Percent(ShareOf(worst, 0.5)), Percent(ShareOf(worst, 0.9)),
      Percent(worst.back()), FactorOf90(held));
}

// Peaks of torchtitan's rows, with the figures of its file. Its rows of 2024 did not compile the loss, which keeps 14
// bytes a logit: in 16 bits, in fp32, their gradients in both, and 2 more.
std::string MemoryTable(const Rows& steps) {
  const Framework file = FindFramework("torchtitan", {std::filesystem::path(RIDGELINE_SOURCE_DIR) / "frameworks"});
  std::string table = "| torchtitan | loss | published | predicted | predicted / published |\n|---|---|--:|--:|--:|\n";
  std::vector<double> errors;
  for (const PublishedStep& step : steps) {
    if (step.row.peak_bytes == 0) continue;
    RunSpec spec = step.spec;
    spec.checkpointing = *ParseCheckpointing(step.row.checkpointing == "full" ? "full" : "selective");
    Framework as = file;
    const bool compiles_loss = step.row.source.find("2024") == std::string::npos;
    if (!compiles_loss) as.memory.logits = 14;
    const auto peak = static_cast<double>(PeakBytes(as, spec));
    table += fmt::format("| {}, {}, {} GPUs of {}, sequence {}{} | {} | {:.1f} GB | {:.1f} GB | {:.2f} |\n",
                         step.row.model, step.row.precision, step.row.gpus, step.device.gpu, step.row.seq_length,
                         step.row.compiled == "no" ? ", eager" : "", compiles_loss ? "compiled" : "not compiled",
                         step.row.peak_bytes / 1e9, peak / 1e9, peak / step.row.peak_bytes);
    errors.push_back(std::abs(peak / step.row.peak_bytes - 1));
  }
  return table + fmt::format("| mean error | | | | {} |\n", Percent(Mean(errors)));
}

// AWS's published figures of NVIDIA's fsdp.py on eight B200: the 1B stack in MXFP8 at sequence 8192, five iterations.
std::string AwsTable() {
  const std::filesystem::path sources = RIDGELINE_SOURCE_DIR;
  const Framework file = FindFramework("te-fsdp", {sources / "frameworks"});
  const Device device = FindDevice("p6-b200", {sources / "devices"});
  struct Shape {
    int64_t batch;
    const char* checkpointing;
    const char* cold;
    const char* peak;
  };
  std::string table =
      "| batch, checkpointing | cold tokens/s of a GPU, predicted | published | steady, predicted | peak, predicted | "
      "published |\n|---|--:|--:|--:|--:|--:|\n";
  for (const Shape& shape : {Shape{1, "none", "~6K", "15.5 GB"}, Shape{1, "full", "slightly less", "2.3 GB"},
                             Shape{16, "full", "~51K", "22.8 GB"}}) {
    const RunSpec spec = SpecOfFields(fmt::format(
        "model: stack-1b, precision: mxfp8, seq_length: 8192, ranks: 8, shard: full, warmup_steps: 0, steps: 5, "
        "batch_size: {}, checkpointing: {}",
        shape.batch, shape.checkpointing));
    const auto [priced, as] = AsPriced(file, spec);
    const StepForecast step = PredictStep(priced, device, as);
    table += fmt::format("| {}, {} | {:.2f}K | {} | {:.1f}K | {:.1f} GB | {} |\n", shape.batch, shape.checkpointing,
                         step.cold_tokens_per_s(spec) / 8e3, shape.cold, step.steady_tokens_per_s(spec) / 8e3,
                         static_cast<double>(PeakBytes(file, spec)) / 1e9, shape.peak);
  }
  return table;
}

// For 14B to 64B AWS published only a range of peaks.
std::string LargeAwsTable() {
  const std::filesystem::path sources = RIDGELINE_SOURCE_DIR;
  const Framework file = FindFramework("te-fsdp", {sources / "frameworks"});
  const Device device = FindDevice("p6-b200", {sources / "devices"});
  std::string table =
      "| memory, predicted | batch 1, none | batch 1, checkpointing | batch 4, checkpointing | batch 16, checkpointing "
      "| "
      "recomputation, batch 1 |\n|---|--:|--:|--:|--:|--:|\n";
  for (const char* model : {"stack-14b", "stack-32b", "stack-64b"}) {
    const auto spec_of = [&](int batch, const char* checkpointing) {
      return SpecOfFields(fmt::format(
          "model: {}, precision: mxfp8, seq_length: 8192, ranks: 8, shard: full, batch_size: {}, checkpointing: {}",
          model, batch, checkpointing));
    };
    const auto peak = [&](int batch, const char* checkpointing) {
      const auto bytes = static_cast<double>(PeakBytes(file, spec_of(batch, checkpointing)));
      return fmt::format("{:.{}f} GB{}", bytes / 1e9, bytes < 100e9 ? 1 : 0,
                         bytes > device.At("memory.size") ? ": does not fit" : "");
    };
    const auto step_ns = [&](const char* checkpointing) {
      const auto [priced, as] = AsPriced(file, spec_of(1, checkpointing));
      return PredictStep(priced, device, as).step_ns;
    };
    table += fmt::format("| {} | {} | {} | {} | {} | {:.0f} % |\n", model, peak(1, "none"), peak(1, "full"),
                         peak(4, "full"), peak(16, "full"), 100 * (step_ns("full") / step_ns("none") - 1));
  }
  return table;
}

}  // namespace

std::string ProgramOf(const PublishedRow& row) {
  if (row.framework == "ridgeline") return "ridgeline";
  if (row.model.ends_with("(MaxText)")) return "maxtext";
  if (row.framework.starts_with("torchtitan")) return "torchtitan";
  if (row.framework.starts_with("fms-fsdp")) return "fms-fsdp";
  return "megatron";
}

std::vector<Miss> WithoutProgram(const Rows& steps) {
  return LeftOut(
      steps, [](const PublishedStep& step) { return ProgramOf(step.row); },
      [](const PublishedStep& of, const PublishedStep& other) { return ProgramOf(of.row) != ProgramOf(other.row); });
}

std::vector<Miss> WithoutGpuOfProgram(const Rows& steps) {
  return LeftOut(
      steps, [](const PublishedStep& step) { return ProgramOf(step.row) + " " + step.device.gpu; },
      [](const PublishedStep& of, const PublishedStep& other) {
        return ProgramOf(of.row) == ProgramOf(other.row) && of.device.gpu != other.device.gpu;
      });
}

std::vector<Miss> WithoutProgramAndGpu(const Rows& steps) {
  return LeftOut(
      steps, [](const PublishedStep& step) { return ProgramOf(step.row) + " " + step.device.gpu; },
      [](const PublishedStep& of, const PublishedStep& other) {
        return ProgramOf(of.row) != ProgramOf(other.row) && of.device.gpu != other.device.gpu;
      });
}

std::vector<Miss> WithoutConfiguration(const Rows& steps) {
  return LeftOut(
      steps, [](const PublishedStep& step) { return ProgramOf(step.row) + " " + ConfigurationOf(step); },
      [](const PublishedStep& of, const PublishedStep& other) {
        return ProgramOf(of.row) == ProgramOf(other.row) && ConfigurationOf(of) != ConfigurationOf(other);
      });
}

std::vector<Halving> Halvings(const Rows& measured) {
  std::vector<Halving> halvings;
  const auto all = static_cast<uint32_t>(measured.size());
  for (uint32_t half = 0; half < (1U << (all - 1));
       ++half) {  // the last step is never in the set, so each halving occurs once
    if (std::popcount(half) != static_cast<int>(all / 2)) continue;
    Halving& halving = halvings.emplace_back();
    for (const bool first : {true, false}) {
      Chosen set, held;
      for (uint32_t i = 0; i < all; ++i) (((half >> i & 1U) == 1) == first ? set : held).push_back(&measured[i]);
      const Efficiency shares = FittedTo(set, kSharesOfOneGpu);
      for (const PublishedStep* step : held) {
        const double error = std::abs(1 / step->Ratio(shares) - 1);  // of the step's time
        halving.held.push_back({step, step->Ratio(shares)});
        halving.mean_error += error / static_cast<double>(all);
        halving.worst_error = std::max(halving.worst_error, error);
      }
    }
  }
  return halvings;
}

double FactorOf90(std::vector<Miss> misses) {
  std::vector<double> factors;
  for (const Miss& miss : misses) factors.push_back(std::exp(miss.at_size()));
  std::ranges::sort(factors);
  const auto count = static_cast<double>(factors.size());
  return factors.at(std::min(factors.size(), static_cast<size_t>(std::ceil(0.9 * (count + 1)))) - 1);
}

std::vector<AccuracyTable> AccuracyTables() {
  const std::vector<PublishedRow> rows = PublishedRows();
  const Rows steps = PublishedSteps();
  const Rows measured = MeasuredSteps();
  const std::vector<Miss> without_program = WithoutProgram(steps);
  const Rows as_files = AsFiles(steps);
  const std::vector<Miss> without_gpu = WithoutGpuOfProgram(as_files);
  const std::vector<Miss> without_both = WithoutProgramAndGpu(steps);
  std::vector<Miss> without_configuration = WithoutConfiguration(as_files);
  std::erase_if(without_configuration, [](const Miss& miss) {
    const std::string program = ProgramOf(miss.step->row);
    return program != "torchtitan" && program != "megatron";  // the others have only one or two configurations
  });
  std::vector<Miss> halves;
  for (const PublishedStep& step : as_files) {
    if (!step.sets) halves.push_back({&step, step.Ratio({})});
  }
  const auto by_program = [](const Miss& miss) { return ProgramOf(miss.step->row); };
  const auto by_gpu = [](const Miss& miss) { return ProgramOf(miss.step->row) + miss.step->device.gpu; };
  const auto by_configuration = [](const Miss& miss) {
    return ProgramOf(miss.step->row) + ConfigurationOf(*miss.step);
  };
  return {
      {"shares", SharesTable(as_files)},
      {"programs", kErrorColumns + ByProgram(without_program)},
      {"others", kErrorColumns + RowOf("27 rows, with what the other 28 set", halves) +
                     RowOf("torchtitan, each with what its other configurations set",
                           OfProgram(without_configuration, "torchtitan")) +
                     RowOf("megatron, the same", OfProgram(without_configuration, "megatron")) +
                     RowOf("each, with what the program's rows of other GPUs set", without_gpu) +
                     RowOf("each, with what other programs on other GPUs set", without_both)},
      {"one measurement", kErrorColumns + RowOf("no measurement", without_program) +
                              RowOf("one, of another configuration", Corrected(without_program, false)) +
                              RowOf("all of the other configurations", Corrected(without_program, true))},
      {"intervals",
       "| what is not known | factor | that hold, with what others give | |\n|---|--:|--:|--:|\n" +
           CoverageOf("the configuration", without_configuration, by_configuration) +
           CoverageOf("the GPU", without_gpu, by_gpu) + CoverageOf("the program", without_program, by_program) +
           CoverageOf("the program, but for one run", Corrected(without_program, false), by_gpu) +
           CoverageOf("the program, but for its other configurations", Corrected(without_program, true), by_gpu) +
           CoverageOf("the program and the GPU", without_both, by_gpu)},
      {"ladders", LadderTable(Ladders(rows, steps))},
      {"h200", MeasuredTable(measured)},
      {"codes", CodesTable(measured)},
      {"halvings", HalvingTable(measured)},
      {"memory", MemoryTable(steps)},
      {"aws", AwsTable()},
      {"aws large", LargeAwsTable()},
  };
}

}  // namespace ridgeline::predict
