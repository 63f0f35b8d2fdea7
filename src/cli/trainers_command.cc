// `ridgeline trainers`: lists the trainers that definitions describe, and shows what a definition finds in a log.
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/log_reading.h"
#include "cli/options.h"
#include "cli/show_commands.h"
#include "cli/trainers_new.h"
#include "predict/known_runs.h"
#include "ridgeline/limits.h"
#include "run/fields.h"
#include "run/gpus.h"
#include "run/result.h"
#include "run/step_figures.h"
#include "session/say.h"
#include "session/session.h"
#include "sweep/expand.h"
#include "trainers/find.h"
#include "trainers/json_values.h"
#include "trainers/reading.h"
#include "trainers/run_result.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr std::initializer_list<const char*> kListForms = {"text", "md", "csv", "json"};
constexpr std::initializer_list<const char*> kTryForms = {"text", "json"};

struct TrainersOptions {
  std::vector<fs::path> folders;
  std::string format = "text";
  std::string name;
  std::string point;
  std::string log;
  std::string result;
  std::string as_calibration;
  std::vector<std::string> checked;
  std::optional<int> exit_code;
  std::optional<int64_t> tokens_per_step;
  std::vector<std::string> fields;
};

std::vector<fs::path> Folders(const TrainersOptions& options) { return trainers::TrainerFolders(options.folders); }

int List(const TrainersOptions& options) {
  Table table{{"trainer", "use", "tested", "tested_on", "version", "about", "folder"}, {}};
  for (const fs::path& file : trainers::FindTrainers(Folders(options))) {
    const std::string folder = file.parent_path().string();
    try {
      const trainers::Trainer trainer = trainers::LoadTrainer(file);
      const char* use = trainer.invocation ? "sweeps and logs" : "logs";
      table.rows.push_back(
          {file.stem().string(), use, trainer.tested, trainer.tested_on, trainer.version, trainer.about, folder});
    } catch (const Error&) {
      // The other definitions can still be read.
      table.rows.push_back(
          {file.stem().string(), {}, {}, {}, {}, "cannot be read: `ridgeline trainers check` says why", folder});
    }
  }
  session::Write(Format(table, options.format));
  return 0;
}

// Handles SWEEP:ID. The file's name may have a colon in it.
int ShowOfPoint(const TrainersOptions& options) {
  const size_t colon = options.point.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == options.point.size()) {
    throw Error(ErrorKind::kUsage, fmt::format("--point is SWEEP.yaml:ID, not '{}'", options.point),
                "`ridgeline plan SWEEP.yaml` shows the points with their ids");
  }
  const sweep::Sweep sweep = session::LoadSweepFor(options.point.substr(0, colon), "", options.folders);
  ShowCommands(sweep, {options.point.substr(colon + 1), options.name});
  return 0;
}

int Show(const TrainersOptions& options) {
  if (!options.point.empty()) return ShowOfPoint(options);
  const fs::path file = trainers::FindTrainer(options.name, Folders(options));
  session::Write(EscapeControls(ReadFileIfThere(file, trainers::kMaxTrainerBytes).value_or(""), "\n\t"));
  return 0;
}

// `what` is a file if that path exists, else a name.
int CheckDefinitions(const TrainersOptions& options) {
  std::string faults;
  for (const std::string& asked : options.checked) {
    std::error_code ignored;
    try {
      const fs::path file = fs::is_regular_file(asked, ignored) || asked.find('/') != std::string::npos
                                ? fs::path(asked)
                                : trainers::FindTrainer(asked, Folders(options));
      const trainers::Trainer trainer = trainers::LoadTrainer(file);
      session::Say("{}: {} metrics, {} ends{}\n", file.string(), trainer.metrics.size(), trainer.ends.size(),
                   trainer.invocation ? ", and how it is started" : "; no command: logs alone can be read");
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kInfrastructure) throw;
      faults += (faults.empty() ? "" : "\n") + e.message();
    }
  }
  if (!faults.empty())
    throw Error(ErrorKind::kInvalidInput, faults, "docs/trainer-definitions.md describes definitions");
  return 0;
}

