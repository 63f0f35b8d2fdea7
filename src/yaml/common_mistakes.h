// Common YAML mistakes, found in the text and explained in a sentence.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "yaml/yaml.h"

namespace ridgeline::yaml {

// The mistake because of which a parser stopped at `stopped`: indentation with a tab, a colon without a space after it,
// or a comparison or template without quotes. Nothing for any other cause.
std::optional<Fault> MistakeAt(std::string_view text, Place stopped);

// The comparison with which `rest` of a file begins, such as `>8`. Without quotes YAML reads it as the header of a
// block of text. Empty if `rest` begins otherwise.
std::string_view LeadingComparison(std::string_view rest);

// What is wrong with a text such as "model:x", which is one scalar in YAML. Empty for other texts.
std::string JoinedColon(std::string_view scalar);

// "`expected`, not …" for a node that is not a mapping; or, if only a space is missing, that.
std::string NotAMapping(const std::string& expected, const YamlNode& node);

// What is wrong with a comparison without quotes.
std::string BareComparison(std::string_view comparison);

}  // namespace ridgeline::yaml
