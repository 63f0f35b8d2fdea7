#include "collect/collect.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "ridgeline/job_dir.h"
#include "ridgeline/job_line.h"
#include "run/job.h"
#include "run/result.h"

namespace ridgeline {
namespace {

constexpr size_t kChunk = 128;  // points read before they are written
constexpr size_t kReaders = 4;  // chunks being read while one is written
// launcher.h: what the scheduler says the end was, and its words for people.
constexpr char kEndKey[] = "end";
constexpr char kMessageKey[] = "message";
constexpr char kHintKey[] = "hint";
constexpr char kBeganKey[] = "began";  // our own: "no" where the job ended before the point's turn

struct Task {
  const JobToCollect* from;
  const JobRecord::Point* point;
};

// A result for a point that left none we can use, with all that is known about why.
RunResult WithoutFile(const Task& task, RunStatus status, std::string message, std::string hint, int64_t now_unix_ns) {
  RunResult result;
  result.point_id = task.point->id;
  result.status = status;
  result.message = std::move(message);
  result.hint = std::move(hint);
  result.evidence = task.from->evidence;
  if (std::string tail = ReadTail(PointDir(task.from->job.job_dir, task.point->id) / LogName(0), kLogTailBytes);
      !tail.empty()) {
    result.evidence["log_tail"] = std::move(tail);
  }
  result.ended_unix_ns = now_unix_ns;
  return result;
}

// How a point of an ended job ended, where the job left no result of it.
RunStatus EndOf(const JobToCollect& from) {
  if (const auto end = from.evidence.find(kEndKey); end != from.evidence.end() && end->second != "ok") {
    const auto& names = StatusNames();
    if (std::find(names.begin(), names.end(), end->second) != names.end()) return StatusFromName(end->second);
  }
  return from.state == JobRecord::State::kCancelled ? RunStatus::kCancelled : RunStatus::kLost;
}

std::string Said(const JobToCollect& from, const char* key) {
  const auto it = from.evidence.find(key);
  return it == from.evidence.end() ? "" : it->second;
}

bool Began(const JobRecord& job, const JobRecord::Point& point) {
  std::error_code ec;
  return std::filesystem::exists(PointDir(job.job_dir, point.id), ec);
}

// Others of its job began, and the job ended before this one's turn.
bool NeverBegan(const Task& task) {
  const JobRecord& job = task.from->job;
  return job.points.size() > 1 && !Began(job, *task.point) &&
         std::any_of(job.points.begin(), job.points.end(), [&](const auto& point) { return Began(job, point); });
}

RunResult Missing(const Task& task, int64_t now_unix_ns) {
  const RunStatus end = EndOf(*task.from);
  const bool never_began = NeverBegan(task) && end != RunStatus::kCancelled;
  const RunStatus status = never_began ? RunStatus::kLost : end;
  std::string message = fmt::format("job {} ended ({}) {}", task.from->job.key, StatusName(end),
                                    never_began ? "before this point's turn" : "without a result of this point");
  if (const std::string said = Said(*task.from, kMessageKey); !said.empty()) message += ": " + said;
  std::string hint = Said(*task.from, kHintKey);
  if (hint.empty() && !IsFinal(status)) hint = "`ridgeline run` with the same sweep runs it again";
  RunResult result = WithoutFile(task, status, std::move(message), std::move(hint), now_unix_ns);
  if (never_began) result.evidence[kBeganKey] = "no";
  return result;
}

// On the node nobody knows why a job is told to end; its scheduler does.
void CorrectEnd(const JobToCollect& from, RunResult& result) {
  const RunStatus end = EndOf(from);
  if (result.status != RunStatus::kCancelled || end == RunStatus::kLost) return;
  const std::string said = Said(from, kMessageKey);
  if (said.empty() && end == RunStatus::kCancelled) return;  // it is what the node took it for
  result.status = end;
  result.message = said.empty() ? fmt::format("the scheduler says: {}", StatusName(end)) : said;
  result.hint = Said(from, kHintKey);
  for (const auto& [name, value] : from.evidence) result.evidence.try_emplace(name, value);
}

// Nothing where there is nothing to keep yet.
std::optional<RunResult> ReadResult(const Task& task, int64_t now_unix_ns) {
  const bool live = IsLive(task.from->state);
  const std::filesystem::path file = ResultFile(task.from->job.job_dir, task.point->id);
  // A file that is there and cannot be read is the disk's fault, not the point's: that is for the caller.
  const std::optional<std::string> bytes = ReadFileIfThere(file);
  if (!bytes) return live ? std::nullopt : std::optional(Missing(task, now_unix_ns));
  try {
    RunResult result = DecodeResult(ParseJson(*bytes, file.string()), file.string());
    if (result.point_id != task.point->id) {
      throw Error(ErrorKind::kInvalidInput,
                  fmt::format("{}: the result of another point, '{}'", file.string(), result.point_id));
    }
    // While its job lives, `ridgeline exec` may run an interrupted point again.
    if (live && !IsFinal(result.status)) return std::nullopt;
    if (!live) CorrectEnd(*task.from, result);
    return result;
  } catch (const Error& e) {
    if (live) return std::nullopt;
    RunResult result = WithoutFile(task, RunStatus::kCrashed, "its result file cannot be used: " + e.message(),
                                   "the file was kept; `--retry failed` runs the point again", now_unix_ns);
    result.evidence["result_file"] = file.string();
    result.evidence["result_error"] = e.message();
    return result;
  }
}

std::vector<NewResult> ReadChunk(std::span<const Task> tasks, int64_t now_unix_ns) {
  std::vector<NewResult> results;
  results.reserve(tasks.size());
  for (const Task& task : tasks) {
    if (std::optional<RunResult> result = ReadResult(task, now_unix_ns)) {
      results.push_back({*std::move(result), task.from->job.key, task.point->attempt});
    }
  }
  return results;
}

// A result that nobody asked a launcher for. Its job may still run, so only what is final counts.
void AddFound(Store& store, const std::string& point_id, const std::string& text, const std::string& source,
              const MeasurementKey& measured_as, FolderCollection& found) {
  try {
    RunResult result = DecodeResult(ParseJson(text, source), source);
    if (result.point_id != point_id) {
      throw Error(ErrorKind::kInvalidInput,
                  fmt::format("{}: the result of another point, '{}'", source, result.point_id));
    }
    if (!IsFinal(result.status)) return;
    const NewResult fresh{std::move(result), "", 0, measured_as};
    found.added += std::ssize(store.AddResults({&fresh, 1}));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInvalidInput) throw;
    found.problems.push_back(e.message());
  }
}

}  // namespace

