#include "collect/collect.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/folders.h"
#include "base/json.h"
#include "base/text.h"
#include "collect/job_ends.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/job_line.h"
#include "ridgeline/limits.h"
#include "run/disturbance.h"
#include "run/job.h"
#include "run/result.h"
#include "run/results_file.h"
#include "trainers/node_part.h"

namespace ridgeline::collect {
namespace {

constexpr size_t kChunk = 128;  // points that are read before they are written
constexpr size_t kReaders = 4;  // groups that are read while one is written
constexpr size_t kMostPartsBytes = size_t{64} << 20;
constexpr int64_t kNodesStartApartNs = 900'000'000'000;
constexpr char kBeganKey[] = "began";  // the driver's own: "no" if the job ended before the point's turn

// Makes a result for a point that left none that can be used, with all that is known about the reason.
RunResult WithoutResult(const JobToCollect& from, const std::string& point_id, const RunEnd& end, std::string message,
                        std::string hint, int64_t now_unix_ns) {
  RunResult result;
  result.point_id = point_id;
  SetEnd(end, result);
  result.message = std::move(message);
  result.hint = std::move(hint);
  result.evidence = from.evidence;
  if (std::string tail = ReadLogTail(PointDir(from.job.job_dir, point_id) / LogName(0), kLogTailBytes); !tail.empty()) {
    result.evidence["log_tail"] = std::move(tail);
  }
  result.ended_unix_ns = now_unix_ns;
  return result;
}

RunResult DecodeOf(const std::string& point_id, const std::string& text, const std::string& source) {
  RunResult result = DecodeResult(ParseJson(text, source), source);
  if (result.point_id != point_id) {
    throw Error(ErrorKind::kInvalidInput, fmt::format("{}: the result of another point, '{}'", source,
                                                      ShortenToBytes(result.point_id, kMaxNameBytes)));
  }
  return result;
}

// Returns "FILE has 2 lines that were cut or damaged"; empty if there are none.
std::string BrokenLines(const std::filesystem::path& file, int64_t count) {
  if (count == 0) return {};
  return fmt::format("{} has {} that {} cut or damaged", file.string(),
                     count == 1 ? "a line" : fmt::format("{} lines", count), count == 1 ? "was" : "were");
}

// Reads one job's new results, in parts.
class JobReading {
 public:
  JobReading(const JobToCollect& from, int64_t now_unix_ns)
      : from_(from),
        now_unix_ns_(now_unix_ns),
        live_(store::IsLive(from.state)),
        read_(from.results != nullptr ? *from.results : JobResults()),
        lines_(from.job.job_dir, read_.offset) {
    read_.lacks_lines = false;
    wanted_count_ =
        static_cast<size_t>(std::ranges::count(from.job.points, false, &store::JobRecord::Point::has_result));
    any_began_ = wanted_count_ < from.job.points.size();
  }

  bool done() const { return lines_done_ && next_ == from_.job.points.size(); }
  size_t wanted() const { return wanted_count_; }
  bool has_ended() const { return !live_ && !read_.lacks_lines; }
  const JobToCollect& from() const { return from_; }

  // Returns about `most` results; none once it is done.
  std::vector<store::NewResult> Next(size_t most) {
    std::vector<store::NewResult> found;
    if (!lines_done_) ReadLines(most, found);
    if (!lines_done_) return found;
    const auto& points = from_.job.points;
    if (live_) next_ = points.size();  // `ridgeline exec` may run an interrupted point again
    for (; next_ < points.size() && found.size() < most; ++next_) {
      if (!Wanted().contains(points[next_].id)) continue;
      if (std::optional<RunResult> result = WithoutFinalLine(points[next_].id)) Keep(*std::move(result), found);
    }
    return found;
  }

  // The store has everything that was read so far.
  void Commit() {
    read_.offset = lines_.offset();
    read_.broken += lines_.broken();
    if (from_.results != nullptr) *from_.results = std::move(read_);
  }

 private:
  // Is filled when something is first looked up: jobs are looked at often, and seldom have anything new.
  std::map<std::string_view, const store::JobRecord::Point*>& Wanted() {
    if (wanted_.empty() && wanted_count_ > 0) {
      for (const store::JobRecord::Point& point : from_.job.points) {
        if (!point.has_result) wanted_.emplace(point.id, &point);
      }
    }
    return wanted_;
  }