std::optional<Json> ResultOf(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const auto text = ReadForeignFile(path, kMaxResultBytes);
  if (!text) throw Error(ErrorKind::kInvalidInput, fmt::format("there is no file {}", path));
  return trainers::ParseJsonOrLines(*text, path);
}

// What the user says about a point: its numbers, and the values that conditions of metrics compare.
struct SaidFields {
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, FieldValue, std::less<>> values;
};

// Parses `--field NAME=VALUE`.
SaidFields FieldsOf(const trainers::Trainer& trainer, const std::vector<std::string>& said) {
  SaidFields fields;
  for (const std::string& each : said) {
    const size_t equals = std::min(each.find('='), each.size());
    const std::string name = each.substr(0, equals);
    const std::string text = each.substr(std::min(equals + 1, each.size()));
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    const bool has_number = trainers::PointNumber(trainer, {}, name).has_value();
    const bool is_own = trainer.invocation && trainer.invocation->FindOwn(name) != nullptr;
    if (text.empty() || is_number != has_number || (!has_number && !is_own && FindField(name) == nullptr)) {
      throw Error(ErrorKind::kUsage, fmt::format("--field is a field of a point and its value, not '{}'", each),
                  "such as --field seq_length=4096");
    }
    if (is_number) fields.numbers[name] = value;
    const bool is_whole = is_number && value == std::floor(value) && std::abs(value) < 1e15;
    fields.values[name] = is_whole    ? FieldValue(static_cast<int64_t>(value))
                          : is_number ? FieldValue(value)
                                      : FieldValue(text);
  }
  return fields;
}

// Leaves out values that are not figures of the described point, as a run's result does. If the point was described
// only in part, the figure stays, and a note says when it counts.
void LeaveOut(const SaidFields& fields, trainers::Reading& reading) {
  const auto is_left_out = [&](const trainers::FoundMetric& found) {
    if (!found.metric->only_if) return false;
    try {
      const bool holds = found.metric->only_if->Holds([&](std::string_view name) {
        const auto said = fields.values.find(name);
        return said == fields.values.end() ? std::nullopt : std::optional(said->second);
      });
      if (!holds) reading.notes.push_back(trainers::LeftOutText(*found.metric));
      return !holds;
    } catch (const Error&) {
      reading.notes.push_back(fmt::format("{} counts only if {} (say it with --field)", found.metric->figure->name,
                                          found.metric->only_if->words()));
      return false;
    }
  };
  std::erase_if(reading.found, is_left_out);
}

Json FoundJson(const trainers::FoundMetric& found) {
  Json json = {{"take", trainers::TakeName(found.metric->take)}, {"unit", found.unit}};
  if (!found.text.empty()) {
    json["value"] = found.text;
  } else if (trainers::IsSeries(found.metric->take) || found.values.size() > 1) {
    json["value"] = found.values;
  } else {
    json["value"] = found.values.front();
  }
  if (!found.steps.empty()) json["steps"] = found.steps;
  if (found.first_line > 0) {
    json.update({{"lines", found.matches}, {"first_line", found.first_line}, {"last_line", found.last_line}});
  }
  if (found.unread > 0) json["unread"] = found.unread;
  if (found.left_out > 0) json["left_out"] = found.left_out;
  return json;
}

Json EndJson(const trainers::LogEnd& end) {
  Json json = {{"end", StatusName(end.end.status)}, {"message", end.message}, {"hint", end.hint}};
  if (end.end.reason != InfrastructureReason::kNone) json["reason"] = ReasonName(end.end.reason);
  if (end.line > 0) json["line"] = end.line;
  return json;
}

Json ReadingJson(const trainers::Trainer& trainer, const trainers::Reading& reading) {
  Json found = Json::object();
  for (const trainers::FoundMetric& metric : reading.found)
    found[std::string(metric.metric->figure->name)] = FoundJson(metric);
  return {{"trainer", trainer.name},
          {"lines", reading.lines},
          {"found", found},
          {"missing", reading.missing},
          {"contradictions", reading.contradictions},
          {"notes", reading.notes},
          {"end", reading.end ? EndJson(*reading.end) : Json()}};
}

