#include "kubernetes/preflight.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kubernetes/manifest.h"
#include "kubernetes/wait.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;

constexpr int kLeastMinor = 20;    // the least minor version of 1.x
constexpr int kIndexedMinor = 24;  // the least that has Indexed Jobs, whose pods find each other by name
constexpr const char* kName = "rl-preflight";

// The rights in driver-role.yaml, except for events, without which only reasons are missing.
struct Right {
  std::string verb;
  std::string group;
  std::string resource;
  std::string subresource = {};
};
constexpr const char* kVerbs[] = {"create", "get", "list", "watch", "delete"};  // of what jobs become
const Right kNeeded[] = {
    {"list", "", "pods"}, {"watch", "", "pods"}, {"get", "", "pods", "log"}, {"create", "", "configmaps"}};
const Right kOfGangs[] = {{"create", "", "services"}, {"create", "", "secrets"}};
const Right kOfPods = {"create", "", "pods"};

Request Ask(const Right& right, const std::string& name_space) {
  const Json attributes = {{"namespace", name_space},
                           {"verb", right.verb},
                           {"group", right.group},
                           {"resource", right.resource},
                           {"subresource", right.subresource}};
  return {"POST",
          "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
          {{"apiVersion", "authorization.k8s.io/v1"},
           {"kind", "SelfSubjectAccessReview"},
           {"spec", {{"resourceAttributes", attributes}}}}};
}

// Returns whether the server allows it. A server that does not say counts as `otherwise`; it can still refuse the
// request itself.
bool May(const Response& response, bool otherwise) {
  return response.ok() ? response.Document().value("/status/allowed"_json_pointer, otherwise) : otherwise;
}

bool HasGangs(const Options& options) { return std::max(options.nodes, options.most_nodes) > 1; }

void CheckVersion(const Json& version, const Options& options) {
  const auto number = [&](const char* name) {
    const auto text = version.value(name, "");  // some servers say "31+"
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  // Other kinds' controllers need their own releases, and say so.
  const bool indexed = HasGangs(options) && options.kind == &JobKind();
  const int least = indexed ? kIndexedMinor : kLeastMinor;
  if (number("major") != 1 || number("minor") >= least) return;
  throw Failure(Failure::Kind::kInfrastructure,
                fmt::format("the cluster is Kubernetes {}, and {} 1.{}", version.value("gitVersion", ""),
                            indexed ? "points of several nodes need" : "Ridgeline needs", least),
                indexed ? "run its points on one node each, or on a newer cluster" : "use a newer cluster");
}

// The shipped files with the rights that are needed.
std::string RoleFiles(const Options& options) {
  std::string files = "driver-role.yaml";
  if (options.kind != &JobKind()) files += fmt::format(" and driver-role-{}.yaml", options.kind->setting);
  if (!options.objects.empty()) files += " and driver-role-gangs.yaml";
  return files;
}

void CheckRights(const std::vector<Right>& rights, const std::vector<Response>& answers, const Options& options,
                 const Cluster& cluster) {
  std::vector<std::string> missing;
  for (size_t i = 0; i < rights.size(); ++i) {
    const Right& right = rights[i];
    if (May(answers.at(i), true)) continue;
    const std::string of = right.subresource.empty() ? "" : "/" + right.subresource;
    missing.push_back(fmt::format("{} {}{}", right.verb, right.resource, of));
  }
  if (missing.empty()) return;
  throw Failure(Failure::Kind::kInfrastructure,
                fmt::format("in namespace {} you may not {}", cluster.name_space(), fmt::join(missing, ", ")),
                fmt::format("the rights that are needed are in {} (share/ridgeline/kubernetes of Ridgeline)",
                            RoleFiles(options)));
}

void CheckKind(const Response& served, const Kind& kind, Cluster& cluster) {
  if (served.ok()) return;
  if (served.code != kNotFound) throw cluster.ToFailure(served, fmt::format("ask for {}", kind.api_version));
  throw Failure(Failure::Kind::kInfrastructure, fmt::format("the cluster has no {} ({})", kind.name, kind.api_version),
                "kind: names what the cluster has; docs/kubernetes.md says which it is for");
}

// Refuses a runtime that restarts failed pods, because that would bias measurements unnoticed. If you have no right to
// read the runtime, this check is left out.
void CheckRuntime(Cluster& cluster, const Options& options) {
  const Runtime runtime = ParseRuntime(options.runtime);
  const Response found = cluster.Call({"GET", runtime.Path(cluster.name_space()), {}});
  if (found.code == kNotFound) {
    throw Failure(Failure::Kind::kInfrastructure, fmt::format("the cluster has no {} {}", runtime.kind, runtime.name),
                  "apply training-runtime.yaml (share/ridgeline/kubernetes of Ridgeline), or name yours: runtime:");
  }
  const std::string why = found.ok() ? WhyNot(found.Document()) : "";
  if (why.empty()) return;
  throw Failure(Failure::Kind::kInvalidInput,
                fmt::format("launch: kubernetes: the {} {} cannot be used: {}", runtime.kind, runtime.name, why),
                "use one that restarts nothing, as training-runtime.yaml does: a silent retry biases a benchmark");
}

// A Job like the sweep's, except for the resources that it asks for.
Manifests Sample(const Options& options) {
  const Json job = {{"key", kName},
                    {"sweep", "preflight"},
                    {"exec", {"ridgeline"}},
                    {"nodes", options.most_nodes},
                    {"cpus", 1},
                    {"memory_bytes", int64_t{1} << 30},
                    {"time_limit_s", 60}};
  return MakeManifests(job, "", options, "", "");
}

// Throws if the dry run shows that such Jobs would be refused permanently, however much of a node their points ask for.
void CheckDryRun(const Response& response, const std::string& what, Cluster& cluster) {
  const std::string message = response.ok() ? "" : response.Message();
  const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
  if (response.ok() || response.code == kConflict || says("does not support dry run")) return;
  if (response.code == kForbidden && !says("cannot create resource") && !says("is being terminated")) {
    const Wait wait = WaitOfRefusal(message);
    if (!wait.hopeless || wait.reason == "limit") return;
    throw Failure(Failure::Kind::kInfrastructure, fmt::format("the cluster refuses {}: {}", what, message), wait.hint);
  }
  Failure failure = cluster.ToFailure(response, what);
  if (failure.kind() != Failure::Kind::kInvalidInput) throw failure;
  throw Failure(failure.kind(), fmt::format("launch: kubernetes: the cluster refuses {}: {}", what, message));
}

}  // namespace

