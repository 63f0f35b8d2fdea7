// `ridgeline gate`: decides whether a night or a commit is worse than its baseline, so that a pipeline can stop.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/gate_calibrate.h"
#include "cli/gate_confirm.h"
#include "cli/harness.h"
#include "cli/output.h"
#include "cli/sides.h"
#include "regress/accepted.h"
#include "regress/gate.h"
#include "regress/gate_forms.h"
#include "regress/measurements.h"
#include "regress/nightly.h"
#include "regress/nights.h"
#include "store/store.h"

namespace ridgeline {
namespace {

constexpr std::initializer_list<const char*> kGateForms = {"text", "json"};
constexpr int64_t kMostPinned = 1000;  // measurements per cell

struct GateOptions {
  std::string head;
  std::string baseline;
  std::string pinned;
  std::string records;
  std::string db = kDefaultDb;
  std::string format;
  std::string to;
  std::string junit;
  std::string summary;
  std::string comment;
  std::string metrics;
  double detect = 100;      // percent
  std::string annotations;  // "-": to the standard output
  std::string turns = (std::filesystem::path(kDefaultOutputDir) / "turns").string();
  std::string launcher;
  std::vector<std::filesystem::path> trainers;
  ConfirmOptions confirm;
  CalibrateOptions calibrate;
};

// Reads the nights that are recorded in a folder.
std::vector<Night> NightsOf(const std::string& folder) {
  if (folder.empty()) return {};
  std::vector<std::string> problems;
  std::vector<Night> nights = ReadNights(folder, &problems);
  for (const std::string& problem : problems) SayAside("warning: {}\n", problem);
  return nights;
}

std::vector<MeasuredCell> ReadGateSide(const NamedSide& side, int64_t before_unix_ns, int64_t most,
                                       std::vector<LeftOutMeasurements> left_out = {}) {
  Store store = OpenStore(side.db, Store::Mode::kReadOnly);
  MeasurementChoice choice;
  choice.campaign = side.campaign;
  choice.commit = side.commit;
  choice.before_unix_ns = before_unix_ns;
  choice.most = most;
  choice.left_out = std::move(left_out);
  return ReadMeasurements(store, choice);
}

// When the first of the cells ended; 0 if there are none.
int64_t FirstEnd(const std::vector<MeasuredCell>& cells) {
  int64_t first = 0;
  for (const MeasuredCell& cell : cells) {
    const int64_t ended = cell.measurements.front().ended_unix_ns;
    if (first == 0 || ended < first) first = ended;
  }
  return first;
}

bool IsOneCampaignOrCommit(const NamedSide& side) {
  return !side.commit.empty() || (!side.campaign.empty() && !side.campaign.ends_with('*'));
}

GateSides ReadSides(const GateOptions& options) {
  const NamedSide head = FindSide(options.head, options.db, "gate");
  if (!IsOneCampaignOrCommit(head)) {
    throw Error(ErrorKind::kUsage, fmt::format("gate: '{}' is a database, not a night or a commit", options.head),
                fmt::format("say which: {}:CAMPAIGN", options.head));
  }
  GateSides sides;
  sides.head = ReadGateSide(head, 0, 0);
  {
    Store store = OpenStore(head.db, Store::Mode::kReadOnly);
    sides.expected = ReadExpected(store, head.campaign);
  }
  const int64_t first_end = FirstEnd(sides.head);
  NamedSide baseline{options.db, {}, {}};
  if (!options.baseline.empty()) baseline = FindSide(options.baseline, options.db, "gate", SideNames::kOneOrMany);
  // A single named baseline counts regardless of its time. Of several, only those before head count.
  const bool is_one = IsOneCampaignOrCommit(baseline);
  if (is_one && baseline.db == head.db && baseline.campaign == head.campaign && baseline.commit == head.commit) {
    throw Error(ErrorKind::kUsage, "gate: head and baseline are the same",
                "name another baseline, or none: all before");
  }
  const std::vector<Night> nights = NightsOf(options.records);
  constexpr auto kMost = static_cast<int64_t>(kBaseNights + kWindowNights);
  sides.baseline = ReadGateSide(baseline, is_one ? 0 : first_end, kMost, LeftOutOf(nights));
  if (!is_one) sides.recent = ReadGateSide(baseline, first_end, kMost, VoidOf(nights));
  if (!options.pinned.empty()) {
    sides.pinned = ReadGateSide(FindSide(options.pinned, options.db, "gate"), 0, kMostPinned);
  }
  sides.accepted = AcceptedOf(nights);
  ShiftToAccepted(sides);
  return sides;
}

// The name of the only sweep whose campaign is head's. Empty if there are several or none.
std::string SweepOf(const GateOptions& options) {
  const NamedSide head = FindSide(options.head, options.db, "gate");
  if (head.campaign.empty()) return "";
  Store store = OpenStore(head.db, Store::Mode::kReadOnly);
  const auto rows =
      store.Query("SELECT name FROM sweeps WHERE campaign = :campaign", {{"campaign", head.campaign}}).rows;
  return rows.size() == 1 ? CellText(rows[0][0]) : "";
}

void WriteForms(const Gate& gate, const GateOptions& options) {
  const auto write = [](const std::string& file, const std::string& text) {
    if (!file.empty()) WriteFileAtomic(file, text);
  };
  if (!options.junit.empty()) write(options.junit, GateJunit(gate));
  if (!options.summary.empty()) write(options.summary, GateMarkdown(gate, kMostSummaryBytes));
  if (!options.comment.empty()) write(options.comment, GateMarkdown(gate, kMostCommentBytes));
  if (!options.metrics.empty()) write(options.metrics, GateOpenMetrics(gate));
  if (!options.annotations.empty() && options.annotations != "-") write(options.annotations, GateAnnotations(gate));
}

int GateHead(const GateOptions& options) {
  const std::string form = FormOf(options.format, options.to, kGateForms);
  if (options.head.empty()) {
    throw Error(ErrorKind::kUsage, "gate: which campaign or commit?",
                "name it: if tonight measured nothing, the newest one would be yesterday's");
  }
  Gate gate = MakeGate(ReadSides(options));
  DemandDetection(gate, options.detect / 100);
  gate.head = options.head;
  gate.sweep = SweepOf(options);
  gate.baseline = options.baseline.empty() ? "earlier measurements" : options.baseline;
  gate.pinned = options.pinned;
  if (!options.confirm.sweep.empty() && !ConfirmSuspects(options.confirm, gate)) {
    SayAside("interrupted; to resume, run the same command\n");
    return kInterruptedExit;
  }
  NameTakenChanges(gate);
  WriteForms(gate, options);
  const std::string text = form == "json" ? GateJson(gate) : GateText(gate);
  if (options.to.empty()) {
    Write(text);
  } else {
    WriteFileAtomic(options.to, text);
    Say("{}: {}\n", options.to, GateConclusion(gate));
  }
  if (options.annotations == "-") Write(GateAnnotations(gate));
  return GateExitCode(gate.answer);
}

}  // namespace

Action GateCommand(CLI::App& self) {
  const auto options = std::make_shared<GateOptions>();
  CLI::Option* head =
      self.add_option("head", options->head, "what is checked: a campaign, commit:ABC1234, or FILE:CAMPAIGN")
          ->type_name("HEAD");
  self.add_option("--baseline", options->baseline,
                  "earlier runs: night-* (campaigns), a database, or one side (default: all)")
      ->type_name("BASE");
  self.add_option("--pinned", options->pinned, "a campaign or commit that stays the baseline, to detect slow creep")
      ->type_name("BASE");
  self.add_option("--records", options->records,
                  "the nights of `nightly`; what failed or got worse in them is no baseline")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  self.add_option("--detect", options->detect,
                  "the slowdown that a pass must be able to detect; otherwise inconclusive")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 1000.0))
      ->type_name("PERCENT");
  self.add_option("--db", options->db, "the database of the campaigns and commits")
      ->capture_default_str()
      ->type_name("FILE");
  AddFormatOption(self, options->format, kGateForms)->default_str(kGateForms.begin()[0]);
  AddToOption(self, options->to, "FILE", "the file to write (default: print the findings)");
  const auto add_file = [&](const char* name, std::string& file, const char* help) {
    self.add_option(name, file, help)->type_name("FILE");
  };
  add_file("--junit", options->junit, "also write JUnit XML, for Jenkins and others");
  add_file("--summary", options->summary, "also write Markdown for a GitHub job summary, at most 1 MiB");
  add_file("--comment", options->comment, "also write Markdown for a comment, at most 64 KB");
  add_file("--metrics", options->metrics, "also write OpenMetrics text, for GitLab's metrics report");
  CLI::Option* base_build = self.add_option("--base-build", options->confirm.base_build,
                                            "with --confirm: the folder with the older trainer programs")
                                ->type_name("DIR")
                                ->check(CLI::ExistingDirectory);
  self.add_option("--confirm", options->confirm.sweep,
                  "measure suspects of this sweep again, base and HEAD in turns, and decide")
      ->type_name("SWEEP")
      ->check(CLI::ExistingFile)
      ->needs(base_build);
  self.add_option("--head-build", options->confirm.head_build,
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
  self.add_flag("--annotations{-}", options->annotations,
                "also print GitHub's annotations, or write them with --annotations=FILE");
  GroupOptions(self, "What is compared", {"--baseline", "--pinned", "--records", "--detect", "--db"});
  GroupOptions(self, "Output", {"--format", "--to", "--junit", "--summary", "--comment", "--metrics", "--annotations"});
  GroupOptions(self, "Measuring again",
               {"--confirm", "--base-build", "--head-build", "--calibrate", "--nights", "--launcher", "--trainers"});
  self.footer(
      "Compares the step time and the peak memory of each point in HEAD with its last 20 runs on machines "
      "of one fingerprint. docs/gate.md explains the verdicts:\n\n"
      "PASS also says which slowdown it would have detected. INCONCLUSIVE means slower than noise allows. "
      "Either --confirm measures it again, base and HEAD in turns, or six nights together decide. REGRESSED"
      " means more than 10 % slower, memory that grew twice, or a failure where there was a result. MISSING"
      " is no pass, and hides no other verdict.\n\n"
      "Exit codes: 0 pass, 1 regressed, 2 usage, 3 results are missing, 4 inconclusive.\n\n"
      "Examples:\n"
      "  ridgeline gate night-22 --baseline 'night-*' --pinned release-1\n"
      "  ridgeline gate night-22 --confirm sweep.yaml --base-build /opt/yesterday/bin\n"
      "  ridgeline gate --calibrate sweep.yaml\n"
      "  ridgeline gate commit:0123abc --junit gate.xml --annotations");
  return [options] {
    options->confirm.launcher = options->calibrate.launcher = options->launcher;
    options->confirm.trainers = options->calibrate.trainers = options->trainers;
    options->confirm.turns = options->calibrate.turns = options->turns;
    return options->calibrate.sweep.empty() ? GateHead(*options) : CalibrateGate(options->calibrate);
  };
}

}  // namespace ridgeline
