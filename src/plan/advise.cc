#include "plan/advise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
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
constexpr int64_t kMostRanks = 65536;    // that are looked at for a model which does not fit

class Adviser {
 public:
  Adviser(const AdviceAbout& about, const Device& device)
      : about_(about), device_(device), limit_(SlabLimitOn(SpecOf("bf16", "none", 1, about.ranks), device)) {
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
    if (advice_.fitting.empty()) {
      SayRemedies();
    } else {
      SayQuickest();
      SayCheckpointing();
      SayBatch();
      SayBound();
      SayState();
      SayGpus();
      SayMemory();
      SayCost();
    }
    return std::move(advice_);
  }

 private:
  RunSpec SpecOf(const std::string& precision, const std::string& policy, int64_t batch, int64_t ranks,
                 const Json& other = Json::object()) const {
    std::vector<Problem> problems;
    Json values = {{"precision", precision},
                   {"checkpointing", policy},
                   {"batch_size", batch},
                   {"seq_length", about_.seq_length},
                   {"state_precision", about_.state_precision},
                   {"grad_clip", about_.grad_clip},
                   {"ranks", ranks},
                   {"shard", ranks > 1 ? "full" : "none"},
                   {"device", "meta"},
                   {"gpu", device_.gpu}};
    values.update(about_.model);
    values.update(other);
    RunSpec spec = BuildSpec(values, problems);
    if (problems.empty()) return spec;
    throw Error(ErrorKind::kInvalidInput, fmt::format("advise: {}", problems.front().message));
  }

  static int64_t BytesOf(const RunSpec& spec) { return PredictMemory(spec).planned_peak_bytes; }

  AdvisedPoint PointOf(RunSpec spec) const {
    AdvisedPoint point;
    point.peak_bytes = BytesOf(spec);
    point.step = PredictStep(spec, device_);
    point.fits = point.peak_bytes <= limit_.bytes;
    point.spec = std::move(spec);
    return point;
  }

