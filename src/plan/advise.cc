#include "plan/advise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "plan/forecast.h"
#include "run/names.h"
#include "run/presets.h"

namespace ridgeline::plan {
namespace {

// Points within this share of one another are not told apart, because the step model's error is larger.
constexpr double kNearly = 0.97;
constexpr int64_t kMostRanks = 65536;   // most ranks that are tried for a model that does not fit
constexpr int64_t kMostMachines = 128;  // most machines that a budget is spread over

std::string Time(double ns) { return FormatDuration(std::llround(std::min(ns, 9e18))); }
std::string Dollars(double dollars) {
  return dollars >= 1e4 ? FormatCount(dollars) + " USD" : fmt::format("{:.2f} USD", dollars);
}
// Formats times that may be much longer than hours.
std::string Days(double seconds) {
  if (seconds < 2 * 86400) return Time(1e9 * seconds);
  const double days = seconds / 86400;
  return days < 999.5 ? fmt::format("{:.3g} days", days) : fmt::format("{:.0f} days", days);
}

class Adviser {
 public:
  Adviser(const AdviceAbout& about, const predict::Device& device, const predict::Framework& framework,
          const std::vector<predict::Device>& others)
      : about_(about),
        device_(device),
        framework_(framework),
        others_(others),
        configurations_(about.trained, device, framework) {
    advice_.ranks = about.ranks;
    if (about.budget_usd > 0) {
      SpendBudget();
    } else {
      Choose(about.ranks, configurations_.Try(about.ranks));
    }
  }

  Advice Take() && {
    SayFit();
    if (advice_.fitting.empty()) {
      SayRemedies();
      return std::move(advice_);
    }
    advice_.fitting.front().peak_bytes = configurations_.BytesOf(best().spec);
    FindSmallest();
    FindCheapest();
    SayFastest();
    SayTokens();
    SayShard();
    SayCheckpointing();
    SayBatch();
    SayBound();
    SayState();
    SayGpus();
    SayMachines();
    SayMemory();
    return std::move(advice_);
  }

 private:
  void Choose(int64_t ranks, std::vector<TriedWay> ways) {
    advice_.ranks = ranks;
    ways_ = std::move(ways);
    advice_.fitting = FittingPoints(ways_);
  }

  double SecondsOf(const AdvisedPoint& point) const {
    return about_.tokens / point.step.steady_tokens_per_s(point.spec);
  }
  double DollarsOf(const AdvisedPoint& point) const {
    return about_.tokens / 1e9 * DollarsABillionTokens(point.spec, point.step, device_);
  }
  static int64_t RanksOf(const predict::Device& device, int64_t machines) { return machines * device.gpus(); }

