// The metrics of a run, in a file for node_exporter's textfile collector.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/clock.h"
#include "driver/driver.h"
#include "store/store.h"

namespace ridgeline::metrics {

// Passes all events on to another observer, and updates the file every few seconds. The file is always complete: a
// temporary one is written, synced and renamed.
class MetricsFile final : public driver::RunObserver {
 public:
  // Writes the file; throws Error(kInfrastructure) if that fails. `db` is the store's file. The other arguments must
  // outlive it.
  MetricsFile(std::filesystem::path file, std::filesystem::path db, store::Store& store, const Clock& clock,
              driver::RunObserver& shown);
  // Writes it once more, without a driver at work.
  ~MetricsFile() override;
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void Started(const driver::RunStart& start) override { shown_.Started(start); }
  void PointEnded(const std::string& label, const std::string& outcome, const driver::RunProgress& progress) override {
    shown_.PointEnded(label, outcome, progress);
  }
  void Note(const std::string& text) override { shown_.Note(text); }
  // Also true if it is time to write and nothing else is shown.
  bool WantsProgress(int64_t monotonic_ns) override;
  void Progress(const driver::RunProgress& progress) override;
  void Working(const std::string& line) override { shown_.Working(line); }

 private:
  void Write(bool at_work);

  std::filesystem::path file_;
  std::filesystem::path db_;
  store::Store& store_;
  const Clock& clock_;
  driver::RunObserver& shown_;
  int64_t next_ns_ = 0;  // no writing before this time
  bool is_shown_ = false;
  std::string last_trouble_;
};

}  // namespace ridgeline::metrics
