// A store with a sweep, and jobs whose folders a test fills.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "collect/collect.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/job_line.h"
#include "run/results_file.h"
#include "tests/base/temp_dir.h"
#include "tests/store/samples.h"

namespace ridgeline::collect {

class CollectTest : public ::testing::Test {
 protected:
  CollectTest() { store_.PutSweep(samples::Sweep("s"), points_); }

  MeasuredAs MeasuredAsDefault() const {
    MeasuredAs measured_as;
    for (const Point& point : points_) measured_as.emplace(point.id, MeasurementKey());
    return measured_as;
  }

  // A submitted job with a folder.
  store::JobRecord Submit(const std::string& key, const std::vector<Point>& points) {
    store::JobRecord job = samples::Job(key, "s", points);
    job.job_dir = dir_ / key;
    MakeDirs(job.job_dir);
    store_.RecordIntents({&job, 1});
    store_.MarkSubmitted(key, "1", 20);
    return Live(key);
  }
  store::JobRecord Live(const std::string& key) {
    for (store::JobRecord& job : store_.LiveJobs()) {
      if (job.key == key) return job;
    }
    return {};
  }
  static void WriteResult(const store::JobRecord& job, const RunResult& result) {
    ResultsWriter(job.job_dir).Append(result);
  }
  static void WriteLine(const store::JobRecord& job, const std::string& id, const std::string& payload) {
    std::ofstream(ResultsFile(job.job_dir), std::ios::app) << FormatJobLine({std::string(kResultLine), id, payload});
  }
  static void WriteLog(const store::JobRecord& job, const std::string& id, const std::string& text) {
    MakeDirs(PointDir(job.job_dir, id));
    WriteFileAtomic(PointDir(job.job_dir, id) / "log.txt", text);
  }
  std::vector<Collected> End(const store::JobRecord& job, std::map<std::string, std::string> evidence = {},
                             store::JobRecord::State state = store::JobRecord::State::kEnded) {
    const JobToCollect from{job, state, std::move(evidence)};
    return Collect(store_, {&from, 1}, 777);
  }
  Cell Of(size_t point, const std::string& column) {
    return samples::Value(store_, "SELECT " + column + " FROM runs WHERE point_id = '" + points_[point].id + "'");
  }

  TempDir dir_;
  store::Store store_ = store::Store::Open(dir_ / "ridgeline.db", store::Store::Mode::kReadWrite);
  std::vector<Point> points_ = samples::Points(5);
};

}  // namespace ridgeline::collect
