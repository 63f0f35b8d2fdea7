#include "kubernetes/config.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;

constexpr int64_t kMostGpus = 1024;
constexpr int64_t kMostNodes = 10'000;
constexpr int64_t kMostUser = 2'147'483'647;
constexpr int64_t kLeastTtlS = 3600;
constexpr int64_t kMostTtlS = 2'147'483'647;

[[noreturn]] void Refuse(const std::string& name, const Json& value, const std::string& must,
                         const std::string& hint = {}) {
  throw Failure(Failure::Kind::kInvalidInput,
                fmt::format("launch: kubernetes: {} is {}, and must be {}", name, value.dump(), must), hint);
}

std::string Text(const std::string& name, const Json& value) {
  const bool printable =
      value.is_string() && !value.get_ref<const std::string&>().empty() &&
      std::none_of(value.get_ref<const std::string&>().begin(), value.get_ref<const std::string&>().end(),
                   [](unsigned char c) { return std::iscntrl(c) != 0; });
  if (!printable) Refuse(name, value, "one line of text", "write it in quotes where YAML takes it for something else");
  return value.get<std::string>();
}

// "4", or 4.
std::string Amount(const std::string& name, const Json& value) {
  return value.is_number() ? value.dump() : Text(name, value);
}

int64_t Count(const std::string& name, const Json& value, int64_t min, int64_t max) {
  if (!value.is_number_integer() || value < min || value > max) {
    Refuse(name, value, fmt::format("a whole number from {} to {}", min, max));
  }
  return value.get<int64_t>();
}

const Json& Mapping(const std::string& name, const Json& value) {
  if (!value.is_object()) Refuse(name, value, "a mapping");
  return value;
}

std::map<std::string, std::string> Texts(const std::string& name, const Json& value) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, text] : Mapping(name, value).items()) {
    // A value may have several lines, or none.
    if (!text.is_string() && !text.is_number_integer()) {
      Refuse(name + ": " + key, text, "text", "write it in quotes: Kubernetes takes nothing else here");
    }
    texts[key] = text.is_string() ? text.get<std::string>() : text.dump();
  }
  return texts;
}

std::map<std::string, std::string> Amounts(const std::string& name, const Json& value) {
  std::map<std::string, std::string> amounts;
  for (const auto& [key, amount] : Mapping(name, value).items()) amounts[key] = Amount(name + ": " + key, amount);
  return amounts;
}

std::vector<std::string> Names(const std::string& name, const Json& value) {
  std::vector<std::string> names;
  for (const Json& item : value.is_array() ? value : Json::array({value})) names.push_back(Text(name, item));
  return names;
}

int64_t Seconds(const std::string& name, const Json& value, int64_t min, int64_t max) {
  static const std::map<std::string, int64_t> kUnits = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
  const std::string text = Amount(name, value);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = kUnits.find(std::string(end, static_cast<size_t>(text.data() + text.size() - end)));
  if (error != std::errc() || unit == kUnits.end() || number < 0 || number > max / unit->second ||
      number * unit->second < min) {
    Refuse(name, value, fmt::format("a time such as 12h or 7d, at least {}s", min));
  }
  return number * unit->second;
}

// {name: …, mount: /path, read_only: …, sub_path: …} and the volume itself as a pod has it.
Mount ReadMount(const Json& value) {
  const std::string name = "volumes";
  Json volume = Mapping(name, value);
  Mount mount;
  if (!volume.contains("mount") || !volume.contains("name")) {
    Refuse(name, value, "{name, mount: /path, …} and what the volume is",
           "for example {name: data, mount: /data, persistentVolumeClaim: {claimName: data}}");
  }
  mount.path = Text("volumes: mount", volume.at("mount"));
  if (volume.contains("sub_path")) mount.sub_path = Text("volumes: sub_path", volume.at("sub_path"));
  if (const auto flag = volume.find("read_only"); flag != volume.end()) {
    if (!flag->is_boolean()) Refuse("volumes: read_only", *flag, "true or false");
    mount.read_only = flag->get<bool>();
  }
  for (const char* ours : {"mount", "sub_path", "read_only"}) volume.erase(ours);
  if (volume.size() != 2) {
    Refuse(name, value, "one volume", "besides name, mount, sub_path and read_only it has one key, its kind");
  }
  mount.volume = std::move(volume);
  return mount;
}