std::vector<Collected> Collect(Store& store, std::span<const JobToCollect> jobs, int64_t now_unix_ns) {
  std::vector<Task> tasks;
  for (const JobToCollect& from : jobs) {
    for (const JobRecord::Point& point : from.job.points) {
      if (!point.has_result) tasks.push_back({&from, &point});
    }
  }
  const bool any_ended = std::any_of(jobs.begin(), jobs.end(), [](const auto& from) { return !IsLive(from.state); });
  if (tasks.empty() && !any_ended) return {};

  const std::span<const Task> all(tasks);
  size_t next = 0;
  std::deque<std::future<std::vector<NewResult>>> reading;
  // A single chunk, which is nearly always all there is, needs no thread.
  const auto policy = all.size() > kChunk ? std::launch::async : std::launch::deferred;
  const auto read_ahead = [&] {
    while (reading.size() < kReaders && next < all.size()) {
      const auto chunk = all.subspan(next, std::min(kChunk, all.size() - next));
      next += chunk.size();
      reading.push_back(std::async(policy, ReadChunk, chunk, now_unix_ns));
    }
  };

  std::vector<Collected> collected;
  const auto keep = [&](const std::vector<NewResult>& results) {
    for (const size_t i : store.AddResults(results)) {
      const RunResult& result = results[i].result;
      const int64_t duration_ns = result.started_unix_ns > 0 ? result.ended_unix_ns - result.started_unix_ns : 0;
      collected.push_back({result.point_id, result.status, result.message, result.throughput.steady_tokens_per_s,
                           std::max<int64_t>(duration_ns, 0), !result.evidence.contains(kBeganKey)});
    }
  };
  const auto collect_all = [&] {
    for (read_ahead(); !reading.empty();) {
      const std::vector<NewResult> results = reading.front().get();
      reading.pop_front();
      read_ahead();
      keep(results);
    }
    for (const JobToCollect& from : jobs) {
      if (!IsLive(from.state)) store.SetJobState(from.job.key, from.state, from.evidence, now_unix_ns);
    }
  };
  store.Transact(collect_all);
  return collected;
}

FolderCollection CollectJobFolders(Store& store, const std::filesystem::path& jobs_dir, const MeasuredAs& points) {
  FolderCollection found;
  std::error_code ec;
  store.Transact([&] {
    for (const auto& job : std::filesystem::directory_iterator(jobs_dir, ec)) {
      for (const auto& file : std::filesystem::directory_iterator(ResultsDir(job.path()), ec)) {
        const auto point = points.find(file.path().stem().string());
        if (file.path().extension() != ".json" || point == points.end()) continue;
        AddFound(store, point->first, ReadFile(file.path()), file.path().string(), point->second, found);
      }
    }
  });
  return found;
}

FolderCollection CollectLogs(Store& store, const std::filesystem::path& dir, const MeasuredAs& points) {
  FolderCollection found;
  std::error_code ec;
  store.Transact([&] {
    for (const auto& file : std::filesystem::directory_iterator(dir, ec)) {
      if (file.path().extension() != ".log") continue;
      std::ifstream log(file.path());
      for (std::string line; std::getline(log, line);) {
        // `kubectl logs --prefix` says before each line whose it is.
        const size_t begin = line.find(kJobLineMark);
        const auto told =
            begin == std::string::npos ? std::nullopt : ParseJobLine(std::string_view(line).substr(begin));
        const auto point = told && told->kind == kResultLine ? points.find(told->point_id) : points.end();
        if (point == points.end()) continue;
        AddFound(store, point->first, told->payload, file.path().string(), point->second, found);
      }
    }
  });
  return found;
}

}  // namespace ridgeline
