// `ridgeline plan`: shows every point of a sweep and whether it fits. Submits nothing.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/show_commands.h"
#include "driver/counting_line.h"
#include "launch/check_rules.h"
#include "plan/forecast.h"
#include "plan/largest.h"
#include "plan/plan.h"
#include "plan/price.h"
#include "plan/show.h"
#include "plan/trainer.h"
#include "predict/framework.h"
#include "predict/memory_forecast.h"
#include "predict/time_model.h"
#include "ridgeline/amount.h"
#include "rounds/rounds.h"
#include "search/show.h"
#include "search/space.h"
#include "session/defaults.h"
#include "session/say.h"
#include "session/session.h"
#include "store/store.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "sweep/sweep.h"

namespace ridgeline::cli {
namespace {

constexpr int64_t kShownFirst = 5;  // the first points of a search that are shown

struct PlanArguments {
  std::string sweep;
  std::string format = "text";
  bool expand_only = false;
  bool fields = false;
  bool commands = false;
  std::string point;
  std::string launcher;
  std::string memory;
  std::string largest;
  std::string db = session::kDefaultDb;
  std::string reports;
  std::string device;
  std::vector<std::filesystem::path> frameworks;
  std::vector<std::filesystem::path> devices;
  std::vector<std::filesystem::path> trainers;
  sweep::Given given;
};

void Flush() {
  if (std::fflush(stdout) != 0) ThrowErrno("standard output");
}

void Warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) session::SayAside("warning: {}\n", warning);
}

int ShowPoints(const sweep::Sweep& sweep, const std::string& format) {
  const sweep::Expansion expansion = plan::WriteExpanded(sweep, format, session::Write);
  Flush();
  Warn(expansion.warnings);
  session::SayAside("{}\n", plan::ExpansionSummary(expansion));
  return 0;
}

// Throws now for what the launcher would refuse, rather than when the jobs run. Returns in words what the launcher adds
// to the jobs' requests.
std::vector<std::string> RequireRenderable(const sweep::Sweep& sweep, const plan::Plan& plan, const std::string& db) {
  const auto launcher = session::OpenLauncherFor(sweep, 0, db);
  launch::CheckRules(sweep, *launcher);
  if (!launcher->can().render) return {};
  std::vector<launch::LaunchJob> jobs;
  for (const Job& job : plan.jobs) jobs.push_back(launch::ToLaunchJob(job, ProgramDir() / "ridgeline"));
  return launcher->Render(jobs).asks;
}

plan::NodeMemory NodeMemoryFrom(const std::string& text) {
  const auto bytes = WholeAmount(ParseAmount(text, kSizeUnits), kMostBytes);
  if (!bytes) {
    throw Error(ErrorKind::kUsage, fmt::format("plan: --memory is a size of up to 1000TB, not '{}'", text),
                "give the memory of a node, such as 16GB or 512MiB");
  }
  if (*bytes < sweep::kLeastMemoryBytes) {
    throw Error(ErrorKind::kUsage, fmt::format("plan: --memory is {} bytes, which is too little for anything", *bytes),
                fmt::format("a number needs its unit, such as {}GB", *bytes));
  }
  return {.bytes = *bytes, .basis = "--memory " + text, .is_said = true};
}

// The target of the plan: the device, named here or by the sweep's `price`, and the memory that is said to be there.
struct PlannedFor {
  plan::NodeMemory node;     // includes free memory here, if points would run here
  plan::NodeMemory for_max;  // for `batch_size: max`; not free memory, which is no part of a point
  std::optional<predict::Device> device;
  plan::Forecaster forecaster;
  std::shared_ptr<const predict::Frameworks> frameworks;
};

PlannedFor PlannedForOf(const sweep::Sweep& sweep, const PlanArguments& arguments) {
  PlannedFor to;
  to.device = session::DeviceFor(sweep, arguments.device, arguments.devices);
  if (!arguments.memory.empty()) to.for_max = NodeMemoryFrom(arguments.memory);
  to.forecaster = predict::PredictMemory;
  to.frameworks = session::FrameworksFor(sweep, arguments.frameworks);
  if (to.device) {
    const auto device = std::make_shared<const predict::Device>(*to.device);
    to.for_max.device = device;
    to.forecaster = [device](const RunSpec& spec) { return plan::ForecasterOn(*device, predict::Framework{})(spec); };
  }
  to.node = arguments.memory.empty() && !to.device ? session::NodeMemoryOf(sweep) : to.for_max;
  return to;
}