  // All batches of powers of two that fit, the largest of any that does, and the first power that does not.
  void Try(const std::string& precision, const std::string& policy) {
    std::vector<AdvisedPoint>& points = tried_[{precision, policy}];
    for (int64_t batch = 1; batch <= kLargestBatch; batch *= 2) {
      points.push_back(PointOf(SpecOf(precision, policy, batch, about_.ranks)));
      if (!points.back().fits) break;
    }
    if (points.back().fits || points.size() == 1) return;
    const int64_t power = points[points.size() - 2].spec.batch_size;
    int64_t fits = power;
    int64_t too_much = points.back().spec.batch_size;
    // Memory is nearly straight in the batch: a few tries find its end.
    int64_t fits_bytes = points[points.size() - 2].peak_bytes;
    int64_t too_much_bytes = points.back().peak_bytes;
    while (too_much - fits > 1) {
      const double share = static_cast<double>(limit_.bytes - fits_bytes) /
                           static_cast<double>(std::max<int64_t>(1, too_much_bytes - fits_bytes));
      const auto guess = static_cast<int64_t>(share * static_cast<double>(too_much - fits));
      const int64_t between = std::clamp(fits + guess, fits + 1, too_much - 1);
      const int64_t bytes = BytesOf(SpecOf(precision, policy, between, about_.ranks));
      const bool is_enough = bytes <= limit_.bytes;
      (is_enough ? fits : too_much) = between;
      (is_enough ? fits_bytes : too_much_bytes) = bytes;
    }
    if (fits > power) points.insert(points.end() - 1, PointOf(SpecOf(precision, policy, fits, about_.ranks)));
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
  RunSpec BestWith(const Json& other) const {
    return SpecOf(best().spec.precision, best().spec.checkpointing, best().spec.batch_size, about_.ranks, other);
  }

  // The largest batch that fits; nullptr: not even 1.
  const AdvisedPoint* LargestOf(const std::string& precision, const std::string& policy) const {
    const std::vector<AdvisedPoint>& points = tried_.at({precision, policy});
    const auto found = std::find_if(points.rbegin(), points.rend(), [](const AdvisedPoint& p) { return p.fits; });
    return found == points.rend() ? nullptr : &*found;
  }
  // Of one policy at batch 1 the precision that needs least.
  const AdvisedPoint& LeastOf(const std::string& policy) const {
    const AdvisedPoint* least = nullptr;
    for (const std::string& precision : precisions_) {
      const AdvisedPoint& first = tried_.at({precision, policy}).front();
      if (least == nullptr || first.peak_bytes < least->peak_bytes) least = &first;
    }
    return *least;
  }

  void Planned(const char* topic, std::string text) {
    advice_.sentences.push_back({topic, std::move(text), "planned"});
  }
  void Predicted(const char* topic, std::string text, const AdvisedPoint& by) {
    advice_.sentences.push_back({topic, std::move(text), std::string(ClockBasis(by.step.calibrated))});
  }

  void SayFit() {
    const std::string has = FormatBytes(limit_.bytes);
    const auto largest = [&](const char* policy) {
      std::vector<std::string> parts;
      for (const std::string& precision : precisions_) {
        const AdvisedPoint* point = LargestOf(precision, policy);
        parts.push_back(point == nullptr ? precision + " not at all"
                                         : fmt::format("{} up to batch {} a GPU ({})", precision,
                                                       point->spec.batch_size, FormatBytes(point->peak_bytes)));
      }
      return Join(parts, ", ");
    };
    if (LeastOf("none").fits) {
      Planned("fit", fmt::format("It fits the {} of a GPU without activation checkpointing: {}", has, largest("none")));
    } else if (!advice_.fitting.empty()) {
      const char* policy = LeastOf("selective").fits ? "selective" : "full";
      Planned("fit",
              fmt::format("It needs activation checkpointing: batch 1 takes {} of {} without it; with {} it fits: {}",
                          FormatBytes(LeastOf("none").peak_bytes), has, policy, largest(policy)));
    } else {
      const AdvisedPoint& least = LeastOf("full");
      Planned("fit", fmt::format("It does not fit: {} takes {} of {}, which is the least of all formats", Named(least),
                                 FormatBytes(least.peak_bytes), has));
    }
  }

  // What would let it fit, each by itself, from what needs least.
  void SayRemedies() {
    const RunSpec& least = LeastOf("full").spec;
    const auto with = [&](const Json& other) { return SpecOf(least.precision, "full", 1, about_.ranks, other); };
    const auto say = [&](const std::string& what, const RunSpec& spec) {
      const int64_t bytes = BytesOf(spec);
      Planned("remedy", fmt::format("With {} it takes {}{}", what, FormatBytes(bytes),
                                    bytes <= limit_.bytes ? " and fits" : ", which does not fit either"));
    };
    if (about_.state_precision == "fp32")
      say("bf16 state (state_precision: bf16)", with({{"state_precision", "bf16"}}));
    if (about_.grad_clip > 0) say("no clipping of gradients (grad_clip: 0)", with({{"grad_clip", 0}}));
    if (about_.seq_length > 1024) {
      const int64_t shorter = about_.seq_length / 2;
      say(fmt::format("sequences of {}", shorter), with({{"seq_length", shorter}}));
    }
    if (const auto ranks = RanksThatHold(least)) {
      const std::string machines =
          device_.gpus() == 1 ? "" : fmt::format(" ({} machines of {})", device_.machines(*ranks), device_.name);
      Planned("remedy", fmt::format("Shared by {} GPUs{} it takes {} and fits", *ranks, machines,
                                    FormatBytes(BytesOf(SpecOf(least.precision, "full", 1, *ranks)))));
    } else {
      Planned("remedy", "No number of these GPUs holds it: what does not shrink with them is too much already");
    }
    Planned("remedy", fmt::format("A GPU of which CUDA shows {} would hold it as it is",
                                  FormatBytes(LeastOf("full").peak_bytes + limit_room())));
  }
  int64_t limit_room() const { return std::llround(device_.At("memory.size")) - limit_.bytes; }
  // The fewest: GPUs within a machine, else whole machines. What a rank holds only shrinks with them.
  std::optional<int64_t> RanksThatHold(const RunSpec& least) const {
    const int64_t unit = about_.ranks < device_.gpus() ? 1 : device_.gpus();
    const auto holds = [&](int64_t units) {
      return BytesOf(SpecOf(least.precision, "full", 1, units * unit)) <= limit_.bytes;
    };
    int64_t too_few = about_.ranks / unit;
    int64_t enough = std::max<int64_t>(2, 2 * too_few);
    for (; !holds(enough); enough *= 2) {
      if (enough * unit > kMostRanks) return std::nullopt;
      too_few = enough;
    }
    while (enough - too_few > 1) {
      const int64_t between = too_few + (enough - too_few) / 2;
      (holds(between) ? enough : too_few) = between;
    }
    return enough * unit;
  }

  void SayQuickest() {
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
    Predicted("quickest",
              fmt::format("The quickest is {}: {} tokens/s a GPU, a step of {} ({} … {}), {} of memory. Formats at "
                          "their best: {}",
                          Named(best()), RateText(best()), Time(best().step.step_ns), Time(best().step.low_ns),
                          Time(best().step.high_ns), FormatBytes(best().peak_bytes), Join(parts, ", ")),
              best());
  }

  // Where both fit; else the fit itself says it.
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
    Predicted(
        "checkpointing",
        fmt::format("In {} full activation checkpointing {}: {} tokens/s a GPU at its best batch ({}), {} without "
                    "it (batch {}), {:.2f} x",
                    best().spec.precision, ratio > 1 ? "pays" : "does not pay", RateText(*full), full->spec.batch_size,
                    RateText(*none), none->spec.batch_size, ratio),
        *full);
  }