  void ReadLines(size_t most, std::vector<store::NewResult>& found) {
    try {
      lines_done_ = lines_.ReadNew([&](const JobLine& line) {
        TakeLine(line, found);
        return found.size() < most;
      });
      if (lines_done_) TakeAwaiting(found);
      if (lines_done_ && live_) LookForFailedPart();
    } catch (const Error& e) {
      // Something else is in the file's place. That must not affect other jobs.
      if (e.kind() != ErrorKind::kInvalidInput) throw;
      no_lines_ = e.message();
      lines_done_ = true;
    }
  }

  void Keep(RunResult result, std::vector<store::NewResult>& found) {
    const auto point = Wanted().extract(result.point_id).mapped();
    --wanted_count_;
    read_.unfinished.erase(point->id);
    read_.parts.Forget(point->id);
    found.push_back({std::move(result), from_.job.key, point->attempt});
  }

  void TakeLine(const JobLine& line, std::vector<store::NewResult>& found) {
    any_began_ = true;
    if (!Wanted().contains(line.point_id)) return;
    try {
      RunResult result = DecodeOf(line.point_id, line.payload, lines_.path().string());
      if (result.status == RunStatus::kOk && RanOnSeveralNodes(result)) KeepWhatAwaitedNodes(found);
      if (Stands(result)) return Keep(std::move(result), found);
    } catch (const Error&) {
      // Reported when the job ends, if nothing better has come by then.
    }
    read_.unfinished[line.point_id] = line.payload;
  }

  // Whether the result is final whatever happens to its job.
  static bool Stands(const RunResult& result) {
    return store::IsFinal(result.status) && !MayBeOfALostNode(result) && !trainers::AwaitsNodes(result);
  }

  static bool EndedWellAlone(const RunResult& first) {
    return first.evidence.at(trainers::kAwaitsNodesEvidence) == EndName(RunStatus::kOk);
  }

  static bool LacksParts(const RunResult& result) {
    return result.status == RunStatus::kOk && result.evidence.contains(trainers::kMissingPartsEvidence);
  }

  // For points whose nodes share no folder: completes the results of those whose nodes have all reported their parts.
  void TakeAwaiting(std::vector<store::NewResult>& found) {
    bool looked = false;
    read_.awaiting.clear();
    for (const auto& [point_id, text] : std::map(read_.unfinished)) {
      if (text.find(trainers::kAwaitsNodesEvidence) == std::string::npos || !Wanted().contains(point_id)) continue;
      try {
        const RunResult first = DecodeOf(point_id, text, lines_.path().string());
        if (!trainers::AwaitsNodes(first)) continue;
        if (!std::exchange(looked, true)) LookForParts();
        std::optional<RunResult> whole =
            trainers::CompleteResult(first, read_.parts.Of(point_id), /*last=*/false, Told());
        if (!whole) {
          if (read_.awaiting.empty() && EndedWellAlone(first)) read_.awaiting = point_id;
          continue;
        }
        if (Stands(*whole)) {
          Keep(*std::move(whole), found);
        } else {
          read_.unfinished[point_id] = DumpJson(EncodeResult(*whole));
        }
      } catch (const Error&) {
        // Reported when the job ends, as for every line that is no result.
      }
    }
  }

  // Nodes that share the job's folder end when another node fails in a point. Without a shared folder nothing ends
  // them.
  void LookForFailedPart() {
    read_.failed_part.clear();
    if (wanted_count_ == 0) return;
    LookForParts();
    for (const auto& [point_id, point] : Wanted()) {
      if (!read_.failed_part.empty()) return;
      const std::string id(point_id);
      if (const auto failed = trainers::FirstFailure(read_.parts.Of(id), SinceUnixNs())) {
        read_.failed_part = fmt::format("{}: {}", EndName(EndOf(*failed)), failed->message);
      }
    }
  }

  // A job counts as started when its last node has started, and the first may have failed by then.
  int64_t SinceUnixNs() const { return std::max<int64_t>(0, from_.job.started_unix_ns - kNodesStartApartNs); }

  trainers::ToldBy Told() const {
    return from_.evidence.contains(said::kGangEnded) ? trainers::ToldBy::kUs : trainers::ToldBy::kOthers;
  }

  // The result of a point whose first node was ended before it reported anything.
  std::optional<RunResult> OfFailedPart(const std::string& point_id) {
    if (Told() == trainers::ToldBy::kOthers) return std::nullopt;
    LookForParts();
    std::optional<RunResult> failed = trainers::FirstFailure(read_.parts.Of(point_id), SinceUnixNs());
    if (!failed) return std::nullopt;
    failed->point_id = point_id;
    failed->evidence[trainers::kMissingPartsEvidence] = "the first node was ended before it reported its measurements";
    return failed;
  }

