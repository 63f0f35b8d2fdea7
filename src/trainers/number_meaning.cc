#include "trainers/number_meaning.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <utility>
#include <vector>

#include "trainers/amount.h"

namespace ridgeline::trainers {
namespace {

class Words {
 public:
  explicit Words(std::string_view text) : words_(WordsOf(text)) {}

  bool Has(std::initializer_list<std::string_view> any) const {
    return std::ranges::any_of(any,
                               [&](std::string_view word) { return std::ranges::find(words_, word) != words_.end(); });
  }
  bool HasPrefix(std::string_view prefix) const {
    return std::ranges::any_of(words_, [&](const std::string& word) { return word.starts_with(prefix); });
  }
  const std::vector<std::string>& all() const { return words_; }
  bool empty() const { return words_.empty(); }
  std::string_view last() const { return words_.empty() ? std::string_view() : std::string_view(words_.back()); }
  std::string Text() const {
    std::string text;
    for (const std::string& word : words_) text += (text.empty() ? "" : " ") + word;
    return text;
  }

 private:
  std::vector<std::string> words_;
};

struct Said {
  std::string_view line;
  const LogNumber& number;
  Words label;
  Words suffix;
  Words both;  // label and suffix
  double value = 0;

  bool Has(std::initializer_list<std::string_view> any) const { return both.Has(any); }
};

constexpr auto kOfSteps = {"step", "steps", "iter", "iters", "iteration", "iterations", "it", "batch"};

bool OfSteps(const Words& words) {
  return std::ranges::any_of(kOfSteps, [&](const char* word) { return words.Has({word}); });
}

bool IsOfEvaluation(const Said& said) {
  return said.Has({"val", "valid", "validation", "eval", "evaluation", "test", "dev"});
}

bool IsMean(const Said& said) { return said.Has({"avg", "average", "mean", "running", "smoothed", "smooth", "ema"}); }

bool PerSecond(const Words& words) {
  return words.Has({"s", "sec", "secs", "second", "seconds"}) && words.all().size() >= 2;
}

bool PerGpu(const Said& said) { return said.Has({"gpu", "device", "chip", "tgs"}); }
bool OfAll(const Said& said) { return said.Has({"global", "total", "all", "cluster", "aggregate", "overall"}); }

// Looks for a unit among the words: time_per_iteration_ms, "elapsed time per iteration (ms)", "seconds: 1.3".
std::string TimeUnit(const Said& said) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kUnits = {{{"ms", "ms"},
                                                                                            {"msec", "ms"},
                                                                                            {"msecs", "ms"},
                                                                                            {"millis", "ms"},
                                                                                            {"milliseconds", "ms"},
                                                                                            {"us", "us"},
                                                                                            {"usec", "us"},
                                                                                            {"ns", "ns"},
                                                                                            {"s", "s"},
                                                                                            {"sec", "s"},
                                                                                            {"secs", "s"},
                                                                                            {"second", "s"},
                                                                                            {"seconds", "s"},
                                                                                            {"min", "min"},
                                                                                            {"minutes", "min"}}};
  if (said.number.suffix == "µs") return "us";
  for (const Words* words : {&said.suffix, &said.label}) {
    for (const auto& [word, unit] : kUnits) {
      if (words->Has({word})) return std::string(unit);
    }
  }
  return {};
}

std::optional<NumberMeaning> LossOf(const Said& said) {
  if (!said.label.Has({"loss"}) || IsOfEvaluation(said)) return std::nullopt;
  if (said.Has({"scale", "scaling", "scaler", "balance", "balancing", "aux", "router", "mtp", "z", "time", "best"})) {
    return std::nullopt;
  }
  if (!said.suffix.empty()) return std::nullopt;
  const std::string text = said.label.Text();
  NumberMeaning loss{.figure = "loss"};
  static constexpr std::array kPlain = {"lm loss",
                                        "train loss",
                                        "training loss",
                                        "total loss",
                                        "loss train",
                                        "train loss train total",
                                        "reduced train loss",
                                        "loss train total"};
  loss.rank = text == "loss" ? 3 : std::ranges::find(kPlain, text) != kPlain.end() ? 2 : 1;
  loss.is_mean = IsMean(said);
  return loss;
}

std::optional<NumberMeaning> GradNormOf(const Said& said) {
  const bool is_named = said.label.Has({"grad", "gradient", "gradients", "gnorm", "gradnorm"});
  if (!said.label.Has({"norm", "gnorm", "gradnorm"}) || IsMean(said) || said.Has({"param", "params", "weight"})) {
    return std::nullopt;
  }
  if (!said.suffix.empty() || (!is_named && said.label.all().size() > 1)) return std::nullopt;
  return NumberMeaning{.figure = "grad_norm", .rank = is_named ? 1 : 0, .is_doubtful = !is_named};
}

std::optional<NumberMeaning> EfficiencyOf(const Said& said) {
  if (said.label.Has({"mfu"}) || Words(said.number.after).Has({"mfu"})) {
    NumberMeaning mfu{.figure = "mfu", .unit = "%"};
    mfu.lacks_unit = !said.number.suffix.starts_with('%') && !said.number.label.ends_with("(%)");
    return mfu;
  }
  const bool is_tera = said.both.HasPrefix("tflop");
  const bool is_flops = said.label.Has({"flops"}) && said.label.Has({"sec", "second", "s"});
  if ((!is_tera && !is_flops) || said.Has({"peak", "hfu", "theoretical", "avg", "total"})) return std::nullopt;
  return NumberMeaning{
      .figure = "tflops_per_gpu", .unit = is_tera ? "TFLOP/s/GPU" : "FLOP/s/GPU", .lacks_ranks = !PerGpu(said)};
}

std::optional<NumberMeaning> RateOf(const Said& said) {
  const bool tokens = said.Has({"tps", "wps", "tgs", "toks"}) ||
                      (said.Has({"tok", "token", "tokens", "word", "words"}) && PerSecond(said.both));
  const bool samples = said.Has({"sample", "samples", "example", "examples", "seq", "seqs", "sequence", "sequences"}) &&
                       PerSecond(said.both);
  if ((!tokens && !samples) || IsOfEvaluation(said)) return std::nullopt;
  NumberMeaning rate{.figure = "tokens_per_s", .rank = tokens ? 2 : 1, .is_mean = IsMean(said)};
  const bool per_gpu = PerGpu(said);
  rate.unit = tokens ? "tokens/s" : "samples/s";
  if (per_gpu) rate.unit += "/GPU";
  rate.lacks_ranks = !per_gpu && !OfAll(said);
  // Some programs count only the tokens with a label.
  rate.is_doubtful = tokens && said.label.Has({"train", "trained", "trainable"});
  return rate;
}

std::optional<NumberMeaning> TimeOf(const Said& said) {
  const bool per_second =
      OfSteps(said.both) && PerSecond(said.both) &&
      (said.number.suffix.find("/s") != std::string_view::npos ||
       said.label.Text().find("per sec") != std::string::npos || said.label.Text().ends_with("it s"));
  if (IsOfEvaluation(said)) return std::nullopt;
  if (per_second) {
    const bool is_mean = IsMean(said) || said.label.Text() == "train steps per second";
    return NumberMeaning{.figure = "step_time", .unit = "it/s", .rank = 2, .is_mean = is_mean};
  }
  if (said.Has({"data",    "load",      "loading", "loader",     "dataloader", "eta",     "remaining", "left",
                "compile", "compiling", "forward", "fwd",        "backward",   "bwd",     "optimizer", "opt",
                "comm",    "allreduce", "save",    "saving",     "checkpoint", "init",    "warmup",    "start",
                "gc",      "since",     "epoch",   "initialize", "collection", "timeout", "token",     "tokens"})) {
    return std::nullopt;
  }
  const bool is_mean = IsMean(said);
  if (!is_mean && said.Has({"total", "cumulative", "runtime", "training"})) return std::nullopt;
  const bool is_named = said.label.Has({"time", "dt", "took", "elapsed", "duration", "latency", "timing"});
  const std::string unit = TimeUnit(said);
  const bool is_per_step = OfSteps(said.both) && !unit.empty() && said.Has({"per", "it", "iter", "step"});
  const bool is_only_unit = said.label.empty() && !said.suffix.empty() && !unit.empty();
  const bool is_seconds = said.label.Text() == "seconds" || said.label.Text() == "secs" || said.label.Text() == "ms";
  if (!is_named && !is_per_step && !is_only_unit && !is_seconds) return std::nullopt;
  NumberMeaning time{.figure = "step_time", .unit = unit, .is_mean = is_mean, .lacks_unit = unit.empty()};
  const bool of_steps = OfSteps(said.both);
  time.rank = of_steps ? 3 : is_only_unit ? 0 : said.label.Has({"elapsed"}) ? 1 : 2;
  if (is_mean && !of_steps) return std::nullopt;
  if (unit.empty()) time.unit = "ms";
  return time;
}

// The unit of memory as printed: behind the number, in the label, or in a parenthesis before it on the line.
std::string MemoryUnit(const Said& said) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kUnits = {{{"kib", "KiB"},
                                                                                            {"mib", "MiB"},
                                                                                            {"gib", "GiB"},
                                                                                            {"tib", "TiB"},
                                                                                            {"kb", "kB"},
                                                                                            {"mb", "MB"},
                                                                                            {"gb", "GB"},
                                                                                            {"tb", "TB"},
                                                                                            {"mbs", "MB"},
                                                                                            {"gbs", "GB"},
                                                                                            {"megabytes", "MB"},
                                                                                            {"gigabytes", "GB"},
                                                                                            {"g", "GB"},
                                                                                            {"m", "MB"},
                                                                                            {"b", "bytes"},
                                                                                            {"bytes", "bytes"},
                                                                                            {"mbytes", "MB"},
                                                                                            {"gbytes", "GB"}}};
  const auto of = [&](std::string_view text) -> std::string {
    std::vector<std::string> pieces(1);
    for (const char c : text) {
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
        pieces.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else {
        pieces.emplace_back();
      }
    }
    std::ranges::reverse(pieces);  // the last unit is the number's
    for (const std::string& piece : pieces) {
      for (const auto& [word, unit] : kUnits) {
        if (piece == word) return std::string(unit);
      }
    }
    return {};
  };
  std::string unit = of(said.number.suffix);
  if (unit.empty()) unit = of(said.number.label);
  if (!unit.empty()) return unit;
  const std::string_view before = said.line.substr(0, said.number.begin);
  const size_t open = before.rfind("memory (");
  return open == std::string_view::npos ? std::string() : of(before.substr(open + 8, 3));
}

