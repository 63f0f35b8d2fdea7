#include "predict/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "predict/measured_section.h"
#include "predict/step_model.h"
#include "ridgeline/json_fault.h"
#include "run/spec.h"
#include "stats/median.h"

namespace ridgeline::predict {
namespace {

constexpr size_t kMostPrograms = 10'000;
constexpr size_t kMostProgramCalls = 10'000;
// How much steps differ from one minute to the next, besides the spread within one calibration: seen on a busy
// machine.
constexpr double kDrift = 0.06;
constexpr int64_t kFewestPrograms = 6;

[[noreturn]] void Refuse(const std::string& source, const std::string& why) {
  throw Error(ErrorKind::kInvalidInput, fmt::format("{}: no calibration: {}", source, why),
              "it is what `ridgeline-train --calibrate` writes");
}

// A class's name goes into a YAML file, and from there anywhere, so it may have only these characters.
bool IsClassName(std::string_view name) {
  constexpr std::string_view kTaken = "abcdefghijklmnopqrstuvwxyz0123456789_.- ";
  return !name.empty() && name.size() <= 256 && name.find_first_not_of(kTaken) == std::string_view::npos;
}

CalibrationCall DecodeCall(const Json& json, const std::string& source) {
  CalibrationCall call;
  call.of = json.at("class").get<std::string>();
  if (!IsClassName(call.of)) Refuse(source, "a class of calls has a name that it cannot have");
  const Json& dims = json.at("dims");
  if (!dims.is_array() || dims.empty() || dims.size() > call.call.dims.size()) Refuse(source, "a call's dimensions");
  for (size_t i = 0; i < dims.size(); ++i) {
    call.call.dims[i] = dims[i].get<int64_t>();
    if (call.call.dims[i] < 1) Refuse(source, "a dimension below 1");
  }
  call.call.ns = json.at("ns").get<double>();
  call.format = json.at("format").get<std::string>();
  call.flops = json.at("flops").get<double>();
  call.bytes = json.at("bytes").get<double>();
  if (!(call.call.ns >= 1) || !(call.call.ns <= 1e15) || !(call.flops >= 0) || !(call.bytes >= 0)) {
    Refuse(source, "a call that takes no time");
  }
  return call;
}

CalibrationProgram DecodeProgram(const Json& json, const std::string& source) {
  CalibrationProgram program;
  program.kind = json.at("kind").get<std::string>();
  if (program.kind == "step") program.spec = DecodeSpec(json.at("spec"), source);
  program.step_ns = json.at("step_ns").get<double>();
  program.first_ns = json.at("first_ns").get<double>();
  if (!(program.step_ns >= 1) || !(program.step_ns <= 1e15)) Refuse(source, "a step that takes no time");
  const Json& calls = json.at("calls");
  if (!calls.is_array() || calls.size() > kMostProgramCalls) Refuse(source, "too many calls");
  for (const Json& call : calls) program.calls.push_back(DecodeCall(call, source));
  return program;
}

// Takes the median over the programs for each class and dimensions. A class keeps no more calls than can be fitted.
std::map<std::string, CallModel, std::less<>> ModelsOf(const CalibrationRun& run, const CalibrationProgram* without) {
  std::map<std::string, std::map<CallDims, std::vector<double>>> seen;
  // In steps between ranks, collectives in flight disturb the calls. So these calls count only if a class has no
  // others.
  const auto add = [&](bool between_ranks) {
    std::set<std::string> known;
    for (const auto& [name, calls] : seen) known.insert(name);
    for (const CalibrationProgram& program : run.programs) {
      if (&program == without || (program.spec.ranks > 1 && program.kind == "step") != between_ranks) continue;
      if (program.kind == "copy" || program.kind == "launch") continue;
      for (const CalibrationCall& call : program.calls) {
        if (!between_ranks || !known.contains(call.of)) seen[call.of][call.call.dims].push_back(call.call.ns);
      }
    }
  };
  add(false);
  add(true);
  std::map<std::string, CallModel, std::less<>> models;
  for (auto& [name, by_dims] : seen) {
    std::vector<MeasuredCall> calls;
    for (auto& [dims, ns] : by_dims) {
      if (calls.size() == kMostCallsOfClass) break;
      std::ranges::sort(ns);
      calls.push_back({dims, std::sqrt(ns[(ns.size() - 1) / 2] * ns[ns.size() / 2])});
    }
    models.emplace(name, CallModel(name, std::move(calls)));
  }
  return models;
}

// Returns ln(measured / predicted) of the steps with the run's number of ranks. With one rank, each step is predicted
// from the other programs. Only steps whose calls lie within the measured range of the others count, if these are
// enough.
std::vector<double> ErrorsOf(const CalibrationRun& run, const Device& device, MeasuredCalls measured) {
  measured.bias = 1;
  std::vector<double> errors;
  std::vector<double> between;
  for (const CalibrationProgram& program : run.programs) {
    if (program.kind != "step" || program.spec.ranks != run.ranks) continue;
    if (run.ranks == 1) measured.classes = ModelsOf(run, &program);
    Device from_others = device;
    from_others.measured = {std::make_shared<const MeasuredCalls>(measured)};
    const StepForecast step = PredictStep(program.spec, from_others);
    errors.push_back(std::log(program.step_ns / step.step_ns));
    if (step.calibrated) between.push_back(errors.back());
  }
  return std::ssize(between) >= kFewestPrograms ? between : errors;
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Returns the median; 0 for no values.
double MiddleOf(std::vector<double> values) { return values.empty() ? 0 : stats::MedianOf(values); }

// The standard deviation about the median.
double DeviationOf(const std::vector<double>& values) {
  const double middle = MiddleOf(values);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return values.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// Sets what the run's own steps show about the step model: its error, the time of steps besides their calls, and how
// much of a collective's time the steps hide.
CalibrationCheck Check(const CalibrationRun& run, const Device& device, MeasuredCalls& measured) {
  std::vector<double> errors;
  double least = std::numeric_limits<double>::infinity();
  double best_overlap = 1;
  constexpr double kParts = 10;
  for (double part = run.ranks > 1 ? 0 : kParts; part <= kParts; ++part) {
    measured.overlap = part / kParts;
    std::vector<double> with = ErrorsOf(run, device, measured);
    const double deviation = DeviationOf(with);
    if (deviation >= least && !errors.empty()) continue;
    least = deviation;
    best_overlap = measured.overlap;
    errors = std::move(with);
  }
  measured.overlap = best_overlap;
  measured.bias = std::exp(MiddleOf(errors));
  if (measured.bias < kLeastBias || measured.bias > kMostBias) {
    const std::string ranks = run.ranks == 1 ? "1 rank" : fmt::format("{} ranks", run.ranks);
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("calibrate: steps of {} took {:.3g} times as long as their calls, which only a busy "
                            "machine explains",
                            ranks, measured.bias),
                "stop other programs and calibrate again, or measure for longer with --seconds");
  }
  measured.error = std::hypot(kDrift, DeviationOf(errors));
  measured.programs = std::ssize(errors);
  CalibrationCheck check{.ranks = run.ranks, .programs = std::ssize(errors)};
  std::vector<double> relative;
  for (const double error : errors) relative.push_back(std::abs(measured.bias * std::exp(-error) - 1));
  std::ranges::sort(relative);
  check.mean_error = MeanOf(relative);
  if (!relative.empty()) check.p90_error = relative[relative.size() * 9 / 10];
  return check;
}

class EntryWriter {
 public:
  EntryWriter(const CalibrationEntry& entry, const std::vector<CalibrationRun>& runs) : entry_(entry), runs_(runs) {}

  // Returns all figures but the times of calls.
  std::string Figures() {
    const CalibrationRun& first = runs_.front();
    Take("peaks", Peaks());
    const double bytes_per_s = BestOf("copy", [](const CalibrationCall& call) {
      return call.of.starts_with("dropout_add") ? call.bytes / call.call.ns : 0;  // without filling its tensors
    });
    std::vector<std::pair<std::string, std::string>> memory;
    if (entry_.device.empty()) memory.emplace_back("size", fmt::format("{:.4g} GB", first.memory_bytes / 1e9));
    if (bytes_per_s > 0) memory.emplace_back("bandwidth", fmt::format("{:.4g} GB/s", bytes_per_s));
    Take("memory", memory);
    std::vector<std::pair<std::string, std::string>> chip;
    if (entry_.device.empty()) chip.emplace_back("multiprocessors", fmt::format("{}", first.threads));
    const double launches = BestOf("launch", [](const CalibrationCall& call) { return 1 / call.call.ns; });
    if (launches > 0) chip.emplace_back("launch", fmt::format("{:.4g} us", 1e-3 / launches));
    Take("chip", chip);
    for (const CalibrationRun& run : runs_) {
      if (run.ranks > 1) Take("link", Link(run));
    }
    if (const auto first_s = FirstIteration()) Take("cold", {{"first_iteration", fmt::format("{:.4g} s", *first_s)}});
    return Head() + text_;
  }

 private:
  std::string Head() const {
    const CalibrationRun& first = runs_.front();
    std::string head = fmt::format(
        "# What `ridgeline calibrate` measured; docs/prediction-model.md says how it is used.\nname: {}\nabout: "
        "{}\n{}\n",
        entry_.name, Quoted(entry_.about), entry_.device.empty() ? "gpu: " + first.gpu : "device: " + entry_.device);
    std::string source = fmt::format("measured on {} ({})", entry_.date, first.build);
    if (entry_.others_share > 0) {
      source += fmt::format("; others took {:.0f} % of the cores' time meanwhile", 100 * entry_.others_share);
    }
    return head + fmt::format("sources:\n  measured: {}\n", Quoted(source));
  }
  // Quotes as in JSON, which is YAML.
  static std::string Quoted(const std::string& text) { return DumpJson(PrintableLine(ValidUtf8(text))); }

  void Take(std::string_view section, const std::vector<std::pair<std::string, std::string>>& figures) {
    if (figures.empty()) return;
    text_ += fmt::format("{}:\n", section);
    for (const auto& [key, value] : figures)
      text_ += fmt::format("  {}: {{value: {}, source: measured}}\n", key, value);
  }

  template <typename Rate>
  double BestOf(std::string_view kind, const Rate& rate) const {
    double best = 0;
    for (const CalibrationProgram& program : runs_.front().programs) {
      if (program.kind != kind) continue;
      for (const CalibrationCall& call : program.calls) best = std::max(best, rate(call));
    }
    return best;
  }

  // For processors, the peak is the fastest product seen, because there is no other source. For GPUs, the maker's
  // figures stay.
  std::vector<std::pair<std::string, std::string>> Peaks() const {
    if (!entry_.device.empty()) return {};
    std::map<std::string, double> best;
    for (const CalibrationProgram& program : runs_.front().programs) {
      for (const CalibrationCall& call : program.calls) {
        if (call.flops > 0) best[call.format] = std::max(best[call.format], call.flops / call.call.ns);
      }
    }
    std::vector<std::pair<std::string, std::string>> peaks;
    for (const char* format : {"fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "fp4"}) {
      if (best[format] > 0) peaks.emplace_back(format, fmt::format("{:.4g} GFLOP/s", best[format]));
    }
    return peaks;
  }

  // Fits a start-up time and a rate to the times of gathering fp32, with equal weight on each relative error.
  std::vector<std::pair<std::string, std::string>> Link(const CalibrationRun& run) const {
    std::vector<std::pair<double, double>> seen;  // bytes, nanoseconds
    for (const CalibrationProgram& program : run.programs) {
      if (program.kind != "collectives") continue;
      for (const CalibrationCall& call : program.calls) {
        if (call.of == "all_gather fp32 fp32") {
          seen.emplace_back(static_cast<double>(call.call.dims[0]), call.call.ns);
        }
      }
    }
    if (seen.size() < 2) return {};
    // Least squares of relative errors: weights 1 / t^2.
    double w = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (const auto& [bytes, ns] : seen) {
      const double weight = 1 / (ns * ns);
      w += weight;
      x += weight * bytes;
      y += weight * ns;
      xx += weight * bytes * bytes;
      xy += weight * bytes * ns;
    }
    const double slope = (w * xy - x * y) / (w * xx - x * x);
    const double begin_ns = std::max((y - slope * x) / w, 1.0);
    if (!(slope > 0)) return {};
    return {{"bandwidth", fmt::format("{:.4g} GB/s", 1 / slope)},
            {"latency", fmt::format("{:.4g} us", begin_ns / static_cast<double>(run.ranks - 1) * 1e-3)},
            {"gpus", fmt::format("{}", run.ranks)}};
  }

  std::optional<double> FirstIteration() const {
    std::vector<double> more_s;
    for (const CalibrationProgram& program : runs_.front().programs) {
      if (program.kind == "step") more_s.push_back((program.first_ns - program.step_ns) * 1e-9);
    }
    if (more_s.empty()) return std::nullopt;
    std::ranges::sort(more_s);
    return std::max(more_s[more_s.size() / 2], 1e-6);
  }

  const CalibrationEntry& entry_;
  const std::vector<CalibrationRun>& runs_;
  std::string text_;
};

}  // namespace

CalibrationRun DecodeCalibration(const Json& document, const std::string& source) {
  try {
    if (document.at("version") != 1) Refuse(source, "has a version that is not known here");
    CalibrationRun run;
    run.device = document.at("device").get<std::string>();
    run.gpu = document.at("kind") == "cuda" ? document.at("gpu").get<std::string>() : "none";
    run.ranks = document.at("ranks").get<int64_t>();
    run.threads = document.at("threads").get<int64_t>();
    run.memory_bytes = document.at("memory_bytes").get<int64_t>();
    run.build = fmt::format("{}, commit {}", document.at("trainer").get<std::string>(),
                            ShortenToBytes(document.at("commit").get<std::string>(), 12));
    run.seconds = document.at("seconds").get<double>();
    run.left_out = document.at("left_out").get<int64_t>();
    const Json& programs = document.at("programs");
    if (!programs.is_array() || programs.size() > kMostPrograms) Refuse(source, "too many programs");
    for (const Json& program : programs) run.programs.push_back(DecodeProgram(program, source));
    if (run.ranks < 1 || run.threads < 1 || run.memory_bytes < 1) Refuse(source, "a figure below 1");
    return run;
  } catch (const Json::exception& e) {
    Refuse(source, JsonFault(e));
  }
}

CalibratedDevice MakeDevice(const CalibrationEntry& entry, const std::vector<CalibrationRun>& runs,
                            const std::vector<std::filesystem::path>& folders) {
  CalibratedDevice made{EntryWriter(entry, runs).Figures(), {}};
  const Device device = ParseDevice(made.text, entry.name + ".yaml", folders);
  std::vector<std::shared_ptr<const MeasuredCalls>> measured;
  for (const CalibrationRun& run : runs) {
    MeasuredCalls calls{.ranks = run.ranks, .classes = ModelsOf(run, nullptr)};
    made.checks.push_back(Check(run, device, calls));
    if (made.checks.back().programs < kFewestPrograms) {
      throw Error(ErrorKind::kInvalidInput,
                  fmt::format("{} steps of {} were measured, and an entry takes {}", made.checks.back().programs,
                              CountOf(run.ranks, "rank"), kFewestPrograms),
                  "give it more time, and the machine's memory");
    }
    measured.push_back(std::make_shared<const MeasuredCalls>(std::move(calls)));
  }
  made.text += MeasuredText(measured, "measured");
  ParseDevice(made.text, entry.name + ".yaml", folders);
  return made;
}

}  // namespace ridgeline::predict