  // Finds the most machines that stay within the budget, which are the quickest that can be paid for. Tokens cost more
  // on more machines, because those wait for each other.
  void SpendBudget() {
    if (PriceOf(device_) == nullptr) {
      throw Error(ErrorKind::kInvalidInput,
                  fmt::format("advise: a budget needs a price, and {} has none", device_.name),
                  "name a machine with a price, such as p5: `ridgeline devices` shows prices");
    }
    const int64_t most = device_.Has("network.bandwidth") ? kMostMachines : 1;
    double least = 0;
    int64_t paid = 0;      // machines
    int64_t too_many = 0;  // the first number that costs too much; 0: none yet
    const auto is_paid_of = [&](int64_t machines) -> std::optional<bool> {
      const std::optional<AdvisedPoint> point = configurations_.Quickest(RanksOf(device_, machines), std::nullopt);
      if (!point) return std::nullopt;
      const double dollars = DollarsOf(*point);
      if (least == 0 || dollars < least) least = dollars;
      return dollars <= about_.budget_usd;
    };
    int64_t fewest = 0;  // least tried number that holds the model
    for (int64_t machines = 1; machines <= most && too_many == 0; machines *= 2) {
      const std::optional<bool> is_paid = is_paid_of(machines);
      if (!is_paid) continue;
      if (fewest == 0) fewest = machines;
      (*is_paid ? paid : too_many) = machines;
    }
    while (paid > 0 && too_many - paid > 1) {
      const int64_t between = paid + (too_many - paid) / 2;
      (is_paid_of(between).value_or(false) ? paid : too_many) = between;
    }
    advice_.ranks = RanksOf(device_, std::max<int64_t>(1, paid > 0 ? paid : fewest));
    Choose(advice_.ranks, configurations_.Try(advice_.ranks));
    if (advice_.fitting.empty()) return;
    const bool is_paid = DollarsOf(best()) <= about_.budget_usd;
    Predicted("budget",
              is_paid
                  ? fmt::format("{} pays for training on {} tokens with at most {} of {} (up to {} were tried)",
                                Dollars(about_.budget_usd), FormatCount(about_.tokens), Machines(advice_.ranks),
                                device_.name, kMostMachines)
                  : fmt::format("{} does not pay for training on {} tokens, which costs at least {}. It pays for {} "
                                "tokens",
                                Dollars(about_.budget_usd), FormatCount(about_.tokens), Dollars(least),
                                FormatCount(about_.tokens * about_.budget_usd / least)),
              best());
  }

  const AdvisedPoint& best() const { return advice_.fitting.front(); }
  std::string Machines(int64_t ranks) const {
    const int64_t machines = device_.machines(ranks);
    return machines == 1 ? "1 machine" : fmt::format("{} machines", machines);
  }
  static std::string Gpus(int64_t ranks) { return ranks == 1 ? "1 GPU" : fmt::format("{} GPUs", ranks); }
  static std::string Named(const RunSpec& spec) {
    std::string name =
        fmt::format("{}, checkpointing {}, batch {}", spec.precision, spec.checkpointing, spec.batch_size);
    return spec.ranks > 1 ? fmt::format("shard {}, {}", SplitName(spec.shard, spec.shard_ranks), name) : name;
  }
  static std::string Rate(const AdvisedPoint& point) { return FormatCount(point.rate()); }

  const AdvisedPoint* QuickestOf(const std::function<bool(const RunSpec&)>& are) const {
    const auto found = std::ranges::find_if(advice_.fitting, [&](const AdvisedPoint& p) { return are(p.spec); });
    return found == advice_.fitting.end() ? nullptr : &*found;
  }
  AdvisedPoint PointOf(RunSpec spec) const {
    AdvisedPoint point{.spec = std::move(spec)};
    point.step = configurations_.StepOf(point.spec);
    return point;
  }
  // Returns the way that needs least memory with a batch of 1.
  const TriedWay& LeastOf(const std::function<bool(const TriedWay&)>& are) const {
    const TriedWay* least = nullptr;
    for (const TriedWay& way : ways_) {
      if (are(way) && (least == nullptr || way.bytes_of_one < least->bytes_of_one)) least = &way;
    }
    return *least;
  }
  const TriedWay& LeastOfAll() const {
    return LeastOf([](const TriedWay&) { return true; });
  }
  RunSpec SpecOf(const TriedWay& way, int64_t batch, const Json& other = Json::object()) const {
    return configurations_.SpecOf(way, batch, other);
  }

  // Returns the trainer whose steps are timed.
  std::string StepsTrainer() const {
    return framework_.is_ours() ? "Ridgeline's own trainer"
                                : fmt::format("{} (estimated)", PrintableLine(framework_.name));
  }

  void Planned(const char* topic, std::string text) {
    advice_.sentences.push_back(
        {topic, std::move(text), framework_.is_ours() ? "planned" : framework_.Basis(device_.gpu)});
  }
  void Predicted(const char* topic, std::string text, const AdvisedPoint& by) {
    advice_.sentences.push_back(
        {topic, std::move(text),
         framework_.is_ours() ? std::string(predict::ClockBasis(by.step.calibrated)) : framework_.Basis(device_.gpu)});
  }

