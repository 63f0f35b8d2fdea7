#include "cli/trainers_new.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/quoting.h"
#include "base/text.h"
#include "cli/log_reading.h"
#include "cli/options.h"
#include "session/say.h"
#include "trainers/find.h"
#include "trainers/propose.h"
#include "trainers/reading.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

struct NewTrainerOptions {
  std::string name;
  std::string log;
  std::string to;
  std::vector<std::string> command;
  std::vector<fs::path> folders;
  trainers::ProposalAnswers answers;
};

trainers::Reading ReadWith(const trainers::Trainer& trainer, const std::string& log) {
  return trainers::ReadLog(trainer, [&](const auto& feed) { FeedLog(log, feed); }, {});
}

// Whether a definition reads the steps of this log: their losses, or their times.
bool ReadsSteps(const trainers::Reading& reading) {
  int series = 0;
  for (const trainers::FoundMetric& found : reading.found)
    series += found.matches >= 2 && trainers::IsSeries(found.metric->take) ? 1 : 0;
  return series >= 2 || (series == 1 && reading.missing.empty());
}

// Says which definitions read this log already.
void SayKnown(const NewTrainerOptions& options) {
  std::vector<std::string> known;
  for (const fs::path& file : trainers::FindTrainers(trainers::TrainerFolders(options.folders))) {
    try {
      const trainers::Trainer trainer = trainers::LoadTrainer(file);
      if (trainer.result == trainers::Trainer::Result::kPatterns && ReadsSteps(ReadWith(trainer, options.log))) {
        known.push_back(trainer.name);
      }
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kInfrastructure) throw;  // `trainers check` reports other faults
    }
  }
  if (known.empty()) return;
  session::Say("{} already read{} the steps of this log: `ridgeline trainers try {} --log {}` shows what\n",
               Join(known, ", "), known.size() == 1 ? "s" : "", known.front(), ShellWord(options.log));
}

// The figures that the log leaves open, each with its question and with a line.
std::vector<std::string> Questions(const trainers::Proposal& proposal) {
  std::vector<std::string> lines;
  for (const trainers::ProposedMetric& metric : proposal.metrics) {
    if (metric.question.empty()) continue;
    lines.push_back(fmt::format("{}: {}", metric.figure, metric.question));
    lines.push_back("  " + metric.seen);
  }
  return lines;
}

int New(const NewTrainerOptions& options) {
  const fs::path file = options.to.empty() ? fs::path("trainers") / (options.name + ".yaml") : fs::path(options.to);
  if (fs::exists(fs::symlink_status(file))) {
    throw Error(ErrorKind::kUsage, fmt::format("{} is there already, and stays as it is", file.string()),
                "name another file with --to");
  }
  if (!fs::is_regular_file(options.log)) {
    throw Error(ErrorKind::kUsage, fmt::format("--log: there is no file {}", options.log),
                "the log is read several times, so it cannot be a pipe");
  }
  SayKnown(options);
  const trainers::Proposal proposal =
      trainers::ProposeMetrics([&](const auto& feed) { FeedLog(options.log, feed); }, options.answers);
  const std::vector<std::string> questions = Questions(proposal);
  const bool has_figure =
      std::ranges::any_of(proposal.metrics, [](const auto& metric) { return metric.question.empty(); });
  if (!has_figure) {
    throw Error(ErrorKind::kInvalidInput,
                fmt::format("{}: no line has a figure that is certain{}", options.log,
                            questions.empty() ? "" : "\n" + Join(questions, "\n")),
                questions.empty() ? "give a log with several steps, each with its number and its loss, time or rate"
                                  : "answer with the options that are named");
  }
  const std::string text =
      trainers::DefinitionText(options.name, fs::path(options.log).filename().string(), proposal, options.command);
  const trainers::Trainer trainer = trainers::ParseTrainer(text, file);
  const trainers::Reading reading = ReadWith(trainer, options.log);
  SayReading(reading);
  static constexpr auto kAsked = {"step_time", "tokens_per_s", "loss", "device_peak", "parameters"};
  std::vector<std::string> missing;
  for (const char* figure : kAsked) {
    const auto is_it = [&](const auto& metric) { return metric.figure == figure; };
    if (std::ranges::none_of(proposal.metrics, is_it)) missing.emplace_back(figure);
  }
  if (!missing.empty()) session::Say("the log has no: {}\n", Join(missing, ", "));
  for (const std::string& note : proposal.notes) session::Say("note: {}\n", note);
  if (!questions.empty()) session::Say("to answer, before these count (each stands in the file as a comment):\n");
  for (const std::string& line : questions) session::Say("{}\n", line);
  if (file.has_parent_path()) MakeDirs(file.parent_path());
  const Fd created(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (created.get() < 0) ThrowErrno("cannot create " + file.string());
  WriteAll(created.get(), text, file);
  session::Say("written: {}\n", file.string());
  session::Say("next: {} in that file what the program trains (`supports`)\n",
               options.command.empty() ? "write the command, and say" : "say");
  return 0;
}

}  // namespace

std::pair<const CLI::App*, std::function<int()>> AddTrainersNew(CLI::App& trainers) {
  const auto options = std::make_shared<NewTrainerOptions>();
  CLI::App* self = trainers.add_subcommand("new", "propose a definition from a log of your trainer");
  self->add_option("name", options->name, "the trainer's name, as a sweep will have it")->type_name("NAME")->required();
  self->add_option("command", options->command, "behind --: the command, with templates such as {{batch_size}}")
      ->type_name("COMMAND");
  self->add_option("--log", options->log, "what the trainer printed, over several steps")
      ->type_name("FILE")
      ->required();
  self->add_option("--to", options->to, "the file to write, NAME.yaml; default: trainers/NAME.yaml")->type_name("FILE");
  self->add_option("--rates", options->answers.rates,
                   "whether tokens/s are of all ranks or one GPU, if the log does not say")
      ->check(CLI::IsMember({"all", "gpu"}));
  self->add_option("--memory", options->answers.memory, "what the memory figure is, if the log does not say")
      ->check(CLI::IsMember({"device_peak", "device_reserved", "device_used", "host_peak"}));
  self->add_option("--gb", options->answers.gb, "what the program divides by for GB and MB")
      ->check(CLI::IsMember({"1000", "1024"}));
  AddTrainersOption(*self, options->folders);
  self->footer(
      "Finds the lines that repeat, with their steps, losses, times, rates and memory, and shows what the proposed "
      "patterns read. If the log leaves open what a figure means, the figure becomes a question, and a comment in the "
      "file. An existing file is never changed.\n\n"
      "The file has this form (docs/trainer-definitions.md has every key):\n"
      "  name: mine\n"
      "  about: our trainer on our cluster\n"
      "  version: unknown\n"
      "  tested: log\n"
      "  command: [python3, train.py, '--steps={{total_steps}}']\n"
      "  result: patterns\n"
      "  metrics:\n"
      "    - {name: step_time, regex: 'time (?P<value>[0-9.]+) ms',\n"
      "       unit: ms, take: series}\n\n"
      "Examples:\n"
      "  ridgeline trainers new mine --log train.log\n"
      "  ridgeline trainers new mine --log train.log --rates all \\\n"
      "    -- python3 train.py '--steps={{total_steps}}'");
  return {self, [options] { return New(*options); }};
}

}  // namespace ridgeline::cli