int ShowLargest(sweep::Sweep sweep, const PlanArguments& arguments) {
  sweep.largest.reset();  // the field's own value is not used
  const PlannedFor to = PlannedForOf(sweep, arguments);
  const std::vector<plan::Largest> largest = [&] {
    driver::CountingLine line(session::kSearching);
    size_t tried = 0;
    return plan::FindLargest(
        sweep, arguments.largest, to.node,
        [&](const RunSpec& spec) {
          line.At(++tried);
          return to.forecaster(spec);
        },
        to.frameworks.get());
  }();
  const bool for_people = arguments.format == "text" || arguments.format == "md";
  session::Write(Format(plan::LargestTable(sweep, arguments.largest, largest,
                                           for_people ? plan::Audience::kPeople : plan::Audience::kPrograms),
                        arguments.format));
  Flush();
  return 0;
}

// A database that cannot be read costs the plan its times, not the plan itself.
void WarnOf(const std::string& db, const Error& e) {
  session::SayAside("warning: no times from {}: {}\n", db, e.message());
}

// The database, if it exists and this version reads it.
std::optional<store::Store> StoreIfThere(const std::string& db) {
  std::error_code ec;
  if (!std::filesystem::exists(db, ec)) return std::nullopt;
  try {
    return session::OpenStore(db, store::Store::Mode::kReadOnly);
  } catch (const Error& e) {
    WarnOf(db, e);
    return std::nullopt;
  }
}

// Shows what a search would run first, and what it already knows.
void ShowSearch(const sweep::Sweep& sweep, const PlannedFor& to, store::Store* store) {
  const std::vector<search::SearchSpace> spaces =
      search::SpaceMaker(to.node, to.forecaster, session::DeviceFoldersFor(sweep), to.frameworks).Make(sweep);
  search::Trials trials;
  if (store != nullptr) trials = rounds::ReadTrials(*store, sweep, spaces, store->CurrentCampaign(sweep.name), {});
  session::SayAside("{}\n", search::SearchWords(sweep, spaces));
  for (const search::SearchSpace& space : spaces) {
    const search::SearchDecision decision = search::Decide(space, *sweep.search, trials, kShownFirst);
    for (const std::string& line : search::FirstLines(space, *sweep.search, decision, kShownFirst))
      session::SayAside("{}\n", line);
  }
}

// Adds what the database knows: how long points of the sweep's launcher take, and which points have their result.
void AddMeasured(const sweep::Sweep& sweep, store::Store& store, const std::string& db, plan::PriceParts& parts,
                 predict::TimeModel& times) {
  try {
    constexpr auto kMost = static_cast<int64_t>(predict::TimeModel::kRemembered);
    for (const store::MeasuredPoint& point : store.MeasuredPoints(sweep.launch.launcher, kMost)) {
      const double seconds = static_cast<double>(point.duration_ns) / 1e9;
      parts.times.Took(point.spec, seconds);
      times.Took(predict::RelativeCost(point.spec), seconds);
    }
    for (std::string& id : store.FinishedPoints(sweep.name)) parts.finished.insert(std::move(id));
    for (const auto& [id, by] : store.PredictedNotToFit(sweep.name)) parts.finished.erase(id);  // judged again
  } catch (const Error& e) {
    WarnOf(db, e);
  }
}

