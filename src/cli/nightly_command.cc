// `ridgeline nightly`: measures a sweep every night, and compares it with earlier nights.
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "nightly/accept.h"
#include "nightly/install.h"
#include "nightly/night.h"
#include "session/say.h"
#include "session/session.h"
#include "sweep/sweep.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr const char* kDefaultFolder = "nightly";

struct NightlyOptions {
  nightly::NightOptions night;
  std::string at = "1:00";
  std::string to;
  nightly::AcceptOptions accept;
  bool cron = false;
  bool systemd = false;
  bool scrontab = false;
  bool kubernetes = false;
};

// The options of `nightly run` that the shipped CronJob does not take from the command line.
std::string FirstThatACronJobLacks(const nightly::NightOptions& night) {
  if (night.folder != kDefaultFolder) return "--dir";
  if (!night.launcher.empty()) return "--launcher";
  if (!night.trainers.empty()) return "--trainers";
  if (!night.pinned.empty()) return "--pinned";
  if (!night.base_build.empty()) return "--base-build";
  if (night.work_dir != ".") return "--work-dir";
  return night.alert.empty() ? "" : "--alert";
}

int Install(const NightlyOptions& options) {
  if (options.cron + options.systemd + options.scrontab + options.kubernetes != 1) {
    throw Error(ErrorKind::kUsage, "nightly: install needs a scheduler",
                "say --cron, --systemd, --scrontab or --kubernetes");
  }
  if (const std::string lacks = FirstThatACronJobLacks(options.night); options.kubernetes && !lacks.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("nightly: install --kubernetes has no {}", lacks),
                "it takes the sweep, --at and --to: add other options to the CronJob that it writes");
  }
  const nightly::NightOptions night = options.night.Anywhere();
  nightly::NightlySchedule schedule;
  nightly::SetTimeOfDay(options.at, schedule);
  schedule.name = session::LoadSweepFor(night.sweep, night.launcher, night.trainers).name;
  schedule.sweep_text = ReadFile(night.sweep);
  schedule.command = {
      ProgramDir() / "ridgeline", "nightly", "run", night.sweep, "--dir", night.folder, "--work-dir", night.work_dir};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) schedule.command.insert(schedule.command.end(), {option, value});
  };
  add("--launcher", night.launcher);
  for (const fs::path& trainers : night.trainers) add("--trainers", trainers);
  add("--pinned", night.pinned);
  add("--base-build", night.base_build);
  add("--alert", night.alert);
  if (options.systemd) {
    const nightly::SystemdUnits units = nightly::SystemdText(schedule);
    if (options.to.empty()) {
      session::Write(units.service + "\n" + units.timer);
      return 0;
    }
    MakeDirs(options.to);
    WriteFileAtomic(fs::path(options.to) / "ridgeline-nightly.service", units.service);
    WriteFileAtomic(fs::path(options.to) / "ridgeline-nightly.timer", units.timer);
    session::Say("{}: ridgeline-nightly.service, ridgeline-nightly.timer\n", options.to);
    return 0;
  }
  const std::string text = options.cron ? nightly::CronText(schedule)
                           : options.scrontab
                               ? nightly::ScrontabText(schedule)
                               : nightly::KubernetesText(schedule, ReadFile(DataDir("kubernetes") / "nightly.yaml"));
  if (options.to.empty()) {
    session::Write(text);
    return 0;
  }
  WriteFileAtomic(options.to, text);
  session::Say("{}: a night of {} every day at {}\n", options.to, schedule.name, options.at);
  return 0;
}

void AddFolderOption(CLI::App& command, NightlyOptions& options) {
  command.add_option("--dir", options.night.folder, "the folder for the database, the nights and the pages")
      ->capture_default_str()
      ->type_name("DIR");
}

void AddNightOptions(CLI::App& command, NightlyOptions& options) {
  command.add_option("sweep", options.night.sweep, "the sweep's file")->required()->type_name("SWEEP");
  AddFolderOption(command, options);
  command.add_option("--launcher", options.night.launcher, "where jobs run (default: the sweep's launcher)")
      ->type_name("NAME");
  AddTrainersOption(command, options.night.trainers);
  command
      .add_option("--pinned", options.night.pinned,
                  "a campaign or commit that stays the baseline, to detect slow creep")
      ->type_name("BASE");
  command
      .add_option("--base-build", options.night.base_build,
                  "a folder with older programs; suspects are measured again in turns with them")
      ->type_name("DIR");
  command.add_option("--work-dir", options.night.work_dir, "the folder in which the sweep runs; default: this one")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  command
      .add_option("--alert", options.night.alert,
                  "a program to start after a bad night, with the night's name, verdict and folder")
      ->type_name("PROGRAM");
}

}  // namespace

