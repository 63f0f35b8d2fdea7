// A fixed store with runs of every kind that a report must show.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/report.h"
#include "report/rows.h"
#include "run/measurement.h"
#include "run/spec.h"
#include "store/store.h"
#include "tests/base/temp_dir.h"

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

// Puts a prediction for p5 into the store, of `values` (field -> value). `edit` may change its figures. `as`: the setup
// that it was predicted with.
void PutPrediction(
    store::Store& store, const Json& values, double tokens_per_s, int64_t peak_bytes,
    const std::function<void(RunResult&)>& edit = [](RunResult&) {},
    const std::string& as = R"({"predicted_on":"p5","trainer":["ridgeline-train"]})");

// A column's texts.
std::vector<std::string> Texts(const report::Rows& rows, const std::string& column);

// A test of one shipped report, with a store of its own.
class ReportTest : public ::testing::Test {
 protected:
  explicit ReportTest(const std::string& report) : report_(ShippedReport(report)) {}

  report::Rows Answer() { return {report_, store_.Query(report_.sql)}; }
  // The sentences of the first panel.
  std::vector<std::string> Said() {
    const report::Rows rows = Answer();
    return report::Conclude(report_, rows, report::MakePanels(rows).at(0).rows);
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  report::Report report_;
};

// RIDGELINE_UPDATE_GOLDENS=1 writes the current output; `git diff` then shows the changes.
void ExpectGolden(const std::string& text, const std::string& name);

// Replaces each point id with "point-1", "point-2"… in order of appearance, because ids are hashes of whole specs, to
// which fields are added.
std::string WithoutIds(std::string text);

}  // namespace ridgeline::report_sample