  // Skips the parts of points that have a result.
  void LookForParts() {
    try {
      ReadPartLines(from_.job.job_dir, read_.parts.offset, [&](JobLine line) {
        if (Wanted().contains(line.point_id)) read_.parts.Take(std::move(line));
      });
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInvalidInput) throw;  // a malformed part counts as missing
    }
  }

  // All nodes of the job are present, so the earlier points caused their own ends.
  void KeepWhatAwaitedNodes(std::vector<store::NewResult>& found) {
    for (const auto& [point_id, text] : std::map(read_.unfinished)) {
      try {
        RunResult result = DecodeOf(point_id, text, lines_.path().string());
        if (MayBeOfALostNode(result) && !trainers::AwaitsNodes(result)) Keep(std::move(result), found);
      } catch (const Error&) {
        // Reported when the job ends, as for every line that is no result.
      }
    }
  }

  // The result of a point of an ended job. Returns nothing if lines of the job may still come.
  std::optional<RunResult> WithoutFinalLine(const std::string& point_id) {
    try {
      const auto line = read_.unfinished.find(point_id);
      if (line == read_.unfinished.end()) {
        if (std::optional<RunResult> failed = OfFailedPart(point_id)) return failed;
        if (from_.lines_may_come && no_lines_.empty()) read_.lacks_lines = true;
        return read_.lacks_lines ? std::nullopt : std::optional(Missing(point_id));
      }
      RunResult result = DecodeOf(point_id, line->second, lines_.path().string());
      if (trainers::AwaitsNodes(result)) {
        LookForParts();
        result = *trainers::CompleteResult(result, read_.parts.Of(point_id), /*last=*/true, Told());
      }
      if (MayBeOfALostNode(result) || LacksParts(result)) {
        CorrectEndOfSeveral(from_, result);
      } else {
        CorrectEnd(from_, result);
      }
      return result;
    } catch (const Error& e) {
      // If a file exists and cannot be read, the disk is at fault, not the point. The caller handles that.
      if (e.kind() == ErrorKind::kInfrastructure) throw;
      RunResult result = WithoutResult(from_, point_id, InfrastructureReason::kStorage,
                                       "its result cannot be used: " + e.message(), "the file was kept", now_unix_ns_);
      SayFile(lines_.path(), e.message(), result);
      return result;
    }
  }

  static void SayFile(const std::filesystem::path& file, const std::string& error, RunResult& result) {
    result.evidence["result_file"] = file.string();
    result.evidence["result_error"] = error;
  }

  // Why lines are missing that should be there; empty if no reason is known.
  std::string TroubleWithLines() const {
    return no_lines_.empty() ? BrokenLines(lines_.path(), read_.broken + lines_.broken()) : no_lines_;
  }

  RunResult Missing(const std::string& point_id) const {
    const bool began = Began(point_id);
    RunEnd end = EndOfJob(from_, began);
    const std::string early =
        end.status == RunStatus::kTimeout
            ? WhyTooEarly(from_, point_id, ModifiedUnixNs(PointDir(from_.job.job_dir, point_id) / SpecName(0)),
                          EndOfJobUnixNs())
            : "";
    if (!early.empty()) end = InfrastructureReason::kStart;
    const bool owed = !began && end.status != RunStatus::kCancelled && OthersBegan();
    std::string message = fmt::format("job {} ended ({}) {}", from_.job.key, EndName(end),
                                      owed     ? "before this point's turn"
                                      : !began ? "before this point began"
                                               : "without a result of this point");
    if (const std::string said = early.empty() ? Said(from_, said::kMessage) : early; !said.empty())
      message += ": " + said;
    const std::string trouble = TroubleWithLines();
    if (!trouble.empty()) message += "; " + trouble;
    if (owed) end = InfrastructureReason::kLost;
    if (!no_lines_.empty() && end.status == RunStatus::kInfrastructure) end = InfrastructureReason::kStorage;
    std::string hint = Said(from_, said::kHint);
    if (hint.empty() && !store::IsFinal(end.status)) hint = "`ridgeline run` with the same sweep runs it again";
    RunResult result = WithoutResult(from_, point_id, end, std::move(message), std::move(hint), now_unix_ns_);
    if (owed) result.evidence[kBeganKey] = "no";
    if (!trouble.empty()) SayFile(lines_.path(), trouble, result);
    return result;
  }

