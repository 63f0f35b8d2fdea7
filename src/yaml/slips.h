// What people write who mean something else than YAML takes it for: found in the text, and told in a sentence.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "yaml/yaml.h"

namespace ridgeline {

// The slip for which a parser stopped at `stopped`: a tab that indents, a colon without a space behind it, a comparison
// or a template without quotes. Nothing where it is none of these.
std::optional<Fault> SlipAt(std::string_view text, Place stopped);

// The comparison that `rest` of a file begins with, such as `>8`, which without quotes is to YAML the header of a text
// that follows; empty where it begins otherwise.
std::string_view LeadingComparison(std::string_view rest);

// What is wrong with "model:x", which is one text to YAML; empty for another text.
std::string JoinedColon(std::string_view scalar);

// "`expected`, not …" of a node that is no mapping, or that it would be one but for a space.
std::string NotAMapping(const std::string& expected, const YamlNode& node);

// What is wrong with a comparison without quotes.
std::string BareComparison(std::string_view comparison);

}  // namespace ridgeline