void ReadOutput(const std::string& name, const Json& value, Options& to) {
  for (const auto& [key, item] : Mapping(name, value).items()) {
    if (key == "claim") {
      to.output_claim = Text("output: claim", item);
    } else if (key == "sub_path") {
      to.output_sub_path = Text("output: sub_path", item);
    } else if (key == "path") {
      to.output_path = Text("output: path", item);
    } else {
      throw Failure(Failure::Kind::kInvalidInput, fmt::format("launch: kubernetes: output: has no '{}'", key),
                    "it has claim, sub_path and path");
    }
  }
  if (to.output_claim.empty()) Refuse(name, value, "{claim: NAME}", "the PersistentVolumeClaim that keeps the output");
}

using Reader = std::function<void(const std::string& name, const Json& value, Options& to)>;

template <typename Member, typename Read>
Reader Into(Member member, Read read) {
  return [=](const std::string& name, const Json& value, Options& to) { to.*member = read(name, value); };
}
template <typename Member>
Reader CountInto(Member member, int64_t min, int64_t max) {
  return Into(member, [=](const std::string& name, const Json& value) { return Count(name, value, min, max); });
}

const std::map<std::string, Reader>& Readers() {
  static const std::map<std::string, Reader> kReaders = {
      {"context", Into(&Options::context, Text)},
      {"kubeconfig", Into(&Options::kubeconfig, Text)},
      {"namespace", Into(&Options::name_space, Text)},
      {"image", Into(&Options::image, Text)},
      {"image_pull_policy", Into(&Options::image_pull_policy, Text)},
      {"image_pull_secrets", Into(&Options::image_pull_secrets, Names)},
      {"program", Into(&Options::program, Text)},
      {"nodes", CountInto(&Options::nodes, 1, kMostNodes)},
      {"cpu", Into(&Options::cpu, Amount)},
      {"memory", Into(&Options::memory, Amount)},
      {"gpus", CountInto(&Options::gpus, 0, kMostGpus)},
      {"gpu_resource", Into(&Options::gpu_resource, Text)},
      {"efa", CountInto(&Options::efa, 0, kMostGpus)},
      {"hugepages", Into(&Options::hugepages, Amounts)},
      {"shared_memory", Into(&Options::shared_memory, Amount)},
      {"node_selector", Into(&Options::node_selector, Mapping)},
      {"tolerations",
       [](const std::string& name, const Json& value, Options& to) {
         if (!value.is_array()) Refuse(name, value, "a list of tolerations, as a pod has them");
         to.tolerations = value;
       }},
      {"priority_class", Into(&Options::priority_class, Text)},
      {"service_account", Into(&Options::service_account, Text)},
      {"queue", Into(&Options::queue, Text)},
      {"volumes",
       [](const std::string& name, const Json& value, Options& to) {
         if (!value.is_array()) Refuse(name, value, "a list");
         for (const Json& volume : value) to.volumes.push_back(ReadMount(volume));
       }},
      {"env", Into(&Options::env, Texts)},
      {"labels", Into(&Options::labels, Texts)},
      {"annotations", Into(&Options::annotations, Texts)},
      {"user", CountInto(&Options::user, 1, kMostUser)},
      {"ttl", Into(&Options::ttl_s, [](const std::string& name,
                                       const Json& value) { return Seconds(name, value, kLeastTtlS, kMostTtlS); })},
      {"output", ReadOutput},
      {"patch", Into(&Options::patch, Mapping)},
  };
  return kReaders;
}

}  // namespace

Options ReadOptions(const Json& config) {
  Options options;
  if (const auto window = config.find("max_parallel"); window != config.end()) {
    options.window = Count("max_parallel", *window, 0, 100'000);
  }
  const auto own = config.find("kubernetes");
  if (own != config.end()) {
    if (!own->is_object()) {
      throw Failure(Failure::Kind::kInvalidInput, "launch: kubernetes: is a mapping, not " + own->dump());
    }
    for (const auto& [name, value] : own->items()) {
      const auto reader = Readers().find(name);
      if (reader == Readers().end()) {
        std::vector<std::string> known;
        for (const auto& entry : Readers()) known.push_back(entry.first);
        throw Failure(Failure::Kind::kInvalidInput, fmt::format("launch: kubernetes: there is no setting '{}'", name),
                      fmt::format("settings: {}; anything else of a pod goes under patch:", fmt::join(known, ", ")));
      }
      reader->second(name, value, options);
    }
  }
  return options;
}

}  // namespace ridgeline::kubernetes
