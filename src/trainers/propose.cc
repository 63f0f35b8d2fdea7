#include "trainers/propose.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "trainers/json_values.h"
#include "trainers/log_lines.h"
#include "trainers/log_numbers.h"
#include "trainers/number_meaning.h"
#include "trainers/patterns.h"
#include "trainers/tracebacks.h"

namespace ridgeline::trainers {
namespace {

constexpr size_t kMostCandidates = 1000;
constexpr size_t kMostValuesKept = 4096;
constexpr size_t kMostSeenBytes = 160;
constexpr size_t kMostProposedPattern = kMaxPatternBytes - 100;
constexpr size_t kMostQuestions = 2;  // of one figure
constexpr double kMostShareSaid = 1.5;
constexpr std::string_view kNumberPattern = R"([\d.,]+(?:[eE][-+]?\d+)?)";
// A number that may be none: a run that diverged prints nan.
constexpr std::string_view kLossPattern = R"([-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|(?i:nan|inf)))";
constexpr std::string_view kBarPattern = R"(%\|[^|]*\|\s*(?P<step>\d+)/\d+ \[)";

// All lines in which the same words stand beside a number.
struct Candidate {
  NumberMeaning meaning;
  std::string pattern;
  bool is_pointer = false;
  std::string step_pointer;
  std::string step_pattern;  // of the line's step alone
  std::string seen;
  bool has_step = false;
  int64_t lines = 0;
  std::vector<double> values;
  std::set<int64_t> steps;
  std::set<std::pair<std::string, int64_t>> steps_of;  // by who printed them
  bool repeats_steps = false;
  int64_t steps_back = 0;
};

// Text as a pattern. Beside a number, spaces are optional, because numbers are padded.
std::string Escaped(std::string_view text, bool is_at_begin) {
  std::string pattern;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\t') {
      const size_t from = i;
      while (i + 1 < text.size() && (text[i + 1] == ' ' || text[i + 1] == '\t')) ++i;
      const bool is_beside_number = i + 1 == text.size() || (from == 0 && is_at_begin);
      const bool is_single = i == from;
      pattern += is_beside_number ? "\\s*" : from == 0 && !is_single ? "\\s{2,}" : is_single && c == ' ' ? " " : "\\s+";
    } else {
      const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0 ||
                            std::string_view("_/:=,%'\"-<>").find(c) != std::string_view::npos;
      pattern += (is_plain ? "" : "\\") + std::string(1, c);
    }
  }
  return pattern;
}

// A line without what a launcher puts before it.
struct BareLine {
  std::string_view text;
  char before = '\0';  // the last character before the text; none at the beginning of the line
  std::string who;
};

std::string ContextPattern(const BareLine& line, const LogNumber& number) {
  const bool is_at_begin = number.context == 0;
  std::string context = Escaped(line.text.substr(number.context, number.begin - number.context), is_at_begin);
  if (!is_at_begin) return context;
  if (line.before == '\0') return "^" + context;
  const std::string before =
      IsDigit(line.before) ? std::string("\\d") : Escaped(std::string_view(&line.before, 1), false);
  return fmt::format("(?:^|{}){}{}", before, context.starts_with("\\s*") ? "" : "\\s*", context);
}

// The pattern of one number, with what stands before and behind it.
std::string ValuePattern(const BareLine& line, const LogNumber& number, const std::string& figure) {
  const bool may_diverge = figure == "loss" || figure == "grad_norm";
  const bool is_multiple = number.suffix.size() == 1 && IsMultiple(number.suffix[0]);
  std::string pattern = fmt::format("{}(?P<value>{}{})", ContextPattern(line, number),
                                    may_diverge ? kLossPattern : kNumberPattern, is_multiple ? "[KMGBT]?" : "");
  std::string_view behind = is_multiple ? std::string_view() : number.suffix;
  if (figure.ends_with("parameters") && number.after.find("param") != std::string_view::npos) {
    behind = number.after.substr(is_multiple ? 1 : 0);
  }
  if (behind.empty()) return pattern;
  const bool is_apart = behind.data() != line.text.data() + number.end || behind.starts_with(' ');
  return pattern + (is_apart ? "\\s*" : "") + Escaped(Trim(behind), false);
}

