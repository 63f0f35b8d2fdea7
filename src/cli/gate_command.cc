// `ridgeline gate`: decides whether a night or a commit is worse than its baseline, so that a pipeline can stop.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "gate/calibration.h"
#include "gate/judge.h"
#include "regress/gate.h"
#include "regress/gate_forms.h"
#include "session/defaults.h"
#include "session/interrupts.h"
#include "session/say.h"

namespace ridgeline::cli {
namespace {

constexpr std::initializer_list<const char*> kGateForms = {"text", "json"};

struct GateOptions {
  gate::GateRequest request;
  gate::GateFiles files;  // annotations "-": to the standard output
  std::string format;
  std::string to;
  std::string turns = (std::filesystem::path(session::kDefaultOutputDir) / "turns").string();
  std::string launcher;
  std::vector<std::filesystem::path> trainers;
  gate::CalibrateOptions calibrate;
};

int GateHead(const GateOptions& options) {
  const std::string form = FormOf(options.format, options.to, kGateForms);
  if (options.request.head.empty()) {
    throw Error(ErrorKind::kUsage, "gate: which campaign or commit?",
                "name it: if tonight measured nothing, the newest one would be yesterday's");
  }
  const std::optional<regress::Gate> gate = gate::JudgeHead(options.request);
  if (!gate) {
    session::SayAside("interrupted; to resume, run the same command\n");
    return session::kInterruptedExit;
  }
  gate::GateFiles files = options.files;
  const bool prints_annotations = files.annotations == "-";
  if (prints_annotations) files.annotations.clear();
  gate::WriteGateFiles(*gate, files);
  const std::string text = form == "json" ? regress::GateJson(*gate) : regress::GateText(*gate);
  if (options.to.empty()) {
    session::Write(text);
  } else {
    WriteFileAtomic(options.to, text);
    session::Say("{}: {}\n", options.to, regress::GateConclusion(*gate));
  }
  if (prints_annotations) session::Write(regress::GateAnnotations(*gate));
  return regress::GateExitCode(gate->answer);
}

}  // namespace

Action GateCommand(CLI::App& self) {
  const auto options = std::make_shared<GateOptions>();
  options->request.db = session::kDefaultDb;
  CLI::Option* head =
      self.add_option("head", options->request.head, "what is checked: a campaign, commit:ABC1234, or FILE:CAMPAIGN")
          ->type_name("HEAD");
  self.add_option("--baseline", options->request.baseline,
                  "earlier runs: night-* (campaigns), a database, or one side (default: all)")
      ->type_name("BASE");
  self.add_option("--pinned", options->request.pinned,
                  "a campaign or commit that stays the baseline, to detect slow creep")
      ->type_name("BASE");
  self.add_option("--records", options->request.records,
                  "the folder of `nightly`; its failed nights and worse points are no baseline")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  self.add_option("--detect", options->request.detect,
                  "the slowdown that a pass must be able to detect; otherwise inconclusive")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 1000.0))
      ->type_name("PERCENT");
  self.add_option("--db", options->request.db, "the database of the campaigns and commits")
      ->capture_default_str()
      ->type_name("FILE");
  AddFormatOption(self, options->format, kGateForms)->default_str(kGateForms.begin()[0]);
  AddToOption(self, options->to, "FILE", "the file to write (default: print the findings)");
  const auto add_file = [&](const char* name, std::string& file, const char* help) {
    self.add_option(name, file, help)->type_name("FILE");
  };
  add_file("--junit", options->files.junit, "also write JUnit XML, for Jenkins and others");
  add_file("--summary", options->files.summary, "also write Markdown for a GitHub job summary, at most 1 MiB");
  add_file("--comment", options->files.comment, "also write Markdown for a comment, at most 64 KB");
  add_file("--metrics", options->files.metrics, "also write OpenMetrics text, for GitLab's metrics report");
  CLI::Option* base_build = self.add_option("--base-build", options->request.confirm.base_build,
                                            "with --confirm: the folder with the older trainer programs")
                                ->type_name("DIR")
                                ->check(CLI::ExistingDirectory);
  self.add_option("--confirm", options->request.confirm.sweep,
                  "measure suspects of this sweep again, base and HEAD in turns, and decide")
      ->type_name("SWEEP")
      ->check(CLI::ExistingFile)
      ->needs(base_build);
  self.add_option("--head-build", options->request.confirm.head_build,
                  "the folder with HEAD's trainer programs (default: the sweep's trainer)")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  CLI::Option* calibrate =
      self.add_option("--calibrate", options->calibrate.sweep,
                      "instead, measure this sweep and estimate how often the gate would be wrong here")
          ->type_name("SWEEP")
          ->check(CLI::ExistingFile)
          ->excludes(head);
  self.add_option("--nights", options->calibrate.nights,
                  "with --calibrate: nights to simulate, 3 runs of each point a night; 0: measure nothing")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{10'000}))
      ->type_name("N")
      ->needs(calibrate);
  self.add_option("--launcher", options->launcher, "the launcher for --confirm and --calibrate (default: the sweep's)")
      ->type_name("NAME");
  self.add_option("--turns", options->turns, "the folder for what --confirm and --calibrate measure")
      ->capture_default_str()
      ->type_name("DIR");
  AddTrainersOption(self, options->trainers);
  self.add_flag("--annotations{-}", options->files.annotations,
                "also print GitHub's annotations, or write them with --annotations=FILE");
  GroupOptions(self, "What is compared", {"--baseline", "--pinned", "--records", "--detect", "--db"});
  GroupOptions(self, "Output", {"--format", "--to", "--junit", "--summary", "--comment", "--metrics", "--annotations"});
  GroupOptions(self, "Measuring again",
               {"--confirm", "--base-build", "--head-build", "--calibrate", "--nights", "--launcher", "--trainers"});
  self.footer(
      "Compares the step time and the peak memory of each point in HEAD with its last 20 runs on machines "
      "of one fingerprint. docs/gate.md explains the verdicts:\n\n"
      "PASS also says which slowdown it would have detected. INCONCLUSIVE is not decided yet: there are too "
      "few earlier runs, or a point looks slower. --confirm measures such a point again, base and HEAD in "
      "turns. Without it, the nights to come decide. REGRESSED means slower in turns, slower in several "
      "nights, slower by more than 10 %, memory that grew twice, or a failure where there was a result. "
      "MISSING is no pass, and hides no other verdict.\n\n"
      "Exit codes: 0 pass, 1 regressed, 2 usage, 3 results are missing, 4 inconclusive.\n\n"
      "Examples:\n"
      "  ridgeline gate night-22 --baseline 'night-*' --pinned release-1\n"
      "  ridgeline gate night-22 --confirm sweep.yaml --base-build /opt/yesterday/bin\n"
      "  ridgeline gate --calibrate sweep.yaml\n"
      "  ridgeline gate commit:0123abc --junit gate.xml --annotations");
  return [options] {
    options->request.confirm.launcher = options->calibrate.launcher = options->launcher;
    options->request.confirm.trainers = options->calibrate.trainers = options->trainers;
    options->request.confirm.turns = options->calibrate.turns = options->turns;
    return options->calibrate.sweep.empty() ? GateHead(*options) : gate::CalibrateGate(options->calibrate);
  };
}

}  // namespace ridgeline::cli
