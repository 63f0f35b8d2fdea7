#include "kubernetes/config.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/options.h"
#include "kubernetes/quantity.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Into;
using plugin::Json;
using plugin::Option;

constexpr int64_t kMostGpus = 1024;
constexpr int64_t kMostNodes = 10'000;
constexpr int64_t kMostUser = 2'147'483'647;

constexpr plugin::Notation kQuantity = {"an amount such as 500m, 4, 64Gi or 64G", "Kubernetes writes 64GB as 64G",
                                        ParseQuantity};

// Returns the amount as it was written, which is what the cluster gets.
std::string Cores(const Option& option) {
  option.Amount(kQuantity, "1m", "1M");
  return option.Words();
}
std::string Memory(const Option& option) {
  option.Amount(kQuantity, "4Ki", "1000Ti");  // at least a page of memory
  return option.Words();
}

std::map<std::string, std::string> Texts(const Option& option) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, text] : option.Mapping().items()) {
    // A value may have several lines, or be empty.
    if (!text.is_string() && !text.is_number_integer()) {
      Option(option.name() + ": " + key, text).Refuse("text", "write it in quotes: Kubernetes takes nothing else here");
    }
    texts[key] = text.is_string() ? text.get<std::string>() : text.dump();
  }
  return texts;
}

std::map<std::string, std::string> Pages(const Option& option) {
  std::map<std::string, std::string> amounts;
  for (const auto& [size, amount] : option.Mapping().items()) {
    amounts[size] = Memory(Option(option.name() + ": " + size, amount));
  }
  return amounts;
}

std::map<std::string, int64_t> Devices(const Option& option) {
  std::map<std::string, int64_t> counts;
  for (const auto& [name, count] : option.Mapping().items()) {
    if (name.find('/') == std::string::npos) {
      Option(option.name(), name).Refuse("a device's resource, DOMAIN/NAME", "cpu, memory and hugepages have settings");
    }
    counts[name] = Option(option.name() + ": " + name, count).Count(1, kMostGpus);
  }
  return counts;
}

std::vector<std::string> Names(const Option& option) {
  if (!option.value().is_array()) return {option.Text()};
  std::vector<std::string> names;
  for (const Json& item : option.value()) names.push_back(Option(option.name(), item).Text());
  return names;
}

const Kind* ReadKind(const Option& option) {
  if (const Kind* kind = FindKind(option.Text())) return kind;
  std::vector<std::string> names;
  for (const Kind& kind : Kinds()) names.emplace_back(kind.setting);
  const std::string last = " or " + std::exchange(names.back(), "");
  names.pop_back();
  option.Refuse(fmt::format("{}{}", fmt::join(names, ", "), last), "the cluster must have it: docs/kubernetes.md");
}

const Json& List(const Option& option) {
  if (!option.value().is_array()) option.Refuse("a list");
  return option.value();
}

bool AreScheduled(const Option& option) {
  const std::string text = option.Text();
  if (text != "scheduled" && text != "one_at_a_time") {
    option.Refuse("scheduled or one_at_a_time", "scheduled: the cluster starts all pods of a gang or none");
  }
  return text == "scheduled";
}

// Objects as in a manifest. Their names are the job's, so they say none.
Json ReadObjects(const Option& option) {
  for (const Json& object : List(option)) {
    const auto is_text = [&](const char* name) { return object.contains(name) && object.at(name).is_string(); };
    if (!object.is_object() || !is_text("apiVersion") || !is_text("kind")) {
      Option(option.name(), object).Refuse("an object with apiVersion and kind, such as a PodGroup");
    }
    const Json metadata = object.value("metadata", Json::object());
    if (!metadata.is_object() || metadata.contains("name") || metadata.contains("namespace")) {
      Option(option.name(), object).Refuse("an object without metadata: name", "its name and namespace are the job's");
    }
  }
  return option.value();
}

int64_t TtlSeconds(const Option& option) { return option.Seconds("3600s", "2147483647s"); }
int64_t LimitSeconds(const Option& option) { return option.Seconds("1s", "365d"); }

// Reads {name: …, mount: /path, read_only: …, sub_path: …} with the volume itself as in a pod.
Mount ReadMount(const Option& option) {
  Json volume = option.Mapping();
  const auto member = [&](const char* name) { return Option(option.name() + ": " + name, volume.at(name)); };
  Mount mount;
  if (!volume.contains("mount") || !volume.contains("name")) {
    option.Refuse("{name, mount: /path, …} and what the volume is",
                  "for example {name: data, mount: /data, persistentVolumeClaim: {claimName: data}}");
  }
  mount.path = member("mount").Text();
  if (volume.contains("sub_path")) mount.sub_path = member("sub_path").Text();
  if (volume.contains("read_only")) mount.read_only = member("read_only").Flag();
  for (const char* ours : {"mount", "sub_path", "read_only"}) volume.erase(ours);
  if (volume.size() != 2) {
    option.Refuse("one volume", "besides name, mount, sub_path and read_only it has one key, its kind");
  }
  mount.volume = std::move(volume);
  return mount;
}

void ReadOutput(const Option& option, Options& to) {
  for (const auto& [key, value] : option.Mapping().items()) {
    const Option item(option.name() + ": " + key, value);
    if (key == "claim") {
      to.output_claim = item.Text();
    } else if (key == "sub_path") {
      to.output_sub_path = item.Text();
    } else if (key == "path") {
      to.output_path = item.Text();
    } else {
      throw Failure(Failure::Kind::kInvalidInput, fmt::format("launch: {}: has no '{}'", option.name(), key),
                    "it has claim, sub_path and path");
    }
  }
  if (to.output_claim.empty()) option.Refuse("{claim: NAME}", "the PersistentVolumeClaim that keeps the output");
}

