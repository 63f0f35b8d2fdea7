// `ridgeline predict`: predicts how long a sweep's steps would take on a described device.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/known_runs.h"
#include "cli/options.h"
#include "driver/counting_line.h"
#include "plan/forecast.h"
#include "plan/largest.h"
#include "predict/device.h"
#include "predict/export_step.h"
#include "predict/framework.h"
#include "run/fields.h"
#include "session/say.h"
#include "session/session.h"
#include "store/store.h"
#include "sweep/expand.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

struct PredictArguments {
  std::string sweep;
  std::string device;
  std::string point;
  std::string framework;
  std::string format = "text";
  std::vector<std::string> known;
  fs::path export_trace;
  fs::path db;
  std::vector<fs::path> frameworks;
  std::vector<fs::path> devices;
  std::vector<fs::path> trainers;
  sweep::Given given;
};

// The point whose id begins with `id`.
std::vector<Point> Chosen(std::vector<Point> points, const std::string& id) {
  if (id.empty()) return points;
  std::vector<Point> chosen;
  for (Point& point : points) {
    if (point.id.starts_with(id)) chosen.push_back(std::move(point));
  }
  if (chosen.size() == 1) return chosen;
  throw Error(ErrorKind::kUsage,
              fmt::format("predict: the ids of {} points of the sweep begin with '{}'", chosen.size(), id),
              "`ridgeline plan SWEEP --expand-only` lists them");
}

int Predict(const PredictArguments& arguments) {
  if (!arguments.export_trace.empty()) predict::RequireExportName(arguments.export_trace);
  sweep::Sweep sweep = session::LoadSweepFor(arguments.sweep, "", arguments.trainers, arguments.given);
  predict::Frameworks frameworks = *session::FrameworksFor(sweep, arguments.frameworks, arguments.framework);
  const std::optional<predict::Device> described = session::DeviceFor(sweep, arguments.device, arguments.devices);
  if (!described) {
    throw Error(ErrorKind::kUsage, "predict: no device is named, neither by --device nor by the sweep's `price`",
                "`ridgeline devices` lists them");
  }
  const predict::Device& device = *described;
  if (!arguments.known.empty()) CorrectBy(arguments.known, sweep, device, frameworks);
  std::optional<driver::CountingLine> searching(session::kSearching);
  size_t tried = 0;
  const plan::Forecaster forecaster = plan::ForecasterOn(device, *frameworks.Of(std::string(kOurTrainer)));
  plan::UseLargestBatches(sweep, {.device = std::make_shared<const predict::Device>(device)}, [&](const RunSpec& spec) {
    if (searching) searching->At(++tried);
    return forecaster(spec);
  });
  const std::vector<Point> points = Chosen(sweep::Expand(sweep), arguments.point);
  searching.reset();
  if (!arguments.export_trace.empty() && points.size() != 1) {
    throw Error(ErrorKind::kUsage, fmt::format("predict: a trace needs one point, but the sweep has {}", points.size()),
                "--point ID chooses one");
  }
  const std::vector<plan::PointForecast> forecasts = [&] {
    driver::CountingLine line("predicting");
    return plan::ForecastPoints(sweep, points, device, frameworks, [&](size_t done, size_t of) { line.At(done, of); });
  }();
  const bool for_people = arguments.format == "text" || arguments.format == "md";
  const plan::Audience audience = for_people ? plan::Audience::kPeople : plan::Audience::kPrograms;
  if (arguments.point.empty() || for_people) {
    session::Write(Format(plan::ForecastTable(sweep, points, forecasts, device, audience), arguments.format));
  }
  if (!arguments.point.empty())
    session::Write(Format(plan::ForecastOps(forecasts.front().step, audience), arguments.format));
  if (!arguments.export_trace.empty()) {
    if (forecasts.front().verdict == plan::Verdict::kNotPredicted) {
      throw Error(ErrorKind::kInvalidInput,
                  fmt::format("predict: point {} is not predicted: {}", points[0].id, forecasts.front().why_not),
                  "--export-trace needs a point that is predicted");
    }
    const predict::Framework* framework = frameworks.Of(forecasts.front().as);
    if (framework == nullptr) framework = frameworks.Of(points.front().spec.trainer);
    predict::ExportStep(points.front().spec, device, *framework, arguments.export_trace);
  }
  if (!arguments.db.empty()) {
    const int64_t now_ns = SystemClock().UnixNs();
    std::vector<plan::Predictions> all = plan::PredictionsOf(points, forecasts, device, now_ns);
    size_t predicted = 0;
    for (const plan::Predictions& each : all) predicted += each.results.size();
    const std::string& as = arguments.framework;
    const plan::Predictions published =
        plan::PublishedOf(sweep, points, device, as.empty() ? std::string(kOurTrainer) : as, now_ns);
    all.push_back(published);
    store::Store store = session::OpenStore(arguments.db, store::Store::Mode::kReadWrite);
    for (const plan::Predictions& each : all) store.PutPredictions(each.points, each.results, each.predicted_as);
    session::SayAside(
        "{} predictions{} in {}: reports show them beside what was measured\n", predicted,
        published.results.empty() ? "" : fmt::format(" and {} published results", published.results.size()),
        arguments.db.string());
  }
  session::SayAside("{}\n", plan::ForecastSummary(points, forecasts, device));
  return 0;
}

}  // namespace

