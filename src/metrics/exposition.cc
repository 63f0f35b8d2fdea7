#include "metrics/exposition.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace ridgeline::metrics {
namespace {

constexpr size_t kMostLabelBytes = 256;

std::string LabelValue(const std::string& value) {
  std::string out;
  for (const char c : ShortenToBytes(ValidUtf8(value), kMostLabelBytes)) {
    if (c == '\\' || c == '"') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string_view ContentTypeOf(MetricsFormat format) {
  return format == MetricsFormat::kOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                               : "text/plain; version=0.0.4; charset=utf-8";
}

void MetricsText::Begin(Kind kind, std::string_view name, std::string_view unit, std::string_view help) {
  kind_ = kind;
  name_ = name;
  unit_ = unit;
  help_ = help;
  has_head_ = false;
}

// OpenMetrics names families without the suffixes of their samples; the older format names them with these.
void MetricsText::Head() {
  if (has_head_) return;
  has_head_ = true;
  static constexpr std::string_view kTypes[] = {"gauge", "counter", "info", "histogram"};
  std::string name = name_;
  std::string_view type = kTypes[static_cast<size_t>(kind_)];
  if (format_ == MetricsFormat::kPrometheus) {
    if (kind_ == Kind::kCounter) name += "_total";
    if (kind_ == Kind::kInfo) {
      name += "_info";
      type = "gauge";
    }
  }
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help_, name, type);
  if (format_ == MetricsFormat::kOpenMetrics && !unit_.empty()) text_ += fmt::format("# UNIT {} {}\n", name, unit_);
}

void MetricsText::Line(std::string_view suffix, const MetricLabels& labels, std::string_view value) {
  text_ += name_;
  text_ += suffix;
  for (size_t i = 0; i < labels.size(); ++i) {
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first, LabelValue(labels[i].second));
  }
  if (!labels.empty()) text_ += '}';
  text_ += fmt::format(" {}\n", value);
}

void MetricsText::Add(const MetricLabels& labels, double value) {
  if (!std::isfinite(value)) return;
  Head();
  Line(kind_ == Kind::kCounter ? "_total" : kind_ == Kind::kInfo ? "_info" : "", labels, fmt::format("{}", value));
}

void MetricsText::AddHistogram(const MetricLabels& labels, const std::vector<double>& bounds,
                               const std::vector<int64_t>& counts, int64_t count, double sum) {
  Head();
  for (size_t i = 0; i < bounds.size(); ++i) {
    MetricLabels with = labels;
    with.emplace_back("le", fmt::format("{:.1f}", bounds[i]));
    Line("_bucket", with, fmt::format("{}", counts[i]));
  }
  MetricLabels with = labels;
  with.emplace_back("le", "+Inf");
  Line("_bucket", with, fmt::format("{}", count));
  Line("_sum", labels, fmt::format("{}", sum));
  Line("_count", labels, fmt::format("{}", count));
}

std::string MetricsText::Finish() {
  if (format_ == MetricsFormat::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace ridgeline::metrics