std::optional<NumberMeaning> MemoryOf(const Said& said) {
  const Words& label = said.label;
  const std::string unit = MemoryUnit(said);
  const bool is_most = label.Has({"max", "peak"});
  const bool is_memory = label.Has({"mem", "memory", "vram", "rss", "alloc", "allocated", "reserved", "cached"});
  if (unit.empty() ? !is_memory || !is_most : !is_memory && !is_most) return std::nullopt;
  if (label.Has({"static", "pre", "post", "capacity", "estimated", "theoretical", "before", "free", "available",
                 "activation", "inactive", "model", "count", "retires", "limit", "param", "params", "parameters"})) {
    return std::nullopt;
  }
  NumberMeaning memory{.figure = "device_peak", .unit = unit.empty() ? "GiB" : unit, .rank = is_most ? 2 : 1};
  memory.lacks_unit = unit.empty();
  memory.lacks_thousand = !unit.empty() && unit != "bytes" && unit.find('i') == std::string::npos;
  if (label.Has({"host", "cpu", "rss", "ram"})) {
    memory.figure = "host_peak";
    memory.is_doubtful = !is_most;
  } else if (label.Has({"reserved", "cached"})) {
    memory.figure = "device_reserved";
    memory.is_doubtful = !is_most;
  } else if (label.Has({"alloc", "allocated"})) {
    memory.is_doubtful = !is_most;
  } else {
    memory.lacks_kind = true;
    memory.rank = is_most && !label.Has({"active"}) ? 1 : 0;
  }
  return memory;
}

