#include "sagemaker/config.h"

#include <algorithm>
#include <regex>
#include <utility>

#include <fmt/format.h>

#include "common/options.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Failure;
using plugin::Into;
using plugin::Json;
using plugin::Option;

constexpr int64_t kMostNodes = 2000;
constexpr size_t kMostTags = 50;
constexpr size_t kMostVariables = 90;  // the service takes 100, and we add some
constexpr size_t kMostValueBytes = 512;

bool Matches(const std::string& text, const char* pattern) { return std::regex_match(text, std::regex(pattern)); }

std::string TextOf(const Option& option, const char* pattern, const char* must, const char* hint) {
  std::string text = option.Text();
  if (!Matches(text, pattern)) option.Refuse(must, hint);
  return text;
}

std::string Role(const Option& option) {
  return TextOf(option, "arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,500}",
                "a role's ARN, arn:aws:iam::ACCOUNT:role/NAME", "the console shows it on the role's page");
}

std::string Image(const Option& option) {
  return TextOf(option, "[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}", "an image's address, at most 255 characters",
                "ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME@sha256:DIGEST");
}

std::string InstanceType(const Option& option) {
  return TextOf(option, "ml\\.[a-z0-9-]+\\.[a-z0-9-]+", "a type of instance, such as ml.p6-b200.48xlarge",
                "SageMaker's types begin with ml.");
}

std::string TrainingPlan(const Option& option) {
  return TextOf(option, "arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:training-plan/[A-Za-z0-9-]{1,64}",
                "a plan's ARN, arn:aws:sagemaker:REGION:ACCOUNT:training-plan/NAME",
                "`aws sagemaker list-training-plans` shows it");
}

std::string Region(const Option& option) {
  return TextOf(option, "[a-z]{2,4}(-[a-z]+)+-[0-9]+", "a region, such as us-west-2", "");
}

// Names of objects keep to characters that need no encoding.
std::string Output(const Option& option) {
  std::string text = option.Text();
  while (text.ends_with('/')) text.pop_back();
  if (!Matches(text, "s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._-]+)*") || text.size() > 500) {
    option.Refuse("s3://BUCKET/PREFIX", "the prefix has letters, digits, '.', '_', '-' and '/', and no empty part");
  }
  return text;
}

std::vector<std::string> Names(const Option& option, const char* pattern, const char* must, size_t most) {
  const Json list = option.value().is_array() ? option.value() : Json::array({option.value()});
  std::vector<std::string> names;
  for (const Json& item : list) {
    names.push_back(TextOf(Option(option.name(), item), pattern, must, "the VPC's page of the console shows them"));
  }
  if (names.empty() || names.size() > most) option.Refuse(fmt::format("a list of 1 to {}", most));
  return names;
}

std::map<std::string, std::string> Tags(const Option& option) {
  std::map<std::string, std::string> tags;
  for (const auto& [name, value] : option.Mapping().items()) {
    const Option item(option.name() + ": " + name, value);
    if (!Matches(name, "[A-Za-z0-9 _.:/=+@-]{1,128}")) item.Refuse("named by letters, digits and _.:/=+@-");
    tags[name] = TextOf(item, "[A-Za-z0-9 _.:/=+@-]{0,256}", "letters, digits and _.:/=+@-, at most 256", "");
  }
  if (tags.size() > kMostTags) option.Refuse(fmt::format("at most {} tags", kMostTags));
  return tags;
}

std::map<std::string, std::string> Variables(const Option& option) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : option.Mapping().items()) {
    const Option item(option.name() + ": " + name, value);
    if (!Matches(name, "[a-zA-Z_][a-zA-Z0-9_]{0,511}")) item.Refuse("named by letters, digits and _");
    if (name.starts_with("RIDGELINE_")) item.Refuse("a variable of another name", "Ridgeline sets RIDGELINE_…");
    variables[name] = value.is_string() && value.get<std::string>().empty() ? "" : item.Text();
    if (variables[name].size() > kMostValueBytes) {
      item.Refuse(fmt::format("at most {} bytes", kMostValueBytes), "put longer texts into the image");
    }
  }
  if (variables.size() > kMostVariables) option.Refuse(fmt::format("at most {} variables", kMostVariables));
  return variables;
}

std::string Word(const Option& option) {
  std::string text = option.Text();
  if (text.size() > 256) option.Refuse("at most 256 bytes");
  return text;
}

const Json& Request(const Option& option) {
  for (const char* ours : {"TrainingJobName", "RoleArn", "InputDataConfig", "CheckpointConfig"}) {
    if (option.Mapping().contains(ours)) option.Refuse(fmt::format("without {}", ours), "Ridgeline sets that");
  }
  for (const char* ours : {"RetryStrategy"}) {
    if (option.Mapping().contains(ours)) {
      option.Refuse(fmt::format("without {}", ours), "a silent retry biases a benchmark; see retry: under launch:");
    }
  }
  return option.Mapping();
}

template <typename Member>
auto SecondsInto(Member member, const char* least, const char* most) {
  return Into(member, [=](const Option& option) { return option.Seconds(least, most); });
}