int ShowPlan(sweep::Sweep sweep, const PlanArguments& arguments) {
  session::ReportsOf(sweep, arguments.reports);  // reports a wrong name now, not after the run
  const PlannedFor to = PlannedForOf(sweep, arguments);
  std::optional<store::Store> store = StoreIfThere(arguments.db);
  plan::BatchesThatFit::EndedForMemory ended;
  if (store && sweep::HasLargestBatch(sweep))
    ended = rounds::EndedForMemoryIn(*store, store->CurrentCampaign(sweep.name), {});
  std::optional<driver::CountingLine> searching;
  size_t tried = 0;
  const plan::Forecaster counted = [&](const RunSpec& spec) {
    if (searching) searching->At(++tried);
    return to.forecaster(spec);
  };
  const auto batches = plan::UseLargestBatches(sweep, to.for_max, counted, std::move(ended));
  if (arguments.commands) {
    ShowCommands(sweep, {arguments.point, "", arguments.format});
    Flush();
    return 0;
  }
  sweep::Expansion expansion;
  searching.emplace(session::kSearching);
  const std::vector<Point> points = sweep::Expand(sweep, &expansion);
  searching.reset();
  plan::PlanOptions options;
  options.node = to.node;
  options.frameworks = to.frameworks;
  options.runs_here = session::RunsHere(sweep);
  options.jobs_dir = std::filesystem::absolute(session::kDefaultOutputDir) / "jobs";
  plan::PriceParts parts;
  parts.device = to.device;
  parts.frameworks = to.frameworks;
  options.times = session::AssumedTimesOf(sweep, to.device);
  if (store) AddMeasured(sweep, *store, arguments.db, parts, options.times);
  const plan::Plan plan = session::PlanWithProgress(sweep, points, options, to.forecaster);
  std::vector<plan::PointPrice> prices(plan.points.size());  // nothing is known of them yet
  if (parts.device || options.times.measured()) {
    driver::CountingLine line("pricing");
    prices = plan::PricePoints(sweep, points, plan, parts, [&](size_t done, size_t of) { line.At(done, of); });
  }
  const std::vector<std::string> asks = RequireRenderable(sweep, plan, arguments.db);
  const std::string& format = arguments.format;
  const bool for_people = format == "text" || format == "md";
  const plan::Audience audience = for_people ? plan::Audience::kPeople : plan::Audience::kPrograms;
  Table table = plan::PlanTable(sweep, points, plan, audience);
  plan::AddPrices(prices, audience, table);
  session::Write(Format(table, format));
  Flush();
  Warn(expansion.warnings);
  Warn(plan.warnings);
  if (!session::RunsHere(sweep)) {  // people also plan where no such point will run
    if (const std::string why = plan::WhyNoCudaTrainer(sweep, points); !why.empty())
      Warn({why + "; " + plan::kGetCudaTrainer});
  }
  if (store) {
    if (const std::string other = session::OtherFileOf(*store, sweep); !other.empty()) Warn({other});
  }
  session::SayAside("{}\n", plan::PlanSummary(points, plan));
  if (!sweep.setup.empty()) {
    session::SayAside("setup: {} before the first point\n", CountOf(std::ssize(sweep.setup), "command"));
  }
  if (to.device && !to.device->is_cpu() &&
      std::any_of(points.begin(), points.end(), [&](const Point& p) { return !plan::RunsOn(p.spec, *to.device); })) {
    session::SayAside("planned as if all points ran on {}; `ridgeline run` uses the device that each point names\n",
                      to.device->name);
  }
  for (const std::string& line : plan::LargestBatchLines(sweep, *batches)) session::SayAside("{}\n", line);
  if (sweep.search) {
    ShowSearch(sweep, to, store ? &*store : nullptr);
    return 0;
  }
  for (const std::string& line : plan::JobLines(sweep, plan)) session::SayAside("{}\n", line);
  for (const std::string& line : asks)
    session::SayAside("{}: jobs ask for {}\n", sweep.launch.launcher, PrintableLine(line));
  if (const std::string price = plan::PriceSummary(sweep, prices, parts); !price.empty())
    session::SayAside("{}\n", price);
  return 0;
}

// Refuses options that cannot be combined with --commands.
void RefuseOthersOfCommands(const PlanArguments& arguments) {
  if (!arguments.commands) return;
  if (arguments.format == "md" || arguments.format == "csv") {
    throw Error(ErrorKind::kUsage, fmt::format("plan: -o {} is a table, but commands are not", arguments.format),
                "use -o text, json or jsonl");
  }
  if (arguments.expand_only || !arguments.largest.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("plan: --commands cannot be combined with {}",
                            arguments.expand_only ? "--expand-only" : "--largest"),
                "leave one of them out");
  }
}

}  // namespace

