#include "cli/known_runs.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/table.h"
#include "base/text.h"
#include "driver/counting_line.h"
#include "predict/known_runs.h"
#include "ridgeline/amount.h"
#include "run/gpus.h"
#include "run/spec.h"
#include "session/say.h"
#include "session/session.h"
#include "store/store.h"
#include "sweep/expand.h"

namespace ridgeline::cli {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMostFileBytes = size_t{16} << 20;

// The GPU of a run: the recorded one, else the one that its spec names. Nothing if they differ, or if the recorded GPU
// is unknown to us.
std::optional<std::string> GpuOf(const RunSpec& spec, const std::string& recorded) {
  if (spec.device != "cuda" || recorded.empty()) return spec.gpu;
  const Gpu* gpu = FindGpuOfDriver(recorded);
  if (gpu == nullptr || (spec.gpu != "none" && spec.gpu != gpu->name)) return std::nullopt;
  return std::string(gpu->name);
}

// Adds the newest run of each point.
void AddOfDatabase(const std::string& path, std::vector<predict::KnownRun>& runs) {
  store::Store store = session::OpenStore(path, store::Store::Mode::kReadOnly);
  Table table = store.Query(fmt::format(
      "SELECT p.spec, r.device_name, iif(r.step_median_ns > 0, r.step_median_ns, CAST(1e9 * r.tokens_per_step / "
      "r.steady_tokens_per_s AS INTEGER)) AS step_ns, max(r.number) FROM results AS r JOIN points AS p ON p.id = "
      "r.point_id WHERE r.provenance = 'measured' AND r.status = 'ok' AND r.emulated = 0 AND "
      "(r.step_median_ns > 0 OR r.steady_tokens_per_s > 0) GROUP BY r.point_id ORDER BY max(r.number) DESC LIMIT {}",
      100 * predict::kMostKnownRuns));
  std::reverse(table.rows.begin(), table.rows.end());
  const std::string from = PrintableLine(fs::path(path).filename().string());
  std::map<std::string, int64_t> elsewhere;  // counts runs on a GPU other than the one that they name
  for (const auto& row : table.rows) {
    RunSpec spec = DecodeSpec(ParseJson(CellText(row[0]), "a point"), "a point");
    const std::string recorded = CellText(row[1]);
    std::optional<std::string> gpu = GpuOf(spec, recorded);
    if (!gpu) {
      ++elsewhere[fmt::format("gpu {}, and ran on {}", spec.gpu, PrintableLine(ShortenToBytes(recorded, 80)))];
      continue;
    }
    runs.push_back({.spec = std::move(spec),
                    .gpu = std::move(*gpu),
                    .step_ns = static_cast<double>(CellInteger(row[2])),
                    .from = from});
  }
  for (const auto& [what, count] : elsewhere) {
    session::SayAside("--known: {} of {} left out: {} {}\n", count == 1 ? "1 run" : fmt::format("{} runs", count), from,
                      count == 1 ? "it names" : "they name", what);
  }
}

void AddOfFile(const std::string& path, const std::string& text, std::vector<predict::KnownRun>& runs) {
  std::istringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty()) runs.push_back(predict::DecodeKnownRun(line, fmt::format("{}:{}", path, number)));
  }
}

// Parses ID=TIME.
predict::KnownRun TypedRun(const std::string& said, const sweep::Sweep& sweep, const predict::Device& device) {
  static constexpr Unit kTimes[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};
  const size_t equals = said.find('=');
  const std::string id = said.substr(0, equals);
  const auto time = equals == std::string::npos ? std::nullopt : ParseAmount(said.substr(equals + 1), kTimes);
  if (!time || *time < 1 || id.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("predict: --known takes an existing file, or a point and the time of its step, not '{}'",
                            PrintableLine(ShortenToBytes(said, 80))),
                "such as --known runs.db, or --known 3f2a=930ms");
  }
  std::vector<predict::KnownRun> found;
  for (const Point& point : sweep::Expand(sweep)) {
    if (point.id.starts_with(id)) found.push_back({point.spec, device.gpu, *time, true, "typed"});
  }
  if (found.size() == 1) return found.front();
  throw Error(ErrorKind::kUsage,
              fmt::format("predict: the ids of {} points of the sweep begin with '{}'", found.size(),
                          PrintableLine(ShortenToBytes(id, 80))),
              "`ridgeline plan SWEEP --expand-only` lists them");
}

}  // namespace

void CorrectBy(const std::vector<std::string>& known, const sweep::Sweep& sweep, const predict::Device& device,
               predict::Frameworks& frameworks) {
  std::vector<predict::KnownRun> runs;
  for (const std::string& each : known) {
    const auto text = ReadFileIfThere(each, kMostFileBytes);
    if (!text) {
      runs.push_back(TypedRun(each, sweep, device));
    } else if (text->starts_with("SQLite format 3")) {
      AddOfDatabase(each, runs);
    } else {
      AddOfFile(each, *text, runs);
    }
  }
  bool learnt = false;
  driver::CountingLine line("correcting by known runs");
  size_t tried = 0;
  frameworks.ForEach([&](predict::Framework& framework) {
    if (framework.is_ours() && !device.measured.empty()) return;
    std::vector<predict::KnownRun> its;
    for (const predict::KnownRun& run : runs) {
      const predict::Framework* as = frameworks.Of(run.spec.trainer);
      if (as != nullptr && as->name == framework.name) its.push_back(run);
    }
    learnt = predict::Correct(framework, device, its, [&] { line.At(++tried); }) || learnt;
  });
  if (learnt) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("predict: none of {} known runs is on gpu {} and by a trainer whose steps are predicted",
                          runs.size(), device.gpu),
              "`ridgeline calibrate` alone corrects a device that it measured");
}

}  // namespace ridgeline::cli