std::optional<NumberMeaning> ParametersOf(const Said& said) {
  const Words after(said.number.after);
  const bool is_named = said.label.HasPrefix("param") || after.HasPrefix("param");
  static constexpr std::string_view kMultiples = "KMBGT";
  const bool is_large =
      said.value >= 1000 || said.Has({"billion", "million"}) ||
      (said.number.suffix.size() == 1 && kMultiples.find(said.number.suffix[0]) != std::string_view::npos);
  const bool is_memory =
      said.number.suffix.size() > 1 && !MemoryUnit(said).empty() && !said.Has({"billion", "million"});
  if (!is_named || !is_large || is_memory || said.number.suffix.starts_with('%')) return std::nullopt;
  const Words line(said.line.substr(0, 400));
  if (line.Has({"decayed", "decay"}) || said.label.Has({"non", "local", "tensors", "embedding", "percentage", "norm",
                                                        "rank", "per", "flops", "tokens"})) {
    return std::nullopt;
  }
  NumberMeaning count{.figure = "parameters"};
  if (said.label.Has({"trainable"}) || after.Has({"trainable"})) count.figure = "trainable_parameters";
  if (said.Has({"billion"})) count.unit = "B";
  if (said.Has({"million"})) count.unit = "M";
  count.rank = said.label.Has({"total"}) || after.Has({"total"}) ? 2 : 1;
  return count;
}

}  // namespace

