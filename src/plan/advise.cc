#include "plan/advise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "plan/forecast.h"
#include "plan/memory.h"
#include "predict/memory.h"
#include "run/spec.h"

namespace ridgeline {
namespace {

constexpr int64_t kLargestBatch = 1024;
constexpr double kNearlyAsQuick = 0.97;  // of the quickest: a batch that need not be larger
constexpr int64_t kMostRanks = 4096;     // that are looked at for a model which does not fit

class Adviser {
 public:
  Adviser(const AdviceAbout& about, const Device& device)
      : about_(about), device_(device), memory_(SlabLimitOn(SpecOf("bf16", "none", 1, about.ranks), device).bytes) {
    precisions_ = {"bf16"};
    for (const auto& [peak, precision] :
         {std::pair{"peaks.fp8", "fp8"}, {"peaks.mxfp8", "mxfp8"}, {"peaks.fp4", "nvfp4"}}) {
      if (device.Has(peak)) precisions_.emplace_back(precision);
    }
    for (const std::string& precision : precisions_) {
      for (const char* policy : {"none", "selective", "full"}) Try(precision, policy);
    }
    for (const auto& [key, points] : tried_) {
      for (const AdvisedPoint& point : points) {
        if (point.fits) advice_.fitting.push_back(point);
      }
    }
    std::stable_sort(advice_.fitting.begin(), advice_.fitting.end(),
                     [&](const AdvisedPoint& a, const AdvisedPoint& b) { return RateOf(a) > RateOf(b); });
  }

  Advice Take() && {
    SayFit();
    if (!advice_.fitting.empty()) {
      SayCheckpointing();
      SayBatch();
      SayPrecision();
      SayBound();
      SayGpus();
      SayMemory();
      SayCost();
    }
    return std::move(advice_);
  }

 private:
  RunSpec SpecOf(const std::string& precision, const std::string& policy, int64_t batch, int64_t ranks) const {
    std::vector<Problem> problems;
    RunSpec spec = BuildSpec({{"model", about_.model->name},
                              {"precision", precision},
                              {"checkpointing", policy},
                              {"batch_size", batch},
                              {"seq_length", about_.seq_length},
                              {"ranks", ranks},
                              {"shard", ranks > 1 ? "full" : "none"},
                              {"device", "meta"},
                              {"gpu", device_.gpu}},
                             problems);
    if (problems.empty()) return spec;
    throw Error(ErrorKind::kInvalidInput, fmt::format("{}: {}", about_.model->name, problems.front().message));
  }

  AdvisedPoint PointOf(const std::string& precision, const std::string& policy, int64_t batch, int64_t ranks) const {
    AdvisedPoint point;
    point.spec = SpecOf(precision, policy, batch, ranks);
    point.peak_bytes = PredictMemory(point.spec).planned_peak_bytes;
    point.step = PredictStep(point.spec, device_);
    point.fits = point.peak_bytes <= memory_;
    return point;
  }

  // All batches that fit, and the first that does not.
  void Try(const std::string& precision, const std::string& policy) {
    std::vector<AdvisedPoint>& points = tried_[{precision, policy}];
    for (int64_t batch = 1; batch <= kLargestBatch; batch *= 2) {
      points.push_back(PointOf(precision, policy, batch, about_.ranks));
      if (!points.back().fits) break;
    }
  }

  // Tokens a second of a GPU, in steady state.
  static double RateOf(const AdvisedPoint& point) {
    return point.step.steady_tokens_per_s(point.spec) / static_cast<double>(point.spec.ranks);
  }
  static std::string RateText(const AdvisedPoint& point) { return FormatCount(RateOf(point)); }
  static std::string Named(const AdvisedPoint& point) {
    return fmt::format("{}, checkpointing {}, batch {}", point.spec.precision, point.spec.checkpointing,
                       point.spec.batch_size);
  }