std::string StepPattern(const BareLine& line, const LogNumber& step) {
  return ContextPattern(line, step) + R"((?P<step>\d+))";
}

// The pattern of a value and of the line's step, in the order in which they stand.
std::string JoinedPattern(const BareLine& line, const LogNumber& number, const LogNumber* step,
                          const std::string& figure) {
  std::string value = ValuePattern(line, number, figure);
  if (step == nullptr) return value;
  if (step->begin > number.begin) return value + ".*?" + StepPattern(line, *step);
  const bool is_joined = number.context == step->end;
  return StepPattern(line, *step) + (is_joined ? "" : ".*?") + value;
}

int StepRank(const LogNumber& number) {
  const std::vector<std::string> words = WordsOf(number.label);
  const std::string last = words.empty() ? std::string() : words.back();
  if (last.starts_with("step")) return 4;
  if (last.starts_with("iter") || last == "globalstep") return 3;
  return words.empty() ? 1 : 2;
}

class Collection {
 public:
  void Line(std::string_view whole) {
    const Undecorated undecorated = Undecorate(whole);
    const std::string_view prefix = whole.substr(0, whole.size() - undecorated.rest.size());
    BareLine line{whole, '\0', {}};
    // [3/20] looks like a launcher's prefix, and counts steps.
    if (!prefix.empty() && prefix.find('/') == std::string_view::npos) {
      const size_t last = prefix.find_last_not_of(' ');
      line = {undecorated.rest, last == std::string_view::npos ? '\0' : prefix[last], undecorated.who};
    }
    bool has_object = false;
    ForEachObject(line.text, [&](const Json& object) { has_object = Object(object, line) || has_object; });
    if (!has_object) Text(line);
  }

  const std::map<std::string, Candidate>& candidates() const { return candidates_; }
  // The progress bar of the steps; empty if there is none.
  std::string Bar() const {
    const auto most = std::ranges::max_element(bars_, {}, [](const auto& bar) { return bar.second; });
    return most == bars_.end() ? std::string() : most->first;
  }

 private:
  void Text(const BareLine& line) {
    const std::string_view text = line.text;
    const std::vector<LogNumber> numbers = NumbersOf(text);
    const bool is_bar = TakeBar(text);
    const LogNumber* step = nullptr;
    for (const LogNumber& number : numbers) {
      if (CountsEvaluation(number)) return;
      if (CountsSteps(text, number) && (step == nullptr || StepRank(number) > StepRank(*step))) step = &number;
    }
    for (const LogNumber& number : numbers) {
      if (&number == step) continue;
      const auto meaning = MeaningOf(text, number);
      // The rate of a progress bar is smoothed.
      if (!meaning || (is_bar && meaning->figure == "step_time")) continue;
      const std::string pattern = JoinedPattern(line, number, step, meaning->figure);
      if (pattern.size() > kMostProposedPattern) continue;
      Candidate* candidate = Find(meaning->figure + pattern, *meaning, pattern, text);
      if (candidate == nullptr) continue;
      if (step != nullptr) candidate->step_pattern = StepPattern(line, *step);
      Take(*candidate, text.substr(number.begin, number.end - number.begin),
           step == nullptr ? std::string_view() : text.substr(step->begin, step->end - step->begin), line.who);
    }
  }

  // Returns whether the object has a figure.
  bool Object(const Json& object, const BareLine& line) {
    std::vector<std::pair<std::string, std::string>> leaves;
    Leaves(object, "", leaves);
    std::string step_pointer;
    std::string step;
    bool has_figure = false;
    for (const auto& [pointer, text] : leaves) {
      const std::string said = pointer + ": " + text;
      if (!step.empty() || !CountsSteps(said, NumberOf(said, pointer))) continue;
      step_pointer = pointer;
      step = text;
    }
    for (const auto& [pointer, text] : leaves) {
      const std::string said = pointer + ": " + text;
      const auto meaning = pointer == step_pointer ? std::nullopt : MeaningOf(said, NumberOf(said, pointer));
      if (!meaning) continue;
      has_figure = true;
      Candidate* candidate = Find(meaning->figure + pointer, *meaning, pointer, line.text);
      if (candidate == nullptr) continue;
      candidate->is_pointer = true;
      candidate->step_pointer = step_pointer;
      Take(*candidate, text, step, line.who);
    }
    return has_figure;
  }

