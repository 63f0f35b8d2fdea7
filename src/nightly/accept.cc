#include "nightly/accept.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "gate/night_records.h"
#include "regress/nights.h"
#include "session/say.h"

namespace ridgeline::nightly {
namespace {

constexpr size_t kMostReasonBytes = 1000;
constexpr size_t kMostAuthorBytes = 200;

regress::Night FindNight(const AcceptOptions& options, const std::filesystem::path& folder, const std::string& shown) {
  std::vector<regress::Night> nights = gate::NightsIn(folder);
  const auto night = std::ranges::find(nights, options.night, &regress::Night::name);
  if (night != nights.end()) return std::move(*night);
  std::vector<std::string> names;
  for (const regress::Night& each : nights) names.push_back(each.name);
  throw Error(ErrorKind::kUsage,
              fmt::format("nightly: there is no '{}' in {}{}", PrintableLine(options.night), shown,
                          DidYouMean(options.night, names)),
              "`ridgeline nightly status` lists the nights");
}

// The cells that the user names, or all.
std::vector<regress::NightCell> CellsToAccept(const AcceptOptions& options, const regress::Night& night) {
  std::vector<regress::NightCell> cells;
  std::vector<std::string> names;
  for (const regress::WorseCell& worse : night.worse) {
    names.push_back(worse.point);
    if (options.all) cells.push_back(worse.cell);
  }
  for (const std::string& point : options.points) {
    const auto found = std::ranges::find(night.worse, point, &regress::WorseCell::point);
    if (found == night.worse.end()) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("nightly: {} found no '{}' worse{}", night.name, PrintableLine(point), DidYouMean(point, names)),
          fmt::format("it found worse: {}", PrintableLine(Join(names, "; "))));
    }
    cells.push_back(found->cell);
  }
  return cells;
}

// The user's name as in their commits, else as the machine knows it.
std::string WhoAccepts() {
  try {
    const Captured git = Run({"git", "config", "user.name"});
    if (std::string name = FirstLine(git.stdout_text); git.status.ok() && !name.empty()) return name;
  } catch (const Error&) {  // git is not installed
  }
  const passwd* login = getpwuid(geteuid());  // NOLINT(concurrency-mt-unsafe): the program has one thread here
  return login != nullptr ? login->pw_name : std::to_string(geteuid());
}

void CheckText(const char* option, const std::string& text, size_t most_bytes) {
  const bool is_blank = std::ranges::all_of(text, [](char c) { return c == ' ' || c == '\t'; });
  if (!is_blank && text.size() <= most_bytes && PrintableLine(text) == text) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("nightly: {} takes one line of text, {} bytes at most", option, most_bytes),
              "every page of the gate shows it beside the point");
}

std::string PointsAre(size_t count) { return fmt::format("{} point{}", count, count == 1 ? " is" : "s are"); }

}  // namespace

int AcceptNight(const AcceptOptions& options, const std::filesystem::path& nights, const std::string& folder) {
  regress::Night night = FindNight(options, nights, folder);
  if (night.worse.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("nightly: {} found nothing worse than its baseline", night.name),
                "accept the night that did. If a point is worse only than --pinned, name a newer --pinned");
  }
  const bool is_whole = options.all || (options.undo && options.points.empty());
  if (is_whole == !options.points.empty()) {
    std::vector<std::string> names;
    for (const regress::WorseCell& worse : night.worse) names.push_back(worse.point);
    throw Error(ErrorKind::kUsage, "nightly: which points?",
                fmt::format("say --all, or --point NAME for each; {} found worse: {}", night.name,
                            PrintableLine(Join(names, "; "))));
  }
  AcceptOptions choice = options;
  choice.all = is_whole;
  const std::vector<regress::NightCell> cells = CellsToAccept(choice, night);
  const auto is_chosen = [&](const regress::AcceptedCell& each) {
    return std::ranges::find(cells, each.cell) != cells.end();
  };
  if (options.undo) {
    const auto count = std::erase_if(night.accepted, is_chosen);
    if (count == 0) {
      throw Error(ErrorKind::kUsage, fmt::format("nightly: {} is not accepted", night.name),
                  "`ridgeline nightly status` says which nights are");
    }
    regress::WriteNight(night, nights);
    session::Say("{}: {} no longer accepted, and in no baseline from this night\n", night.name, PointsAre(count));
    return 0;
  }
  CheckText("--reason", options.reason, kMostReasonBytes);
  const std::string author =
      options.author.empty() ? ShortenToBytes(PrintableLine(WhoAccepts()), kMostAuthorBytes) : options.author;
  CheckText("--author", author, kMostAuthorBytes);
  std::erase_if(night.accepted, is_chosen);
  const int64_t now_unix_s = SystemClock().UnixNs() / 1'000'000'000;
  for (const regress::NightCell& cell : cells) night.accepted.push_back({cell, options.reason, author, now_unix_s});
  regress::WriteNight(night, nights);
  session::Say("{}: {} accepted by {}\n", night.name, PointsAre(cells.size()), author);
  return 0;
}

}  // namespace ridgeline::nightly
