// A fixed store with runs of every kind that a report must show.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/report.h"
#include "run/measurement.h"
#include "run/spec.h"
#include "store/store.h"

namespace ridgeline::report_sample {

// Adds runs to one sweep of a store.
class Runs {
 public:
  explicit Runs(store::Store& store) : store_(store) {}

  // A run of `spec` (field -> value), with plausible figures derived from its batch and policy; `edit` may change them.
  // Figures are zero unless the status is ok.
  RunResult& Add(const Json& spec, const RunEnd& end = RunStatus::kOk);

  // Puts them all into the store as the sweep `name`, measured for this campaign.
  void Put(const std::string& name, const std::string& campaign = kDefaultCampaign);

 private:
  store::Store& store_;
  std::vector<Point> points_;
  std::vector<RunResult> results_;
};

// Three panels: bf16 with a predicted out-of-memory point, fp32 with failures, a gpt with figures that were not
// measured.
void FillSample(store::Store& store);

// A shipped report, from the source tree.
report::Report ShippedReport(const std::string& name = "activation-checkpointing");

// RIDGELINE_UPDATE_GOLDENS=1 writes the current output; `git diff` then shows the changes.
void ExpectGolden(const std::string& text, const std::string& name);

// Replaces each point id with "point-1", "point-2"… in order of appearance, because ids are hashes of whole specs, to
// which fields are added.
std::string WithoutIds(std::string text);

}  // namespace ridgeline::report_sample
