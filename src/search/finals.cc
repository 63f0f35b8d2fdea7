#include "search/finals.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stats/student.h"

namespace ridgeline::search {
namespace {

constexpr double kNearTheBest = 0.9;  // of the best first run: runs on shared machines differ by so much
constexpr double kTail = 0.025;       // on each side of an interval of 95 %

double Mean(const std::vector<double>& values) {
  return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
}

// Returns at most `most` points that are near the best by their first runs, the best first.
std::vector<Contender> NearTheBest(std::vector<Contender> contenders, int64_t most) {
  std::stable_sort(contenders.begin(), contenders.end(),
                   [](const Contender& a, const Contender& b) { return a.values.front() > b.values.front(); });
  std::erase_if(contenders, [best = contenders.empty() ? 0 : contenders.front().values.front()](const Contender& each) {
    return each.values.front() < kNearTheBest * best;
  });
  if (std::ssize(contenders) > most) contenders.resize(static_cast<size_t>(std::max<int64_t>(most, 0)));
  return contenders;
}

// The logarithms of the finalists' runs, one row per finalist. The columns are the first run and the turns that all
// finalists have had.
class RunsOfFinalists {
 public:
  RunsOfFinalists(const std::vector<Contender>& finalists, size_t columns) {
    for (const Contender& each : finalists) {
      std::vector<double>& row = rows_.emplace_back();
      for (size_t column = 0; column < columns; ++column) row.push_back(std::log(each.values[column]));
      means_.push_back(Mean(row));
    }
    for (size_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (const auto& row : rows_) sum += row[column];
      column_means_.push_back(sum / Rows());
    }
  }

  double MeanOf(size_t row) const { return means_[row]; }

  // Half the width of the 95 % interval of the difference between two rows' means. REQUIRES: at least two rows and
  // two columns.
  double HalfOfDifference() const {
    const double all = Mean(column_means_);
    double squares = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (size_t j = 0; j < rows_[i].size(); ++j) {
        squares += Square(rows_[i][j] - means_[i] - column_means_[j] + all);
      }
    }
    const double freedom = (Rows() - 1) * (Columns() - 1);
    return Quantile(freedom) * std::sqrt(squares / freedom * 2 / Columns());
  }

  // The same for the mean of one row.
  double HalfOfMean() const {
    double squares = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (const double value : rows_[i]) squares += Square(value - means_[i]);
    }
    const double freedom = Rows() * (Columns() - 1);
    return Quantile(freedom) * std::sqrt(squares / freedom / Columns());
  }

 private:
  static double Square(double value) { return value * value; }
  static double Quantile(double freedom) { return stats::StudentQuantile(kTail, static_cast<int64_t>(freedom)); }
  double Rows() const { return static_cast<double>(rows_.size()); }
  double Columns() const { return static_cast<double>(column_means_.size()); }

  std::vector<std::vector<double>> rows_;
  std::vector<double> means_, column_means_;
};

}  // namespace

int64_t RunsForFinals(int64_t budget) { return budget / 3 < kMostFinalists ? 0 : budget / 3; }

bool HasFinals(const std::vector<Contender>& contenders) { return NearTheBest(contenders, 2).size() == 2; }

Finals JudgeFinals(std::vector<Contender> contenders, int64_t runs) {
  Finals finals;
  const std::vector<Contender> near = NearTheBest(std::move(contenders), std::min(kMostFinalists, runs));
  if (near.size() < 2) return finals;
  const auto count = std::ssize(near);
  const auto turns_of = [](const Contender& each) { return std::ssize(each.values) - 1; };
  finals.turns = turns_of(*std::ranges::min_element(near, {}, turns_of));
  const RunsOfFinalists runs_of(near, static_cast<size_t>(finals.turns) + 1);
  for (size_t i = 0; i < near.size(); ++i) finals.finalists.push_back({near[i].point, std::exp(runs_of.MeanOf(i))});
  std::stable_sort(finals.finalists.begin(), finals.finalists.end(),
                   [](const Finalist& a, const Finalist& b) { return a.value > b.value; });
  if (finals.turns > 0) {
    finals.interval = std::exp(runs_of.HalfOfMean());
    const double factor = std::exp(runs_of.HalfOfDifference());
    for (Finalist& each : finals.finalists) {
      each.could_be_best = each.value * factor > kWorthLooking * finals.finalists.front().value;
    }
    finals.finalists.front().could_be_best = true;
  }
  const bool is_open = std::ranges::count_if(finals.finalists, &Finalist::could_be_best) > 1;
  if (!is_open || finals.turns >= std::min(kMostTurns, runs / count)) return finals;
  finals.next_turn = finals.turns + 1;
  for (const Contender& each : near) {
    if (turns_of(each) == finals.turns) finals.run.push_back(each.point);
  }
  return finals;
}

}  // namespace ridgeline::search