// The point of SWEEP.yaml:ID, whose run this was.
Point PointOf(const std::string& said, const std::string& option, const std::vector<fs::path>& folders) {
  const size_t colon = said.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == said.size()) {
    throw Error(ErrorKind::kUsage, fmt::format("{} is SWEEP.yaml:ID, not '{}'", option, said),
                "`ridgeline plan SWEEP.yaml` shows the points with their ids");
  }
  std::vector<Point> found;
  for (Point& point : sweep::Expand(session::LoadSweepFor(said.substr(0, colon), "", folders))) {
    if (point.id.starts_with(said.substr(colon + 1))) found.push_back(std::move(point));
  }
  if (found.size() == 1) return found.front();
  throw Error(ErrorKind::kUsage, fmt::format("{}: the ids of {} points of the sweep begin with '{}'", option,
                                             found.size(), said.substr(colon + 1)));
}

// Prints the line from which `ridgeline predict --known` learns about a log.
int AsCalibration(const TrainersOptions& options, const trainers::Trainer& trainer) {
  const Point point = PointOf(options.as_calibration, "--as-calibration", options.folders);
  if (FindGpu(point.spec.gpu) == nullptr) {
    throw Error(ErrorKind::kUsage, fmt::format("--as-calibration: point {} says no GPU that it ran on", point.id),
                "give the sweep its `device: cuda` and `gpu`");
  }
  trainers::ReadingOptions reading_options = trainers::OptionsFor(trainer, point.spec);
  reading_options.exit_code = options.exit_code.value_or(0);
  const trainers::Reading reading = trainers::ReadLog(
      trainer, [&](const auto& feed) { FeedLog(options.log, feed); }, reading_options, ResultOf(options.result));
  const RunResult result = trainers::ResultOf(trainer, reading, point.spec);
  if (result.status != RunStatus::kOk) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} is no good run of the point: {}", options.log, result.message),
                "without --as-calibration, `trainers try` shows what was found");
  }
  double step_ns = static_cast<double>(result.step_ns.median_ns);
  const double tokens_per_s = result.throughput.steady_tokens_per_s;
  if (step_ns <= 0 && tokens_per_s > 0) step_ns = static_cast<double>(TokensAStep(point.spec)) * 1e9 / tokens_per_s;
  if (step_ns <= 0) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{} says neither a step's time nor tokens a second of steps "
                            "behind the warm-up",
                            options.log),
                "without --as-calibration, `trainers try` shows what was found");
  }
  session::Say("{}\n", predict::EncodeKnownRun({.spec = point.spec,
                                                .gpu = point.spec.gpu,
                                                .step_ns = step_ns,
                                                .from = fs::path(options.log).filename().string()}));
  return 0;
}

int Try(const TrainersOptions& options) {
  const trainers::Trainer trainer = trainers::LoadTrainer(trainers::FindTrainer(options.name, Folders(options)));
  if (!options.result.empty() && trainer.result != trainers::Trainer::Result::kFile) {
    throw Error(ErrorKind::kUsage, fmt::format("the metrics of {} are found in its log", trainer.name),
                "leave out --result");
  }
  if (!options.as_calibration.empty()) return AsCalibration(options, trainer);
  trainers::ReadingOptions reading_options;
  reading_options.exit_code = options.exit_code;
  reading_options.tokens_per_step = options.tokens_per_step;
  const auto fields = FieldsOf(trainer, options.fields);
  reading_options.field = [&](std::string_view name) {
    const auto field = fields.numbers.find(name);
    return field == fields.numbers.end() ? std::nullopt : std::optional(field->second);
  };
  trainers::Reading reading = trainers::ReadLog(
      trainer, [&](const auto& feed) { FeedLog(options.log, feed); }, reading_options, ResultOf(options.result));
  LeaveOut(fields, reading);
  if (options.format == "json") {
    session::Write(ShowJson(ReadingJson(trainer, reading), 1) + "\n");
  } else {
    SayReading(reading);
  }
  return 0;
}

