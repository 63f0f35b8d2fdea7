#include "predict/known_runs.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "ridgeline/json_fault.h"
#include "run/gpus.h"
#include "run/spec.h"

namespace ridgeline::predict {
namespace {

constexpr int kVersion = 1;
constexpr double kLongestStepNs = 1e15;
constexpr size_t kLongestOrigin = 256;

// A known run in a form that the step model can price again and again.
struct PricedRun {
  TracedStep traced;
  Framework as;
  double step_ns;
  // ln(known / predicted) of a step with these shares.
  double Error(const Device& device, const Efficiency& efficiency) const {
    Framework with = as;
    with.efficiency = efficiency;
    return std::log(step_ns / traced.Price(device, with).step_ns);
  }
};

double FactorOf(double sum_of_logs, size_t runs) {
  return std::exp(sum_of_logs / (static_cast<double>(runs) + kRunsOfPrior));
}

Efficiency SharesOf(const std::vector<PricedRun>& runs, const Device& device, const Efficiency& from,
                    const PricedRun* without, const std::function<void()>& on_try) {
  static constexpr Share kShares[] = {&Efficiency::products, &Efficiency::products_fp8, &Efficiency::attention,
                                      &Efficiency::memory};
  const auto error = [&](const Efficiency& efficiency) {
    double sum = 0;
    for (const PricedRun& run : runs) {
      if (&run == without) continue;
      sum += std::abs(run.Error(device, efficiency));
      if (on_try) on_try();
    }
    return sum;
  };
  return FitShares(error, kShares, from);
}

std::string JoinOf(const std::set<std::string>& words) {
  return Join(std::vector<std::string>(words.begin(), words.end()), ", ");
}

}  // namespace

std::string EncodeKnownRun(const KnownRun& run) {
  const Json spec = ParseJson(EncodeSpec(run.spec), "a spec");
  return DumpJson(
      {{"version", kVersion}, {"gpu", run.gpu}, {"step_ns", run.step_ns}, {"from", run.from}, {"spec", spec}});
}

KnownRun DecodeKnownRun(std::string_view line, const std::string& source) {
  const auto wrong = [&](const std::string& why) {
    return Error(ErrorKind::kInvalidInput, fmt::format("{}: no known run: {}", source, why),
                 "`ridgeline trainers try --as-calibration` prints such lines");
  };
  const Json json = ParseJson(std::string(line), source);
  if (!json.is_object() || json.value("version", Json()) != kVersion) throw wrong("it has another version than 1");
  try {
    KnownRun run;
    run.gpu = json.at("gpu").get<std::string>();
    run.step_ns = json.at("step_ns").get<double>();
    run.from = PrintableLine(ShortenToBytes(json.at("from").get<std::string>(), kLongestOrigin));
    if (FindGpu(run.gpu) == nullptr) throw wrong("its GPU has no such name: " + ShortenToBytes(run.gpu, 80));
    if (!(run.step_ns >= 1) || !(run.step_ns <= kLongestStepNs)) throw wrong("its step takes no time");
    run.spec = DecodeSpec(json.at("spec"), source);
    return run;
  } catch (const Json::exception& e) {
    throw wrong(JsonFault(e));
  }
}

Efficiency FitShares(const std::function<double(const Efficiency&)>& error, std::span<const Share> shares,
                     const Efficiency& from) {
  constexpr double kLeast = 0.2;
  Efficiency best = from;
  double least = error(best);
  for (double step = 0.16; step >= 0.01; step /= 2) {
    for (bool moved = true; moved;) {
      moved = false;
      for (const Share share : shares) {
        for (const double by : {step, -step}) {
          Efficiency tried = best;
          tried.*share = std::clamp(std::round(100 * (tried.*share + by)) / 100, kLeast, 1.0);
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

bool Correct(Framework& framework, const Device& device, const std::vector<KnownRun>& runs,
             const std::function<void()>& on_try) {
  std::vector<PricedRun> priced;
  Correction correction;
  std::set<std::string> from;
  double sum = 0;
  std::vector<double> logs;
  for (auto run = runs.rbegin(); run != runs.rend() && priced.size() < kMostKnownRuns; ++run) {
    if (run->gpu != device.gpu || !NotEstimated(framework, run->spec).empty()) continue;
    auto [spec, as] = AsPriced(framework, run->spec);
    spec.gpu = device.gpu;
    priced.push_back({TracedStep(spec, device), std::move(as), run->step_ns});
    logs.push_back(priced.back().Error(device, framework.efficiency));
    sum += logs.back();
    if (on_try) on_try();
    correction.sizes.push_back(SizeOfStep(run->spec));
    from.insert(run->from);
    correction.typed = correction.typed || run->typed;
  }
  if (priced.empty()) return false;
  const size_t count = priced.size();
  correction.runs = static_cast<int64_t>(count);
  correction.from = JoinOf(from);
  correction.factor = FactorOf(sum, count);
  correction.spread = count == 1 ? kSpreadOfOneRun : kSpreadOfRuns;
  if (count > 1) {
    double error = 0;
    for (const double log : logs) error += std::abs(std::exp(log) / FactorOf(sum - log, count - 1) - 1);
    correction.error = error / static_cast<double>(count);
  }
  if (count >= kFewestForShares) {
    double error = 0;
    for (const PricedRun& run : priced) {
      const Efficiency others = SharesOf(priced, device, framework.efficiency, &run, on_try);
      error += std::abs(std::exp(run.Error(device, others)) - 1);
    }
    error /= static_cast<double>(count);
    if (error < *correction.error) {
      framework.efficiency = SharesOf(priced, device, framework.efficiency, nullptr, on_try);
      correction.shares = true;
      correction.factor = 1;
      correction.error = error;
    }
  }
  framework.correction = std::move(correction);
  return true;
}

}  // namespace ridgeline::predict