Action PredictCommand(CLI::App& self) {
  const auto arguments = std::make_shared<PredictArguments>();
  self.add_option("sweep", arguments->sweep, "the sweep file")->type_name("SWEEP.yaml")->required();
  self.add_option("--device", arguments->device,
                  "a GPU such as h100, or a machine such as p5 (`ridgeline devices`; default: the sweep's `price`)")
      ->type_name("DEVICE");
  self.add_option("--point", arguments->point,
                  "show where one point's time goes, op by op; name it by the beginning of its id")
      ->type_name("ID");
  self.add_option("--export-trace", arguments->export_trace,
                  "write the point's predicted step, as X.json for Perfetto or X.et (Chakra) for ASTRA-sim")
      ->type_name("FILE");
  self.add_option("--db", arguments->db, "keep the predictions in this database, for reports")->type_name("FILE");
  self.add_option("--framework", arguments->framework, "predict all points as run by this framework (frameworks/)")
      ->type_name("NAME");
  self.add_option("--known", arguments->known,
                  "correct predictions by runs: a database, ID=930ms, or a line of `trainers try --as-calibration`")
      ->type_name("RUNS");
  AddFormatOption(self, arguments->format, {"text", "md", "csv", "json", "jsonl"});
  AddDevicesOption(self, arguments->devices);
  AddFrameworksOption(self, arguments->frameworks);
  AddTrainersOption(self, arguments->trainers);
  AddGivenOptions(self, arguments->given);
  GroupOptions(self, "Which points", {"-S", "--only", "--point", "--trainers"});
  GroupOptions(self, "How they are predicted", {"--device", "--devices", "--framework", "--frameworks", "--known"});
  GroupOptions(self, "Output", {"--format", "--export-trace", "--db"});
  self.footer(
      "Predicts every point of a sweep on a device that you need not have: GPU memory, the time of a step "
      "with an interval, and tokens/s of all ranks (steady: of a step; cold: of the whole run, its first "
      "step included). Shows what a step consists of (products, passes over memory, waiting for other "
      "ranks, launches), which of these bounds it, what the first step takes longer, and dollars if the "
      "device has a price. A point's ranks are GPUs of the device, whatever the sweep's own `device` and "
      "`gpu` are.\n\n"
      "Every figure is predicted. docs/prediction-model.md derives each term. docs/prediction-accuracy.md "
      "compares predictions with published figures. Nothing is trained or submitted.\n\n"
      "Examples:\n"
      "  ridgeline predict sweeps/demo.yaml --device h100\n"
      "  ridgeline predict sweeps/scaling.yaml --device p6-b200 -o csv\n"
      "  ridgeline predict sweeps/scaling.yaml --device p5 --db ridgeline.db\n"
      "  ridgeline predict sweeps/demo.yaml --device p5 --known runs.db\n"
      "  ridgeline predict sweeps/demo.yaml --device p5 --known 3f2a=930ms\n"
      "  ridgeline predict sweeps/demo.yaml --device p5 --point 3f2a \\\n"
      "    --export-trace step.json");
  return [arguments] { return Predict(*arguments); };
}

}  // namespace ridgeline::cli
