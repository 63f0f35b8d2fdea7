#include "slurm/config.h"

#include <signal.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/options.h"

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::Into;
using plugin::Json;
using plugin::Option;

constexpr int64_t kMost = 1'000'000'000;
constexpr int64_t kMib = int64_t{1} << 20;

constexpr int64_t kPollShare = 100;
constexpr int64_t kMostPollPauseMs = 30'000;  // even where one question took long: the next may not

int64_t Count(const Option& option) { return option.Count(1, kMost); }

// Slurm counts memory in MiB and time in minutes.
int64_t MemoryMib(const Option& option) { return (option.Bytes("1MiB", "1000TiB") + kMib - 1) / kMib; }
int64_t TimeMinutes(const Option& option) { return (option.Seconds("1s", "20000d") + 59) / 60; }

std::vector<std::string> Lines(const Option& option) {
  std::vector<std::string> lines;
  for (const Json& line : option.value().is_array() ? option.value() : Json::array({option.value()})) {
    if (!line.is_string() ||
        line.get_ref<const std::string&>().find_first_of(std::string("\0\n", 2)) != std::string::npos) {
      option.Refuse("a list of shell lines");
    }
    lines.push_back(line.get<std::string>());
  }
  return lines;
}

// Options that would take away what finds a job again, or that have a setting of their own.
std::string WhyNotOurs(const std::string& option) {
  static const std::map<std::string, std::string> kOwn = {{"job-name", ""},
                                                          {"comment", ""},
                                                          {"array", "max_parallel is the array's throttle"},
                                                          {"output", ""},
                                                          {"error", ""},
                                                          {"open-mode", ""},
                                                          {"parsable", ""},
                                                          {"wrap", ""},
                                                          {"wait", ""},
                                                          {"dependency", ""},
                                                          {"chdir", ""},
                                                          {"export", ""},
                                                          {"export-file", ""},
                                                          {"test-only", ""},
                                                          {"quiet", ""},
                                                          {"partition", "say partition:"},
                                                          {"account", "say account:"},
                                                          {"qos", "say qos:"},
                                                          {"reservation", "say reservation:"},
                                                          {"constraint", "say constraint:"},
                                                          {"nodelist", "say nodelist:"},
                                                          {"nodes", "say nodes:"},
                                                          {"ntasks", "say ntasks:"},
                                                          {"cpus-per-task", "say cpus:"},
                                                          {"mem", "say memory:"},
                                                          {"gres", "say gres: or gpus:"},
                                                          {"time", "say time:"},
                                                          {"exclusive", "say exclusive:"},
                                                          {"requeue", "say requeue:"},
                                                          {"no-requeue", "say requeue:"},
                                                          {"signal", "say signal:"}};
  const auto it = kOwn.find(option);
  if (it == kOwn.end()) return {};
  return it->second.empty() ? "it is set by the launcher, which finds its jobs by it" : it->second;
}

// {"mail-type": "END", "overcommit": true} -> "--mail-type=END", "--overcommit"
std::vector<std::string> LongOptions(const Option& setting) {
  std::vector<std::string> options;
  for (const auto& [option, argument] : setting.Mapping().items()) {
    const bool plain =
        !option.empty() && option.front() != '-' && std::all_of(option.begin(), option.end(), [](unsigned char c) {
          return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-';
        });
    if (!plain) Option(setting.name(), option).Refuse("a long option, without its dashes");
    if (const std::string why = WhyNotOurs(option); !why.empty()) {
      throw Failure(Failure::Kind::kInvalidInput,
                    fmt::format("launch: {}: {} cannot be set here", setting.name(), option), why);
    }
    options.push_back(argument == true
                          ? "--" + option
                          : fmt::format("--{}={}", option, Option(setting.name() + ": " + option, argument).Text()));
  }
  return options;
}

ClientKind Client(const Option& option) {
  const Json& value = option.value();
  if (value == "auto") return ClientKind::kAuto;
  if (value == "agent") return ClientKind::kAgent;
  if (value == "tools") return ClientKind::kTools;
  option.Refuse("auto, agent or tools");
}

int64_t PollInterval(const Option& option) { return option.Seconds("1s", "1h"); }

void AddGres(std::string& gres, const std::string& more) { gres += (gres.empty() ? "" : ",") + more; }