  static LogNumber NumberOf(const std::string& said, const std::string& pointer) {
    LogNumber number;
    number.begin = pointer.size() + 2;
    number.end = said.size();
    number.label = std::string_view(said).substr(0, pointer.size());
    return number;
  }

  static void Leaves(const Json& object, const std::string& path,
                     std::vector<std::pair<std::string, std::string>>& to) {
    constexpr size_t kMostLeaves = 200;
    for (const auto& [key, value] : object.items()) {
      if (to.size() >= kMostLeaves || key.find('~') != std::string::npos) continue;
      const std::string pointer = path + "/" + key;
      if (value.is_object()) Leaves(value, pointer, to);
      if (value.is_number()) to.emplace_back(pointer, DumpJson(value));
      if (value.is_string() && NumbersOf(value.get<std::string>()).size() == 1) {
        to.emplace_back(pointer, value.get<std::string>());
      }
    }
  }

  bool TakeBar(std::string_view line) {
    static const Pattern bar(R"((?P<value>[^|%]*?)\s*\d+%\|[^|]*\|\s*(?P<step>\d+)/\d+ \[)");
    const auto match = bar.Find(line);
    if (!match) return false;
    const std::vector<std::string> words = WordsOf(match->value);
    const bool is_of_steps = std::ranges::all_of(words, [](const std::string& word) {
      return word.starts_with("train") || word.starts_with("step") || word.starts_with("iter") || word == "epoch" ||
             std::ranges::all_of(word, IsDigit);
    });
    if (!is_of_steps) return true;
    const std::string name =
        words.empty()
            ? R"(^\s*\d+)"
            : fmt::format(R"({}\b.*?\d+)", Escaped(match->value.substr(0, match->value.find_first_of(" :")), false));
    if (bars_.contains(name) || bars_.size() < kMostQuestions * kMostQuestions) ++bars_[name];
    return true;
  }

  Candidate* Find(const std::string& key, const NumberMeaning& meaning, const std::string& pattern,
                  std::string_view line) {
    const auto found = candidates_.find(key);
    if (found != candidates_.end()) return &found->second;
    if (candidates_.size() >= kMostCandidates) return nullptr;
    Candidate& added = candidates_[key];
    added.meaning = meaning;
    added.pattern = pattern;
    added.seen = ShortenToBytes(PrintableLine(Trim(line)), kMostSeenBytes);
    return &added;
  }

  static void Take(Candidate& candidate, std::string_view text, std::string_view step, const std::string& who) {
    ++candidate.lines;
    const auto value = ReadAmount(text, *FindUnit(Dimension::kPlain, ""));
    if (value && candidate.values.size() < kMostValuesKept) candidate.values.push_back(*value);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), number);
    if (step.empty() || error != std::errc()) return;
    candidate.has_step = true;
    if (candidate.steps_of.size() >= kMostValuesKept) return;
    if (!candidate.steps.empty() && number < *candidate.steps.rbegin()) ++candidate.steps_back;
    candidate.steps.insert(number);
    if (!candidate.steps_of.emplace(who, number).second) candidate.repeats_steps = true;
  }

  std::map<std::string, Candidate> candidates_;
  std::map<std::string, int64_t> bars_;
};

