// Who we are to AWS: from variables, a profile's keys, or what `aws configure export-credentials` says.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sagemaker/signature.h"

namespace ridgeline::sagemaker {

// The keys of a section of ~/.aws/credentials or ~/.aws/config. Nothing if the text has none there, or if the section
// needs a role, a login or a program first.
std::optional<Credentials> KeysOfProfile(std::string_view text, const std::string& section);

// The value of a setting of a section; empty if it has none.
std::string ValueOfProfile(std::string_view text, const std::string& section, const std::string& name);

// Credentials from the JSON that `aws configure export-credentials` prints. Throws Failure.
Credentials ParseExported(const std::string& text);

// Finds credentials anew each time. `profile`: the setting aws_profile. In order: variables, unless a profile is
// named; the profile's own keys; `aws`, which knows roles, logins, containers and instances. Throws Failure with what
// to do if there are none.
Credentials FindCredentials(const std::string& profile);

// The region: the setting, AWS_REGION, AWS_DEFAULT_REGION, or the profile's. Throws Failure if there is none.
std::string FindRegion(const std::string& setting, const std::string& profile);

}  // namespace ridgeline::sagemaker