  int64_t EndOfJobUnixNs() const { return int64_t{std::atoll(Said(from_, said::kEndedUnixS).c_str())} * 1'000'000'000; }

  bool Began(const std::string& point_id) const {
    std::error_code ec;
    return std::filesystem::exists(PointDir(from_.job.job_dir, point_id), ec);
  }

  bool OthersBegan() const {
    const auto& points = from_.job.points;
    return points.size() > 1 && (any_began_ || std::any_of(points.begin(), points.end(),
                                                           [&](const auto& point) { return Began(point.id); }));
  }

  const JobToCollect& from_;
  int64_t now_unix_ns_;
  bool live_;
  JobResults read_;
  ResultsReader lines_;
  std::map<std::string_view, const store::JobRecord::Point*> wanted_;  // points without a result; filled on first use
  size_t wanted_count_ = 0;
  bool any_began_ = false;
  bool lines_done_ = false;
  std::string no_lines_;  // why the results file is unusable
  size_t next_ = 0;       // index of the next point, once the lines are done
};

// A fault in what a job left is one more problem. A failure of the system ends everything.
template <typename Act>
void OrProblem(FolderCollection& found, Act act) {
  try {
    act();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInvalidInput) throw;
    found.problems.push_back(e.message());
  }
}

// Adds a result of a job that no driver submitted. The job may still run, so only a final result counts. `parts`: what
// the nodes of such points reported.
void AddFound(store::Store& store, const std::string& point_id, const std::string& text, const std::string& source,
              const MeasurementKey& measured_as, const PartsTold& parts, FolderCollection& found) {
  OrProblem(found, [&] {
    RunResult result = DecodeOf(point_id, text, source);
    if (trainers::AwaitsNodes(result)) {
      std::optional<RunResult> whole = trainers::CompleteResult(result, parts.Of(point_id), /*last=*/false);
      if (!whole) {
        found.problems.push_back(
            fmt::format("{}: the result of {} lacks what its other nodes' pods say: their logs must be here, too",
                        source, point_id));
        return;
      }
      result = *std::move(whole);
    }
    if (!store::IsFinal(result.status)) return;
    const store::NewResult fresh{std::move(result), "", 0, measured_as};
    found.added += std::ssize(store.AddResults({&fresh, 1}));
  });
}

}  // namespace

std::vector<Collected> Collect(store::Store& store, std::span<const JobToCollect> jobs, int64_t now_unix_ns) {
  std::deque<JobReading> readings;
  for (const JobToCollect& from : jobs) {
    JobReading& reading = readings.emplace_back(from, now_unix_ns);
    if (store::IsLive(from.state) && reading.wanted() == 0) readings.pop_back();
  }
  if (readings.empty()) return {};

  std::vector<Collected> collected;
  const auto keep = [&](const std::vector<store::NewResult>& results) {
    for (const size_t i : store.AddResults(results)) {
      const RunResult& result = results[i].result;
      const int64_t duration_ns = result.started_unix_ns > 0 ? result.ended_unix_ns - result.started_unix_ns : 0;
      const auto node = result.evidence.find(said::kNode);
      collected.push_back({result.point_id, EndOf(result), result.message,
                           node == result.evidence.end() ? "" : node->second, result.throughput.steady_tokens_per_s,
                           std::max<int64_t>(duration_ns, 0), result.repeat, !result.evidence.contains(kBeganKey),
                           Disturbance(result)});
    }
  };
  // Jobs are read ahead in parallel, in groups of about kChunk points. The last job of a group may be larger; then only
  // its first kChunk points are read ahead.
  using Group = std::span<JobReading* const>;
  std::vector<JobReading*> order;
  for (JobReading& reading : readings) order.push_back(&reading);
  size_t next = 0;
  const auto next_group = [&] {
    const size_t first = next;
    for (size_t points = 0; next < order.size() && points < kChunk; ++next) points += order[next]->wanted();
    return Group(order).subspan(first, next - first);
  };
  const auto read = [](Group group) {
    std::vector<store::NewResult> results;
    for (JobReading* reading : group) std::ranges::move(reading->Next(kChunk), std::back_inserter(results));
    return results;
  };
  std::deque<std::pair<JobReading*, std::future<std::vector<store::NewResult>>>> reading_ahead;
  const auto read_ahead = [&] {
    while (reading_ahead.size() < kReaders && next < order.size()) {
      const Group group = next_group();
      // A single group is the usual case and needs no thread.
      const auto policy = group.size() == order.size() ? std::launch::deferred : std::launch::async;
      reading_ahead.emplace_back(group.back(), std::async(policy, read, group));
    }
  };
  store.Transact([&] {
    for (read_ahead(); !reading_ahead.empty(); read_ahead()) {
      JobReading* last = reading_ahead.front().first;
      const std::vector<store::NewResult> results = reading_ahead.front().second.get();
      reading_ahead.pop_front();
      read_ahead();
      keep(results);
      while (!last->done()) keep(last->Next(kChunk));
    }
    for (const JobReading& reading : readings) {
      const JobToCollect& from = reading.from();
      if (reading.has_ended()) store.SetJobState(from.job.key, from.state, from.evidence, now_unix_ns);
    }
  });
  for (JobReading& reading : readings) reading.Commit();
  return collected;
}