const plugin::Settings<Options>& Own() {
  static const plugin::Settings<Options> kSettings = {
      {"partition", Into(&Options::partition, &Option::Text)},
      {"account", Into(&Options::account, &Option::Text)},
      {"qos", Into(&Options::qos, &Option::Text)},
      {"reservation", Into(&Options::reservation, &Option::Text)},
      {"constraint", Into(&Options::constraint, &Option::Text)},
      {"nodelist", Into(&Options::nodelist, &Option::Text)},
      {"nodes", Into(&Options::nodes, Count)},
      {"ntasks", Into(&Options::ntasks, Count)},
      {"cpus", Into(&Options::cpus, Count)},
      {"memory", Into(&Options::memory_mib, MemoryMib)},
      {"time", Into(&Options::time_minutes, TimeMinutes)},
      {"exclusive", Into(&Options::exclusive, &Option::Flag)},
      {"requeue", Into(&Options::requeue, &Option::Flag)},
      {"signal", Into(&Options::signal, &Option::Text)},
      {"container_image", Into(&Options::container_image, &Option::Text)},
      {"prolog", Into(&Options::prolog, Lines)},
      {"sbatch", Into(&Options::sbatch, LongOptions)},
      {"srun", Into(&Options::srun, LongOptions)},
      {"client", Into(&Options::client, Client)},
      {"max_queued", Into(&Options::max_queued, Count)},
      {"poll_interval", Into(&Options::poll_interval_s, PollInterval)},
      {"gres", [](const Option& option, Options& to) { AddGres(to.gres, option.Text()); }},
      {"gpus", [](const Option& option, Options& to) { AddGres(to.gres, fmt::format("gpu:{}", Count(option))); }},
  };
  return kSettings;
}

}  // namespace

int64_t PollPauseMs(const Options& options, int64_t took_ms) {
  const int64_t least_ms = options.poll_interval_s * 1000;
  return std::clamp(kPollShare * took_ms, least_ms, std::max(least_ms, kMostPollPauseMs));
}

Options ReadOptions(const Json& config) {
  Options options;
  options.throttle = plugin::CountUnderLaunch(config, "max_parallel");
  plugin::ReadSettings(config, "slurm", Own(), "any other option of sbatch goes under sbatch:", options);
  if (!options.signal.empty()) ParseWarning(options.signal);
  return options;
}

Options OptionsOf(const Json& job, const Options& session) {
  const auto config = job.find("config");
  if (config == job.end()) return session;
  Options options = ReadOptions(*config);
  for (const auto& [name, same] : {std::pair{"client", options.client == session.client},
                                   std::pair{"max_queued", options.max_queued == session.max_queued},
                                   std::pair{"poll_interval", options.poll_interval_s == session.poll_interval_s}}) {
    if (!same) plugin::RefuseOfTheSession(fmt::format("slurm: {}", name));
  }
  options.throttle = session.throttle;
  return options;
}

Warning ParseWarning(const std::string& text) {
  static const std::map<std::string, int> kSignals = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM},
                                                      {"INT", SIGINT},   {"HUP", SIGHUP},   {"CONT", SIGCONT}};
  constexpr int64_t kSlurmsLeadS = 60;
  Warning warning;
  std::string_view rest = text;
  if (rest.starts_with("B:")) {
    warning.batch_only = true;
    rest.remove_prefix(2);
  }
  const size_t at = rest.find('@');
  std::string name(rest.substr(0, at));
  if (name.starts_with("SIG")) name.erase(0, 3);
  const auto known = kSignals.find(name);
  const auto number = [](std::string_view digits, int64_t most) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value > 0 && value <= most ? value : 0;
  };
  constexpr int64_t kMostLeadS = 65535;  // Slurm's
  warning.signal = known != kSignals.end() ? known->second : static_cast<int>(number(name, 64));
  warning.lead_s = at == std::string_view::npos ? kSlurmsLeadS : number(rest.substr(at + 1), kMostLeadS);
  if (warning.signal == 0 || warning.lead_s == 0) {
    Option("slurm: signal", text).Refuse("such as USR1@120 or B:USR1@120", "a trainer saves its state on USR1");
  }
  return warning;
}

}  // namespace ridgeline::slurm