const plugin::Settings<Options>& Own() {
  static const plugin::Settings<Options> kSettings = {
      {"region", Into(&Options::region, Region)},
      {"aws_profile", Into(&Options::aws_profile, Word)},
      {"role", Into(&Options::role, Role)},
      {"image", Into(&Options::image, Image)},
      {"program", Into(&Options::program, Word)},
      {"instance_type", Into(&Options::instance_type, InstanceType)},
      {"nodes", Into(&Options::nodes, [](const Option& option) { return option.Count(1, kMostNodes); })},
      {"volume_size", Into(&Options::volume_gb, [](const Option& option) { return option.Count(1, 16384); })},
      {"training_plan", Into(&Options::training_plan, TrainingPlan)},
      {"spot", Into(&Options::spot, &Option::Flag)},
      {"max_wait", SecondsInto(&Options::max_wait_s, "1s", "28d")},
      {"max_run", SecondsInto(&Options::max_run_s, "1s", "28d")},
      {"keep_alive", SecondsInto(&Options::keep_alive_s, "1s", "6h")},
      {"output", Into(&Options::output, Output)},
      {"kms_key", Into(&Options::kms_key, Word)},
      {"subnets",
       Into(&Options::subnets, [](const Option& option) { return Names(option, "subnet-[0-9a-f]+", "subnet-…", 16); })},
      {"security_group_ids", Into(&Options::security_group_ids,
                                  [](const Option& option) { return Names(option, "sg-[0-9a-f]+", "sg-…", 5); })},
      {"tags", Into(&Options::tags, Tags)},
      {"env", Into(&Options::env, Variables)},
      {"encrypt_traffic", Into(&Options::encrypt_traffic, &Option::Flag)},
      {"network_isolation", Into(&Options::network_isolation, &Option::Flag)},
      {"request", Into(&Options::request, Request)},
      {"poll_pause", SecondsInto(&Options::poll_pause_s, "1s", "1h")},
  };
  return kSettings;
}

// Throws Failure if the service would refuse settings that are valid alone. The message has a line for each fault.
void CheckTogether(const Options& options) {
  plugin::Refusals refusals;
  const auto refuse_if = [&](bool wrong, const std::string& what, const std::string& hint) {
    if (!wrong) return;
    refusals.Try([&] { throw Failure(Failure::Kind::kInvalidInput, "launch: sagemaker: " + what, hint); });
  };
  refuse_if(options.spot && !options.training_plan.empty(), "spot is true, which excludes training_plan",
            "a plan's instances are paid already: remove spot");
  refuse_if(options.max_wait_s > 0 && !options.spot, "max_wait is of spot instances alone",
            "write spot: true, or remove max_wait");
  refuse_if(options.spot && options.max_wait_s > 0 && options.max_wait_s < options.max_run_s,
            fmt::format("max_wait is {} s, less than max_run, {} s", options.max_wait_s, options.max_run_s),
            "max_wait covers all attempts with their waits, so it must be longer");
  refuse_if(options.subnets.empty() && !options.security_group_ids.empty(),
            "security_group_ids is given without subnets", "give both, or neither");
  refuse_if(!options.subnets.empty() && options.security_group_ids.empty(),
            "subnets is given without security_group_ids", "give both, or neither");
  refusals.ThrowIfAny();
}

}  // namespace

int64_t Window(const Options& options) { return options.window > 0 ? options.window : kDefaultWindow; }

Options ReadOptions(const Json& config) {
  Options options;
  options.window = plugin::CountUnderLaunch(config, "max_parallel");
  plugin::ReadSettings(config, "sagemaker", Own(), "anything else of CreateTrainingJob goes under request:", options);
  CheckTogether(options);
  return options;
}

Options OptionsOf(const Json& job, const Options& session) {
  const auto config = job.find("config");
  Options options = config == job.end() ? session : ReadOptions(*config);
  plugin::Refusals refusals;
  for (const auto& [name, same] :
       {std::pair{"region", options.region == session.region},
        std::pair{"aws_profile", options.aws_profile == session.aws_profile},
        std::pair{"output", options.output == session.output}, std::pair{"kms_key", options.kms_key == session.kms_key},
        std::pair{"poll_pause", options.poll_pause_s == session.poll_pause_s}}) {
    if (!same) refusals.Try([name = name] { plugin::RefuseOfTheSession(fmt::format("sagemaker: {}", name)); });
  }
  refusals.ThrowIfAny();
  if (options.nodes == 0) options.nodes = std::max<int64_t>(1, job.value("nodes", int64_t{1}));
  return options;
}

void CheckComplete(const Options& options) {
  plugin::Refusals refusals;
  for (const auto& [name, value] :
       {std::pair{"role", &options.role}, std::pair{"image", &options.image},
        std::pair{"instance_type", &options.instance_type}, std::pair{"output", &options.output}}) {
    if (!value->empty()) continue;
    refusals.Try([name = name] {
      throw Failure(Failure::Kind::kInvalidInput, fmt::format("launch: sagemaker: {} is missing", name),
                    "docs/sagemaker.md shows what a sweep needs");
    });
  }
  refusals.ThrowIfAny();
}

}  // namespace ridgeline::sagemaker