  void SayFit() {
    const std::string has = FormatBytes(configurations_.limit().bytes);
    // For each format, the largest batch over all ways to split.
    const auto largest = [&](const Checkpointing& policy) {
      std::vector<std::string> parts;
      for (const Precision precision : configurations_.precisions()) {
        const TriedWay* most = nullptr;
        for (const TriedWay& way : ways_) {
          if (way.precision != precision || way.checkpointing != policy) continue;
          if (most == nullptr || way.largest > most->largest) most = &way;
        }
        if (most == nullptr) continue;
        parts.push_back(!most->fits() ? fmt::format("{} not at all", precision)
                                      : fmt::format("{} up to batch {}", precision, most->largest));
      }
      return Join(parts, ", ");
    };
    const TriedWay& plain = LeastOf([](const TriedWay& way) { return way.checkpointing == Checkpointing(); });
    if (plain.fits()) {
      Planned("fit",
              fmt::format("The model fits the {} of a GPU without activation checkpointing: {}", has, largest({})));
    } else if (!advice_.fitting.empty()) {
      const TriedWay& needed = LeastOf([&](const TriedWay& way) { return way.fits(); });
      Planned("fit",
              fmt::format(
                  "The model needs activation checkpointing. Without it, batch 1 takes {} of a GPU's {}. With {} it "
                  "fits: {}",
                  FormatBytes(plain.bytes_of_one), has, needed.checkpointing, largest(needed.checkpointing)));
    } else {
      const TriedWay& least = LeastOfAll();
      Planned("fit", fmt::format("The model does not fit. The way that needs least, {}, takes {} of a GPU's {}",
                                 Named(SpecOf(least, 1)), FormatBytes(least.bytes_of_one), has));
    }
  }

  // What would make it fit, each change by itself, starting from the way that needs least.
  void SayRemedies() {
    const TriedWay& least = LeastOfAll();
    const auto say = [&](const std::string& what, const Json& other) {
      const int64_t bytes = configurations_.BytesOf(SpecOf(least, 1, other));
      Planned("remedy",
              fmt::format("{}, it takes {}{}", what, FormatBytes(bytes),
                          bytes <= configurations_.limit().bytes ? " and fits" : ", which does not fit either"));
    };
    if (framework_.is_ours()) {
      if (about_.trained.state_precision == "fp32") {
        say("With bf16 state (state_precision: bf16)", {{"state_precision", "bf16"}});
      }
      if (about_.trained.grad_clip > 0) say("Without clipping of gradients (grad_clip: 0)", {{"grad_clip", 0}});
    }
    if (about_.trained.seq_length > 1024) {
      const int64_t shorter = about_.trained.seq_length / 2;
      say(fmt::format("With sequences of {}", shorter), {{"seq_length", shorter}});
    }
    if (const auto ranks = RanksThatHold(least)) {
      Planned("remedy",
              fmt::format("Shared by {} GPUs{}, it takes {} of each and fits (--ranks {})", *ranks,
                          device_.gpus() == 1 ? "" : fmt::format(" ({} of {})", Machines(*ranks), device_.name),
                          FormatBytes(BytesShared(least, *ranks)), *ranks));
    } else {
      Planned("remedy",
              "No number of these GPUs holds it, because the part that does not shrink with their number is too large");
    }
    const int64_t beside = std::llround(device_.At("memory.size")) - configurations_.limit().bytes;
    Planned("remedy", fmt::format("A GPU with {} of memory, as CUDA shows it, would hold it as it is",
                                  FormatBytes(least.bytes_of_one + beside)));
  }
  int64_t BytesShared(const TriedWay& least, int64_t ranks) const {
    return configurations_.BytesOf(
        configurations_.SpecOf(ShardMode::kFull, least.precision, least.checkpointing, 1, ranks));
  }
  // Returns the fewest ranks: a part of a machine that divides it, else whole machines. A rank holds less with more
  // ranks.
  std::optional<int64_t> RanksThatHold(const TriedWay& least) const {
    if (!configurations_.IsSupported("shard", "full")) return std::nullopt;
    const auto holds = [&](int64_t ranks) { return BytesShared(least, ranks) <= configurations_.limit().bytes; };
    const int64_t machine = device_.gpus();
    for (int64_t ranks = advice_.ranks + 1; ranks < machine; ++ranks) {
      if (machine % ranks == 0 && holds(ranks)) return ranks;
    }
    int64_t too_few = advice_.ranks / machine;  // machines
    int64_t enough = std::max<int64_t>(machine == 1 ? 2 : 1, 2 * too_few);
    for (; enough * machine > kMostRanks || !holds(enough * machine); enough *= 2) {
      if (2 * enough * machine > kMostRanks) return std::nullopt;
      too_few = enough;
    }
    while (enough - too_few > 1) {
      const int64_t between = too_few + (enough - too_few) / 2;
      (holds(between * machine) ? enough : too_few) = between;
    }
    return enough * machine;
  }