std::string Preflight(Cluster& cluster, const Options& options) {
  std::vector<Right> rights;
  for (const char* verb : kVerbs) rights.push_back({verb, options.kind->group(), options.kind->plural, ""});
  rights.insert(rights.end(), std::begin(kNeeded), std::end(kNeeded));
  for (const Json& object : options.objects) {
    const Resource resource = ResourceOf(object);
    for (const char* verb : {"create", "get"}) rights.push_back({verb, resource.group, resource.plural, ""});
  }
  if (HasGangs(options)) rights.insert(rights.end(), std::begin(kOfGangs), std::end(kOfGangs));
  std::vector<Request> questions = {{"GET", "/version", {}},
                                    {"GET", fmt::format("/apis/{}", options.kind->api_version), {}},
                                    Ask(kOfPods, cluster.name_space())};
  for (const Right& right : rights) questions.push_back(Ask(right, cluster.name_space()));
  std::vector<Response> answers = cluster.CallAll(questions);
  if (!answers[0].ok()) throw cluster.ToFailure(answers[0], "ask the cluster for its version");
  const Json version = answers[0].Document();
  const Response served = answers[1];
  const bool may_create_pods = May(answers[2], false);
  answers.erase(answers.begin(), answers.begin() + 3);
  CheckVersion(version, options);
  CheckKind(served, *options.kind, cluster);
  if (options.kind == FindKind("trainjob")) CheckRuntime(cluster, options);
  CheckRights(rights, answers, options, cluster);

  if (!options.image.empty()) {
    const Manifests sample = Sample(options);
    CheckDryRun(cluster.Call({"POST", cluster.JobsPath() + "?dryRun=All&fieldValidation=Strict", sample.job}),
                fmt::format("such a {}", options.kind->name), cluster);
    for (const Json& object : sample.others) {
      const std::string name = object.at("kind").get<std::string>();
      if (ResourceOf(object).group.empty()) continue;
      const Response answer =
          cluster.Call({"POST", cluster.PathOf(object) + "?dryRun=All&fieldValidation=Strict", object});
      if (answer.code == kNotFound) {
        throw Failure(Failure::Kind::kInfrastructure,
                      fmt::format("the cluster has no {} ({})", name, object.at("apiVersion").get<std::string>()),
                      "objects: names what the cluster has");
      }
      CheckDryRun(answer, fmt::format("such a {}", name), cluster);
    }
    if (may_create_pods) {
      Json pod = sample.pod;
      pod["apiVersion"] = "v1";
      pod["kind"] = "Pod";
      pod["metadata"]["name"] = kName;
      CheckDryRun(cluster.Call({"POST", cluster.CorePath("pods") + "?dryRun=All", pod}),
                  fmt::format("a pod of such a {}", options.kind->name), cluster);
    }
  }
  return fmt::format("Kubernetes {}, namespace {}", version.value("gitVersion", ""), cluster.name_space());
}

}  // namespace ridgeline::kubernetes
