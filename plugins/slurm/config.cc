#include "slurm/config.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ridgeline::slurm {
namespace {

using plugin::Failure;
using plugin::Json;

constexpr int64_t kMost = 1'000'000'000;

[[noreturn]] void Refuse(const std::string& name, const Json& value, const std::string& must,
                         const std::string& hint = {}) {
  throw Failure(Failure::Kind::kInvalidInput,
                fmt::format("launch: slurm: {} is {}, and must be {}", name, value.dump(), must), hint);
}

// Into an option of sbatch, which has no way to write a line end.
bool IsOneLine(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c) != 0; });
}

std::string Text(const std::string& name, const Json& value) {
  if (value.is_number_integer()) return value.dump();
  if (!value.is_string() || value.get_ref<const std::string&>().empty() || !IsOneLine(value.get<std::string>())) {
    Refuse(name, value, "one line of text");
  }
  return value.get<std::string>();
}

int64_t Count(const std::string& name, const Json& value, int64_t min = 1) {
  if (!value.is_number_integer() || value < min || value > kMost) {
    Refuse(name, value, fmt::format("a whole number from {}", min));
  }
  return value.get<int64_t>();
}

bool Flag(const std::string& name, const Json& value) {
  if (!value.is_boolean()) Refuse(name, value, "true or false");
  return value.get<bool>();
}

// "90.5GB" -> 90.5, "GB". Nothing where the text does not begin with a number.
std::optional<std::pair<double, std::string>> NumberAndUnit(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  std::string unit(end, static_cast<size_t>(text.data() + text.size() - end));
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  return std::pair(number, unit);
}

// As sweeps write sizes: decimal units, and binary ones with an i.
int64_t MemoryMib(const std::string& name, const Json& value) {
  static const std::map<std::string, double> kUnits = {{"", 1},
                                                       {"B", 1},
                                                       {"kB", 1e3},
                                                       {"KB", 1e3},
                                                       {"MB", 1e6},
                                                       {"GB", 1e9},
                                                       {"TB", 1e12},
                                                       {"KiB", 1024.},
                                                       {"MiB", 1048576.0},
                                                       {"GiB", 1073741824.0},
                                                       {"TiB", 1099511627776.0}};
  const auto parsed = NumberAndUnit(value.is_string() ? value.get<std::string>() : value.dump());
  const auto unit = parsed ? kUnits.find(parsed->second) : kUnits.end();
  if (unit == kUnits.end()) Refuse(name, value, "a size such as 64GB or 512MiB");
  const double mib = parsed->first * unit->second / 1048576.0;
  if (mib < 1 || mib > static_cast<double>(kMost)) Refuse(name, value, "at least 1MiB");
  return static_cast<int64_t>(mib + 0.999);
}