  void FindSmallest() {
    const TriedWay& least = LeastOf([](const TriedWay& way) { return way.fits(); });
    advice_.smallest = PointOf(SpecOf(least, 1));
    advice_.smallest->peak_bytes = least.bytes_of_one;
  }

  // Finds the cheapest GPUs per token, on as many machines as there are or fewer. If there are many, not every number
  // is tried.
  void FindCheapest() {
    if (PriceOf(device_) == nullptr) return;
    advice_.cheapest = best();
    for (int64_t machines = 1; RanksOf(device_, machines) < advice_.ranks;
         machines += std::max<int64_t>(1, machines / 4)) {
      std::optional<AdvisedPoint> point = configurations_.Quickest(RanksOf(device_, machines), best().spec.shard);
      if (!point) continue;
      const auto dollars = [&](const AdvisedPoint& p) { return DollarsABillionTokens(p.spec, p.step, device_); };
      if (dollars(*point) >= dollars(*advice_.cheapest)) continue;
      advice_.cheapest = std::move(point);
      advice_.cheapest->peak_bytes = configurations_.BytesOf(advice_.cheapest->spec);
    }
  }

  // The interval of a figure that follows from the best step, if it is known.
  std::string IntervalOf(double value, std::string (*text)(double)) const {
    const std::optional<double>& spread = best().step.spread;
    return spread ? text(value / *spread) + " … " + text(value * *spread) : "interval unknown";
  }

  void SayFastest() {
    const AdvisedPoint* bf16 = QuickestOf([](const RunSpec& spec) { return spec.precision == Precision::kBf16; });
    std::vector<std::string> parts;
    for (const Precision precision : configurations_.precisions()) {
      const AdvisedPoint* point = QuickestOf([&](const RunSpec& spec) { return spec.precision == precision; });
      if (point == nullptr) continue;
      parts.push_back(fmt::format("{} {}{}", precision, Rate(*point),
                                  bf16 == nullptr || precision == Precision::kBf16
                                      ? ""
                                      : fmt::format(" ({:.2f} x bf16)", point->rate() / bf16->rate())));
    }
    Predicted(
        "fastest",
        fmt::format(
            "The fastest way is {}. Its step, as {} runs it, takes {} ({}). The best of each format, in tokens/s a "
            "GPU: {}",
            Named(best().spec), StepsTrainer(), Time(best().step.step_ns), IntervalOf(best().step.step_ns, Time),
            Join(parts, ", ")),
        best());
  }

