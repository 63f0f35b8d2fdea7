// Figures as Prometheus reads them: families of samples with labels, in its text format 0.0.4 or as OpenMetrics 1.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ridgeline {

enum class MetricsFormat { kPrometheus, kOpenMetrics };

// As HTTP's Content-Type says it.
std::string_view ContentTypeOf(MetricsFormat format);

// Of a label, and its value, which may come from anywhere: it is escaped, and cut where it is long.
using MetricLabels = std::vector<std::pair<std::string_view, std::string>>;

class MetricsText {
 public:
  enum class Kind {
    kGauge,
    kCounter,    // its sample has the suffix _total
    kInfo,       // always 1: what there is to say is in the labels; its sample has the suffix _info
    kHistogram,  // its samples are those of AddHistogram
  };

  explicit MetricsText(MetricsFormat format) : format_(format) {}

  // What Add adds to from now on. `name` is without the suffixes of its kind, and ends with `unit` where that is not
  // empty. A family without samples is left out.
  void Begin(Kind kind, std::string_view name, std::string_view unit, std::string_view help);

  // A value that is not finite says nothing, and is left out.
  void Add(const MetricLabels& labels, double value);

  // `counts[i]`: of values up to `bounds[i]` (and so ascending, as `bounds` are); `count` of all, `sum` theirs.
  void AddHistogram(const MetricLabels& labels, const std::vector<double>& bounds, const std::vector<int64_t>& counts,
                    int64_t count, double sum);

  // The whole text. Nothing is added after it.
  std::string Finish();

 private:
  void Line(std::string_view suffix, const MetricLabels& labels, std::string_view value);
  void Head();

  MetricsFormat format_;
  Kind kind_ = Kind::kGauge;
  std::string name_;
  std::string unit_;
  std::string help_;
  bool has_head_ = false;
  std::string text_;
};

}  // namespace ridgeline