template <typename Member>
auto CountInto(Member member, int64_t least, int64_t most) {
  return Into(member, [=](const Option& option) { return option.Count(least, most); });
}

const plugin::Settings<Options>& Own() {
  static const plugin::Settings<Options> kSettings = {
      {"context", Into(&Options::context, &Option::Text)},
      {"kubeconfig", Into(&Options::kubeconfig, &Option::Text)},
      {"namespace", Into(&Options::name_space, &Option::Text)},
      {"kind", Into(&Options::kind, ReadKind)},
      {"runtime", Into(&Options::runtime, &Option::Text)},
      {"image", Into(&Options::image, &Option::Text)},
      {"trainer_image", Into(&Options::trainer_image, &Option::Text)},
      {"image_pull_policy", Into(&Options::image_pull_policy, &Option::Text)},
      {"image_pull_secrets", Into(&Options::image_pull_secrets, Names)},
      {"program", Into(&Options::program, &Option::Text)},
      {"nodes", CountInto(&Options::nodes, 1, kMostNodes)},
      {"cpu", Into(&Options::cpu, Cores)},
      {"memory", Into(&Options::memory, Memory)},
      {"gpus", CountInto(&Options::gpus, 0, kMostGpus)},
      {"gpu_resource", Into(&Options::gpu_resource, &Option::Text)},
      {"efa", CountInto(&Options::efa, 0, kMostGpus)},
      {"devices", Into(&Options::devices, Devices)},
      {"hugepages", Into(&Options::hugepages, Pages)},
      {"shared_memory", Into(&Options::shared_memory, Memory)},
      {"ephemeral_storage", Into(&Options::ephemeral_storage, Memory)},
      {"node_selector", Into(&Options::node_selector, &Option::Mapping)},
      {"tolerations", Into(&Options::tolerations, List)},
      {"priority_class", Into(&Options::priority_class, &Option::Text)},
      {"service_account", Into(&Options::service_account, &Option::Text)},
      {"queue", Into(&Options::queue, &Option::Text)},
      {"gangs", Into(&Options::gangs_scheduled, AreScheduled)},
      {"objects", Into(&Options::objects, ReadObjects)},
      {"exclusive", Into(&Options::exclusive, &Option::Flag)},
      {"same_topology", Into(&Options::same_topology, &Option::Text)},
      {"volumes",
       [](const Option& option, Options& to) {
         for (const Json& volume : List(option)) to.volumes.push_back(ReadMount(Option(option.name(), volume)));
       }},
      {"env", Into(&Options::env, Texts)},
      {"labels", Into(&Options::labels, Texts)},
      {"annotations", Into(&Options::annotations, Texts)},
      {"user", CountInto(&Options::user, 0, kMostUser)},
      {"ttl", Into(&Options::ttl_s, TtlSeconds)},
      {"start_limit", Into(&Options::start_limit_s, LimitSeconds)},
      {"idle_limit", Into(&Options::idle_limit_s, LimitSeconds)},
      {"output", ReadOutput},
      {"patch", Into(&Options::patch, &Option::Mapping)},
  };
  return kSettings;
}

}  // namespace

// Without a queue or a gang scheduler, nothing keeps the pods of two gangs from waiting for each other, each with half
// of the nodes.
int64_t Window(const Options& options) {
  const bool whole = !options.queue.empty() || options.gangs_scheduled;
  if (std::max(options.nodes, options.most_nodes) > 1 && !whole) return 1;
  return options.window > 0 ? options.window : kDefaultWindow;
}

Options ReadOptions(const Json& config) {
  Options options;
  options.window = plugin::CountUnderLaunch(config, "max_parallel");
  options.most_nodes = std::max<int64_t>(1, plugin::CountUnderLaunch(config, "nodes"));
  plugin::ReadSettings(config, "kubernetes", Own(), "anything else of a pod goes under patch:", options);
  return options;
}

Options OptionsOf(const Json& job, const Options& session) {
  const auto config = job.find("config");
  Options options = config == job.end() ? session : ReadOptions(*config);
  plugin::Refusals refusals;
  for (const auto& [name, same] :
       {std::pair{"context", options.context == session.context},
        std::pair{"kubeconfig", options.kubeconfig == session.kubeconfig},
        std::pair{"namespace", options.name_space == session.name_space},
        std::pair{"kind", options.kind == session.kind},
        std::pair{"nodes", options.nodes == session.nodes},  // the count under launch: itself may differ
        std::pair{"start_limit", options.start_limit_s == session.start_limit_s},
        std::pair{"idle_limit", options.idle_limit_s == session.idle_limit_s},
        std::pair{"ttl", options.ttl_s == session.ttl_s},
        std::pair{"output", options.output_path == session.output_path}}) {
    if (!same) refusals.Try([name = name] { plugin::RefuseOfTheSession(fmt::format("kubernetes: {}", name)); });
  }
  refusals.ThrowIfAny();
  if (options.nodes == 0) options.nodes = std::max<int64_t>(1, job.value("nodes", int64_t{1}));
  return options;
}

}  // namespace ridgeline::kubernetes