void PartsTold::Take(JobLine line) {
  const std::optional<int64_t> node = trainers::NodeOfPart(line.payload);
  if (!node || line.payload.size() > kMostPartsBytes - bytes_) return;
  bytes_ += line.payload.size();
  std::string& payload = payloads_[line.point_id][*node];
  bytes_ -= payload.size();
  payload = std::move(line.payload);
}

std::vector<std::string> PartsTold::Of(const std::string& point_id) const {
  std::vector<std::string> all;
  const auto point = payloads_.find(point_id);
  if (point == payloads_.end()) return all;
  for (const auto& [node, payload] : point->second) all.push_back(payload);
  return all;
}

void PartsTold::Forget(const std::string& point_id) {
  for (const std::string& payload : Of(point_id)) bytes_ -= payload.size();
  payloads_.erase(point_id);
}

void CollectJobFolder(store::Store& store, const std::filesystem::path& job_dir, const MeasuredAs& points,
                      FolderCollection& found) {
  ResultsReader results(job_dir);
  PartsTold parts;
  OrProblem(found, [&] {
    ReadPartLines(job_dir, parts.offset, [&](JobLine line) {
      if (points.contains(line.point_id)) parts.Take(std::move(line));
    });
    results.ReadNew([&](const JobLine& line) {
      if (const auto point = points.find(line.point_id); point != points.end()) {
        AddFound(store, point->first, line.payload, results.path().string(), point->second, parts, found);
      } else {
        found.strangers.Add(line.point_id);
      }
      return true;
    });
  });
  if (std::string broken = BrokenLines(results.path(), results.broken()); !broken.empty()) {
    found.problems.push_back(std::move(broken));
  }
}

// Reports once what was passed over.
void SayPassedOver(const std::filesystem::path& where, FolderCollection& found) {
  if (found.strangers.empty()) return;
  found.problems.push_back(
      fmt::format("{} has results that were not read, of {}", where.string(),
                  found.strangers.Words("point that is not the sweep's", "points that are not the sweep's")));
}

FolderCollection CollectJobFolders(store::Store& store, const std::filesystem::path& jobs_dir,
                                   const MeasuredAs& points) {
  FolderCollection found;
  PassedOver others;
  store.Transact([&] {
    ForEachEntry(jobs_dir, [&](const auto& job) {
      std::error_code ec;
      // What `ridgeline render` and the jobs' launchers keep beside the folders.
      const bool is_own = job.path().extension() == ".log" || job.path().filename() == kRenderedSweepName;
      CollectJobFolder(store, job.path(), points, found);
      if (!is_own && !std::filesystem::is_directory(job.path(), ec)) others.Add(job.path().filename().string());
    });
  });
  SayPassedOver(jobs_dir, found);
  if (!others.empty()) {
    found.problems.push_back(
        fmt::format("{} has {}", jobs_dir.string(),
                    others.Words("file that is not a job's folder", "files that are not jobs' folders")));
  }
  return found;
}

FolderCollection CollectLogs(store::Store& store, const std::filesystem::path& dir, const MeasuredAs& points) {
  FolderCollection found;
  const auto each_line = [&](const std::function<void(const std::string& log, JobLine line)>& take) {
    ForEachEntry(dir, [&](const auto& file) {
      std::error_code ec;
      if (file.path().extension() != ".log" || !file.is_regular_file(ec)) return;
      OrProblem(found, [&] {
        ReadPrintedLines(file.path(), [&](const JobLine& line) {
          if (points.contains(line.point_id)) {
            take(file.path().string(), line);
          } else {
            found.strangers.Add(line.point_id);
          }
        });
      });
    });
  };
  store.Transact([&] {
    PartsTold parts;
    each_line([&](const std::string&, JobLine line) {
      if (line.kind == kPartLine) parts.Take(std::move(line));
    });
    found.problems.clear();  // the second reading finds them again
    each_line([&](const std::string& log, const JobLine& line) {
      if (line.kind != kResultLine) return;
      AddFound(store, line.point_id, line.payload, log, points.at(line.point_id), parts, found);
    });
  });
  SayPassedOver(dir, found);
  return found;
}

}  // namespace ridgeline::collect