  const AdvisedPoint* QuickestOf(const std::function<bool(const RunSpec&)>& are) const {
    const auto found = std::ranges::find_if(advice_.fitting, [&](const AdvisedPoint& p) { return are(p.spec); });
    return found == advice_.fitting.end() ? nullptr : &*found;
  }
  const AdvisedPoint& best() const { return advice_.fitting.front(); }

  void Planned(const char* topic, std::string text) {
    advice_.sentences.push_back({topic, std::move(text), "planned"});
  }
  void Predicted(const char* topic, std::string text, const AdvisedPoint& by) {
    advice_.sentences.push_back(
        {topic, std::move(text), by.step.calibrated ? "predicted, calibrated" : "predicted, extrapolated"});
  }

  void SayFit() {
    const std::string has = FormatBytes(memory_);
    const std::vector<AdvisedPoint>& none = tried_.at({"bf16", "none"});
    const std::vector<AdvisedPoint>& full = tried_.at({"bf16", "full"});
    if (none.front().fits) {
      const AdvisedPoint& largest = none[none.back().fits ? none.size() - 1 : none.size() - 2];
      Planned("fit", fmt::format("It fits without activation checkpointing: in bf16 up to batch {} a GPU, {} of {}",
                                 largest.spec.batch_size, FormatBytes(largest.peak_bytes), has));
    } else if (full.front().fits) {
      Planned("fit", fmt::format("It needs activation checkpointing: in bf16 batch 1 takes {} without it and {} with "
                                 "full, of {}",
                                 FormatBytes(none.front().peak_bytes), FormatBytes(full.front().peak_bytes), has));
    } else {
      std::string text =
          fmt::format("It does not fit in bf16: batch 1 with full activation checkpointing takes {} of {}",
                      FormatBytes(full.front().peak_bytes), has);
      for (int64_t ranks = about_.ranks * 2; ranks <= kMostRanks; ranks *= 2) {
        const int64_t bytes = PredictMemory(SpecOf("bf16", "full", 1, ranks)).planned_peak_bytes;
        if (bytes > memory_) continue;
        text += fmt::format("; shared by {} GPUs it takes {}", ranks, FormatBytes(bytes));
        break;
      }
      Planned("fit", std::move(text));
    }
  }

  void SayCheckpointing() {
    const auto with = [&](const char* policy) {
      return QuickestOf([&, this](const RunSpec& spec) {
        return spec.precision == best().spec.precision && spec.checkpointing == policy;
      });
    };
    const AdvisedPoint* none = with("none");
    const AdvisedPoint* full = with("full");
    if (none == nullptr || full == nullptr) return;
    const double ratio = RateOf(*full) / RateOf(*none);
    Predicted("checkpointing",
              fmt::format("Full activation checkpointing {}: {} tokens/s a GPU at its best batch ({}), {} without it "
                          "(batch {}): {:.2f} x",
                          ratio > 1 ? "pays" : "does not pay", RateText(*full), full->spec.batch_size, RateText(*none),
                          none->spec.batch_size, ratio),
              *full);
  }

  void SayBatch() {
    const std::vector<AdvisedPoint>& points = tried_.at({best().spec.precision, best().spec.checkpointing});
    std::vector<std::string> rates;
    int64_t enough = 0;
    for (const AdvisedPoint& point : points) {
      if (!point.fits) continue;
      rates.push_back(fmt::format("{} at {}", RateText(point), point.spec.batch_size));
      if (enough == 0 && RateOf(point) >= kNearlyAsQuick * RateOf(best())) enough = point.spec.batch_size;
    }
    Predicted("batch",
              fmt::format("Batch {} is enough: tokens/s a GPU with {}, checkpointing {} are {}", enough,
                          best().spec.precision, best().spec.checkpointing, Join(rates, ", ")),
              best());
  }