Action PlanCommand(CLI::App& self) {
  const auto arguments = std::make_shared<PlanArguments>();
  self.add_option("sweep", arguments->sweep, "the sweep file")->type_name("SWEEP.yaml");
  AddFormatOption(self, arguments->format, {"text", "md", "csv", "json", "jsonl"});
  self.add_flag("--expand-only", arguments->expand_only,
                "list the points and predict nothing; jsonl and json have each point's whole RunSpec");
  self.add_flag("--fields", arguments->fields, "list every field that a sweep may set");
  CLI::Option* commands =
      self.add_flag("--commands", arguments->commands, "print the commands of each point, as text, json or jsonl");
  self.add_option("--point", arguments->point, "with --commands: only this point, by the beginning of its id")
      ->type_name("ID")
      ->needs(commands);
  self.add_option("--largest", arguments->largest,
                  "find the largest value that fits, for each combination of the other fields")
      ->type_name("FIELD")
      ->check(CLI::IsMember({"batch_size", "seq_length"}));
  self.add_option("--launcher", arguments->launcher, "where jobs would run (default: the sweep's launcher, else local)")
      ->type_name("LAUNCHER");
  self.add_option("--memory", arguments->memory,
                  "memory of a GPU, or of a CPU node, such as 16GB (default: the device's, or what is free here)")
      ->type_name("SIZE");
  self.add_option("--db", arguments->db, "the results database")->capture_default_str()->type_name("FILE");
  self.add_option(
          "--device", arguments->device,
          "plan for a GPU such as h100 or a machine such as p5 (`ridgeline devices`; default: the sweep's `price`)")
      ->type_name("DEVICE");
  AddDevicesOption(self, arguments->devices);
  AddFrameworksOption(self, arguments->frameworks);
  AddReportsOption(self, arguments->reports);
  AddTrainersOption(self, arguments->trainers);
  AddGivenOptions(self, arguments->given);
  GroupOptions(self, "What to show", {"--format", "--expand-only", "--fields", "--commands", "--point", "--largest"});
  GroupOptions(self, "Which points", {"-S", "--only", "--trainers"});
  GroupOptions(self, "Where they would run", {"--launcher", "--memory", "--device", "--devices", "--frameworks"});
  GroupOptions(self, "Files", {"--db", "--reports"});
  self.footer(
      "Expands a sweep into its points and predicts the peak memory of a rank by tracing the step that it "
      "would run. Says whether that fits: `fits`, `out_of_memory`, or `unknown` if the memory of the place "
      "where it runs is not known. Prints also what the jobs would ask for. Nothing is trained, submitted "
      "or stored. All faults of a sweep are shown at once, with line and column.\n\n"
      "A point may use the least of what its launcher asks for, its memory_limit and what a node has. On a "
      "GPU it may use that GPU's memory. `run` and `render` use the same limits.\n\n"
      "With --device, or if the sweep's `price` names a device, all points are planned for that device, as "
      "`predict` does. For points of another trainer, GPU memory is estimated (docs/frameworks.md). They "
      "run even if they do not fit. `not_predicted` means that no framework describes the trainer. For a "
      "sweep with `search:` the plan shows what would be tried first, and for `batch_size: max` it shows "
      "that size.\n\n"
      "The plan has a price for each point and for the sweep: time with an interval, node-hours, energy and"
      " dollars. It follows from measurements of such points, or from the model of a described device "
      "(docs/prediction.md). Points that have a result, or cannot fit, are in no sum.\n\n"
      "A short sweep (docs/sweeps.md has the whole language):\n"
      "  name: activation-checkpointing\n"
      "  defaults: {model: llama-25m, precision: bf16, seq_length: 512}\n"
      "  matrix: {batch_size: 1..8*2, checkpointing: [none, selective, full]}\n"
      "  exclude: [{batch_size: \">4\", checkpointing: none}]\n\n"
      "Examples:\n"
      "  ridgeline plan sweeps/demo.yaml\n"
      "  ridgeline plan sweeps/demo.yaml -o csv > plan.csv\n"
      "  ridgeline plan sweeps/demo.yaml --launcher slurm --memory 64GB\n"
      "  ridgeline plan sweeps/scaling.yaml --device p5\n"
      "  ridgeline plan sweeps/demo.yaml --largest batch_size --memory 16GB\n"
      "  ridgeline plan sweeps/demo.yaml --commands | less\n"
      "  ridgeline plan sweeps/demo.yaml --expand-only -o jsonl | head -1\n"
      "  ridgeline plan --fields -o md");
  return [arguments] {
    if (arguments->fields) {
      session::Write(Format(plan::FieldsTable(), arguments->format));
      Flush();
      return 0;
    }
    if (arguments->sweep.empty()) {
      throw Error(ErrorKind::kUsage, "plan: no sweep is given",
                  "ridgeline plan SWEEP.yaml, or see ridgeline plan --help");
    }
    RefuseOthersOfCommands(*arguments);
    const sweep::Sweep sweep =
        session::LoadSweepFor(arguments->sweep, arguments->launcher, arguments->trainers, arguments->given);
    if (!arguments->largest.empty()) return ShowLargest(sweep, *arguments);
    return arguments->expand_only ? ShowPoints(sweep, arguments->format) : ShowPlan(sweep, *arguments);
  };
}

}  // namespace ridgeline::cli
