#include "regress/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "regress/nightly.h"
#include "regress/point_names.h"
#include "regress/verdict.h"
#include "stats/chi_squared.h"
#include "stats/median.h"

namespace ridgeline::regress {
namespace {

// The pairs of the gate's two rounds.
constexpr size_t kPairsOfVerdict = 2 * kPairsOfRound;

// The chance of at most this many alarms, if each trial has one with chance `rate`.
double ChanceOfAtMost(int64_t alarms, int64_t trials, double rate) {
  double chance = 0;
  for (int64_t k = 0; k <= alarms; ++k) {
    const auto n = static_cast<double>(trials);
    const auto i = static_cast<double>(k);
    chance += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) + i * std::log(rate) +
                       (n - i) * std::log1p(-rate));
  }
  return chance;
}

// Runs in the order base, head, head, base.
std::vector<std::vector<RunPair>> RoundsInTurns(std::span<const double> runs) {
  std::vector<std::vector<RunPair>> rounds(2);
  for (size_t pair = 0; pair < kPairsOfVerdict; ++pair) {
    const double first = runs[2 * pair];
    const double second = runs[2 * pair + 1];
    rounds[pair / kPairsOfRound].push_back(pair % 2 == 0 ? RunPair{first, second} : RunPair{second, first});
  }
  return rounds;
}

double MedianOfSession(SessionRuns runs) { return stats::MedianOf(runs); }

// By the medians of sessions, which differ by what their runs do, too. The variance of a median is pi / 2 / n of that
// of runs. The upper end is by the chi-squared distribution of the medians' variance.
void EstimateSpread(std::span<const SessionRuns> sessions, CalibratedCell& cell) {
  if (sessions.empty()) return;
  std::vector<double> within;
  std::vector<double> medians;
  double of_runs = 0;  // the mean of 1 / n
  for (const SessionRuns& runs : sessions) {
    medians.push_back(MedianOfSession(runs));
    for (const double run : runs) within.push_back(run - medians.back());
    of_runs += 1 / static_cast<double>(runs.size()) / static_cast<double>(sessions.size());
  }
  cell.sigma = stats::RobustSigma(within);
  if (medians.size() < 2) return;
  const auto freedom = static_cast<double>(medians.size() - 1);
  const double mean = std::accumulate(medians.begin(), medians.end(), 0.0) / static_cast<double>(medians.size());
  double squares = 0;
  for (const double median : medians) squares += (median - mean) * (median - mean);
  const double noise = std::numbers::pi / 2 * cell.sigma * cell.sigma * of_runs;
  cell.between = std::sqrt(std::max(0.0, squares / freedom - noise));
  const double least = stats::ChiSquaredQuantile(0.05, std::ssize(medians) - 1);
  cell.most_between = std::sqrt(std::max(0.0, squares / least - noise));
}

// What a night would detect once its baseline has kBaseNights nights, which differ as the sessions do.
double Detectable(std::span<const double> tonight, const CalibratedCell& cell) {
  Baseline baseline{0, cell.sigma, kHistoryRuns};
  if (cell.between) {
    const double of_runs = cell.sigma * cell.sigma / static_cast<double>(tonight.size());
    baseline.nights_sigma = std::sqrt(*cell.between * *cell.between + of_runs);
    baseline.nights = kBaseNights;
  }
  return std::expm1(Screen(tonight, baseline).detectable);
}

void CountWithin(std::span<const double> runs, CalibratedCell& cell) {
  for (size_t at = kHistoryRuns; at + kRunsOfNight <= runs.size(); at += kRunsOfNight) {
    const auto tonight = runs.subspan(at, kRunsOfNight);
    ++cell.nights;
    if (Screen(tonight, *RollingBaseline(runs.first(at))).suspect) ++cell.suspects;
    cell.detectable = Detectable(tonight, cell);
  }
  for (size_t at = 0; at + 2 * kPairsOfVerdict <= runs.size(); at += 2 * kPairsOfVerdict) {
    ++cell.verdicts;
    if (Judge(RoundsInTurns(runs.subspan(at))).decision == Decision::kRegressed) ++cell.confirmed;
  }
}