  void SayTokens() {
    if (about_.tokens <= 0) return;
    const double seconds = SecondsOf(best());
    std::string text = fmt::format("Training on {} tokens takes {} ({})", FormatCount(about_.tokens), Days(seconds),
                                   IntervalOf(seconds, Days));
    if (const predict::DeviceFigure* price = PriceOf(device_); price != nullptr) {
      const double dollars = DollarsOf(best());
      text += fmt::format(" and costs {} ({}). A machine costs {:.2f} USD an hour (price of {})", Dollars(dollars),
                          IntervalOf(dollars, Dollars), price->value, price->date);
      if (advice_.cheapest && advice_.cheapest->spec.ranks != best().spec.ranks) {
        text += fmt::format(". On {} it costs {} and takes {}", Gpus(advice_.cheapest->spec.ranks),
                            Dollars(DollarsOf(*advice_.cheapest)), Days(SecondsOf(*advice_.cheapest)));
      }
    }
    Predicted("tokens", text, best());
  }

  // For several ranks: the best result of each way to split.
  void SayShard() {
    std::vector<std::string> parts;
    std::vector<std::string> named;
    for (const TriedWay& way : ways_) {
      const std::string name = SplitName(way.shard, way.shard_ranks);
      if (std::ranges::find(named, name) != named.end()) continue;
      named.push_back(name);
      const AdvisedPoint* point =
          QuickestOf([&](const RunSpec& spec) { return SplitName(spec.shard, spec.shard_ranks) == name; });
      parts.push_back(point == nullptr
                          ? fmt::format("{} does not fit", name)
                          : fmt::format("{} {} ({:.2f} x)", name, Rate(*point), point->rate() / best().rate()));
    }
    if (parts.size() < 2) return;
    Predicted("shard", "The best of each way to split the state, in tokens/s a GPU: " + Join(parts, ", "), best());
  }

  // Says nothing unless both fit; else the sentence "fit" says it.
  void SayCheckpointing() {
    const auto with = [&](Checkpointing::Policy policy) {
      return QuickestOf([&, this](const RunSpec& spec) {
        return spec.precision == best().spec.precision && spec.checkpointing == Checkpointing{policy};
      });
    };
    const AdvisedPoint* none = with(Checkpointing::Policy::kNone);
    const AdvisedPoint* full = with(Checkpointing::Policy::kFull);
    if (none == nullptr || full == nullptr) return;
    const double ratio = full->rate() / none->rate();
    const char* pays = ratio > 1 / kNearly ? "pays" : ratio < kNearly ? "does not pay" : "changes little";
    Predicted(
        "checkpointing",
        fmt::format(
            "Full activation checkpointing {} in {}. At its best batch ({}) it gives {} tokens/s a GPU, {:.2f} x "
            "the {} without it (batch {})",
            pays, best().spec.precision, full->spec.batch_size, Rate(*full), ratio, Rate(*none), none->spec.batch_size),
        *full);
  }

  void SayBatch() {
    std::vector<std::string> rates;
    int64_t enough = 0;
    for (const AdvisedPoint& point : WayOfBest().points) {
      rates.push_back(fmt::format("{} at {}", Rate(point), point.spec.batch_size));
      if (enough == 0 && point.rate() >= kNearly * best().rate()) enough = point.spec.batch_size;
    }
    const std::string smaller = enough < best().spec.batch_size
                                    ? fmt::format("A batch of {} is within 3 % of the fastest", enough)
                                    : std::string("No smaller batch is within 3 % of the fastest");
    Predicted("batch", fmt::format("{}. Tokens/s a GPU by batch: {}", smaller, Join(rates, ", ")), best());
  }
  const TriedWay& WayOfBest() const {
    const RunSpec& spec = best().spec;
    return *std::ranges::find_if(ways_, [&](const TriedWay& way) {
      return way.shard == spec.shard && way.shard_ranks == spec.shard_ranks && way.precision == spec.precision &&
             way.checkpointing == spec.checkpointing;
    });
  }

