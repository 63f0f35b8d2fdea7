// The gate's results in the forms that people and other programs read. Each form makes text in names safe.
#pragma once

#include <cstddef>
#include <string>

#include "base/table.h"
#include "regress/gate.h"

namespace ridgeline::regress {

// One row per finding, worst first, with rounded figures: for people.
Table GateTable(const Gate& gate);

// The findings by answers and, for a pass, what it would not have found.
std::string GateConclusion(const Gate& gate);

// For a terminal: the table and the conclusion.
std::string GateText(const Gate& gate);

// One object with every figure, in SI units; indented.
std::string GateJson(const Gate& gate);

// JUnit XML for Jenkins: a test case per finding. REGRESSED is a failure, MISSING an error, and a finding that is
// neither decided nor a pass is skipped.
std::string GateJunit(const Gate& gate);

// For a page of GitHub or GitLab. Rows beyond `most_bytes` are left out, and their number is given. It notifies nobody:
// an @ or a # in a name stays a plain character.
inline constexpr size_t kMostSummaryBytes = size_t{1} << 20;   // GitHub's limit for a step
inline constexpr size_t kMostCommentBytes = size_t{64} << 10;  // the limit for a comment
std::string GateMarkdown(const Gate& gate, size_t most_bytes);

// GitHub's workflow commands: an error for each regression and each missing result, and a warning for each inconclusive
// finding, as many as GitHub shows.
std::string GateAnnotations(const Gate& gate);

// OpenMetrics text, which GitLab's metrics report also reads.
std::string GateOpenMetrics(const Gate& gate);

}  // namespace ridgeline::regress