// The first runs of each session as a night. Its baseline has as many runs of each other session as of any.
void CountApart(std::span<const SessionRuns> sessions, CalibratedCell& cell) {
  const size_t of_each = (kHistoryRuns + sessions.size() - 2) / (sessions.size() - 1);
  for (size_t tonight = 0; tonight < sessions.size(); ++tonight) {
    std::vector<double> history;
    std::vector<double> nights;
    for (size_t run = 0; run < of_each; ++run) {
      for (size_t other = 0; other < sessions.size(); ++other) {
        if (other != tonight) history.push_back(sessions[other][run]);
      }
    }
    for (size_t other = 0; other < sessions.size(); ++other) {
      if (other == tonight) continue;
      const std::span<const double> night = std::span(sessions[other]).first(kRunsOfNight);
      nights.push_back(std::accumulate(night.begin(), night.end(), 0.0) / static_cast<double>(night.size()));
    }
    const auto runs = std::span(sessions[tonight]).first(kRunsOfNight);
    if (Screen(runs, *RollingBaseline(history, nights)).suspect) ++cell.apart;
  }
}

// The campaign of a run is its session's name, and the run's number.
std::string SessionOf(const MeasuredRuns& measured) {
  return measured.campaign.substr(0, measured.campaign.rfind("-run-"));
}

// Returns the runs' build; empty if they do not say it.
std::string BuildOf(const MeasuredRuns& measured) {
  return measured.commit == measured.campaign ? "" : measured.commit;
}

std::string SomeOf(int64_t some, int64_t all) { return all == 0 ? "" : fmt::format("{} of {}", some, all); }

std::string RateWords(int64_t alarms, int64_t trials, const char* what) {
  if (trials == 0) return "";
  return fmt::format("{} of {} {}: {:.1f} %, at most {:.1f} % (95 %)\n", alarms, trials, what,
                     100 * static_cast<double>(alarms) / static_cast<double>(trials),
                     100 * MostFalseAlarms(alarms, trials));
}

}  // namespace

size_t RunsOfNights(size_t nights) { return kHistoryRuns + nights * kRunsOfNight; }

CalibratedCell Calibrate(std::string spec, std::span<const SessionRuns> sessions) {
  CalibratedCell cell;
  cell.spec = std::move(spec);
  std::vector<SessionRuns> whole;
  for (const SessionRuns& runs : sessions) {
    cell.runs += std::ssize(runs);
    if (runs.size() >= kHistoryRuns) whole.push_back(runs);
  }
  cell.sessions = std::ssize(whole);
  EstimateSpread(whole, cell);
  for (const SessionRuns& runs : whole) CountWithin(runs, cell);
  if (whole.size() > 1) CountApart(whole, cell);
  return cell;
}

double MostFalseAlarms(int64_t alarms, int64_t trials) {
  if (alarms >= trials) return 1;
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (ChanceOfAtMost(alarms, trials, middle) > 0.05 ? low : high) = middle;
  }
  return high;
}

std::string NameOfSession(int64_t session) { return fmt::format("session-{:03}", session); }

std::vector<CalibratedCell> CalibrateCells(std::span<const MeasuredCell> cells) {
  std::vector<CalibratedCell> calibrated;
  for (const MeasuredCell& cell : cells) {
    std::map<std::string, SessionRuns> sessions;
    std::set<std::string> builds;
    for (const MeasuredRuns& measured : cell.measurements) {
      SessionRuns& runs = sessions[SessionOf(measured)];
      runs.insert(runs.end(), measured.log_step_times.begin(), measured.log_step_times.end());
      if (!BuildOf(measured).empty()) builds.insert(BuildOf(measured));
    }
    std::vector<SessionRuns> all;
    for (auto& [name, runs] : sessions) all.push_back(std::move(runs));
    calibrated.push_back(Calibrate(cell.spec, all));
    calibrated.back().machine = cell.machine;
    calibrated.back().builds = std::move(builds);
  }
  return calibrated;
}

