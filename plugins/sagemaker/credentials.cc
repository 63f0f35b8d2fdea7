#include "sagemaker/credentials.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/files.h"
#include "common/failure.h"
#include "common/process.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Failure;
using plugin::Json;
namespace fs = std::filesystem;

constexpr size_t kMostFileBytes = size_t{1} << 20;
constexpr int64_t kAwsTimeoutMs = 60'000;
constexpr const char* kHint =
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in until `aws sts get-caller-identity` works here";

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::map<std::string, std::string> SectionOf(std::string_view text, const std::string& wanted) {
  std::map<std::string, std::string> values;
  bool inside = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view raw = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view line = Trimmed(raw);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      inside = line.back() == ']' && Trimmed(line.substr(1, line.size() - 2)) == wanted;
      continue;
    }
    const size_t equals = line.find('=');
    // Indented lines are settings of a setting.
    if (!inside || equals == std::string_view::npos || raw.front() == ' ' || raw.front() == '\t') continue;
    values[std::string(Trimmed(line.substr(0, equals)))] = Trimmed(line.substr(equals + 1));
  }
  return values;
}

std::string FileText(const char* variable, const char* name) {
  fs::path file = Variable(variable);
  if (file.empty()) file = fs::path(Variable("HOME")) / ".aws" / name;
  std::error_code ec;
  if (!fs::is_regular_file(file, ec)) return "";  // /dev/null, for example
  return ReadForeignFile(file, kMostFileBytes, ForeignFile::Links::kFollowed).value_or("");
}

std::string ProfileName(const std::string& setting) {
  if (!setting.empty()) return setting;
  const std::string variable = Variable("AWS_PROFILE");
  return variable.empty() ? "default" : variable;
}

// ~/.aws/config calls the section of every profile but the default one "profile NAME".
std::string SectionOfConfig(const std::string& profile) {
  return profile == "default" ? profile : "profile " + profile;
}

std::optional<Credentials> OfVariables() {
  Credentials found{Variable("AWS_ACCESS_KEY_ID"), Variable("AWS_SECRET_ACCESS_KEY"), Variable("AWS_SESSION_TOKEN")};
  if (found.key_id.empty() || found.secret.empty()) return std::nullopt;
  return found;
}

int64_t UnixSOf(const std::string& time) {
  std::tm parts{};
  if (::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return 0;
  return ::timegm(&parts);
}

Credentials OfAws(const std::string& profile) {
  std::vector<std::string> argv = {"aws", "configure", "export-credentials", "--format", "process"};
  if (!profile.empty()) argv.insert(argv.end(), {"--profile", profile});
  plugin::Finished done;
  try {
    done = plugin::RunProgram(argv, plugin::EnvironmentWithout({}), "", kAwsTimeoutMs);
  } catch (const Error&) {
    throw Failure(Failure::Kind::kInfrastructure, "there are no credentials for AWS", kHint, "rights");
  }
  if (done.ok()) return ParseExported(done.out);
  std::string said(Trimmed(std::string_view(done.err).substr(0, 300)));
  std::replace(said.begin(), said.end(), '\n', ' ');
  throw Failure(Failure::Kind::kInfrastructure,
                fmt::format("`aws configure export-credentials` gives no credentials: {}",
                            done.timed_out ? "it does not end" : said),
                kHint, "rights");
}

}  // namespace

std::optional<Credentials> KeysOfProfile(std::string_view text, const std::string& section) {
  const std::map<std::string, std::string> values = SectionOf(text, section);
  for (const char* other : {"role_arn", "credential_process", "sso_session", "sso_account_id", "sso_start_url"}) {
    if (values.contains(other)) return std::nullopt;
  }
  const auto value = [&](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
  Credentials found{value("aws_access_key_id"), value("aws_secret_access_key"), value("aws_session_token")};
  if (found.key_id.empty() || found.secret.empty()) return std::nullopt;
  return found;
}

std::string ValueOfProfile(std::string_view text, const std::string& section, const std::string& name) {
  const std::map<std::string, std::string> values = SectionOf(text, section);
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

Credentials ParseExported(const std::string& text) {
  try {
    const Json document = Json::parse(text);
    Credentials found{document.at("AccessKeyId").get<std::string>(), document.at("SecretAccessKey").get<std::string>(),
                      document.value("SessionToken", "")};
    found.expires_unix_s = UnixSOf(document.value("Expiration", ""));
    return found;
  } catch (const Json::exception&) {  // whose message quotes the text, which is secret
    throw Failure(Failure::Kind::kInfrastructure,
                  "`aws configure export-credentials` printed something else than credentials", kHint, "rights");
  }
}

Credentials FindCredentials(const std::string& profile) {
  const bool named = !profile.empty() || !Variable("AWS_PROFILE").empty();
  if (profile.empty()) {
    if (auto found = OfVariables()) return *found;
  }
  const std::string name = ProfileName(profile);
  const std::string config = FileText("AWS_CONFIG_FILE", "config");
  const bool is_plain = ValueOfProfile(config, SectionOfConfig(name), "role_arn").empty();
  if (is_plain) {
    if (auto found = KeysOfProfile(FileText("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name)) return *found;
    if (auto found = KeysOfProfile(config, SectionOfConfig(name))) return *found;
  }
  return OfAws(named ? name : "");
}

std::string FindRegion(const std::string& setting, const std::string& profile) {
  if (!setting.empty()) return setting;
  for (const char* variable : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (std::string region = Variable(variable); !region.empty()) return region;
  }
  const std::string section = SectionOfConfig(ProfileName(profile));
  std::string region = ValueOfProfile(FileText("AWS_CONFIG_FILE", "config"), section, "region");
  if (!region.empty()) return region;
  throw Failure(Failure::Kind::kInvalidInput, "launch: sagemaker: no region is given",
                "write region: us-west-2, or set AWS_REGION");
}

}  // namespace ridgeline::sagemaker