CLI::App* AddShow(CLI::App& self, const std::shared_ptr<TrainersOptions>& options) {
  CLI::App* show = self.add_subcommand("show", "print a definition, or the command that it makes for a point");
  show->add_option("name", options->name, "the trainer, as `ridgeline trainers` names it")
      ->type_name("TRAINER")
      ->required();
  show->add_option("--point", options->point, "print the command for this point instead, by the beginning of its id")
      ->type_name("SWEEP.yaml:ID");
  AddTrainersOption(*show, options->folders);
  show->footer(
      "Prints the file as it is, so you can start your own from it. With --point, prints what `ridgeline "
      "plan SWEEP --commands` shows of that point.\n\n"
      "Examples:\n"
      "  ridgeline trainers show nanogpt\n"
      "  ridgeline trainers show nanogpt --point sweep.yaml:3f09ac12");
  return show;
}

CLI::App* AddTry(CLI::App& self, const std::shared_ptr<TrainersOptions>& options) {
  CLI::App* tried = self.add_subcommand("try", "show what a definition finds in a log");
  tried->add_option("name", options->name, "the trainer, as `ridgeline trainers` names it")
      ->type_name("TRAINER")
      ->required();
  tried->add_option("--log", options->log, "the trainer's output; - is standard input")->type_name("FILE")->required();
  tried->add_option("--exit-code", options->exit_code, "its exit code, if known")->check(CLI::Range(0, 255));
  tried->add_option("--result", options->result, "the JSON file that it wrote, if the definition reads one")
      ->type_name("FILE");
  tried
      ->add_option("--tokens-per-step", options->tokens_per_step,
                   "tokens of a step over all ranks, to check its tokens/s")
      ->check(CLI::PositiveNumber);
  tried->add_option("--field", options->fields, "a field of the point that the definition uses")
      ->type_name("NAME=VALUE");
  tried
      ->add_option("--as-calibration", options->as_calibration,
                   "print the line for `ridgeline predict --known`; the log is of this point")
      ->type_name("SWEEP.yaml:ID");
  AddFormatOption(*tried, options->format, kTryForms);
  AddTrainersOption(*tried, options->folders);
  tried->footer(
      "Prints each figure that was found with its lines, the figures that were not found, and how the "
      "trainer ended with the line that shows it. A log may have any length.\n\n"
      "Example:\n"
      "  ridgeline trainers try nanogpt --log train.log --exit-code 1");
  return tried;
}

CLI::App* AddCheck(CLI::App& self, const std::shared_ptr<TrainersOptions>& options) {
  CLI::App* check = self.add_subcommand("check", "check definitions for faults");
  check->add_option("file", options->checked, "files, or names of `ridgeline trainers`")->type_name("FILE")->required();
  AddTrainersOption(*check, options->folders);
  check->footer(
      "Exit codes: 0 all definitions are right, 2 every fault is printed with its line.\n\n"
      "Example:\n"
      "  ridgeline trainers check trainers/mine.yaml");
  return check;
}

}  // namespace

Action TrainersCommand(CLI::App& self) {
  const auto options = std::make_shared<TrainersOptions>();
  self.require_subcommand(0, 1);
  AddFormatOption(self, options->format, kListForms);
  AddTrainersOption(self, options->folders);
  const CLI::App* show = AddShow(self, options);
  const CLI::App* tried = AddTry(self, options);
  const CLI::App* check = AddCheck(self, options);
  const auto [made, make] = AddTrainersNew(self);
  self.footer(
      "Without one of these commands, lists the definitions: YAML files in --trainers, in trainers/ of the "
      "current folder, in ~/.config/ridgeline/trainers or in the installation. docs/trainer-definitions.md "
      "tells how to write one.\n\n"
      "Example:\n"
      "  ridgeline trainers");
  return [options, show, tried, check, made = made, make = make] {
    if (show->parsed()) return Show(*options);
    if (tried->parsed()) return Try(*options);
    if (check->parsed()) return CheckDefinitions(*options);
    if (made->parsed()) return make();
    return List(*options);
  };
}

}  // namespace ridgeline::cli