// A time since the start, which grows from line to line, and is no step's.
bool Accumulates(const std::vector<double>& values) {
  constexpr size_t kLeast = 4;
  if (values.size() < kLeast || values.back() < 1.5 * values.front()) return false;
  return std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

bool IsSeriesFigure(std::string_view figure) {
  static constexpr std::array kSeries = {"step_time", "tokens_per_s", "loss", "grad_norm", "tflops_per_gpu", "mfu"};
  return std::ranges::find(kSeries, figure) != kSeries.end();
}

class Choosing {
 public:
  explicit Choosing(const ProposalAnswers& answers) : answers_(answers) {}

  Proposal Make(const Collection& collection) {
    static constexpr std::array kOrder = {
        "step_time",   "mean_step_time",  "tokens_per_s", "loss",      "grad_norm",  "tflops_per_gpu",      "mfu",
        "device_peak", "device_reserved", "device_used",  "host_peak", "parameters", "trainable_parameters"};
    std::map<std::string, std::vector<Candidate>> by_figure;
    for (const auto& [key, found] : collection.candidates()) {
      Candidate candidate = found;
      if (!Prepare(candidate)) continue;
      const std::string figure = candidate.meaning.figure;
      by_figure[figure].push_back(std::move(candidate));
    }
    for (const char* figure : kOrder) Choose(figure, by_figure[figure]);
    if (!Counts("step_time")) AddArrival(collection, by_figure);
    std::ranges::stable_sort(proposal_.metrics, {},
                             [](const ProposedMetric& metric) { return metric.figure != "step_time"; });
    return std::move(proposal_);
  }

 private:
  bool Counts(std::string_view figure) const {
    return std::ranges::any_of(proposal_.metrics, [&](const ProposedMetric& metric) {
      return metric.figure == figure && metric.question.empty();
    });
  }

  void Note(const Candidate& candidate, const std::string& why) {
    proposal_.notes.push_back(fmt::format("not read, because it {}: {}", why, candidate.seen));
  }

  // Applies the answers. Returns whether the candidate may be a figure.
  bool Prepare(Candidate& candidate) {
    NumberMeaning& meaning = candidate.meaning;
    // Step numbers that do not grow count something else.
    if (candidate.has_step && candidate.steps.size() < 2 && candidate.lines > 2) candidate.has_step = false;
    const bool repeats = candidate.lines >= 2;
    if (meaning.figure == "step_time" && meaning.is_mean) {
      if (repeats && candidate.has_step) {
        Note(candidate, "is a mean of several steps");
        return false;
      }
      meaning.figure = "mean_step_time";
    } else if (meaning.figure == "tokens_per_s" && meaning.is_mean && repeats) {
      Note(candidate, "is a mean of several steps");
      return false;
    } else if (meaning.figure == "tokens_per_s" && !repeats) {
      meaning.rank = 0;  // the mean of the whole run, a cold figure
    } else if (IsSeriesFigure(meaning.figure) && !repeats) {
      return false;
    }
    if ((meaning.figure == "step_time") && Accumulates(candidate.values)) {
      Note(candidate, "grows from line to line, as a time since the start does");
      return false;
    }
    if (meaning.figure == "loss" && meaning.is_mean) meaning.is_doubtful = true;
    if (meaning.lacks_ranks && !answers_.rates.empty()) {
      if (answers_.rates == "all" && meaning.figure == "tflops_per_gpu") {
        Note(candidate, "is of all ranks, and a definition has no such figure");
        return false;
      }
      if (answers_.rates == "gpu" && meaning.figure != "tflops_per_gpu") meaning.unit += "/GPU";
      meaning.lacks_ranks = false;
    }
    if (meaning.lacks_kind && !answers_.memory.empty()) {
      meaning.figure = answers_.memory;
      meaning.lacks_kind = false;
    }
    if (meaning.lacks_thousand && !answers_.gb.empty()) {
      if (answers_.gb == "1024") meaning.unit = (meaning.unit == "kB" ? "K" : meaning.unit.substr(0, 1)) + "iB";
      meaning.lacks_thousand = false;
    }
    if (meaning.figure == "mfu" && meaning.lacks_unit &&
        std::ranges::any_of(candidate.values, [](double value) { return value > kMostShareSaid; })) {
      meaning.lacks_unit = false;
    }
    return true;
  }

  // What must be known before the candidate counts.
  static std::string QuestionOf(const Candidate& candidate) {
    const NumberMeaning& meaning = candidate.meaning;
    std::vector<std::string> asked;
    if (meaning.lacks_unit) {
      asked.emplace_back(meaning.figure == "mfu"         ? "is it a percentage (%) or a share?"
                         : meaning.figure == "step_time" ? "what is its unit, ms or s?"
                                                         : "what is its unit, such as GiB or GB?");
    }
    if (meaning.lacks_ranks) asked.emplace_back("is it of all ranks or of each GPU? (--rates all, --rates gpu)");
    if (meaning.lacks_kind) {
      asked.emplace_back(
          "is it what tensors took at most, what the allocator reserved, or what is in use on the card? "
          "(--memory device_peak, device_reserved, device_used)");
    }
    if (meaning.lacks_thousand) {
      asked.push_back(fmt::format("is {} a power of 1000 or of 1024 bytes? (--gb 1000, --gb 1024)", meaning.unit));
    }
    if (meaning.is_doubtful) {
      asked.emplace_back(meaning.figure == "tokens_per_s" ? "does it count all tokens, or only those with a label?"
                         : meaning.figure == "loss"       ? "is it the loss of this step, or a mean of several?"
                         : meaning.figure == "grad_norm"  ? "is it the norm of the gradient?"
                                                          : "is it the most so far, or what is taken now?");
    }
    const bool is_timed =
        meaning.figure == "step_time" || meaning.figure == "tokens_per_s" || meaning.figure == "tflops_per_gpu";
    if (is_timed && candidate.has_step && candidate.repeats_steps) {
      asked.emplace_back(
          "a step has several such lines: do they come from several ranks, or from micro-steps "
          "(`times: grad_accumulation`)?");
    }
    return Join(asked, " ");
  }

  static ProposedMetric MetricOf(const Candidate& candidate) {
    const NumberMeaning& meaning = candidate.meaning;
    ProposedMetric metric;
    metric.figure = meaning.figure;
    metric.pattern = candidate.pattern;
    metric.is_pointer = candidate.is_pointer;
    metric.step_pointer = candidate.step_pointer;
    metric.unit = meaning.unit;
    metric.seen = candidate.seen;
    metric.question = QuestionOf(candidate);
    metric.take = IsSeriesFigure(metric.figure) && candidate.lines >= 2        ? "series"
                  : FindFigure(metric.figure)->dimension == Dimension::kMemory ? "max"
                                                                               : "last";
    return metric;
  }

  void Choose(std::string_view figure, std::vector<Candidate>& candidates) {
    const auto key = [](const Candidate& candidate) {
      return std::tuple(!QuestionOf(candidate).empty(), !candidate.has_step, -candidate.meaning.rank, -candidate.lines);
    };
    std::ranges::stable_sort(candidates, {}, key);
    if (candidates.empty()) return;
    const bool is_count = figure == "parameters" || figure == "trainable_parameters";
    if (is_count && candidates.size() > 1 && candidates[0].meaning.rank == candidates[1].meaning.rank &&
        candidates[0].values != candidates[1].values) {
      for (Candidate& candidate : candidates) candidate.meaning.rank = 0;
      AddQuestions(candidates, "which of these counts the whole model?");
      return;
    }
    if (QuestionOf(candidates.front()).empty()) {
      proposal_.metrics.push_back(MetricOf(candidates.front()));
      NoteStride(candidates.front());
      return;
    }
    AddQuestions(candidates, "");
  }

  // A run with fewer steps than lie between two lines prints none.
  void NoteStride(const Candidate& candidate) {
    int64_t stride = std::numeric_limits<int64_t>::max();
    if (has_stride_ || candidate.steps.size() < 3) return;
    for (auto step = std::next(candidate.steps.begin()); step != candidate.steps.end(); ++step) {
      stride = std::min(stride, *step - *std::prev(step));
    }
    if (stride <= 1) return;
    has_stride_ = true;
    proposal_.notes.push_back(
        fmt::format("the log shows one step of {0}. Let points measure more steps than that, such as `measure: "
                    "{{warmup_steps: {0}, "
                    "steps: {1}}}`, and check whether its times are of one step or of {0}",
                    stride, 3 * stride));
  }

  void AddQuestions(const std::vector<Candidate>& candidates, const std::string& question) {
    for (size_t i = 0; i < std::min(candidates.size(), kMostQuestions); ++i) {
      ProposedMetric metric = MetricOf(candidates[i]);
      if (!question.empty()) metric.question = question;
      proposal_.metrics.push_back(std::move(metric));
    }
  }

  // Without printed times: the times at which lines arrive.
  void AddArrival(const Collection& collection, const std::map<std::string, std::vector<Candidate>>& by_figure) {
    ProposedMetric metric;
    metric.figure = "step_time";
    metric.take = "arrival";
    if (const std::string bar = collection.Bar(); !bar.empty()) {
      metric.pattern = bar + std::string(kBarPattern);
      metric.seen = "the progress bar";
      proposal_.metrics.push_back(metric);
      return;
    }
    for (const char* figure : {"loss", "tokens_per_s", "grad_norm"}) {
      const auto found = by_figure.find(figure);
      if (found == by_figure.end()) continue;
      for (const Candidate& candidate : found->second) {
        if (!candidate.has_step || candidate.step_pattern.empty() || candidate.steps_back > 0) continue;
        metric.pattern = candidate.step_pattern;
        metric.seen = candidate.seen;
        // The step's words alone may also be those of other lines.
        const size_t value = candidate.pattern.find("(?P<value>");
        if (candidate.pattern.starts_with(candidate.step_pattern)) {
          metric.pattern = candidate.pattern.substr(0, value);
        }
        proposal_.metrics.push_back(metric);
        return;
      }
    }
    const auto losses = by_figure.find("loss");
    if (losses == by_figure.end() || losses->second.empty() || losses->second.front().is_pointer) return;
    const Candidate& loss = losses->second.front();
    metric.pattern = loss.pattern.substr(0, loss.pattern.find("(?P<value>"));
    metric.seen = loss.seen;
    metric.question = "does each step print one such line? Then the time between two lines is a step's.";
    proposal_.metrics.push_back(metric);
  }

  const ProposalAnswers& answers_;
  Proposal proposal_;
  bool has_stride_ = false;
};

// Text as a YAML scalar.
std::string Quoted(std::string_view text) {
  if (EscapeControls(text, "") != text) return DumpJson(Json(text));
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

// "model: any, seq_length: any": the fields every sweep gives that no template of the command names.
std::string UnpassedFields(const std::vector<std::string>& command) {
  const std::string words = command.empty() ? "{{batch_size}}" : Join(command, " ");
  std::vector<std::string> fields;
  for (const std::string field : {"model", "precision", "seq_length", "batch_size"}) {
    if (words.find("{{" + field) == std::string::npos) fields.push_back(field + ": any");
  }
  return Join(fields, ", ");
}

std::string MetricLine(const ProposedMetric& metric) {
  std::string line =
      fmt::format("- {{name: {}, {}: {}", metric.figure, metric.is_pointer ? "json" : "regex", Quoted(metric.pattern));
  if (!metric.step_pointer.empty()) line += ", step: " + Quoted(metric.step_pointer);
  if (!metric.unit.empty()) line += ", unit: " + Quoted(metric.unit);
  return line + ", take: " + metric.take + "}";
}

}  // namespace

Proposal ProposeMetrics(const LogSource& log, const ProposalAnswers& answers) {
  Collection collection;
  LogLines lines([&](int64_t, std::string_view line) { collection.Line(line); });
  log([&](std::string_view bytes) { lines.Feed(bytes); });
  lines.End();
  return Choosing(answers).Make(collection);
}

std::string DefinitionText(std::string_view name, std::string_view log, const Proposal& proposal,
                           const std::vector<std::string>& command) {
  const std::string from = PrintableLine(log);
  std::string text = fmt::format(
      "# Proposed from {0} by `ridgeline trainers new`. Compare it with the source of the program: what does the "
      "program\n"
      "# call a step, and does it time the whole step? `ridgeline trainers try {1} --log FILE` shows what this reads.\n"
      "# docs/trainer-definitions.md has every key.\n"
      "name: {2}\nabout: {3}\nversion: unknown\ntested: log\n",
      from, name, Quoted(name), Quoted("proposed from " + from));
  if (command.empty()) {
    text +=
        "# Without a command, this only reads logs:\n"
        "# command: [python3, train.py, \"--batch={{batch_size}}\", \"--steps={{total_steps}}\"]\n";
  } else {
    text += "command:\n";
    for (const std::string& word : command) text += "  - " + Quoted(word) + "\n";
  }
  text += fmt::format(
      "# What the program trains, as far as its command does not pass it on. `any` accepts each value, and files "
      "results\n"
      "# under what the sweep says. List the true values instead, such as `seq_length: [2048]`.\n"
      "# supports: {{{}}}\n"
      "result: patterns\nmetrics:\n",
      UnpassedFields(command));
  std::string seen;
  for (const ProposedMetric& metric : proposal.metrics) {
    if (metric.seen != seen) text += "  # " + metric.seen + "\n";
    seen = metric.seen;
    if (!metric.question.empty()) text += "  # " + metric.question + "\n  # ";
    text += (metric.question.empty() ? "  " : "") + MetricLine(metric) + "\n";
  }
  return text;
}

}  // namespace ridgeline::trainers
