// The pure parts of the Kubernetes launcher. tests/cluster has a real API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/files.h"
#include "kubernetes/config.h"
#include "kubernetes/manifest.h"
#include "kubernetes/merge.h"
#include "kubernetes/quantity.h"
#include "kubernetes/yaml.h"
#include "sweep/profile.h"
#include "sweep/sweep.h"

namespace ridgeline::kubernetes {
namespace {

using plugin::Failure;
using plugin::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kImage = "registry.example/team/ridgeline:1.0";
constexpr const char* kSecret = "a secret of 32 bytes, or of more";

Json Job(const Json& more = Json::object()) {
  Json job = {{"key", "rl-0123456789abcdef0123456789abcdef"},
              {"sweep", "Nightly, 8B & up"},
              {"job_file", "/out/jobs/rl-1/job.json"},
              {"job_dir", "/out/jobs/rl-1"},
              {"exec", {"/here/ridgeline", "exec", "/out/jobs/rl-1/job.json"}}};
  job.update(more);
  return job;
}

// Reads `launch: kubernetes:`, with an image.
Options Read(Json settings) {
  if (!settings.contains("image")) settings["image"] = kImage;
  return ReadOptions({{"kubernetes", std::move(settings)}});
}
Manifests Make(const Json& settings, const Json& job = Job(), const std::string& job_file = "{}\n") {
  return MakeManifests(job, job_file, Read(settings), "", kSecret);
}
const Json& PodOf(const Manifests& made) { return made.job.at("spec").at("template").at("spec"); }
const Json& ContainerOf(const Manifests& made) { return PodOf(made).at("containers").at(0); }

std::string Refused(const Json& settings, const Json& job = Job()) {
  try {
    Make(settings, job);
    return "taken";
  } catch (const Failure& e) {
    EXPECT_EQ(e.kind(), Failure::Kind::kInvalidInput);
    return std::string(e.what()) + " / " + e.ToJson().at("hint").get<std::string>();
  }
}

// ---- a job's own configuration

TEST(KubernetesJob, ItsOwnConfigurationIsWhatItIsMadeOf) {
  const Json config = {{"kubernetes", {{"image", kImage}, {"env", {{"A", "b"}}}, {"cpu", "4"}}}};
  const Manifests made = Make({{"cpu", "2"}, {"priority_class", "low"}}, Job({{"config", config}, {"nodes", 2}}));
  EXPECT_EQ(ContainerOf(made).at("resources").at("limits").at("cpu"), "4");
  EXPECT_FALSE(PodOf(made).contains("priorityClassName"));
  EXPECT_EQ(made.job.at("spec").at("completions"), 2);
  EXPECT_FALSE(Make({}).job.at("spec").contains("completions"));
}

TEST(KubernetesJob, RefusesAJobForAnotherClusterOrNamespace) {
  for (const Json& other : {Json{{"namespace", "other"}}, Json{{"context", "other"}}, Json{{"nodes", 2}},
                            Json{{"start_limit", "5m"}}, Json{{"idle_limit", "5m"}}}) {
    Json settings = {{"image", kImage}};
    settings.update(other);
    EXPECT_THAT(Refused({}, Job({{"config", {{"kubernetes", settings}}}})),
                HasSubstr("is the same for all points of a sweep"))
        << other;
  }
}

TEST(KubernetesJob, ItsDeadlinesAreThoseOfItsStartAndOfItsRun) {
  const Json limited = Job({{"time_limit_s", 600}});
  const auto deadlines = [&](const Json& settings) {
    const Manifests made = Make(settings, limited);
    return std::pair(made.job.at("spec").at("activeDeadlineSeconds").get<int64_t>(),
                     PodOf(made).at("activeDeadlineSeconds").get<int64_t>());
  };
  EXPECT_EQ(deadlines({{"start_limit", "2h"}, {"idle_limit", "5m"}}), std::pair(600 + 7200L, 600 + 300L));
  EXPECT_EQ(deadlines(Json::object()), std::pair(600 + 7 * 86'400L, 600 + 15 * 60L));
  EXPECT_FALSE(PodOf(Make(Json::object())).contains("activeDeadlineSeconds"));
}

TEST(KubernetesJob, GoesToNodesOfItsOwnThatHaveNotFailed) {
  const auto affinity = [](const Json& settings, const Json& more) {
    return PodOf(Make(settings, Job(more))).value("affinity", Json());
  };
  const Json none = Json::object();
  EXPECT_EQ(affinity(none, none), Json());
  const auto pods = [](const char* label, const char* value, const char* topology) -> Json {
    return {{"labelSelector", {{"matchLabels", {{label, value}}}}}, {"topologyKey", topology}};
  };
  const auto list = [](const Json& item) { return Json::array({item}); };
  const char* const required = "requiredDuringSchedulingIgnoredDuringExecution";
  const char* const key = "rl-0123456789abcdef0123456789abcdef";
  EXPECT_EQ(affinity({{"same_topology", "topology.kubernetes.io/zone"}}, {{"nodes", 2}}),
            Json({{"podAntiAffinity", {{required, list(pods("ridgeline.dev/job", key, "kubernetes.io/hostname"))}}},
                  {"podAffinity", {{required, list(pods("ridgeline.dev/job", key, "topology.kubernetes.io/zone"))}}}}));
  Json of_ours = pods("app.kubernetes.io/managed-by", "ridgeline", "kubernetes.io/hostname");
  of_ours["namespaceSelector"] = none;
  EXPECT_EQ(affinity({{"exclusive", true}}, none), Json({{"podAntiAffinity", {{required, list(of_ours)}}}}));

  const auto terms = [&](const std::vector<Json>& of) -> Json {
    Json all = Json::array();
    for (const Json& expressions : of) all.push_back({{"matchExpressions", expressions}});
    return {{"nodeAffinity", {{required, {{"nodeSelectorTerms", all}}}}}};
  };
  const Json failed = {{"key", "kubernetes.io/hostname"}, {"operator", "NotIn"}, {"values", {"n1", "n2"}}};
  const Json avoid = {{"avoid", {"n1", "n2"}}};
  EXPECT_EQ(affinity(none, avoid), terms({list(failed)}));
  EXPECT_EQ(affinity(none, {{"avoid", Json::array()}}), Json());
  // In addition to a patch, in each of its alternatives.
  const Json a = {{"key", "pool"}, {"operator", "In"}, {"values", {"a"}}};
  const Json b = {{"key", "pool"}, {"operator", "In"}, {"values", {"b"}}};
  EXPECT_EQ(affinity({{"patch", {{"spec", {{"affinity", terms({list(a), list(b)})}}}}}}, avoid),
            terms({Json::array({a, failed}), Json::array({b, failed})}));
  EXPECT_THAT(Refused({{"patch", {{"spec", {{"affinity", {"a"}}}}}}}, Job(avoid)),
              HasSubstr("patch: makes no affinity"));
}

TEST(KubernetesJob, LocksMemoryOnlyWhereThatHasAnEffect) {
  const auto added = [](const Json& settings) {
    return ContainerOf(Make(settings)).at("securityContext").at("capabilities").value("add", Json());
  };
  EXPECT_EQ(added({{"efa", 4}}), Json()) << "no capability is of use to anybody but root";
  EXPECT_EQ(added({{"user", 0}}), Json());
  EXPECT_EQ(added({{"user", 0}, {"efa", 4}}), Json::array({"IPC_LOCK"}));
  EXPECT_EQ(added({{"user", 0}, {"devices", {{"rdma/hca", 1}}}}), Json::array({"IPC_LOCK"}));
  const Json context = PodOf(Make({{"user", 0}})).at("securityContext");
  EXPECT_EQ(context.at("runAsUser"), 0);
  EXPECT_EQ(context.at("runAsNonRoot"), false);
  EXPECT_EQ(PodOf(Make(Json::object())).at("securityContext").at("runAsNonRoot"), true);
}

TEST(KubernetesWindow, JobsOfSeveralNodesAreOneAtATimeUnlessKueueQueuesThem) {
  EXPECT_EQ(Window(ReadOptions({{"nodes", 2}})), 1);
  EXPECT_EQ(Window(ReadOptions({{"nodes", 2}, {"kubernetes", {{"queue", "q"}}}})), kDefaultWindow);
  EXPECT_EQ(Window(ReadOptions({{"nodes", 1}})), kDefaultWindow);
}

// ---- amounts, YAML, merging

TEST(KubernetesQuantity, ReadsWhatKubernetesWrites) {
  EXPECT_EQ(ParseQuantity("4"), 4);
  EXPECT_EQ(ParseQuantity("500m"), 0.5);
  EXPECT_EQ(ParseQuantity("1.5Gi"), 1.5 * (1 << 30));
  EXPECT_EQ(ParseQuantity("64G"), 64e9);
  EXPECT_EQ(ParseQuantity("1e3"), 1000);
  for (const char* wrong : {"", "64GB", "four", "-1", "1 Gi", "Gi", "inf", "nan", "0x10"}) {
    EXPECT_FALSE(ParseQuantity(wrong)) << wrong;
  }
  EXPECT_EQ(FormatBytes(int64_t{64} << 30), "64Gi");
  EXPECT_EQ(FormatBytes(1536 << 20), "1536Mi");
  EXPECT_EQ(FormatBytes(1000), "1000");
  EXPECT_EQ(FormatBytes(0), "0");
}

TEST(KubernetesYaml, WritesNothingThatReadsAsSomethingElse) {
  EXPECT_EQ(ToYaml({{"a", "plain"}, {"b", 1}, {"c", true}, {"d", nullptr}}), "a: plain\nb: 1\nc: true\nd: null\n");
  for (const char* text : {"yes", "On", "NULL", "1e3", "0x1f",       "12:30", "",  " a", "a: b", "- a",
                           "#",   "*a", "~",    "a b", "2026-01-01", ".5",    "y", "@x", "%x",   "é"}) {
    const std::string yaml = ToYaml(Json::array({text}));
    EXPECT_EQ(yaml.substr(0, 3), "- \"") << yaml;
  }
  EXPECT_EQ(ToYaml({{"a", "tab\tquote\"\\"}}), "a: \"tab\\tquote\\\"\\\\\"\n");
  EXPECT_EQ(ToYaml({{"a", "one\n  two\n\nthree\n"}}), "a: |\n  one\n    two\n\n  three\n");
  EXPECT_EQ(ToYaml({{"a", "\\u\u00e9\U0001F600\u2028\U0010FFFF"}}),
            "a: \"\\\\u\\u00e9\\U0001f600\\u2028\\U0010ffff\"\n");
  EXPECT_EQ(ToYaml({{"a", " one\ntwo\n"}}), "a: \" one\\ntwo\\n\"\n");
  EXPECT_EQ(ToYaml({{"a", "one\ntwo"}}), "a: \"one\\ntwo\"\n");
  EXPECT_EQ(ToYaml({{"list", {{{"a", 1}, {"b", {{"c", {1, 2}}}}}, Json::object(), Json::array()}}}),
            "list:\n- a: 1\n  b:\n    c:\n    - 1\n    - 2\n- {}\n- []\n");
}

TEST(KubernetesMerge, MergesAsKubectlDoes) {
  const Json base = {{"spec",
                      {{"containers", {{{"name", "ridgeline"}, {"env", {{{"name", "A"}, {"value", "1"}}}}}}},
                       {"tolerations", {{{"key", "a"}}}},
                       {"nodeSelector", {{"x", "1"}}}}}};
  const Json merged = MergeTemplate(
      base, {{"spec",
              {{"containers",
                {{{"name", "side"}, {"image", "b"}},
                 {{"name", "ridgeline"}, {"env", {{{"name", "B"}, {"value", "2"}}, {{"name", "A"}, {"value", "3"}}}}}}},
               {"tolerations", {{{"key", "b"}}}},
               {"nodeSelector", {{"y", "2"}, {"x", nullptr}}},
               {"hostNetwork", true}}}});
  const Json& spec = merged.at("spec");
  EXPECT_EQ(spec.at("containers").size(), 2U);
  EXPECT_EQ(spec.at("containers").at(0).at("env"),
            Json::array({{{"name", "A"}, {"value", "3"}}, {{"name", "B"}, {"value", "2"}}}));
  EXPECT_EQ(spec.at("tolerations"), Json::array({{{"key", "b"}}}));  // a list without names replaces the other
  EXPECT_EQ(spec.at("nodeSelector"), Json({{"y", "2"}}));
  EXPECT_EQ(spec.at("hostNetwork"), true);
}

TEST(KubernetesMerge, TakesAwayAndReplaces) {
  const Json base = {{"volumes", {{{"name", "tmp"}, {"emptyDir", Json::object()}}, {{"name", "b"}}}},
                     {"a", {{"x", 1}}}};
  EXPECT_EQ(MergeTemplate(base, {{"volumes", {{{"name", "tmp"}, {"$patch", "delete"}}}}}).at("volumes"),
            Json::array({{{"name", "b"}}}));
  EXPECT_EQ(MergeTemplate(base, {{"a", {{"$patch", "replace"}, {"y", 2}}}}).at("a"), Json({{"y", 2}}));
  EXPECT_FALSE(MergeTemplate(base, {{"a", {{"$patch", "delete"}}}}).contains("a"));
  EXPECT_THROW(MergeTemplate(base, {{"volumes", {{{"emptyDir", Json::object()}}}}}), Failure);
  EXPECT_THROW(MergeTemplate(base, {{"volumes", {{"tmp", 1}}}}), Failure);
}

// ---- launch: kubernetes:

TEST(KubernetesConfig, NamesWhatItDoesNotKnow) {
  EXPECT_THAT(Refused({{"gpu", 8}}), AllOf(HasSubstr("no setting 'gpu'"), HasSubstr("gpus"), HasSubstr("patch:")));
  EXPECT_THAT(Refused({{"gpus", 0.5}}), HasSubstr("gpus is 0.5, and must be a whole number"));
  EXPECT_THAT(Refused({{"env", {{"A", true}}}}), AllOf(HasSubstr("env: A is true"), HasSubstr("quotes")));
  EXPECT_THAT(Refused({{"ttl", "5m"}}), HasSubstr("at least 3600s"));
  EXPECT_THAT(Refused({{"user", -1}}), HasSubstr("user is -1"));
  EXPECT_THAT(Refused({{"devices", {{"cpu", 1}}}}), HasSubstr("a device's resource"));
  EXPECT_THAT(Refused({{"output", {{"pvc", "x"}}}}), HasSubstr("output: has no 'pvc'"));
  EXPECT_THAT(Refused({{"volumes", {{{"name", "a"}}}}}), HasSubstr("mount"));
  EXPECT_THAT(Refused({{"volumes", "x"}}), HasSubstr("must be a list"));
  EXPECT_THAT(Refused({{"namespace", "a\nb"}}), HasSubstr("one line of text"));
  EXPECT_THROW(MakeManifests(Job(), "", ReadOptions({{"kubernetes", Json::object()}}), "", kSecret), Failure);
}

// Each is a rule that clusters enforce but no schema shows.
TEST(KubernetesLint, TellsAtPlanTimeWhatAClusterRefuses) {
  const std::pair<Json, const char*> wrong[] = {
      {{{"image", "Registry/UPPER:1"}}, "must be an image"},
      {{{"image", "ridgeline"}}, "one image, today and tomorrow"},
      {{{"image", "ridgeline:latest"}}, "one image, today and tomorrow"},
      {{{"image", "a@sha256:123"}}, "must be an image"},
      {{{"namespace", "My.Space"}}, "lower-case letters"},
      {{{"memory", "64GB"}}, "writes 64GB as 64G"},
      {{{"cpu", "four"}}, "must be an amount"},
      {{{"hugepages", {{"2Mi", "3Mi"}}}, {"memory", "1Gi"}}, "multiple of the page size"},
      {{{"hugepages", {{"2Mi", "4Mi"}}}}, "hugepages alone are refused"},
      {{{"hugepages", {{"big", "4Mi"}}}, {"cpu", 1}}, "page size"},
      {{{"env", {{"1A", "x"}}}}, "a variable with a name"},
      {{{"env", {{"HOME", "/x"}}}}, "there once"},
      {{{"labels", {{"team", "a b"}}}}, "a label's value"},
      {{{"labels", {{"a/b/c", "x"}}}}, "a label's name"},
      {{{"annotations", {{"big", std::string(300'000, 'x')}}}}, "at most 256 KiB"},
      {{{"node_selector", {{"a", std::string(64, 'x')}}}}, "a label's value"},
      {{{"patch", {{"spec", {{"nodeSelector", {"a"}}}}}}}, "a mapping"},
      {{{"tolerations", {"a"}}}, "key, operator, value, effect"},
      {{{"tolerations", {{{"operator", "exists"}}}}}, "operator Exists or Equal"},
      {{{"tolerations", {{{"key", "a"}, {"effect", "NoSchedule"}, {"tolerationSeconds", 3}}}}}, "NoExecute"},
      {{{"priority_class", "High Priority"}}, "an object's name"},
      {{{"service_account", "a/b"}}, "an object's name"},
      {{{"image_pull_policy", "always"}}, "Always, IfNotPresent or Never"},
      {{{"queue", "a b"}}, "a label's value"},
      {{{"memory", "1Gi"}, {"shared_memory", "2Gi"}}, "more than shared_memory"},
      {{{"volumes", {{{"name", "a"}, {"mount", "data"}, {"emptyDir", Json::object()}}}}}, "absolute mountPath"},
      {{{"volumes", {{{"name", "tmp"}, {"mount", "/data"}, {"emptyDir", {{"medium", "Memory"}}}}}}}, "there once"},
      {{{"volumes", {{{"name", "a"}, {"mount", "/ridgeline/work"}, {"emptyDir", Json::object()}}}}}, "mounted once"},
      {{{"patch", {{"spec", {{"restartPolicy", "OnFailure"}}}}}}, "a silent retry"},
      {{{"patch", {{"spec", {{"activeDeadlineSeconds", 0}}}}}}, "seconds from 1"},
      {{{"patch", {{"spec", {{"containers", {{{"name", "ridgeline"}, {"args", "x y"}}}}}}}}}, "a list of texts"},
      {{{"patch", {{"spec", {{"containers", {{{"name", "ridgeline"}, {"$patch", "delete"}}}}}}}}},
       "the container ridgeline"},
      {{{"patch", {{"spec", {{"containers", 3}}}}}}, "stands over"},
      {{{"patch",
         {{"spec",
           {{"containers", {{{"name", "ridgeline"}, {"resources", {{"requests", {{"nvidia.com/gpu", "1.5"}}}}}}}}}}}}},
       "a whole number"},
      {{{"gpus", 8},
        {"patch",
         {{"spec",
           {{"containers", {{{"name", "ridgeline"}, {"resources", {{"requests", {{"nvidia.com/gpu", "4"}}}}}}}}}}}}},
       "the same as a request and as a limit"},
  };
  for (const auto& [settings, why] : wrong) EXPECT_THAT(Refused(settings), HasSubstr(why)) << settings.dump();
  EXPECT_THAT(Refused(Json::object(), Job({{"key", "rl-" + std::string(70, 'a')}})), HasSubstr("at most 63"));
  EXPECT_THAT(Refused({{"nodes", 100}}, Job({{"key", "rl-" + std::string(58, 'a')}})), HasSubstr("its last pod"));
  EXPECT_THAT(Refused({{"same_topology", "a zone"}}, Job({{"nodes", 2}})), HasSubstr("a label's name"));
  EXPECT_THAT(Refused(Json::object(), Job({{"save_time_s", 120}})), HasSubstr("would go with the pod"));
  EXPECT_EQ(Refused({{"output", {{"claim", "out"}}}}, Job({{"save_time_s", 120}})), "taken");
}

TEST(KubernetesLint, AGangOnTheNodesNetworkNeedsItsDnsAndAPortOfItsOwn) {
  Json spec = {{"hostNetwork", true}};
  const auto refused = [&](int nodes) { return Refused({{"patch", {{"spec", spec}}}}, Job({{"nodes", nodes}})); };
  EXPECT_EQ(refused(1), "taken");
  EXPECT_THAT(refused(2), AllOf(HasSubstr("spec.dnsPolicy"), HasSubstr("ClusterFirstWithHostNet")));
  spec["dnsPolicy"] = "ClusterFirstWithHostNet";
  EXPECT_THAT(refused(2), AllOf(HasSubstr("MASTER_PORT"), HasSubstr("another port")));
  spec["containers"] = {{{"name", "ridgeline"}, {"env", {{{"name", "MASTER_PORT"}, {"value", "29617"}}}}}};
  EXPECT_EQ(refused(2), "taken");
}

// ---- manifests

Manifests OneNode() {
  return Make({{"image", "registry.example:5000/team/ridgeline@sha256:" + std::string(64, 'a')}},
              Job({{"cpus", 8}, {"memory_bytes", int64_t{16} << 30}, {"time_limit_s", 690}}),
              "{\n  \"version\": 1\n}\n");
}

Manifests TwoNodes() {
  return Make({{"namespace", "training"},
               {"nodes", 2},
               {"cpu", 96},
               {"memory", "1Ti"},
               {"gpus", 8},
               {"efa", 32},
               {"hugepages", {{"2Mi", "5Gi"}}},
               {"node_selector", {{"node.kubernetes.io/instance-type", "p6-b200.48xlarge"}}},
               {"tolerations", {{{"key", "team"}, {"value", "llm"}, {"effect", "NoSchedule"}}}},
               {"priority_class", "benchmarks"},
               {"service_account", "trainer"},
               {"image_pull_secrets", "registry"},
               {"image_pull_policy", "IfNotPresent"},
               {"queue", "team-queue"},
               {"volumes",
                {{{"name", "data"},
                  {"mount", "/data"},
                  {"read_only", true},
                  {"sub_path", "text"},
                  {"persistentVolumeClaim", {{"claimName", "corpus"}}}}}},
               {"env", {{"NCCL_DEBUG", "INFO"}, {"ODD", "yes: \"$(X)\"\n"}, {"WIDE", "\u00e9 \U0001F642"}}},
               {"labels", {{"team", "llm"}}},
               {"annotations", {{"owner", "somebody@example.com"}}},
               {"ttl", "1d"},
               {"output", {{"claim", "results"}, {"sub_path", "nightly"}}},
               {"user", 1000},
               {"patch", {{"spec", {{"hostIPC", true}, {"containers", {{{"name", "ridgeline"}, {"tty", true}}}}}}}}},
              Job({{"time_limit_s", 3600}, {"save_time_s", 120}}), "{}\n");
}

// A trainer in NVIDIA's own image.
Manifests InAnothersImage() {
  const Json token = {{"name", "HF_TOKEN"}, {"valueFrom", {{"secretKeyRef", {{"name", "hf"}, {"key", "token"}}}}}};
  return Make({{"trainer_image", "nvcr.io/nvidia/pytorch:26.09-py3"},
               {"cpu", 96},
               {"memory", "1Ti"},
               {"gpus", 8},
               {"shared_memory", "64Gi"},
               {"ephemeral_storage", "50Gi"},
               {"patch", {{"spec", {{"containers", {{{"name", "ridgeline"}, {"env", Json::array({token})}}}}}}}}},
              Job({{"time_limit_s", 3600}}));
}

void ExpectGolden(const std::string& file, const std::string& text) {
  const auto golden = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "tests/golden/kubernetes" / file;
  if (std::getenv("RIDGELINE_UPDATE_GOLDENS") != nullptr) WriteFileAtomic(golden, text);
  EXPECT_EQ(text, ReadFileIfThere(golden).value_or("")) << "RIDGELINE_UPDATE_GOLDENS=1 writes what it is now";
}

TEST(KubernetesManifest, IsTheGoldenOne) {
  for (const auto& [name, made] : {std::pair{"one-node", OneNode()}, std::pair{"two-nodes", TwoNodes()},
                                   std::pair{"trainer-image", InAnothersImage()}}) {
    const Json files = ManifestFiles({made});
    ExpectGolden(std::string(name) + ".yaml", files.at(0).at("content"));
    ExpectGolden(std::string(name) + ".kustomization.yaml", files.at(1).at("content"));
  }
}

// Each shipped profile as the only setting of a point on two nodes. The check of all goldens (tests/cluster) shows what
// a current server says about them.
TEST(KubernetesManifest, EveryProfileGivesTheGoldenManifest) {
  const auto shipped = std::filesystem::path(RIDGELINE_SOURCE_DIR) / "profiles";
  int profiles = 0;
  for (const auto& entry : std::filesystem::directory_iterator(shipped / "kubernetes")) {
    const std::string name = entry.path().stem();
    sweep::Sweep sweep =
        sweep::ParseSweep(fmt::format("name: s\ndefaults: {{model: llama-5m}}\nlaunch:\n  launcher: kubernetes\n"
                                      "  kubernetes: {{image: '{}', profile: {}}}\n",
                                      kImage, name),
                          "sweep.yaml");
    sweep::UseProfiles(sweep, shipped);
    const Manifests made = MakeManifests(Job({{"nodes", 2}, {"cpus", 4}, {"memory_bytes", int64_t{8} << 30}}), "{}\n",
                                         ReadOptions(sweep.launch.config), "", kSecret);
    ExpectGolden("profile-" + name + ".yaml", ManifestFiles({made}).at(0).at("content"));
    ++profiles;
  }
  EXPECT_GE(profiles, 5);
}

TEST(KubernetesManifest, RunsTheImagesProgramOnTheMountedJobFile) {
  EXPECT_THAT(ContainerOf(Make(Json::object())).at("command").get<std::vector<std::string>>(),
              ElementsAre("ridgeline", "exec", "--print-results", "--summary", "/dev/termination-log", "--job-dir",
                          "/ridgeline/work/jobs/rl-0123456789abcdef0123456789abcdef", "/ridgeline/job"));
  const Json job = Job({{"exec", {"/bin/sh", "-c", "echo \"$(id)\" 'x'"}}});
  const Manifests made = Make({{"program", "/opt/sh"}}, job);
  EXPECT_THAT(ContainerOf(made).at("command").get<std::vector<std::string>>(),
              ElementsAre("/opt/sh", "-c", "echo \"$$(id)\" 'x'"));
  EXPECT_TRUE(made.others.empty());  // it names no job file
}

TEST(KubernetesManifest, ExecIsBroughtIntoTheTrainersOwnImage) {
  const Json settings = {
      {"trainer_image", "nvcr.io/nvidia/pytorch:26.09-py3"}, {"cpu", 4}, {"memory", "8Gi"}, {"gpus", 1}};
  const Manifests made = Make(settings);
  const Json& carrier = PodOf(made).at("initContainers").at(0);
  EXPECT_EQ(carrier.at("image"), kImage);
  EXPECT_EQ(carrier.at("command"), Json({"ridgeline", "exec", "--carry-to", "/ridgeline/program"}));
  EXPECT_EQ(carrier.at("resources").at("limits").size(), 3U) << "a GPU is for whom it is";
  EXPECT_EQ(carrier.at("resources").at("limits").at("memory"), "8Gi") << "or the pod would not be guaranteed";
  EXPECT_EQ(ContainerOf(made).at("image"), "nvcr.io/nvidia/pytorch:26.09-py3");
  EXPECT_EQ(ContainerOf(made).at("resources").at("limits").at("nvidia.com/gpu"), "1");
  EXPECT_THAT(
      ContainerOf(made).at("command").get<std::vector<std::string>>(),
      ElementsAre("/ridgeline/program/ld.so", "--library-path", "/ridgeline/program", "/ridgeline/program/ridgeline",
                  "exec", "--print-results", "--summary", "/dev/termination-log", "--job-dir",
                  "/ridgeline/work/jobs/rl-0123456789abcdef0123456789abcdef", "/ridgeline/job"));
  EXPECT_THAT(Refused({{"trainer_image", "nvcr.io/nvidia/pytorch"}}), HasSubstr("one image, today and tomorrow"));

  const Manifests ours = Make(settings, Job({{"own_trainer", true}}));
  EXPECT_EQ(ContainerOf(ours).at("image"), kImage);
  EXPECT_FALSE(PodOf(ours).contains("initContainers"));
}

TEST(KubernetesManifest, RanksOnSeveralNodesHaveASecretOfTheirJobsOwn) {
  const auto secrets = [](const Manifests& made) {
    std::vector<Json> found;
    for (const Json& object : made.others) {
      if (object.at("kind") == "Secret") found.push_back(object);
    }
    return found;
  };
  EXPECT_TRUE(secrets(Make(Json::object())).empty());
  EXPECT_EQ(Make(Json::object()).job.dump().find("RIDGELINE_SECRET_FILE"), std::string::npos);

  const Manifests made = Make({{"nodes", 2}});
  const std::vector<Json> found = secrets(made);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].at("metadata").at("name"), made.name);
  EXPECT_EQ(found[0].at("stringData").at("ranks"), kSecret);
  EXPECT_EQ(made.job.dump().find(kSecret), std::string::npos) << "it is in nothing that a log or a list of Jobs shows";
  // A file in the pods, which only their own group can read.
  Json volume;
  for (const Json& each : PodOf(made).at("volumes")) {
    if (each.contains("secret")) volume = each;
  }
  EXPECT_EQ(volume.at("secret"), (Json{{"secretName", made.name}, {"defaultMode", 0440}}));
  const Json& mounts = ContainerOf(made).at("volumeMounts");
  EXPECT_THAT(mounts, ::testing::Contains(
                          Json{{"name", volume.at("name")}, {"mountPath", "/ridgeline/secret"}, {"readOnly", true}}));
  EXPECT_THAT(ContainerOf(made).at("env"),
              ::testing::Contains(Json{{"name", "RIDGELINE_SECRET_FILE"}, {"value", "/ridgeline/secret/ranks"}}));
  // With another secret it is the same Job, so a driver that was killed finds its own again.
  EXPECT_EQ(MakeManifests(Job(), "{}\n", Read({{"nodes", 2}}), "", "another").hash, made.hash);
}

// Kubernetes replaces $(NAME) by a variable, and $$ by $.
TEST(KubernetesManifest, TextsArriveAsTheyWereWritten) {
  const std::pair<const char*, const char*> texts[] = {{"$(A)", "$$(A)"}, {"$$(A)", "$$$$(A)"}, {"a$$b", "a$$$b"},
                                                       {"$", "$"},        {"$$", "$$$"},        {"5 $ $x", "5 $ $x"},
                                                       {"$(", "$$("}};
  for (const auto& [text, written] : texts) {
    const Manifests made = Make({{"program", text}, {"env", {{"A", text}}}}, Job({{"exec", {"p", text}}}));
    EXPECT_THAT(ContainerOf(made).at("command").get<std::vector<std::string>>(), ElementsAre(written, written));
    EXPECT_EQ(ContainerOf(made).at("env").at(2).at("value"), written);
  }
}

TEST(KubernetesManifest, TellsNobodyWhereTheSubmittingMachineKeepsWhat) {
  const std::string dir = "/home/ada/out/jobs/rl-0123456789abcdef0123456789abcdef";
  Json points = Json::array();
  for (const char* checkpoints : {"/home/ada/out/ckpt/a", "/shared/ckpt", "here"}) {
    points.push_back({{"id", "p"}, {"spec", {{"checkpoint", {{"dir", checkpoints}}}}}});
  }
  points.push_back({{"id", "d"}, {"spec", Json::object()}});
  const Json job_file = {{"version", 1},
                         {"job_dir", dir},
                         {"config", {{"kubernetes", {{"kubeconfig", "/home/ada/.kube/config"}}}}},
                         {"points", points}};
  const Json settings = {{"kubeconfig", "/home/ada/.kube/config"},
                         {"output", {{"claim", "results"}, {"path", "/home/ada/results"}}}};
  const Json job = Job({{"job_file", dir + "/job.json"},
                        {"job_dir", dir},
                        {"exec", {"/home/ada/bin/ridgeline", "exec", dir + "/job.json"}}});
  const Manifests made = Make(settings, job, job_file.dump());
  std::string all = made.job.dump();
  for (const Json& other : made.others) all += other.dump();
  EXPECT_THAT(all, Not(HasSubstr("/home")));
  const Json carried = Json::parse(made.others.at(0).at("data").begin()->get<std::string>());
  EXPECT_EQ(carried.at("job_dir"), "/ridgeline/work/jobs/rl-0123456789abcdef0123456789abcdef");
  const auto checkpoints = [&](size_t i) { return carried.at("points").at(i).at("spec").at("checkpoint").at("dir"); };
  EXPECT_EQ(checkpoints(0), "/ridgeline/work/ckpt/a");
  EXPECT_EQ(checkpoints(1), "/shared/ckpt");
  EXPECT_EQ(checkpoints(2), "here");
  EXPECT_EQ(carried.at("points").at(3).at("spec"), Json::object());
}

TEST(KubernetesManifest, AsksForTheDiskThatItsFoldersMayFill) {
  const auto amount = [](const Json& settings) {
    const Manifests made = Make(settings);
    const Json resources = ContainerOf(made).at("resources");
    EXPECT_EQ(resources.at("limits"), resources.at("requests"));
    for (const Json& volume : PodOf(made).at("volumes")) {
      if (!volume.contains("emptyDir")) continue;
      EXPECT_EQ(volume.at("emptyDir").at("sizeLimit"), resources.at("limits").at("ephemeral-storage"));
    }
    return resources.at("limits").at("ephemeral-storage").get<std::string>();
  };
  EXPECT_EQ(amount(Json::object()), "4Gi");
  EXPECT_EQ(amount({{"ephemeral_storage", "20Gi"}}), "20Gi");
}

TEST(KubernetesManifest, TheResultsOfWhatAPersonSubmitsAreInItsLogs) {
  const auto fetch = [](const Json& settings, const std::string& sweep) {
    return FetchCommand({Make(settings, Job({{"sweep", sweep}}))}, Read(settings));
  };
  const std::string rest = " --tail=-1 --max-log-requests=1000 >DIR/pods.log";
  EXPECT_EQ(fetch(Json::object(), "nightly"), "kubectl logs --selector=ridgeline.dev/sweep=nightly" + rest);
  EXPECT_EQ(fetch({{"namespace", "llm"}}, "nightly"),
            "kubectl logs --namespace=llm --selector=ridgeline.dev/sweep=nightly" + rest);
  EXPECT_EQ(fetch(Json::object(), "&"), "kubectl logs --selector=app.kubernetes.io/managed-by=ridgeline" + rest)
      << "a name of which no label can be made";
  EXPECT_EQ(fetch({{"output", {{"claim", "results"}, {"path", "/shared"}}}}, "nightly"), "")
      << "the results are in the jobs' folders";
  EXPECT_EQ(FetchCommand({}, Options()), "");
}

TEST(KubernetesManifest, CutsALargeJobFileBetweenCharacters) {
  std::string text(120 * 1024 - 1, 'x');
  for (int i = 0; i < 100'000; ++i) text += "é";
  const Manifests made = Make(Json::object(), Job(), text);
  std::string joined;
  std::string last;
  for (const Json& map : made.others) {
    EXPECT_EQ(map.at("kind"), "ConfigMap");
    EXPECT_LT(map.dump().size(), 256U * 1024);
    const auto part = map.at("data").begin();
    EXPECT_GT(part.key(), last);
    last = part.key();
    joined += part->get<std::string>();
    EXPECT_NO_THROW(part->dump());  // UTF-8
  }
  EXPECT_GT(made.others.size(), 2U);
  EXPECT_EQ(joined, text);
  EXPECT_EQ(PodOf(made).at("volumes").at(0).at("projected").at("sources").size(), made.others.size());
}

TEST(KubernetesManifest, AnyTextOfASweepIsSafe) {
  const std::string hostile = "x'; rm -rf / #\n---\nkind: Secret\n\xff\u2028{{ }}";
  const Manifests made = Make(Json::object(), Job({{"sweep", hostile}}));
  const Json labels = made.job.at("metadata").at("labels");
  EXPECT_EQ(labels.at("ridgeline.dev/sweep").get<std::string>().find_first_of("'/# \n{"), std::string::npos);
  const std::string yaml = ToYaml(made.job);
  EXPECT_EQ(yaml.find("\n---"), std::string::npos);
  EXPECT_EQ(yaml.find("\nkind: Secret"), std::string::npos);
}

TEST(KubernetesManifest, TheHashIsOfAllThatRuns) {
  const std::string hash = Make(Json::object()).hash;
  EXPECT_EQ(Make(Json::object()).hash, hash);
  EXPECT_NE(Make({{"gpus", 1}}).hash, hash);
  EXPECT_NE(Make(Json::object(), Job(), "{ }\n").hash, hash);
  EXPECT_EQ(Make(Json::object()).job.at("metadata").at("annotations").at(kHashAnnotation), hash);
}

// A driver that was killed had set a node aside. The next driver does not know that, and finds its own Job.
TEST(KubernetesManifest, TheHashIsTheSameWhateverNodesAreLeftOut) {
  const Manifests made = Make(Json::object(), Job({{"avoid", {"n1"}}}));
  EXPECT_EQ(made.hash, Make(Json::object()).hash);
  EXPECT_THAT(made.job.dump(), HasSubstr("NotIn"));
}

}  // namespace
}  // namespace ridgeline::kubernetes
