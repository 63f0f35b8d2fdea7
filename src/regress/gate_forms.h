// What the gate says, in the forms that people and other programs read. Whatever stands in a name is made safe for
// each.
#pragma once

#include <cstddef>
#include <string>

#include "base/table.h"
#include "regress/gate.h"

namespace ridgeline {

// A row a finding, the worst first, figures rounded: for people.
Table GateTable(const Gate& gate);

// The findings by answers, and where it is a pass, what it would not have found.
std::string GateConclusion(const Gate& gate);

// For a terminal: the table and the conclusion.
std::string GateText(const Gate& gate);

// One object with every figure, in SI units; indented.
std::string GateJson(const Gate& gate);

// JUnit XML as Jenkins reads it: a test case for each finding, REGRESSED a failure, MISSING an error, what is neither
// decided nor a pass skipped.
std::string GateJunit(const Gate& gate);

// For a page of GitHub or GitLab. The rows beyond `most_bytes` are left out, and counted in words. It mentions nobody:
// an @ or a # in a name stays one.
inline constexpr size_t kMostSummaryBytes = size_t{1} << 20;   // of a step, as GitHub takes it
inline constexpr size_t kMostCommentBytes = size_t{64} << 10;  // of a comment
std::string GateMarkdown(const Gate& gate, size_t most_bytes);

// GitHub's workflow commands: an error for each regression and each missing result, a warning for each finding that is
// inconclusive, as many as GitHub shows.
std::string GateAnnotations(const Gate& gate);

// OpenMetrics' text, as GitLab's metrics report takes it, too.
std::string GateOpenMetrics(const Gate& gate);

}  // namespace ridgeline