  void SayBatch() {
    std::vector<std::string> rates;
    int64_t enough = 0;
    for (const AdvisedPoint& point : tried_.at({best().spec.precision, best().spec.checkpointing})) {
      if (!point.fits) continue;
      rates.push_back(fmt::format("{} at {}", RateText(point), point.spec.batch_size));
      if (enough == 0 && RateOf(point) >= kNearlyAsQuick * RateOf(best())) enough = point.spec.batch_size;
    }
    const std::string smaller = enough < best().spec.batch_size
                                    ? fmt::format("A batch of {} is within 3 % of it", enough)
                                    : std::string("No smaller batch is within 3 % of it");
    Predicted("batch", fmt::format("{}: tokens/s a GPU by batch are {}", smaller, Join(rates, ", ")), best());
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

  // What the state and the clipping that were assumed cost of the memory.
  void SayState() {
    std::vector<std::string> parts;
    const auto add = [&](const std::string& what, const Json& other) {
      const int64_t less = best().peak_bytes - BytesOf(BestWith(other));
      if (less > best().peak_bytes / 100) parts.push_back(fmt::format("{} takes {} less", what, FormatBytes(less)));
    };
    if (about_.state_precision == "fp32") add("with bf16 state it", {{"state_precision", "bf16"}});
    if (about_.grad_clip > 0) {
      add("without clipping, which keeps all gradients until their norm is known, it", {{"grad_clip", 0}});
    }
    if (!parts.empty()) Planned("state", fmt::format("The same {}", Join(parts, "; ")));
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

  // The first batch that does not fit without checkpointing.
  void SayMemory() {
    const AdvisedPoint& next = tried_.at({best().spec.precision, "none"}).back();
    if (next.fits) return;
    const double ratio = RateOf(next) / RateOf(best());
    Predicted("memory",
              fmt::format("More memory {}: {} would take {} and give {:.2f} x the tokens/s",
                          ratio > 1 / kNearlyAsQuick ? "would pay" : "changes little", Named(next),
                          FormatBytes(next.peak_bytes), ratio),
              best());
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
  const SlabLimit limit_;
  std::vector<std::string> precisions_;
  std::map<std::pair<std::string, std::string>, std::vector<AdvisedPoint>> tried_;  // by precision and policy
  Advice advice_;
};

}  // namespace

Advice Advise(const AdviceAbout& about, const Device& device) { return Adviser(about, device).Take(); }

}  // namespace ridgeline