Action NightlyCommand(CLI::App& self) {
  const auto options = std::make_shared<NightlyOptions>();
  options->night.folder = kDefaultFolder;
  options->night.work_dir = ".";
  self.require_subcommand(1);
  CLI::App* run = self.add_subcommand("run", "run a sweep for tonight, check it with the gate, and render the reports");
  AddNightOptions(*run, *options);
  run->get_option("--base-build")->check(CLI::ExistingDirectory);
  run->footer(
      "Runs the sweep as a campaign of its own, night-DATE, compares it with earlier nights, and renders "
      "every report into DIR/pages. DIR/nights/NAME has its logs and the gate's output, and "
      "DIR/nightly.prom has metrics. To resume a night that was interrupted, or that the infrastructure "
      "cost, run the command again on the same day.\n\n"
      "Exit codes: 0 pass, 1 regressed, 2 the sweep was refused, 3 infrastructure, 4 inconclusive.\n\n"
      "Example:\n"
      "  ridgeline nightly run sweeps/nightly.yaml --dir /srv/nightly \\\n"
      "    --alert /usr/local/bin/page-me");
  CLI::App* status = self.add_subcommand("status", "show the nights, and when the last good one was");
  AddFolderOption(*status, *options);
  status->footer(
      "Example:\n"
      "  ridgeline nightly status --dir /srv/nightly");
  CLI::App* accept = self.add_subcommand("accept", "accept what a night found worse");
  accept->add_option("night", options->accept.night, "the night, as `nightly status` names it")
      ->required()
      ->type_name("NIGHT");
  CLI::Option* all = accept->add_flag("--all", options->accept.all, "every point that the night found worse");
  accept->add_option("--point", options->accept.points, "one point, as the gate names it; repeatable")
      ->excludes(all)
      ->allow_extra_args(false)
      ->type_name("NAME");
  accept->add_option("--reason", options->accept.reason, "why, in one line; the gate shows it")->type_name("TEXT");
  accept->add_option("--author", options->accept.author, "who accepts it (default: git's user.name, else the login)")
      ->type_name("NAME");
  accept->add_flag("--undo", options->accept.undo, "take an acceptance back");
  AddFolderOption(*accept, *options);
  accept->footer(
      "A regression is in no baseline, and every night reports it until it is fixed. If you accept it, "
      "earlier measurements count as if they had the change, and so does the base build. Later nights are "
      "red only if they are worse than that. The gate shows the change beside the point, with the reason "
      "and the author. --undo takes it back for later nights, for all points or those of --point.\n\n"
      "Examples:\n"
      "  ridgeline nightly accept night-2026-02-01 --point batch_size=2 \\\n"
      "    --reason 'checks for NaN in each step'\n"
      "  ridgeline nightly accept night-2026-02-01 --all --reason 'new driver'");
  CLI::App* install = self.add_subcommand("install", "print what makes a scheduler run it every night");
  AddNightOptions(*install, *options);
  install->add_flag("--cron", options->cron, "for crontab");
  install->add_flag("--systemd", options->systemd, "a user's service and timer");
  install->add_flag("--scrontab", options->scrontab, "for Slurm's scrontab");
  install->add_flag("--kubernetes", options->kubernetes, "a CronJob with what it needs");
  install->add_option("--at", options->at, "the time of day; in UTC for systemd and Kubernetes")
      ->capture_default_str()
      ->type_name("H:MM");
  AddToOption(*install, options->to, "FILE", "the file to write, or the folder for --systemd (default: print it)");
  install->footer(
      "Changes nothing by itself. Read what it writes, and install that.\n\n"
      "Example:\n"
      "  ridgeline nightly install sweeps/nightly.yaml --dir /srv/nightly --cron");
  self.footer(
      "Example:\n"
      "  ridgeline nightly run sweeps/nightly.yaml");
  return [options, run, status, accept] {
    if (run->parsed()) return nightly::RunNight(options->night);
    if (accept->parsed())
      return nightly::AcceptNight(options->accept, nightly::NightlyPlaces(options->night.folder).nights,
                                  options->night.folder);
    return status->parsed() ? nightly::ShowNights(options->night.folder) : Install(*options);
  };
}

}  // namespace ridgeline::cli