bool CountsEvaluation(const LogNumber& number) {
  const Words label(number.label);
  return OfSteps(label) &&
         label.Has({"val", "valid", "validate", "validation", "eval", "evaluate", "evaluation", "test"});
}

bool CountsSteps(std::string_view line, const LogNumber& number) {
  const std::string_view text = line.substr(number.begin, number.end - number.begin);
  if (!std::ranges::all_of(text, IsDigit) || !number.suffix.empty()) return false;
  const Words label(number.label);
  if (label.empty()) {
    const char mark = number.begin > number.context ? line[number.context] : '\0';
    return number.of_more && (mark == '[' || mark == '|' || mark == '(');
  }
  static constexpr std::array kNames = {"step", "steps",  "iter",    "iters", "iteration", "iterations",
                                        "it",   "update", "updates", "batch", "globalstep"};
  if (std::ranges::find(kNames, label.last()) == kNames.end()) return false;
  return !label.Has({"per",   "size",    "time", "total",  "max",   "num",         "of",
                     "micro", "skipped", "nan",  "epoch",  "eval",  "val",         "validation",
                     "every", "warmup",  "last", "saving", "saved", "accumulation"});
}

std::optional<NumberMeaning> MeaningOf(std::string_view line, const LogNumber& number) {
  const std::string beside = std::string(number.label) + " " + std::string(number.suffix);
  Said said{line, number, Words(number.label), Words(number.suffix), Words(beside)};
  const std::string_view text = line.substr(number.begin, number.end - number.begin);
  said.value = ReadAmount(text, *FindUnit(Dimension::kCount, "")).value_or(0);
  for (const auto meaning : {LossOf, GradNormOf, EfficiencyOf, ParametersOf, RateOf, MemoryOf, TimeOf}) {
    if (auto found = meaning(said)) return found;
  }
  return std::nullopt;
}

}  // namespace ridgeline::trainers
