// Figures for Prometheus: families of samples with labels, in its text format 0.0.4 or in OpenMetrics 1.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ridgeline::metrics {

enum class MetricsFormat { kPrometheus, kOpenMetrics };

// Returns the HTTP Content-Type.
std::string_view ContentTypeOf(MetricsFormat format);

// A label's name and its value. The value may come from anywhere: it is escaped, and cut if it is long.
using MetricLabels = std::vector<std::pair<std::string_view, std::string>>;

class MetricsText {
 public:
  enum class Kind {
    kGauge,
    kCounter,    // its sample has the suffix _total
    kInfo,       // always 1: the labels hold the information; its sample has the suffix _info
    kHistogram,  // its samples are those of AddHistogram
  };

  explicit MetricsText(MetricsFormat format) : format_(format) {}

  // Starts the family to which Add adds from now on. `name` lacks the suffixes of its kind, and ends with `unit` unless
  // that is empty. A family without samples is left out.
  void Begin(Kind kind, std::string_view name, std::string_view unit, std::string_view help);

  // Leaves out values that are not finite, which say nothing.
  void Add(const MetricLabels& labels, double value);

  // `counts[i]`: how many values are at most `bounds[i]`, so both ascend. `count`: how many there are. `sum`: their
  // sum.
  void AddHistogram(const MetricLabels& labels, const std::vector<double>& bounds, const std::vector<int64_t>& counts,
                    int64_t count, double sum);

  // Returns the whole text. Nothing may be added after it.
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

}  // namespace ridgeline::metrics
