// The nightly rule: which cells look slower tonight than they were, and so are measured again. Of a run it takes one
// figure, the natural logarithm of its median steady step's time (stats/steady.h): the run is the unit of inference,
// never the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ridgeline {

// A slowdown that nobody minds, as a share: 1 %. Twice that cannot be told from 3 % where runs differ by 1 %
// (tests/regress/simulation_test.cc).
inline constexpr double kTolerance = 0.01;

inline constexpr size_t kHistoryRuns = 20;

// What tonight is compared with: runs of one point on one fingerprint.
struct Baseline {
  double log_step_time = 0;  // their median
  double sigma = 0;          // how runs differ, of the logarithm: its standard deviation
  size_t runs = 0;
  double nights_sigma = 0;  // how its nights' means differ, likewise; 0: too few nights to say
  size_t nights = 0;
};

// The last kHistoryRuns of the history, the latest last. Nothing of a shorter one: it says too little of how runs
// differ. `nights`: the means of its nights' runs. The last kBaseNights count; fewer than kSigmaNights do not.
std::optional<Baseline> RollingBaseline(std::span<const double> history, std::span<const double> nights = {});

// Runs that were chosen once and stay, such as a release's, which a slow creep moves away from as no rolling baseline
// does. How runs differ is known from the rolling one. REQUIRES: at least one run.
Baseline PinnedBaseline(std::span<const double> runs, const Baseline& rolling);

struct Screening {
  double change = 0;      // of the logarithm: above 0 is slower
  double threshold = 0;   // suspect above this
  double detectable = 0;  // a slowdown of this much is suspect in 80 of 100 nights
  double error = 0;       // the standard error of the change
  bool suspect = false;
  bool faint = false;  // worth turns where there is an older build; suspects are
};

inline constexpr double kSuspectErrors = 3;
inline constexpr double kFaintErrors = 1.5;

// Tonight's change d from the baseline is suspect where
//   d > max(ln(1 + tolerance), 3 max(sigma sqrt(1 / R + 1.57 / H), sigma_n sqrt(1 + 1.57 / N))),
// for R runs tonight, H runs of the baseline and N nights of it: 1 / R is the variance of a mean, pi / 2 / H that of a
// median, in sigma². sigma_n alone has what all runs of a night share, such as a boot or a node. d is the lower of the
// mean's change and the median's, so that one disturbed run makes no suspect. It is faint where the mean is beyond 1.5
// of those errors: bench/gate_rates.cc says what that finds, and how many runs it costs. REQUIRES: at least one run
// tonight.
Screening Screen(std::span<const double> tonight, const Baseline& baseline, double tolerance = kTolerance);

// A slowdown that no chance makes is one the same night, without a measurement that confirms it: the median of
// tonight's runs is more than 10 % above the baseline, and more than 6 standard errors.
inline constexpr double kLargeChange = 0.10;
inline constexpr double kLargeErrors = 6;
bool IsLarge(std::span<const double> tonight, const Baseline& baseline);

// Nights decide what no night decides by itself: the last kWindowNights of a cell, tonight the last, against as many as
// kBaseNights before them. Each is one figure, the median of its runs, so a night that was slow from end to end is one
// observation however many runs it has.
inline constexpr size_t kWindowNights = 6;
inline constexpr size_t kBaseNights = 20;
inline constexpr size_t kSigmaNights = 10;  // so many say how nights differ
// Of nights in which nothing changed, this share may be red by accident, however many cells they have.
inline constexpr double kNightsRate = 0.01;

struct NightsJudgement {
  double change = 0;    // of the logarithm: the window's median night less the median night before it
  double chance = 1;    // of such ranks or higher where nothing changed, one-sided; 1 where it is no slower
  bool slower = false;  // by more than the tolerance, tonight as well; its chance says whether that is an accident
  size_t first = 0;     // the place in the window of the first night that is slower so
};

// By the rank sum of the window's nights (Wilcoxon, 1945), whose chance is exact; ties count half. Nothing where there
// are fewer than kWindowNights, or none before them.
std::optional<NightsJudgement> JudgeNights(std::span<const double> before, std::span<const double> window,
                                           double tolerance = kTolerance);

// Whether a peak of memory grew by more than 64 MiB and than 0.5 %.
bool MemoryGrew(int64_t base_bytes, int64_t head_bytes);

// Of memory: how far above the median of the peaks before is more than noise, as a share of it: 64 MiB, 0.5 %, and
// 3 standard errors of one peak, by the standard deviation of those before but the largest (of two levels in turns
// the robust one may be 0). REQUIRES: peaks above 0, at least one.
double MemoryTolerance(std::span<const double> before);

}  // namespace ridgeline