// Slurm's D-HH:MM:SS, HH:MM:SS and MM:SS; nothing for any other text.
std::optional<double> ClockSeconds(const std::string& text) {
  int days = 0;
  int parts[3] = {};
  int count = 0;
  const char* at = text.data();
  const char* const last = at + text.size();
  if (const size_t dash = text.find('-'); dash != std::string::npos) {
    if (std::from_chars(at, at + dash, days).ptr != at + dash) return std::nullopt;
    at += dash + 1;
  } else if (text.find(':') == std::string::npos) {
    return std::nullopt;
  }
  while (count < 3) {
    const auto [end, error] = std::from_chars(at, last, parts[count++]);
    if (error != std::errc()) return std::nullopt;
    if (end == last) {
      at = last;
      break;
    }
    if (*end != ':') return std::nullopt;
    at = end + 1;
  }
  if (at != last) return std::nullopt;
  const bool from_hours = count == 3 || text.find('-') != std::string::npos;
  const int hours = from_hours ? parts[0] : 0;
  const int minutes = from_hours ? parts[1] : parts[0];
  const int seconds = from_hours ? parts[2] : parts[1];
  return ((days * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds;
}

int64_t TimeMinutes(const std::string& name, const Json& value) {
  static const std::map<std::string, double> kUnits = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  std::optional<double> seconds = ClockSeconds(text);
  if (const auto parsed = NumberAndUnit(text); !seconds && parsed && kUnits.contains(parsed->second)) {
    seconds = parsed->first * kUnits.at(parsed->second);
  }
  if (!seconds || *seconds < 1 || *seconds > 1e9) Refuse(name, value, "a time such as 90s, 30m, 2h or 1-12:00:00");
  return static_cast<int64_t>((*seconds + 59) / 60);
}

std::vector<std::string> Lines(const std::string& name, const Json& value) {
  std::vector<std::string> lines;
  for (const Json& line : value.is_array() ? value : Json::array({value})) {
    if (!line.is_string() ||
        line.get_ref<const std::string&>().find_first_of(std::string("\0\n", 2)) != std::string::npos) {
      Refuse(name, value, "a list of shell lines");
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
std::vector<std::string> LongOptions(const std::string& name, const Json& value) {
  if (!value.is_object()) Refuse(name, value, fmt::format("a mapping of {}'s options, without their dashes", name));
  std::vector<std::string> options;
  for (const auto& [option, argument] : value.items()) {
    const bool plain =
        !option.empty() && option.front() != '-' && std::all_of(option.begin(), option.end(), [](unsigned char c) {
          return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-';
        });
    if (!plain) Refuse(name, option, "a long option, without its dashes");
    if (const std::string why = WhyNotOurs(option); !why.empty()) {
      throw Failure(Failure::Kind::kInvalidInput, fmt::format("launch: slurm: {}: {} cannot be set here", name, option),
                    why);
    }
    options.push_back(argument == true ? "--" + option
                                       : fmt::format("--{}={}", option, Text(name + ": " + option, argument)));
  }
  return options;
}

ClientKind Client(const std::string& name, const Json& value) {
  if (value == "auto") return ClientKind::kAuto;
  if (value == "agent") return ClientKind::kAgent;
  if (value == "tools") return ClientKind::kTools;
  Refuse(name, value, "auto, agent or tools");
}

void AddGres(std::string& gres, const std::string& more) { gres += (gres.empty() ? "" : ",") + more; }

using Reader = std::function<void(const std::string& name, const Json& value, Options& to)>;

template <typename Member, typename Read>
Reader Into(Member member, Read read) {
  return [=](const std::string& name, const Json& value, Options& to) { to.*member = read(name, value); };
}

const std::map<std::string, Reader>& Readers() {
  const auto count = [](const std::string& name, const Json& value) { return Count(name, value); };
  static const std::map<std::string, Reader> kReaders = {
      {"partition", Into(&Options::partition, Text)},
      {"account", Into(&Options::account, Text)},
      {"qos", Into(&Options::qos, Text)},
      {"reservation", Into(&Options::reservation, Text)},
      {"constraint", Into(&Options::constraint, Text)},
      {"nodelist", Into(&Options::nodelist, Text)},
      {"nodes", Into(&Options::nodes, count)},
      {"ntasks", Into(&Options::ntasks, count)},
      {"cpus", Into(&Options::cpus, count)},
      {"memory", Into(&Options::memory_mib, MemoryMib)},
      {"time", Into(&Options::time_minutes, TimeMinutes)},
      {"exclusive", Into(&Options::exclusive, Flag)},
      {"requeue", Into(&Options::requeue, Flag)},
      {"signal", Into(&Options::signal, Text)},
      {"container_image", Into(&Options::container_image, Text)},
      {"prolog", Into(&Options::prolog, Lines)},
      {"sbatch", Into(&Options::sbatch, LongOptions)},
      {"srun", Into(&Options::srun, LongOptions)},
      {"client", Into(&Options::client, Client)},
      {"gres", [](const std::string& name, const Json& value, Options& to) { AddGres(to.gres, Text(name, value)); }},
      {"gpus", [](const std::string& name, const Json& value,
                  Options& to) { AddGres(to.gres, fmt::format("gpu:{}", Count(name, value))); }},
  };
  return kReaders;
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& entry : Readers()) names.push_back(entry.first);
  return names;
}

}  // namespace

Options ReadOptions(const Json& config) {
  Options options;
  if (const auto throttle = config.find("max_parallel"); throttle != config.end()) {
    options.throttle = Count("max_parallel", *throttle, 0);
  }
  const auto own = config.find("slurm");
  if (own == config.end()) return options;
  if (!own->is_object()) throw Failure(Failure::Kind::kInvalidInput, "launch: slurm: is a mapping, not " + own->dump());
  for (const auto& [name, value] : own->items()) {
    const auto reader = Readers().find(name);
    if (reader == Readers().end()) {
      throw Failure(
          Failure::Kind::kInvalidInput, fmt::format("launch: slurm: there is no setting '{}'", name),
          fmt::format("settings: {}; any other option of sbatch goes under sbatch:", fmt::join(Names(), ", ")));
    }
    reader->second(name, value, options);
  }
  if (!options.signal.empty()) ParseWarning(options.signal);
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
    Refuse("signal", text, "such as USR1@120 or B:USR1@120", "a trainer saves its state on USR1");
  }
  return warning;
}

}  // namespace ridgeline::slurm