  void SayPrecision() {
    const AdvisedPoint* bf16 = QuickestOf([](const RunSpec& spec) { return spec.precision == "bf16"; });
    std::vector<std::string> parts;
    for (const std::string& precision : precisions_) {
      const AdvisedPoint* point = QuickestOf([&](const RunSpec& spec) { return spec.precision == precision; });
      if (point == nullptr) continue;
      parts.push_back(fmt::format("{} {}{}", precision, RateText(*point),
                                  bf16 == nullptr || precision == "bf16"
                                      ? ""
                                      : fmt::format(" ({:.2f} x bf16)", RateOf(*point) / RateOf(*bf16))));
    }
    Predicted(
        "precision",
        fmt::format("The quickest is {}: {}, a step of {} ({} … {}), {} of memory. At their best: {}", Named(best()),
                    RateText(best()) + " tokens/s a GPU", Time(best().step.step_ns), Time(best().step.low_ns),
                    Time(best().step.high_ns), FormatBytes(best().peak_bytes), Join(parts, ", ")),
        best());
  }

  void SayBound() {
    const StepForecast& step = best().step;
    const auto share = [&](double ns) { return 100 * ns / step.step_ns; };
    Predicted(
        "bound",
        fmt::format(
            "A step is bound by {}: compute {:.0f} %, passes over memory {:.0f} %, waiting for other GPUs {:.0f} %, "
            "launches {:.0f} % of a step",
            step.bound, share(step.compute_ns), share(step.memory_ns), share(step.exposed_ns), share(step.launch_ns)),
        best());
  }

  // The quickest point with other ranks, where the device says how they reach each other.
  void SayGpus() {
    std::vector<std::string> parts;
    for (const int64_t times : {2, 8}) {
      const int64_t ranks = about_.ranks * times;
      if (!device_.Has("link.bandwidth") || (ranks > device_.domain() && !device_.Has("network.bandwidth"))) continue;
      AdvisedPoint point = best();
      point.spec = SpecOf(best().spec.precision, best().spec.checkpointing, best().spec.batch_size, ranks);
      point.step = PredictStep(point.spec, device_);
      parts.push_back(fmt::format("{} GPUs {} each ({:.2f} x), {:.0f} % of a step waiting", ranks, RateText(point),
                                  RateOf(point) / RateOf(best()), 100 * point.step.exposed_ns / point.step.step_ns));
    }
    if (!parts.empty()) Predicted("GPUs", "More GPUs, the same batch on each: " + Join(parts, "; "), best());
  }

  void SayMemory() {
    const std::string& precision = best().spec.precision;
    const AdvisedPoint next = PointOf(precision, "none", NextBatch(precision), about_.ranks);
    const double ratio = RateOf(next) / RateOf(best());
    Predicted("memory",
              fmt::format("More memory {}: {} would take {} and give {:.2f} x the tokens/s",
                          ratio > 1 / kNearlyAsQuick ? "would pay" : "changes little", Named(next),
                          FormatBytes(next.peak_bytes), ratio),
              best());
  }
  // The first batch that does not fit without checkpointing.
  int64_t NextBatch(const std::string& precision) const {
    return tried_.at({precision, "none"}).back().spec.batch_size;
  }

  void SayCost() {
    const DeviceFigure* price = PriceOf(device_);
    if (price == nullptr) return;
    Predicted("cost",
              fmt::format("A billion tokens cost {:.2f} USD at {:.2f} USD an hour and machine ({})",
                          DollarsABillionTokens(best().spec, best().step, device_), price->value, price->date),
              best());
  }

  static std::string Time(double ns) { return FormatDuration(std::llround(ns)); }

  const AdviceAbout& about_;
  const Device& device_;
  const int64_t memory_;
  std::vector<std::string> precisions_;
  std::map<std::pair<std::string, std::string>, std::vector<AdvisedPoint>> tried_;  // by precision and policy
  Advice advice_;
};

}  // namespace

Advice Advise(const AdviceAbout& about, const Device& device) { return Adviser(about, device).Take(); }

}  // namespace ridgeline
