#include "slurm/config.h"

#include <signal.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <regex>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/options.h"
#include "slurm/passed_on.h"

namespace ridgeline::slurm {
namespace {

using plugin::Into;
using plugin::Json;
using plugin::Option;

constexpr int64_t kMost = 1'000'000'000;
constexpr int64_t kMib = int64_t{1} << 20;

constexpr size_t kLongest = 2000;  // of a text that is matched: std::regex recurses as deep as the text is long

constexpr int64_t kPollShare = 100;
constexpr int64_t kMostPollPauseMs = 30'000;  // even if one question took long: the next may not

int64_t Count(const Option& option) { return option.Count(1, kMost); }

// Slurm counts memory in MiB and time in minutes.
int64_t MemoryMib(const Option& option) {
  if (option.value() == 0) return kWholeNode;  // as for sbatch
  return (option.Bytes("1MiB", "1000TiB") + kMib - 1) / kMib;
}
int64_t TimeMinutes(const Option& option) { return (option.Seconds("1s", "20000d") + 59) / 60; }

std::vector<std::string> Lines(const Option& option, const char* must) {
  std::vector<std::string> lines;
  for (const Json& line : option.value().is_array() ? option.value() : Json::array({option.value()})) {
    if (!line.is_string() || line.get_ref<const std::string&>().empty() ||
        line.get_ref<const std::string&>().find_first_of(std::string("\0\n", 2)) != std::string::npos) {
      option.Refuse(must);
    }
    lines.push_back(line.get<std::string>());
  }
  return lines;
}

std::vector<std::string> Prolog(const Option& option) { return Lines(option, "a list of shell lines"); }
std::vector<std::string> Modules(const Option& option) {
  return Lines(option, "a list of modules, such as [gcc/13.2, cuda/13.0]");
}

// srun and Apptainer separate mounts by commas, and the two sides of a mount by colons.
std::vector<std::string> Mounts(const Option& option) {
  constexpr const char* kMust = "a list of folders, such as [/data, \"/scratch/me:/scratch\"]";
  std::vector<std::string> mounts = Lines(option, kMust);
  for (const std::string& mount : mounts) {
    const size_t end = std::min(mount.find(':'), mount.size());
    const size_t flags = std::min(mount.find(':', std::min(end + 1, mount.size())), mount.size());
    const std::string_view from = std::string_view(mount).substr(0, end);
    const std::string_view to = end < mount.size() ? std::string_view(mount).substr(end + 1, flags - end - 1) : from;
    const std::string_view how = std::string_view(mount).substr(std::min(flags + 1, mount.size()));
    const bool is_plain =
        std::all_of(how.begin(), how.end(), [](unsigned char c) { return std::isalpha(c) != 0 || c == '+'; });
    if (!from.starts_with('/') || !to.starts_with('/') || !CanBeMounted(from) || !CanBeMounted(to) || !is_plain ||
        mount.ends_with(':')) {
      option.Refuse(
          kMust, "FOLDER, FOLDER:AS or FOLDER:AS:ro, both beginning with /, without , \" $ ` \\ or control characters");
    }
  }
  return mounts;
}

// A file is recognized by its beginning, / or a dot. pyxis and Apptainer look for any other name in a registry. If a
// file here has a plain name, that file is meant.
std::string Image(const Option& option) {
  std::string image = option.Text();
  if (image.starts_with('/') || image.starts_with('.')) return image;
  const auto ends = [&](const char* suffix) { return image.ends_with(suffix); };
  const bool has_place = image.find("://") != std::string::npos;  // for example that of oras://
  std::error_code none;
  const bool is_plain = !image.starts_with('-') && image.find_first_of(" \t\"'`;&|<>()\\") == std::string::npos;
  if (is_plain && !has_place && std::filesystem::is_regular_file(image, none)) return "./" + image;
  const bool is_file = image.starts_with('~') || (!has_place && (ends(".sqsh") || ends(".squashfs") || ends(".sif")));
  if (is_file || !is_plain) {
    option.Refuse("an image, such as nvcr.io/nvidia/pytorch:26.09-py3, or a file",
                  "a file's name begins with / or ./: /lustre/me/images/pytorch.sqsh");
  }
  return image;
}

ContainerRuntime Runtime(const Option& option) {
  const Json& value = option.value();
  if (value == "auto") return ContainerRuntime::kAuto;
  if (value == "pyxis") return ContainerRuntime::kPyxis;
  if (value == "apptainer") return ContainerRuntime::kApptainer;
  option.Refuse("auto, pyxis or apptainer");
}

// Returns "8" or "h100:8".
std::string Gpus(const Option& option) {
  if (option.value().is_number()) return std::to_string(option.Count(1, 999'999));
  static const std::regex kGpus("[A-Za-z0-9_.-]+:[1-9][0-9]{0,5}");
  std::string text = option.Words();
  if (text.size() > kLongest || !std::regex_match(text, kGpus)) {
    option.Refuse("how many GPUs a node has for the job, such as 8 or \"h100:8\"", "`sinfo -o '%P %G'` lists theirs");
  }
  return text;
}

// Only jobs that must all be waited for. Slurm's `?` (any of them) cannot be joined with the dependency that
// max_parallel adds.
std::string Dependency(const Option& option) {
  static const std::regex kDependency(
      "(after|afterany|afternotok|afterok|aftercorr)(:[0-9]+(_[0-9]+)?([+][0-9]+)?)+"
      "(,(after|afterany|afternotok|afterok|aftercorr)(:[0-9]+(_[0-9]+)?([+][0-9]+)?)+)*");
  std::string text = option.Text();
  if (text.size() > kLongest || !std::regex_match(text, kDependency)) {
    option.Refuse("jobs to wait for, such as \"afterok:1234\" or \"afterany:12:13,afterok:14\"",
                  "after, afterany, afternotok, afterok or aftercorr, and the jobs' ids");
  }
  return text;
}

// A sweep's figures are from one machine, and Slurm's ids from one cluster.
std::string Cluster(const Option& option) {
  std::string name = option.Text();
  if (name == "all" || name.find(',') != std::string::npos) {
    option.Refuse("the name of one cluster", "make a sweep for each; `sacctmgr show cluster` lists them");
  }
  return name;
}

std::string Mail(const Option& option) {
  if (option.value() == true) return "true";
  return option.Text();
}

ClientKind KindOfClient(const Option& option) {
  const Json& value = option.value();
  if (value == "auto") return ClientKind::kAuto;
  if (value == "agent") return ClientKind::kAgent;
  if (value == "tools") return ClientKind::kTools;
  option.Refuse("auto, agent or tools");
}

int64_t PollInterval(const Option& option) { return option.Seconds("1s", "1h"); }

const plugin::Settings<Options>& Own() {
  static const plugin::Settings<Options> kSettings = {
      {"partition", Into(&Options::partition, &Option::Text)},
      {"account", Into(&Options::account, &Option::Text)},
      {"qos", Into(&Options::qos, &Option::Text)},
      {"reservation", Into(&Options::reservation, &Option::Text)},
      {"constraint", Into(&Options::constraint, &Option::Text)},
      {"nodelist", Into(&Options::nodelist, &Option::Text)},
      {"exclude", Into(&Options::exclude, &Option::Text)},
      {"clusters", Into(&Options::cluster, Cluster)},
      {"nodes", Into(&Options::nodes, Count)},
      {"ntasks", Into(&Options::ntasks, Count)},
      {"cpus", Into(&Options::cpus, Count)},
      {"memory", Into(&Options::memory_mib, MemoryMib)},
      {"gpus", Into(&Options::gpus, Gpus)},
      {"gpu_bind", Into(&Options::gpu_bind, &Option::Text)},
      {"gres", Into(&Options::gres, &Option::Text)},
      {"time", Into(&Options::time_minutes, TimeMinutes)},
      {"exclusive", Into(&Options::exclusive, &Option::Flag)},
      {"requeue", Into(&Options::requeue, &Option::Flag)},
      {"signal",
       [](const Option& option, Options& to) {
         to.signal = option.Text();
         ParseWarning(to.signal);
       }},
      {"dependency", Into(&Options::dependency, Dependency)},
      {"mail", Into(&Options::mail, Mail)},
      {"modules", Into(&Options::modules, Modules)},
      {"prolog", Into(&Options::prolog, Prolog)},
      {"container", Into(&Options::container, Image)},
      {"container_mounts", Into(&Options::container_mounts, Mounts)},
      {"container_runtime", Into(&Options::container_runtime, Runtime)},
      {"sbatch", Into(&Options::sbatch, PassedOn)},
      {"srun", Into(&Options::srun, PassedOn)},
      {"client", Into(&Options::client, KindOfClient)},
      {"max_queued", Into(&Options::max_queued, Count)},
      {"poll_interval", Into(&Options::poll_interval_s, PollInterval)},
  };
  return kSettings;
}

}  // namespace

bool CanBeMounted(std::string_view folder) {
  return std::none_of(folder.begin(), folder.end(), [](unsigned char c) {
    return std::iscntrl(c) != 0 || std::string_view(",:\"$`\\").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

int64_t PollPauseMs(const Options& options, int64_t took_ms) {
  const int64_t least_ms = options.poll_interval_s * 1000;
  return std::clamp(kPollShare * took_ms, least_ms, std::max(least_ms, kMostPollPauseMs));
}

Options ReadOptions(const Json& config) {
  Options options;
  options.throttle = plugin::CountUnderLaunch(config, "max_parallel");
  plugin::ReadSettings(config, "slurm", Own(), "any other option of sbatch goes under sbatch:", options);
  return options;
}

Options OptionsOf(const Json& job, const Options& session) {
  const auto config = job.find("config");
  if (config == job.end()) return session;
  Options options = ReadOptions(*config);
  plugin::Refusals refusals;
  for (const auto& [name, same] :
       {std::pair{"client", options.client == session.client},
        std::pair{"clusters", options.cluster == session.cluster}, std::pair{"mail", options.mail == session.mail},
        std::pair{"max_queued", options.max_queued == session.max_queued},
        std::pair{"poll_interval", options.poll_interval_s == session.poll_interval_s}}) {
    if (!same) refusals.Try([name = name] { plugin::RefuseOfTheSession(fmt::format("slurm: {}", name)); });
  }
  refusals.ThrowIfAny();
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
  constexpr int64_t kMostLeadS = 65535;  // Slurm's own limit
  warning.signal = known != kSignals.end() ? known->second : static_cast<int>(number(name, 64));
  warning.lead_s = at == std::string_view::npos ? kSlurmsLeadS : number(rest.substr(at + 1), kMostLeadS);
  if (warning.signal == 0 || warning.lead_s == 0) {
    Option("slurm: signal", text).Refuse("such as USR1@120 or B:USR1@120", "a trainer saves its state on USR1");
  }
  return warning;
}

}  // namespace ridgeline::slurm