Table CalibrationTable(std::span<const CalibratedCell> cells) {
  Table table{{"point", "runs", "sessions", "sigma", "between", "detects", "suspects", "apart", "confirmed"}, {}};
  std::vector<std::string> specs;
  std::set<std::string> machines;
  for (const CalibratedCell& cell : cells) {
    specs.push_back(cell.spec);
    machines.insert(cell.machine);
  }
  const std::vector<std::string> names = PointNames(specs);
  for (size_t i = 0; i < cells.size(); ++i) {
    const CalibratedCell& cell = cells[i];
    const std::string on = machines.size() > 1 ? ", on " + (cell.machine.empty() ? "?" : cell.machine) : "";
    const std::string between =
        cell.between ? fmt::format("{:.2f} %, at most {:.1f} %", 100 * *cell.between, 100 * cell.most_between) : "";
    table.rows.push_back({names[i] + on, cell.runs, cell.sessions,
                          cell.sessions > 0 ? fmt::format("{:.2f} %", 100 * cell.sigma) : "", between,
                          cell.nights > 0 ? fmt::format("{:+.1f} %", 100 * cell.detectable) : "",
                          SomeOf(cell.suspects, cell.nights), SomeOf(cell.apart, cell.between ? cell.sessions : 0),
                          SomeOf(cell.confirmed, cell.verdicts)});
  }
  return table;
}

Table SessionTable(std::span<const MeasuredCell> cells) {
  struct Session {
    int64_t first_unix_ns = 0;
    int64_t runs = 0;
    std::set<std::string> hosts;
    std::set<std::string> builds;
  };
  std::map<std::string, Session> sessions;
  for (const MeasuredCell& cell : cells) {
    for (const MeasuredRuns& measured : cell.measurements) {
      Session& session = sessions[SessionOf(measured)];
      if (session.runs == 0 || measured.ended_unix_ns < session.first_unix_ns) {
        session.first_unix_ns = measured.ended_unix_ns;
      }
      session.runs += std::ssize(measured.log_step_times);
      session.hosts.insert(measured.host);
      session.builds.insert(BuildOf(measured));
    }
  }
  Table table{{"session", "began", "runs", "on", "build"}, {}};
  for (const auto& [name, session] : sessions) {
    table.rows.push_back({name, FormatUnixTime(session.first_unix_ns), session.runs,
                          Join({session.hosts.begin(), session.hosts.end()}, ", "),
                          Join({session.builds.begin(), session.builds.end()}, ", ")});
  }
  return table;
}

std::string CalibrationWords(std::span<const CalibratedCell> cells) {
  CalibratedCell all;
  int64_t apart_of = 0;
  for (const CalibratedCell& cell : cells) {
    all.sessions = std::max(all.sessions, cell.sessions);
    all.nights += cell.nights;
    all.suspects += cell.suspects;
    all.apart += cell.apart;
    if (cell.between) apart_of += cell.sessions;
    all.builds.insert(cell.builds.begin(), cell.builds.end());
    all.verdicts += cell.verdicts;
    all.confirmed += cell.confirmed;
  }
  if (all.nights == 0) return "";
  std::string words =
      RateWords(all.suspects, all.nights,
                "nights of a point were suspects compared with their session, although nothing had changed") +
      RateWords(all.confirmed, all.verdicts,
                "verdicts on base and head in turns were REGRESSED, although nothing had changed");
  if (all.sessions < 2) {
    return words +
           "One session knows no variance between sessions: nights may differ by more than this says. To add a "
           "session,\n"
           "run the same command again, on another day, after a reboot or on another node.\n";
  }
  words += fmt::format(
      "{} of {} sessions of a point were suspects compared with the other sessions, although nothing had changed\n",
      all.apart, apart_of);
  if (all.builds.size() > 1) {
    words += fmt::format("The runs are of {} builds ({}): their differences count as differences of sessions.\n",
                         all.builds.size(), Join({all.builds.begin(), all.builds.end()}, ", "));
  }
  return words;
}

}  // namespace ridgeline::regress
