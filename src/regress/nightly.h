// The nightly rule: which cells look slower tonight than before, and so are measured again. It uses one figure per run,
// the natural logarithm of its median steady step's time (stats/steady.h). The run is the unit of inference, never the
// step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ridgeline::regress {

// A slowdown that is tolerated, as a share: 1 %. Twice that cannot be told from 3 % if runs differ by 1 %
// (tests/regress/simulation_test.cc).
inline constexpr double kTolerance = 0.01;

inline constexpr size_t kHistoryRuns = 20;

// The reference for tonight: runs of one point on one fingerprint.
struct Baseline {
  double log_step_time = 0;  // their median
  double sigma = 0;          // how runs vary: the standard deviation of the logarithm
  size_t runs = 0;
  double nights_sigma = 0;  // how its nights' means vary, likewise; 0: too few nights
  size_t nights = 0;
};

// The last kHistoryRuns of the history, latest last. Nothing for a shorter history, which does not show how runs vary.
// `nights`: the means of its nights' runs. The last kBaseNights count; fewer than kSigmaNights do not count.
std::optional<Baseline> RollingBaseline(std::span<const double> history, std::span<const double> nights = {});

// Runs that were chosen once and stay, such as a release's. Unlike a rolling baseline, it shows a slow creep. How runs
// vary is taken from the rolling one. REQUIRES: at least one run.
Baseline PinnedBaseline(std::span<const double> runs, const Baseline& rolling);

struct Screening {
  double change = 0;      // change of the logarithm: above 0 is slower
  double threshold = 0;   // a change above this is suspect
  double detectable = 0;  // a slowdown of this size is suspect in 80 of 100 nights
  double error = 0;       // the standard error of the change
  bool suspect = false;
  bool faint = false;  // worth turns if there is an older build; suspects are, too
};

inline constexpr double kSuspectErrors = 3;
inline constexpr double kFaintErrors = 1.5;

// Tonight's change d from the baseline is suspect if
//   d > max(ln(1 + tolerance), 3 max(sigma sqrt(1 / R + 1.57 / H), sigma_n sqrt(1 + 1.57 / N))),
// for R runs tonight, and H runs and N nights of the baseline. 1 / R is the variance of a mean and pi / 2 / H that of a
// median, in units of sigma². Only sigma_n includes what all runs of a night share, such as a boot or a node. d is the
// lower of the mean's change and the median's, so that one disturbed run makes no suspect. The change is faint if the
// mean exceeds 1.5 of those errors: bench/gate_rates.cc shows what that finds, and how many runs it costs. REQUIRES: at
// least one run tonight.
Screening Screen(std::span<const double> tonight, const Baseline& baseline, double tolerance = kTolerance);

// A slowdown that chance cannot produce counts in the same night, without confirmation: the median of tonight's runs is
// more than 10 % above the baseline, and more than 6 standard errors.
inline constexpr double kLargeChange = 0.10;
inline constexpr double kLargeErrors = 6;
bool IsLarge(std::span<const double> tonight, const Baseline& baseline);

// Nights together decide what a single night cannot: the last kWindowNights of a cell, including tonight, against up to
// kBaseNights before them. Each night is one figure, the median of its runs. So a night that was slow throughout is one
// observation, however many runs it has.
inline constexpr size_t kWindowNights = 6;
inline constexpr size_t kBaseNights = 20;
inline constexpr size_t kSigmaNights = 10;  // this many nights show how nights vary
// The share of nights without any change that may be red by accident, however many cells they have.
inline constexpr double kNightsRate = 0.01;

struct NightsJudgement {
  double change = 0;    // change of the logarithm: the window's median night minus the median night before it
  double chance = 1;    // chance of such ranks or higher if nothing changed, one-sided; 1 if it is no slower
  bool slower = false;  // by more than the tolerance, also tonight; `chance` tells whether it is an accident
  size_t first = 0;     // index in the window of the first night that is slower so
};

// Uses the rank sum of the window's nights (Wilcoxon, 1945), whose chance is exact; ties count half. Nothing if there
// are fewer than kWindowNights, or none before them.
std::optional<NightsJudgement> JudgeNights(std::span<const double> before, std::span<const double> window,
                                           double tolerance = kTolerance);

// Whether a peak of memory grew by more than 64 MiB and than 0.5 %.
bool MemoryGrew(int64_t base_bytes, int64_t head_bytes);

// For memory: the excess over the median of earlier peaks that is more than noise, as a share of it. It is the largest
// of 64 MiB, 0.5 %, and 3 standard errors of one peak. These use the standard deviation of the earlier peaks without
// the largest, because for two alternating levels the robust one may be 0. REQUIRES: peaks above 0, at least one.
double MemoryTolerance(std::span<const double> before);

}  // namespace ridgeline::regress
