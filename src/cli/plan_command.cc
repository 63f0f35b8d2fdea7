// `ridgeline plan`: every point of a sweep, and whether it fits; nothing is submitted.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/harness.h"
#include "launch/check_rules.h"
#include "plan/plan.h"
#include "plan/show.h"
#include "predict/memory.h"
#include "sweep/expand.h"
#include "sweep/launch.h"
#include "sweep/sweep.h"

namespace ridgeline {
namespace {

struct PlanArguments {
  std::string sweep;
  std::string format = "text";
  bool expand_only = false;
  bool fields = false;
};

void Write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) ThrowErrno("standard output");
}

void Flush() {
  if (std::fflush(stdout) != 0) ThrowErrno("standard output");
}

void Warn(const Expansion& expansion) {
  for (const std::string& warning : expansion.warnings) fmt::print(stderr, "warning: {}\n", warning);
}

int ShowPoints(const Sweep& sweep, const std::string& format) {
  const Expansion expansion = WriteExpanded(sweep, format, Write);
  Flush();
  Warn(expansion);
  fmt::print(stderr, "{}\n", ExpansionSummary(expansion));
  return 0;
}

// What the launcher would refuse is told now, not when the jobs are to run.
void RequireRenderable(const Sweep& sweep, const Plan& plan) {
  std::vector<LaunchJob> jobs;
  for (const Job& job : plan.jobs) jobs.push_back(ToLaunchJob(job, ProgramDir() / "ridgeline"));
  const auto launcher = OpenLauncher(sweep.launch.launcher, SharedConfig(sweep), 0, kDefaultDb);
  CheckRules(sweep, *launcher);
  if (launcher->can().render) launcher->Render(jobs);
}

int ShowPlan(const Sweep& sweep, const std::string& format) {
  Expansion expansion;
  const std::vector<Point> points = Expand(sweep, &expansion);
  PlanOptions options;
  options.available_bytes = AvailableSlabBytes();
  options.runs_here = sweep.launch.launcher == kDefaultLauncher;
  options.jobs_dir = std::filesystem::absolute(kDefaultOutputDir) / "jobs";
  const Plan plan = MakePlan(sweep, points, options, PredictMemory);
  RequireRenderable(sweep, plan);
  const bool for_people = format == "text" || format == "md";
  Write(Format(PlanTable(sweep, points, plan, for_people ? Audience::kPeople : Audience::kPrograms), format));
  Flush();
  Warn(expansion);
  fmt::print(stderr, "{}\n", PlanSummary(plan));
  for (const std::string& line : JobLines(sweep, plan)) fmt::print(stderr, "{}\n", line);
  return 0;
}

}  // namespace

Action PlanCommand(CLI::App& self) {
  const auto arguments = std::make_shared<PlanArguments>();
  self.add_option("sweep", arguments->sweep, "the sweep file")->type_name("SWEEP.yaml");
  self.add_option("-o,--format", arguments->format, "text, md, csv, json or jsonl (default text)")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "md", "csv", "json", "jsonl"}));
  self.add_flag("--expand-only", arguments->expand_only,
                "list the points and predict nothing; jsonl and json hold each point's whole RunSpec");
  self.add_flag("--fields", arguments->fields, "list every field a sweep may set, with its values and meaning");
  self.footer(
      "Expands a sweep into its points, predicts each one's peak memory by tracing the step it would run, and says\n"
      "whether that fits on this device: `fits` or `out_of_memory`, and what its jobs would ask for. Nothing is "
      "trained,\n"
      "submitted or stored. Faults in the sweep are shown all at once, each with its line and column.\n\n"
      "A sweep in short (docs/sweeps.md has the whole language):\n"
      "  name: activation-checkpointing\n"
      "  defaults: {model: llama-25m, precision: bf16, seq_length: 512}\n"
      "  matrix: {batch_size: 1..8*2, checkpointing: [none, selective, full]}\n"
      "  exclude: [{batch_size: \">4\", checkpointing: none}]\n\n"
      "  ridgeline plan sweeps/demo.yaml\n"
      "  ridgeline plan sweeps/demo.yaml -o csv > plan.csv\n"
      "  ridgeline plan sweeps/demo.yaml --expand-only -o jsonl | head -1\n"
      "  ridgeline plan --fields -o md");
  return [arguments] {
    if (arguments->fields) {
      Write(Format(FieldsTable(), arguments->format));
      Flush();
      return 0;
    }
    if (arguments->sweep.empty()) {
      throw Error(ErrorKind::kUsage, "plan: no sweep is given",
                  "ridgeline plan SWEEP.yaml, or see ridgeline plan --help");
    }
    const Sweep sweep = LoadSweep(arguments->sweep);
    return arguments->expand_only ? ShowPoints(sweep, arguments->format) : ShowPlan(sweep, arguments->format);
  };
}

}  // namespace ridgeline
