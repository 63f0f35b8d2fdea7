// The gate as a whole: finds both sides' measurements, decides (regress/gate.h), and measures suspects again.
#pragma once

#include <optional>
#include <string>

#include "gate/suspects.h"
#include "regress/gate.h"

namespace ridgeline::gate {

struct GateRequest {
  std::string head;      // a campaign, commit:ABC1234, or FILE:CAMPAIGN
  std::string baseline;  // as head, or the beginning of campaigns' names, or a database; empty: all before head
  std::string pinned;    // a side that stays the baseline; empty: none
  std::string records;   // the folder of nights' records; empty: none
  std::string db;        // the database of the names above
  double detect = 100;   // the slowdown in percent that a pass must be able to detect
  ConfirmOptions confirm = {};
};

// Returns nothing if measuring again was interrupted; the same call resumes it. Throws Error(kUsage) for a name that
// means nothing, and as ConfirmSuspects.
std::optional<regress::Gate> JudgeHead(const GateRequest& request);

// Files for other programs; an empty name: not written.
struct GateFiles {
  std::string junit;        // JUnit XML
  std::string summary;      // Markdown, at most kMostSummaryBytes
  std::string comment;      // Markdown, at most kMostCommentBytes
  std::string metrics;      // OpenMetrics
  std::string annotations;  // GitHub's annotations
};

// Throws Error(kInfrastructure).
void WriteGateFiles(const regress::Gate& gate, const GateFiles& files);

}  // namespace ridgeline::gate