  void SayBound() {
    const predict::StepForecast& step = best().step;
    const auto share = [&](double ns) { return 100 * ns / step.step_ns; };
    Predicted(
        "bound",
        fmt::format("The step is bound by {}. Compute takes {:.0f} % of it, passes over memory {:.0f} %, waiting for "
                    "other GPUs {:.0f} %, and launches {:.0f} %",
                    step.bound, share(step.compute_ns), share(step.memory_ns), share(step.exposed_ns),
                    share(step.launch_ns)),
        best());
  }

  // How much of the memory is due to the assumed state and clipping.
  void SayState() {
    if (!framework_.is_ours()) return;
    std::vector<std::string> parts;
    const auto add = [&](const std::string& what, const Json& other) {
      const int64_t less = best().peak_bytes - configurations_.BytesOf(configurations_.With(best().spec, other));
      if (less > best().peak_bytes / 100) parts.push_back(fmt::format("{} less {}", FormatBytes(less), what));
    };
    if (about_.trained.state_precision == "fp32") add("with bf16 state", {{"state_precision", "bf16"}});
    if (about_.trained.grad_clip > 0) {
      add("without clipping, which keeps all gradients until their norm is known", {{"grad_clip", 0}});
    }
    if (!parts.empty()) Planned("state", fmt::format("The fastest way takes {}", Join(parts, ", and ")));
  }

  // The fastest point with more ranks, if the device says how ranks reach each other.
  void SayGpus() {
    std::vector<std::string> parts;
    for (const int64_t times : {2, 8}) {
      const int64_t ranks = advice_.ranks * times;
      if (!device_.Has("link.bandwidth") || (ranks > device_.domain() && !device_.Has("network.bandwidth"))) continue;
      const ShardMode shard = best().spec.ranks > 1 ? best().spec.shard : ShardMode::kFull;
      if (!configurations_.IsSupported("shard", NameOf(shard))) continue;
      const AdvisedPoint point = PointOf(configurations_.With(best().spec, {{"ranks", ranks}, {"shard", shard}}));
      parts.push_back(fmt::format("{} GPUs give {} tokens/s each ({:.2f} x) and wait {:.0f} % of a step", ranks,
                                  Rate(point), point.rate() / best().rate(),
                                  100 * point.step.exposed_ns / point.step.step_ns));
    }
    if (!parts.empty()) Predicted("GPUs", "With more GPUs and the same batch on each: " + Join(parts, "; "), best());
  }

  // The same number of GPUs of other kinds, each at its best.
  void SayMachines() {
    std::vector<std::string> parts;
    for (const predict::Device& other : others_) {
      const Configurations there(about_.trained, other, framework_);
      const std::optional<AdvisedPoint> quickest = there.Quickest(advice_.ranks, best().spec.shard);
      if (!quickest) {
        parts.push_back(fmt::format("{} does not hold it", other.name));
        continue;
      }
      const AdvisedPoint& point = *quickest;
      std::string text = fmt::format("{} gives {:.2f} x the tokens/s in {}", other.name, point.rate() / best().rate(),
                                     point.spec.precision);
      if (PriceOf(device_) != nullptr && PriceOf(other) != nullptr) {
        text += fmt::format(", at {:.2f} x the dollars a token",
                            DollarsABillionTokens(point.spec, point.step, other) /
                                DollarsABillionTokens(best().spec, best().step, device_));
      }
      parts.push_back(std::move(text));
    }
    if (!parts.empty()) Predicted("machine", "With as many GPUs of another kind: " + Join(parts, "; "), best());
  }

  // The next batch without checkpointing, which does not fit.
  void SayMemory() {
    const auto found = std::ranges::find_if(ways_, [&](const TriedWay& way) {
      return way.shard == best().spec.shard && way.shard_ranks == best().spec.shard_ranks &&
             way.precision == best().spec.precision && way.checkpointing == Checkpointing();
    });
    if (found == ways_.end()) return;
    int64_t batch = 1;
    while (batch <= found->largest) batch *= 2;
    const AdvisedPoint next = PointOf(SpecOf(*found, batch));
    const int64_t bytes = configurations_.BytesOf(next.spec);
    if (bytes <= configurations_.limit().bytes) return;
    const double ratio = next.rate() / best().rate();
    Predicted("memory",
              fmt::format("More memory {}. With {} it would take {} and give {:.2f} x the tokens/s",
                          ratio > 1 / kNearly ? "would pay" : "would change little", Named(next.spec),
                          FormatBytes(bytes), ratio),
              best());
  }

  const AdviceAbout& about_;
  const predict::Device& device_;
  const predict::Framework& framework_;
  const std::vector<predict::Device>& others_;
  const Configurations configurations_;
  std::vector<TriedWay> ways_;
  Advice advice_;
};

}  // namespace

Advice Advise(const AdviceAbout& about, const predict::Device& device, const predict::Framework& framework,
              const std::vector<predict::Device>& others) {
  return Adviser(about, device, framework, others).Take();
}

std::string SweepOfAdvice(const Advice& advice, const AdviceAbout& about, const predict::Device& device,
                          const std::string& trainer, const Json& fields) {
  // The best of each way, the quickest ways first, and the best way with half its batch.
  constexpr size_t kMostPoints = 8;
  std::vector<RunSpec> specs;
  const auto is_new_way = [&](const RunSpec& spec) {
    return std::ranges::none_of(specs, [&](const RunSpec& known) {
      return known.shard == spec.shard && known.shard_ranks == spec.shard_ranks && known.precision == spec.precision &&
             known.checkpointing == spec.checkpointing;
    });
  };
  for (const AdvisedPoint& point : advice.fitting) {
    if (specs.size() < kMostPoints && is_new_way(point.spec)) specs.push_back(point.spec);
  }
  if (!specs.empty() && specs.front().batch_size > 1) {
    specs.push_back(specs.front());
    specs.back().batch_size /= 2;
  }
  Json defaults = about.trained.model;
  defaults.update({{"seq_length", about.trained.seq_length},
                   {"ranks", advice.ranks},
                   {"device", "cuda"},
                   {"gpu", device.gpu},
                   {"warmup_steps", 5},
                   {"steps", 20}});
  if (trainer == kOurTrainer) {
    defaults.update({{"state_precision", about.trained.state_precision}, {"grad_clip", about.trained.grad_clip}});
  } else {
    defaults["trainer"] = trainer;
    if (about.trained.grad_clip > 0) defaults["grad_clip"] = about.trained.grad_clip;
  }
  defaults.update(fields);
  std::string text =
      fmt::format("# What `ridgeline advise` found the fastest of {}, to be measured.\n", PrintableLine(device.name));
  text += "name: advice\ndefaults:\n";
  for (const auto& [name, value] : defaults.items()) text += fmt::format("  {}: {}\n", name, DumpJson(value));
  if (PriceOf(device) != nullptr || advice.ranks > 1)
    text += fmt::format("price: {{device: {}}}\n", DumpJson(Json(device.name)));
  text += "zip:\n";
  const auto column = [&](const char* name, const auto& value_of) {
    Json values = Json::array();
    for (const RunSpec& spec : specs) values.push_back(value_of(spec));
    text += fmt::format("  {}: {}\n", name, DumpJson(values));
  };
  column("shard", [](const RunSpec& spec) { return Json(spec.shard); });
  if (std::ranges::any_of(specs, [](const RunSpec& spec) { return spec.shard_ranks > 0; })) {
    column("shard_ranks", [](const RunSpec& spec) { return Json(spec.shard_ranks); });
  }
  column("precision", [](const RunSpec& spec) { return Json(spec.precision); });
  column("checkpointing", [](const RunSpec& spec) { return Json(spec.checkpointing); });
  column("batch_size", [](const RunSpec& spec) { return Json(spec.batch_size); });
  return text;
}

}  // namespace ridgeline::plan
